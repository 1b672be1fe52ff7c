/* page/reclaim.h: in which order cached pages are reclaimed. One file per order; the pool calls through this table.
 *
 * An order holds the pages that may be reclaimed and nothing else, those of lower retention priority (pool_level)
 * before all others. What it remembers of a page while that is used it keeps in arrays of its own by page id, which
 * exist only in caches that use that order. */
#ifndef KVK_PAGE_RECLAIM_H
#define KVK_PAGE_RECLAIM_H

#include <stddef.h>
#include <stdint.h>

struct pool;

typedef struct reclaim_order {
    size_t state_bytes; /* of pool.reclaim_state */
    void (*open)(struct pool *p);
    void (*close)(struct pool *p); /* may be NULL, as prepare, published, attached and reclaimed */

    /* Makes room for pages below n_pages. KVK_ENOMEM. */
    int (*prepare)(struct pool *p, uint32_t n_pages);

    void (*insert)(struct pool *p, uint32_t page);
    void (*remove)(struct pool *p, uint32_t page);

    /* The page due next; there is one. */
    uint32_t (*first)(struct pool *p);

    /* The page's content became findable; `key` identifies it. */
    void (*published)(struct pool *p, uint32_t page, uint64_t key);

    /* A prefix hit takes the page. */
    void (*attached)(struct pool *p, uint32_t page);

    /* The pool has another size. May be NULL. */
    void (*resized)(struct pool *p);

    /* For saved states. ranks[page]: the order in which the pages it holds are to be inserted again, from 1. word:
     * what it remembers of a page besides. All may be NULL. */
    void (*rank)(struct pool *p, uint64_t *ranks);
    uint64_t (*word)(const struct pool *p, uint32_t page);
    void (*set_word)(struct pool *p, uint32_t page, uint64_t word);

    /* The page was removed to lose its content. */
    void (*reclaimed)(struct pool *p, uint32_t page, uint64_t key);
} reclaim_order;

extern const reclaim_order reclaim_lru, reclaim_fifo, reclaim_lfu, reclaim_s3fifo;

#endif
