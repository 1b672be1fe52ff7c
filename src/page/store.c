#include "page/store.h"

static int may_go(const store *s, uint32_t page)
{
    return pool_state(&s->pool, page) == KVK_PAGE_CACHED && !pool_is_pinned(&s->pool, page);
}

/* The first reclaimable page, in a group, that holds a child of the node, or PAGE_NONE. */
static uint32_t child_page(const store *s, uint32_t node, uint32_t group)
{
    const prefix *x = &s->prefix;
    for (uint32_t child = x->nodes[node].children.head; child != NODE_NONE; child = x->nodes[child].sibling.next)
        for (uint32_t page = prefix_page(x, child, group); page != PAGE_NONE; page = x->holders[page].link.next)
            if (may_go(s, page))
                return page;
    return PAGE_NONE;
}

/* The cached page due next: the order's first, or a leaf below it where longer cached content hangs on it. Sequences
 * release tail first, so by age a leaf stands before its parents and nothing is walked. */
static uint32_t next_victim(store *s)
{
    uint32_t page = s->pool.order->first(&s->pool), below = page;
    while (below != PAGE_NONE) {
        uint32_t node = s->pool.pages[below].content;
        page = below;
        below =
            prefix_is_inner(&s->prefix, node, page) ? child_page(s, node, s->prefix.holders[page].group) : PAGE_NONE;
    }
    return page;
}

uint32_t store_reclaim(store *s)
{
    uint32_t page = next_victim(s), node = s->pool.pages[page].content;
    uint64_t key = s->prefix.nodes[node].lo;
    pool_take_cached(&s->pool, page);
    s->pool.pages[page].content = CONTENT_NONE;
    if (s->pool.order->reclaimed)
        s->pool.order->reclaimed(&s->pool, page, key);
    prefix_drop(&s->prefix, node, page);
    s->reclaimed++;
    return page;
}

void store_publish(store *s, uint32_t page, uint32_t group, uint32_t node)
{
    if (page >= s->pool.limit) /* it drains: nobody is to find it */
        return;
    prefix_hold(&s->prefix, node, group, page);
    if (page < s->pool.levels_cap)
        s->pool.levels[page] = KVK_RETAIN_DEFAULT;
    if (s->pool.order->published)
        s->pool.order->published(&s->pool, page, s->prefix.nodes[node].lo);
    pool_set_content(&s->pool, page, node);
}

void store_withdraw(store *s, uint32_t page)
{
    prefix_drop(&s->prefix, s->pool.pages[page].content, page);
    pool_set_content(&s->pool, page, CONTENT_NONE);
}

uint32_t store_forget_cached(store *s)
{
    uint32_t n = s->pool.n_cached;
    for (uint32_t page = 0; page < s->pool.unseen && s->pool.n_cached > 0; page++)
        if (pool_state(&s->pool, page) == KVK_PAGE_CACHED)
            store_withdraw(s, page);
    return n;
}

void store_set_limit(store *s, uint32_t limit)
{
    pool_set_limit(&s->pool, limit);
    for (uint32_t page = limit; page < s->pool.unseen; page++)
        if (may_go(s, page))
            store_withdraw(s, page);
}

uint32_t store_withdraw_draining(store *s)
{
    uint32_t n = 0;
    for (uint32_t page = s->pool.limit; page < s->pool.unseen; page++)
        if (s->pool.pages[page].content != CONTENT_NONE && !pool_is_pinned(&s->pool, page)) {
            store_withdraw(s, page);
            n++;
        }
    return n;
}

/* What the reclaim order and retention remember of a page. */
static void hand_on(pool *p, uint32_t old, uint32_t page)
{
    if (p->order->word)
        p->order->set_word(p, page, p->order->word(p, old));
    if (page < p->levels_cap)
        p->levels[page] = p->levels[old];
}

void store_replace(store *s, uint32_t old, uint32_t page)
{
    uint32_t node = s->pool.pages[old].content;
    if (node != CONTENT_NONE) {
        store_publish(s, page, s->prefix.holders[old].group, node); /* first, so that it is findable all along */
        hand_on(&s->pool, old, page);
        store_withdraw(s, old);
    }
    pool_replace(&s->pool, old, page);
}
