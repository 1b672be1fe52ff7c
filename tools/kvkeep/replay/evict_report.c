#include "kvkeep/replay/evict_report.h"

#include "kvkeep/plot.h"
#include "kvkeep/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TITLE "Attention kept within a budget"
#define WHAT "retained mass, mean"

/* 0 of 0 where there was nothing to choose. */
static double ratio(const evict_row *row)
{
    return row->result.active.mean / row->optimum;
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *row_of(const evict_row *row)
{
    const evict_result *x = &row->result;
    return json_pack("{s:s, s:I, s:I, s:f, s:o, s:o, s:o, s:f, s:f, s:f, s:o, s:f, s:o, s:f, s:I, s:I, s:o}", "policy",
                     row->name, "budget_tokens", (json_int_t)x->budget, "budget_pages", (json_int_t)x->budget_pages,
                     "kept_share", x->kept_share, "retained_mean", number(x->active.mean), "retained_p5",
                     number(x->active.p5), "retained_min", number(x->active.min), "retained_all_mean", x->all.mean,
                     "retained_all_p5", x->all.p5, "retained_all_min", x->all.min, "ratio_to_optimum",
                     number(ratio(row)), "churn_per_1k_tokens", x->churn_per_1k, "needle_recall",
                     number(x->needle_recall), "pages_mean", x->pages_mean, "pages_max", (json_int_t)x->pages_max,
                     "evicted_pages", (json_int_t)x->evicted, "ns_per_step", number(x->ns_per_step));
}

static int print_json(const evict_table *t, trace_error *error)
{
    const mass_shape *s = &t->trace->shape;
    json_t *rows = json_array();
    report r;
    report_open(&r);
    report_add(&r, "format", json_string(t->trace->format));
    report_add(&r, "mode", json_string("evict"));
    report_count(&r, "steps", s->steps);
    report_count(&r, "groups", s->groups);
    report_count(&r, "page_tokens", s->page_tokens);
    report_count(&r, "pages", s->pages);
    report_count(&r, "needles", t->trace->n_needles);
    for (uint32_t i = 0; i < t->n; i++)
        report_add_row(&rows, row_of(&t->rows[i]));
    report_add(&r, "results", rows);
    return report_print(&r, true, error);
}

/* ---- Table ------------------------------------------------------------------------------------------------------- */

static void print_number(int width, int digits, double x)
{
    if (isfinite(x))
        printf(" %*.*f", width, digits, x);
    else
        printf(" %*s", width, "-");
}

static void print_row(const evict_row *row)
{
    const evict_result *x = &row->result;
    printf("%-24s %8u %7.3f", row->name, x->budget, x->kept_share);
    print_number(8, 4, x->active.mean);
    print_number(8, 4, x->active.p5);
    print_number(8, 4, x->active.min);
    print_number(8, 4, ratio(row));
    print_number(7, 1, x->churn_per_1k);
    print_number(7, 3, x->needle_recall);
    print_number(8, 1, x->pages_mean);
    printf(" %6u %8ju", x->pages_max, (uintmax_t)x->evicted);
    print_number(9, 0, x->ns_per_step);
    putchar('\n');
}

static void print_table(const evict_table *t)
{
    printf("%-24s %8s %7s %8s %8s %8s %8s %7s %7s %8s %6s %8s %9s\n", "policy", "budget", "kept", "retained", "p5",
           "min", "ratio", "churn", "needles", "pages", "most", "evicted", "ns/step");
    for (uint32_t i = 0; i < t->n; i++)
        print_row(&t->rows[i]);
}

int evict_table_print(const evict_table *t, bool as_json, trace_error *error)
{
    if (as_json)
        return print_json(t, error);
    print_table(t);
    return 0;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

/* Where the budget is never reached, there are no steps to choose in. */
static double height(const evict_row *row)
{
    const evict_result *x = &row->result;
    return isfinite(x->active.mean) ? x->active.mean : x->all.mean;
}

/* One budget: no curve, but bars. */
static int draw_bars(const evict_table *t, FILE *drawing, trace_error *error)
{
    plot_bar *bars = calloc(t->n, sizeof *bars);
    plot_bars p = {TITLE, WHAT, bars, t->n};
    if (!bars)
        return trace_failed(error, (trace_place){"plot", 0, NULL}, "out of memory");
    for (uint32_t i = 0; i < t->n; i++)
        bars[i] = (plot_bar){t->rows[i].name, height(&t->rows[i])};
    int rc = plot_draw_bars(&p, drawing, error);
    free(bars);
    return rc;
}

/* points[i][b]: of row i at budget b. */
static void set_curves(const evict_table *t, plot_curve *curves, plot_point *points, uint32_t n_budgets)
{
    double tokens = (double)t->trace->shape.first + t->trace->shape.steps;
    for (uint32_t i = 0; i < t->per_budget; i++) {
        curves[i] = (plot_curve){t->rows[i].name, points + (size_t)i * n_budgets, n_budgets};
        for (uint32_t b = 0; b < n_budgets; b++) {
            const evict_row *row = &t->rows[b * t->per_budget + i];
            points[(size_t)i * n_budgets + b] = (plot_point){row->result.budget / tokens, height(row)};
        }
    }
}

static int draw_curves(const evict_table *t, FILE *drawing, trace_error *error)
{
    uint32_t n_budgets = t->n / t->per_budget;
    plot_curve *curves = calloc(t->per_budget, sizeof *curves);
    plot_point *points = calloc(t->n, sizeof *points);
    plot_curves p = {TITLE, "budget, share of the text", WHAT, curves, t->per_budget, 0, false};
    int rc = trace_failed(error, (trace_place){"plot", 0, NULL}, "out of memory");
    if (curves && points) {
        set_curves(t, curves, points, n_budgets);
        rc = plot_draw_curves(&p, 1, drawing, error);
    }
    free(curves);
    free(points);
    return rc;
}

int evict_table_draw(const evict_table *t, FILE *drawing, trace_error *error)
{
    return t->n > t->per_budget ? draw_curves(t, drawing, error) : draw_bars(t, drawing, error);
}
