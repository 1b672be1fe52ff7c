/* engine/matrix_panel.h: how a panel of weights lies in memory, and the kernels that multiply by it. */
#ifndef KVKEEP_ENGINE_MATRIX_PANEL_H
#define KVKEEP_ENGINE_MATRIX_PANEL_H

#include "engine/matrix.h"

enum { MATRIX_ROWS = 96 }; /* vectors that a kernel takes at most; with a panel they fit the second level of memory */

/* 32 weights of 16 outputs. Each output has words of its own, so that the words of all 16 side by side become floats by
 * shifts. */
typedef struct panel_u4 {
    float scale[MATRIX_PANEL], least[MATRIX_PANEL];
    uint32_t words[MATRIX_BLOCK / 8][MATRIX_PANEL]; /* 8 weights from the low bits on */
} panel_u4;

typedef struct panel_i8 {
    float scale[MATRIX_PANEL];
    uint32_t words[MATRIX_BLOCK / 4][MATRIX_PANEL]; /* 4 weights from the low bits on */
} panel_i8;

/* Panels `panel` .. panel + n - 1 of a matrix. */
typedef struct matrix_part {
    const matrix *m;
    uint32_t panel, n;
} matrix_part;

/* Rows of x[rows][n_in] times some panels, into their columns of y[rows][n_out]. */
typedef struct matrix_kernel {
    uint32_t panels; /* that it takes at a time */
    void (*multiply)(const matrix_part *part, const float *x, uint32_t rows, float *y);
} matrix_kernel;

/* NULL where the processor can't. */
const matrix_kernel *matrix_kernel_avx512(void);
const matrix_kernel *matrix_kernel_avx2(void);
const matrix_kernel *matrix_kernel_base(void);

#endif
