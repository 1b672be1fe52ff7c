/* eval/calibrate_record.c: near peaks of prompts, without eviction. */
#include "kvkeep/eval/calibrate.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, CHUNK_PAGES = 4 };

/* A batch of prompts on their way through the model. */
typedef struct recording {
    const calibration *c;
    runner *runner;
    const needle_prompt *prompts; /* [n] */
    needle_peaks *peaks;          /* [n] */
    uint32_t n;
    kvk_seq seqs[BATCH];
} recording;

/* Where the key stands last in the text. */
static void find_key(const needle_prompt *p, uint32_t page_tokens, needle_peaks *out)
{
    const uint32_t *key = p->tokens + p->n_text + p->n_question;
    uint32_t at = p->needle + p->n_needle - p->n_answer;
    while (at > 0 && memcmp(p->tokens + at, key, p->n_answer * sizeof *key) != 0)
        at--;
    out->key_first = at / page_tokens;
    out->key_last = (at + p->n_answer - 1) / page_tokens;
}

static int begin(recording *r)
{
    const eval_job *j = r->c->job;
    const model_shape *s = &j->loaded.model->shape;
    kvk_eviction watching;
    int rc = runner_policy("keep:importance=1", 0, &watching, j->error);
    for (uint32_t i = 0; rc == 0 && i < r->n; i++) {
        needle_peaks *p = &r->peaks[i];
        *p = (needle_peaks){.pages = r->prompts[i].n_text / j->o.page_tokens, .heads = s->n_layers * s->n_heads};
        p->peaks = calloc((size_t)p->pages * p->heads, sizeof *p->peaks);
        if (!p->peaks)
            return calibrate_out_of_memory(r->c);
        find_key(&r->prompts[i], j->o.page_tokens, p);
        rc = runner_sequence(r->runner, &watching, &r->seqs[i], j->error);
    }
    return rc;
}

/* A step tells of the pages from the one before its first token's on. Returns the place after them. */
static const float *take(needle_peaks *p, uint32_t first_token, uint32_t end_token, uint32_t page_tokens,
                         const float *near)
{
    uint32_t page = first_token / page_tokens, row = p->heads;
    for (page -= page > 0; page * page_tokens < end_token; page++, near += row)
        for (uint32_t k = 0; page < p->pages && k < row; k++) {
            float *at = &p->peaks[(size_t)page * row + k];
            *at = near[k] > *at ? near[k] : *at;
        }
    return near;
}

static uint32_t step_end(const recording *r, uint32_t i, uint32_t at)
{
    uint32_t end = at + CHUNK_PAGES * r->c->job->o.page_tokens;
    return end < r->prompts[i].n_text ? end : r->prompts[i].n_text;
}

static int step(recording *r, uint32_t at, uint32_t *n_left)
{
    runner_entry entries[BATCH];
    uint32_t n = 0, page_tokens = r->c->job->o.page_tokens;
    for (uint32_t i = 0; i < r->n; i++)
        if (at < r->prompts[i].n_text)
            entries[n++] = (runner_entry){
                .sequence = r->seqs[i], .tokens = r->prompts[i].tokens + at, .n = step_end(r, i, at) - at};
    *n_left = n;
    int rc = n ? runner_step(r->runner, entries, n, r->c->job->error) : 0;
    const float *near = runner_near(r->runner);
    for (uint32_t i = 0; rc == 0 && n && i < r->n; i++)
        if (at < r->prompts[i].n_text)
            near = take(&r->peaks[i], at, step_end(r, i, at), page_tokens, near);
    return rc;
}

static int record_batch(recording *r)
{
    uint32_t left = 1;
    int rc = begin(r);
    for (uint32_t at = 0; rc == 0 && left; at += CHUNK_PAGES * r->c->job->o.page_tokens)
        rc = step(r, at, &left);
    for (uint32_t i = 0; i < r->n; i++)
        (void)kvk_seq_close(runner_cache(r->runner), r->seqs[i]); /* one that was not opened is refused */
    return rc;
}

/* Near peaks of all heads, in one table. */
static int open_runner(const calibration *c, uint32_t longest, runner **out)
{
    runner_config config = RUNNER_CONFIG(c->job->loaded.model);
    config.page_tokens = c->job->o.page_tokens;
    config.kv_tokens = (uint64_t)BATCH * (longest + config.page_tokens);
    config.near.kind = c->best.near.kind;
    return runner_open(&config, out, c->job->error);
}

int calibrate_record(const calibration *c, const needle_cell *cell, needle_peaks *peaks)
{
    runner *opened;
    int rc = open_runner(c, cell->length, &opened);
    if (rc < 0)
        return rc;
    for (uint32_t at = 0; rc == 0 && at < cell->n; at += BATCH) {
        recording r = {.c = c, .runner = opened, .prompts = cell->prompts + at, .peaks = peaks + at};
        r.n = cell->n - at < BATCH ? cell->n - at : BATCH;
        progress_show_part(&c->job->progress, (double)at / cell->n);
        rc = record_batch(&r);
    }
    runner_close(opened);
    return rc;
}
