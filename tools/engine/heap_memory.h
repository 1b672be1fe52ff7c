/* engine/heap_memory.h: malloc as the library's structures take their memory, where an arena of one's own would cost
 * more than what is kept in it. */
#ifndef KVKEEP_ENGINE_HEAP_MEMORY_H
#define KVKEEP_ENGINE_HEAP_MEMORY_H

#include "base/memory.h"

#include <stdlib.h>

static inline void *heap_memory_take(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

static inline void heap_memory_give(void *ctx, void *block, size_t bytes)
{
    (void)ctx, (void)bytes;
    free(block);
}

static inline void heap_memory_open(memory *m)
{
    static const kvk_allocator from = {.alloc = heap_memory_take, .free = heap_memory_give};
    memory_open(m, &from); /* which fails for an arena only */
}

#endif
