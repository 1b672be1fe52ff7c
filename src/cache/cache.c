/* cache.c: opening and closing a cache, its configuration and statistics. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/record.h"

#include <string.h>

#define STRINGIFY(x) #x
#define VERSION_TEXT(major, minor, patch) STRINGIFY(major) "." STRINGIFY(minor) "." STRINGIFY(patch)

const char *kvk_version(void)
{
    return VERSION_TEXT(KVK_VERSION_MAJOR, KVK_VERSION_MINOR, KVK_VERSION_PATCH);
}

int copy_sized(void *to, const void *from, uint32_t size)
{
    uint32_t caller, used;
    memcpy(&caller, to, sizeof caller);
    if (caller < sizeof caller)
        return KVK_EINVAL;
    used = min_u32(caller, size);
    memcpy((char *)to + sizeof caller, (const char *)from + sizeof caller, used - sizeof caller);
    return 0;
}

void kvk_config_init(kvk_config *config)
{
    if (config)
        *config = (kvk_config){.size = sizeof *config, .page_tokens = 16, .n_groups = 1, .content = KVK_CONTENT_TOKENS};
}

#define MAX_NEAR 4096u /* near peaks of a page in a group */

static int groups_are_valid(const kvk_config *config)
{
    for (uint32_t g = 0; config->groups && g < config->n_groups; g++) {
        uint32_t layers = config->groups[g].near_layers, heads = config->groups[g].near_heads;
        if (!layers != !heads || layers * heads > MAX_NEAR)
            return 0;
    }
    return 1;
}

static int config_is_valid(const kvk_config *g)
{
    return g->page_tokens >= 1 && g->page_tokens <= KVK_MAX_PAGE_TOKENS && g->n_pages >= 1 &&
           g->n_pages <= KVK_MAX_PAGES && g->n_groups >= 1 && g->n_groups <= KVK_MAX_GROUPS &&
           g->watermark <= g->n_pages && g->reclaim <= KVK_RECLAIM_S3FIFO && g->host_pages <= KVK_MAX_PAGES &&
           g->content <= KVK_CONTENT_KEYS && g->zero_fill <= 1 && g->reserved == 0 && g->partial_reuse <= 1 &&
           g->extra_keys <= 1 && (g->content == KVK_CONTENT_TOKENS || !(g->partial_reuse || g->extra_keys)) &&
           (!g->allocator || (g->allocator->alloc && g->allocator->free)) && groups_are_valid(g);
}

/* The caller's configuration, fields it does not know at their defaults. */
static int read_config(const kvk_config *from, kvk_config *to)
{
    if (!from || from->size < sizeof from->size || from->size > sizeof *from)
        return KVK_EINVAL;
    kvk_config_init(to);
    memcpy(to, from, from->size);
    to->size = sizeof *to;
    return config_is_valid(to) ? 0 : KVK_EINVAL;
}

static int open_parts(kvk_cache *c)
{
    static const reclaim_order *const orders[] = {&reclaim_lru, &reclaim_fifo, &reclaim_lfu, &reclaim_s3fifo};
    if (pool_open(&c->store.pool, c->memory, c->config.n_pages, orders[c->config.reclaim]) < 0)
        return KVK_ENOMEM;
    c->host = (host_pool){.memory = c->memory, .n_pages = c->config.host_pages};
    c->replaced = memory_take(c->memory, c->config.n_groups * sizeof *c->replaced);
    c->windows = memory_take(c->memory, c->config.n_groups * sizeof *c->windows);
    c->groups = memory_take(c->memory, c->config.n_groups * sizeof *c->groups);
    c->row = memory_take(c->memory, content_row_bytes(&c->config) + 1u);
    c->near_first = memory_take(c->memory, c->config.n_groups * sizeof *c->near_first);
    if (!c->replaced || !c->windows || !c->groups || !c->near_first || !c->row)
        return KVK_ENOMEM;
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        c->groups[g] = c->config.groups ? c->config.groups[g] : (kvk_group){0};
        c->windows[g] = c->groups[g].window;
        c->near_stride = max_u32(c->near_stride, near_channels(c, g));
        c->near_first[g] = c->near_row;
        c->near_row += near_channels(c, g);
    }
    if (c->config.content == KVK_CONTENT_NONE)
        return 0;
    return prefix_open(
        &c->store.prefix, c->memory,
        &(prefix_config){content_row_bytes(&c->config), c->config.n_groups, c->windows, c->config.hash_seed});
}

