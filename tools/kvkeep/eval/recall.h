/* eval/recall.h: the recall that compare shows beside perplexity. */
#ifndef KVKEEP_TOOLS_EVAL_RECALL_H
#define KVKEEP_TOOLS_EVAL_RECALL_H

#include "kvkeep/eval/eval.h"

/* Hides keys in repeated filler of `length` tokens, --recall of them at each of five depths, each stated once and asked
 * for when all has gone through the budget. Recall of each of the configurations that a text of this length has, into
 * *out, to be freed; NaN: none was asked for. 0 or an error. */
int eval_recall_measure(eval_job *j, uint32_t length, double **out);

#endif
