#include "engine/gguf_file.h"
#include "engine/matrix_panel.h"

#include <math.h>
#include <string.h>

matrix_kind matrix_kind_of(uint32_t type)
{
    switch (type) {
    case GGUF_Q4_0:
    case GGUF_Q4_1:
        return MATRIX_U4;
    case GGUF_Q8_0:
        return MATRIX_I8;
    default:
        return MATRIX_F32;
    }
}

uint32_t matrix_panels(const matrix *m)
{
    return (m->n_out + MATRIX_PANEL - 1) / MATRIX_PANEL;
}

uint64_t matrix_panel_bytes(matrix_kind kind, uint32_t n_in)
{
    uint64_t blocks = n_in / MATRIX_BLOCK; /* tensors of blocks have whole ones */
    switch (kind) {
    case MATRIX_U4:
        return blocks * sizeof(panel_u4);
    case MATRIX_I8:
        return blocks * sizeof(panel_i8);
    case MATRIX_F32:
    default:
        return (uint64_t)n_in * MATRIX_PANEL * sizeof(float);
    }
}

/* ---- Filling panels --------------------------------------------------------------------------------------------- */

static int put_f32(float *panel, uint32_t lane, const float *numbers, uint32_t n)
{
    float sum = 0; /* stays 0 as long as all are finite */
    for (uint32_t i = 0; i < n; i++) {
        panel[(size_t)i * MATRIX_PANEL + lane] = numbers[i];
        sum += numbers[i] * 0;
    }
    return isnan(sum) ? -1 : 0;
}

/* Where a block's scale and least stand, and its numbers. */
enum { Q4_0_BYTES = 2 + 16, Q4_1_BYTES = 4 + 16, Q8_0_BYTES = 2 + 32 };

/* Number i of 32: the low halves of 16 bytes are the first 16, the high ones the last. */
static uint32_t nibble(const unsigned char *nibbles, uint32_t i)
{
    return i < 16 ? nibbles[i] & 15u : (uint32_t)nibbles[i - 16] >> 4;
}

static void put_nibbles(panel_u4 *block, uint32_t lane, const unsigned char *nibbles)
{
    for (uint32_t w = 0; w < MATRIX_BLOCK / 8; w++) {
        uint32_t word = 0;
        for (uint32_t i = 0; i < 8; i++)
            word |= nibble(nibbles, 8 * w + i) << 4 * i;
        block->words[w][lane] = word;
    }
}

/* The scale and the least number are what the floats say, exactly: the factors of 8 that Q4_0 takes off, and the halves
 * themselves, have few bits. */
static int put_u4(panel_u4 *panel, uint32_t lane, const gguf_tensor *t, const unsigned char *row)
{
    float sum = 0;
    uint64_t bytes = t->type == GGUF_Q4_1 ? Q4_1_BYTES : Q4_0_BYTES;
    for (uint64_t b = 0; b < t->dims[0] / MATRIX_BLOCK; b++) {
        const unsigned char *block = row + b * bytes;
        float scale = half_at(block);
        float least = t->type == GGUF_Q4_1 ? half_at(block + 2) : -8 * scale;
        panel[b].scale[lane] = scale;
        panel[b].least[lane] = least;
        put_nibbles(&panel[b], lane, block + bytes - 16);
        sum += scale * 0 + least * 0;
    }
    return isnan(sum) ? -1 : 0;
}

static int put_i8(panel_i8 *panel, uint32_t lane, const gguf_tensor *t, const unsigned char *row)
{
    float sum = 0;
    for (uint64_t b = 0; b < t->dims[0] / MATRIX_BLOCK; b++) {
        const unsigned char *block = row + b * Q8_0_BYTES;
        panel[b].scale[lane] = half_at(block);
        for (uint32_t w = 0; w < MATRIX_BLOCK / 4; w++)
            panel[b].words[w][lane] = u32_at(block + 2 + 4 * (size_t)w);
        sum += panel[b].scale[lane] * 0;
    }
    return isnan(sum) ? -1 : 0;
}

int matrix_put(const matrix *m, uint32_t row, const gguf_tensor *t, uint64_t tensor_row, float *numbers)
{
    void *panel = m->panels + row / MATRIX_PANEL * matrix_panel_bytes(m->kind, m->n_in);
    uint32_t lane = row % MATRIX_PANEL;
    uint64_t row_bytes = t->bytes / (t->dims[1] * t->dims[2] * t->dims[3]);
    const unsigned char *bytes = (const unsigned char *)t->data + tensor_row * row_bytes;
    switch (m->kind) {
    case MATRIX_U4:
        return put_u4(panel, lane, t, bytes);
    case MATRIX_I8:
        return put_i8(panel, lane, t, bytes);
    case MATRIX_F32:
    default:
        return gguf_row(t, tensor_row, numbers) < 0 ? -1 : put_f32(panel, lane, numbers, m->n_in);
    }
}

/* ---- Products --------------------------------------------------------------------------------------------------- */

static const matrix_kernel *best_kernel(void)
{
    const matrix_kernel *best = matrix_kernel_avx512();
    best = best ? best : matrix_kernel_avx2();
    return best ? best : matrix_kernel_base();
}

enum { WORTH_THREADS = 1 << 14 }; /* products of two numbers */

/* Parts go to threads as these come: a thread that another program holds up is not waited for longer than a part. */
void matrix_multiply(const matrix *m, const float *x, uint32_t n, float *y)
{
    const matrix_kernel *kernel = best_kernel();
    uint32_t panels = matrix_panels(m), across = (panels + kernel->panels - 1) / kernel->panels;
    uint64_t parts = (uint64_t)across * ((n + MATRIX_ROWS - 1) / MATRIX_ROWS);
#pragma omp parallel for schedule(dynamic) if ((uint64_t)n * m->n_in * m->n_out >= WORTH_THREADS)
    for (uint64_t i = 0; i < parts; i++) {
        uint32_t from = (uint32_t)(i / across) * MATRIX_ROWS, rows = n - from < MATRIX_ROWS ? n - from : MATRIX_ROWS;
        matrix_part part = {m, (uint32_t)(i % across) * kernel->panels, kernel->panels};
        part.n = panels - part.panel < part.n ? panels - part.panel : part.n;
        kernel->multiply(&part, x + (size_t)from * m->n_in, rows, y + (size_t)from * m->n_out);
    }
}
