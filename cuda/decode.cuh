/* cuda/decode.cuh: attention of one layer over pages, for one or several queries of each entry.
 *
 * A block takes a work item (plan.cuh) for one KV head: 16 rows of queries and a part's pages, so K and V are read once
 * for the whole group of heads. Its warps share the pages; each works by itself, with its own copies under way
 * (feed.cuh), on strips of 16 tokens:
 *     scores = queries * K^T; weights = e^(scores - largest so far); o += weights * V
 * and writes the logarithm of the sum of a page's weights as soon as it has passed the page: what the page gets of each
 * head's attention is e^(that - lse), whatever came after. A weight that is 2^-126 of the largest or less counts as 0.
 * At the end the warps' sums are merged (finish.cuh), and the last block of an entry's parts merges the parts. For near
 * peaks the same kernel is launched again (near.cuh). */
#ifndef KVK_CUDA_DECODE_CUH
#define KVK_CUDA_DECODE_CUH

#include "cuda/feed.cuh"
#include "cuda/near.cuh"

/* The scores of a strip: [0..1] row lane / 4, [2..3] row 8 + lane / 4; tokens 2 * (lane % 4) and the next of the first
 * eight and of the second. */
struct strip_scores {
    float of[2][4];
};

/* ---- scores = queries * K^T */

template <class S> KVK_DEVICE void multiply_keys(const strip_view<S> &keys, const uint4 *queries, strip_scores *scores)
{
    constexpr int pairs = S::step_segments * S::elements / 2; /* of 16 bytes, or of the two that a step takes */
    uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int segment = 0; segment < S::segments; segment += S::step_segments) {
        uint32_t b[2][pairs];
#pragma unroll
        for (int i = 0; i < S::step_segments; i++) {
            uint32_t words[2];
            load_matrices(words, keys.row_segment(lane % 16, segment + i));
            S::unpack(words[0], &b[0][i * S::elements / 2]);
            S::unpack(words[1], &b[1][i * S::elements / 2]);
        }
#pragma unroll
        for (int i = 0; i < pairs / 2; i++) {
            uint4 a = queries[(segment * S::elements / 4 + i) * 32 + lane];
            S::math::mma(scores->of[0], a, b[0][2 * i], b[0][2 * i + 1]);
            S::math::mma(scores->of[1], a, b[1][2 * i], b[1][2 * i + 1]);
        }
    }
}

/* ---- weights */

/* Exponents; -inf where a row does not see a token. */
template <class S>
KVK_DEVICE void settle_scores(const decode_parameters &p, const lane_rows &rows, const strip_view<S> &keys,
                              strip_scores *scores)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = i / 2, token = half * 8 + 2 * (threadIdx.x % 4) + i % 2, position = keys.positions()[token];
            float x = scale_score(p, scores->of[half][i] * (S::has_scales ? keys.scales()[token] : 1.0f));
            bool is_seen = position <= rows.newest[row] && position > rows.before_oldest[row];
            if (p.attention.slopes && is_seen)
                x += rows.slope[row] * static_cast<float>(position - rows.newest[row]);
            scores->of[half][i] = is_seen ? x : MINUS_INFINITY;
        }
    }
}

template <class S> KVK_DEVICE void scale_sums(warp_sums<S> *w, const float factor[2])
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        w->sum[row] *= factor[row];
        w->page_sum[row] *= factor[row];
#pragma unroll
        for (int f = 0; f < S::fragments; f++) {
            w->o[f][2 * row] *= factor[row];
            w->o[f][2 * row + 1] *= factor[row];
        }
    }
}

/* Turns exponents into weights and adds them to the sums. */
template <class S> KVK_DEVICE void weigh(warp_sums<S> *w, strip_scores *scores)
{
    float factor[2];
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float x = fmaxf(fmaxf(scores->of[0][2 * row], scores->of[0][2 * row + 1]),
                        fmaxf(scores->of[1][2 * row], scores->of[1][2 * row + 1]));
        float largest = fmaxf(w->largest[row], largest_of_row(x));
        factor[row] = w->largest[row] == largest ? 1.0f : softmax_factor(w->largest[row], largest);
        w->largest[row] = largest;
    }
    if (__any_sync(ALL_LANES, factor[0] != 1.0f || factor[1] != 1.0f))
        scale_sums(w, factor);
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float *weight = &scores->of[i / 2][2 * row + i % 2];
            *weight = softmax_factor(*weight, w->largest[row]);
            sum += *weight;
        }
        w->sum[row] += sum;
        w->page_sum[row] += sum;
    }
}

/* ---- o += weights * V */

template <class S> KVK_DEVICE void add_values(const strip_view<S> &values, const strip_scores &weights, warp_sums<S> *w)
{
    uint32_t lane = threadIdx.x % 32, scales[2];
    const float(*x)[4] = weights.of;
    uint4 a = {S::math::pack(x[0][0], x[0][1]), S::math::pack(x[0][2], x[0][3]), S::math::pack(x[1][0], x[1][1]),
               S::math::pack(x[1][2], x[1][3])};
    if constexpr (S::has_scales) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const float *of_tokens = values.scales() + half * 8 + 2 * (lane % 4);
            scales[half] = S::math::pack(of_tokens[0], of_tokens[1]);
        }
    }
