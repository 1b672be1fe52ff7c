/* page/table.h: a block table, the pages of one sequence in one group, in token order.
 *
 * Entry i is the page of tokens i * page_tokens on. A group with a window lets its first entries go: the table holds
 * entries first .. first + n - 1. */
#ifndef KVK_PAGE_TABLE_H
#define KVK_PAGE_TABLE_H

#include <stdint.h>

typedef struct table {
    uint32_t *pages; /* [cap]; keeps its memory when the sequence ends */
    uint32_t first, n, cap;
} table;

static inline uint32_t table_end(const table *t)
{
    return t->first + t->n;
}

/* The page of entry i, which the table must hold. */
static inline uint32_t *table_at(const table *t, uint32_t i)
{
    return &t->pages[i - t->first];
}

static inline int table_holds(const table *t, uint32_t i)
{
    return i >= t->first && i - t->first < t->n;
}

#endif
