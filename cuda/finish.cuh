/* cuda/finish.cuh: from the sums of warps to o and lse. What a part gives is kept as sums, o not divided by them, and
 * the block that ends last of an entry's tile and KV head adds up the parts, in their order: so the same work gives the
 * same bits, whichever block that is. */
#ifndef KVK_CUDA_FINISH_CUH
#define KVK_CUDA_FINISH_CUH

#include "cuda/work.cuh"

/* What a lane has of its warp's sums: of rows lane / 4 and 8 + lane / 4. */
template <class S> struct warp_sums {
    float largest[2];
    float sum[2];      /* of this lane's tokens only */
    float page_sum[2]; /* the same of the page that is not over yet */
    float o[S::fragments][4];
};

/* Four dimensions of a row, and the sums of its powers. */
struct row_part {
    uint32_t row;
    int dimension;
    float2 total;
    float o[4];
};

KVK_DEVICE void add_part(row_part *r, float2 total, const float o[4])
{
    float2 both = softmax_merge(r->total, total);
    float before = softmax_factor(r->total.x, both.x), factor = softmax_factor(total.x, both.x);
#pragma unroll
    for (int i = 0; i < 4; i++)
        r->o[i] = r->o[i] * before + o[i] * factor;
    r->total = both;
}

/* ---- results */

KVK_DEVICE void store_lse(const decode_parameters &p, uint64_t query_head, float lse)
{
    uint64_t layer = static_cast<uint64_t>(p.mass_layer) * p.plan.n_queries * p.plan.n_heads;
    p.plan.lse[layer + query_head] = lse;
    if (p.out.lse)
        p.out.lse[query_head] = lse;
}

KVK_DEVICE void store_o(const decode_parameters &p, uint64_t query, uint32_t head, int dimension, const float o[4])
{
    if (p.plan.o && p.out.near)
        for (int i = 0; i < 4; i++)
            p.plan.o[(query * p.plan.n_heads + head) * p.plan.head_size + dimension + i] = o[i];
    if (!p.out.o)
        return;
    uint64_t at = (query * p.out.o_token_stride + head * p.out.o_head_stride) * layout_row_bytes(p.out.o_dtype, 1);
    for (int i = 0; i < 4; i++)
        store_element(static_cast<char *>(p.out.o) + at, p.out.o_dtype, dimension + i, o[i]);
}

/* A sink takes part in the sum, and has no value. */
KVK_DEVICE void store_row_part(const decode_parameters &p, const block_work &work, row_part *r)
{
    uint64_t query = work.entry.first_query + row_query(p, work, r->row);
    uint32_t head = row_head(p, work, r->row);
    if (p.attention.sinks) {
        float2 sink = {p.attention.sinks[head], 1};
        const float none[4] = {};
        add_part(r, sink, none);
    }
    float factor = r->total.y > 0 ? p.o_scale / r->total.y : 0;
#pragma unroll
    for (int i = 0; i < 4; i++)
        r->o[i] *= factor;
    store_o(p, query, head, r->dimension, r->o);
    if (r->dimension == 0)
        store_lse(p, query * p.plan.n_heads + head, softmax_log(r->total.x, r->total.y));
}

/* ---- warps */

/* Leaves a warp's sums in shared memory. */
template <class S> KVK_DEVICE void share_sums(const warp_sums<S> &w)
{
    unsigned char *shared = shared_memory();
    uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float2 *sums = reinterpret_cast<float2 *>(shared + S::sums_at) + warp * 16;
    float *o = reinterpret_cast<float *>(shared + S::rings_at + warp * S::ring_bytes);
    __syncwarp(); /* for the memory model: no lane reads the stages any more that o takes the place of */
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t row = i * 8 + lane / 4;
        float2 total = {w.largest[i], sum_of_row(w.sum[i])};
        if (lane % 4 == 0)
            sums[row] = total;
#pragma unroll
        for (int f = 0; f < S::fragments; f++) {
            float *at = o + row * S::o_stride + S::dimension(f, lane % 4);
            at[0] = w.o[f][2 * i];
            at[S::elements / 2] = w.o[f][2 * i + 1];
        }
    }
}

