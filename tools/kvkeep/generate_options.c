#include "kvkeep/generate_options.h"

#include <errno.h>
#include <string.h>

enum {
    KEY_MODEL = 1,
    KEY_PROFILE,
    KEY_POLICY,
    KEY_BUDGET,
    KEY_SYSTEM,
    KEY_CHAT,
    KEY_RAW,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_SEED,
    KEY_MAX_TOKENS,
    KEY_PAGE_TOKENS,
    KEY_CHUNK,
    KEY_SHOW_PAGES,
    KEY_JSON
};

static const struct argp_option options[] = {
    {"model", KEY_MODEL, "FILE.gguf", 0, "The model (default: what tools/model-fetch fetched)", 1},
    {"profile", KEY_PROFILE, "FILE.json", 0, "What `kvkeep eval calibrate` found for the model, for the policy keep",
     1},
    {"policy", KEY_POLICY, "NAME[:KEY=VALUE...]", 0, "Which pages are given up at the budget (default keep)", 1},
    {"budget", KEY_BUDGET, "N|N%", 0,
     "Tokens that are held in each layer, or a share of the prompt and --max-tokens (default: all are)", 1},
    {"page-tokens", KEY_PAGE_TOKENS, "N", 0, "Tokens of a page (default 16)", 1},
    {"chunk", KEY_CHUNK, "N", 0, "Tokens of a step of the prompt (default 128)", 1},
    {"chat", KEY_CHAT, NULL, 0, "PROMPT is a message to answer (the default)", 2},
    {"raw", KEY_RAW, NULL, 0, "PROMPT is a text to go on with", 2},
    {"system", KEY_SYSTEM, "TEXT", 0, "The system message (default: the model's own)", 2},
    {"temperature", KEY_TEMPERATURE, "X", 0, "0 (the default): the most likely token; else by chance", 3},
    {"top-k", KEY_TOP_K, "N", 0, "Of the N most likely tokens only; 0 (the default): of all", 3},
    {"top-p", KEY_TOP_P, "X", 0, "Of the most likely ones that make up this probability (default 1)", 3},
    {"seed", KEY_SEED, "N", 0, "Of chance (default 1)", 3},
    {"max-tokens", KEY_MAX_TOKENS, "N", 0, "Stop after so many tokens (default 256)", 3},
    {"show-pages", KEY_SHOW_PAGES, NULL, 0, "Show on stderr which pages are kept", 4},
    {"json", KEY_JSON, NULL, 0, "One JSON object at the end instead of the text", 4},
    {0},
};

/* 0 is a temperature too. */
static error_t parse_temperature(const arguments *a, const char *text, double *out)
{
    *out = 0;
    return strcmp(text, "0") == 0 ? 0 : arguments_positive(a, "--temperature", text, out);
}

static error_t parse_number(int key, const char *text, const arguments *a, generate_options *o)
{
    switch (key) {
    case KEY_TEMPERATURE:
        return parse_temperature(a, text, &o->sample.temperature);
    case KEY_TOP_K:
        return arguments_u32(a, "--top-k", text, (whole_range){0, UINT32_MAX}, &o->sample.top_k);
    case KEY_TOP_P:
        return arguments_positive(a, "--top-p", text, &o->sample.top_p);
    case KEY_SEED:
        return arguments_whole(a, "--seed", text, (whole_range){0, UINT64_MAX}, &o->sample.seed);
    case KEY_MAX_TOKENS:
        return arguments_u32(a, "--max-tokens", text, (whole_range){1, INT32_MAX}, &o->max_tokens);
    case KEY_PAGE_TOKENS:
        return arguments_u32(a, "--page-tokens", text, (whole_range){1, 4096}, &o->page_tokens);
    case KEY_CHUNK:
        return arguments_u32(a, "--chunk", text, (whole_range){1, INT32_MAX}, &o->chunk);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, const char *text, const arguments *a, generate_options *o)
{
    switch (key) {
    case KEY_MODEL:
        o->model = text;
        return 0;
    case KEY_PROFILE:
        o->profile = text;
        return 0;
    case KEY_POLICY:
        return policy_list_add(a, &o->policies, text);
    case KEY_BUDGET:
        return budget_list_add(a, &o->budgets, text);
    case KEY_SYSTEM:
        o->system = text;
        return 0;
    case KEY_CHAT:
    case KEY_RAW:
        o->raw = key == KEY_RAW;
        return 0;
    case KEY_SHOW_PAGES:
        o->show_pages = true;
        return 0;
    case KEY_JSON:
        o->json = true;
        return 0;
    default:
        return parse_number(key, text, a, o);
    }
}

static error_t refuse(const arguments *a, const char *field, const char *why)
{
    trace_bad_input(a->error, (trace_place){a->command, 0, field}, "%s", why);
    return EINVAL;
}

static error_t check(const arguments *a, const generate_options *o)
{
    if (!o->prompt)
        return refuse(a, "PROMPT", "missing: a text, or - for the standard input");
    if (o->policies.n > 1)
        return refuse(a, "--policy", "one policy is enough");
    if (o->budgets.n > 1)
        return refuse(a, "--budget", "one budget is enough");
    return o->raw && o->system ? refuse(a, "--system", "goes with a chat only") : 0;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const arguments *a = state->input;
    generate_options *o = a->options;
    if (key == ARGP_KEY_END)
        return check(a, o);
    if (key != ARGP_KEY_ARG)
        return parse_option(key, text, a, o);
    if (o->prompt)
        return ARGP_ERR_UNKNOWN;
    o->prompt = text;
    return 0;
}

int generate_options_parse(generate_options *o, int argc, char **argv, trace_error *error)
{
    static const struct argp argp = {options, parse, "PROMPT|-", "Runs a model on a cache and prints what it says.",
                                     NULL,    NULL,  NULL};
    arguments a = {"kvkeep generate", o, error};
    *o = (generate_options){.sample = SAMPLE_GREEDY, .max_tokens = 256, .chunk = 128, .page_tokens = 16};
    o->sample.seed = 1;
    return arguments_parse(&argp, argc, argv, &a);
}
