/* eval/compare.c: what users choose by: policies and budgets with what they cost in memory and in perplexity. */
#include "kvkeep/eval/compare.h"
#include "kvkeep/eval/recall.h"
#include "kvkeep/eval/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ---------------------------------------------------------------------------------------------------- */

enum { KEY_MEMORY = 0x300, KEY_CURVE, KEY_SUGGEST, KEY_LOSS, KEY_RECALL };

enum { RECALL_LENGTH = 1008, RECALL_LEAST = 256 /* tokens of a text that keys are hidden in */ };

static const struct argp_option options[] = {
    {"memory", KEY_MEMORY, "MIB", 0, "Memory for KV that requests are to fit into (default 24576)", 0},
    {"curve", KEY_CURVE, NULL, 0, "All policies at many budgets, unless others are named", 0},
    {"suggest", KEY_SUGGEST, NULL, 0, "Find the smallest budget whose loss stays under --loss", 0},
    {"loss", KEY_LOSS, "N%", 0, "What perplexity may grow by where eviction is active (default 1%)", 0},
    {"recall", KEY_RECALL, "N", 0, "Keys to hide at each of five depths of repeated filler; 0: none (default 1)", 0},
    {0},
};

static error_t parse_loss(const arguments *a, const char *text, double *out)
{
    char *end;
    double percent = strtod(text, &end);
    *out = percent / 100;
    if (end != text && strcmp(end, "%") == 0 && percent > 0 && percent <= 1000)
        return 0;
    trace_bad_input(a->error, (trace_place){a->command, 0, "--loss"},
                    "'%.64s' is not a share above 0 up to 1000 percent, such as 1%%", text);
    return EINVAL;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    const arguments *a = state->input;
    eval_compare_options *o = a ? &((eval_options *)a->options)->compare : NULL;
    switch (o ? key : 0) {
    case KEY_MEMORY:
        return arguments_mib(a, "--memory", text, &o->memory_bytes);
    case KEY_CURVE:
        o->curve = true;
        return 0;
    case KEY_SUGGEST:
        o->suggest = true;
        return 0;
    case KEY_LOSS:
        return parse_loss(a, text, &o->loss);
    case KEY_RECALL:
        return arguments_u32(a, "--recall", text, (whole_range){0, 1000}, &o->recall);
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

static void defaults(eval_options *o)
{
    o->compare.memory_bytes = 24576ull << 20;
    o->compare.loss = 0.01;
    o->compare.recall = 1;
}

/* ---- What a configuration costs --------------------------------------------------------------------------------- */

/* A share of the text stands for the same share of the context. */
static uint64_t tokens_at_context(const eval_table *t, uint32_t row)
{
    const eval_options *o = &t->job->o;
    uint64_t context = t->job->loaded.model->shape.context;
    uint64_t budget = budget_tokens(o->budgets.budgets[row / o->policies.n % o->budgets.n], (double)context);
    return eval_never_evicts(t->rows[row].config) || budget > context ? context : budget;
}

eval_cost eval_cost_of(const eval_table *t, uint32_t row)
{
    const eval_options *o = &t->job->o;
    uint64_t tokens = tokens_at_context(t, row), page = o->page_tokens;
    eval_cost c = {.bytes = tokens / page * eval_page_bytes(t->job, t->rows[row].config->kv_type)};
    uint64_t full = t->job->loaded.model->shape.context / page * eval_page_bytes(t->job, o->kv_types[0]);
    c.saved_share = 1 - (double)c.bytes / (double)full;
    c.requests = o->compare.memory_bytes / (c.bytes ? c.bytes : 1);
    return c;
}

/* Whether no other configuration has a lower perplexity for no more bytes. */
static bool is_best_for_its_bytes(const eval_table *t, uint32_t row)
{
    double nll = eval_estimate_of(t->rows[row].nll, t->rows[row].n).mean;
    uint64_t bytes = eval_cost_of(t, row).bytes;
    for (uint32_t i = 0; i < t->configs.n; i++)
        if (eval_cost_of(t, i).bytes <= bytes && eval_estimate_of(t->rows[i].nll, t->rows[i].n).mean < nll)
            return false;
    return true;
}

/* ---- Showing ---------------------------------------------------------------------------------------------------- */

static int add_cost(const eval_table *t, uint32_t row, json_t *object)
{
    eval_cost c = eval_cost_of(t, row);
    int rc = json_object_set_new(object, "kv_bytes_at_context", json_integer((json_int_t)c.bytes));
    rc |= json_object_set_new(object, "saved_share", json_real(c.saved_share));
    rc |= json_object_set_new(object, "requests", json_integer((json_int_t)c.requests));
    rc |= json_object_set_new(object, "recall", eval_json_number(t->recall[row]));
    rc |= json_object_set_new(object, "pareto", json_boolean(is_best_for_its_bytes(t, row)));
    return rc;
}

static void print_row(const eval_table *t, uint32_t row)
{
    const eval_measured *m = &t->rows[row];
    eval_cost c = eval_cost_of(t, row);
    printf("%-24s %-4s %7u %9.1f %7.1f", m->config->name, eval_kv_type_name(m->config->kv_type), m->config->budget,
           (double)c.bytes / (1 << 20), 100 * c.saved_share);
    eval_print_number(9, 3, exp(eval_estimate_of(m->nll, m->n).mean));
    eval_print_change(eval_row_change(m));
    eval_print_change(eval_row_change_active(m));
    eval_print_number(7, 2, t->recall[row]);
    printf(" %9ju%s\n", (uintmax_t)c.requests, is_best_for_its_bytes(t, row) ? " *" : "");
}

static void print_table(const eval_table *t)
{
    printf("%-24s %-4s %7s %9s %7s %9s %8s %6s %8s %6s %6s %9s\n", "policy", "kv", "budget", "KV MiB", "saved%",
           "perplex.", "change%", "+-", "active%", "+-", "recall", "requests");
    for (uint32_t i = 0; i < t->configs.n; i++)
        print_row(t, i);
    printf("KV MiB: of a request at the model's context of %u tokens; requests: how many fit %ju MiB.\n"
           "recall: keys in repeated filler, stated once and asked for afterwards, all digits right.\n"
           "*: nothing here has a lower perplexity for no more bytes.\n",
           t->job->loaded.model->shape.context, (uintmax_t)(t->job->o.compare.memory_bytes >> 20));
}

static error_t set_curve(eval_job *j)
{
    static const char *const budgets[] = {"10%", "14%", "20%", "28%", "36%", "50%", "65%", "80%"};
    const arguments a = {"kvkeep eval compare", &j->o, j->error};
    error_t rc = j->o.policies.n ? 0 : policy_list_add(&a, &j->o.policies, "all");
    for (size_t i = 0; !j->o.budgets_given && i < sizeof budgets / sizeof budgets[0] && rc == 0; i++)
        rc = budget_list_add(&a, &j->o.budgets, budgets[i]);
    return rc;
}

/* Recall comes first: it refuses a budget that is too small for its shorter text. */
static int measure(eval_table *t, const eval_text *text)
{
    eval_job *j = t->job;
    int rc = j->o.compare.curve && set_curve(j) ? TRACE_BAD_INPUT : eval_table_choose(j);
    if (text->n < RECALL_LEAST)
        j->o.compare.recall = 0;
    if (rc == 0)
        rc = eval_recall_measure(j, text->n < RECALL_LENGTH ? text->n : RECALL_LENGTH, &t->recall);
    return rc < 0 ? rc : eval_table_measure(t, text);
}

static int compare(eval_job *j, const eval_text *text)
{
    eval_table table = {.job = j};
    int rc = measure(&table, text);
    progress_end(&j->progress);
    if (rc == 0 && j->drawing.stream)
        rc = eval_table_draw(&table, j->drawing.stream);
    if (rc == 0 && j->o.json)
        rc = eval_table_print_json(&table, add_cost);
    else if (rc == 0)
        print_table(&table);
    eval_table_close(&table);
    return rc;
}

static int run(eval_job *j)
{
    eval_text text;
    int rc = eval_text_read(j, j->o.text, &text);
    if (rc == 0)
        rc = (j->o.compare.suggest ? eval_suggest : compare)(j, &text);
    eval_text_free(&text);
    return rc;
}

const eval_task eval_task_compare = {
    "compare", "Memory, perplexity and requests under policies and budgets", true, &argp, defaults, run};
