#include "trace/repage.h"

#include "base/checked.h"

#include <stdlib.h>

bool repage_fits(uint32_t block_tokens, uint32_t page_tokens)
{
    return block_tokens % page_tokens == 0 || page_tokens % block_tokens == 0;
}

uint32_t repage_count(const trace_request *request, uint32_t page_tokens)
{
    if (request->full_blocks)
        return (uint32_t)((uint64_t)request->n_blocks * request->block_tokens / page_tokens);
    return (uint32_t)ceil_div(request->n_input, page_tokens);
}

/* The upper half of a key says in which scope an id counts, and how the page lies to the block. */
static uint64_t in_scope(const trace_request *request, uint64_t how)
{
    return (uint64_t)request->scope << 33 | how;
}

static void keys_within_blocks(const trace_request *request, uint32_t n, uint32_t per_block, kvk_key *keys)
{
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (kvk_key){.lo = request->blocks[i / per_block], .hi = in_scope(request, i % per_block)};
}

static void keys_over_blocks(const trace_request *request, uint32_t n, uint32_t per_page, kvk_key *keys)
{
    const uint64_t over = (uint64_t)1 << 32; /* so that a page of blocks is never taken for one within a block */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t count = min_u32(per_page, request->n_blocks - i * per_page);
        keys[i] = (kvk_key){.lo = request->blocks[i * per_page + count - 1], .hi = in_scope(request, over + count)};
    }
}

void repage_keys(const trace_request *request, uint32_t page_tokens, kvk_key *keys)
{
    uint32_t n = repage_count(request, page_tokens);
    if (request->block_tokens % page_tokens == 0)
        keys_within_blocks(request, n, request->block_tokens / page_tokens, keys);
    else
        keys_over_blocks(request, n, page_tokens / request->block_tokens, keys);
}

kvk_key repage_unnamed(uint64_t number)
{
    return (kvk_key){number, UINT64_MAX}; /* beyond every scope */
}

static int make_room(repage_keys_buffer *b, size_t n)
{
    if (b->keys && n <= b->cap)
        return 0;
    kvk_key *grown = realloc(b->keys, (2 * n + 1) * sizeof *grown);
    if (!grown)
        return KVK_ENOMEM;
    b->keys = grown;
    b->cap = 2 * n + 1;
    return 0;
}

int repage_keys_fill(repage_keys_buffer *b, const trace_request *request, uint32_t page_tokens, uint32_t n)
{
    uint32_t named = request ? repage_count(request, page_tokens) : 0;
    int rc = make_room(b, max_u32(n, named));
    if (rc < 0)
        return rc;
    if (request)
        repage_keys(request, page_tokens, b->keys);
    for (uint32_t i = named; i < n; i++)
        b->keys[i] = repage_unnamed(b->unnamed++);
    return 0;
}

void repage_keys_close(repage_keys_buffer *b)
{
    free(b->keys);
}
