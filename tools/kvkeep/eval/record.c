/* eval/record.c: what attention gives the pages of a text, as files for `kvkeep replay --mode evict`. */
#include "kvkeep/eval/text.h"
#include "kvkeep/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options ---------------------------------------------------------------------------------------------------- */

enum { KEY_OUT = 0x400 };

static const struct argp_option options[] = {
    {"out", KEY_OUT, "PREFIX", 0, "Write PREFIX.npy, PREFIX.peaks.npy and PREFIX.json", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    const arguments *a = state->input;
    if (!a || key != KEY_OUT)
        return ARGP_ERR_UNKNOWN;
    ((eval_options *)a->options)->record.prefix = text;
    return 0;
}

static const struct argp argp = {options, parse, NULL, NULL, NULL, NULL, NULL};

static int check(const eval_job *j)
{
    const eval_options *o = &j->o;
    const char *idle = o->policies.n       ? "--policy"
                       : o->budgets.n      ? "--budget"
                       : o->chunk > 1      ? "--chunk"
                       : o->n_kv_types > 1 ? "--kv-type"
                       : o->plot           ? "--plot"
                       : o->resume         ? "--resume"
                                           : NULL;
    if (idle)
        return trace_bad_input(j->error, (trace_place){"kvkeep eval record", 0, idle},
                               "means nothing here: full attention of one model is recorded");
    if (o->record.prefix && *o->record.prefix)
        return 0;
    return trace_bad_input(j->error, (trace_place){"kvkeep eval record", 0, "--out"}, "missing: how to name the files");
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

enum { FILE_MEAN, FILE_PEAK, FILE_ABOUT, N_FILES };

typedef struct recording {
    eval_job *job;
    eval_text text;
    char paths[N_FILES][LOADED_MODEL_PATH];
    outfile files[N_FILES];
    runner *runner;
    kvk_seq seq;
    uint32_t n_groups, n_pages;
    float *row; /* [n_pages] */
} recording;

static int open_files(recording *r)
{
    static const char *const ends[N_FILES] = {".npy", ".peaks.npy", ".json"};
    int rc = 0;
    for (int i = 0; i < N_FILES && rc == 0; i++) {
        int n = snprintf(r->paths[i], sizeof r->paths[i], "%s%s", r->job->o.record.prefix, ends[i]);
        if ((size_t)n >= sizeof r->paths[i])
            return trace_bad_input(r->job->error, (trace_place){"kvkeep eval record", 0, "--out"}, "is too long");
        rc = outfile_open(&r->files[i], r->paths[i], r->job->error);
    }
    return rc;
}

/* NumPy's format 1.0: the values begin at a multiple of 64. */
static void write_head(const recording *r, FILE *out)
{
    char text[256];
    int n = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%u, %u, %u), }", r->text.n,
                     r->n_groups, r->n_pages);
    int length = (10 + n + 1 + 63) / 64 * 64 - 10;
    const unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)length, 0};
    fwrite(head, 1, sizeof head, out);
    fprintf(out, "%-*s\n", length - 1, text);
}

static void write_about(const recording *r)
{
    const char *path = r->paths[FILE_PEAK], *slash = strrchr(path, '/');
    const model_shape *s = &r->job->loaded.model->shape;
    json_t *about = json_pack("{s:i, s:i, s:i, s:s, s:s, s:s}", "page_tokens", (int)r->job->o.page_tokens, "groups",
                              (int)r->n_groups, "heads", (int)(s->n_heads * s->n_layers / r->n_groups), "aggregation",
                              "mean", "peaks", slash ? slash + 1 : path, "model", loaded_model_name(&r->job->loaded));
    if (about)
        json_dumpf(about, r->files[FILE_ABOUT].stream, JSON_COMPACT);
    json_decref(about);
}

/* ---- Recording -------------------------------------------------------------------------------------------------- */

/* What a query gave the pages that are there; of the others nothing is known. */
static void write_row(const recording *r, const float *masses, uint32_t n, FILE *out)
{
    for (uint32_t p = 0; p < r->n_pages; p++)
        r->row[p] = p < n ? fminf(masses[p], 1) : NAN; /* a sum may be off by a rounding */
    fwrite(r->row, sizeof *r->row, r->n_pages, out);
}

