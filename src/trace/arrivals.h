/* trace/arrivals.h: arrival times for traces that have none: a Poisson process of `rate` requests per second. */
#ifndef KVKEEP_TRACE_ARRIVALS_H
#define KVKEEP_TRACE_ARRIVALS_H

#include "trace/format.h"
#include "trace/random.h"

typedef struct arrivals {
    random_state random; /* its own, so that the rate does not change what else is drawn from the seed */
    double now_us;
} arrivals;

void arrivals_start(arrivals *a, const trace_reader *r);

/* 0, or bad input where the rate is so low that the clock would run out. */
int arrivals_next(arrivals *a, const trace_reader *r, uint64_t *arrival_us, trace_error *error);

#endif
