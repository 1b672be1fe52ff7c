/* eval/pass.h: one text scored under several configurations at once.
 *
 * Each is a sequence of the same batch, and all go through the text step by step; so weights are read once for all of
 * them. One by one (chunk 1) a step is a page: nothing is evicted within a page, each query is an observation of its
 * own, and so evictions and scores are those of single tokens, for much less reading of weights. */
#ifndef KVKEEP_TOOLS_EVAL_PASS_H
#define KVKEEP_TOOLS_EVAL_PASS_H

#include "kvkeep/eval/text.h"

/* What came of one configuration. */
typedef struct eval_score {
    double *nll;         /* [tokens - 1] of the text's tokens from the second on */
    double retained;     /* sum over active queries of the share of full attention that the pages held got, mean over
                            groups */
    uint64_t n_retained; /* these queries */
    uint64_t pages_text, pages_kept, pages_evicted; /* all groups; of the text, at the end, since the start */
    uint64_t pages_peak;                            /* held at one time */
    double tokens_per_s;                            /* of the pass, all its configurations together */
} eval_score;

/* A pass of configurations with one type of KV; the first must be one that keeps everything, with which the others are
 * compared. `progress` goes from `done` to `done + part`. */
typedef struct eval_pass {
    eval_job *job;
    const eval_text *text;
    const eval_config *const *configs; /* [n] */
    uint32_t n;
    eval_score *scores;  /* [n] out; to be freed with eval_scores_free */
    uint64_t page_bytes; /* out: of a page of one group */
    double done, part;
} eval_pass;

/* 0 or an error, also where a sequence held more than its budget and the step in work. */
int eval_pass_run(eval_pass *p);

void eval_scores_free(eval_score *scores, uint32_t n);

#endif
