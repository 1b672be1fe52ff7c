/* runner_moves.c: what the cache asks to be done to pages. */
#include "engine/runner_state.h"

#include <stdlib.h>

enum { MOVES = 64 };

/* One token of one head, and all that a page is made of. */
static kvk_host_pages pages_of(const runner *r, void *base, uint64_t token_bytes)
{
    uint32_t rows = r->kv.n_layers * 2 * r->kv.n_heads;
    uint64_t row = token_bytes * r->kv.page_tokens;
    return (kvk_host_pages){.base = base,
                            .page_stride = row * rows,
                            .row_stride = row,
                            .rows = rows,
                            .token_bytes = (uint32_t)token_bytes,
                            .page_tokens = r->kv.page_tokens,
                            .n_pages = r->kv.n_pages};
}

/* Every group sees the same pages. */
static int run(const runner *r, const kvk_move *moves, uint32_t n, kvk_host_pages pages)
{
    uint32_t groups = r->config.n_groups;
    kvk_host_pages *all = malloc(groups * sizeof *all);
    if (!all)
        return KVK_ENOMEM;
    for (uint32_t g = 0; g < groups; g++)
        all[g] = pages;
    int rc = kvk_moves_run_host(moves, n, &(kvk_host_memory){.groups = all, .n_groups = groups});
    free(all);
    return rc;
}

int runner_run_moves(runner *r, trace_error *error)
{
    kvk_move moves[MOVES];
    int n, rc = 0;
    while (rc >= 0 && (n = kvk_moves_take(r->cache, moves, MOVES)) > 0) {
        rc = run(r, moves, (uint32_t)n, pages_of(r, r->kv.base, r->kv.token_stride));
        if (rc >= 0 && r->kv.scales)
            rc = run(r, moves, (uint32_t)n, pages_of(r, r->kv.scales, sizeof *r->kv.scales));
    }
    return rc < 0 ? runner_failed("kvk_moves_run_host", rc, error) : 0;
}
