/* moves.c: the queue of moves, and running moves on host memory. */
#include "base/checked.h"
#include "cache/cache.h"
#include "cache/record.h"

#include <string.h>

int moves_prepare(kvk_cache *c, uint32_t n)
{
    move_queue *q = &c->moves;
    if (q->first > 0 && (uint64_t)q->end + n > q->cap) { /* an engine that always leaves some must not make it grow */
        memmove(q->moves, q->moves + q->first, (q->end - q->first) * sizeof *q->moves);
        q->end -= q->first;
        q->first = 0;
    }
    return memory_grow(c->memory, &q->moves, &q->cap, (uint64_t)q->end + n, sizeof *q->moves);
}

void moves_push(kvk_cache *c, kvk_move move)
{
    c->moves.moves[c->moves.end++] = move;
}

int kvk_moves_take(kvk_cache *cache, kvk_move *moves, uint32_t cap)
{
    if (!cache_is_ready(cache) || (cap && !moves))
        return cache_refuses(cache);
    move_queue *q = &cache->moves;
    uint32_t waiting = q->end - q->first, n = min_u32(waiting, cap);
    if (cap == 0)
        return (int)waiting;
    if (n)
        memcpy(moves, q->moves + q->first, n * sizeof *moves);
    q->first += n;
    if (q->first == q->end)
        q->first = q->end = 0;
    if (cache->recorder)
        record_moves(cache, cap, (int)n);
    return (int)n;
}

static int pages_are_valid(const kvk_host_pages *p)
{
    uint64_t rows, run, last;
    return p->base && p->rows && p->token_bytes && p->page_tokens && p->n_pages &&
           checked_mul(p->token_bytes, p->page_tokens, &run) == 0 && (p->rows == 1 || p->row_stride >= run) &&
           checked_mul(p->rows - 1, p->row_stride, &rows) == 0 && checked_add(rows, run, &rows) == 0 &&
           (p->n_pages == 1 || p->page_stride >= rows) && checked_mul(p->n_pages - 1, p->page_stride, &last) == 0 &&
           checked_add(last, rows, &last) == 0 && last <= PTRDIFF_MAX;
}

/* Where a move reads or writes. */
static const kvk_host_pages *side(const kvk_host_memory *where, const kvk_move *m, uint32_t host_kind)
{
    return m->kind == host_kind ? &where->swap[m->group] : &where->groups[m->group];
}

static int have_same_shape(const kvk_host_pages *a, const kvk_host_pages *b)
{
    return a->rows == b->rows && a->token_bytes == b->token_bytes && a->page_tokens == b->page_tokens;
}

static int move_is_valid(const kvk_move *m, const kvk_host_memory *where)
{
    if (m->group >= where->n_groups || m->kind > KVK_MOVE_SWAP_IN || (m->kind >= KVK_MOVE_SWAP_OUT && !where->swap))
        return 0;
    const kvk_host_pages *from = side(where, m, KVK_MOVE_SWAP_IN), *to = side(where, m, KVK_MOVE_SWAP_OUT);
    return m->src < from->n_pages && m->dst < to->n_pages && m->n_tokens >= 1 && m->n_tokens <= to->page_tokens &&
           (from == to || have_same_shape(from, to));
}

static char *run_of(const kvk_host_pages *p, uint32_t page, uint32_t row)
{
    return (char *)p->base + page * p->page_stride + row * p->row_stride;
}

static void run_move(const kvk_move *m, const kvk_host_memory *where)
{
    const kvk_host_pages *from = side(where, m, KVK_MOVE_SWAP_IN), *to = side(where, m, KVK_MOVE_SWAP_OUT);
    size_t bytes = (size_t)m->n_tokens * to->token_bytes;
    for (uint32_t row = 0; row < to->rows; row++) {
        if (m->kind == KVK_MOVE_ZERO)
            memset(run_of(to, m->dst, row), 0, bytes);
        else
            memmove(run_of(to, m->dst, row), run_of(from, m->src, row), bytes);
    }
}

static int memory_is_valid(const kvk_host_memory *where)
{
    if (!where || !where->groups)
        return 0;
    for (uint32_t g = 0; g < where->n_groups; g++)
        if (!pages_are_valid(&where->groups[g]) || (where->swap && !pages_are_valid(&where->swap[g])))
            return 0;
    return 1;
}

int kvk_moves_run_host(const kvk_move *moves, uint32_t n, const kvk_host_memory *where)
{
    if ((n && !moves) || n > INT32_MAX || !memory_is_valid(where))
        return KVK_EINVAL;
    for (uint32_t i = 0; i < n; i++)
        if (!move_is_valid(&moves[i], where))
            return KVK_EINVAL;
    for (uint32_t i = 0; i < n; i++)
        run_move(&moves[i], where);
    return (int)n;
}
