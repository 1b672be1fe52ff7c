/* engine/sample.h: the next token out of logits: greedy, or by chance from a seed. The same seed and logits give the
 * same tokens. */
#ifndef KVKEEP_ENGINE_SAMPLE_H
#define KVKEEP_ENGINE_SAMPLE_H

#include "trace/error.h"

typedef struct sample_options {
    double temperature; /* logits are divided by it; 0: greedy, and nothing below counts */
    double top_p;       /* above 0, up to 1: the fewest most likely tokens whose probabilities reach it; 1: all */
    uint32_t top_k;     /* the most likely ones only; 0: all */
    uint64_t seed;
} sample_options;

#define SAMPLE_GREEDY ((sample_options){.temperature = 0, .top_p = 1})

typedef struct sampler sampler;

/* For logits of `n` tokens. Returns 0, TRACE_BAD_INPUT (an option out of range) or TRACE_FAILED. */
int sampler_open(const sample_options *options, uint32_t n, sampler **out, trace_error *error);

/* NULL is ignored. */
void sampler_close(sampler *s);

/* The next token. Of equal logits the lower token counts as the more likely; NaN is never chosen unless all are. First
 * top_k, then the temperature, then top_p. */
uint32_t sampler_next(sampler *s, const float *logits);

/* The most likely token. */
uint32_t sample_greedy(const float *logits, uint32_t n);

#endif
