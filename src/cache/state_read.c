/* state_read.c: kvk_load. A state is read into fresh parts, which then take the place of the old ones.
 *
 * The file may be anything. Every number is checked where it is read, memory grows with the bytes read and not with
 * what they claim, and what was built is taken only after its checksum and the audit. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/state.h"

#include <string.h>

static scope get_scope(state_reader *r)
{
    uint64_t lo = get64(r), hi = get64(r);
    return (scope){{lo, hi}, get64(r)};
}

/* ---- parts */

/* What the caller said of the groups. */
static void take_groups(const kvk_cache *old, kvk_cache *c)
{
    memcpy(c->windows, old->windows, c->config.n_groups * sizeof *c->windows);
    memcpy(c->groups, old->groups, c->config.n_groups * sizeof *c->groups);
    memcpy(c->near_first, old->near_first, c->config.n_groups * sizeof *c->near_first);
    c->near_stride = old->near_stride;
    c->near_row = old->near_row;
}

/* Opens the fresh parts by what the state says of its cache. */
static void read_config(state_reader *r, const kvk_cache *old, kvk_cache *c)
{
    char magic[sizeof STATE_MAGIC - 1];
    kvk_config config = old->config;
    state_get(r, magic, sizeof magic);
    require(r, memcmp(magic, STATE_MAGIC, sizeof magic) == 0);
    get_equal(r, STATE_VERSION);
    get_equal(r, config.page_tokens);
    get_equal(r, config.n_groups);
    get_equal(r, config.content);
    get_equal(r, config.host_pages);
    get_equal(r, config.extra_keys);
    for (uint32_t g = 0; g < config.n_groups && !r->failed; g++) {
        get_equal(r, old->windows[g]);
        get_equal(r, old->groups[g].near_layers);
        get_equal(r, old->groups[g].near_heads);
    }
    config.n_pages = get_most(r, KVK_MAX_PAGES);
    require(r, config.n_pages > 0);
    config.watermark = get_most(r, config.n_pages);
    config.reclaim = get_most(r, KVK_RECLAIM_S3FIFO);
    config.hash_seed = get64(r);
    if (r->failed)
        return;
    require_memory(r, cache_open_parts(c, old->memory, &config));
    if (c->windows && c->groups && c->near_first)
        take_groups(old, c);
    c->next_epoch = get64(r);
    c->opened = get64(r);
    c->now_ms = get64(r);
    c->retaining = (int)get_most(r, 1);
    c->drained = (int)get_most(r, 1);
    require(r, c->next_epoch > 0 && c->next_epoch <= MOST_EVENTS && c->opened <= MOST_EVENTS);
    c->store.pool.oldest_open = c->next_epoch;
}

static void read_counters(state_reader *r, kvk_cache *c)
{
    counters *n = &c->counters;
    uint64_t *const values[] = {
        &n->partial_hits, &n->preemptions,    &n->swapped_out_pages, &n->swapped_in_pages,    &n->pages_taken,
        &n->cow_copies,   &n->prefix_queries, &n->prefix_hits,       &n->prefix_page_queries, &n->prefix_page_hits};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        *values[i] = get64(r);
    n->peak_sequences = (uint32_t)get64(r);
    n->pages_evicted = get64(r);
    n->tokens_evicted = get64(r);
    c->store.reclaimed = get64(r);
    c->store.pool.peak_used = (uint32_t)get64(r);
}

static void read_retention(state_reader *r, kvk_cache *c, uint32_t id)
{
    uint32_t level = get_below(r, POOL_LEVELS);
    uint64_t deadline = get64(r);
    require(r, c->retaining || (level == KVK_RETAIN_DEFAULT && deadline == 0));
    if (r->failed || !c->retaining)
        return;
    c->store.pool.levels[id] = (uint8_t)level;
    if (deadline)
        heap_push(&c->deadlines, id, deadline, id);
}

