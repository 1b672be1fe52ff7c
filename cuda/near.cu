/* cuda/near.cu: what a page did to a head's output, for queries in the page and in the next one.
 *
 * A warp takes a query, a head and one of the two pages, and computes the page's weights again, now that lse is known:
 * two pages of an entry in a decode step. Several queries of a row raise the same place, in any order: a maximum has
 * none, and floats that are not negative compare like their bits. */
#include "cuda/near.cuh"

#include "cuda/launch.cuh"
#include "cuda/softmax.cuh"

namespace
{

const uint32_t WARPS = 4;
const int MOST_OF_LANE = 8; /* dimensions of a lane: heads have 256 at most */

/* What a warp works on. */
struct near_work {
    entry_plan entry;
    uint32_t query, head; /* query: of the entry */
    uint32_t page;        /* in the entry's list */
    int32_t position;     /* of its first token */
};

/* The entry with a query of the batch. */
KVK_DEVICE uint32_t find_entry(const int32_t *query_indptr, uint32_t n, int32_t query)
{
    uint32_t low = 0, high = n;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (query_indptr[middle] <= query)
            low = middle;
        else
            high = middle;
    }
    return low;
}

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

/* False if there is nothing for this warp: no such query, or its page is not listed. */
KVK_DEVICE bool find_near_work(const decode_parameters &p, near_work *w)
{
    uint32_t index = blockIdx.x * WARPS + threadIdx.x / 32, head_query = index / 2;
    uint32_t query = head_query / p.plan.n_heads, n = p.attention.n;
    if (p.plan.state->status != 0 || query >= static_cast<uint32_t>(p.attention.query_indptr[n]))
        return false;
    w->entry = p.plan.entries[find_entry(p.attention.query_indptr, n, static_cast<int32_t>(query))];
    w->query = query - w->entry.first_query;
    w->head = head_query % p.plan.n_heads;
    int32_t size = static_cast<int32_t>(p.plan.page_tokens);
    w->position = query_position(w->entry, w->query) / size * size - static_cast<int32_t>(index % 2) * size;
    w->page = find_page(p, w->entry, w->position);
    return w->position >= 0 && w->page < w->entry.n_pages && page_position(p, w->entry, w->page) == w->position;
}

KVK_DEVICE float sum_of_warp(float x)
{
    for (uint32_t distance = 16; distance > 0; distance /= 2)
        x += __shfl_xor_sync(ALL_LANES, x, distance);
    return x;
}

/* A row of K or V, or of queries: dimensions lane, lane + 32, ... */
KVK_DEVICE void load_lane(const void *row, uint32_t dtype, uint32_t size, float out[MOST_OF_LANE])
{
#pragma unroll
    for (int i = 0; i < MOST_OF_LANE; i++) {
        uint32_t d = i * 32 + threadIdx.x % 32;
        out[i] = d < size ? load_element(row, dtype, d) : 0.0f;
    }
}

/* Returns the scale of a row: e4m3's are in the parameters already. */
KVK_DEVICE float load_token(const decode_parameters &p, const near_work &w, uint32_t value, uint32_t token,
                            float out[MOST_OF_LANE])
{
    uint32_t id = p.attention.pages[w.entry.first_page + w.page], kv_head = w.head / p.plan.group;
    uint64_t at = layout_row(&p.kv, id, p.attention.layer, value, kv_head, token);
    load_lane(static_cast<const unsigned char *>(p.kv.base) + at, p.kv.dtype, p.plan.head_size, out);
    return dtype_has_scales(p.kv.dtype) ? p.kv.scales[layout_scale(&p.kv, id, p.attention.layer, value, kv_head, token)]
                                        : 1.0f;
}

/* The exponent of a token's weight. */
KVK_DEVICE float score(const decode_parameters &p, const near_work &w, const float query[MOST_OF_LANE], uint32_t token)
{
    float key[MOST_OF_LANE], scale = load_token(p, w, 0, token, key), x = 0;
#pragma unroll
    for (int i = 0; i < MOST_OF_LANE; i++)
        x += query[i] * key[i];
    x = scale_score(p, sum_of_warp(x) * scale);
    if (p.attention.slopes)
        x += p.attention.slopes[w.head] *
             static_cast<float>(w.position + static_cast<int32_t>(token) - query_position(w.entry, w.query));
    return x;
}

