/* page/store.h: the pool and its content index as one: where pages come from and what they can be found by. */
#ifndef KVK_PAGE_STORE_H
#define KVK_PAGE_STORE_H

#include "page/pool.h"
#include "page/prefix.h"

typedef struct store {
    pool pool;
    prefix prefix;      /* unused (memory NULL) without a prefix cache */
    uint64_t reclaimed; /* cached pages taken, their content lost */
} store;

/* The cached page due next, leaves before their parents; now used once, its content lost. There must be one. O(1) as
 * long as sequences release tail first. */
uint32_t store_reclaim(store *s);

/* A page, free ones first, then the cached one due next; now used once. There must be one, and pool_prepare must have
 * made room. */
static inline uint32_t store_take(store *s)
{
    return pool_free(&s->pool) > 0 ? pool_take_free(&s->pool) : store_reclaim(s);
}

/* A page can be found by its node from now on. */
void store_publish(store *s, uint32_t page, uint32_t group, uint32_t node);

/* A prefix hit takes a page into use. */
static inline void store_attach(store *s, uint32_t page)
{
    if (s->pool.order->attached)
        s->pool.order->attached(&s->pool, page);
    pool_ref(&s->pool, page);
}

/* A page can be found no more. One that nobody refers to becomes free. */
void store_withdraw(store *s, uint32_t page);

/* Changes the pool's size: pages from `limit` on are handed out no more, and cached ones among them go. O(pages
 * taken). */
void store_set_limit(store *s, uint32_t limit);

/* Pages that drain are found no more, but for pinned ones. O(pages taken). Returns how many lost their content. */
uint32_t store_withdraw_draining(store *s);

/* A page just taken takes the place of a used one: its references, content and pins, and its place among what may be
 * reclaimed. The old one is released. */
void store_replace(store *s, uint32_t old, uint32_t page);

/* Withdraws all cached pages, by ascending id; none may be pinned. O(pages taken). Returns how many. */
uint32_t store_forget_cached(store *s);

#endif
