/* page/host_pool.h: pages in host memory that sequences are swapped to. They are only counted: free or taken. */
#ifndef KVK_PAGE_HOST_POOL_H
#define KVK_PAGE_HOST_POOL_H

#include "base/memory.h"

typedef struct host_pool {
    memory *memory;
    uint32_t *stack; /* [cap] pages given back */
    uint32_t cap, n_stacked;
    uint32_t unseen; /* the first page never taken */
    uint32_t n_pages;
} host_pool;

static inline uint32_t host_pool_free(const host_pool *p)
{
    return p->n_pages - p->unseen + p->n_stacked;
}

/* Makes sure that taking `n` pages, and giving all back, needs no memory. KVK_ENOMEM. */
static inline int host_pool_prepare(host_pool *p, uint32_t n)
{
    return memory_grow(p->memory, &p->stack, &p->cap, (uint64_t)p->unseen + n, sizeof *p->stack);
}

/* There must be one. */
static inline uint32_t host_pool_take(host_pool *p)
{
    return p->n_stacked > 0 ? p->stack[--p->n_stacked] : p->unseen++;
}

static inline void host_pool_give(host_pool *p, uint32_t page)
{
    p->stack[p->n_stacked++] = page;
}

static inline void host_pool_close(host_pool *p)
{
    memory_give(p->memory, p->stack, p->cap * sizeof *p->stack);
}

#endif
