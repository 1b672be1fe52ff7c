#include "kvkeep/replay/pools.h"

#include "kvkeep/plot.h"
#include "kvkeep/report.h"
#include "trace/pools.h"

#include <stdlib.h>

enum { DEFAULT_SIZES = 16 };

/* The pools, by size. */
typedef struct table {
    pool_run *runs;
    uint32_t n, peak_pages;
} table;

static int out_of_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep replay", 0, NULL}, "out of memory");
}

static double seconds(uint64_t us)
{
    return (double)us * 1e-6;
}

static double tokens_per_s(const replay_result *x)
{
    return x->makespan_us ? (double)x->served_output_tokens / seconds(x->makespan_us) : 0;
}

static double share_of_peak(const table *t, const pool_run *run)
{
    return (double)run->n_pages / t->peak_pages;
}

static void print_table(const table *t)
{
    printf("%10s %7s %12s %10s %10s %10s %12s %10s %8s %11s\n", "pages", "of peak", "tokens/s", "wait p50 s",
           "wait p99 s", "preempted", "recomputed", "swapped", "rejected", "makespan s");
    for (uint32_t i = 0; i < t->n; i++) {
        const replay_result *x = &t->runs[i].result;
        printf("%10u %7.3f %12.3f %10.3f %10.3f %10ju %12ju %10ju %8ju %11.3f\n", t->runs[i].n_pages,
               share_of_peak(t, &t->runs[i]), tokens_per_s(x), seconds(x->wait_us_p50), seconds(x->wait_us_p99),
               (uintmax_t)x->stats.preemptions, (uintmax_t)x->recomputed_tokens, (uintmax_t)x->stats.swapped_out_pages,
               (uintmax_t)x->rejected, seconds(x->makespan_us));
    }
}

static json_t *row_of(const table *t, const pool_run *run)
{
    const replay_result *x = &run->result;
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f}", "pages", (json_int_t)run->n_pages,
                     "share_of_peak", share_of_peak(t, run), "output_tokens_per_s", tokens_per_s(x),
                     "admission_wait_s_p50", seconds(x->wait_us_p50), "admission_wait_s_p99", seconds(x->wait_us_p99),
                     "preemptions", (json_int_t)x->stats.preemptions, "recomputed_tokens",
                     (json_int_t)x->recomputed_tokens, "swapped_pages", (json_int_t)x->stats.swapped_out_pages,
                     "rejected", (json_int_t)x->rejected, "makespan_s", seconds(x->makespan_us));
}

static int print_json(const table *t, trace_error *error)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < t->n; i++)
        report_add_row(&rows, row_of(t, &t->runs[i]));
    int rc = report_print_rows(rows, error);
    json_decref(rows);
    return rc;
}

static int draw(const table *t, FILE *drawing, trace_error *error)
{
    static const plot p = {"Output by the size of the pool",
                           "pages of the pool",
                           "output tokens per s",
                           "output tokens per s",
                           NULL,
                           false};
    samples *s = calloc(1, sizeof *s);
    if (!s)
        return out_of_memory(error);
    for (uint32_t i = 0; i < t->n; i++)
        if (samples_due(s))
            samples_add(s, (sample){t->runs[i].n_pages, tokens_per_s(&t->runs[i].result), 0});
    int rc = plot_draw(&p, s, drawing, error);
    free(s);
    return rc;
}

/* Sets t->runs, which the caller frees after an error as well. */
static int run(trace *in, const replay_command *c, request_list *list, table *t, trace_error *error)
{
    uint32_t n_sizes = c->curve_points ? c->curve_points : DEFAULT_SIZES;
    replay_options options = c->replay;
    replay_result unlimited;
    int rc = pools_measure(in, &options, list, &unlimited, error);
    if (rc < 0)
        return rc;
    t->runs = calloc(n_sizes, sizeof *t->runs);
    if (!t->runs)
        return out_of_memory(error);
    t->peak_pages = unlimited.stats.peak_pages_used;
    t->n = pools_sizes(t->peak_pages, t->runs, n_sizes);
    options.page_tokens = unlimited.page_tokens;
    return pools_sweep(list, &options, t->runs, t->n, error);
}

int replay_pools(trace *t, const replay_command *c, FILE *drawing, trace_error *error)
{
    request_list list;
    table found = {.n = 0};
    int rc = request_list_open(&list) < 0 ? out_of_memory(error) : run(t, c, &list, &found, error);
    if (rc == 0 && drawing)
        rc = draw(&found, drawing, error);
    if (rc == 0 && c->json)
        rc = print_json(&found, error);
    else if (rc == 0)
        print_table(&found);
    free(found.runs);
    request_list_close(&list);
    return rc;
}
