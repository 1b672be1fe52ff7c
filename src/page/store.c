#include "page/store.h"

/* The cached page due next: the first that is no inner page, or just the first if all are (their descendants are in
 * limbo). Sequences release tail first, so a leaf normally stands before its parents and nothing is passed over. */
static uint32_t next_victim(store *s)
{
    for (uint32_t left = s->pool.cached.count; left > 0; left--) {
        uint32_t id = s->pool.cached.head;
        if (!prefix_is_inner(&s->prefix, s->pool.pages[id].content, id))
            return id;
        pool_pass_over(&s->pool);
    }
    return s->pool.cached.head;
}

uint32_t store_reclaim(store *s)
{
    uint32_t id = next_victim(s);
    prefix_drop(&s->prefix, s->pool.pages[id].content, id);
    s->pool.pages[id].content = CONTENT_NONE;
    pool_take_cached(&s->pool, id);
    s->reclaimed++;
    return id;
}

void store_publish(store *s, uint32_t page, uint32_t group, uint32_t node)
{
    prefix_hold(&s->prefix, node, group, page);
    pool_set_content(&s->pool, page, node);
}

void store_withdraw(store *s, uint32_t page)
{
    prefix_drop(&s->prefix, s->pool.pages[page].content, page);
    pool_set_content(&s->pool, page, CONTENT_NONE);
}

uint32_t store_forget_cached(store *s)
{
    uint32_t n = s->pool.cached.count;
    while (s->pool.cached.count > 0)
        store_withdraw(s, s->pool.cached.head);
    return n;
}
