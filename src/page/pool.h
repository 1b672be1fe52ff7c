/* page/pool.h: who owns which page.
 *
 * A page is in exactly one state, told by its record:
 *     used    refs > 0                                 on no list, so nothing can choose it
 *     limbo   refs 0, epoch >= oldest_open             a batch in flight may read it; on the limbo list
 *     cached  refs 0, content known                    held by the reclaim order, unless it is pinned
 *     free    refs 0, content CONTENT_NONE             on the free stack, or never taken yet (id >= unseen)
 * What is on no list is used: free + cached + limbo + used == limit + draining (P1). A page from `limit` on that nobody
 * refers to and that is not pinned is gone: it is not counted.
 *
 * Every function is O(1) unless it says otherwise, and none but pool_prepare allocates. */
#ifndef KVK_PAGE_POOL_H
#define KVK_PAGE_POOL_H

#include "base/list.h"
#include "base/memory.h"
#include "page/reclaim.h"

#include <kvkeep/kvkeep.h>

#define PAGE_NONE UINT32_MAX
#define CONTENT_NONE UINT32_MAX
#define POOL_LEVELS 101u /* retention priorities 0 .. 100 */

typedef struct page_record {
    list_link link;      /* of the one list it is on */
    uint32_t refs;       /* table entries that name it */
    uint32_t content;    /* the prefix node it can be found by, or CONTENT_NONE */
    uint32_t filled;     /* token places written */
    uint32_t generation; /* times taken */
    uint64_t epoch;      /* last batch that read it through a sequence that has released it since */
} page_record;

typedef struct pool {
    memory *memory;
    page_record *pages; /* [cap], for pages below cap */
    uint32_t *stack; /* [stack_cap] free pages; last freed is first taken: its lines may still be in the CPU's cache */
    uint32_t cap, stack_cap;
    uint32_t limit;    /* pages with ids below are handed out */
    uint32_t draining; /* pages from there on that are not gone yet: used, in limbo or pinned */
    uint32_t unseen;   /* the first page never taken; those from here on are free */
    uint32_t n_stacked;
    uint32_t peak_used;
    uint32_t n_cached, n_pinned; /* cached pages, and those of them that are pinned */
    list limbo;
    const reclaim_order *order;
    void *reclaim_state;
    uint16_t *pins;  /* [pins_cap] how often each page is pinned; nothing before the first pin */
    uint8_t *levels; /* [levels_cap] retention priority; nothing before the first that is set */
    uint32_t pins_cap, levels_cap;
    uint64_t oldest_open; /* epoch of the oldest batch in flight, or of the next one */
    uint64_t live_tokens; /* sum of `filled` over used pages */
} pool;

/* KVK_ENOMEM. */
int pool_open(pool *p, memory *from, uint32_t n_pages, const reclaim_order *order);
void pool_close(pool *p);

/* Makes sure that `n` takes need no memory. O(pages) when it grows, amortised O(1). KVK_ENOMEM. */
int pool_prepare(pool *p, uint32_t n);

/* Turns a cached page that lost its content into one used once. */
void pool_take_cached(pool *p, uint32_t id);

/* The content of a page became known, or was lost. One that nobody refers to moves between the free stack and the
 * cached list. */
void pool_set_content(pool *p, uint32_t id, uint32_t content);

/* Changes the limit. O(pages taken). */
void pool_set_limit(pool *p, uint32_t limit);

/* A used page takes the place of another, with its references and pins. Releases the other. */
void pool_replace(pool *p, uint32_t old, uint32_t page);

/* Sets how many token places of a used page are written. */
void pool_set_filled(pool *p, uint32_t id, uint32_t filled);

/* Lets go the limbo pages that only batches older than `oldest_open` may have read, in the order they came. Returns
 * how many. O(limbo). */
uint32_t pool_drain(pool *p, uint64_t oldest_open);

/* Adds or takes pins of a page, 0 .. UINT16_MAX in all. Room must have been made by pool_prepare_pins. */
int pool_prepare_pins(pool *p);
void pool_add_pins(pool *p, uint32_t id, int pins);

