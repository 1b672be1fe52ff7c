/* eval/eval.h: the tasks of `kvkeep eval`, and what each finds when it runs.
 *
 * A task is a row of the table in cmd_eval.c. It is run with its options read, the model open and the files that it
 * writes open; it computes, prints on stdout when nothing can fail any more, and returns. A *configuration* is a policy
 * at a budget with a type of KV: the unit of results, which are kept by configuration in the file of --resume. */
#ifndef KVKEEP_TOOLS_EVAL_EVAL_H
#define KVKEEP_TOOLS_EVAL_EVAL_H

#include "engine/runner.h"
#include "kvkeep/eval/options.h"
#include "kvkeep/eval/results.h"
#include "kvkeep/loaded_model.h"
#include "kvkeep/outfile.h"
#include "kvkeep/profile.h"
#include "kvkeep/progress.h"

/* One run of the command. */
typedef struct eval_job {
    const eval_task *task;
    eval_options o;
    loaded_model loaded;
    profile profile;      /* of --profile, in any case: near layers for keep */
    eval_results results; /* of --resume, or of this run alone */
    outfile drawing;      /* stream NULL: no plot is wanted */
    progress progress;
    trace_error *error;
} eval_job;

struct eval_task {
    const char *name, *text; /* `kvkeep eval NAME`, and a line of help */
    bool takes_text;         /* TEXT is an argument, and needed */
    const struct argp *argp; /* its own options; their input is the same `arguments`, whose options are eval_options.
                                NULL: none */
    void (*defaults)(eval_options *o); /* before arguments are read; NULL: those of all */
    int (*run)(eval_job *j);           /* 0 or an error */
};

extern const eval_task eval_task_ppl, eval_task_compare, eval_task_record, eval_task_passkey, eval_task_niah,
    eval_task_multi_turn, eval_task_calibrate;

typedef struct eval_config {
    kvk_policy_choice choice;
    char name[KVK_MAX_POLICY_TEXT];
    uint32_t budget; /* tokens */
    kvk_dtype kv_type;
} eval_config;

typedef struct eval_configs {
    eval_config *list; /* [n] type after type, of each budget after budget, of each policy after policy */
    uint32_t n;
} eval_configs;

/* All combinations of the job's policies, budgets and types for a text of so many tokens. Those that cannot work (a
 * budget below what the policy protects) are bad input. 0, or an error with nothing to free. */
int eval_configs_make(const eval_job *j, double text_tokens, eval_configs *out);
void eval_configs_free(eval_configs *c);

/* Whether it keeps everything, whatever its budget. */
bool eval_never_evicts(const eval_config *c);

/* The usual policies, and budgets of 20 and 36 %, where none were given. */
error_t eval_set_usual(eval_job *j);

/* Makes full the first of the job's policies. 0 or bad input. */
int eval_put_full_first(eval_job *j);

/* The key of a configuration's result: all that it depends on. `what` names the kind of result and what else it
 * depends on; `text_digest` stands for text and model. 0 or TRACE_FAILED. */
enum { EVAL_KEY = 1024 };
int eval_config_key(const eval_job *j, const char *what, uint64_t text_digest, const eval_config *c,
                    char key[EVAL_KEY]);

/* A runner for sequences that together hold up to so many tokens. `watch`: see runner_config. */
int eval_runner_open(const eval_job *j, kvk_dtype kv_type, uint64_t kv_tokens, uint32_t watch, runner **out);

/* Opens a sequence for a configuration. `n_prompt` 0: its prompt's length is not known. */
int eval_sequence_open(const eval_job *j, runner *r, const eval_config *c, uint32_t n_prompt, kvk_seq *out);

/* Bytes of K and V, with scales, of a page's tokens in all layers. */
uint64_t eval_page_bytes(const eval_job *j, kvk_dtype kv_type);

/* Tokens in whole pages that such a sequence may hold of a text of so many, the chunk in work included. */
uint64_t eval_config_holds(const eval_job *j, const eval_config *c, uint64_t text_tokens);

#endif
