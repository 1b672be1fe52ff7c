/* eval/compare.h: what a configuration costs in memory. */
#ifndef KVKEEP_TOOLS_EVAL_COMPARE_H
#define KVKEEP_TOOLS_EVAL_COMPARE_H

#include "kvkeep/eval/table.h"

/* Of one request at the model's whole context, in whole pages. A budget that is a share counts as this share of the
 * context. */
typedef struct eval_cost {
    uint64_t bytes;     /* of K and V */
    double saved_share; /* against full with the first type of KV */
    uint64_t requests;  /* that fit --memory */
} eval_cost;

eval_cost eval_cost_of(const eval_table *t, uint32_t row);

#endif
