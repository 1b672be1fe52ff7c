/* cuda/work.cuh: what a block of decode works on, and where its rows come from. */
#ifndef KVK_CUDA_WORK_CUH
#define KVK_CUDA_WORK_CUH

#include "cuda/element.cuh"
#include "cuda/plan.cuh"
#include "cuda/softmax.cuh"

#define NO_PLACE UINT64_MAX

struct decode_parameters {
    plan_view plan;
    kvk_kv kv;
    kvk_attention attention; /* kv is not the device's to read */
    kvk_attention_out out;
    uint32_t mass_layer, has_masses;
    uint32_t near_blocks; /* as in plan; 0: this launch is for o and lse */
    int32_t window;       /* INT32_MAX: all tokens */
    /* A score is q . k * score_scale; or, with a cap, score_cap * tanh(that). */
    float score_scale, score_cap;
    float o_scale; /* what a stored V of 1 stands for */
};

/* A score from q . k. */
KVK_DEVICE float scale_score(const decode_parameters &p, float x)
{
    x *= p.score_scale;
    if (p.score_cap != 0) /* tanh(x) = 1 - 2 / (e^2x + 1), right for infinite powers too */
        x = p.score_cap * (1.0f - 2.0f / (exp2_fast(2.0f * LOG2_E * x) + 1.0f));
    return x;
}

/* The sizes of a kernel: M what it computes with, KV how K and V are stored, SIZE of a head. */
template <class M, class KV, int SIZE> struct decode_shape {
    typedef M math;
    static constexpr int head_size = SIZE;
    static constexpr int elements = KV::elements; /* of K or V in 32 bits */
    static constexpr bool has_scales = KV::has_scales;
    static constexpr int segments = SIZE / (4 * elements);      /* of 16 bytes, in a row */
    static constexpr int step_segments = elements == 2 ? 2 : 1; /* for 16 dimensions at least */
    static constexpr int fragments = SIZE / 8;
    static constexpr int warps = decode_warps(SIZE);
    static constexpr int threads = 32 * warps;

    /* Rows of a stage are an odd number of segments apart, so that eight of them do not meet in the same banks. */
    static constexpr int row_stride = (segments | 1) * 16;
    static constexpr int positions_at = 16 * row_stride;
    static constexpr int scales_at = positions_at + 64;
    static constexpr int stage_bytes = scales_at + (has_scales ? 64 : 0);
    /* Stages of a warp: what 56 KB hold, so that several blocks fit in a processor, but 5 to 8. */
    static constexpr int stages_that_fit = 56 * 1024 / (warps * stage_bytes);
    static constexpr int stages = stages_that_fit < 5 ? 5 : stages_that_fit > 8 ? 8 : stages_that_fit;
    static constexpr int ring_bytes = stages * stage_bytes;

    /* At the end a warp's o takes the place of its stages. */
    static constexpr int o_stride = SIZE + 4;
    static_assert(16 * o_stride * 4 <= ring_bytes, "stages too small for o");

    /* Shared memory: queries, sums of each warp's rows, a flag, stages. */
    static constexpr int sums_at = SIZE * 32;
    static constexpr int flag_at = sums_at + warps * 16 * 8;
    static constexpr int rings_at = flag_at + 16;
    static constexpr int shared_bytes = rings_at + warps * ring_bytes;
    static_assert(shared_bytes <= 99 * 1024, "more than a block can have on every device");

    /* Blocks of a processor: what its shared memory (227 KB on a Hopper) has room for, but so few that their registers
     * suffice without spills. */
    static constexpr int blocks_of_memory = 227 * 1024 / (shared_bytes + 1024);
    static constexpr int blocks_of_registers = SIZE <= 64 ? 4 : 3;
    static constexpr int blocks = blocks_of_memory < blocks_of_registers ? blocks_of_memory : blocks_of_registers;

    KVK_DEVICE static void unpack(uint32_t word, uint32_t pairs[elements / 2])
    {
        KV::unpack(word, pairs);
    }

    /* The first dimension of the pair that lane % 4 == `quarter` has of a fragment of 8 dimensions, of queries, K and o
     * alike; the second one is elements / 2 further. */
    KVK_DEVICE static int dimension(int fragment, int quarter)
    {
        int pairs = elements / 2;
        return fragment / pairs * 4 * elements + quarter * elements + fragment % pairs;
    }
};

/* An item for one KV head. */
struct block_work {
    entry_plan entry;
    uint32_t kv_head, tile, part;
    uint32_t n_rows;               /* of the tile */
    uint32_t first_page, end;      /* of the part, in the entry's list */
    int32_t newest, before_oldest; /* positions that no row of the tile sees are after or at these */
};

KVK_DEVICE uint32_t row_query(const decode_parameters &p, const block_work &work, uint32_t row)
{
    return (work.tile * TILE_ROWS + row) / p.plan.group;
}

KVK_DEVICE uint32_t row_head(const decode_parameters &p, const block_work &work, uint32_t row)
{
    return work.kv_head * p.plan.group + (work.tile * TILE_ROWS + row) % p.plan.group;
}

