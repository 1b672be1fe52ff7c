/* cuda/plan.cuh: how a batch's work is divided, and the workspace.
 *
 * The queries of an entry times the heads of a KV head's group are rows, query after query; 16 of them are a tile, what
 * a matrix unit takes at once. The pages of an entry are divided in parts of the same number of pages, the last one of
 * what is left. A work item is a tile of an entry and a part; a block of the device does one for one KV head. Whole
 * parts come first in the list and the rests after them, so that the last blocks to begin are short ones. */
#ifndef KVK_CUDA_PLAN_CUH
#define KVK_CUDA_PLAN_CUH

#include "cuda/ptx.cuh"

#include <kvkeep/cuda.h>

#define TILE_ROWS 16u
#define STRIP_TOKENS 16u /* tokens that a warp takes at once */
#define MOST_PARTS 64u   /* of an entry, where their length is not prescribed: one block puts them together */

/* An entry, and where its things begin. */
struct entry_plan {
    uint32_t first_page, n_pages; /* in the lists of the batch */
    uint32_t first_query, n_queries;
    uint32_t n_tokens;
    uint32_t n_tiles;
    uint32_t n_whole, n_parts;           /* parts: whole ones, and all */
    uint32_t tile_at, whole_at, rest_at; /* tiles; items of whole parts and of rests; of the entries before */
    uint32_t n_rows;                     /* of masses: 1, or one for each query */
    uint32_t near_from;                  /* pages from this one on have near peaks */
    uint32_t reserved;
    uint64_t mass_at; /* queries * pages of the entries before */
    uint64_t mean_at; /* rows * pages */
    uint64_t near_at; /* rows * pages with near peaks */
};

struct work_item {
    uint32_t entry, tile, part;
};

struct plan_state {
    int32_t status;
    uint32_t n_items, n_whole_items;
    uint32_t part_pages;
    uint64_t n_means; /* places of mean and peak */
};

/* What the kernels of a plan know: sizes, and the arrays of the workspace. */
struct plan_view {
    uint32_t n_entries, n_queries, n_heads, n_kv_heads, group, head_size, page_tokens;
    uint32_t strip_shift; /* token t of a strip is in the strip's page number t >> that: 4 if a page fills it */
    uint32_t n_items, n_tiles, entry_queries; /* at most */
    uint32_t tile_rows;                       /* rows of a tile that can be in use */
    uint32_t share_pages;                     /* a part has a multiple of these */
    uint32_t part_pages;                      /* prescribed, or 0 */
    uint32_t least_pages;                     /* of a part, where it is not */
    uint32_t wanted_items;                    /* that fill the device, for one KV head */
    uint32_t near_blocks;                     /* for a tile and KV head: a warp for each page it has near peaks of */
    uint64_t n_pages, n_masses;

    plan_state *state;
    entry_plan *entries; /* [n_entries] */
    work_item *items;    /* [n_items] */
    uint32_t *tickets;   /* [n_tiles][n_kv_heads] parts that are done */
    float2 *part_sums;   /* [n_items][n_kv_heads][tile_rows] */
    float *part_o;       /* the same [head_size], not divided by the sums */
    float *lse;          /* [layers][n_queries][n_heads] one layer at least */
    float *page_lse;     /* [layers][n_kv_heads][n_masses][group] an entry's masses query after query */
    float *o;            /* [n_queries][n_heads][head_size] in full precision, for near peaks */
};

/* Warps of a block of decode. */
__host__ __device__ constexpr uint32_t decode_warps(uint32_t head_size)
{
    return head_size > 128 ? 2 : 4;
}

/* The last of n entries, n > 0, that begins at `at` or before it. */
template <class T>
KVK_DEVICE uint32_t find_entry(const entry_plan *entries, uint32_t n, T entry_plan::*begin, uint64_t at)
{
    uint32_t low = 0, high = n;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (entries[middle].*begin <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Makes the view of a plan, with its arrays in the plan's workspace. Returns the bytes, KVK_EINVAL or KVK_EDEVICE. */
int64_t plan_open(const kvk_cuda_plan *plan, plan_view *view);

/* The same for a call that uses the workspace, which must be there: 0 or an error. */
int plan_use(const kvk_cuda_plan *plan, plan_view *view);

/* Whether the parts of `attention` that the host knows are valid, and as the plan has them. */
bool attention_fits(const kvk_cuda_plan *plan, const kvk_attention *attention);

#endif
