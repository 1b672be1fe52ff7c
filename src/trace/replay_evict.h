/* trace/replay_evict.h: one policy at one budget over a trace of masses, through a cache's public calls.
 *
 * One sequence grows token by token; before each it makes room, after each it is told the masses of the pages that it
 * still holds, as full attention gave them. docs/traces.md defines every number.
 */
#ifndef KVKEEP_TRACE_REPLAY_EVICT_H
#define KVKEEP_TRACE_REPLAY_EVICT_H

#include "trace/evict_futures.h"
#include "trace/evict_tally.h"

#include <kvkeep/policy.h>

typedef struct evict_options {
    kvk_policy_choice choice;
    uint32_t budget;       /* tokens per group */
    bool audit;            /* checks every invariant after every step */
    uint64_t memory_limit; /* host memory of the cache, bytes; 0: no limit */
} evict_options;

/* Whether the policy can work with this budget at all. 0, or an error that says why not. */
int replay_evict_check(mass_trace *t, const evict_options *options, trace_error *error);

/* Runs the whole trace. 0 or an error. */
int replay_evict(mass_trace *t, const evict_options *options, evict_result *result, trace_error *error);

/* Drops pages as somebody does who knows the future. 0 or KVK_ENOMEM. */
typedef int (*evict_bound)(const mass_future *future, uint32_t keep, uint32_t *gone);

/* What pages held by a bound come to. 0 or an error. */
int replay_evict_bound(mass_trace *t, const evict_futures *futures, evict_bound bound, uint32_t budget,
                       evict_result *result, trace_error *error);

#endif
