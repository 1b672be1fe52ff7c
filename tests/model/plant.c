/* plant.c: bugs, planted through the library's inside at a moment of a run: what its wrong decisions would leave. */
#include "cache/eviction.h"

#include "world.h"

#include <string.h>

/* A full page that a sequence computed after a loss becomes findable. */
static bool publish_tainted(kvk_cache *c, sequence *s, uint32_t group, uint32_t entry)
{
    const uint8_t row[TWIN_PAGE_TOKENS * 8] = {1};
    content made_up = {CHAIN_ROOT, &s->scope, row};
    uint32_t page = s->tables[group].pages[entry], number = table_number(&s->tables[group], entry);
    if (c->config.content == KVK_CONTENT_NONE || c->store.pool.pages[page].content != CONTENT_NONE ||
        page >= c->store.pool.limit || ((uint64_t)number + 1) * page_tokens(c) > s->n_tokens ||
        (uint64_t)number * page_tokens(c) < s->first_taint)
        return false;
    if (prefix_prepare(&c->store.prefix, 1, c->store.pool.cap) < 0)
        return false;
    uint32_t node = prefix_find(&c->store.prefix, &made_up);
    store_publish(&c->store, page, group, node == NODE_NONE ? prefix_add(&c->store.prefix, &made_up) : node);
    return true;
}

static bool evict_pinned(kvk_cache *c, sequence *s, uint32_t group, uint32_t entry)
{
    if (!s->eviction || !s->tables[group].indexed || !pool_is_pinned(&c->store.pool, s->tables[group].pages[entry]))
        return false;
    evict_entries(c, s, group, &entry, 1, (weight){0, 0});
    return true;
}

static bool free_twice(kvk_cache *c)
{
    pool *p = &c->store.pool;
    if (p->n_stacked == 0 || p->n_stacked == p->stack_cap)
        return false;
    p->stack[p->n_stacked] = p->stack[0];
    p->n_stacked++;
    return true;
}

/* The first page in limbo may be handed out while a batch reads it. */
static bool leave_limbo(kvk_cache *c)
{
    pool *p = &c->store.pool;
    uint32_t page = p->limbo.head;
    if (p->limbo.count == 0 || p->n_stacked == p->stack_cap)
        return false;
    list_remove(&p->limbo, pool_links(p), page);
    pool_settle(p, page);
    return true;
}

/* Takes in the masses of a draft that is not accepted, at least not yet. */
static bool count_rejected(kvk_cache *c, const flight *b, uint32_t entry)
{
    static float ones[TWIN_TOKENS * TWIN_ENTRIES];
    uint32_t rows[TWIN_SEQS], accepted[TWIN_SEQS] = {0};
    kvk_masses masses = {.size = sizeof masses, .mean = ones, .rows = rows};
    const kvk_batch_result result = {.size = sizeof result, .n = b->n, .accepted = accepted, .masses = &masses};
    const sequence *s = sequence_find(c, b->entries[entry].seq);
    if (b->entries[entry].n_query < 2 || !s || !eviction_of(s) || eviction_policy(s->eviction)->n_scores == 0 ||
        b->epoch <= s->cut_epoch || !b->observed)
        return false;
    for (uint32_t i = 0; i < TWIN_TOKENS * TWIN_ENTRIES; i++)
        ones[i] = 1;
    for (uint32_t i = 0; i < b->n; i++)
        rows[i] = i == entry ? b->entries[i].n_query : 1;
    accepted[entry] = 1;
    observe(c, b, &result);
    return true;
}

/* ---- where there is occasion for it ---- */

static bool plant_in_tables(kvk_cache *c, bool (*fault)(kvk_cache *, sequence *, uint32_t, uint32_t))
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        sequence *s = &c->sequences[i];
        for (uint32_t g = 0; s->is_open && !s->swapped && g < c->config.n_groups; g++) {
            for (uint32_t k = 0; k < s->tables[g].n; k++) {
                if (fault(c, s, g, k))
                    return true;
            }
        }
    }
    return false;
}

static bool plant_in_batches(kvk_cache *c)
{
    for (uint32_t i = 0; i < c->n_batches; i++) {
        for (uint32_t k = 0; k < c->batches[i].n; k++) {
            if (count_rejected(c, &c->batches[i], k))
                return true;
        }
    }
    return false;
}

bool world_plant(kvk_cache *c, const char *fault)
{
    if (strcmp(fault, "tainted") == 0)
        return plant_in_tables(c, publish_tainted);
    if (strcmp(fault, "pinned") == 0)
        return plant_in_tables(c, evict_pinned);
    if (strcmp(fault, "twice") == 0)
        return free_twice(c);
    if (strcmp(fault, "limbo") == 0)
        return leave_limbo(c);
    return plant_in_batches(c);
}
