/* reserve.c: room for tokens. A reservation is planned on the side, then applied by steps that cannot fail. */
#include "cache/reserve.h"

#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/record.h"

/* `t` gets what the sequence gives up by its own budget. */
static growth plan_growth(const kvk_cache *c, const sequence *s, uint32_t n_tokens, trim *t)
{
    growth g = {0};
    *t = (trim){0};
    if (n_tokens == 0)
        return g;
    if (eviction_of(s))
        *t = trim_plan(c, s, eviction_now(s));
    g.frees = t->frees;
    g.pages = ceil_div((uint64_t)s->n_tokens + n_tokens, page_tokens(c));
    for (uint32_t i = 0; i < c->config.n_groups; i++) {
        tail_need tail = sequence_tail_need(c, s, i);
        g.tails += tail != TAIL_NOTHING;
        g.copies += tail == TAIL_COPY;
        g.held += s->tables[i].n;
        g.need += g.pages > table_end(&s->tables[i]) ? g.pages - table_end(&s->tables[i]) : 0;
    }
    g.held -= t->victims;
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
    return g->need + keep > pool_available(&c->store.pool) + g->frees ? KVK_LATER : KVK_OK;
}

uint64_t reserve_missing(const kvk_cache *c, const growth *g, int can, kvk_effort effort)
{
    return can == KVK_LATER && effort == KVK_EVICT ? g->need - pool_available(&c->store.pool) - g->frees : 0;
}

int kvk_can_reserve(const kvk_cache *cache, kvk_seq seq, uint32_t n_tokens, kvk_effort effort)
{
    if (!cache_is_ready(cache) || (unsigned)effort > KVK_EVICT)
        return cache_refuses(cache);
    sequence *s;
    int rc = sequence_use(cache, seq, &s);
    if (rc < 0)
        return rc;
    trim t;
    growth g = plan_growth(cache, s, n_tokens, &t);
    int can = reserve_judge(cache, &g, effort);
    uint64_t missing = reserve_missing(cache, &g, can, effort);
    return missing && pressure_count(cache, s, missing) == missing ? KVK_OK : can;
}

/* Entries of a table once it has grown. */
static uint64_t entries_after(const table *t, const growth *g)
{
    return g->pages > table_end(t) ? t->n + g->pages - table_end(t) : t->n;
}

static int prepare_scores(kvk_cache *c, sequence *s, const growth *g)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < c->config.n_groups; i++)
        most = entries_after(&s->tables[i], g) > most ? entries_after(&s->tables[i], g) : most;
    return eviction_prepare(c, s, most);
}

/* All memory that applying needs, so that applying cannot fail. */
static int prepare_growth(kvk_cache *c, sequence *s, const growth *g)
{
    for (uint32_t i = 0; i < c->config.n_groups; i++)
        if (table_prepare(c->memory, &s->tables[i], entries_after(&s->tables[i], g)) < 0)
            return KVK_ENOMEM;
    if (s->eviction && prepare_scores(c, s, g) < 0)
        return KVK_ENOMEM;
    if (cache_prepare_pages(c, (uint32_t)g->need) < 0)
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
        uint32_t had = t->n;
        c->replaced[i] = free_tail(c, s, i);
        while (table_end(t) < g->pages)
            table_push(t, take_page(c, i));
        if (s->eviction)
            eviction_begin_entries(c, s, i, had);
    }
    c->counters.pages_taken += g->need;
    pool_note_peak(pool_of(c));
    for (uint32_t i = 0; i < c->config.n_groups; i++)
        if (c->replaced[i] != PAGE_NONE)
            pool_unref(pool_of(c), c->replaced[i], s->last_epoch);
}

/* The sequence's own pages go first, then those of others, so that what comes free can be taken. */
static void apply(kvk_cache *c, sequence *s, const growth *g, const trim *t, uint64_t missing)
{
    if (t->victims || t->asked)
        trim_apply(c, s, t, eviction_now(s));
    if (missing)
        pressure_apply(c);
    apply_growth(c, s, g);
}

/* True if there is room already and nothing to be trimmed: the usual case of a decode step. */
static int fits(const kvk_cache *c, const sequence *s, uint32_t n_tokens)
{
    return !eviction_of(s) && (uint64_t)s->n_tokens + n_tokens <= sequence_room(c, s) && sequence_is_writable(c, s);
}

static int reserve(kvk_cache *c, sequence *s, const growth *g, const trim *t, kvk_effort effort)
{
    int can = reserve_judge(c, g, effort);
    uint64_t missing = reserve_missing(c, g, can, effort);
    if (can != KVK_OK && !missing)
        return can == KVK_LATER ? KVK_ENOPAGE : KVK_ENEVER;
    if (g->need == 0 && g->tails == 0 && t->victims == 0 && !t->asked)
        return 0;
    int rc = missing ? pressure_plan(c, s, (uint32_t)missing) : 0;
    if (rc < 0)
        return rc;
    if (prepare_growth(c, s, g) < 0)
        return KVK_ENOMEM;
    apply(c, s, g, t, missing);
    return (int)g->need;
}

int kvk_reserve(kvk_cache *cache, kvk_seq seq, uint32_t n_tokens, kvk_effort effort)
{
    if (!cache_is_ready(cache) || (unsigned)effort > KVK_EVICT)
        return cache_refuses(cache);
    sequence *s;
    uint32_t had = 0;
    int rc = sequence_use(cache, seq, &s);
    if (rc == 0 && !fits(cache, s, n_tokens)) {
        trim t;
        growth g = plan_growth(cache, s, n_tokens, &t);
        had = table_end(&s->tables[0]);
        rc = reserve(cache, s, &g, &t, effort);
    }
    if (cache->recorder)
        record_reserve(cache, &(reservation){seq, n_tokens, effort, had}, rc);
    return rc;
}
