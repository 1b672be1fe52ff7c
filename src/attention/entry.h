/* attention/entry.h: the entries of a call of attention that was checked, one after the other: where the pages of each
 * stand in its text, which of their tokens a query sees, and where its results go. */
#ifndef KVK_ATTENTION_ENTRY_H
#define KVK_ATTENTION_ENTRY_H

#include "base/checked.h"

#include <kvkeep/attention.h>

typedef struct entry {
    uint32_t index;           /* of n */
    const int32_t *pages;     /* [n_pages] */
    const int32_t *positions; /* [n_pages]; NULL: no page is missing */
    uint32_t n_pages, page_tokens;
    uint32_t n_tokens;    /* of the text */
    uint32_t n_queries;   /* its last tokens */
    uint32_t first_query; /* of the batch's, this entry's first */
    uint32_t n_rows;      /* of masses */
    uint32_t near_from;   /* pages from this one on have near peaks */
    uint64_t mean_at;     /* where mean and peak of its first row begin, each row n_pages long */
    uint64_t near_at;     /* the same in `near`, in pages; each row n_pages - near_from long */
} entry;

static inline uint32_t entry_position(const entry *e, uint32_t page)
{
    return e->positions ? (uint32_t)e->positions[page] : page * e->page_tokens;
}

/* Query i is the text's token at this position. */
static inline uint32_t entry_query_position(const entry *e, uint32_t query)
{
    return e->n_tokens - e->n_queries + query;
}

/* The row that a query's masses go to. */
static inline uint32_t entry_row(const entry *e, uint32_t query)
{
    return e->n_rows == 1 ? 0 : query;
}

/* The first listed page of those that a batch can change the near peaks of: the page of its first query, the one before
 * it, and all after. */
static inline uint32_t entry_near_from(const entry *e)
{
    uint32_t number = (e->n_tokens - e->n_queries) / e->page_tokens, from = e->n_pages;
    while (from > 0 && entry_position(e, from - 1) / e->page_tokens + 1 >= number)
        from--;
    return from;
}

static inline void entry_fill(entry *e, const kvk_attention *a, const kvk_attention_out *out)
{
    uint32_t i = e->index;
    if (i == a->n)
        return;
    e->pages = a->pages ? a->pages + a->indptr[i] : NULL;
    e->positions = a->positions ? a->positions + a->indptr[i] : NULL;
    e->n_pages = (uint32_t)(a->indptr[i + 1] - a->indptr[i]);
    e->page_tokens = a->kv->page_tokens;
    e->n_tokens = (uint32_t)a->seq_lens[i];
    e->n_queries = (uint32_t)(a->query_indptr[i + 1] - a->query_indptr[i]);
    e->first_query = (uint32_t)a->query_indptr[i];
    e->n_rows = out->rows ? out->rows[i] : 1;
    e->near_from = entry_near_from(e);
}

/* for (entry e = entry_first(a, out); e.index < a->n; entry_next(&e, a, out)) */
static inline entry entry_first(const kvk_attention *a, const kvk_attention_out *out)
{
    entry e = {0};
    entry_fill(&e, a, out);
    return e;
}

static inline void entry_next(entry *e, const kvk_attention *a, const kvk_attention_out *out)
{
    e->mean_at += (uint64_t)e->n_rows * e->n_pages;
    e->near_at += (uint64_t)e->n_rows * (e->n_pages - e->near_from);
    e->index++;
    entry_fill(e, a, out);
}

/* Which tokens of a page a query sees: from .. to - 1, none if to <= from. */
typedef struct seen {
    uint32_t from, to;
} seen;

static inline seen entry_seen(const entry *e, uint32_t page, uint32_t query, uint32_t window)
{
    uint32_t position = entry_position(e, page), at = entry_query_position(e, query);
    uint32_t oldest = window && at >= window ? at - window + 1 : 0;
    uint32_t from = oldest > position ? oldest - position : 0;
    uint32_t to = at >= position ? min_u32(e->page_tokens, at - position + 1) : 0;
    return (seen){from, to};
}

/* Whether a query stands in a page or in the next one of the text. */
static inline int entry_is_near(const entry *e, uint32_t page, uint32_t query)
{
    uint32_t of_page = entry_position(e, page) / e->page_tokens;
    uint32_t of_query = entry_query_position(e, query) / e->page_tokens;
    return of_query == of_page || of_query == of_page + 1;
}

#endif
