/* cuda/feed.cuh: a warp's K and V on their way into shared memory.
 *
 * Each warp has a ring of stages. A stage takes 16 rows of K or of V: K of the first strip, V of the first strip, K of
 * the second, ... All stages but one are under way while that one is read. */
#ifndef KVK_CUDA_FEED_CUH
#define KVK_CUDA_FEED_CUH

#include "cuda/work.cuh"

#define NOT_SEEN INT32_MAX

/* A stage that has arrived. Rows of tokens that no query sees are zeroes. */
template <class S> struct strip_view {
    const unsigned char *at;

    KVK_DEVICE const unsigned char *row_segment(uint32_t row, int segment) const
    {
        return at + row * S::row_stride + segment * 16;
    }
    /* Of K: [16] positions of the tokens, NOT_SEEN where no query of the tile sees one. */
    KVK_DEVICE const int32_t *positions() const
    {
        return reinterpret_cast<const int32_t *>(at + S::positions_at);
    }
    KVK_DEVICE const float *scales() const
    {
        return reinterpret_cast<const float *>(at + S::scales_at);
    }
};

template <class S> class feeder
{
  public:
    KVK_DEVICE feeder(const decode_parameters &parameters, const block_work &block, const warp_walk &from)
        : p(parameters), work(block), walk(from), value(0), n_filled(0), n_read(0)
    {
        ring = shared_memory() + S::rings_at + threadIdx.x / 32 * S::ring_bytes;
        hold();
        for (int i = 0; i < S::stages - 1; i++)
            fill();
    }

    /* The next stage, once it is there. The one before it is filled again: no lane reads it any more. */
    KVK_DEVICE strip_view<S> next()
    {
        copy_wait<S::stages - 2>();
        __syncwarp();
        fill();
        strip_view<S> view = {ring + n_read * S::stage_bytes};
        n_read = n_read + 1 == S::stages ? 0 : n_read + 1;
        return view;
    }

  private:
    /* One of the strip's pages. */
    struct page_of_strip {
        const unsigned char *at; /* K of its first token */
        uint64_t scale_at;       /* in kv.scales */
        int32_t position;
        bool is_listed;
    };

    /* Each lane keeps one of the next 32 pages, so that no copy waits for a table. */
    KVK_DEVICE void hold()
    {
        uint32_t index = walk.page + threadIdx.x % 32, entry_at = work.entry.first_page + index, id = 0;
        held_from = walk.page;
        held.position = static_cast<int32_t>(index * p.plan.page_tokens);
        held.is_listed = index < walk.end;
        if (held.is_listed)
            id = static_cast<uint32_t>(p.attention.pages[entry_at]);
        if (held.is_listed && p.attention.positions)
            held.position = p.attention.positions[entry_at];
        held.at = static_cast<const unsigned char *>(p.kv.base) +
                  layout_row(&p.kv, id, p.attention.layer, 0, work.kv_head, 0);
        held.scale_at = layout_scale(&p.kv, id, p.attention.layer, 0, work.kv_head, 0);
    }

    /* All lanes of the warp ask at once, each for what it needs. */
    KVK_DEVICE page_of_strip find(uint32_t nth)
    {
        uint32_t lane = walk.page - held_from + nth;
        page_of_strip page;
        page.at = reinterpret_cast<const unsigned char *>(
            __shfl_sync(ALL_LANES, reinterpret_cast<unsigned long long>(held.at), lane));
        page.scale_at = S::has_scales ? __shfl_sync(ALL_LANES, held.scale_at, lane) : 0;
        page.position = __shfl_sync(ALL_LANES, held.position, lane);
        page.is_listed = walk.page + nth < walk.end;
        return page;
    }

    /* The token of a page that is a row of the strip. */
    KVK_DEVICE uint32_t token_of(uint32_t row) const
    {
        return walk.token + row - (row >> p.plan.strip_shift << p.plan.strip_shift);
    }

    KVK_DEVICE bool is_seen(const page_of_strip &page, uint32_t token) const
    {
        int32_t position = page.position + static_cast<int32_t>(token);
        return page.is_listed && position <= work.newest && position > work.before_oldest;
    }

    KVK_DEVICE const unsigned char *row_of(const page_of_strip &page, uint32_t token) const
    {
        return page.at + value * p.kv.value_stride +
               static_cast<uint64_t>(token) * static_cast<uint32_t>(p.kv.token_stride);
    }

    /* Rows of any pages, whatever a row's segments are. */
    KVK_DEVICE void copy_any_rows(unsigned char *stage)
    {
        uint32_t lane = threadIdx.x % 32;
#pragma unroll
        for (uint32_t i = 0; i < (16 * S::segments + 31) / 32; i++) {
            uint32_t row = (i * 32 + lane) / S::segments, segment = (i * 32 + lane) % S::segments,
                     token = token_of(row);
            page_of_strip page = find(row >> p.plan.strip_shift);
            if (row < STRIP_TOKENS)
                copy_async<16>(stage + row * S::row_stride + segment * 16, row_of(page, token) + segment * 16,
                               is_seen(page, token));
        }
    }

    /* Rows of one page, of which the warp takes some at once: each time the next ones, with few instructions. */
    KVK_DEVICE void copy_page_rows(unsigned char *stage)
    {
        constexpr int at_once = 32 / S::segments;
        int lane = threadIdx.x % 32, row = lane / S::segments, segment = lane % S::segments;
        page_of_strip page = find(0);
        int first_position = page.position + static_cast<int>(walk.token);
        int last = page.is_listed ? work.newest - first_position - row : -1;
        int before = work.before_oldest - first_position - row;
        const unsigned char *from = row_of(page, walk.token + row) + segment * 16;
        uint64_t step = p.kv.token_stride * at_once;
        stage += row * S::row_stride + segment * 16;
#pragma unroll
        for (int i = 0; i < static_cast<int>(STRIP_TOKENS); i += at_once, from += step)
            copy_async<16>(stage + i * S::row_stride, from, i <= last && i > before);
    }

    KVK_DEVICE void copy_rows(unsigned char *stage)
    {
        if constexpr (32 % S::segments == 0)
            if (p.plan.strip_shift == 4) {
                copy_page_rows(stage);
                return;
            }
        copy_any_rows(stage);
    }

    /* What comes with the rows, a lane for each: scales, and positions with K. */
    KVK_DEVICE void copy_about_rows(unsigned char *stage)
    {
        uint32_t row = threadIdx.x % STRIP_TOKENS, token = token_of(row);
        page_of_strip page = find(row >> p.plan.strip_shift);
        bool seen = is_seen(page, token);
        if (threadIdx.x % 32 >= STRIP_TOKENS)
            return;
        if constexpr (S::has_scales) {
            uint64_t at = page.scale_at + static_cast<uint64_t>(value) * p.kv.n_heads * p.kv.page_tokens + token;
            copy_async<4>(stage + S::scales_at + row * 4, p.kv.scales + at, seen);
        }
        if (value == 0)
            reinterpret_cast<int32_t *>(stage + S::positions_at)[row] =
                seen ? page.position + static_cast<int32_t>(token) : NOT_SEEN;
    }

    KVK_DEVICE void fill()
    {
        if (walk.page < walk.end) {
            unsigned char *stage = ring + n_filled * S::stage_bytes;
            copy_rows(stage);
            if (S::has_scales || value == 0)
                copy_about_rows(stage);
            if (value == 1)
                advance();
            value = 1 - value;
        }
        n_filled = n_filled + 1 == S::stages ? 0 : n_filled + 1;
        copy_commit();
    }

    KVK_DEVICE void advance()
    {
        walk.next(p.plan.page_tokens);
        if (walk.page - held_from >= 32)
            hold();
    }

    const decode_parameters &p;
    const block_work &work;
    warp_walk walk;
    uint32_t value; /* 0: K is next, 1: V */
    unsigned char *ring;
    int n_filled, n_read; /* stages, going round */
    uint32_t held_from;
    page_of_strip held; /* lane i: page held_from + i */
};

#endif
