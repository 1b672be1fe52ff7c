/* state_write.c: kvk_save. */
#include "cache/eviction.h"
#include "cache/state.h"

static void put_scope(state_writer *w, const scope *s)
{
    put64(w, s->salt.lo);
    put64(w, s->salt.hi);
    put64(w, s->adapter);
}

static void put_config(state_writer *w, const kvk_cache *c)
{
    state_put(w, STATE_MAGIC, sizeof STATE_MAGIC - 1);
    put32(w, STATE_VERSION);
    put32(w, c->config.page_tokens);
    put32(w, c->config.n_groups);
    put32(w, c->config.content);
    put32(w, c->config.host_pages);
    put32(w, c->config.extra_keys);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        put32(w, c->windows[g]);
        put32(w, c->groups[g].near_layers);
        put32(w, c->groups[g].near_heads);
    }
    put32(w, c->config.n_pages);
    put32(w, c->config.watermark);
    put32(w, c->config.reclaim);
    put64(w, c->config.hash_seed);
    put64(w, c->next_epoch);
    put64(w, c->opened);
    put64(w, c->now_ms);
    put32(w, (uint32_t)c->retaining);
    put32(w, (uint32_t)c->drained);
}

static void put_counters(state_writer *w, const kvk_cache *c)
{
    const counters *n = &c->counters;
    const uint64_t values[] = {n->partial_hits,        n->preemptions,      n->swapped_out_pages,   n->swapped_in_pages,
                               n->pages_taken,         n->cow_copies,       n->prefix_queries,      n->prefix_hits,
                               n->prefix_page_queries, n->prefix_page_hits, n->peak_sequences,      n->pages_evicted,
                               n->tokens_evicted,      c->store.reclaimed,  c->store.pool.peak_used};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put64(w, values[i]);
}

static uint64_t deadline_of(const kvk_cache *c, uint32_t page)
{
    uint32_t at = page < c->deadlines.where_cap ? c->deadlines.where[page] : HEAP_NONE;
    return at == HEAP_NONE ? 0 : c->deadlines.items[at].key;
}

/* `ranks` [unseen]: the order in which the reclaimable pages are to be given to the reclaim order. */
static void put_pages(state_writer *w, kvk_cache *c, uint64_t *ranks)
{
    pool *p = pool_of(c);
    memset(ranks, 0, p->unseen * sizeof *ranks);
    if (p->order->rank)
        p->order->rank(p, ranks);
    put32(w, p->unseen);
    for (uint32_t id = 0; id < p->unseen; id++) {
        put32(w, p->pages[id].filled);
        put32(w, p->pages[id].generation);
        put32(w, id < p->pins_cap ? p->pins[id] : 0);
        put32(w, pool_level(p, id));
        put64(w, deadline_of(c, id));
        put64(w, ranks[id]);
        put64(w, p->order->word && p->pages[id].content != CONTENT_NONE ? p->order->word(p, id) : 0); /* else unset */
    }
}

/* The node after this one below its root, parents before children, elder before younger; or NODE_NONE. */
static uint32_t next_below(const prefix *x, uint32_t node)
{
    if (x->nodes[node].children.count > 0)
        return x->nodes[node].children.head;
    while (x->nodes[node].parent != NODE_NONE && x->nodes[node].sibling.next == NODE_NONE)
        node = x->nodes[node].parent;
    return x->nodes[node].parent == NODE_NONE ? NODE_NONE : x->nodes[node].sibling.next;
}

/* numbers[node]: its place among the contents written. */
static void put_node(state_writer *w, const kvk_cache *c, uint32_t node, const uint32_t *numbers)
{
    const prefix *x = &c->store.prefix;
    uint32_t parent = x->nodes[node].parent;
    put32(w, parent == NODE_NONE ? NODE_NONE : numbers[parent]);
    put_scope(w, &x->scopes[node]);
    state_put(w, prefix_row(x, node), x->row_bytes);
    for (uint32_t g = 0; g < x->n_groups; g++) {
        const list *l = &x->copies[(size_t)node * x->n_groups + g];
        put32(w, l->count);
        for (uint32_t page = l->head; page != LIST_NONE; page = x->holders[page].link.next) {
            put32(w, page);
            state_put_page_near(w, c, g, page);
        }
    }
}

static void put_contents(state_writer *w, const kvk_cache *c, uint32_t *numbers)
{
    const prefix *x = &c->store.prefix;
    uint32_t n = 0;
    put32(w, x->n_live);
    for (uint32_t root = x->roots.head; root != NODE_NONE; root = x->nodes[root].sibling.next)
        for (uint32_t node = root; node != NODE_NONE; node = next_below(x, node)) {
            numbers[node] = n++;
            put_node(w, c, node, numbers);
        }
}