/* Sets the retention priority of a page, which moves in the reclaim order with it. Room must have been made by
 * pool_prepare_levels. */
int pool_prepare_levels(pool *p);
void pool_set_level(pool *p, uint32_t id, uint32_t level);

static inline list_items pool_links(const pool *p)
{
    return (list_items){p->pages, sizeof *p->pages};
}

static inline uint32_t pool_pages(const pool *p)
{
    return p->limit + p->draining;
}

static inline uint32_t pool_free(const pool *p)
{
    return (p->limit > p->unseen ? p->limit - p->unseen : 0) + p->n_stacked;
}

static inline uint32_t pool_available(const pool *p)
{
    return pool_free(p) + p->n_cached - p->n_pinned;
}

static inline uint32_t pool_used(const pool *p)
{
    return pool_pages(p) - pool_free(p) - p->n_cached - p->limbo.count;
}

static inline int pool_is_pinned(const pool *p, uint32_t id)
{
    return id < p->pins_cap && p->pins[id] > 0;
}

static inline uint32_t pool_level(const pool *p, uint32_t id)
{
    return id < p->levels_cap ? p->levels[id] : KVK_RETAIN_DEFAULT;
}

/* To be called after pages came into use. */
static inline void pool_note_peak(pool *p)
{
    uint32_t used = pool_used(p);
    if (used > p->peak_used)
        p->peak_used = used;
}

/* The page's first owner since it was free or cached. */
static inline void pool_begin_use(page_record *g)
{
    g->refs = 1;
    g->filled = 0;
    g->generation++;
}

/* A free page, now used once; there must be one. */
static inline uint32_t pool_take_free(pool *p)
{
    uint32_t id;
    if (p->n_stacked > 0) {
        id = p->stack[--p->n_stacked];
    } else {
        id = p->unseen++;
        p->pages[id] = (page_record){.content = CONTENT_NONE};
    }
    pool_begin_use(&p->pages[id]);
    return id;
}

/* A page that nobody refers to becomes cached, or is cached no more. */
static inline void pool_cache(pool *p, uint32_t id)
{
    p->n_cached++;
    if (pool_is_pinned(p, id))
        p->n_pinned++;
    else
        p->order->insert(p, id);
}

static inline void pool_uncache(pool *p, uint32_t id)
{
    p->n_cached--;
    if (pool_is_pinned(p, id))
        p->n_pinned--;
    else
        p->order->remove(p, id);
}

/* A page that nobody refers to and no batch reads finds its place. */
static inline void pool_settle(pool *p, uint32_t id)
{
    if (p->pages[id].content != CONTENT_NONE)
        pool_cache(p, id);
    else if (id < p->limit)
        p->stack[p->n_stacked++] = id;
    else
        p->draining--;
}

/* One more table entry names it; a cached or limbo page comes back to life. */
static inline void pool_ref(pool *p, uint32_t id)
{
    page_record *g = &p->pages[id];
    if (g->refs++ > 0)
        return;
    if (g->epoch >= p->oldest_open)
        list_remove(&p->limbo, pool_links(p), id);
    else
        pool_uncache(p, id);
    p->live_tokens += g->filled;
}

/* One table entry less, of a sequence that batch `epoch` read last (0: none did). Returns 1 if nobody refers to the
 * page any more. */
static inline int pool_unref(pool *p, uint32_t id, uint64_t epoch)
{
    page_record *g = &p->pages[id];
    if (epoch > g->epoch)
        g->epoch = epoch;
    if (--g->refs > 0)
        return 0;
    p->live_tokens -= g->filled;
    if (g->epoch >= p->oldest_open)
        list_push_tail(&p->limbo, pool_links(p), id);
    else
        pool_settle(p, id);
    return 1;
}

/* True if its only table entry may write into it: nobody else sees what it holds. */
static inline int pool_is_private(const pool *p, uint32_t id)
{
    return p->pages[id].refs == 1 && p->pages[id].content == CONTENT_NONE;
}

/* A kvk_page_state; any id below n_pages. */
int pool_state(const pool *p, uint32_t id);

#endif
