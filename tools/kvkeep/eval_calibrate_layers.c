/* eval_calibrate_layers.c: which layers' near peaks find needles. */
#include "kvkeep/eval_calibrate.h"
#include "kvkeep/report.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 16, CHUNK_PAGES = 4 };

/* What is tried of the knobs that say how important a page is. */
typedef struct trial {
    double damping, spread;
} trial;

static const trial trials[] = {{0, 0},      {0, 0.25}, {0, 0.5},    {0.25, 0},  {0.25, 0.25},
                               {0.25, 0.5}, {0.5, 0},  {0.5, 0.25}, {0.5, 0.5}, {1, 0},
                               {1, 0.25},   {1, 0.5},  {4, 0},      {4, 0.25},  {4, 0.5}};

enum { N_TRIALS = sizeof trials / sizeof trials[0] };

static const char *const kinds[CALIBRATE_KINDS] = {"digits", "words", "conversation"};

static int out_of_memory(const calibration *c)
{
    return trace_failed(c->job->error, (trace_place){"kvkeep eval calibrate", 0, NULL}, "out of memory");
}

/* ---- Recording -------------------------------------------------------------------------------------------------- */

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
        *p = (needle_peaks){
            .pages = r->prompts[i].n_text / j->o.page_tokens, .layers = s->n_layers, .heads = s->n_heads};
        p->peaks = calloc((size_t)p->pages * p->layers * p->heads, sizeof *p->peaks);
        if (!p->peaks)
            return out_of_memory(r->c);
        find_key(&r->prompts[i], j->o.page_tokens, p);
        rc = runner_sequence(r->runner, &watching, &r->seqs[i], j->error);
    }
    return rc;
}

