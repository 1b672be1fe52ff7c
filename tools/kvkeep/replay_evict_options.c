#include "kvkeep/replay_evict_options.h"

#include "kvkeep/arguments.h"
#include "kvkeep/replay_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int refuse(const arguments *a, const char *option, const char *text, const char *why)
{
    trace_bad_input(a->error, (trace_place){a->command, 0, option}, "'%.64s' %s", text, why);
    return EINVAL;
}

static error_t add_choice(const arguments *a, evict_command *c, const char *text)
{
    char why[256] = "";
    if (c->n_choices == EVICT_MAX_POLICIES)
        return refuse(a, "--policy", text, "is one policy too many");
    if (kvk_policy_parse(text, NULL, &c->choices[c->n_choices], why, sizeof why) == 0) {
        c->n_choices++;
        return 0;
    }
    trace_bad_input(a->error, (trace_place){a->command, 0, "--policy"}, "%s", why);
    return EINVAL;
}

static error_t add_all(const arguments *a, evict_command *c)
{
    error_t rc = 0;
    for (uint32_t i = 0; kvk_policy_at(i) && rc == 0; i++)
        rc = add_choice(a, c, kvk_policy_at(i)->name);
    return rc;
}

static error_t add_budget(const arguments *a, evict_command *c, const char *text)
{
    char *end;
    double size = strtod(text, &end);
    bool is_number = end != text && size > 0, is_share = is_number && strcmp(end, "%") == 0;
    if (!(is_share ? size <= 100 : is_number && *end == '\0' && size <= UINT32_MAX && size == floor(size)))
        return refuse(a, "--budget", text, "is neither a number of tokens nor a share above 0 up to 100 percent");
    if (c->n_budgets == EVICT_MAX_BUDGETS)
        return refuse(a, "--budget", text, "is one budget too many");
    c->budgets[c->n_budgets++] = (evict_budget){is_share ? size / 100 : size, is_share};
    return 0;
}

static error_t parse_size(const arguments *a, const char *option, const char *text, uint32_t max, uint32_t *out)
{
    uint64_t n = 0;
    error_t rc = arguments_whole(a, option, text, (whole_range){1, max}, &n);
    *out = (uint32_t)n;
    return rc;
}

static error_t parse_option(int key, const char *text, const arguments *a, evict_command *c)
{
    switch (key) {
    case KEY_POLICY:
        c->given = "--policy";
        return strcmp(text, "all") == 0 ? add_all(a, c) : add_choice(a, c, text);
    case KEY_BUDGET:
        c->given = "--budget";
        return add_budget(a, c, text);
    case KEY_STEPS:
        c->given = c->generated_only = "--steps";
        return parse_size(a, "--steps", text, MASS_GENERATE_STEPS, &c->generate.steps);
    case KEY_GROUPS:
        c->given = c->generated_only = "--groups";
        return parse_size(a, "--groups", text, KVK_MAX_GROUPS, &c->generate.groups);
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
    error_t rc = e->n_choices ? 0 : add_all(a, e);
    if (rc == 0 && e->n_budgets == 0) {
        e->budgets[e->n_budgets++] = (evict_budget){0.20, true};
        e->budgets[e->n_budgets++] = (evict_budget){0.36, true};
    }
    return rc;
}
