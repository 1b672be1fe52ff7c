/* eval/options.h: the command line of `kvkeep eval`: options of all its tasks, and those of single ones. */
#ifndef KVKEEP_TOOLS_EVAL_OPTIONS_H
#define KVKEEP_TOOLS_EVAL_OPTIONS_H

#include "kvkeep/eval/needle_options.h"
#include "kvkeep/policy_list.h"

#include <kvkeep/attention.h>

enum { EVAL_MAX_TYPES = 6 };

/* Of compare. */
typedef struct eval_compare_options {
    uint64_t memory_bytes; /* what requests are to fit into */
    bool curve;            /* many budgets */
    bool suggest;          /* the smallest budget whose loss stays under `loss` */
    double loss;           /* share of full's perplexity */
    uint32_t recall;       /* keys at each depth; 0: recall is left out */
} eval_compare_options;

/* Of record. */
typedef struct eval_record_options {
    const char *prefix; /* of the files' names; NULL: not given */
} eval_record_options;

/* Of calibrate. */
typedef struct eval_calibrate_options {
    const char *path; /* where the profile goes; NULL: nowhere */
    double loss;      /* share of perplexity that recall may cost */
    bool quick;       /* what takes no runs of the model for each value */
} eval_calibrate_options;

/* A list or string that was not given is empty or NULL. */
typedef struct eval_options {
    const char *text;    /* the file; NULL: the task takes none */
    const char *model;   /* the file */
    const char *profile; /* the file; NULL: none */
    policy_list policies;
    budget_list budgets;
    bool budgets_given;
    kvk_dtype kv_types[EVAL_MAX_TYPES];
    uint32_t n_kv_types;
    uint32_t n_groups; /* 1 or RUNNER_PER_LAYER */
    uint32_t page_tokens;
    uint32_t tokens, offset; /* of the text, in tokens; tokens 0: all, up to the model's context */
    uint32_t chunk;          /* tokens of a step; 1: one by one */
    uint64_t seed;
    bool json;
    const char *plot, *resume; /* files */
    eval_compare_options compare;
    eval_record_options record;
    eval_needle_options needle;
    eval_calibrate_options calibrate;
} eval_options;

typedef struct eval_task eval_task;

/* Reads the arguments of a task, argv[0] its name. Returns 0, 1 where help was shown, or TRACE_BAD_INPUT. */
int eval_options_parse(eval_options *o, const eval_task *task, int argc, char **argv, trace_error *error);

/* fp32, fp16, bf16, fp8, int8 or int4. */
const char *eval_kv_type_name(kvk_dtype type);

#endif
