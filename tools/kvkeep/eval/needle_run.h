/* eval/needle_run.h: prompts through a model, many at a time, each with its own policy and budget: what of the right
 * answer is said? */
#ifndef KVKEEP_TOOLS_EVAL_NEEDLE_RUN_H
#define KVKEEP_TOOLS_EVAL_NEEDLE_RUN_H

#include "engine/runner.h"
#include "kvkeep/eval/needle_prompt.h"

/* When the question is seen. */
typedef enum needle_question {
    NEEDLE_HIDDEN,  /* after the text went through the budget */
    NEEDLE_VISIBLE, /* with the whole text, which is cut down to the budget afterwards, before the answer */
    NEEDLE_DURING   /* it is the end of the text that goes through the budget */
} needle_question;

typedef struct needle_job {
    const needle_prompt *prompt;
    const kvk_eviction *eviction; /* NULL: everything is kept */
    needle_question question;
    uint32_t right;      /* out: tokens of the answer that are right, each in its place */
    uint64_t pages_peak; /* out: the most that were held at the end of a step, all groups */
} needle_job;

typedef struct needle_options {
    runner *runner;
    uint32_t vocabulary; /* tokens that its model knows */
    uint32_t page_tokens;
    uint32_t chunk;     /* tokens of a step: whole pages. One page evicts as token by token does */
    uint32_t each;      /* 1: each token is an observation of its own, where a step is no more than a page; 0: a
                            step's sum is one */
    uint32_t batch;     /* sequences at a time, at most */
    uint64_t kv_tokens; /* that these may hold together */
    void (*told)(void *ctx, uint32_t done, uint32_t n); /* after each job; NULL: nobody is */
    void *ctx;
} needle_options;

/* Tokens of KV that a job may come to hold, in whole pages. */
uint64_t needle_job_tokens(const needle_job *job, uint32_t page_tokens, uint32_t chunk);

/* Answers are decoded greedily, as many tokens as the right one has. Results do not depend on `batch`. */
int needle_run(const needle_options *options, needle_job *jobs, uint32_t n, trace_error *error);

#endif
