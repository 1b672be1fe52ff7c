/* base/memory.h: the only allocator calls of the library.
 *
 * Each cache has one `memory`: a jemalloc arena of its own (malloc where the build has no jemalloc), or the caller's
 * allocator. It counts what it holds, so that "a steady state allocates nothing" can be checked. */
#ifndef KVK_BASE_MEMORY_H
#define KVK_BASE_MEMORY_H

#include <kvkeep/base.h>

typedef struct memory {
    kvk_allocator from;
    unsigned arena; /* jemalloc's, if own_arena */
    int own_arena;
    uint64_t limit;             /* of `bytes` */
    uint64_t bytes, peak_bytes; /* held now, and at most */
    uint64_t allocations;       /* made since the start */
} memory;

/* `allocator` NULL: an arena of its own. There is no limit until `limit` is set. KVK_ENOMEM. */
int memory_open(memory *m, const kvk_allocator *allocator);

/* Everything taken must have been given back. */
void memory_close(memory *m);

/* NULL when there is none, or none within the limit. */
void *memory_take(memory *m, size_t bytes);

/* NULL is ignored; `bytes` as taken. */
void memory_give(memory *m, void *block, size_t bytes);

/* Makes room for at least `need` items of `item` bytes in an array of *cap items: doubles, keeps the content, never
 * shrinks. `array` is the address of the pointer to it, whatever its type. 0, or KVK_ENOMEM with the array as it was.
 * */
int memory_grow(memory *m, void *array, uint32_t *cap, uint64_t need, size_t item);

#endif
