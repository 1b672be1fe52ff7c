#include "kvkeep/eval/stats.h"

#include <math.h>
#include <stddef.h>

/* `b` NULL: nothing is taken away. */
static double sum(const double *a, const double *b, uint32_t from, uint32_t end)
{
    double all = 0;
    for (uint32_t i = from; i < end; i++)
        all += b ? a[i] - b[i] : a[i];
    return all;
}

static double error_of(const double *a, const double *b, uint32_t blocks)
{
    const double each = EVAL_BLOCK;
    double mean = sum(a, b, 0, blocks * EVAL_BLOCK) / (blocks * each), squares = 0;
    for (uint32_t k = 0; k < blocks; k++) {
        double off = sum(a, b, k * EVAL_BLOCK, (k + 1) * EVAL_BLOCK) / each - mean;
        squares += off * off;
    }
    return sqrt(squares / ((double)blocks * (blocks - 1.0)));
}

eval_estimate eval_estimate_difference(const double *a, const double *b, uint32_t n)
{
    uint32_t blocks = n / EVAL_BLOCK;
    return (eval_estimate){n ? sum(a, b, 0, n) / n : (double)NAN, blocks > 1 ? error_of(a, b, blocks) : (double)NAN};
}

eval_estimate eval_estimate_of(const double *values, uint32_t n)
{
    return eval_estimate_difference(values, NULL, n);
}

eval_estimate eval_change(eval_estimate difference)
{
    return (eval_estimate){expm1(difference.mean), exp(difference.mean) * difference.error};
}
