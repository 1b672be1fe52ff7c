/* cuda/near.cuh: what a page did to a head's output, for queries in the page and in the next one. It is the kernel of
 * decode that finds it, in a launch of its own: a block takes a tile for one KV head again, once lse and o are known,
 * and each of its warps attends to one of the pages that the tile's queries stand in, or of the pages before them. */
#ifndef KVK_CUDA_NEAR_CUH
#define KVK_CUDA_NEAR_CUH

#include "cuda/finish.cuh"

KVK_DEVICE int32_t page_position(const decode_parameters &p, const entry_plan &e, uint32_t page)
{
    return p.attention.positions ? p.attention.positions[e.first_page + page]
                                 : static_cast<int32_t>(page * p.plan.page_tokens);
}

/* The first listed page, of those with near peaks, that stands at this position of the text or after it. */
KVK_DEVICE uint32_t find_page(const decode_parameters &p, const entry_plan &e, int32_t position)
{
    uint32_t low = e.near_from, high = e.n_pages;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (page_position(p, e, middle) < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* False where there is no tile for this block. */
KVK_DEVICE bool find_near_work(const decode_parameters &p, block_work *work)
{
    uint32_t index = blockIdx.x / p.plan.n_kv_heads, tile = index / p.near_blocks;
    if (p.plan.state->status != 0 || p.attention.n == 0)
        return false;
    uint32_t entry = find_entry(p.plan.entries, p.attention.n, &entry_plan::tile_at, tile);
    tile -= p.plan.entries[entry].tile_at;
    if (tile >= p.plan.entries[entry].n_tiles)
        return false;
    set_tile(p, entry, tile, work);
    int32_t size = static_cast<int32_t>(p.plan.page_tokens),
            oldest = query_position(work->entry, row_query(p, *work, 0));
    work->part = index % p.near_blocks;
    work->first_page = find_page(p, work->entry, (oldest / size - 1) * size);
    work->end = find_page(p, work->entry, work->newest + 1);
    return true;
}

/* A warp's page; none if there are fewer. */
template <class S> KVK_DEVICE warp_walk near_walk(const block_work &work)
{
    uint32_t page = work.first_page + work.part * S::warps + threadIdx.x / 32;
    warp_walk walk = {page, 0, least(page + 1, work.end)};
    return walk;
}

/* The squares of m * o - u, u = factor * w.o, over this lane's dimensions of a row. */
template <class S> KVK_DEVICE float sum_squares(const float *o, const warp_sums<S> &w, int i, float mass, float factor)
{
    float squares = 0;
#pragma unroll
    for (int f = 0; f < S::fragments; f++) {
        int d = S::dimension(f, threadIdx.x % 4);
        float low = mass * o[d] - factor * w.o[f][2 * i],
              high = mass * o[d + S::elements / 2] - factor * w.o[f][2 * i + 1];
        squares += low * low + high * high;
    }
    return squares;
}

/* Several queries of a row of masses raise the same place, in any order: a maximum has none, and floats that are not
 * negative compare like their bits. */
KVK_DEVICE void raise(const decode_parameters &p, const entry_plan &e, uint32_t query, uint32_t page, uint32_t head,
                      float x)
{
    int32_t place = layout_near(&p.out, head);
    if (place < 0)
        return;
    uint64_t row = e.near_at + (e.n_rows == 1 ? 0 : static_cast<uint64_t>(query) * (e.n_pages - e.near_from));
    uint64_t at = (row + page - e.near_from) * p.out.near_values + static_cast<uint32_t>(place);
    atomicMax(reinterpret_cast<unsigned *>(p.out.near + at), float_bits(x));
}

/* m, or |m * o - u| / max(1 - m, 1e-3), of a row; all lanes come. */
template <class S>
KVK_DEVICE float find_near(const decode_parameters &p, uint64_t query_head, bool is_row, const warp_sums<S> &w, int i)
{
    const float *lse = p.plan.lse + static_cast<uint64_t>(p.mass_layer) * p.plan.n_queries * p.plan.n_heads;
    float factor = is_row ? softmax_factor(w.largest[i], lse[query_head]) : 0.0f, mass = factor * sum_of_row(w.sum[i]);
    if (p.out.near_kind == KVK_NEAR_MASS)
        return mass;
    float squares =
        is_row ? sum_squares(p.plan.o + query_head * p.plan.head_size, w, i, mass, factor * p.o_scale) : 0.0f;
    return sqrtf(sum_of_row(squares)) / fmaxf(1.0f - mass, 1e-3f);
}

/* Of the rows whose query stands in the warp's page or in the next one. */
template <class S>
KVK_DEVICE void raise_near(const decode_parameters &p, const block_work &work, const warp_walk &walk,
                           const warp_sums<S> &w)
{
    int32_t size = static_cast<int32_t>(p.plan.page_tokens);
    if (walk.page >= walk.end)
        return;
    int32_t number = page_position(p, work.entry, walk.page) / size;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        uint32_t row = i * 8 + threadIdx.x % 32 / 4, query = row_query(p, work, row), head = row_head(p, work, row);
        int32_t after = query_position(work.entry, query) / size - number;
        uint64_t query_head = (work.entry.first_query + static_cast<uint64_t>(query)) * p.plan.n_heads + head;
        bool is_row = row < work.n_rows && (after == 0 || after == 1);
        float x = find_near(p, query_head, is_row, w, i);
        if (is_row && threadIdx.x % 4 == 0)
            raise(p, work.entry, query, walk.page, head, x);
    }
}

#endif