int cache_open_parts(kvk_cache *c, memory *from, const kvk_config *config)
{
    c->memory = from;
    c->config = *config;
    c->closed = LIST_NONE;
    c->next_epoch = 1;
    heap_open(&c->deadlines, from);
    int rc = open_parts(c);
    c->config.allocator = NULL;
    c->config.groups = NULL;
    return rc;
}

int kvk_cache_open(const kvk_config *config, kvk_cache **out)
{
    kvk_config used;
    memory from;
    if (!out || read_config(config, &used) < 0)
        return KVK_EINVAL;
    if (memory_open(&from, used.allocator) < 0)
        return KVK_ENOMEM;
    if (used.memory_limit)
        from.limit = used.memory_limit;
    kvk_cache *c = memory_take(&from, sizeof *c);
    if (!c) {
        memory_close(&from);
        return KVK_ENOMEM;
    }
    *c = (kvk_cache){.home = from};
    if (cache_open_parts(c, &c->home, &used) < 0) {
        kvk_cache_close(c);
        return KVK_ENOMEM;
    }
    *out = c;
    return 0;
}

static void close_sequences(kvk_cache *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        sequence *s = &c->sequences[i];
        if (s->eviction)
            eviction_close(c, s);
        for (uint32_t g = 0; s->tables && g < c->config.n_groups; g++) { /* a slot that was never furnished has none */
            memory_give(c->memory, s->tables[g].pages, s->tables[g].cap * sizeof(uint32_t));
            memory_give(c->memory, s->tables[g].index, s->tables[g].index_cap * sizeof(uint32_t));
        }
        memory_give(c->memory, s->tables, c->config.n_groups * sizeof *s->tables);
        if (s->retentions)
            memory_give(c->memory, s->retentions, KVK_MAX_RETENTIONS * sizeof *s->retentions);
        if (s->tail)
            memory_give(c->memory, s->tail, content_row_bytes(&c->config));
    }
    memory_give(c->memory, c->sequences, c->slots_cap * sizeof *c->sequences);
}

static void close_batches(kvk_cache *c)
{
    for (uint32_t i = 0; i < c->batches_made; i++) {
        const flight *b = &c->batches[i];
        memory_give(c->memory, b->entries, b->cap * sizeof *b->entries);
        memory_give(c->memory, b->listings, b->listings_cap * sizeof *b->listings);
        memory_give(c->memory, b->index, b->index_cap * sizeof *b->index);
    }
    memory_give(c->memory, c->batches, c->batches_cap * sizeof *c->batches);
}

static void close_scratch(kvk_cache *c)
{
    const evict_scratch *e = &c->evict;
    memory_give(c->memory, e->counts, e->counts_cap * sizeof *e->counts);
    memory_give(c->memory, e->weights, e->weights_cap * sizeof *e->weights);
    memory_give(c->memory, e->places, e->places_cap * sizeof *e->places);
    memory_give(c->memory, e->victims, e->victims_cap * sizeof *e->victims);
    memory_give(c->memory, e->score, e->score_cap * sizeof *e->score);
    memory_give(c->memory, e->tier, e->tier_cap * sizeof *e->tier);
    memory_give(c->memory, e->eligible, e->eligible_cap * sizeof *e->eligible);
    memory_give(c->memory, e->order, e->order_cap * sizeof *e->order);
    memory_give(c->memory, e->lanes, e->lanes_cap * sizeof *e->lanes);
    memory_give(c->memory, e->row, e->row_cap * sizeof *e->row);
    memory_give(c->memory, e->candidates, e->candidates_cap * sizeof *e->candidates);
}

