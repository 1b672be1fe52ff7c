#include "kvkeep/eval/options.h"

#include "kvkeep/eval/eval.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    KEY_MODEL = 0x200,
    KEY_PROFILE,
    KEY_POLICY,
    KEY_BUDGET,
    KEY_KV_TYPE,
    KEY_GROUPS,
    KEY_PAGE_TOKENS,
    KEY_TOKENS,
    KEY_OFFSET,
    KEY_CHUNK,
    KEY_SEED,
    KEY_JSON,
    KEY_PLOT,
    KEY_RESUME
};

static const struct argp_option options[] = {
    {"model", KEY_MODEL, "FILE.gguf", 0, "The model (default: what tools/model-fetch fetched)", 1},
    {"profile", KEY_PROFILE, "FILE.json", 0,
     "What `kvkeep eval calibrate` found for the model: the heads and knobs of the policy keep, where no knobs are "
     "given",
     1},
    {"policy", KEY_POLICY, "NAME[:KEY=VALUE...]", 0,
     "A policy or a preset, with its knobs; all: every policy. May be given several times", 1},
    {"budget", KEY_BUDGET, "N|N%", 0,
     "Tokens that a sequence may hold in each group, or a share of the text. May be given several times", 1},
    {"kv-type", KEY_KV_TYPE, "TYPE", 0,
     "How K and V are held: fp32 (the default), fp16, bf16, fp8, int8, int4. May be given several times", 1},
    {"groups", KEY_GROUPS, "1|layers", 0, "One block table, or one per layer (the default)", 2},
    {"page-tokens", KEY_PAGE_TOKENS, "N", 0, "Tokens of a page (default 16)", 2},
    {"tokens", KEY_TOKENS, "N", 0, "Tokens of the text to take; 0 (the default): all, up to the model's context", 2},
    {"offset", KEY_OFFSET, "N", 0, "Tokens of the text to pass over first", 2},
    {"chunk", KEY_CHUNK, "N", 0,
     "Tokens of a step, as in a prefill; 1 (the default): one by one, each an observation of its own", 2},
    {"seed", KEY_SEED, "N", 0, "Of what is generated or left to chance (default 1)", 2},
    {"resume", KEY_RESUME, "FILE", 0, "Take results that the file has, and add new ones to it", 3},
    {"json", KEY_JSON, NULL, 0, "One JSON object instead of the table", 3},
    {"plot", KEY_PLOT, "FILE.svg", 0, "Draw the results with gnuplot", 3},
    {0},
};

static const char *const type_names[EVAL_MAX_TYPES] = {[KVK_F32] = "fp32",    [KVK_F16] = "fp16", [KVK_BF16] = "bf16",
                                                       [KVK_F8_E4M3] = "fp8", [KVK_I8] = "int8",  [KVK_I4] = "int4"};

const char *eval_kv_type_name(kvk_dtype type)
{
    return type_names[type];
}

static error_t refuse(const arguments *a, const char *option, const char *text, const char *why)
{
    trace_bad_input(a->error, (trace_place){a->command, 0, option}, "'%.64s' %s", text, why);
    return EINVAL;
}

/* A type that was named before counts once. */
static error_t add_type(const arguments *a, eval_options *o, const char *text)
{
    uint32_t type = 0;
    while (type < EVAL_MAX_TYPES && strcmp(text, type_names[type]) != 0)
        type++;
    if (type == EVAL_MAX_TYPES)
        return refuse(a, "--kv-type", text, "is not one of fp32, fp16, bf16, fp8, int8 and int4");
    for (uint32_t i = 0; i < o->n_kv_types; i++)
        if (o->kv_types[i] == (kvk_dtype)type)
            return 0;
    o->kv_types[o->n_kv_types++] = (kvk_dtype)type;
    return 0;
}

static error_t parse_groups(const arguments *a, eval_options *o, const char *text)
{
    o->n_groups = strcmp(text, "1") == 0 ? 1 : RUNNER_PER_LAYER;
    return o->n_groups == 1 || strcmp(text, "layers") == 0 ? 0 : refuse(a, "--groups", text, "is neither 1 nor layers");
}

static error_t parse_number(int key, const char *text, const arguments *a)
{
    eval_options *o = a->options;
    switch (key) {
    case KEY_PAGE_TOKENS:
        return arguments_u32(a, "--page-tokens", text, (whole_range){1, 4096}, &o->page_tokens);
    case KEY_TOKENS:
        return arguments_u32(a, "--tokens", text, (whole_range){0, MODEL_MAX_CONTEXT}, &o->tokens);
    case KEY_OFFSET:
        return arguments_u32(a, "--offset", text, (whole_range){0, INT32_MAX}, &o->offset);
    case KEY_CHUNK:
        return arguments_u32(a, "--chunk", text, (whole_range){0, MODEL_MAX_CONTEXT}, &o->chunk);
    case KEY_SEED:
        return arguments_whole(a, "--seed", text, (whole_range){0, UINT64_MAX}, &o->seed);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_option(int key, const char *text, const arguments *a)
{
    eval_options *o = a->options;
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
        o->budgets_given = true;
        return budget_list_add(a, &o->budgets, text);
    case KEY_KV_TYPE:
        return add_type(a, o, text);
    case KEY_GROUPS:
        return parse_groups(a, o, text);
    case KEY_JSON:
        o->json = true;
        return 0;
    case KEY_PLOT:
        o->plot = text;
        return 0;
    case KEY_RESUME:
        o->resume = text;
        return 0;
    default:
        return parse_number(key, text, a);
    }
}

/* What the parser needs besides the options. */
typedef struct eval_parsing {
    arguments a; /* first: what parsers find as their input */
    const eval_task *task;
} eval_parsing;

static error_t check(const eval_parsing *p)
{
    const eval_options *o = p->a.options;
    if (!p->task->takes_text || o->text)
        return 0;
    trace_bad_input(p->a.error, (trace_place){p->a.command, 0, "TEXT"}, "missing: the file to measure on");
    return EINVAL;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    eval_parsing *p = state->input;
    eval_options *o = p->a.options;
    switch (key) {
    case ARGP_KEY_INIT:
        if (p->task->argp)
            state->child_inputs[0] = &p->a;
        return 0;
    case ARGP_KEY_ARG:
        if (!p->task->takes_text || o->text)
            return ARGP_ERR_UNKNOWN;
        o->text = text;
        return 0;
    case ARGP_KEY_END:
        return check(p);
    default:
        return parse_option(key, text, &p->a);
    }
}

int eval_options_parse(eval_options *o, const eval_task *task, int argc, char **argv, trace_error *error)
{
    char command[64], doc[256];
    const struct argp_child own[] = {{task->argp, 0, NULL, 10}, {0}};
    snprintf(command, sizeof command, "kvkeep eval %s", task->name);
    snprintf(doc, sizeof doc, "%s.\vdocs/man/kvkeep.1 says what each number means.", task->text);
    const struct argp all = {options, parse, task->takes_text ? "TEXT" : NULL, doc, task->argp ? own : NULL,
                             NULL,    NULL};
    *o = (eval_options){.n_groups = RUNNER_PER_LAYER, .page_tokens = 16, .chunk = 1, .seed = 1};
    if (task->defaults)
        task->defaults(o);
    eval_parsing p = {{command, o, error}, task};
    int rc = arguments_parse(&all, argc, argv, &p.a);
    if (o->n_kv_types == 0)
        o->kv_types[o->n_kv_types++] = KVK_F32;
    o->chunk = o->chunk ? o->chunk : 1;
    return rc;
}
