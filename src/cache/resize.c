/* resize.c: growing and shrinking the pool while it is in use. */
#include "base/checked.h"
#include "cache/cache.h"
#include "cache/record.h"

#include <string.h>

#define STAYS UINT32_MAX

/* Calls `visit` for each table entry that names a draining page. */
static void each_draining(kvk_cache *c, void (*visit)(kvk_cache *, const sequence *, uint32_t g, uint32_t *entry))
{
    for (uint32_t i = 0; i < c->n_slots; i++) {
        sequence *s = &c->sequences[i];
        for (uint32_t g = 0; s->is_open && !s->swapped && g < c->config.n_groups; g++)
            for (uint32_t e = 0; e < s->tables[g].n; e++)
                if (s->tables[g].pages[e] >= c->store.pool.limit)
                    visit(c, s, g, &s->tables[g].pages[e]);
    }
}

/* Pages that a sequence in a batch in flight holds stay. */
static void mark_staying(kvk_cache *c, const sequence *s, uint32_t g, uint32_t *entry)
{
    (void)g;
    if (s->n_in_flight)
        c->seen[*entry] = STAYS;
}

static void move_deadline(kvk_cache *c, uint32_t old, uint32_t page)
{
    uint32_t at = old < c->deadlines.where_cap ? c->deadlines.where[old] : HEAP_NONE;
    heap_remove(&c->deadlines, page);
    if (at == HEAP_NONE)
        return;
    uint64_t deadline = c->deadlines.items[c->deadlines.where[old]].key;
    heap_remove(&c->deadlines, old);
    heap_push(&c->deadlines, page, deadline, page);
}

/* seen[page]: the page in its place + 1, or 0 as long as it has none. */
static void move_entry(kvk_cache *c, const sequence *s, uint32_t g, uint32_t *entry)
{
    uint32_t old = *entry;
    (void)s;
    if (c->seen[old] == STAYS || (c->seen[old] == 0 && pool_available(pool_of(c)) == 0))
        return;
    if (c->seen[old] == 0) {
        uint32_t page = store_take(&c->store);
        moves_push(c, (kvk_move){KVK_MOVE_COPY, g, old, page, page_tokens(c)});
        store_replace(&c->store, old, page);
        move_deadline(c, old, page);
        if (c->near_stride)
            near_move(c, old, page);
        c->seen[old] = page + 1;
    }
    *entry = c->seen[old] - 1;
}

static uint32_t used_from(const kvk_cache *c, uint32_t limit)
{
    uint32_t n = 0;
    for (uint32_t page = limit; page < c->store.pool.unseen; page++)
        n += c->store.pool.pages[page].refs > 0;
    return n;
}

static int prepare_moving(kvk_cache *c, uint32_t limit)
{
    uint32_t n = used_from(c, limit), n_pages = max_u32(c->store.pool.unseen, 1);
    if (memory_grow(c->memory, &c->seen, &c->seen_cap, n_pages, sizeof *c->seen) < 0 || moves_prepare(c, n) < 0 ||
        cache_prepare_pages(c, n) < 0)
        return KVK_ENOMEM;
    if (c->config.content == KVK_CONTENT_NONE)
        return 0;
    return prefix_prepare(&c->store.prefix, 0, c->store.pool.cap);
}

static int resize(kvk_cache *c, uint32_t n_pages, int move)
{
    if (move && prepare_moving(c, n_pages) < 0)
        return KVK_ENOMEM;
    if (move)
        memset(c->seen, 0, c->store.pool.unseen * sizeof *c->seen);
    store_set_limit(&c->store, n_pages);
    if (move) {
        each_draining(c, mark_staying);
        each_draining(c, move_entry);
        pool_note_peak(pool_of(c));
    }
    c->drained |= store_withdraw_draining(&c->store) > 0 || c->store.pool.draining > 0;
    c->config.n_pages = n_pages;
    c->config.watermark = min_u32(c->config.watermark, n_pages);
    return (int)c->store.pool.draining;
}

int kvk_resize(kvk_cache *cache, uint32_t n_pages, int move)
{
    if (!cache_is_ready(cache) || n_pages < 1 || n_pages > KVK_MAX_PAGES)
        return cache_refuses(cache);
    int rc = resize(cache, n_pages, move);
    if (cache->recorder)
        record_resize(cache, n_pages, move, rc);
    return rc;
}
