/* trace/pools.h: the requests of a trace at their times, in pools of many sizes. */
#ifndef KVKEEP_TRACE_POOLS_H
#define KVKEEP_TRACE_POOLS_H

#include "trace/replay.h"
#include "trace/request_list.h"

typedef struct pool_run {
    uint32_t n_pages;
    replay_result result; /* set by the sweep */
    trace_error error;    /* "": none */
} pool_run;

/* Replays what is left of `t` in mode timed and an unlimited pool, and keeps its requests in an open list. 0 or an
 * error. */
int pools_measure(trace *t, const replay_options *options, request_list *list, replay_result *unlimited,
                  trace_error *error);

/* Sets up to `n` sizes, evenly spaced from a quarter of `peak` pages to all of them. Returns how many: sizes are all
 * different, and at least 1. */
uint32_t pools_sizes(uint32_t peak, pool_run *runs, uint32_t n);

/* Replays the list in n pools, each with a cache of its own, on all cores. options->page_tokens must be set. 0 or an
 * error. */
int pools_sweep(const request_list *list, const replay_options *options, pool_run *runs, uint32_t n,
                trace_error *error);

#endif
