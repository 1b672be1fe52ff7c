/* Least recently released first: a list for each priority, through the pages' own records. */
#include "page/pool.h"

typedef struct lru {
    list levels[POOL_LEVELS];
    uint64_t filled[2]; /* a bit for each list that is not empty */
} lru;

static void open_lru(pool *p)
{
    lru *x = p->reclaim_state;
    *x = (lru){.filled = {0}};
    for (uint32_t i = 0; i < POOL_LEVELS; i++)
        x->levels[i] = LIST_EMPTY;
}

static void insert(pool *p, uint32_t page)
{
    lru *x = p->reclaim_state;
    uint32_t level = pool_level(p, page);
    list_push_tail(&x->levels[level], pool_links(p), page);
    x->filled[level / 64] |= (uint64_t)1 << level % 64;
}

static void take_out(pool *p, uint32_t page)
{
    lru *x = p->reclaim_state;
    uint32_t level = pool_level(p, page);
    list_remove(&x->levels[level], pool_links(p), page);
    if (x->levels[level].count == 0)
        x->filled[level / 64] &= ~((uint64_t)1 << level % 64);
}

static uint32_t first(pool *p)
{
    const lru *x = p->reclaim_state;
    uint32_t half = x->filled[0] == 0;
    return x->levels[64 * half + (uint32_t)__builtin_ctzll(x->filled[half])].head;
}

static void rank(pool *p, uint64_t *ranks)
{
    const lru *x = p->reclaim_state;
    uint64_t n = 0;
    for (uint32_t level = 0; level < POOL_LEVELS; level++)
        for (uint32_t page = x->levels[level].head; page != LIST_NONE; page = p->pages[page].link.next)
            ranks[page] = ++n;
}

const reclaim_order reclaim_lru = {
    .state_bytes = sizeof(lru), .open = open_lru, .insert = insert, .remove = take_out, .first = first, .rank = rank};
