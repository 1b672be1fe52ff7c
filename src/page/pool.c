#include "page/pool.h"

#include "base/checked.h"

#include <string.h>

#define FIRST_CAP 1024u

int pool_open(pool *p, memory *from, uint32_t n_pages, const reclaim_order *order)
{
    *p = (pool){.memory = from, .limit = n_pages, .order = order, .limbo = LIST_EMPTY, .oldest_open = 1};
    p->reclaim_state = memory_take(from, order->state_bytes);
    if (!p->reclaim_state)
        return KVK_ENOMEM;
    order->open(p);
    return 0;
}

void pool_close(pool *p)
{
    if (!p->reclaim_state)
        return;
    if (p->order->close)
        p->order->close(p);
    memory_give(p->memory, p->reclaim_state, p->order->state_bytes);
    memory_give(p->memory, p->pages, p->cap * sizeof *p->pages);
    memory_give(p->memory, p->stack, p->stack_cap * sizeof *p->stack);
    memory_give(p->memory, p->pins, p->pins_cap * sizeof *p->pins);
    memory_give(p->memory, p->levels, p->levels_cap * sizeof *p->levels);
}

int pool_prepare(pool *p, uint32_t n)
{
    uint32_t never_taken = p->limit > p->unseen ? p->limit - p->unseen : 0;
    uint32_t need = p->unseen + (n > p->n_stacked ? min_u32(n - p->n_stacked, never_taken) : 0);
    need = max_u32(need, min_u32(FIRST_CAP, p->limit));
    if (memory_grow(p->memory, &p->stack, &p->stack_cap, need, sizeof *p->stack) < 0)
        return KVK_ENOMEM;
    if (p->order->prepare && p->order->prepare(p, need) < 0)
        return KVK_ENOMEM;
    return memory_grow(p->memory, &p->pages, &p->cap, need, sizeof *p->pages);
}

void pool_take_cached(pool *p, uint32_t id)
{
    pool_uncache(p, id);
    pool_begin_use(&p->pages[id]);
}

void pool_set_content(pool *p, uint32_t id, uint32_t content)
{
    page_record *g = &p->pages[id];
    int cached = g->refs == 0 && g->epoch < p->oldest_open && g->content != CONTENT_NONE;
    if (cached)
        pool_uncache(p, id);
    g->content = content;
    if (cached)
        pool_settle(p, id);
}

void pool_set_filled(pool *p, uint32_t id, uint32_t filled)
{
    page_record *g = &p->pages[id];
    p->live_tokens += (uint64_t)filled - g->filled;
    g->filled = filled;
}

uint32_t pool_drain(pool *p, uint64_t oldest_open)
{
    uint32_t gone = 0;
    if (oldest_open == p->oldest_open) /* the oldest batch goes on: so does what waits for it */
        return 0;
    p->oldest_open = oldest_open;
    for (uint32_t id = p->limbo.head, next; id != LIST_NONE; id = next) {
        next = p->pages[id].link.next;
        if (p->pages[id].epoch >= oldest_open)
            continue;
        list_remove(&p->limbo, pool_links(p), id);
        pool_settle(p, id);
        gone++;
    }
    return gone;
}

static int is_cached(const pool *p, uint32_t id)
{
    return pool_state(p, id) == KVK_PAGE_CACHED;
}

int pool_prepare_pins(pool *p)
{
    uint32_t had = p->pins_cap;
    if (memory_grow(p->memory, &p->pins, &p->pins_cap, p->cap, sizeof *p->pins) < 0)
        return KVK_ENOMEM;
    if (p->pins_cap > had)
        memset(p->pins + had, 0, (p->pins_cap - had) * sizeof *p->pins);
    return 0;
}

void pool_add_pins(pool *p, uint32_t id, int pins)
{
    int cached = is_cached(p, id);
    if (cached)
        pool_uncache(p, id);
    p->pins[id] = (uint16_t)(p->pins[id] + pins);
    if (cached)
        pool_cache(p, id);
}

int pool_prepare_levels(pool *p)
{
    uint32_t had = p->levels_cap;
    if (memory_grow(p->memory, &p->levels, &p->levels_cap, p->cap, sizeof *p->levels) < 0)
        return KVK_ENOMEM;
    if (p->levels_cap > had)
        memset(p->levels + had, KVK_RETAIN_DEFAULT, p->levels_cap - had);
    return 0;
}

void pool_set_level(pool *p, uint32_t id, uint32_t level)
{
    if (p->levels[id] == level) /* it keeps its place */
        return;
    int ordered = is_cached(p, id) && !pool_is_pinned(p, id);
    if (ordered)
        p->order->remove(p, id);
    p->levels[id] = (uint8_t)level;
    if (ordered)
        p->order->insert(p, id);
}

/* True of a page from the limit on that is still counted. */
static int drains(const pool *p, uint32_t id)
{
    return id >= p->limit && pool_state(p, id) != KVK_PAGE_FREE;
}

static void drop_from_stack(pool *p)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->n_stacked; i++)
        if (p->stack[i] < p->limit)
            p->stack[kept++] = p->stack[i];
    p->n_stacked = kept;
}

void pool_set_limit(pool *p, uint32_t limit)
{
    uint32_t was = p->limit;
    p->limit = limit;
    drop_from_stack(p);
    for (uint32_t id = min_u32(limit, p->unseen); id-- > was;) /* what was gone comes back, the lowest on top */
        if (pool_state(p, id) == KVK_PAGE_FREE)
            p->stack[p->n_stacked++] = id;
    if (p->order->resized && limit != was)
        p->order->resized(p);
    p->draining = 0;
    for (uint32_t id = limit; id < p->unseen; id++)
        p->draining += (uint32_t)drains(p, id);
}

void pool_replace(pool *p, uint32_t old, uint32_t page)
{
    p->pages[page].refs = p->pages[old].refs;
    pool_set_filled(p, page, p->pages[old].filled);
    if (pool_is_pinned(p, old)) {
        p->pins[page] = p->pins[old];
        p->pins[old] = 0;
    }
    p->pages[old].refs = 1;
    pool_unref(p, old, 0);
}

int pool_state(const pool *p, uint32_t id)
{
    if (id >= p->unseen)
        return KVK_PAGE_FREE;
    const page_record *g = &p->pages[id];
    if (g->refs > 0)
        return KVK_PAGE_USED;
    if (g->epoch >= p->oldest_open)
        return KVK_PAGE_LIMBO;
    return g->content == CONTENT_NONE ? KVK_PAGE_FREE : KVK_PAGE_CACHED;
}
