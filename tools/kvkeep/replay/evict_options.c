#include "kvkeep/replay/evict_options.h"

#include "kvkeep/arguments.h"
#include "kvkeep/replay/options.h"

enum { KEY_POLICY = 0x100, KEY_BUDGET, KEY_STEPS, KEY_GROUPS };

static const struct argp_option options[] = {
    {"policy", KEY_POLICY, "NAME[:KEY=VALUE...]", 0,
     "A policy or a preset, with its knobs; all (the default): every policy. May be given several times", 0},
    {"budget", KEY_BUDGET, "N|N%", 0,
     "Tokens that a sequence may hold in each group, or a share of the text (default 20% and 36%). May be given "
     "several times",
     0},
    {"steps", KEY_STEPS, "N", 0, "Queries of the masses made up where there is no file (default 2048)", 0},
    {"groups", KEY_GROUPS, "N", 0, "Groups of these (default 4)", 0},
    {0},
};

static error_t parse_option(int key, const char *text, const arguments *a, evict_command *c)
{
    switch (key) {
    case KEY_POLICY:
        c->given = "--policy";
        return policy_list_add(a, &c->policies, text);
    case KEY_BUDGET:
        c->given = "--budget";
        return budget_list_add(a, &c->budgets, text);
    case KEY_STEPS:
        c->given = c->generated_only = "--steps";
        return arguments_u32(a, "--steps", text, (whole_range){1, MASS_GENERATE_STEPS}, &c->generate.steps);
    case KEY_GROUPS:
        c->given = c->generated_only = "--groups";
        return arguments_u32(a, "--groups", text, (whole_range){1, KVK_MAX_GROUPS}, &c->generate.groups);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const arguments *a = state->input;
    replay_command *c = a ? a->options : NULL;
    return c ? parse_option(key, text, a, &c->evict) : ARGP_ERR_UNKNOWN;
}

const struct argp replay_evict_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

error_t replay_evict_complete(const arguments *a)
{
    replay_command *c = a->options;
    evict_command *e = &c->evict;
    error_t rc = e->policies.n ? 0 : policy_list_add(a, &e->policies, "all");
    if (rc == 0 && e->budgets.n == 0) {
        e->budgets.budgets[e->budgets.n++] = (token_budget){0.20, true};
        e->budgets.budgets[e->budgets.n++] = (token_budget){0.36, true};
    }
    return rc;
}
