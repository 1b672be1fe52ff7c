/* figures.c: what is told of a sequence's eviction. */
#include "cache/eviction.h"

static uint64_t tokens_held(const kvk_cache *c, const sequence *s, uint32_t group)
{
    uint32_t n = eviction_held(c, s, group, s->n_tokens), rest = s->n_tokens % page_tokens(c);
    return (uint64_t)n * page_tokens(c) - (n && rest ? page_tokens(c) - rest : 0);
}

static void add_group(const group_eviction *g, kvk_eviction_info *info)
{
    info->pages_evicted += g->pages_evicted;
    info->tokens_evicted += g->tokens_evicted;
    info->queries += g->queries;
    info->retained_last += g->last;
    info->retained_mean += g->mass;
    info->evicted_mass += g->share;
}

static kvk_eviction_info info_of(const kvk_cache *c, const sequence *s)
{
    const eviction *e = s->eviction;
    kvk_eviction_info info = {.policy = eviction_of(s) ? eviction_policy(e)->name : kvk_policy_at(0)->name,
                              .policy_needs = eviction_of(s) ? e->needs : 0,
                              .tainted = s->first_taint != UINT32_MAX,
                              .first_taint = s->first_taint};
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        info.pages_kept += eviction_held(c, s, g, s->n_tokens);
        info.tokens_kept += tokens_held(c, s, g);
        if (e)
            add_group(&e->groups[g], &info);
    }
    info.retained_last /= c->config.n_groups;
    info.retained_mean = info.queries ? info.retained_mean / (double)info.queries : 0;
    if (s->n_tokens)
        info.churn_per_1k = 1000.0 * (double)info.pages_evicted / s->n_tokens / c->config.n_groups;
    return info;
}

int kvk_eviction_info_get(const kvk_cache *cache, kvk_seq seq, kvk_eviction_info *out)
{
    if (!cache_is_ready(cache) || !out)
        return cache_refuses(cache);
    const sequence *s = sequence_find(cache, seq);
    if (!s)
        return KVK_ESTALE;
    kvk_eviction_info info = info_of(cache, s);
    return copy_sized(out, &info, sizeof info);
}

/* The pages of a table without a policy are all alike. */
static void put_pages(const kvk_cache *c, const sequence *s, uint32_t group, kvk_page_score *scores, uint32_t n)
{
    const table *t = &s->tables[group];
    for (uint32_t k = 0; k < n; k++)
        scores[k] = (kvk_page_score){.page = t->pages[k], .position = table_number(t, k) * page_tokens(c)};
}

static void put_scores(const kvk_cache *c, const sequence *s, uint32_t group, kvk_page_score *scores)
{
    const evict_scratch *e = &c->evict;
    uint32_t n = eviction_rank(c, s, group);
    for (uint32_t k = 0; k < n; k++) {
        scores[k].score = e->score[k];
        scores[k].tier = e->tier[k];
        scores[k].eligible = e->eligible[k];
    }
}

int kvk_seq_scores(const kvk_cache *cache, kvk_seq seq, uint32_t group, kvk_page_score *scores, uint32_t cap)
{
    sequence *s;
    int rc = sequence_query(cache, seq, group, scores, cap, &s);
    if (rc < 0)
        return rc;
    uint32_t n = eviction_held(cache, s, group, s->n_tokens);
    if (!scores)
        return (int)n;
    if (cap < n)
        return KVK_ESPACE;
    put_pages(cache, s, group, scores, n);
    if (eviction_of(s) && n)
        put_scores(cache, s, group, scores);
    return (int)n;
}

int kvk_seq_positions(const kvk_cache *cache, kvk_seq seq, uint32_t group, uint32_t *positions, uint32_t cap)
{
    sequence *s;
    int rc = sequence_query(cache, seq, group, positions, cap, &s);
    if (rc < 0)
        return rc;
    const table *t = &s->tables[group];
    if (!positions)
        return (int)t->n;
    if (cap < t->n)
        return KVK_ESPACE;
    for (uint32_t k = 0; k < t->n; k++)
        positions[k] = table_number(t, k) * page_tokens(cache);
    return (int)t->n;
}
