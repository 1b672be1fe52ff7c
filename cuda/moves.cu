/* cuda/moves.cu: copies, swaps and zeroes of pages, in order.
 *
 * A move never changes where in a page a byte stands. So a thread takes the same few bytes of every page that the moves
 * name, and runs all moves on them, one after the other: their order is kept with no barrier at all. */
#include "cuda/launch.cuh"
#include "cuda/ptx.cuh"

#include <kvkeep/cuda.h>

namespace
{

const uint32_t THREADS = 256;

struct moves_parameters {
    const kvk_move *moves;
    uint32_t n, group, has_swap;
    kvk_host_pages pages, swap;
};

KVK_DEVICE const kvk_host_pages *side(const moves_parameters &p, const kvk_move &m, uint32_t host_kind)
{
    return m.kind == host_kind ? &p.swap : &p.pages;
}

KVK_DEVICE bool is_for(const moves_parameters &p, const kvk_move &m)
{
    if (m.group != p.group || m.kind > KVK_MOVE_SWAP_IN || (m.kind >= KVK_MOVE_SWAP_OUT && !p.has_swap))
        return false;
    return m.src < side(p, m, KVK_MOVE_SWAP_IN)->n_pages && m.dst < side(p, m, KVK_MOVE_SWAP_OUT)->n_pages &&
           m.n_tokens <= p.pages.page_tokens;
}

template <class T> KVK_DEVICE T *place(const kvk_host_pages *pages, uint32_t page, uint64_t row, uint64_t byte)
{
    unsigned char *base = static_cast<unsigned char *>(pages->base);
    return reinterpret_cast<T *>(base + page * pages->page_stride + row * pages->row_stride + byte);
}

template <class T> __global__ void __launch_bounds__(THREADS) run_moves(moves_parameters p)
{
    uint64_t index = static_cast<uint64_t>(blockIdx.x) * THREADS + threadIdx.x;
    uint64_t units = static_cast<uint64_t>(p.pages.page_tokens) * p.pages.token_bytes / sizeof(T);
    uint64_t row = index / units, byte = index % units * sizeof(T);
    if (row >= p.pages.rows)
        return;
    for (uint32_t i = 0; i < p.n; i++) {
        kvk_move m = p.moves[i];
        if (!is_for(p, m) || byte >= static_cast<uint64_t>(m.n_tokens) * p.pages.token_bytes)
            continue;
        T unit = {};
        if (m.kind != KVK_MOVE_ZERO)
            unit = *place<T>(side(p, m, KVK_MOVE_SWAP_IN), m.src, row, byte);
        *place<T>(side(p, m, KVK_MOVE_SWAP_OUT), m.dst, row, byte) = unit;
    }
}

bool pages_are_valid(const kvk_host_pages &p)
{
    return p.base && p.rows && p.token_bytes && p.page_tokens && p.n_pages;
}

bool memory_is_valid(const kvk_host_memory *where)
{
    if (!where || !where->groups)
        return false;
    for (uint32_t g = 0; g < where->n_groups; g++) {
        const kvk_host_pages &pages = where->groups[g];
        if (!pages_are_valid(pages))
            return false;
        if (where->swap &&
            (!pages_are_valid(where->swap[g]) || where->swap[g].rows != pages.rows ||
             where->swap[g].token_bytes != pages.token_bytes || where->swap[g].page_tokens != pages.page_tokens))
            return false;
    }
    return true;
}

/* What all addresses and sizes of a group's pages are multiples of, in its low bits. */
uint64_t alignment_bits(const kvk_host_pages &p)
{
    return reinterpret_cast<uint64_t>(p.base) | p.page_stride | p.row_stride | p.token_bytes;
}

template <class T> int launch_moves(const moves_parameters &p, void *stream)
{
    uint64_t units = static_cast<uint64_t>(p.pages.page_tokens) * p.pages.token_bytes / sizeof(T) * p.pages.rows;
    uint64_t blocks = (units + THREADS - 1) / THREADS;
    if (blocks > INT32_MAX)
        return KVK_EINVAL;
    launch_shape shape = {static_cast<uint32_t>(blocks), THREADS, 0};
    return launch(run_moves<T>, shape, p, stream);
}

int run_group(const moves_parameters &p, void *stream)
{
    uint64_t bits = alignment_bits(p.pages) | (p.has_swap ? alignment_bits(p.swap) : 0);
    if (bits % sizeof(uint4) == 0)
        return launch_moves<uint4>(p, stream);
    return bits % sizeof(uint32_t) == 0 ? launch_moves<uint32_t>(p, stream) : launch_moves<uint8_t>(p, stream);
}

} // namespace

int kvk_cuda_moves(const kvk_move *moves, uint32_t n, const kvk_host_memory *where, void *stream)
{
    if (!memory_is_valid(where) || (n && !moves))
        return KVK_EINVAL;
    int rc = 0;
    for (uint32_t g = 0; n && rc == 0 && g < where->n_groups; g++) {
        moves_parameters p = {moves, n, g, where->swap != NULL, where->groups[g], {}};
        if (where->swap)
            p.swap = where->swap[g];
        rc = run_group(p, stream);
    }
    return rc;
}
