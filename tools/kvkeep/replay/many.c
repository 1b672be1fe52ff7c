#include "kvkeep/replay/many.h"

#include "kvkeep/plot.h"
#include "kvkeep/report.h"
#include "trace/curve.h"

#include <jansson.h>
#include <stdlib.h>

enum { DEFAULT_SIZES = 64 };

typedef struct many {
    const replay_command *c;
    prompt_list list;
    FILE *drawing; /* NULL: none */
    trace_error *error;
    json_t *rows;
} many;

static int failed(const many *m, int rc)
{
    return rc < 0 ? trace_failed(m->error, (trace_place){"kvkeep replay", 0, NULL}, "%s", kvk_strerror(rc)) : 0;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static double page_share(const many *m, const prompt_list_run *run)
{
    return share(run->page_hits, m->list.refs.n);
}

static double token_share(const many *m, const prompt_list_run *run)
{
    return share(run->token_hits, m->list.input_tokens);
}

/* ---- Every order ------------------------------------------------------------------------------------------------- */

/* The optimum's row has no tokens: it is known by pages only. */
static void show_order(many *m, const char *name, const prompt_list_run *run, bool is_optimum)
{
    if (!m->c->json)
        printf("%-10s %12ju %14.6f", name, (uintmax_t)run->page_hits, page_share(m, run));
    if (!m->c->json && is_optimum)
        puts("");
    else if (!m->c->json)
        printf(" %12ju %14.6f %12ju\n", (uintmax_t)run->token_hits, token_share(m, run),
               (uintmax_t)run->reclaimed_pages);
    json_int_t hits = (json_int_t)run->page_hits, tokens = (json_int_t)run->token_hits,
               reclaimed = (json_int_t)run->reclaimed_pages;
    report_add_row(&m->rows,
                   json_pack("{s:s, s:I, s:I, s:o, s:o, s:f, s:o}", "reclaim", name, "pages", (json_int_t)run->n_pages,
                             "page_hits", hits, "token_hits", is_optimum ? json_null() : json_integer(tokens),
                             "reclaimed_pages", is_optimum ? json_null() : json_integer(reclaimed), "hit_ratio_pages",
                             page_share(m, run), "hit_ratio_tokens",
                             is_optimum ? json_null() : json_real(token_share(m, run))));
}

static int draw_orders(const many *m, const prompt_list_run *runs)
{
    plot_bar bars[REPLAY_RECLAIMS + 1];
    for (int i = 0; i <= REPLAY_RECLAIMS; i++)
        bars[i] = (plot_bar){i ? replay_reclaim_name((kvk_reclaim)(i - 1)) : "optimum", page_share(m, &runs[i])};
    plot_bars p = {"Reclaim orders and the offline optimum", "share of pages found", bars, REPLAY_RECLAIMS + 1};
    return m->drawing ? plot_draw_bars(&p, m->drawing, m->error) : 0;
}

/* The optimum first: no order finds more. */
static int compare_orders(many *m)
{
    uint32_t longest = prompt_list_longest(&m->list);
    if (longest > m->c->replay.n_pages)
        return trace_failed(m->error, (trace_place){"kvkeep replay", 0, "--pages"},
                            "the longest prompt has %u pages, the pool %u", longest, m->c->replay.n_pages);
    prompt_list_run runs[REPLAY_RECLAIMS + 1];
    prompt_list_run each = {.n_pages = m->c->replay.n_pages, .memory_limit = m->c->replay.memory_limit};
    int rc = belady_hits(&m->list.refs, each.n_pages, &each.page_hits);
    runs[0] = each;
    for (int i = 0; i < REPLAY_RECLAIMS && rc >= 0; i++) {
        runs[i + 1] = each;
        runs[i + 1].reclaim = (kvk_reclaim)i;
        rc = prompt_list_replay(&m->list, &runs[i + 1]);
    }
    if (rc < 0)
        return failed(m, rc);
    if (draw_orders(m, runs) < 0)
        return TRACE_FAILED;
    if (!m->c->json)
        printf("%-10s %12s %14s %12s %14s %12s\n", "order", "page hits", "ratio", "token hits", "ratio", "reclaimed");
    for (int i = 0; i <= REPLAY_RECLAIMS; i++)
        show_order(m, i ? replay_reclaim_name((kvk_reclaim)(i - 1)) : "belady", &runs[i], i == 0);
    return 0;
}

/* ---- Many sizes -------------------------------------------------------------------------------------------------- */

static void show_size(many *m, const prompt_list_run *run)
{
    if (!m->c->json)
        printf("%10u %12ju %14.6f %12ju %14.6f\n", run->n_pages, (uintmax_t)run->page_hits, page_share(m, run),
               (uintmax_t)run->token_hits, token_share(m, run));
    report_add_row(&m->rows, json_pack("{s:I, s:I, s:I, s:f, s:f}", "pages", (json_int_t)run->n_pages, "page_hits",
                                       (json_int_t)run->page_hits, "token_hits", (json_int_t)run->token_hits,
                                       "hit_ratio_pages", page_share(m, run), "hit_ratio_tokens", token_share(m, run)));
}

static int draw_curve(const many *m, const prompt_list_run *runs, uint32_t n)
{
    static const plot p = {
        "Hits by the size of the pool", "pages of the pool", "share found", "of pages", "of tokens", true};
    samples *s = m->drawing ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return m->drawing ? failed(m, KVK_ENOMEM) : 0;
    for (uint32_t i = 0; i < n; i++)
        if (samples_due(s))
            samples_add(s, (sample){runs[i].n_pages, page_share(m, &runs[i]), token_share(m, &runs[i])});
    int rc = plot_draw(&p, s, m->drawing, m->error);
    free(s);
    return rc;
}

static int show_curve(many *m, const prompt_list_run *runs, uint32_t n)
{
    if (draw_curve(m, runs, n) < 0)
        return TRACE_FAILED;
    if (!m->c->json)
        printf("%10s %12s %14s %12s %14s\n", "pages", "page hits", "ratio", "token hits", "ratio");
    for (uint32_t i = 0; i < n; i++)
        show_size(m, &runs[i]);
    return 0;
}

static int run_curve(many *m)
{
    uint32_t n_sizes = m->c->curve_points ? m->c->curve_points : DEFAULT_SIZES;
    prompt_list_run *runs = calloc(n_sizes, sizeof *runs);
    if (!runs)
        return failed(m, KVK_ENOMEM);
    uint32_t n = curve_sizes(&m->list, runs, n_sizes);
    for (uint32_t i = 0; i < n; i++) {
        runs[i].reclaim = m->c->replay.reclaim;
        runs[i].memory_limit = m->c->replay.memory_limit;
    }
    int rc = failed(m, curve_run(&m->list, runs, n));
    if (rc == 0)
        rc = show_curve(m, runs, n);
    free(runs);
    return rc;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static int read_prompts(many *m, trace *t)
{
    replay_options options = m->c->replay;
    replay_result result;
    options.prompts = &m->list;
    options.samples = NULL;
    options.belady = false;
    if (options.mode == REPLAY_PREFIX || options.mode == REPLAY_FLAT)
        return replay_trace(t, &options, &result, m->error);
    const char *what = m->c->curve ? "curve" : "reclaim all";
    return trace_bad_input(m->error, (trace_place){trace_where(t, NULL).file, 0, what},
                           m->c->curve ? "goes with mode prefix, flat or timed only"
                                       : "goes with mode prefix or flat only");
}

int replay_many(trace *t, const replay_command *c, FILE *drawing, trace_error *error)
{
    many m = {.c = c, .drawing = drawing, .error = error, .rows = json_array()};
    int rc = failed(&m, prompt_list_open(&m.list));
    if (rc == 0)
        rc = read_prompts(&m, t);
    if (rc == 0)
        rc = c->curve ? run_curve(&m) : compare_orders(&m);
    if (rc == 0 && c->json)
        rc = report_print_rows(m.rows, error);
    prompt_list_close(&m.list);
    json_decref(m.rows);
    return rc;
}
