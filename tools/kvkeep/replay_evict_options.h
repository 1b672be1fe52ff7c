/* kvkeep/replay_evict_options.h: the options of `kvkeep replay --mode evict`. */
#ifndef KVKEEP_TOOLS_REPLAY_EVICT_OPTIONS_H
#define KVKEEP_TOOLS_REPLAY_EVICT_OPTIONS_H

#include "kvkeep/arguments.h"
#include "trace/mass_generate.h"

#include <kvkeep/policy.h>

enum { EVICT_MAX_POLICIES = 64, EVICT_MAX_BUDGETS = 32 };

/* Tokens, or a share of the text's. */
typedef struct evict_budget {
    double size;
    bool is_share;
} evict_budget;

typedef struct evict_command {
    bool on;                    /* --mode evict was given */
    const char *given;          /* the last of these options that was; NULL: none */
    const char *generated_only; /* likewise, of those that mean nothing for a file */
    kvk_policy_choice choices[EVICT_MAX_POLICIES];
    evict_budget budgets[EVICT_MAX_BUDGETS];
    uint32_t n_choices, n_budgets;
    mass_generate_options generate; /* without a file */
} evict_command;

/* A child of the parser of `kvkeep replay`; its input is the same `arguments`. */
extern const struct argp replay_evict_argp;

/* Every policy, and budgets of 20 and 36 %, where none were given. 0, or EINVAL with the error set. */
error_t replay_evict_complete(const arguments *a);

#endif
