/* page/table.h: a block table, the pages of one sequence in one group, in token order.
 *
 * Page number i of the text holds tokens i * page_tokens on. A table is whole at first: it holds numbers first ..
 * first + n - 1 (a group with a window lets its first ones go). Once pages were evicted it is compact: entry k stands
 * for number index[k], ascending, and `lost` numbers between first and the end are missing. */
#ifndef KVK_PAGE_TABLE_H
#define KVK_PAGE_TABLE_H

#include "base/memory.h"

typedef struct table {
    uint32_t *pages; /* [cap]; keeps its memory when the sequence ends */
    uint32_t first, n, lost;
    uint32_t indexed; /* 1: pages may be evicted from it, so `index` is kept */
    uint32_t *index;  /* [index_cap] page number of each entry, where `indexed` */
    uint32_t cap, index_cap;
} table;

/* The page number after the last. */
static inline uint32_t table_end(const table *t)
{
    return t->first + t->n + t->lost;
}

/* table_find where numbers are missing. O(1) for the whole end of a table, else O(log n). */
uint32_t table_search(const table *t, uint32_t i);

/* The first entry with a number of at least i, first <= i <= end. */
static inline uint32_t table_find(const table *t, uint32_t i)
{
    return t->lost == 0 ? i - t->first : table_search(t, i);
}

/* Entries with numbers below i. */
static inline uint32_t table_below(const table *t, uint32_t i)
{
    return i > t->first ? table_find(t, i) : 0;
}

static inline uint32_t table_number(const table *t, uint32_t entry)
{
    return t->lost ? t->index[entry] : t->first + entry;
}

/* The page with number i, which the table must hold. */
static inline uint32_t *table_at(const table *t, uint32_t i)
{
    return &t->pages[table_find(t, i)];
}

static inline int table_holds(const table *t, uint32_t i)
{
    if (i < t->first || i >= table_end(t))
        return 0;
    if (t->lost == 0)
        return 1;
    uint32_t entry = table_find(t, i);
    return entry < t->n && t->index[entry] == i;
}

/* Entries with numbers below `end`; those from there on must all be held, as those without tokens are. */
static inline uint32_t table_entries(const table *t, uint32_t end)
{
    return end > t->first ? end - t->first - t->lost : 0;
}

/* Makes room for n entries. KVK_ENOMEM. */
static inline int table_prepare(memory *m, table *t, uint64_t n)
{
    if (t->indexed && memory_grow(m, &t->index, &t->index_cap, n, sizeof *t->index) < 0)
        return KVK_ENOMEM;
    return memory_grow(m, &t->pages, &t->cap, n, sizeof *t->pages);
}

/* One more page at the end. */
static inline void table_push(table *t, uint32_t page)
{
    if (t->indexed)
        t->index[t->n] = table_end(t);
    t->pages[t->n++] = page;
}

/* Keeps numbers from now on. KVK_ENOMEM. */
static inline int table_keep_index(memory *m, table *t)
{
    if (t->indexed)
        return 0;
    if (memory_grow(m, &t->index, &t->index_cap, t->cap, sizeof *t->index) < 0)
        return KVK_ENOMEM;
    t->indexed = 1;
    for (uint32_t i = 0; i < t->n; i++)
        t->index[i] = t->first + i;
    return 0;
}

/* Empty again, from number `first` on. */
static inline void table_clear(table *t, uint32_t first)
{
    t->n = t->lost = 0;
    t->first = first;
}

#endif
