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
static const double most_shown = 1.25; /* of full's: a model that broke down is not compared any more */

/* The curve of one policy and type, over the budgets. Returns its points. */
static uint32_t points_of(const eval_table *t, uint32_t first, plot_point *points)
{
    uint32_t each = t->job->o.policies.n, n = 0;
    for (uint32_t b = 0; b < t->job->o.budgets.n; b++) {
        const eval_measured *m = &t->rows[first + b * each];
        points[n++] = (plot_point){m->kept_share, exp(eval_estimate_of(m->nll, m->n).mean)};
    }
    return n;
}

static void set_curves(const eval_table *t, plot_curve *curves, char (*names)[KVK_MAX_POLICY_TEXT], plot_point *points)
{
    const eval_options *o = &t->job->o;
    for (uint32_t type = 0; type < o->n_kv_types; type++)
        for (uint32_t p = 0; p < o->policies.n; p++) {
            uint32_t i = type * o->policies.n + p, first = type * o->policies.n * o->budgets.n + p;
            const eval_config *c = t->rows[first].config;
            snprintf(names[i], sizeof names[i], "%.400s%s%s", c->name, o->n_kv_types > 1 ? " " : "",
                     o->n_kv_types > 1 ? eval_kv_type_name(c->kv_type) : "");
            curves[i] = (plot_curve){names[i], points, points_of(t, first, points)};
            points += curves[i].n;
        }
}

int eval_table_draw(const eval_table *t, FILE *drawing)
{
    const eval_options *o = &t->job->o;
    uint32_t n = o->n_kv_types * o->policies.n;
    plot_curve *curves = calloc(n, sizeof *curves);
    plot_point *points = calloc(t->configs.n, sizeof *points);
    char(*names)[KVK_MAX_POLICY_TEXT] = calloc(n, sizeof *names);
    int rc = TRACE_FAILED;
    if (curves && points && names) {
        set_curves(t, curves, names, points);
        double full = exp(eval_estimate_of(t->rows[0].nll, t->rows[0].n).mean);
        plot_curves p = {TITLE, "share of the pages kept", "perplexity", curves, n, most_shown * full};
        rc = plot_draw_curves(&p, drawing, t->job->error);
    } else {
        trace_failed(t->job->error, (trace_place){"plot", 0, NULL}, "out of memory");
    }
    free(curves);
    free(points);
    free(names);
    return rc;
}
