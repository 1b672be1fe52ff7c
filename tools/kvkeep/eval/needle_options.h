/* eval/needle_options.h: the options of `kvkeep eval passkey`, `niah` and `multi-turn`. */
#ifndef KVKEEP_TOOLS_EVAL_NEEDLE_OPTIONS_H
#define KVKEEP_TOOLS_EVAL_NEEDLE_OPTIONS_H

#include "kvkeep/arguments.h"
#include "kvkeep/eval/needle_run.h"

#include <argp.h>

enum { EVAL_MAX_NAMES = 32, EVAL_MAX_NUMBERS = 16, EVAL_QUESTIONS = 3 };

typedef struct eval_names {
    const char *list[EVAL_MAX_NAMES];
    uint32_t n;
} eval_names;

typedef struct eval_numbers {
    uint32_t list[EVAL_MAX_NUMBERS], n;
} eval_numbers;

/* Lists that were not given are empty until eval_needle_complete. */
typedef struct eval_needle_options {
    eval_names haystacks;          /* files, or "filler" */
    eval_names wordings;           /* names, or those of a set: "tuning", "reported" */
    const char *needle, *question; /* a wording of the user's own; NULL: none */
    eval_numbers lengths, stated;
    needle_question questions[EVAL_QUESTIONS];
    uint32_t n_questions;
    needle_keys keys;
    uint32_t depths, repeats; /* prompts: so many at each of so many depths */
} eval_needle_options;

extern const struct argp eval_needle_argp; /* of passkey */
extern const struct argp eval_niah_argp;
extern const struct argp eval_dialog_argp; /* of multi-turn */

/* Returns 0, or EINVAL with the error set: there is no room for another. */
error_t eval_names_add(const arguments *a, const char *option, const char *text, eval_names *names);

/* hidden, visible or during. */
const char *eval_question_name(needle_question question);

#endif
