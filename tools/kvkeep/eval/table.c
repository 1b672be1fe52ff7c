#include "kvkeep/eval/table.h"

#include "kvkeep/plot.h"
#include "kvkeep/report.h"

#include <math.h>
#include <stdlib.h>

/* ---- Measuring -------------------------------------------------------------------------------------------------- */

int eval_table_choose(eval_job *j)
{
    return eval_set_usual(j) ? TRACE_BAD_INPUT : eval_put_full_first(j);
}

int eval_table_measure(eval_table *t, const eval_text *text)
{
    eval_job *j = t->job;
    t->text = text;
    int rc = eval_table_choose(j);
    if (rc == 0)
        rc = eval_configs_make(j, text->n, &t->configs);
    if (rc < 0)
        return rc;
    t->rows = calloc(t->configs.n, sizeof *t->rows);
    if (!t->rows)
        return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
    return eval_measure(j, text, &t->configs, t->rows);
}

void eval_table_close(eval_table *t)
{
    eval_measured_free(t->rows, t->configs.n);
    free(t->recall);
    eval_configs_free(&t->configs);
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

eval_estimate eval_row_change(const eval_measured *m)
{
    return eval_change(eval_estimate_difference(m->nll, m->full, m->n));
}

eval_estimate eval_row_change_active(const eval_measured *m)
{
    uint32_t from = eval_first_active(m);
    return eval_change(eval_estimate_difference(m->nll + from, m->full + from, m->n - from));
}

static eval_estimate active_of(const eval_measured *m)
{
    uint32_t from = eval_first_active(m);
    return eval_estimate_of(m->nll + from, m->n - from);
}

/* Over the targets of the text's second half: the same ones for every budget. */
static eval_estimate late_of(const eval_measured *m)
{
    uint32_t from = (m->n + 1) / 2 - 1;
    return eval_estimate_of(m->nll + from, m->n - from);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

json_t *eval_json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_of(const eval_measured *m)
{
    const eval_config *c = m->config;
    eval_estimate all = eval_estimate_of(m->nll, m->n), active = active_of(m), late = late_of(m);
    eval_estimate change = eval_row_change(m), change_active = eval_row_change_active(m);
    return json_pack(
        "{s:s, s:I, s:s, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o}", "policy",
        c->name, "budget_tokens", (json_int_t)c->budget, "kv_type", eval_kv_type_name(c->kv_type), "kept_share",
        m->kept_share, "mean_nll", eval_json_number(all.mean), "perplexity", eval_json_number(exp(all.mean)), "stderr",
        eval_json_number(all.error), "mean_nll_active", eval_json_number(active.mean), "perplexity_active",
        eval_json_number(exp(active.mean)), "stderr_active", eval_json_number(active.error), "perplexity_second_half",
        eval_json_number(exp(late.mean)), "change", eval_json_number(change.mean), "change_stderr",
        eval_json_number(change.error), "change_active", eval_json_number(change_active.mean), "change_active_stderr",
        eval_json_number(change_active.error), "retained_mass", eval_json_number(m->retained_mass), "churn_per_1k",
        eval_json_number(m->churn_per_1k), "kv_bytes_peak", (json_int_t)m->kv_bytes_peak, "tokens_per_s",
        eval_json_number(m->tokens_per_s));
}

int eval_table_print_json(const eval_table *t, eval_table_more more)
{
    json_t *rows = json_array();
    report r;
    report_open(&r);
    report_add(&r, "model", json_string(loaded_model_name(&t->job->loaded)));
    report_add(&r, "text", json_string(t->job->o.text));
    report_count(&r, "tokens", t->text->n);
    for (uint32_t i = 0; i < t->configs.n; i++) {
        json_t *row = row_of(&t->rows[i]);
        if (row && more)
            more(t, i, row);
        report_add_row(&rows, row);
    }
    report_add(&r, "results", rows);
    return report_print(&r, true, t->job->error);
}

/* ---- Table ------------------------------------------------------------------------------------------------------ */

void eval_print_number(int width, int digits, double x)
{
    if (isfinite(x))
        printf(" %*.*f", width, digits, x);
    else
        printf(" %*s", width, "-");
}

/* A change with its error, in percent. */
void eval_print_change(eval_estimate e)
{
    eval_print_number(8, 2, 100 * e.mean);
    eval_print_number(6, 2, 100 * e.error);
}

static void print_row(const eval_measured *m)
{
    const eval_config *c = m->config;
    printf("%-24s %-4s %7u %6.3f", c->name, eval_kv_type_name(c->kv_type), c->budget, m->kept_share);
    eval_print_number(9, 3, exp(eval_estimate_of(m->nll, m->n).mean));
    eval_print_change(eval_row_change(m));
    eval_print_number(9, 3, exp(active_of(m).mean));
    eval_print_change(eval_row_change_active(m));
    eval_print_number(8, 4, m->retained_mass);
    eval_print_number(7, 1, m->churn_per_1k);
    eval_print_number(8, 2, (double)m->kv_bytes_peak / (1 << 20));
    eval_print_number(7, 0, m->tokens_per_s);
    putchar('\n');
}

int eval_table_print(const eval_table *t)
{
    printf("%-24s %-4s %7s %6s %9s %8s %6s %9s %8s %6s %8s %7s %8s %7s\n", "policy", "kv", "budget", "kept", "perplex.",
           "change%", "+-", "active", "change%", "+-", "retained", "churn", "KV MiB", "tok/s");
    for (uint32_t i = 0; i < t->configs.n; i++)
        print_row(&t->rows[i]);
    return 0;
}

/* ---- Drawing ---------------------------------------------------------------------------------------------------- */

#define TITLE "Perplexity within a budget, up to a quarter above that of full"
#define KEPT "share of the pages kept"
static const double most_shown = 1.25; /* of full's: a model that broke down is not compared any more */

typedef double (*value_fn)(const eval_table *t, uint32_t row);

static double perplexity_of(const eval_table *t, uint32_t row)
{
    return exp(eval_estimate_of(t->rows[row].nll, t->rows[row].n).mean);
}

static double recall_of(const eval_table *t, uint32_t row)
{
    return t->recall[row];
}

/* The curve of one policy and type, over the budgets. Returns its points. */
static uint32_t points_of(const eval_table *t, uint32_t first, value_fn value, plot_point *points)
{
    uint32_t each = t->job->o.policies.n, n = 0;
    for (uint32_t b = 0; b < t->job->o.budgets.n; b++) {
        uint32_t row = first + b * each;
        points[n++] = (plot_point){t->rows[row].kept_share, value(t, row)};
    }
    return n;
}

/* What a drawing is made of: two panels at most, of as many curves each. */
typedef struct drawing {
    plot_curve *curves;                 /* [2][n] */
    plot_point *points;                 /* [2][configs] */
    char (*names)[KVK_MAX_POLICY_TEXT]; /* [n] */
    uint32_t n;
} drawing;

static int drawing_open(const eval_table *t, drawing *d)
{
    d->n = t->job->o.n_kv_types * t->job->o.policies.n;
    d->curves = calloc(2 * (size_t)d->n, sizeof *d->curves);
    d->points = calloc(2 * (size_t)t->configs.n, sizeof *d->points);
    d->names = calloc(d->n, sizeof *d->names);
    return d->curves && d->points && d->names
               ? 0
               : trace_failed(t->job->error, (trace_place){"plot", 0, NULL}, "out of memory");
}

static void drawing_close(drawing *d)
{
    free(d->curves);
    free(d->points);
    free(d->names);
}

static const plot_curve *set_curves(const eval_table *t, uint32_t panel, value_fn value, drawing *d)
{
    const eval_options *o = &t->job->o;
    plot_curve *curves = d->curves + (size_t)panel * d->n;
    plot_point *points = d->points + (size_t)panel * t->configs.n;
    for (uint32_t type = 0; type < o->n_kv_types; type++)
        for (uint32_t p = 0; p < o->policies.n; p++) {
            uint32_t i = type * o->policies.n + p, first = type * o->policies.n * o->budgets.n + p;
            const eval_config *c = t->rows[first].config;
            snprintf(d->names[i], sizeof d->names[i], "%.400s%s%s", c->name, o->n_kv_types > 1 ? " " : "",
                     o->n_kv_types > 1 ? eval_kv_type_name(c->kv_type) : "");
            curves[i] = (plot_curve){d->names[i], points, points_of(t, first, value, points)};
            points += curves[i].n;
        }
    return curves;
}

static int draw_panels(const eval_table *t, drawing *d, FILE *out)
{
    const plot_curve *curves = set_curves(t, 0, perplexity_of, d);
    plot_curves panels[2] = {{TITLE, KEPT, "perplexity", curves, d->n, most_shown * perplexity_of(t, 0), false}};
    uint32_t n = 1;
    if (t->recall && t->job->o.compare.recall)
        panels[n++] = (plot_curves){
            "Keys found in repeated filler", KEPT, "recall", set_curves(t, 1, recall_of, d), d->n, 0, true};
    return plot_draw_curves(panels, n, out, t->job->error);
}

int eval_table_draw(const eval_table *t, FILE *out)
{
    drawing d;
    int rc = drawing_open(t, &d);
    if (rc == 0)
        rc = draw_panels(t, &d, out);
    drawing_close(&d);
    return rc;
}