/* The page's mass, and in u the sum of weight * v. */
KVK_DEVICE float sum_page(const decode_parameters &p, const near_work &w, float lse, float u[MOST_OF_LANE])
{
    const kvk_rows &q = p.attention.q;
    uint64_t query_at =
        (w.entry.first_query + static_cast<uint64_t>(w.query)) * q.token_stride + w.head * q.head_stride;
    int32_t at = query_position(w.entry, w.query);
    float query[MOST_OF_LANE], mass = 0;
    load_lane(static_cast<const uint16_t *>(q.data) + query_at, q.dtype, p.plan.head_size, query);
    for (uint32_t token = 0; token < p.plan.page_tokens; token++) {
        int32_t position = w.position + static_cast<int32_t>(token);
        if (position > at || position <= at - p.window)
            continue;
        float value[MOST_OF_LANE], weight = softmax_factor(score(p, w, query, token), lse);
        float scale = load_token(p, w, 1, token, value) * p.o_scale;
        mass += weight;
#pragma unroll
        for (int i = 0; i < MOST_OF_LANE; i++)
            u[i] += weight * scale * value[i];
    }
    return mass;
}

/* |m * o - u| / max(1 - m, 1e-3) */
KVK_DEVICE float removal_error(const decode_parameters &p, const near_work &w, float mass, const float u[MOST_OF_LANE])
{
    uint64_t query_head = (w.entry.first_query + static_cast<uint64_t>(w.query)) * p.plan.n_heads + w.head;
    float o[MOST_OF_LANE], squares = 0;
    load_lane(p.plan.o + query_head * p.plan.head_size, KVK_F32, p.plan.head_size, o);
#pragma unroll
    for (int i = 0; i < MOST_OF_LANE; i++)
        squares += (mass * o[i] - u[i]) * (mass * o[i] - u[i]);
    return sqrtf(sum_of_warp(squares)) / fmaxf(1.0f - mass, 1e-3f);
}

KVK_DEVICE void raise(const decode_parameters &p, const near_work &w, float x)
{
    const entry_plan &e = w.entry;
    uint64_t row = e.near_at + (e.n_rows == 1 ? 0 : static_cast<uint64_t>(w.query) * (e.n_pages - e.near_from));
    uint64_t at = ((row + w.page - e.near_from) * p.out.near_layers + p.out.near_layer) * p.plan.n_heads + w.head;
    atomicMax(reinterpret_cast<unsigned *>(p.out.near + at), float_bits(x));
}

__global__ void __launch_bounds__(WARPS * 32, 4) near_peaks(const __grid_constant__ decode_parameters p)
{
    near_work w;
    if (!find_near_work(p, &w))
        return;
    uint64_t query_head = (w.entry.first_query + static_cast<uint64_t>(w.query)) * p.plan.n_heads + w.head;
    float lse = p.plan.lse[static_cast<uint64_t>(p.mass_layer) * p.plan.n_queries * p.plan.n_heads + query_head];
    float u[MOST_OF_LANE] = {}, mass = sum_page(p, w, lse, u);
    float x = p.out.near_kind == KVK_NEAR_ERROR ? removal_error(p, w, mass, u) : mass;
    if (threadIdx.x % 32 == 0)
        raise(p, w, x);
}

} // namespace

int launch_near(const decode_parameters &p, void *stream)
{
    uint64_t warps = static_cast<uint64_t>(p.plan.n_queries) * p.plan.n_heads * 2;
    uint64_t blocks = (warps + WARPS - 1) / WARPS;
    if (blocks > INT32_MAX)
        return KVK_EINVAL;
    launch_shape shape = {static_cast<uint32_t>(blocks), WARPS * 32, 0};
    return launch(near_peaks, shape, p, stream);
}
