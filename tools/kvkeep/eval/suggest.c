#include "kvkeep/eval/suggest.h"

#include "kvkeep/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_POINTS = BUDGET_LIST_MAX * 2, FINE_POINTS = 6 };

/* What is not known is not below a bound. */
static bool holds(const eval_point *p, double bound, double errors)
{
    return p->loss.mean + (errors > 0 ? errors * p->loss.error : 0) <= bound;
}

uint32_t eval_smallest(const eval_point *points, uint32_t n, double bound, double errors)
{
    uint32_t at = n;
    while (at > 0 && holds(&points[at - 1], bound, errors))
        at--;
    return at;
}

/* What was found for one policy: its points by budget. */
typedef struct suggestion {
    kvk_policy_choice choice;
    char name[KVK_MAX_POLICY_TEXT];
    eval_point points[MAX_POINTS];
    uint32_t n;
} suggestion;

/* ---- Measuring -------------------------------------------------------------------------------------------------- */

static int by_budget(const void *a, const void *b)
{
    const eval_point *x = a, *y = b;
    return (x->budget > y->budget) - (x->budget < y->budget);
}

static void take_points(const eval_table *t, suggestion *s, uint32_t policy)
{
    for (uint32_t i = policy; i < t->configs.n && s->n < MAX_POINTS; i += t->job->o.policies.n) {
        const eval_measured *m = &t->rows[i];
        s->points[s->n++] = (eval_point){m->config->budget, eval_row_change_active(m)};
        memcpy(s->name, m->config->name, sizeof s->name);
    }
    qsort(s->points, s->n, sizeof *s->points, by_budget);
}

/* Measures one policy, and full beside it, at the job's budgets. */
static int measure(eval_job *j, const eval_text *text, suggestion *s)
{
    eval_table t = {.job = j};
    j->o.policies.n = 1;
    j->o.policies.choices[0] = s->choice;
    int rc = eval_table_measure(&t, text);
    if (rc == 0)
        take_points(&t, s, 1);
    eval_table_close(&t);
    return rc;
}

static const double one_sided_95 = 1.645; /* standard errors */

/* A grid between the largest budget known to lose too much and the smallest from which on none does, in whole pages. */
static void add_fine(eval_job *j, const suggestion *s, double errors)
{
    uint32_t at = eval_smallest(s->points, s->n, j->o.compare.loss, errors), page = j->o.page_tokens, last = 0;
    if (at == 0 || at == s->n)
        return;
    uint32_t low = s->points[at - 1].budget, high = s->points[at].budget;
    for (uint32_t i = 1; i <= FINE_POINTS; i++) {
        uint32_t budget = (low + (high - low) * i / (FINE_POINTS + 1)) / page * page;
        if (budget > low && budget < high && budget != last)
            j->o.budgets.budgets[j->o.budgets.n++] = (token_budget){last = budget, false};
    }
}

/* Around what is measured to hold, and around what is sure to, if that is elsewhere. */
static void choose_fine(eval_job *j, const suggestion *s)
{
    double loss = j->o.compare.loss;
    j->o.budgets.n = 0;
    add_fine(j, s, 0);
    if (eval_smallest(s->points, s->n, loss, 0) != eval_smallest(s->points, s->n, loss, one_sided_95))
        add_fine(j, s, one_sided_95);
}

static int search(eval_job *j, const eval_text *text, suggestion *s)
{
    budget_list coarse = j->o.budgets;
    int rc = measure(j, text, s);
    if (rc == 0)
        choose_fine(j, s);
    if (rc == 0 && j->o.budgets.n)
        rc = measure(j, text, s);
    j->o.budgets = coarse;
    return rc;
}

/* ---- Showing ---------------------------------------------------------------------------------------------------- */

static json_t *point_of(const suggestion *s, uint32_t at, uint32_t tokens)
{
    if (at == s->n)
        return json_null();
    const eval_point *p = &s->points[at];
    return json_pack("{s:I, s:f, s:o, s:o}", "budget_tokens", (json_int_t)p->budget, "budget_share",
                     (double)p->budget / tokens, "change_active", eval_json_number(p->loss.mean),
                     "change_active_stderr", eval_json_number(p->loss.error));
}