static void put_retentions(state_writer *w, const sequence *s)
{
    put32(w, s->n_retentions);
    for (uint32_t i = 0; i < s->n_retentions; i++) {
        put32(w, s->retentions[i].begin);
        put32(w, s->retentions[i].end);
        put32(w, s->retentions[i].priority);
        put64(w, s->retentions[i].duration_ms);
    }
}

static void put_sequence(state_writer *w, const kvk_cache *c, const sequence *s, const uint32_t *numbers)
{
    put32(w, s->generation);
    put32(w, s->is_open);
    if (!s->is_open)
        return;
    put32(w, s->swapped);
    put64(w, s->number);
    put32(w, (uint32_t)s->priority);
    put_scope(w, &s->scope);
    put32(w, s->n_tokens);
    put32(w, s->n_committed);
    put32(w, s->first_taint);
    put32(w, s->chain < CHAIN_BROKEN ? numbers[s->chain] : s->chain);
    put_retentions(w, s);
    for (uint32_t i = 0; s->tail && i < s->n_committed % page_tokens(c); i++)
        put32(w, s->tail[i]);
    if (c->config.extra_keys && s->n_committed % page_tokens(c) > 0)
        state_put(w, s->tail + page_tokens(c), sizeof(kvk_key));
    put32(w, s->eviction != NULL);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        put32(w, s->tables[g].first);
        put_list(w, s->tables[g].pages, s->tables[g].n);
        state_put_index(w, &s->tables[g]);
    }
    state_put_eviction(w, c, s);
}

static void put_sequences(state_writer *w, const kvk_cache *c, const uint32_t *numbers)
{
    uint32_t n = 0;
    put32(w, c->n_slots);
    for (uint32_t i = 0; i < c->n_slots; i++)
        put_sequence(w, c, &c->sequences[i], numbers);
    for (uint32_t i = c->closed; i != LIST_NONE; i = c->sequences[i].next_closed)
        n++;
    put32(w, n);
    for (uint32_t i = c->closed; i != LIST_NONE; i = c->sequences[i].next_closed)
        put32(w, i);
}

static int put_state(kvk_cache *c, state_writer *w, uint64_t *ranks, uint32_t *numbers)
{
    XXH3_64bits_reset(&w->sum);
    put_config(w, c);
    put_counters(w, c);
    put_pages(w, c, ranks);
    if (c->config.content != KVK_CONTENT_NONE)
        put_contents(w, c, numbers);
    put_list(w, c->store.pool.stack, c->store.pool.n_stacked);
    put32(w, c->host.unseen);
    put_list(w, c->host.stack, c->host.n_stacked);
    put_sequences(w, c, numbers);
    state_flush(w);
    put64(w, XXH3_64bits_digest(&w->sum));
    state_flush(w);
    return w->failed ? KVK_EIO : 0;
}

int cache_is_quiet(const kvk_cache *c)
{
    return c->n_batches == 0 && c->moves.first == c->moves.end && c->store.pool.draining == 0;
}

/* Only the library's own policies can be found again by their names. */
static int policies_are_own(const kvk_cache *c)
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        const sequence *s = &c->sequences[i];
        if (s->is_open && eviction_of(s) && !policy_is_own(eviction_policy(s->eviction)))
            return 0;
    }
    return 1;
}

int kvk_save(kvk_cache *cache, kvk_write_fn write, void *ctx)
{
    if (!cache_is_ready(cache) || !write)
        return cache_refuses(cache);
    if (!cache_is_quiet(cache))
        return KVK_EBUSY;
    if (!policies_are_own(cache))
        return KVK_ESTATE;
    size_t n_ranks = (size_t)cache->store.pool.unseen + 1, n_numbers = (size_t)cache->store.prefix.n_nodes + 1;
    state_writer w = {.write = write, .ctx = ctx};
    uint64_t *ranks = memory_take(cache->memory, n_ranks * sizeof *ranks);
    uint32_t *numbers = memory_take(cache->memory, n_numbers * sizeof *numbers);
    cache->in_callback = 1;
    int rc = ranks && numbers ? put_state(cache, &w, ranks, numbers) : KVK_ENOMEM;
    cache->in_callback = 0;
    memory_give(cache->memory, ranks, n_ranks * sizeof *ranks);
    memory_give(cache->memory, numbers, n_numbers * sizeof *numbers);
    return rc;
}
