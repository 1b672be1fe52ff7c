/* preempt.c: taking all pages of a sequence, and bringing a swapped one back. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/record.h"
#include "cache/reserve.h"

static uint32_t pages_held(const kvk_cache *c, const sequence *s)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        n += s->tables[g].n;
    return n;
}

/* ---- by recompute */

static int recompute(kvk_cache *c, sequence *s)
{
    int gone = 0;
    if (s->swapped)
        sequence_drop_host(c, s);
    else
        gone = sequence_release(c, s, 0);
    sequence_follow(c, s, CHAIN_ROOT);
    s->cut_epoch = s->last_epoch;
    s->n_tokens = s->n_committed = 0;
    s->first_taint = UINT32_MAX;
    if (s->eviction)
        eviction_restart(c, s);
    return gone;
}

/* ---- by swap */

/* Moves page number i of a group to the host pool. Returns 1 if nobody refers to the page any more. */
static int swap_out_page(kvk_cache *c, sequence *s, uint32_t group, uint32_t i)
{
    uint32_t *entry = table_at(&s->tables[group], i), host = host_pool_take(&c->host);
    moves_push(c, (kvk_move){KVK_MOVE_SWAP_OUT, group, *entry, host, page_tokens(c)});
    int gone = sequence_let_go(c, s, i, *entry);
    *entry = host;
    return gone;
}

static int swap_out(kvk_cache *c, sequence *s)
{
    uint32_t keep = pages_of_tokens(c, s->n_tokens), n = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        n += table_entries(&s->tables[g], keep); /* what is reserved ahead is not moved */
    if (s->n_in_flight)
        return KVK_EBUSY;
    if (n > host_pool_free(&c->host))
        return KVK_ENOPAGE;
    if (host_pool_prepare(&c->host, n) < 0 || moves_prepare(c, n) < 0)
        return KVK_ENOMEM;
    int gone = sequence_release(c, s, keep);
    for (uint32_t i = keep; i-- > 0;)
        for (uint32_t g = 0; g < c->config.n_groups; g++)
            if (table_holds(&s->tables[g], i))
                gone += swap_out_page(c, s, g, i);
    s->swapped = 1;
    c->counters.swapped_out_pages += n;
    return gone;
}

static int preempt(kvk_cache *c, kvk_seq seq, kvk_preempt_how how)
{
    sequence *s = sequence_find(c, seq);
    if (!s)
        return KVK_ESTALE;
    if (how == KVK_PREEMPT_SWAP && s->swapped)
        return KVK_ESTATE;
    int rc = how == KVK_PREEMPT_SWAP ? swap_out(c, s) : recompute(c, s);
    c->counters.preemptions += rc >= 0;
    return rc;
}

int kvk_preempt(kvk_cache *cache, kvk_seq seq, kvk_preempt_how how)
{
    if (!cache_is_ready(cache) || (unsigned)how > KVK_PREEMPT_SWAP)
        return cache_refuses(cache);
    int rc = preempt(cache, seq, how);
    if (cache->recorder)
        record_preempt(cache, seq, how, rc);
    return rc;
}

static void swap_in_page(kvk_cache *c, sequence *s, uint32_t group, uint32_t k)
{
    uint32_t *entry = &s->tables[group].pages[k], host = *entry;
    *entry = store_take(&c->store);
    pool_set_filled(pool_of(c), *entry, sequence_tokens_in(c, s->n_tokens, table_number(&s->tables[group], k)));
    moves_push(c, (kvk_move){KVK_MOVE_SWAP_IN, group, host, *entry, page_tokens(c)});
    host_pool_give(&c->host, host);
}

/* What the pages hold is known still: the sequence kept its place in the content index. */
static void publish_again(kvk_cache *c, sequence *s)
{
    uint32_t node = s->chain == CHAIN_BROKEN ? CHAIN_ROOT : s->chain;
    for (uint32_t i = s->n_committed / page_tokens(c); node != CHAIN_ROOT; node = c->store.prefix.nodes[node].parent) {
        i--;
        for (uint32_t g = 0; g < c->config.n_groups; g++)
            if (table_holds(&s->tables[g], i)) {
                store_publish(&c->store, *table_at(&s->tables[g], i), g, node);
                if (c->near_stride)
                    near_publish(c, s, g, i, *table_at(&s->tables[g], i));
            }
    }
}

static int prepare_swap_in(kvk_cache *c, uint32_t n)
{
    if (cache_prepare_pages(c, n) < 0 || moves_prepare(c, n) < 0)
        return KVK_ENOMEM;
    return c->config.content == KVK_CONTENT_NONE ? 0 : prefix_prepare(&c->store.prefix, 0, c->store.pool.cap);
}

static int swap_in(kvk_cache *c, kvk_seq seq, kvk_effort effort)
{
    sequence *s = sequence_find(c, seq);
    if (!s)
        return KVK_ESTALE;
    if (!s->swapped)
        return KVK_ESTATE;
    growth g = {.need = pages_held(c, s)};
    int can = reserve_judge(c, &g, effort);
    uint64_t missing = reserve_missing(c, &g, can, effort);
    if (can != KVK_OK && !missing)
        return can == KVK_LATER ? KVK_ENOPAGE : KVK_ENEVER;
    int rc = missing ? pressure_plan(c, s, (uint32_t)missing) : 0;
    if (rc == 0)
        rc = prepare_swap_in(c, (uint32_t)g.need);
    if (rc < 0)
        return rc;
    if (missing)
        pressure_apply(c);
    for (uint32_t i = 0; i < c->config.n_groups; i++)
        for (uint32_t k = 0; k < s->tables[i].n; k++)
            swap_in_page(c, s, i, k);
    s->swapped = 0;
    publish_again(c, s);
    c->counters.swapped_in_pages += g.need;
    c->counters.pages_taken += g.need;
    pool_note_peak(pool_of(c));
    return (int)g.need;
}

int kvk_swap_in(kvk_cache *cache, kvk_seq seq, kvk_effort effort)
{
    if (!cache_is_ready(cache) || (unsigned)effort > KVK_EVICT)
        return cache_refuses(cache);
    int rc = swap_in(cache, seq, effort);
    if (cache->recorder)
        record_swap_in(cache, seq, effort, rc);
    return rc;
}

/* ---- whom */

static int is_better_victim(const sequence *a, const sequence *b)
{
    return !b || a->priority < b->priority || (a->priority == b->priority && a->number > b->number);
}

int kvk_victim(const kvk_cache *cache, kvk_seq *out)
{
    if (!cache_is_ready(cache) || !out)
        return cache_refuses(cache);
    const sequence *best = NULL;
    for (uint32_t i = 0; i < cache->n_slots; i++) {
        const sequence *s = &cache->sequences[i];
        if (s->is_open && !s->swapped && !s->n_in_flight && pages_held(cache, s) > 0 && is_better_victim(s, best))
            best = s;
    }
    if (best)
        *out = sequence_handle(cache, best);
    return best != NULL;
}