static void write_query(const recording *r, uint32_t query)
{
    for (uint32_t g = 0; g < r->n_groups; g++) {
        runner_masses m;
        runner_seen(r->runner, 0, g, &m);
        write_row(r, m.mean + (size_t)query * m.n_pages, m.n_pages, r->files[FILE_MEAN].stream);
        write_row(r, m.peak + (size_t)query * m.n_pages, m.n_pages, r->files[FILE_PEAK].stream);
    }
}

/* A full disk is noticed at once. */
static int check_files(const recording *r)
{
    for (int i = 0; i < N_FILES; i++)
        if (ferror(r->files[i].stream))
            return trace_failed(r->job->error, (trace_place){r->paths[i], 0, NULL}, "cannot write: %s",
                                strerror(errno));
    return 0;
}

static int record_text(recording *r)
{
    uint32_t page = r->job->o.page_tokens, n = r->text.n;
    int rc = 0;
    for (uint32_t at = 0; at < n && rc == 0; at += page) {
        runner_entry e = {.sequence = r->seq, .tokens = r->text.tokens + at, .n = n - at < page ? n - at : page};
        e.each = 1;
        rc = runner_step(r->runner, &e, 1, r->job->error);
        for (uint32_t q = 0; rc == 0 && q < e.n; q++)
            write_query(r, q);
        rc = rc < 0 ? rc : check_files(r);
        progress_show_part(&r->job->progress, (double)at / n);
    }
    return rc;
}

static int open_runner(recording *r)
{
    const eval_job *j = r->job;
    uint32_t page = j->o.page_tokens;
    r->n_groups = j->o.n_groups == 1 ? 1 : j->loaded.model->shape.n_layers;
    r->n_pages = (r->text.n + page - 1) / page;
    r->row = malloc(r->n_pages * sizeof *r->row);
    if (!r->row)
        return trace_failed(j->error, (trace_place){"kvkeep eval record", 0, NULL}, "out of memory");
    int rc =
        eval_runner_open(j, j->o.kv_types[0], (uint64_t)r->n_pages * page, KVK_NEED_MEAN | KVK_NEED_PEAK, &r->runner);
    return rc < 0 ? rc : runner_sequence(r->runner, NULL, &r->seq, j->error);
}

static int show(const recording *r)
{
    report out;
    report_open(&out);
    report_add(&out, "model", json_string(loaded_model_name(&r->job->loaded)));
    report_add(&out, "text", json_string(r->job->o.text));
    report_add(&out, "masses", json_string(r->paths[FILE_MEAN]));
    report_count(&out, "steps", r->text.n);
    report_count(&out, "groups", r->n_groups);
    report_count(&out, "pages", r->n_pages);
    report_count(&out, "page_tokens", r->job->o.page_tokens);
    return report_print(&out, r->job->o.json, r->job->error);
}

static int record(recording *r)
{
    int rc = open_runner(r);
    if (rc < 0)
        return rc;
    write_head(r, r->files[FILE_MEAN].stream);
    write_head(r, r->files[FILE_PEAK].stream);
    write_about(r);
    rc = record_text(r);
    progress_end(&r->job->progress);
    for (int i = 0; i < N_FILES && rc == 0; i++)
        rc = outfile_commit(&r->files[i], r->job->error);
    return rc < 0 ? rc : show(r);
}

static int run(eval_job *j)
{
    recording r = {.job = j};
    int rc = check(j);
    if (rc == 0)
        rc = eval_text_read(j, j->o.text, &r.text);
    if (rc == 0)
        rc = open_files(&r);
    if (rc == 0)
        rc = record(&r);
    for (int i = 0; i < N_FILES; i++)
        outfile_discard(&r.files[i]);
    runner_close(r.runner);
    free(r.row);
    eval_text_free(&r.text);
    return rc;
}

const eval_task eval_task_record = {
    "record", "Attention on the pages of a text, for replay --mode evict", true, &argp, NULL, run};
