/* replay/evict_options.h: the options of `kvkeep replay --mode evict`. */
#ifndef KVKEEP_TOOLS_REPLAY_EVICT_OPTIONS_H
#define KVKEEP_TOOLS_REPLAY_EVICT_OPTIONS_H

#include "kvkeep/policy_list.h"
#include "trace/mass_generate.h"

typedef struct evict_command {
    bool on;                    /* --mode evict was given */
    const char *given;          /* the last of these options that was; NULL: none */
    const char *generated_only; /* likewise, of those that mean nothing for a file */
    policy_list policies;
    budget_list budgets;
    mass_generate_options generate; /* without a file */
} evict_command;

/* A child of the parser of `kvkeep replay`; its input is the same `arguments`. */
extern const struct argp replay_evict_argp;

/* Every policy, and budgets of 20 and 36 %, where none were given. 0, or EINVAL with the error set. */
error_t replay_evict_complete(const arguments *a);

#endif
