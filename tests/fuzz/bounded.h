/* bounded.h: an allocator that fails beyond a limit, so that an input may ask for much and get KVK_ENOMEM. */
#ifndef FUZZ_BOUNDED_H
#define FUZZ_BOUNDED_H

#include <stddef.h>
#include <stdlib.h>

enum { BOUNDED_LIMIT = 32 << 20 };

static inline void *bounded_alloc(void *ctx, size_t bytes)
{
    size_t *held = ctx;
    if (bytes > BOUNDED_LIMIT - *held)
        return NULL;
    void *memory = malloc(bytes);
    if (memory)
        *held += bytes;
    return memory;
}

static inline void bounded_free(void *ctx, void *memory, size_t bytes)
{
    size_t *held = ctx;
    *held -= bytes;
    free(memory);
}

#endif
