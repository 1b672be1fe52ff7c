/* evict.c: dropping pages from a table, by policy or because the caller says so. */
#include "cache/eviction.h"
#include "cache/record.h"

double eviction_total(const kvk_cache *c, uint32_t n)
{
    double total = 0;
    for (uint32_t k = 0; k < n; k++)
        total += (double)c->evict.score[k];
    return total;
}

weight evict_weight(const kvk_cache *c, const uint32_t *entries, uint32_t n, uint32_t n_table)
{
    double total = eviction_total(c, n_table), gone = 0;
    for (uint32_t k = 0; k < n; k++)
        gone += (double)c->evict.score[entries[k]];
    return (weight){gone, total > 0 ? gone / total : 0};
}

static void count_evicted(kvk_cache *c, group_eviction *g, uint32_t tokens)
{
    g->pages_evicted++;
    g->tokens_evicted += tokens;
    c->counters.pages_evicted++;
    c->counters.tokens_evicted += tokens;
}

int evict_entries(kvk_cache *c, sequence *s, uint32_t group, const uint32_t *entries, uint32_t n, weight w)
{
    table *t = &s->tables[group];
    int gone = 0;
    if (n == 0)
        return 0;
    s->eviction->groups[group].share += w.share;
    s->eviction->groups[group].lost += s->eviction->settings.target > 0 ? w.score : 0;
    if (s->first_taint == UINT32_MAX)
        s->first_taint = s->n_tokens;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t number = t->index[entries[k]], page = t->pages[entries[k]];
        count_evicted(c, &s->eviction->groups[group], sequence_tokens_in(c, s->n_tokens, number));
        events_evicted(c, s, group, number, page);
        gone += sequence_let_go(c, s, number, page);
    }
    eviction_compact(c, s, group, entries, n);
    s->shape++;
    return gone;
}

int evict_unweighed(kvk_cache *c, sequence *s, uint32_t group, const uint32_t *entries, uint32_t n)
{
    if (!eviction_of(s) || !eviction_policy(s->eviction)->score_is_mass)
        return evict_entries(c, s, group, entries, n, (weight){0, 0});
    uint32_t held = eviction_rank(c, s, group);
    return evict_entries(c, s, group, entries, n, evict_weight(c, entries, n, held));
}

/* ---- by the caller */

/* 0, or why the page with this number can't go. */
static int check_page(const kvk_cache *c, const sequence *s, uint32_t group, uint32_t number)
{
    const table *t = &s->tables[group];
    if (!table_holds(t, number) || (uint64_t)number * page_tokens(c) >= s->n_tokens)
        return KVK_EINVAL;
    return number >= eviction_now(s).settled / page_tokens(c) || pool_is_pinned(&c->store.pool, *table_at(t, number))
               ? KVK_EBUSY
               : 0;
}

static int check_positions(const kvk_cache *c, const sequence *s, uint32_t group, const uint32_t *positions, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        if (positions[k] % page_tokens(c) || (k > 0 && positions[k] <= positions[k - 1]))
            return KVK_EINVAL;
        int rc = check_page(c, s, group, positions[k] / page_tokens(c));
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int evict(kvk_cache *c, kvk_seq seq, uint32_t group, const uint32_t *positions, uint32_t n)
{
    sequence *s;
    int rc = sequence_use(c, seq, &s);
    if (rc == 0)
        rc = check_positions(c, s, group, positions, n);
    if (rc < 0 || n == 0)
        return rc;
    if (eviction_furnish(c, s) < 0 || eviction_keep_index(c, s) < 0 || eviction_prepare(c, s, 0) < 0)
        return KVK_ENOMEM;
    for (uint32_t k = 0; k < n; k++)
        c->evict.victims[k] = table_find(&s->tables[group], positions[k] / page_tokens(c));
    return evict_unweighed(c, s, group, c->evict.victims, n);
}

int kvk_evict(kvk_cache *cache, kvk_seq seq, uint32_t group, const uint32_t *positions, uint32_t n)
{
    if (!cache_is_ready(cache) || group >= cache->config.n_groups || (n && !positions))
        return cache_refuses(cache);
    int rc = evict(cache, seq, group, positions, n);
    if (cache->recorder)
        record_evict(cache, seq, group, positions, n, rc);
    return rc;
}
