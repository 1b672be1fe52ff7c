/* trace/random.h: xoshiro256** (Blackman and Vigna, public domain), seeded through splitmix64 as its authors advise.
 *
 * Results depend on the seed alone, not on the machine's C library, except for those with
 * a law in the last bits of log, sqrt, cos and pow.
 */
#ifndef KVKEEP_TRACE_RANDOM_H
#define KVKEEP_TRACE_RANDOM_H

#include <stdint.h>

typedef struct random_state {
    uint64_t s[4];
} random_state;

void random_seed(random_state *r, uint64_t seed);

uint64_t random_u64(random_state *r);

/* Uniform in 0 .. n-1, n at least 1. */
uint32_t random_below(random_state *r, uint32_t n);

/* Uniform in [0, 1). */
double random_unit(random_state *r);

/* With mean 1. */
double random_exponential(random_state *r);

/* With mean 0 and variance 1. */
double random_normal(random_state *r);

/* By the gamma law of this shape, above 0, and scale 1; so with mean `shape`. */
double random_gamma(random_state *r, double shape);

#endif