/* ranks: cached pages by their place in the reclaim order. */
static void read_page(state_reader *r, kvk_cache *c, heap *ranks)
{
    pool *p = pool_of(c);
    uint32_t id = p->unseen;
    require_memory(r, cache_prepare_pages(c, 1));
    require_memory(r, heap_prepare(ranks, id + 1));
    if (r->failed)
        return;
    p->unseen++;
    p->pages[id] = (page_record){.content = CONTENT_NONE};
    p->pages[id].filled = get_most(r, page_tokens(c));
    p->pages[id].generation = get32(r);
    uint32_t pins = get_most(r, UINT16_MAX);
    if (pins > 0)
        require_memory(r, pool_prepare_pins(p));
    if (pins > 0 && !r->failed)
        p->pins[id] = (uint16_t)pins;
    read_retention(r, c, id);
    uint64_t rank = get64(r), word = get64(r);
    require(r, word <= MOST_EVENTS);
    if (rank > 0 && !r->failed)
        heap_push(ranks, id, rank, id);
    if (p->order->set_word && !r->failed)
        p->order->set_word(p, id, word);
}

/* Pages from the pool's size on are gone, but their generations are not: they come back when it grows. */
static void read_pages(state_reader *r, kvk_cache *c, heap *ranks)
{
    pool *p = pool_of(c);
    uint32_t n = get_most(r, KVK_MAX_PAGES), limit = p->limit;
    p->limit = max_u32(limit, n);
    for (uint32_t i = 0; i < n && !r->failed; i++)
        read_page(r, c, ranks);
    p->limit = limit;
}

static void read_copies(state_reader *r, kvk_cache *c, uint32_t node, uint32_t group)
{
    pool *p = pool_of(c);
    uint32_t n = get_most(r, p->unseen);
    for (uint32_t i = 0; i < n && !r->failed; i++) {
        uint32_t page = get_below(r, min_u32(p->unseen, p->limit));
        require(r, p->pages[page].content == CONTENT_NONE && p->pages[page].filled == page_tokens(c));
        if (r->failed)
            return;
        p->pages[page].content = node;
        prefix_hold(&c->store.prefix, node, group, page);
        state_get_page_near(r, c, group, page);
    }
}

/* Contents are numbered as they come, and so are the nodes of a fresh index. */
static void read_content(state_reader *r, kvk_cache *c)
{
    prefix *x = &c->store.prefix;
    uint32_t parent = get32(r);
    scope s = get_scope(r);
    state_get(r, c->row, x->row_bytes);
    require(r, parent == NODE_NONE || parent < x->n_nodes);
    require_memory(r, prefix_prepare(x, 1, c->store.pool.cap));
    if (r->failed)
        return;
    content known = {parent, &s, c->row};
    require(r, prefix_find(x, &known) == NODE_NONE);
    uint32_t node = r->failed ? NODE_NONE : prefix_add(x, &known);
    for (uint32_t g = 0; g < c->config.n_groups && !r->failed; g++)
        read_copies(r, c, node, g);
}

static void read_contents(state_reader *r, kvk_cache *c)
{
    uint32_t n = get_most(r, CHAIN_BROKEN - 1);
    for (uint32_t i = 0; i < n && !r->failed; i++)
        read_content(r, c);
}

static void read_stacks(state_reader *r, kvk_cache *c)
{
    pool *p = pool_of(c);
    uint32_t n = get_most(r, p->unseen);
    for (uint32_t i = 0; i < n && !r->failed; i++)
        p->stack[p->n_stacked++] = get_below(r, min_u32(p->unseen, p->limit));
    c->host.unseen = get_most(r, c->config.host_pages);
    require_memory(r, host_pool_prepare(&c->host, 0));
    n = get_most(r, c->host.unseen);
    for (uint32_t i = 0; i < n && !r->failed; i++)
        c->host.stack[c->host.n_stacked++] = get_below(r, c->host.unseen);
}