#pragma unroll
    for (int segment = 0; segment < S::segments; segment++) {
        uint32_t words[2], b[2][S::elements / 2];
        load_matrices_transposed(words, values.row_segment(lane % 16, segment));
#pragma unroll
        for (int half = 0; half < 2; half++)
            S::unpack(words[half], b[half]);
#pragma unroll
        for (int i = 0; i < S::elements / 2; i++) {
            if constexpr (S::has_scales) {
                b[0][i] = S::math::multiply(b[0][i], scales[0]);
                b[1][i] = S::math::multiply(b[1][i], scales[1]);
            }
            S::math::mma(w->o[segment * S::elements / 2 + i], a, b[0][i], b[1][i]);
        }
    }
}

/* ---- masses of pages */

KVK_DEVICE void put_mass(const decode_parameters &p, const lane_rows &rows, int row, uint32_t page, float lse)
{
    if (rows.mass_at[row] != NO_PLACE)
        p.plan.page_lse[rows.mass_at[row] + static_cast<uint64_t>(page) * p.plan.group] = lse;
}

/* Of the page that ends with this strip. */
template <class S>
KVK_DEVICE void end_page(const decode_parameters &p, const lane_rows &rows, uint32_t page, warp_sums<S> *w)
{
#pragma unroll
    for (int row = 0; row < 2; row++) {
        float sum = sum_of_row(w->page_sum[row]);
        if (threadIdx.x % 4 == 0)
            put_mass(p, rows, row, page, softmax_log(w->largest[row], sum));
        w->page_sum[row] = 0;
    }
}

/* Of the pages of 1, 2, 4 or 8 tokens that a strip is made of. */
template <class S>
KVK_DEVICE void end_small_pages(const decode_parameters &p, const lane_rows &rows, const warp_walk &walk,
                                const strip_scores &weights, const warp_sums<S> &w)
{
    uint32_t size = p.plan.page_tokens;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int row = i % 2, half = i / 2 % 2, k = i / 4;
        float sum = weights.of[half][2 * row + k];
        if (size > 1)
            sum = weights.of[half][2 * row] + weights.of[half][2 * row + 1];
        if (size > 2)
            sum += __shfl_xor_sync(ALL_LANES, sum, 1);
        if (size > 4)
            sum += __shfl_xor_sync(ALL_LANES, sum, 2);
        uint32_t token = half * 8 + 2 * (threadIdx.x % 4) + k, page = walk.page + (token >> p.plan.strip_shift);
        if (token % size == 0 && page < walk.end)
            put_mass(p, rows, row, page, softmax_log(w.largest[row], sum));
    }
}

template <class S>
KVK_DEVICE void end_pages(const decode_parameters &p, const lane_rows &rows, const warp_walk &walk,
                          const strip_scores &weights, warp_sums<S> *w)
{
    if (p.plan.page_tokens < STRIP_TOKENS) {
        end_small_pages(p, rows, walk, weights, *w);
        w->page_sum[0] = w->page_sum[1] = 0;
    } else if (walk.token + STRIP_TOKENS == p.plan.page_tokens) {
        end_page(p, rows, walk.page, w);
    }
}

/* ---- a warp's pages */

/* Whether any row of the warp sees any token of a strip. */
template <class S> KVK_DEVICE bool strip_is_seen(const strip_view<S> &keys)
{
    return __any_sync(ALL_LANES, keys.positions()[threadIdx.x % STRIP_TOKENS] != NOT_SEEN);
}

template <class S>
KVK_DEVICE void attend(const decode_parameters &p, const block_work &work, warp_walk walk, const uint4 *queries,
                       warp_sums<S> *w)
{
    lane_rows rows = find_lane_rows(p, work);
    feeder<S> feed(p, work, walk);
    for (; walk.page < walk.end; walk.next(p.plan.page_tokens)) {
        strip_scores scores = {};
        strip_view<S> keys = feed.next();
        bool is_seen = strip_is_seen(keys);
        if (is_seen) {
            multiply_keys(keys, queries, &scores);
            settle_scores(p, rows, keys, &scores);
            weigh(w, &scores);
        }
        if (p.has_masses)
            end_pages(p, rows, walk, scores, w);
        strip_view<S> values = feed.next();
        if (is_seen)
            add_values(values, scores, w);
    }
}

template <class S>
__global__ void __launch_bounds__(S::threads, S::blocks) decode(const __grid_constant__ decode_parameters p)
{
    block_work work;
    if (!(p.near_blocks ? find_near_work(p, &work) : find_work(p, &work)))
        return;
    uint4 *queries = reinterpret_cast<uint4 *>(shared_memory());
    load_queries<S>(p, work, queries);
    __syncthreads();
    warp_sums<S> sums = {{MINUS_INFINITY, MINUS_INFINITY}, {}, {}, {}};
    warp_walk walk = p.near_blocks ? near_walk<S>(work) : begin_walk<S>(p, work);
    attend<S>(p, work, walk, queries, &sums);
    if (p.near_blocks) {
        raise_near(p, work, walk, sums);
        return;
    }
    share_sums<S>(sums);
    __syncthreads();
    finish<S>(p, work);
}

#endif
