/* reserve.c: room for tokens. A reservation is planned on the side, then applied by steps that cannot fail. */
#include "cache/reserve.h"

#include "base/checked.h"
#include "cache/record.h"

static growth plan_growth(const kvk_cache *c, const sequence *s, uint32_t n_tokens)
{
    growth g = {0};
    if (n_tokens == 0)
        return g;
    g.pages = ceil_div((uint64_t)s->n_tokens + n_tokens, page_tokens(c));
    for (uint32_t i = 0; i < c->config.n_groups; i++) {
        tail_need tail = sequence_tail_need(c, s, i);
        g.tails += tail != TAIL_NOTHING;
        g.copies += tail == TAIL_COPY;
        g.held += s->tables[i].n;
        g.need += g.pages > table_end(&s->tables[i]) ? g.pages - table_end(&s->tables[i]) : 0;
    }
    g.need += g.copies;
    g.too_long = (uint64_t)s->n_tokens + n_tokens > KVK_MAX_TOKENS;
    return g;
}

int reserve_judge(const kvk_cache *c, const growth *g, kvk_effort effort)
{
    uint64_t keep = effort == KVK_FREE_ONLY ? c->config.watermark : 0;
    if (g->need == 0)
        return g->too_long ? KVK_NEVER : KVK_OK;
    if (g->too_long || g->held + g->need - g->copies + keep > c->config.n_pages)
        return KVK_NEVER;
    return g->need + keep > pool_available(&c->store.pool) ? KVK_LATER : KVK_OK;
}

int kvk_can_reserve(const kvk_cache *cache, kvk_seq seq, uint32_t n_tokens, kvk_effort effort)
{
    if (!cache_is_ready(cache) || (unsigned)effort > KVK_EVICT)
        return cache_refuses(cache);
    sequence *s;
    int rc = sequence_use(cache, seq, &s);
    if (rc < 0)
        return rc;
    growth g = plan_growth(cache, s, n_tokens);
    return reserve_judge(cache, &g, effort);
}

/* All memory that applying needs, so that applying cannot fail. */
static int prepare_growth(kvk_cache *c, sequence *s, const growth *g)
{
    for (uint32_t i = 0; i < c->config.n_groups; i++)
        if (g->pages > s->tables[i].first && memory_grow(c->memory, &s->tables[i].pages, &s->tables[i].cap,
                                                         g->pages - s->tables[i].first, sizeof(uint32_t)) < 0)
            return KVK_ENOMEM;
    if (pool_prepare(pool_of(c), (uint32_t)g->need) < 0 || retain_prepare(c) < 0)
        return KVK_ENOMEM;
    return moves_prepare(c, g->copies + (c->config.zero_fill ? (uint32_t)g->need : 0));
}

static uint32_t take_page(kvk_cache *c, uint32_t group)
{
    uint32_t page = store_take(&c->store);
    if (c->config.zero_fill)
        moves_push(c, (kvk_move){KVK_MOVE_ZERO, group, page, page, page_tokens(c)});
    return page;
}

/* The sequence gets its own copy of the shared tail; the old page is let go later. Returns it. */
static uint32_t copy_tail(kvk_cache *c, sequence *s, uint32_t group)
{
    uint32_t *entry = table_at(&s->tables[group], s->n_tokens / page_tokens(c));
    uint32_t old = *entry, kept = s->n_tokens % page_tokens(c);
    *entry = take_page(c, group);
    pool_set_filled(pool_of(c), *entry, kept);
    moves_push(c, (kvk_move){KVK_MOVE_COPY, group, old, *entry, kept});
    c->counters.cow_copies++;
    return old;
}

/* Makes the tail of a group writable. Returns the page to let go, or PAGE_NONE. */
static uint32_t free_tail(kvk_cache *c, sequence *s, uint32_t group)
{
    uint32_t tail;
    switch (sequence_tail_need(c, s, group)) {
    case TAIL_COPY:
        return copy_tail(c, s, group);
    case TAIL_WITHDRAW:
        tail = *table_at(&s->tables[group], s->n_tokens / page_tokens(c));
        store_withdraw(&c->store, tail);
        pool_set_filled(pool_of(c), tail, s->n_tokens % page_tokens(c));
        break;
    case TAIL_NOTHING:
        break;
    }
    return PAGE_NONE;
}

/* Group after group: first the tail, then the new pages. Replaced pages go last, so that none of them is taken again.
 * */
static void apply_growth(kvk_cache *c, sequence *s, const growth *g)
{
    for (uint32_t i = 0; i < c->config.n_groups; i++) {
        table *t = &s->tables[i];
        c->replaced[i] = free_tail(c, s, i);
        while (table_end(t) < g->pages)
            t->pages[t->n++] = take_page(c, i);
    }
    c->counters.pages_taken += g->need;
    pool_note_peak(pool_of(c));
    for (uint32_t i = 0; i < c->config.n_groups; i++)
        if (c->replaced[i] != PAGE_NONE)
            pool_unref(pool_of(c), c->replaced[i], s->last_epoch);
}

static int reserve(kvk_cache *c, sequence *s, const growth *g, kvk_effort effort)
{
    int can = reserve_judge(c, g, effort);
    if (can != KVK_OK)
        return can == KVK_LATER ? KVK_ENOPAGE : KVK_ENEVER;
    if (g->need == 0 && g->tails == 0) /* there is room: the usual case of a decode step */
        return 0;
    if (prepare_growth(c, s, g) < 0)
        return KVK_ENOMEM;
    apply_growth(c, s, g);
    return (int)g->need;
}

int kvk_reserve(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens, kvk_effort effort)
{
    if (!cache_is_ready(cache) || (unsigned)effort > KVK_EVICT)
        return cache_refuses(cache);
    sequence *s;
    uint32_t had = 0;
    int rc = sequence_use(cache, seq, &s);
    if (rc == 0) {
        growth g = plan_growth(cache, s, n_tokens);
        had = table_end(&s->tables[0]);
        rc = reserve(cache, s, &g, effort);
    }
    if (cache->recorder)
        record_reserve(cache, &(reservation){seq, n_tokens, effort, had}, rc);
    return rc;
}
