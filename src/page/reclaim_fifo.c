/* Findable for longest first, whatever was attached since. */
#include "base/heap.h"
#include "page/pool.h"

typedef struct fifo {
    heap queue;
    uint64_t *born; /* [cap] when each page became findable */
    uint32_t cap;
    uint64_t clock;
} fifo;

static void open_fifo(pool *p)
{
    fifo *x = p->reclaim_state;
    *x = (fifo){.clock = 0};
    heap_open(&x->queue, p->memory);
}

static void close_fifo(pool *p)
{
    fifo *x = p->reclaim_state;
    heap_close(&x->queue);
    memory_give(p->memory, x->born, x->cap * sizeof *x->born);
}

static int prepare(pool *p, uint32_t n_pages)
{
    fifo *x = p->reclaim_state;
    if (memory_grow(p->memory, &x->born, &x->cap, n_pages, sizeof *x->born) < 0)
        return KVK_ENOMEM;
    return heap_prepare(&x->queue, n_pages);
}

static void published(pool *p, uint32_t page, uint64_t key)
{
    fifo *x = p->reclaim_state;
    (void)key;
    x->born[page] = x->clock++;
}

static void insert(pool *p, uint32_t page)
{
    fifo *x = p->reclaim_state;
    heap_push(&x->queue, page, pool_level(p, page), x->born[page]);
}

static void take_out(pool *p, uint32_t page)
{
    fifo *x = p->reclaim_state;
    heap_remove(&x->queue, page);
}

static uint32_t first(pool *p)
{
    const fifo *x = p->reclaim_state;
    return heap_top(&x->queue)->id;
}

static uint64_t word(const pool *p, uint32_t page)
{
    const fifo *x = p->reclaim_state;
    return x->born[page];
}

static void set_word(pool *p, uint32_t page, uint64_t born)
{
    fifo *x = p->reclaim_state;
    x->born[page] = born;
    if (born >= x->clock && born < UINT64_MAX)
        x->clock = born + 1;
}

const reclaim_order reclaim_fifo = {.state_bytes = sizeof(fifo),
                                    .open = open_fifo,
                                    .close = close_fifo,
                                    .prepare = prepare,
                                    .insert = insert,
                                    .remove = take_out,
                                    .first = first,
                                    .published = published,
                                    .word = word,
                                    .set_word = set_word};