KVK_DEVICE int32_t query_position(const entry_plan &e, uint32_t query)
{
    return static_cast<int32_t>(e.n_tokens - e.n_queries + query);
}

KVK_DEVICE uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

KVK_DEVICE void set_tile(const decode_parameters &p, uint32_t entry, uint32_t tile, block_work *work)
{
    work->entry = p.plan.entries[entry];
    work->kv_head = blockIdx.x % p.plan.n_kv_heads;
    work->tile = tile;
    work->n_rows = least(work->entry.n_queries * p.plan.group - tile * TILE_ROWS, TILE_ROWS);
    work->newest = query_position(work->entry, row_query(p, *work, work->n_rows - 1));
    work->before_oldest = query_position(work->entry, row_query(p, *work, 0)) - p.window;
    work->before_oldest = work->before_oldest < -1 ? -1 : work->before_oldest;
}

/* False where there is no item for this block. */
KVK_DEVICE bool find_work(const decode_parameters &p, block_work *work)
{
    const plan_state &state = *p.plan.state;
    uint32_t index = blockIdx.x / p.plan.n_kv_heads;
    if (index >= state.n_items)
        return false;
    work_item item = p.plan.items[index];
    set_tile(p, item.entry, item.tile, work);
    work->part = item.part;
    work->first_page = item.part * state.part_pages;
    work->end = least(work->first_page + state.part_pages, work->entry.n_pages);
    return true;
}

/* ---- queries */

KVK_DEVICE const uint16_t *query_row(const decode_parameters &p, const block_work &work, uint32_t row)
{
    const kvk_rows &q = p.attention.q;
    uint64_t query = work.entry.first_query + row_query(p, work, row);
    return static_cast<const uint16_t *>(q.data) + query * q.token_stride + row_head(p, work, row) * q.head_stride;
}

/* Two elements of a row, zeroes past the tile's rows. */
template <class S>
KVK_DEVICE uint32_t query_pair(const decode_parameters &p, const block_work &work, uint32_t row, int dimension)
{
    if (row >= work.n_rows)
        return 0;
    const uint16_t *from = query_row(p, work, row) + dimension;
    return static_cast<uint32_t>(from[S::elements / 2]) << 16 | from[0];
}

/* Queries in the order in which lanes need them: [step of 16 dimensions][lane]. */
template <class S> KVK_DEVICE void load_queries(const decode_parameters &p, const block_work &work, uint4 *queries)
{
    for (int i = threadIdx.x; i < S::head_size * 2; i += S::threads) {
        int lane = i % 32, row = lane / 4;
        int low = S::dimension(i / 32 * 2, lane % 4), high = S::dimension(i / 32 * 2 + 1, lane % 4);
        uint4 a = {query_pair<S>(p, work, row, low), query_pair<S>(p, work, row + 8, low),
                   query_pair<S>(p, work, row, high), query_pair<S>(p, work, row + 8, high)};
        queries[i] = a;
    }
}

/* ---- rows of a lane: lane / 4 and 8 + lane / 4 of the tile */

struct lane_rows {
    int32_t newest[2], before_oldest[2]; /* positions of tokens that the row sees are at most, and above */
    float slope[2];
    uint64_t mass_at[2]; /* in page_lse, of the row's query and head and the entry's first page */
};

KVK_DEVICE lane_rows find_lane_rows(const decode_parameters &p, const block_work &work)
{
    lane_rows rows;
    uint64_t layer_head = static_cast<uint64_t>(p.mass_layer) * p.plan.n_kv_heads + work.kv_head;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t row = i * 8 + threadIdx.x % 32 / 4, query = row_query(p, work, row);
        bool is_row = row < work.n_rows;
        rows.newest[i] = is_row ? query_position(work.entry, query) : -1;
        rows.before_oldest[i] = rows.newest[i] - p.window;
        rows.slope[i] = is_row && p.attention.slopes ? p.attention.slopes[row_head(p, work, row)] : 0.0f;
        uint64_t pair = work.entry.mass_at + static_cast<uint64_t>(query) * work.entry.n_pages;
        rows.mass_at[i] =
            is_row ? (layer_head * p.plan.n_masses + pair) * p.plan.group + (work.tile * TILE_ROWS + row) % p.plan.group
                   : NO_PLACE;
    }
    return rows;
}

/* ---- pages of a warp */

/* Where a warp is in its pages: a strip of 16 tokens of one page, or of the small pages from this one on. */
struct warp_walk {
    uint32_t page, token, end;

    KVK_DEVICE void next(uint32_t page_tokens)
    {
        token += STRIP_TOKENS;
        if (token >= page_tokens) {
            page += page_tokens < STRIP_TOKENS ? STRIP_TOKENS / page_tokens : 1;
            token = 0;
        }
    }
};

/* Warps share a part's pages evenly, in whole strips. */
template <class S> KVK_DEVICE warp_walk begin_walk(const decode_parameters &p, const block_work &work)
{
    uint32_t unit = p.plan.share_pages, n = (work.end - work.first_page + unit - 1) / unit * (unit / S::warps);
    uint32_t first = work.first_page + threadIdx.x / 32 * n;
    warp_walk walk = {first, 0, least(first + n, work.end)};
    return walk;
}

#endif
