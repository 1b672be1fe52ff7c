#include "base/memory.h"

#include "base/checked.h"

#include <string.h>

#if KVK_HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>

/* No thread cache: the arena's figures are exact and nothing outlives it. */
static int arena_flags(const memory *m)
{
    return (int)MALLOCX_ARENA(m->arena) | MALLOCX_TCACHE_NONE;
}

static void *arena_alloc(void *ctx, size_t bytes)
{
    return mallocx(bytes, arena_flags(ctx));
}

static void arena_free(void *ctx, void *block, size_t bytes)
{
    sdallocx(block, bytes, arena_flags(ctx));
}

static int arena_open(memory *m)
{
    size_t size = sizeof m->arena;
    return mallctl("arenas.create", &m->arena, &size, NULL, 0) ? KVK_ENOMEM : 0;
}

static void arena_close(memory *m)
{
    size_t mib[3], depth = 3;
    if (mallctlnametomib("arena.0.destroy", mib, &depth) == 0) {
        mib[1] = m->arena;
        mallctlbymib(mib, depth, NULL, NULL, NULL, 0);
    }
}
#else
#include <stdlib.h>

static void *arena_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return malloc(bytes);
}

static void arena_free(void *ctx, void *block, size_t bytes)
{
    (void)ctx, (void)bytes;
    free(block);
}

static int arena_open(memory *m)
{
    (void)m;
    return 0;
}

static void arena_close(memory *m)
{
    (void)m;
}
#endif

int memory_open(memory *m, const kvk_allocator *allocator)
{
    *m = (memory){.own_arena = !allocator, .limit = UINT64_MAX};
    if (allocator) {
        m->from = *allocator;
        return 0;
    }
    m->from = (kvk_allocator){.alloc = arena_alloc, .free = arena_free};
    return arena_open(m);
}

void memory_close(memory *m)
{
    if (m->own_arena)
        arena_close(m);
}

/* The arena's own context is the memory itself, wherever it was moved to since. */
static void *context(memory *m)
{
    return m->own_arena ? m : m->from.ctx;
}

void *memory_take(memory *m, size_t bytes)
{
    void *block = bytes <= m->limit - m->bytes ? m->from.alloc(context(m), bytes) : NULL;
    if (!block)
        return NULL;
    m->bytes += bytes;
    m->allocations++;
    if (m->bytes > m->peak_bytes)
        m->peak_bytes = m->bytes;
    return block;
}

void memory_give(memory *m, void *block, size_t bytes)
{
    if (!block)
        return;
    m->from.free(context(m), block, bytes);
    m->bytes -= bytes;
}

/* Room for `items`, or NULL. */
static void *take_items(memory *m, uint64_t items, size_t item)
{
    uint64_t bytes;
    if (items > UINT32_MAX || checked_mul(items, item, &bytes) < 0 || bytes > PTRDIFF_MAX)
        return NULL;
    return memory_take(m, (size_t)bytes);
}

int memory_grow(memory *m, void *array, uint32_t *cap, uint64_t need, size_t item)
{
    if (need <= *cap)
        return 0;
    uint64_t room = *cap < 8 ? 8 : 2 * (uint64_t)*cap;
    if (room < need)
        room = need;
    void *old, *grown = take_items(m, room, item);
    if (!grown && room > need) /* short of memory: just what is needed may still be there */
        grown = take_items(m, room = need, item);
    if (!grown)
        return KVK_ENOMEM;
    memcpy(&old, array, sizeof old);
    if (*cap)
        memcpy(grown, old, *cap * item);
    memory_give(m, old, *cap * item);
    memcpy(array, &grown, sizeof grown);
    *cap = (uint32_t)room;
    return 0;
}
