#include "trace/belady.h"

#include "base/heap.h"

#include <stdbool.h>

#define NEVER UINT32_MAX /* the next use of a page that nobody asks for again */

int belady_open(belady *b)
{
    *b = (belady){.n = 0};
    return memory_open(&b->memory, NULL);
}

void belady_close(belady *b)
{
    if (!b->memory.own_arena)
        return;
    memory_give(&b->memory, b->refs, b->cap * sizeof *b->refs);
    memory_close(&b->memory);
    *b = (belady){.n = 0};
}

int belady_add(belady *b, uint32_t page)
{
    if (b->n == BELADY_MAX_REFS)
        return KVK_ESPACE;
    int rc = memory_grow(&b->memory, &b->refs, &b->cap, (uint64_t)b->n + 1, sizeof *b->refs);
    if (rc < 0)
        return rc;
    b->refs[b->n++] = page;
    if (page >= b->n_pages)
        b->n_pages = page + 1;
    return 0;
}

/* Sets next[i] to the reference after i to the same page. */
static void find_next_uses(const belady *b, uint32_t *next, uint32_t *first)
{
    for (uint32_t page = 0; page < b->n_pages; page++)
        first[page] = NEVER;
    for (uint32_t i = b->n; i-- > 0;) {
        next[i] = first[b->refs[i]];
        first[b->refs[i]] = i;
    }
}

/* `cached` is a heap with the farthest next use on top. */
static uint64_t run(const belady *b, const uint32_t *next, uint32_t capacity, heap *cached)
{
    uint64_t hits = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t page = b->refs[i];
        bool hit = cached->where[page] != HEAP_NONE;
        hits += hit ? 1 : 0;
        if (!hit && cached->count == capacity)
            heap_remove(cached, heap_top(cached)->id);
        heap_push(cached, page, NEVER - next[i], 0);
    }
    return hits;
}

int belady_hits(belady *b, uint32_t capacity, uint64_t *hits)
{
    size_t next_bytes = b->n * sizeof(uint32_t), first_bytes = b->n_pages * sizeof(uint32_t);
    heap cached;
    *hits = 0;
    if (b->n == 0)
        return 0;
    heap_open(&cached, &b->memory);
    uint32_t *next = memory_take(&b->memory, next_bytes), *first = memory_take(&b->memory, first_bytes);
    int rc = next && first ? heap_prepare(&cached, b->n_pages) : KVK_ENOMEM;
    if (rc == 0) {
        find_next_uses(b, next, first);
        *hits = run(b, next, capacity, &cached);
    }
    memory_give(&b->memory, next, next_bytes);
    memory_give(&b->memory, first, first_bytes);
    heap_close(&cached);
    return rc;
}