static void read_retentions(state_reader *r, kvk_cache *c, sequence *s)
{
    uint32_t n = get_most(r, c->retaining ? KVK_MAX_RETENTIONS : 0);
    if (n > 0)
        s->retentions = memory_take(c->memory, KVK_MAX_RETENTIONS * sizeof *s->retentions);
    require_memory(r, n == 0 || s->retentions ? 0 : KVK_ENOMEM);
    for (; s->n_retentions < n && !r->failed; s->n_retentions++) {
        kvk_retention range = {.begin = get32(r), .end = 0};
        range.end = get32(r);
        range.priority = get_below(r, POOL_LEVELS);
        range.duration_ms = get64(r);
        require(r, range.begin < range.end);
        s->retentions[s->n_retentions] = range;
    }
}

static void read_entry(state_reader *r, kvk_cache *c, const sequence *s, uint32_t g)
{
    pool *p = pool_of(c);
    table *t = &s->tables[g];
    uint32_t page = get_below(r, s->swapped ? c->host.unseen : min_u32(p->unseen, p->limit));
    require_memory(r, memory_grow(c->memory, &t->pages, &t->cap, (uint64_t)t->n + 1, sizeof *t->pages));
    if (r->failed)
        return;
    t->pages[t->n++] = page;
    if (s->swapped)
        return;
    p->pages[page].refs++;
    require(r, p->pages[page].content == CONTENT_NONE || c->store.prefix.holders[page].group == g);
}

static void read_table(state_reader *r, kvk_cache *c, const sequence *s, uint32_t g)
{
    s->tables[g].first = get_most(r, s->n_tokens / page_tokens(c));
    uint32_t n = get_most(r, KVK_MAX_PAGES);
    for (uint32_t i = 0; i < n && !r->failed; i++)
        read_entry(r, c, s, g);
    state_get_index(r, c, s, g);
}

static void read_chain(state_reader *r, kvk_cache *c, sequence *s)
{
    uint32_t chain = get32(r);
    require(r, chain == CHAIN_ROOT || (chain == CHAIN_BROKEN && c->config.content != KVK_CONTENT_NONE) ||
                   chain < c->store.prefix.n_nodes);
    if (!r->failed)
        sequence_follow(c, s, chain);
}

static void read_open_sequence(state_reader *r, kvk_cache *c, sequence *s)
{
    require_memory(r, sequence_furnish(c, s));
    if (r->failed)
        return;
    s->swapped = get_most(r, 1);
    s->number = get64(r);
    s->priority = (int32_t)get32(r);
    s->scope = get_scope(r);
    s->n_tokens = get_most(r, KVK_MAX_TOKENS);
    s->n_committed = get_most(r, s->n_tokens);
    s->first_taint = get32(r);
    require(r, s->number < c->opened);
    read_chain(r, c, s);
    read_retentions(r, c, s);
    for (uint32_t i = 0; s->tail && i < s->n_committed % page_tokens(c); i++)
        s->tail[i] = get32(r);
    if (c->config.extra_keys && s->n_committed % page_tokens(c) > 0 && !r->failed)
        state_get(r, s->tail + page_tokens(c), sizeof(kvk_key));
    if (get_most(r, 1))
        require_memory(r, eviction_furnish(c, s));
    for (uint32_t g = 0; g < c->config.n_groups && !r->failed; g++)
        read_table(r, c, s, g);
    state_get_eviction(r, c, s);
    s->is_open = 1;
    c->counters.sequences++;
}

#define NOT_STACKED (LIST_NONE - 1)

static void read_slot(state_reader *r, kvk_cache *c)
{
    require_memory(r, sequence_add_slot(c));
    if (r->failed)
        return;
    sequence *s = &c->sequences[c->n_slots - 1];
    s->next_closed = NOT_STACKED;
    s->generation = get_most(r, INT32_MAX);
    if (get_most(r, 1))
        read_open_sequence(r, c, s);
}

