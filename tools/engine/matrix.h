/* engine/matrix.h: products with a matrix of weights. */
#ifndef KVKEEP_ENGINE_MATRIX_H
#define KVKEEP_ENGINE_MATRIX_H

#include <stdint.h>

/* Turns vectors of `n_in` numbers into vectors of `n_out`. */
typedef struct matrix {
    const float *weights;
    uint32_t n_in, n_out;
} matrix;

#endif