/* A step tells of the pages from the one before its first token's on. Returns the place after them. */
static const float *take(needle_peaks *p, uint32_t first_token, uint32_t end_token, uint32_t page_tokens,
                         const float *near)
{
    uint32_t page = first_token / page_tokens, row = p->layers * p->heads;
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

/* Near peaks of all layers, in one table. */
static int open_runner(const calibration *c, uint32_t longest, runner **out)
{
    runner_config config = RUNNER_CONFIG(c->job->loaded.model);
    config.page_tokens = c->job->o.page_tokens;
    config.kv_tokens = (uint64_t)BATCH * (longest + config.page_tokens);
    config.near.kind = c->best.near.kind;
    return runner_open(&config, out, c->job->error);
}

static int record_cell(const calibration *c, const needle_cell *cell, needle_peaks *peaks)
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

/* ---- Choosing --------------------------------------------------------------------------------------------------- */

/* What was counted in one trial: the share of keys kept, by kind and by first and last layer. */
typedef struct tally {
    double *share[CALIBRATE_KINDS]; /* [layers][layers] */
} tally;

/* Budgets are weighed alike. */
static int count_prompt(const calibration *c, const needle_peaks *p, const trial *tried, uint32_t *kept)
{
    const eval_options *o = &c->job->o;
    int rc = 0;
    for (uint32_t b = 0; b < o->budgets.n && rc == 0; b++) {
        uint32_t pages = budget_tokens(o->budgets.budgets[b], (double)p->pages * o->page_tokens) / o->page_tokens;
        uint32_t holds = (uint32_t)(c->best.choice.knobs[calibrate_knob("reserve")] * pages + 0.5);
        uint32_t recent = (uint32_t)(c->best.choice.knobs[calibrate_knob("recent_share")] * pages);
        rc = needle_peaks_count(p, &(needle_reserve){tried->damping, tried->spread, holds, recent}, kept);
    }
    return rc < 0 ? out_of_memory(c) : 0;
}

static int count_cell(const calibration *c, const needle_cell *cell, const needle_peaks *peaks, const trial *tried,
                      double *share)
{
    uint32_t layers = c->best.layers, all = layers * layers;
    uint32_t *kept = calloc(all, sizeof *kept);
    int rc = kept ? 0 : out_of_memory(c);
    for (uint32_t i = 0; i < cell->n && rc == 0; i++)
        rc = count_prompt(c, &peaks[i], tried, kept);
    for (uint32_t i = 0; i < all && rc == 0; i++)
        share[i] += (double)kept[i] / cell->n / c->job->o.budgets.n;
    free(kept);
    return rc;
}

/* A kind's cells are recorded once and counted in each trial. */
static int count_kind(const calibration *c, uint32_t kind, tally *tallies)
{
    int rc = 0;
    for (uint32_t i = 0; i < c->n_cells[kind] && rc == 0; i++) {
        const needle_cell *cell = &c->cells[kind][i];
        needle_peaks *peaks = calloc(cell->n, sizeof *peaks);
        rc = peaks ? record_cell(c, cell, peaks) : out_of_memory(c);
        for (uint32_t d = 0; d < N_TRIALS && rc == 0; d++)
            rc = count_cell(c, cell, peaks, &trials[d], tallies[d].share[kind]);
        for (uint32_t k = 0; peaks && k < cell->n; k++)
            free(peaks[k].peaks);
        free(peaks);
    }
    return rc;
}

static double share_of(const calibration *c, const tally *t, uint32_t first, uint32_t last)
{
    double sum = 0;
    uint32_t n = 0, layers = c->best.layers;
    for (uint32_t kind = 0; kind < CALIBRATE_KINDS; kind++)
        if (c->n_cells[kind]) {
            sum += t->share[kind][first * layers + last] / c->n_cells[kind];
            n++;
        }
    return sum / n;
}

/* The mean over a range and those that differ by one layer: a range that is good by chance has neighbours that are
 * not. Of equals, fewer layers are less work. */
static double merit(const calibration *c, const tally *t, uint32_t first, uint32_t last)
{
    double sum = 0;
    uint32_t n = 0, layers = c->best.layers;
    for (uint32_t a = first - (first > 0); a <= first + 1; a++)
        for (uint32_t b = last - (last > 0); b <= last + 1; b++)
            if (a <= b && b < layers) {
                sum += share_of(c, t, a, b);
                n++;
            }
    return sum / n - 1e-3 * (last - first + 1) / layers;
}

static void note(calibration *c, const tally *t, const trial *tried, const forward_near *near)
{
    json_t *row = json_pack("{s:s, s:f, s:f, s:i, s:i, s:f}", "step", "layers", "damping", tried->damping, "spread",
                            tried->spread, "near_first", (int)near->first, "near_layers", (int)near->n, "kept",
                            share_of(c, t, near->first, near->first + near->n - 1));
    for (uint32_t kind = 0; row && kind < CALIBRATE_KINDS; kind++)
        if (c->n_cells[kind])
            json_object_set_new(
                row, kinds[kind],
                json_real(t->share[kind][near->first * c->best.layers + near->first + near->n - 1] / c->n_cells[kind]));
    report_add_row(&c->steps, row);
}

static double choose(const calibration *c, const tally *t, forward_near *near)
{
    double best = -1;
    for (uint32_t first = 0; first < c->best.layers; first++)
        for (uint32_t last = first; last < c->best.layers; last++) {
            double value = merit(c, t, first, last);
            if (value > best) {
                best = value;
                near->first = first;
                near->n = last - first + 1;
            }
        }
    return best;
}

static void choose_all(calibration *c, const tally *tallies)
{
    double best = -1;
    for (uint32_t d = 0; d < N_TRIALS; d++) {
        forward_near near = c->best.near;
        double value = choose(c, &tallies[d], &near);
        note(c, &tallies[d], &trials[d], &near);
        if (value > best) {
            best = value;
            c->best.near = near;
            c->best.choice.knobs[calibrate_knob("damping")] = trials[d].damping;
            c->best.choice.knobs[calibrate_knob("spread")] = trials[d].spread;
        }
    }
}

int calibrate_layers(calibration *c)
{
    tally tallies[N_TRIALS] = {0};
    int rc = 0;
    for (uint32_t d = 0; d < N_TRIALS; d++)
        for (uint32_t kind = 0; kind < CALIBRATE_KINDS; kind++) {
            tallies[d].share[kind] = calloc((size_t)c->best.layers * c->best.layers, sizeof(double));
            rc = tallies[d].share[kind] ? rc : out_of_memory(c);
        }
    for (uint32_t kind = 0; kind < CALIBRATE_KINDS && rc == 0; kind++)
        rc = count_kind(c, kind, tallies);
    if (rc == 0)
        choose_all(c, tallies);
    for (uint32_t d = 0; d < N_TRIALS; d++)
        for (uint32_t kind = 0; kind < CALIBRATE_KINDS; kind++)
            free(tallies[d].share[kind]);
    return rc;
}
