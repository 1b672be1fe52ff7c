/* eval/suggest.h: the smallest budget that costs no more than a bound. */
#ifndef KVKEEP_TOOLS_EVAL_SUGGEST_H
#define KVKEEP_TOOLS_EVAL_SUGGEST_H

#include "kvkeep/eval/table.h"

typedef struct eval_point {
    uint32_t budget;
    eval_estimate loss;
} eval_point;

/* The smallest budget of points[n] (ascending by budget) from which on no loss is above the bound: one budget that
 * happens to do well below others that do not is luck. `errors` standard errors are added to each loss first. Returns
 * its number, or n if the last one's is above. */
uint32_t eval_smallest(const eval_point *points, uint32_t n, double bound, double errors);

/* Of each policy of the job: measures a grid of budgets in one pass, then a finer one around the bound, and prints. The
 * loss is the change of perplexity over active targets. 0 or an error. */
int eval_suggest(eval_job *j, const eval_text *text);

#endif
