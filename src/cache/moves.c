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
    return memory_grow(&c->memory, &q->moves, &q->cap, (uint64_t)q->end + n, sizeof *q->moves);
}

void moves_push(kvk_cache *c, kvk_move move)
{
    c->moves.moves[c->moves.end++] = move;
}

int kvk_moves_take(kvk_cache *cache, kvk_move *moves, uint32_t cap)
{
    if (!cache || (cap && !moves))
        return KVK_EINVAL;
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

static int move_is_valid(const kvk_move *m, const kvk_host_pages *groups, uint32_t n_groups)
{
    if (m->group >= n_groups || m->kind > KVK_MOVE_ZERO)
        return 0;
    const kvk_host_pages *p = &groups[m->group];
    return m->src < p->n_pages && m->dst < p->n_pages && m->n_tokens >= 1 && m->n_tokens <= p->page_tokens;
}

static char *run_of(const kvk_host_pages *p, uint32_t page, uint32_t row)
{
    return (char *)p->base + page * p->page_stride + row * p->row_stride;
}

static void run_move(const kvk_move *m, const kvk_host_pages *p)
{
    size_t bytes = (size_t)m->n_tokens * p->token_bytes;
    for (uint32_t row = 0; row < p->rows; row++) {
        if (m->kind == KVK_MOVE_ZERO)
            memset(run_of(p, m->dst, row), 0, bytes);
        else
            memmove(run_of(p, m->dst, row), run_of(p, m->src, row), bytes);
    }
}

int kvk_moves_run_host(const kvk_move *moves, uint32_t n, const kvk_host_pages *groups, uint32_t n_groups)
{
    if ((n && !moves) || !groups || n > INT32_MAX)
        return KVK_EINVAL;
    for (uint32_t g = 0; g < n_groups; g++)
        if (!pages_are_valid(&groups[g]))
            return KVK_EINVAL;
    for (uint32_t i = 0; i < n; i++)
        if (!move_is_valid(&moves[i], groups, n_groups))
            return KVK_EINVAL;
    for (uint32_t i = 0; i < n; i++)
        run_move(&moves[i], &groups[moves[i].group]);
    return (int)n;
}
