/* base/heap.h: an indexed binary min-heap.
 *
 * Items are ids 0, 1, 2, ... chosen by the caller, each at most once in the heap, ordered by (key, tie). Knowing
 * where each id stands makes change and removal of any item O(log n). */
#ifndef KVK_BASE_HEAP_H
#define KVK_BASE_HEAP_H

#include "base/memory.h"

typedef struct heap_item {
    uint64_t key, tie;
    uint32_t id;
} heap_item;

typedef struct heap {
    memory *memory;
    heap_item *items;
    uint32_t *where; /* [where_cap] place of an id in items, HEAP_NONE if it is not there */
    uint32_t count, cap, where_cap;
} heap;

#define HEAP_NONE UINT32_MAX

void heap_open(heap *h, memory *from);
void heap_close(heap *h);

/* Makes sure that ids below n_ids can be pushed without allocating. KVK_ENOMEM. */
int heap_prepare(heap *h, uint32_t n_ids);

/* Puts an id in, or moves it if it is there. Its room must have been prepared. */
void heap_push(heap *h, uint32_t id, uint64_t key, uint64_t tie);

/* The smallest item; NULL if there is none. Valid until the next change. */
const heap_item *heap_top(const heap *h);

/* Takes an id out; one that is not there is ignored. */
void heap_remove(heap *h, uint32_t id);

#endif
