/* replay/evict_report.h: what `kvkeep replay --mode evict` shows. */
#ifndef KVKEEP_TOOLS_REPLAY_EVICT_REPORT_H
#define KVKEEP_TOOLS_REPLAY_EVICT_REPORT_H

#include "trace/evict_tally.h"

#include <kvkeep/policy.h>
#include <stdio.h>

enum { EVICT_BOUNDS = 2 }; /* rows before the policies': the optimum and the greedy bound */

typedef struct evict_row {
    char name[KVK_MAX_POLICY_TEXT];
    evict_result result;
    double optimum; /* the retained mean of the optimum at this budget */
} evict_row;

/* For each budget the bounds, then the policies. */
typedef struct evict_table {
    const mass_trace *trace;
    evict_row *rows; /* [n] */
    uint32_t n, per_budget;
} evict_table;

/* Prints on stdout. 0 or TRACE_FAILED. */
int evict_table_print(const evict_table *t, bool as_json, trace_error *error);

/* Draws retained mass over the budget, a curve for each row's name; of a single budget, bars. 0 or TRACE_FAILED. */
int evict_table_draw(const evict_table *t, FILE *drawing, trace_error *error);

#endif
