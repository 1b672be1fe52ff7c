/* eval/needle.c: cells of prompts under every configuration. */
#include "kvkeep/eval/needle.h"
#include "kvkeep/report.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 32 /* sequences at a time: enough to read weights once for many */ };

static const uint64_t most_bytes = (uint64_t)4 << 30; /* of K and V, unless a single sequence needs more */

static int out_of_memory(const eval_job *j)
{
    return trace_failed(j->error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
}

/* The rows of a cell whose results lack, of one type of KV. */
typedef struct asking {
    eval_job *job;
    const needle_cell *cell;
    const needle_row **rows; /* [n] */
    char (*keys)[EVAL_KEY];  /* [n] */
    kvk_eviction *evictions; /* [n] */
    needle_job *jobs;        /* [n][cell->n] */
    uint32_t n;
    double done, part; /* of all the work */
} asking;

static int key_of(const eval_job *j, const needle_row *row, char key[EVAL_KEY])
{
    char what[64];
    snprintf(what, sizeof what, "needles-%s", eval_question_name(row->question));
    return eval_config_key(j, what, row->cell->digest, row->config, key);
}

/* Full is the same at every budget, so a key may be there already. */
static int is_listed(const asking *a, const char *key)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->keys[i], key) == 0)
            return 1;
    return eval_results_find(&a->job->results, key) != NULL;
}

static int list_row(asking *a, const needle_row *row)
{
    char *key = a->keys[a->n];
    int rc = key_of(a->job, row, key);
    if (rc < 0 || is_listed(a, key))
        return rc;
    kvk_eviction *e = &a->evictions[a->n];
    kvk_eviction_init(e);
    e->choice = row->config->choice;
    e->budget = eval_never_evicts(row->config) ? 0 : row->config->budget;
    needle_job *jobs = a->jobs + (size_t)a->n * a->cell->n;
    for (uint32_t i = 0; i < a->cell->n; i++)
        jobs[i] = (needle_job){.prompt = &a->cell->prompts[i], .eviction = e, .question = row->question};
    a->rows[a->n++] = row;
    return 0;
}

/* ---- Asking ----------------------------------------------------------------------------------------------------- */

static void told(void *ctx, uint32_t done, uint32_t n)
{
    asking *a = ctx;
    progress_show_part(&a->job->progress, a->done + a->part * done / n);
}

static uint64_t most_tokens(const asking *a, const needle_options *o)
{
    uint64_t most = 0, all = 0;
    for (uint32_t i = 0; i < a->n * a->cell->n; i++) {
        uint64_t tokens = needle_job_tokens(&a->jobs[i], o->page_tokens, o->chunk);
        most = tokens > most ? tokens : most;
        all += tokens;
    }
    const model_shape *s = &a->job->loaded.model->shape;
    uint64_t each = (uint64_t)s->n_layers * s->n_kv_heads * s->head_size * 2 * sizeof(float);
    uint64_t fit = most_bytes / each / o->page_tokens * o->page_tokens, batch = most * BATCH;
    uint64_t wanted = batch < all ? batch : all;
    wanted = wanted < fit ? wanted : fit;
    return wanted > most ? wanted : most;
}

static json_t *result_of(const asking *a, uint32_t row, uint64_t page_bytes)
{
    json_t *right = json_array();
    uint64_t pages = 0;
    const needle_job *jobs = a->jobs + (size_t)row * a->cell->n;
    for (uint32_t i = 0; i < a->cell->n; i++) {
        report_add_row(&right, json_integer(jobs[i].right));
        pages = jobs[i].pages_peak > pages ? jobs[i].pages_peak : pages;
    }
    return json_pack("{s:o, s:I}", "right", right, "kv_bytes_peak", (json_int_t)(pages * page_bytes));
}

static int put_results(const asking *a, uint64_t page_bytes)
{
    int rc = 0;
    for (uint32_t i = 0; i < a->n && rc == 0; i++)
        rc = eval_results_put(&a->job->results, a->keys[i], result_of(a, i, page_bytes), a->job->error);
    return rc < 0 ? rc : eval_results_save(&a->job->results, a->job->error);
}

static int ask(asking *a, kvk_dtype kv_type)
{
    const eval_job *j = a->job;
    needle_options o = {.vocabulary = j->loaded.model->shape.n_vocabulary,
                        .page_tokens = j->o.page_tokens,
                        .chunk = j->o.chunk > j->o.page_tokens ? j->o.chunk : j->o.page_tokens,
                        .each = j->o.chunk == 1,
                        .batch = BATCH,
                        .told = told,
                        .ctx = a};
    o.kv_tokens = most_tokens(a, &o);
    int rc = eval_runner_open(j, kv_type, o.kv_tokens, 0, &o.runner);
    if (rc < 0)
        return rc;
    rc = needle_run(&o, a->jobs, a->n * a->cell->n, j->error);
    if (rc == 0)
        rc = put_results(a, runner_page_bytes(o.runner));
    runner_close(o.runner);
    return rc;
}

