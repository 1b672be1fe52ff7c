#include "cache/plan.h"

#include <string.h>

/* One number into an index array of the plan's width. */
static void put(const kvk_plan *plan, void *array, uint64_t i, uint64_t value)
{
    if (!array)
        return;
    if (plan->index_bits == 32)
        ((int32_t *)array)[i] = (int32_t)value;
    else
        ((int64_t *)array)[i] = (int64_t)value;
}

static void put_pages(const kvk_plan *plan, uint64_t at, const uint32_t *pages, uint64_t n)
{
    if (!plan->pages || n == 0)
        return;
    if (plan->index_bits == 32) /* ids stay below 2^31 */
        memcpy((int32_t *)plan->pages + at, pages, n * sizeof *pages);
    else
        for (uint64_t i = 0; i < n; i++)
            ((int64_t *)plan->pages)[at + i] = pages[i];
}

static void put_positions(const kvk_cache *c, const kvk_plan *plan, uint64_t at, const table *t, uint32_t n)
{
    for (uint32_t k = 0; plan->positions && k < n; k++)
        put(plan, plan->positions, at + k, (uint64_t)table_number(t, k) * page_tokens(c));
}

/* The rest of a padded row, from `used` on. */
static void put_padding(const kvk_plan *plan, uint64_t row, uint64_t used)
{
    for (uint64_t i = row + used; (plan->pages || plan->positions) && i < row + plan->pages_cap; i++) {
        put(plan, plan->pages, i, (uint64_t)plan->pad);
        put(plan, plan->positions, i, (uint64_t)plan->pad);
    }
}

static void put_slots(const kvk_cache *c, const kvk_plan *plan, const table *t, uint64_t at, uint32_t from, uint32_t n)
{
    for (uint32_t i = 0; plan->slots && i < n; i++) {
        uint32_t position = from + i;
        uint64_t page = *table_at(t, position / page_tokens(c));
        plan->slots[at + i] = (int64_t)(page * page_tokens(c) + position % page_tokens(c));
    }
}

/* How much of one group is written. */
typedef struct cursor {
    uint32_t group, entry;
    uint64_t page, slot;
} cursor;

static void write_entry(const kvk_cache *c, const kvk_batch_entry *e, const kvk_plan *plan, cursor *at)
{
    const sequence *s = &c->sequences[(uint32_t)e->seq]; /* checked before */
    const table *t = &s->tables[at->group];
    uint32_t end = s->n_tokens + e->n_query, pages = table_entries(t, pages_of_tokens(c, end));
    uint64_t row = (uint64_t)at->group * plan->entries_cap + at->entry;
    uint64_t first = plan->form == KVK_PLAN_CSR ? at->group * plan->pages_cap + at->page : row * plan->pages_cap;
    put_pages(plan, first, t->pages, pages);
    put_positions(c, plan, first, t, pages);
    if (plan->form == KVK_PLAN_PADDED)
        put_padding(plan, first, pages);
    put_slots(c, plan, t, at->group * plan->slots_cap + at->slot, s->n_tokens, e->n_query);
    put(plan, plan->last_page_len, row, pages ? (end - 1) % page_tokens(c) + 1 : 0);
    at->page += pages;
    at->slot += e->n_query;
    if (plan->form == KVK_PLAN_CSR)
        put(plan, plan->indptr, row + at->group + 1, at->page);
    if (at->group == 0) {
        put(plan, plan->seq_lens, at->entry, end);
        put(plan, plan->query_indptr, at->entry + 1, at->slot);
    }
    at->entry++;
}

/* Entries past the last are written as empty ones, for kernels launched over all E (CUDA graphs). */
static void write_rest(const kvk_plan *plan, cursor *at)
{
    for (; at->entry < plan->entries_cap; at->entry++) {
        uint64_t row = (uint64_t)at->group * plan->entries_cap + at->entry;
        put(plan, plan->last_page_len, row, 0);
        if (plan->form == KVK_PLAN_CSR)
            put(plan, plan->indptr, row + at->group + 1, at->page);
        else
            put_padding(plan, row * plan->pages_cap, 0);
        if (at->group == 0) {
            put(plan, plan->seq_lens, at->entry, 0);
            put(plan, plan->query_indptr, at->entry + 1, at->slot);
        }
    }
}

void plan_write(const kvk_cache *c, const kvk_batch_entry *entries, uint32_t n, const kvk_plan *plan)
{
    put(plan, plan->query_indptr, 0, 0);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        cursor at = {.group = g};
        if (plan->form == KVK_PLAN_CSR)
            put(plan, plan->indptr, (uint64_t)g * ((uint64_t)plan->entries_cap + 1), 0);
        for (uint32_t i = 0; i < n; i++)
            write_entry(c, &entries[i], plan, &at);
        write_rest(plan, &at);
    }
}
