/* Attached least often since it became findable first; of these the least recently released. */
#include "base/heap.h"
#include "page/pool.h"

typedef struct lfu {
    heap queue;
    uint32_t *uses; /* [cap] */
    uint32_t cap;
    uint64_t clock;
} lfu;

static void open_lfu(pool *p)
{
    lfu *x = p->reclaim_state;
    *x = (lfu){.clock = 0};
    heap_open(&x->queue, p->memory);
}

static void close_lfu(pool *p)
{
    lfu *x = p->reclaim_state;
    heap_close(&x->queue);
    memory_give(p->memory, x->uses, x->cap * sizeof *x->uses);
}

static int prepare(pool *p, uint32_t n_pages)
{
    lfu *x = p->reclaim_state;
    if (memory_grow(p->memory, &x->uses, &x->cap, n_pages, sizeof *x->uses) < 0)
        return KVK_ENOMEM;
    return heap_prepare(&x->queue, n_pages);
}

static void published(pool *p, uint32_t page, uint64_t key)
{
    lfu *x = p->reclaim_state;
    (void)key;
    x->uses[page] = 0;
}

static void attached(pool *p, uint32_t page)
{
    lfu *x = p->reclaim_state;
    x->uses[page] += x->uses[page] < UINT32_MAX;
}

static void insert(pool *p, uint32_t page)
{
    lfu *x = p->reclaim_state;
    heap_push(&x->queue, page, (uint64_t)pool_level(p, page) << 32 | x->uses[page], x->clock++);
}

static void take_out(pool *p, uint32_t page)
{
    lfu *x = p->reclaim_state;
    heap_remove(&x->queue, page);
}

static uint32_t first(pool *p)
{
    const lfu *x = p->reclaim_state;
    return heap_top(&x->queue)->id;
}

static void rank(pool *p, uint64_t *ranks)
{
    const lfu *x = p->reclaim_state;
    for (uint32_t i = 0; i < x->queue.count; i++)
        ranks[x->queue.items[i].id] = x->queue.items[i].tie + 1;
}

static uint64_t word(const pool *p, uint32_t page)
{
    const lfu *x = p->reclaim_state;
    return x->uses[page];
}

static void set_word(pool *p, uint32_t page, uint64_t uses)
{
    lfu *x = p->reclaim_state;
    x->uses[page] = (uint32_t)uses;
}

const reclaim_order reclaim_lfu = {.state_bytes = sizeof(lfu),
                                   .open = open_lfu,
                                   .close = close_lfu,
                                   .prepare = prepare,
                                   .insert = insert,
                                   .remove = take_out,
                                   .first = first,
                                   .published = published,
                                   .attached = attached,
                                   .rank = rank,
                                   .word = word,
                                   .set_word = set_word};