void cache_close_parts(kvk_cache *c)
{
    close_sequences(c);
    close_batches(c);
    memory_give(c->memory, c->moves.moves, c->moves.cap * sizeof *c->moves.moves);
    heap_close(&c->deadlines);
    host_pool_close(&c->host);
    memory_give(c->memory, c->replaced, c->config.n_groups * sizeof *c->replaced);
    memory_give(c->memory, c->row, content_row_bytes(&c->config) + 1u);
    memory_give(c->memory, c->windows, c->config.n_groups * sizeof *c->windows);
    memory_give(c->memory, c->groups, c->config.n_groups * sizeof *c->groups);
    memory_give(c->memory, c->near_first, c->config.n_groups * sizeof *c->near_first);
    memory_give(c->memory, c->page_near, (size_t)c->page_near_cap * c->near_stride * sizeof *c->page_near);
    memory_give(c->memory, c->near_sealed, c->near_sealed_cap * sizeof *c->near_sealed);
    close_scratch(c);
    memory_give(c->memory, c->seen, c->seen_cap * sizeof *c->seen);
    prefix_close(&c->store.prefix);
    pool_close(&c->store.pool);
}

void kvk_cache_close(kvk_cache *cache)
{
    if (!cache_is_ready(cache))
        return;
    kvk_record_stop(cache);
    cache_close_parts(cache);
    memory rest = cache->home;
    memory_give(&rest, cache, sizeof *cache);
    memory_close(&rest);
}

int kvk_cache_config(const kvk_cache *cache, kvk_config *out)
{
    if (!cache_is_ready(cache) || !out)
        return cache_refuses(cache);
    return copy_sized(out, &cache->config, sizeof *out);
}

static kvk_stats stats_of(const kvk_cache *c)
{
    const pool *p = &c->store.pool;
    const counters *n = &c->counters;
    return (kvk_stats){.n_pages = pool_pages(p),
                       .page_tokens = page_tokens(c),
                       .pages_free = pool_free(p),
                       .pages_cached = p->n_cached,
                       .pages_pinned = p->n_pinned,
                       .pages_draining = p->draining,
                       .pages_limbo = p->limbo.count,
                       .pages_used = pool_used(p),
                       .sequences = n->sequences,
                       .batches_in_flight = c->n_batches,
                       .moves_waiting = c->moves.end - c->moves.first,
                       .peak_pages_used = p->peak_used,
                       .peak_sequences = n->peak_sequences,
                       .live_tokens = p->live_tokens,
                       .pages_taken = n->pages_taken,
                       .pages_reclaimed = c->store.reclaimed,
                       .host_pages_used = c->config.host_pages - host_pool_free(&c->host),
                       .preemptions = n->preemptions,
                       .swapped_out_pages = n->swapped_out_pages,
                       .swapped_in_pages = n->swapped_in_pages,
                       .pages_evicted = n->pages_evicted,
                       .tokens_evicted = n->tokens_evicted,
                       .cow_copies = n->cow_copies,
                       .prefix_queries = n->prefix_queries,
                       .partial_hits = n->partial_hits,
                       .prefix_hits = n->prefix_hits,
                       .prefix_page_queries = n->prefix_page_queries,
                       .prefix_page_hits = n->prefix_page_hits,
                       .memory_bytes = c->memory->bytes,
                       .peak_memory_bytes = c->memory->peak_bytes,
                       .memory_allocations = c->memory->allocations,
                       .usage_pages = (double)pool_used(p) / pool_pages(p),
                       .usage_tokens = (double)p->live_tokens / ((double)pool_pages(p) * page_tokens(c))};
}

int kvk_stats_get(const kvk_cache *cache, kvk_stats *out)
{
    if (!cache_is_ready(cache) || !out)
        return cache_refuses(cache);
    kvk_stats stats = stats_of(cache);
    return copy_sized(out, &stats, sizeof stats);
}

int kvk_page_info_get(const kvk_cache *cache, uint32_t page, kvk_page_info *out)
{
    if (!cache_is_ready(cache) || !out || page >= max_u32(cache->store.pool.limit, cache->store.pool.unseen))
        return cache_refuses(cache);
    const pool *p = &cache->store.pool;
    kvk_page_info info = {.state = (uint32_t)pool_state(p, page)};
    if (page < p->unseen) {
        info.refs = p->pages[page].refs;
        info.generation = p->pages[page].generation;
        info.n_tokens = info.state == KVK_PAGE_FREE ? 0 : p->pages[page].filled;
        info.findable = p->pages[page].content != CONTENT_NONE;
    }
    return copy_sized(out, &info, sizeof info);
}
