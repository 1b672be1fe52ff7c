#include "trace/arrivals.h"

void arrivals_start(arrivals *a, const trace_reader *r)
{
    random_seed(&a->random, ~r->options.seed);
    a->now_us = 0;
}

int arrivals_next(arrivals *a, const trace_reader *r, uint64_t *arrival_us, trace_error *error)
{
    const double longest_us = 9e15; /* 285 years; below 2^53 */
    a->now_us += 1e6 * random_exponential(&a->random) / r->options.rate;
    if (!(a->now_us < longest_us))
        return trace_bad_input(error, lines_place(&r->lines, NULL), "arrives after 285 years: the rate is too low");
    *arrival_us = (uint64_t)a->now_us;
    return 0;
}
