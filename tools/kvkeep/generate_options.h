/* kvkeep/generate_options.h: the command line of `kvkeep generate`. */
#ifndef KVKEEP_TOOLS_GENERATE_OPTIONS_H
#define KVKEEP_TOOLS_GENERATE_OPTIONS_H

#include "engine/sample.h"
#include "kvkeep/policy_list.h"

typedef struct generate_options {
    const char *prompt; /* "-": the standard input */
    const char *system; /* NULL: the model's own */
    const char *model;
    const char *profile;  /* of the model, for keep; NULL: none */
    policy_list policies; /* at most one */
    budget_list budgets;  /* likewise */
    bool raw;             /* the prompt is text to go on with, not a message */
    sample_options sample;
    uint32_t max_tokens, chunk, page_tokens;
    bool show_pages, json;
} generate_options;

/* Returns 0, 1 where help was shown, or TRACE_BAD_INPUT. */
int generate_options_parse(generate_options *o, int argc, char **argv, trace_error *error);

#endif
