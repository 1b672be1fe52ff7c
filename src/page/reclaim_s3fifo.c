/* S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction", SOSP '23).
 *
 * New content enters a small queue, a tenth of the pool; what was attached twice there moves on to the main queue, the
 * rest goes, and its key is remembered for a while: content that comes back then enters the main queue at once. In the
 * main queue each use (up to 3) buys one more round. A queue holds only pages that may be reclaimed; a used page keeps
 * its place in it by its number. */
#include "base/heap.h"
#include "base/map.h"
#include "page/pool.h"

enum { SMALL, MAIN };

#define MOST_USES 3u

typedef struct place {
    uint64_t number; /* order of entry into its queue */
    uint8_t queue, uses;
} place;

typedef struct s3fifo {
    heap queues[2];
    place *places;   /* [cap] by page */
    uint64_t *ghost; /* [limit] keys that left the small queue, a ring */
    map known;       /* key -> its number in the ring's history */
    uint32_t cap, ghost_cap;
    uint64_t gone; /* keys ever put into the ring */
    uint64_t clock;
} s3fifo;

static void open_s3fifo(pool *p)
{
    s3fifo *x = p->reclaim_state;
    *x = (s3fifo){.clock = 0};
    heap_open(&x->queues[SMALL], p->memory);
    heap_open(&x->queues[MAIN], p->memory);
    map_open(&x->known, p->memory);
}

static void close_s3fifo(pool *p)
{
    s3fifo *x = p->reclaim_state;
    heap_close(&x->queues[SMALL]);
    heap_close(&x->queues[MAIN]);
    map_close(&x->known);
    memory_give(p->memory, x->places, x->cap * sizeof *x->places);
    memory_give(p->memory, x->ghost, x->ghost_cap * sizeof *x->ghost);
}

/* Reclaiming begins when every page was taken: the ring has its size before its first key. */
static int prepare(pool *p, uint32_t n_pages)
{
    s3fifo *x = p->reclaim_state;
    if (memory_grow(p->memory, &x->places, &x->cap, n_pages, sizeof *x->places) < 0 ||
        memory_grow(p->memory, &x->ghost, &x->ghost_cap, n_pages, sizeof *x->ghost) < 0 ||
        heap_prepare(&x->queues[SMALL], n_pages) < 0 || heap_prepare(&x->queues[MAIN], n_pages) < 0)
        return KVK_ENOMEM;
    return map_prepare(&x->known, x->ghost_cap - x->known.count);
}

/* A key leaves the small queue: it takes the place of the oldest in the ring, which has as many as the pool has
 * pages. */
static void remember(s3fifo *x, uint64_t key, uint32_t size)
{
    uint64_t *slot = &x->ghost[x->gone % size];
    if (x->gone >= size && map_get(&x->known, *slot) == x->gone - size)
        map_remove(&x->known, *slot);
    *slot = key;
    map_set(&x->known, key, x->gone++);
}

static void published(pool *p, uint32_t page, uint64_t key)
{
    s3fifo *x = p->reclaim_state;
    int known = map_get(&x->known, key) != MAP_NONE;
    map_remove(&x->known, key);
    x->places[page] = (place){.number = x->clock++, .queue = known ? MAIN : SMALL};
}

static void attached(pool *p, uint32_t page)
{
    place *at = &((s3fifo *)p->reclaim_state)->places[page];
    at->uses = (uint8_t)(at->uses + (at->uses < MOST_USES));
}

static void insert(pool *p, uint32_t page)
{
    s3fifo *x = p->reclaim_state;
    const place *at = &x->places[page];
    heap_push(&x->queues[at->queue], page, pool_level(p, page), at->number);
}

static void take_out(pool *p, uint32_t page)
{
    s3fifo *x = p->reclaim_state;
    heap_remove(&x->queues[x->places[page].queue], page);
}

/* Sends a page to the end of the main queue. */
static void requeue(pool *p, uint32_t page, uint8_t uses)
{
    s3fifo *x = p->reclaim_state;
    take_out(p, page);
    x->places[page] = (place){.number = x->clock++, .queue = MAIN, .uses = uses};
    insert(p, page);
}

/* The queue of the lower priority at its head; between equals the small one while it is over its share. */
static int prefers_small(const pool *p, const s3fifo *x)
{
    const heap_item *small = heap_top(&x->queues[SMALL]), *main = heap_top(&x->queues[MAIN]);
    if (!small || !main)
        return small != NULL;
    if (small->key != main->key)
        return small->key < main->key;
    return x->queues[SMALL].count > p->limit / 10;
}

/* Ends: each round moves a page out of the small queue, or takes a use off one in the main queue. */
static uint32_t first(pool *p)
{
    s3fifo *x = p->reclaim_state;
    for (;;) {
        int from_small = prefers_small(p, x);
        uint32_t page = heap_top(&x->queues[from_small ? SMALL : MAIN])->id;
        uint8_t uses = x->places[page].uses;
        if (from_small ? uses < 2 : uses == 0)
            return page;
        requeue(p, page, from_small ? 0 : (uint8_t)(uses - 1));
    }
}

static void reclaimed(pool *p, uint32_t page, uint64_t key)
{
    s3fifo *x = p->reclaim_state;
    if (x->places[page].queue == SMALL)
        remember(x, key, p->limit);
}

/* The ring would have another size: it begins anew. */
static void resized(pool *p)
{
    s3fifo *x = p->reclaim_state;
    map_clear(&x->known);
    x->gone = 0;
}

static uint64_t word(const pool *p, uint32_t page)
{
    const place *at = &((const s3fifo *)p->reclaim_state)->places[page];
    return at->number << 3 | (uint64_t)at->queue << 2 | at->uses;
}

static void set_word(pool *p, uint32_t page, uint64_t word)
{
    s3fifo *x = p->reclaim_state;
    uint64_t number = word >> 3;
    x->places[page] = (place){.number = number, .queue = word >> 2 & 1, .uses = word & 3};
    if (number >= x->clock)
        x->clock = number + 1;
}

const reclaim_order reclaim_s3fifo = {.state_bytes = sizeof(s3fifo),
                                      .open = open_s3fifo,
                                      .close = close_s3fifo,
                                      .prepare = prepare,
                                      .insert = insert,
                                      .remove = take_out,
                                      .first = first,
                                      .published = published,
                                      .attached = attached,
                                      .reclaimed = reclaimed,
                                      .resized = resized,
                                      .word = word,
                                      .set_word = set_word};
