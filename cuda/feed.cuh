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
    /* A token of the strip. */
    struct source {
        uint32_t page, token;
        int32_t position;
        bool is_seen;
    };

    /* Each lane keeps one of the next 32 pages, so that no copy waits for a table. */
    KVK_DEVICE void hold()
    {
        uint32_t index = walk.page + threadIdx.x % 32, at = work.entry.first_page + index;
        held_from = walk.page;
        page = index < walk.end ? static_cast<uint32_t>(p.attention.pages[at]) : 0;
        position = static_cast<int32_t>(index * p.plan.page_tokens);
        if (p.attention.positions)
            position = index < walk.end ? p.attention.positions[at] : 0;
    }

    /* All lanes of the warp ask at once. */
    KVK_DEVICE source find(uint32_t row)
    {
        uint32_t nth = row >> p.plan.strip_shift, lane = walk.page - held_from + nth;
        source s;
        s.page = __shfl_sync(ALL_LANES, page, lane);
        s.token = walk.token + row - (nth << p.plan.strip_shift);
        s.position = __shfl_sync(ALL_LANES, position, lane) + static_cast<int32_t>(s.token);
        s.is_seen = walk.page + nth < walk.end && s.position <= work.newest && s.position > work.before_oldest;
        return s;
    }

    KVK_DEVICE void copy_rows(unsigned char *stage)
    {
        uint32_t lane = threadIdx.x % 32;
#pragma unroll
        for (uint32_t i = 0; i < (16 * S::segments + 31) / 32; i++) {
            uint32_t row = (i * 32 + lane) / S::segments, segment = (i * 32 + lane) % S::segments;
            source s = find(row);
            uint64_t at = layout_row(&p.kv, s.page, p.attention.layer, value, work.kv_head, s.token);
            if (row < STRIP_TOKENS)
                copy_async<16>(stage + row * S::row_stride + segment * 16,
                               static_cast<const unsigned char *>(p.kv.base) + at + segment * 16, s.is_seen);
        }
    }

    KVK_DEVICE void copy_scales(unsigned char *stage)
    {
        uint32_t row = threadIdx.x % STRIP_TOKENS;
        source s = find(row);
        uint64_t at = layout_scale(&p.kv, s.page, p.attention.layer, value, work.kv_head, s.token);
        if (threadIdx.x % 32 < STRIP_TOKENS)
            copy_async<4>(stage + S::scales_at + row * 4, p.kv.scales + at, s.is_seen);
    }

    KVK_DEVICE void write_positions(unsigned char *stage)
    {
        source s = find(threadIdx.x % STRIP_TOKENS);
        if (threadIdx.x % 32 < STRIP_TOKENS)
            reinterpret_cast<int32_t *>(stage + S::positions_at)[threadIdx.x % 32] = s.is_seen ? s.position : NOT_SEEN;
    }

    KVK_DEVICE void fill()
    {
        if (walk.page < walk.end) {
            unsigned char *stage = ring + n_filled * S::stage_bytes;
            copy_rows(stage);
            if constexpr (S::has_scales)
                copy_scales(stage);
            if (value == 0)
                write_positions(stage);
            else
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
    int n_filled, n_read;     /* stages, going round */
    uint32_t held_from, page; /* lane i: the id of page held_from + i */
    int32_t position;         /* and the position of its first token */
};

#endif