/* ---- Cells ------------------------------------------------------------------------------------------------------ */

static int prepare(asking *a, uint32_t n)
{
    a->rows = calloc(n, sizeof *a->rows);
    a->keys = calloc(n, sizeof *a->keys);
    a->evictions = calloc(n, sizeof *a->evictions);
    a->jobs = calloc((size_t)n * a->cell->n, sizeof *a->jobs);
    return a->rows && a->keys && a->evictions && a->jobs ? 0 : out_of_memory(a->job);
}

static void give_back(asking *a)
{
    free(a->rows);
    free(a->keys);
    free(a->evictions);
    free(a->jobs);
}

static int ask_type(asking *a, const needle_row *rows, uint32_t n, kvk_dtype kv_type)
{
    int rc = 0;
    a->n = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++)
        rc = rows[i].config->kv_type == kv_type ? list_row(a, &rows[i]) : 0;
    return rc == 0 && a->n ? ask(a, kv_type) : rc;
}

/* A file of results may have been written by anybody. */
static int find_results(const eval_job *j, needle_row *rows, uint32_t n)
{
    char key[EVAL_KEY];
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = key_of(j, &rows[i], key);
        rows[i].result = rc == 0 ? eval_results_find(&j->results, key) : NULL;
        if (rc == 0 && json_array_size(json_object_get(rows[i].result, "right")) != rows[i].cell->n)
            rc = trace_bad_input(j->error, (trace_place){j->o.resume, 0, "right"}, "has not the %u values of a cell",
                                 rows[i].cell->n);
    }
    return rc;
}

static int ask_cell(needle_table *t, uint32_t cell, uint32_t n)
{
    eval_job *j = t->job;
    needle_row *rows = t->rows + (size_t)cell * n;
    double types = j->o.n_kv_types;
    asking a = {.job = j, .cell = &t->cells[cell], .part = 1.0 / t->n_cells / types};
    int rc = prepare(&a, n);
    for (uint32_t i = 0; i < j->o.n_kv_types && rc == 0; i++) {
        a.done = (cell + i / types) / t->n_cells;
        rc = ask_type(&a, rows, n, j->o.kv_types[i]);
    }
    give_back(&a);
    return rc < 0 ? rc : find_results(j, rows, n);
}

static void list_rows(needle_table *t, uint32_t cell)
{
    const eval_needle_options *o = &t->job->o.needle;
    const eval_configs *configs = &t->configs[cell];
    for (uint32_t q = 0; q < o->n_questions; q++)
        for (uint32_t i = 0; i < configs->n; i++)
            t->rows[t->n_rows++] =
                (needle_row){.cell = &t->cells[cell], .config = &configs->list[i], .question = o->questions[q]};
}

/* All configurations of all cells are checked before the first one is asked. */
int needle_table_ask(needle_table *t)
{
    int rc = 0;
    t->configs = calloc(t->n_cells, sizeof *t->configs);
    if (!t->configs)
        return out_of_memory(t->job);
    for (uint32_t i = 0; i < t->n_cells && rc == 0; i++)
        rc = eval_configs_make(t->job, t->cells[i].length, &t->configs[i]);
    if (rc < 0)
        return rc;
    uint32_t each = t->configs[0].n * t->job->o.needle.n_questions;
    t->rows = calloc((size_t)each * t->n_cells, sizeof *t->rows);
    if (!t->rows)
        return out_of_memory(t->job);
    for (uint32_t i = 0; i < t->n_cells && rc == 0; i++) {
        list_rows(t, i);
        rc = ask_cell(t, i, each);
    }
    progress_end(&t->job->progress);
    return rc;
}

void needle_table_close(needle_table *t)
{
    for (uint32_t i = 0; t->configs && i < t->n_cells; i++)
        eval_configs_free(&t->configs[i]);
    free(t->configs);
    free(t->rows);
}

int eval_needle_run(eval_job *j, needle_cell *cells, uint32_t n)
{
    needle_table t = {.job = j, .cells = cells, .n_cells = n};
    int rc = needle_table_ask(&t);
    if (rc == 0 && j->drawing.stream)
        rc = needle_table_draw(&t, j->drawing.stream);
    if (rc == 0)
        rc = needle_table_print(&t);
    needle_table_close(&t);
    needle_cells_free(cells, n);
    return rc;
}
