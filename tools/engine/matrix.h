/* engine/matrix.h: products with a matrix of weights, in single precision.
 *
 * Each number of a product is one sum in the order of its terms, 0 to n_in - 1, of products that are not rounded
 * before they are added where the processor can do that. So it comes out the same whatever the number of threads and
 * whatever other vectors are multiplied at the same time.
 *
 * Weights stand in panels of 16 outputs: weight after weight, of each the 16 outputs side by side. Blocks of small
 * whole numbers stay small and become floats next to where they are used: the same floats, for less reading.
 *
 * Why no library: on one core of a Zen 4, for the products of SmolLM2-135M, OpenBLAS 0.3.21 takes 2.4 to 3.5 times as
 * long for 1 to 13 vectors, 1.5 times for 32 and as long for 256; oneDNN 2.6 2.7 times for one, 1.3 for 13 and 0.9 for
 * 256. It is faster by far with bf16 or 8 bits, which are other numbers. */
#ifndef KVKEEP_ENGINE_MATRIX_H
#define KVKEEP_ENGINE_MATRIX_H

#include "engine/gguf.h"

enum { MATRIX_PANEL = 16, MATRIX_BLOCK = 32 };

/* How weights are held. */
typedef enum matrix_kind {
    MATRIX_F32 = 0, /* floats[n_in][16] */
    MATRIX_U4 = 1,  /* blocks of 32 weights: each a number 0 .. 15 * scale + least */
    MATRIX_I8 = 2   /* blocks of 32 weights: each a number -128 .. 127 * scale */
} matrix_kind;

/* Turns vectors of `n_in` numbers into vectors of `n_out`. Panels lie at multiples of 64 bytes. */
typedef struct matrix {
    matrix_kind kind;
    uint32_t n_in, n_out;
    unsigned char *panels;
} matrix;

/* How tensors of a gguf_type are held: as they are where that is exact, else as floats. */
matrix_kind matrix_kind_of(uint32_t type);

uint32_t matrix_panels(const matrix *m);

/* Bytes of one panel: a multiple of 64. */
uint64_t matrix_panel_bytes(matrix_kind kind, uint32_t n_in);

/* Makes row `row` of the matrix, one output, of a row of a tensor with n_in columns. The tensor is of the matrix's
 * kind, or that is MATRIX_F32. `numbers` is room for n_in floats. Returns 0, or -1 if a weight or a scale is not
 * finite. */
int matrix_put(const matrix *m, uint32_t row, const gguf_tensor *t, uint64_t tensor_row, float *numbers);

/* y[n][n_out] = each of x[n][n_in] through the matrix, on several threads. */
void matrix_multiply(const matrix *m, const float *x, uint32_t n, float *y);

#endif
