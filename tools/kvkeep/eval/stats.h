/* eval/stats.h: means of scores with their uncertainty.
 *
 * Scores of neighbouring tokens hang together, so that a standard error from single ones would be too small. Here it
 * comes from blocks: of K whole blocks of EVAL_BLOCK consecutive values each, with means m_1 .. m_K and their mean m,
 *     standard error = sqrt(sum (m_k - m)^2 / (K (K - 1)))
 * Values after the last whole block count in means, but in no block. */
#ifndef KVKEEP_TOOLS_EVAL_STATS_H
#define KVKEEP_TOOLS_EVAL_STATS_H

#include <stdint.h>

enum { EVAL_BLOCK = 64 };

/* NAN where there are no values, and for an error fewer than two blocks. */
typedef struct eval_estimate {
    double mean, error;
} eval_estimate;

eval_estimate eval_estimate_of(const double *values, uint32_t n);

/* The same of a[i] - b[i]: of two policies on the same tokens, which is far better known than the difference of two
 * means. */
eval_estimate eval_estimate_difference(const double *a, const double *b, uint32_t n);

/* A difference of mean NLL as change of perplexity: exp(mean) - 1, and its error. */
eval_estimate eval_change(eval_estimate difference);

#endif
