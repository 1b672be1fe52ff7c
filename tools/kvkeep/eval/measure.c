#include "kvkeep/eval/measure.h"

#include "kvkeep/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASS_CONFIGS = 16 }; /* of one pass: enough to read weights once for many, and saved one pass after the other */

static int out_of_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep eval", 0, NULL}, "out of memory");
}

/* ---- Results as JSON -------------------------------------------------------------------------------------------- */

static json_t *list_of(const double *values, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++)
        report_add_row(&list, json_real(values[i]));
    return list;
}

static json_t *result_of(const eval_score *s, const eval_text *t, uint64_t page_bytes, uint32_t n_groups)
{
    double churn = 1000.0 * (double)s->pages_evicted / n_groups / t->n;
    json_t *retained = s->n_retained ? json_real(s->retained / (double)s->n_retained) : json_null();
    return json_pack("{s:f, s:o, s:f, s:I, s:f, s:o}", "kept_share", (double)s->pages_kept / (double)s->pages_text,
                     "retained_mass", retained, "churn_per_1k", churn, "kv_bytes_peak",
                     (json_int_t)(s->pages_peak * page_bytes), "tokens_per_s", s->tokens_per_s, "nll",
                     list_of(s->nll, t->n - 1));
}

static double number_of(const json_t *result, const char *name)
{
    const json_t *value = json_object_get(result, name);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* A file of results may have been written by anybody. */
static int read_result(const eval_job *j, const json_t *result, eval_measured *m)
{
    const json_t *list = json_object_get(result, "nll");
    if (json_array_size(list) != m->n)
        return trace_bad_input(j->error, (trace_place){j->o.resume, 0, "nll"}, "has %zu values, not %u",
                               json_array_size(list), m->n);
    m->nll = malloc(m->n * sizeof *m->nll);
    if (!m->nll)
        return out_of_memory(j->error);
    for (uint32_t i = 0; i < m->n; i++) {
        const json_t *value = json_array_get(list, i);
        m->nll[i] = json_is_number(value) ? json_number_value(value) : (double)NAN;
    }
    m->kept_share = number_of(result, "kept_share");
    m->retained_mass = number_of(result, "retained_mass");
    m->churn_per_1k = number_of(result, "churn_per_1k");
    m->tokens_per_s = number_of(result, "tokens_per_s");
    m->kv_bytes_peak = (uint64_t)json_integer_value(json_object_get(result, "kv_bytes_peak"));
    return 0;
}

/* ---- Passes ----------------------------------------------------------------------------------------------------- */

typedef struct measuring {
    eval_job *job;
    const eval_text *text;
    const eval_configs *all;
    uint32_t n_wanted, n_done; /* configurations to compute: of all passes, and before the next one */
} measuring;

static int key_of(const measuring *m, const eval_config *c, char key[EVAL_KEY])
{
    return eval_config_key(m->job, "nll", m->text->digest, c, key);
}

static int put_scores(const measuring *m, const eval_pass *p, uint64_t page_bytes)
{
    char key[EVAL_KEY];
    uint32_t groups = m->job->o.n_groups == 1 ? 1 : m->job->loaded.model->shape.n_layers;
    int rc = 0;
    for (uint32_t i = 0; i < p->n && rc == 0; i++) {
        rc = key_of(m, p->configs[i], key);
        if (rc == 0)
            rc = eval_results_put(&m->job->results, key, result_of(&p->scores[i], m->text, page_bytes, groups),
                                  m->job->error);
    }
    return rc < 0 ? rc : eval_results_save(&m->job->results, m->job->error);
}

static int run_pass(measuring *m, const eval_config *const *configs, uint32_t n)
{
    eval_pass p = {.job = m->job, .text = m->text, .configs = configs, .n = n};
    p.done = (double)m->n_done / m->n_wanted;
    p.part = (double)n / m->n_wanted;
    p.scores = calloc(n, sizeof *p.scores);
    int rc = p.scores ? eval_pass_run(&p) : out_of_memory(m->job->error);
    if (rc == 0)
        rc = put_scores(m, &p, p.page_bytes);
    m->n_done += n;
    eval_scores_free(p.scores, n);
    return rc;
}

/* Whether a configuration's result is there, or is in the list already. Full is the same at every budget. */
static int is_there(const measuring *m, const eval_config *c, const eval_config *const *list, uint32_t n)
{
    char key[EVAL_KEY], other[EVAL_KEY];
    int rc = key_of(m, c, key);
    bool found = rc == 0 && eval_results_find(&m->job->results, key) != NULL;
    for (uint32_t i = 0; rc == 0 && i < n && !found; i++) {
        rc = key_of(m, list[i], other);
        found = strcmp(key, other) == 0;
    }
    return rc < 0 ? rc : found;
}

/* The next pass of a type: full, and configurations whose results lack. Returns how many; 0: nothing is left to do. */
static int choose(const measuring *m, kvk_dtype kv_type, const eval_config *list[PASS_CONFIGS])
{
    uint32_t n = 0, lacking = 0;
    for (uint32_t i = 0; i < m->all->n && n < PASS_CONFIGS; i++) {
        const eval_config *c = &m->all->list[i];
        if (c->kv_type != kv_type)
            continue;
        bool is_first = n == 0; /* of its type, so it is full */
        int there = is_there(m, c, list, n);
        if (there < 0)
            return there;
        lacking += !there;
        if (is_first || !there)
            list[n++] = c;
    }
    return (int)(lacking ? n : 0);
}

static int run_type(measuring *m, kvk_dtype kv_type)
{
    const eval_config *list[PASS_CONFIGS];
    int n, rc = 0;
    while (rc == 0 && (n = choose(m, kv_type, list)) != 0)
        rc = n < 0 ? n : run_pass(m, list, (uint32_t)n);
    return rc;
}

int eval_measure(eval_job *j, const eval_text *text, const eval_configs *c, eval_measured *out)
{
    measuring m = {.job = j, .text = text, .all = c, .n_wanted = c->n};
    int rc = 0;
    memset(out, 0, c->n * sizeof *out);
    for (uint32_t i = 0; i < j->o.n_kv_types && rc == 0; i++)
        rc = run_type(&m, j->o.kv_types[i]);
    for (uint32_t i = 0; i < c->n && rc == 0; i++) {
        char key[EVAL_KEY];
        out[i].config = &c->list[i];
        out[i].n = text->n - 1;
        rc = key_of(&m, &c->list[i], key);
        if (rc == 0)
            rc = read_result(j, eval_results_find(&j->results, key), &out[i]);
        out[i].full = out[0].nll;
    }
    return rc;
}

void eval_measured_free(eval_measured *m, uint32_t n)
{
    for (uint32_t i = 0; m && i < n; i++)
        free(m[i].nll);
    free(m);
}

uint32_t eval_first_active(const eval_measured *m)
{
    uint32_t budget = m->config->budget;
    return budget == 0 ? 0 : budget - 1 < m->n ? budget - 1 : m->n;
}