static json_t *row_of(const suggestion *s, double loss, uint32_t tokens)
{
    json_t *points = json_array();
    for (uint32_t i = 0; i < s->n; i++)
        report_add_row(&points, point_of(s, i, tokens));
    return json_pack("{s:s, s:o, s:o, s:o}", "policy", s->name, "suggested",
                     point_of(s, eval_smallest(s->points, s->n, loss, 0), tokens), "sure",
                     point_of(s, eval_smallest(s->points, s->n, loss, one_sided_95), tokens), "measured", points);
}

static int print_json(const eval_job *j, const suggestion *list, uint32_t n, uint32_t tokens)
{
    json_t *rows = json_array();
    report r;
    report_open(&r);
    report_add(&r, "model", json_string(loaded_model_name(&j->loaded)));
    report_add(&r, "text", json_string(j->o.text));
    report_count(&r, "tokens", tokens);
    report_add(&r, "loss", json_real(j->o.compare.loss));
    for (uint32_t i = 0; i < n; i++)
        report_add_row(&rows, row_of(&list[i], j->o.compare.loss, tokens));
    report_add(&r, "results", rows);
    return report_print(&r, true, j->error);
}

static void print_point(const suggestion *s, uint32_t at, uint32_t tokens)
{
    if (at == s->n) {
        printf(" %8s %7s %8s %6s", "none", "", "", "");
        return;
    }
    printf(" %8u %6.1f%%", s->points[at].budget, 100.0 * s->points[at].budget / tokens);
    eval_print_change(s->points[at].loss);
}

static void print_table(const eval_job *j, const suggestion *list, uint32_t n, uint32_t tokens)
{
    double loss = j->o.compare.loss;
    printf("%-24s %8s %7s %8s %6s %8s %7s %8s %6s\n", "policy", "budget", "share", "loss%", "+-", "sure", "share",
           "loss%", "+-");
    for (uint32_t i = 0; i < n; i++) {
        printf("%-24s", list[i].name);
        print_point(&list[i], eval_smallest(list[i].points, list[i].n, loss, 0), tokens);
        print_point(&list[i], eval_smallest(list[i].points, list[i].n, loss, one_sided_95), tokens);
        putchar('\n');
    }
    printf(
        "The smallest budgets of %u tokens from which on perplexity grows by at most %g %% where eviction is active:\n"
        "as measured, and with a certainty of 95 %%.\n",
        tokens, 100 * loss);
}

/* ---- The task --------------------------------------------------------------------------------------------------- */

static error_t set_usual(eval_job *j)
{
    static const char *const budgets[] = {"10%", "15%", "20%", "28%", "36%", "50%", "65%", "80%"};
    const arguments a = {"kvkeep eval compare", &j->o, j->error};
    error_t rc = j->o.policies.n ? 0 : policy_list_add(&a, &j->o.policies, "keep");
    for (size_t i = 0; !j->o.budgets_given && i < sizeof budgets / sizeof budgets[0] && rc == 0; i++)
        rc = budget_list_add(&a, &j->o.budgets, budgets[i]);
    return rc;
}

static int check(const eval_job *j)
{
    const trace_place place = {"kvkeep eval compare", 0, "--suggest"};
    for (uint32_t i = 0; i < j->o.policies.n; i++)
        if (j->o.policies.choices[i].policy == kvk_policy_at(0))
            return trace_bad_input(j->error, place, "full keeps everything at every budget");
    if (j->o.n_kv_types > 1)
        return trace_bad_input(j->error, place, "takes one --kv-type");
    return j->drawing.stream ? trace_bad_input(j->error, place, "draws nothing: --plot goes with --curve") : 0;
}

static int suggest_all(eval_job *j, const eval_text *text, suggestion *list, uint32_t n)
{
    const policy_list asked = j->o.policies;
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        list[i].choice = asked.choices[i];
        rc = search(j, text, &list[i]);
    }
    progress_end(&j->progress);
    if (rc == 0 && j->o.json)
        rc = print_json(j, list, n, text->n);
    else if (rc == 0)
        print_table(j, list, n, text->n);
    return rc;
}

int eval_suggest(eval_job *j, const eval_text *text)
{
    if (check(j) < 0 || set_usual(j))
        return TRACE_BAD_INPUT;
    suggestion *list = calloc(j->o.policies.n, sizeof *list);
    if (!list)
        return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
    int rc = suggest_all(j, text, list, j->o.policies.n);
    free(list);
    return rc;
}
