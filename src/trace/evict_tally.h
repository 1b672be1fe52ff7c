/* trace/evict_tally.h: what the pages that are held step by step come to. */
#ifndef KVKEEP_TRACE_EVICT_TALLY_H
#define KVKEEP_TRACE_EVICT_TALLY_H

#include "trace/mass.h"

/* Of the shares of attention that pages held got, one for each step and group. NAN of none. */
typedef struct evict_shares {
    double mean;
    double p5; /* the smallest that at least 5 % do not exceed */
    double min;
} evict_shares;

typedef struct evict_result {
    uint32_t budget, budget_pages;
    evict_shares active; /* of steps whose text has more pages than the budget: where somebody has to choose */
    evict_shares all;
    double kept_share;    /* pages held at the end / pages of the text */
    double pages_mean;    /* held per group */
    uint32_t pages_max;   /* likewise */
    uint64_t evicted;     /* pages, all groups */
    double churn_per_1k;  /* evicted per 1,000 tokens and group */
    double needle_recall; /* of needles and groups, those whose pages were all there when asked for; NAN of none */
    double ns_per_step;   /* reserve, plan and end, all groups; NAN where no cache ran */
} evict_result;

typedef struct evict_tally {
    const mass_trace *trace;
    uint32_t keep;        /* pages of the budget */
    float *shares;        /* [n] */
    uint64_t n, n_before; /* n_before of them from steps without need to choose */
    uint64_t held, held_at_end, needles_found;
    uint32_t held_most;
} evict_tally;

/* The sum of the masses of the first `n` pages. */
double evict_whole_mass(const float *mean, uint32_t n);

/* For a trace that is at its beginning. 0 or TRACE_FAILED, with nothing to close. */
int evict_tally_open(evict_tally *a, const mass_trace *t, uint32_t keep, trace_error *error);

/* Counts the table of one group at the step that the trace gave last: the numbers of its pages, ascending. */
void evict_tally_add(evict_tally *a, const mass_step *step, uint32_t group, const uint32_t *pages, uint32_t n);

/* Sets all but `budget` and `ns_per_step`, once all steps were added. */
void evict_tally_result(evict_tally *a, evict_result *out);

void evict_tally_close(evict_tally *a);

#endif
