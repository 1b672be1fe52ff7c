/* kvkeep/moves.h: what the cache asks the engine to do to pages, and functions that do it in host memory.
 *
 * The cache never touches K or V. It queues moves (kvk_moves_take, kvkeep.h); the engine runs them in order, on a
 * stream or with kvk_moves_run_host. */
#ifndef KVKEEP_MOVES_H
#define KVKEEP_MOVES_H

#include <kvkeep/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kvk_move_kind {
    KVK_MOVE_COPY = 0,     /* the first n_tokens of page src to page dst */
    KVK_MOVE_ZERO = 1,     /* zero page dst */
    KVK_MOVE_SWAP_OUT = 2, /* page src to page dst of the host pool */
    KVK_MOVE_SWAP_IN = 3   /* page src of the host pool to page dst */
} kvk_move_kind;

typedef struct kvk_move {
    uint32_t kind; /* a kvk_move_kind */
    uint32_t group;
    uint32_t src, dst; /* pages; src == dst for KVK_MOVE_ZERO */
    uint32_t n_tokens; /* 1 .. page_tokens */
} kvk_move;

/* Pages of one group in host memory: page p is at base + p * page_stride, made of `rows` runs (layers x {K,V} x
 * heads) row_stride bytes apart, each holding the page's tokens in order, token_bytes each. Runs do not overlap, and
 * a page's runs lie together: page_stride is at least what they span (in a layout by layers, describe each layer as a
 * group). HND: token_bytes = dim * element. */
typedef struct kvk_host_pages {
    void *base;
    uint64_t page_stride;
    uint64_t row_stride;
    uint32_t rows;
    uint32_t token_bytes;
    uint32_t page_tokens;
    uint32_t n_pages;
} kvk_host_pages;

/* The memory that moves are run on, all of it host memory. */
typedef struct kvk_host_memory {
    const kvk_host_pages *groups; /* [n_groups] the pool, as each group sees it */
    const kvk_host_pages *swap;   /* [n_groups] the host pool likewise; NULL: there is none */
    uint32_t n_groups;
    uint32_t reserved;
} kvk_host_memory;

/* Runs moves in order. All are checked before the first is run. Returns n. KVK_EINVAL. */
KVK_API int kvk_moves_run_host(const kvk_move *moves, uint32_t n, const kvk_host_memory *where);

#ifdef __cplusplus
}
#endif

#endif
