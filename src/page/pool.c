#include "page/pool.h"

#include "base/checked.h"

#define FIRST_CAP 1024u

void pool_open(pool *p, memory *from, uint32_t n_pages)
{
    *p = (pool){.memory = from, .n_pages = n_pages, .cached = LIST_EMPTY, .limbo = LIST_EMPTY, .oldest_open = 1};
}

void pool_close(pool *p)
{
    memory_give(p->memory, p->pages, p->cap * sizeof *p->pages);
    memory_give(p->memory, p->stack, p->stack_cap * sizeof *p->stack);
}

int pool_prepare(pool *p, uint32_t n)
{
    uint32_t unseen = p->n_pages - p->unseen;
    uint32_t need = p->unseen + (n > p->n_stacked ? min_u32(n - p->n_stacked, unseen) : 0);
    need = max_u32(need, min_u32(FIRST_CAP, p->n_pages));
    if (memory_grow(p->memory, &p->stack, &p->stack_cap, need, sizeof *p->stack) < 0)
        return KVK_ENOMEM;
    return memory_grow(p->memory, &p->pages, &p->cap, need, sizeof *p->pages);
}

void pool_take_cached(pool *p, uint32_t id)
{
    list_remove(&p->cached, pool_links(p), id);
    pool_begin_use(&p->pages[id]);
}

void pool_ref(pool *p, uint32_t id)
{
    page_record *g = &p->pages[id];
    if (g->refs++ > 0)
        return;
    list_remove(g->epoch >= p->oldest_open ? &p->limbo : &p->cached, pool_links(p), id);
    p->live_tokens += g->filled;
}

void pool_set_content(pool *p, uint32_t id, uint32_t content)
{
    page_record *g = &p->pages[id];
    int cached = g->refs == 0 && g->epoch < p->oldest_open && g->content != CONTENT_NONE;
    if (cached)
        list_remove(&p->cached, pool_links(p), id);
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

void pool_pass_over(pool *p)
{
    uint32_t id = p->cached.head;
    list_remove(&p->cached, pool_links(p), id);
    list_push_tail(&p->cached, pool_links(p), id);
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