template <class S> KVK_DEVICE void take_warps(row_part *r)
{
    const unsigned char *shared = shared_memory();
#pragma unroll
    for (int warp = 0; warp < S::warps; warp++) {
        const float *o = reinterpret_cast<const float *>(shared + S::rings_at + warp * S::ring_bytes);
        add_part(r, reinterpret_cast<const float2 *>(shared + S::sums_at)[warp * 16 + r->row],
                 o + r->row * S::o_stride + r->dimension);
    }
}

/* ---- parts */

/* The place of a part's row in part_sums, and of head_size in part_o. */
KVK_DEVICE uint64_t part_row(const decode_parameters &p, const block_work &work, uint32_t part, uint32_t row)
{
    const entry_plan &e = work.entry;
    uint32_t item = part < e.n_whole ? e.whole_at + part * e.n_tiles : p.plan.state->n_whole_items + e.rest_at;
    return ((static_cast<uint64_t>(item) + work.tile) * p.plan.n_kv_heads + work.kv_head) * p.plan.tile_rows + row;
}

KVK_DEVICE void leave_part(const decode_parameters &p, const block_work &work, const row_part &r)
{
    uint64_t at = part_row(p, work, work.part, r.row);
    if (r.dimension == 0)
        p.plan.part_sums[at] = r.total;
    for (int i = 0; i < 4; i++)
        p.plan.part_o[at * p.plan.head_size + r.dimension + i] = r.o[i];
}

KVK_DEVICE void take_parts(const decode_parameters &p, const block_work &work, row_part *r)
{
#pragma unroll 4
    for (uint32_t part = 0; part < work.entry.n_parts; part++) {
        uint64_t at = part_row(p, work, part, r->row);
        float o[4];
        float2 total = load_from_others(p.plan.part_sums + at);
        load_from_others(p.plan.part_o + at * p.plan.head_size + r->dimension, o);
        add_part(r, total, o);
    }
}

/* Whether this block is the last of the parts; what the others left can then be read. */
template <class S> KVK_DEVICE bool ends_last(const decode_parameters &p, const block_work &work)
{
    volatile uint32_t *is_last = reinterpret_cast<uint32_t *>(shared_memory() + S::flag_at);
    uint32_t *ticket = p.plan.tickets + (work.entry.tile_at + work.tile) * p.plan.n_kv_heads + work.kv_head;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *is_last = atomicAdd(ticket, 1u) == work.entry.n_parts - 1;
        if (*is_last)
            *ticket = 0; /* for the next layer */
    }
    __syncthreads();
    __threadfence();
    return *is_last;
}

/* The nth four dimensions of a block's rows, nothing in them. */
template <class S> KVK_DEVICE row_part begin_row_part(int nth)
{
    constexpr int fours = S::head_size / 4;
    row_part r = {static_cast<uint32_t>(nth / fours), nth % fours * 4, {MINUS_INFINITY, 0}, {}};
    return r;
}

template <class S> KVK_DEVICE void finish(const decode_parameters &p, const block_work &work)
{
    int n = work.n_rows * (S::head_size / 4);
    for (int i = threadIdx.x; i < n; i += S::threads) {
        row_part r = begin_row_part<S>(i);
        take_warps<S>(&r);
        if (work.entry.n_parts == 1)
            store_row_part(p, work, &r);
        else
            leave_part(p, work, r);
    }
    if (work.entry.n_parts == 1 || !ends_last<S>(p, work))
        return;
    for (int i = threadIdx.x; i < n; i += S::threads) {
        row_part r = begin_row_part<S>(i);
        take_parts(p, work, &r);
        store_row_part(p, work, &r);
    }
}

#endif
