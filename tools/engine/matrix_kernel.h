/* engine/matrix_kernel.h: some vectors times some panels. Included once by each file that is compiled for an
 * instruction set, which says how many vectors (TILE) and panels (PANELS) it takes at a time so that their sums stay in
 * registers. */
#ifndef KVKEEP_ENGINE_MATRIX_KERNEL_H
#define KVKEEP_ENGINE_MATRIX_KERNEL_H

#include "engine/matrix_panel.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* The 16 outputs of a panel; processors with shorter vectors take several of theirs. */
typedef float lanes __attribute__((vector_size(64)));
typedef int32_t words __attribute__((vector_size(64)));

/* Weights of a panel that are floats at the same time: they stay in the first level of the processor's memory. */
enum { STRETCH = 4 * MATRIX_BLOCK };

enum { AHEAD = 2048 }; /* bytes */

/* ---- Weights as floats ------------------------------------------------------------------------------------------ */

INLINE lanes lanes_at(const float *from)
{
    lanes x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE words words_at(const uint32_t *from)
{
    words x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void widen_u4(const panel_u4 *block, lanes *out)
{
    lanes scale = lanes_at(block->scale), least = lanes_at(block->least);
    for (int w = 0; w < MATRIX_BLOCK / 8; w++) {
        words packed = words_at(block->words[w]);
        for (int i = 0; i < 8; i++)
            out[8 * w + i] = __builtin_convertvector(packed >> 4 * i & 15, lanes) * scale + least;
    }
}

INLINE void widen_i8(const panel_i8 *block, lanes *out)
{
    lanes scale = lanes_at(block->scale);
    for (int w = 0; w < MATRIX_BLOCK / 4; w++) {
        words packed = words_at(block->words[w]);
        for (int i = 0; i < 4; i++)
            out[4 * w + i] = __builtin_convertvector(packed << (24 - 8 * i) >> 24, lanes) * scale;
    }
}

/* Blocks become floats faster than they come from memory, and the processor itself looks no further ahead than the end
 * of a page of 4 KB. */
INLINE void fetch_ahead(const void *block, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)block + AHEAD + i);
}

static void widen_blocks_u4(const panel_u4 *blocks, uint32_t n, lanes *out)
{
    for (uint32_t i = 0; i < n; i++, out += MATRIX_BLOCK) {
        fetch_ahead(&blocks[i], sizeof *blocks);
        widen_u4(&blocks[i], out);
    }
}

static void widen_blocks_i8(const panel_i8 *blocks, uint32_t n, lanes *out)
{
    for (uint32_t i = 0; i < n; i++, out += MATRIX_BLOCK) {
        fetch_ahead(&blocks[i], sizeof *blocks);
        widen_i8(&blocks[i], out);
    }
}

/* Weights from .. from + n - 1 of a panel: where they are, or in `room`. */
static const lanes *widen(const matrix *m, uint32_t panel, uint32_t from, uint32_t n, lanes *room)
{
    const void *weights = m->panels + panel * matrix_panel_bytes(m->kind, m->n_in);
    if (m->kind == MATRIX_F32)
        return (const lanes *)weights + from;
    if (m->kind == MATRIX_U4)
        widen_blocks_u4((const panel_u4 *)weights + from / MATRIX_BLOCK, n / MATRIX_BLOCK, room);
    else
        widen_blocks_i8((const panel_i8 *)weights + from / MATRIX_BLOCK, n / MATRIX_BLOCK, room);
    return room;
}

/* ---- Sums ------------------------------------------------------------------------------------------------------- */

/* A stretch of the weights, and of the vectors that it meets. */
typedef struct stretch {
    const lanes *weights[PANELS];
    const float *x; /* of the first vector */
    uint32_t n_in;  /* from one vector to the next */
    uint32_t n;
} stretch;

/* Adds a stretch to the sums of `rows` vectors. */
INLINE void add_rows(const stretch *s, uint32_t rows, lanes (*sums)[PANELS])
{
    lanes sum[TILE][PANELS];
    for (uint32_t r = 0; r < rows; r++)
        for (int p = 0; p < PANELS; p++)
            sum[r][p] = sums[r][p];
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t r = 0; r < rows; r++)
            for (int p = 0; p < PANELS; p++)
                sum[r][p] += s->weights[p][i] * s->x[(size_t)r * s->n_in + i];
    for (uint32_t r = 0; r < rows; r++)
        for (int p = 0; p < PANELS; p++)
            sums[r][p] = sum[r][p];
}

/* The same with a number of rows that the compiler knows. */
static void add_tile(const stretch *s, uint32_t rows, lanes (*sums)[PANELS])
{
#define CASE(n)                                                                                                        \
    case n:                                                                                                            \
        if (n <= TILE)                                                                                                 \
            add_rows(s, n, sums);                                                                                      \
        break
    switch (rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
    default:
        break;
    }
#undef CASE
}

/* Equal tiles: 13 vectors go as 7 and 6, not as 12 and 1. */
static void add_stretch(const stretch *s, uint32_t rows, lanes (*sums)[PANELS])
{
    uint32_t tiles = (rows + TILE - 1) / TILE;
    for (uint32_t i = 0, from = 0; i < tiles; i++) {
        uint32_t end = rows * (i + 1) / tiles;
        stretch part = *s;
        part.x += (size_t)from * s->n_in;
        add_tile(&part, end - from, sums + from);
        from = end;
    }
}

/* Columns of y from the sums of a panel. The last panel may be wider than the matrix. */
static void put_sums(const matrix_part *part, uint32_t p, const lanes *sum, float *y)
{
    uint32_t first = (part->panel + p) * MATRIX_PANEL, left = part->m->n_out - first;
    memcpy(y + first, sum, (left < MATRIX_PANEL ? left : MATRIX_PANEL) * sizeof *y);
}

static void multiply(const matrix_part *part, const float *x, uint32_t rows, float *y)
{
    const matrix *m = part->m;
    lanes sums[MATRIX_ROWS][PANELS], room[PANELS][STRETCH];
    memset(sums, 0, rows * sizeof *sums);
    for (uint32_t from = 0; from < m->n_in; from += STRETCH) {
        stretch s = {.x = x + from, .n_in = m->n_in, .n = m->n_in - from < STRETCH ? m->n_in - from : STRETCH};
        for (uint32_t p = 0; p < PANELS; p++) /* where there is none, the first again */
            s.weights[p] = widen(m, part->panel + (p < part->n ? p : 0), from, s.n, room[p]);
        add_stretch(&s, rows, sums);
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t p = 0; p < part->n; p++)
            put_sums(part, p, &sums[r][p], y + (size_t)r * m->n_out);
}

#endif
