/* retain.c: what keeps pages from being reclaimed: pins, and retention priorities with their deadlines. */
#include "cache/cache.h"
#include "cache/record.h"

#include <string.h>

/* ---- pins */

static int may_change_pins(const kvk_cache *c, uint32_t page, int pins)
{
    const pool *p = &c->store.pool;
    uint32_t had = page < p->pins_cap ? p->pins[page] : 0;
    if (pins < 0 ? had == 0 : had == UINT16_MAX)
        return KVK_EINVAL;
    return p->pages[page].content == CONTENT_NONE ? KVK_ESTATE : 0;
}

static void add_pins(kvk_cache *c, uint32_t page, int pins)
{
    pool_add_pins(pool_of(c), page, pins);
    if (page >= c->store.pool.limit && !pool_is_pinned(pool_of(c), page))
        store_withdraw(&c->store, page);
}

static int change_pins(kvk_cache *c, kvk_seq seq, uint32_t n_tokens, int pins)
{
    sequence *s;
    int rc = sequence_use(c, seq, &s);
    if (rc < 0)
        return rc;
    if (n_tokens > s->n_committed)
        return KVK_EINVAL;
    uint32_t full = n_tokens / page_tokens(c), n = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        for (uint32_t k = 0; k < table_below(&s->tables[g], full); k++) {
            rc = may_change_pins(c, s->tables[g].pages[k], pins);
            if (rc < 0)
                return rc;
        }
    if (pool_prepare_pins(pool_of(c)) < 0)
        return KVK_ENOMEM;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        for (uint32_t k = 0; k < table_below(&s->tables[g], full); k++, n++)
            add_pins(c, s->tables[g].pages[k], pins);
    return (int)n;
}

int kvk_pin(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = change_pins(cache, seq, n_tokens, 1);
    if (cache->recorder)
        record_pin(cache, seq, n_tokens, rc);
    return rc;
}

int kvk_unpin(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = change_pins(cache, seq, n_tokens, -1);
    if (cache->recorder)
        record_unpin(cache, seq, n_tokens, rc);
    return rc;
}

/* ---- retention */

int retain_prepare(kvk_cache *c)
{
    if (!c->retaining)
        return 0;
    return pool_prepare_levels(pool_of(c)) < 0 ? KVK_ENOMEM : heap_prepare(&c->deadlines, c->store.pool.cap);
}

int cache_prepare_pages(kvk_cache *c, uint32_t n)
{
    if (pool_prepare(pool_of(c), n) < 0 || retain_prepare(c) < 0)
        return KVK_ENOMEM;
    return c->near_stride ? near_prepare_pages(c) : 0;
}

static const kvk_retention *range_of(const sequence *s, uint64_t token)
{
    for (uint32_t i = 0; i < s->n_retentions; i++)
        if (s->retentions[i].begin <= token && token < s->retentions[i].end)
            return &s->retentions[i];
    return NULL;
}

void retain_page(kvk_cache *c, const sequence *s, uint32_t i, uint32_t page)
{
    const kvk_retention *range = range_of(s, (uint64_t)i * page_tokens(c));
    if (!range)
        return;
    pool_set_level(pool_of(c), page, range->priority);
    heap_remove(&c->deadlines, page);
    if (range->duration_ms > 0 && range->duration_ms < UINT64_MAX - c->now_ms)
        heap_push(&c->deadlines, page, c->now_ms + range->duration_ms, page);
}

static int ranges_are_valid(const kvk_retention *ranges, uint32_t n)
{
    if (n > KVK_MAX_RETENTIONS || (n && !ranges))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (ranges[i].begin >= ranges[i].end || ranges[i].priority >= POOL_LEVELS)
            return 0;
    return 1;
}

static int retain(kvk_cache *c, kvk_seq seq, const kvk_retention *ranges, uint32_t n)
{
    sequence *s;
    int rc = sequence_use(c, seq, &s);
    if (rc < 0)
        return rc;
    if (n > 0 && !s->retentions) {
        s->retentions = memory_take(c->memory, KVK_MAX_RETENTIONS * sizeof *s->retentions);
        if (!s->retentions)
            return KVK_ENOMEM;
    }
    int was = c->retaining;
    c->retaining |= n > 0;
    if (retain_prepare(c) < 0) {
        c->retaining = was;
        return KVK_ENOMEM;
    }
    if (n > 0)
        memcpy(s->retentions, ranges, n * sizeof *ranges);
    s->n_retentions = n;
    return 0;
}

int kvk_retain(kvk_cache *cache, kvk_seq seq, const kvk_retention *ranges, uint32_t n)
{
    if (!cache_is_ready(cache) || !ranges_are_valid(ranges, n))
        return cache_refuses(cache);
    int rc = retain(cache, seq, ranges, n);
    if (cache->recorder)
        record_retain(cache, seq, ranges, n, rc);
    return rc;
}

int kvk_set_time(kvk_cache *cache, uint64_t now_ms)
{
    if (!cache_is_ready(cache) || now_ms < cache->now_ms)
        return cache_refuses(cache);
    cache->now_ms = now_ms;
    const heap_item *due;
    while ((due = heap_top(&cache->deadlines)) && due->key <= now_ms) {
        uint32_t page = due->id;
        heap_remove(&cache->deadlines, page);
        pool_set_level(pool_of(cache), page, KVK_RETAIN_DEFAULT);
    }
    if (cache->recorder)
        record_time(cache, now_ms, 0);
    return 0;
}