static void read_slots(state_reader *r, kvk_cache *c)
{
    uint32_t n = get32(r), before = LIST_NONE;
    for (uint32_t i = 0; i < n && !r->failed; i++)
        read_slot(r, c);
    n = get_most(r, c->n_slots);
    for (uint32_t i = 0; i < n && !r->failed; i++) {
        uint32_t slot = get_below(r, c->n_slots);
        require(r, !r->failed && !c->sequences[slot].is_open && c->sequences[slot].next_closed == NOT_STACKED);
        if (r->failed)
            return;
        c->sequences[slot].next_closed = LIST_NONE;
        if (before == LIST_NONE)
            c->closed = slot;
        else
            c->sequences[before].next_closed = slot;
        before = slot;
    }
}

/* ---- what follows from the parts */

/* Cached pages enter the reclaim order as they were in it; where that has no ranks, by id. */
static void cache_pages(state_reader *r, kvk_cache *c, heap *ranks)
{
    pool *p = pool_of(c);
    const heap_item *next;
    while ((next = heap_top(ranks))) {
        uint32_t id = next->id;
        heap_remove(ranks, id);
        require(r, p->pages[id].refs == 0 && p->pages[id].content != CONTENT_NONE && !pool_is_pinned(p, id));
        if (r->failed)
            return;
        pool_cache(p, id);
        p->pages[id].epoch = 1; /* done */
    }
    for (uint32_t id = 0; id < p->unseen; id++) {
        page_record *g = &p->pages[id];
        p->live_tokens += g->refs > 0 ? g->filled : 0;
        if (g->refs == 0 && g->content != CONTENT_NONE && g->epoch == 0)
            pool_cache(p, id);
        g->epoch = 0;
        require(r, !pool_is_pinned(p, id) || g->content != CONTENT_NONE);
    }
}

static void check_whole(state_reader *r, kvk_cache *c, heap *ranks)
{
    uint64_t sum = XXH3_64bits_digest(&r->sum);
    require(r, get64(r) == sum);
    for (uint32_t id = 0; id < c->store.prefix.n_nodes; id++)
        require(r, prefix_is_live(&c->store.prefix, id));
    if (r->failed)
        return;
    cache_pages(r, c, ranks);
    int violations = r->failed ? 0 : kvk_audit(c, NULL, NULL);
    require_memory(r, violations < 0 ? violations : 0);
    require(r, violations == 0);
}

static void read_state(state_reader *r, const kvk_cache *old, kvk_cache *c, heap *ranks)
{
    XXH3_64bits_reset(&r->sum);
    read_config(r, old, c);
    if (r->failed)
        return;
    read_counters(r, c);
    read_pages(r, c, ranks);
    if (c->config.content != KVK_CONTENT_NONE)
        read_contents(r, c);
    read_stacks(r, c);
    read_slots(r, c);
    check_whole(r, c, ranks);
}

/* The fresh parts move into the cache; what belongs to its caller stays. Returns the old parts. */
static kvk_cache exchange(kvk_cache *c, const kvk_cache *fresh)
{
    kvk_cache old = *c;
    *c = *fresh;
    c->home = old.home;
    c->memory = &c->home;
    c->on_event = old.on_event;
    c->event_ctx = old.event_ctx;
    return old;
}

int kvk_load(kvk_cache *cache, kvk_read_fn read, void *ctx)
{
    if (!cache_is_ready(cache) || !read)
        return cache_refuses(cache);
    if (!cache_is_quiet(cache) || cache->recorder)
        return KVK_EBUSY;
    state_reader r = {.read = read, .ctx = ctx};
    kvk_cache fresh = {.memory = NULL};
    heap ranks;
    heap_open(&ranks, cache->memory);
    cache->in_callback = 1;
    read_state(&r, cache, &fresh, &ranks);
    cache->in_callback = 0;
    heap_close(&ranks);
    if (r.failed) {
        if (fresh.memory)
            cache_close_parts(&fresh);
        return r.failed;
    }
    kvk_cache old = exchange(cache, &fresh);
    cache_close_parts(&old);
    events_reloaded(cache);
    return 0;
}
