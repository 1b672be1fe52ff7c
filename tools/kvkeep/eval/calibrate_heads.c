/* eval/calibrate_heads.c: which heads' near peaks find needles.
 *
 * Few do, and those agree on every text, while most heads of a layer look for something else; so heads are chosen one
 * after the other, each time the one that makes the keys of all prompts safest together with those chosen before
 * (forward selection), and of the sets so found the best is taken. */
#include "kvkeep/eval/calibrate.h"
#include "kvkeep/report.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_HEADS = 12 };

/* What is tried of the knobs that say how important a page is. */
typedef struct trial {
    double damping, spread;
} trial;

static const trial trials[] = {{0, 0},      {0, 0.25}, {0, 0.5},    {0.25, 0},  {0.25, 0.25},
                               {0.25, 0.5}, {0.5, 0},  {0.5, 0.25}, {0.5, 0.5}, {1, 0},
                               {1, 0.25},   {1, 0.5},  {4, 0},      {4, 0.25},  {4, 0.5}};

enum { N_TRIALS = sizeof trials / sizeof trials[0] };

static const char *const kinds[CALIBRATE_KINDS] = {"digits", "words", "conversation"};

/* A recorded prompt. */
typedef struct sample {
    needle_peaks peaks;
    uint32_t kind;
    double weight; /* kinds count alike, of a kind its cells, of a cell its prompts; all together are 1 */
    float *alone;  /* [heads][pages] importance by each head alone */
    float *sum;    /* [pages] by those chosen */
    needle_reserve reserves[BUDGET_LIST_MAX]; /* of each budget, in the trial */
} sample;

typedef struct search {
    calibration *c;
    sample *samples; /* [n] */
    uint32_t n;
    uint32_t most_pages, heads;
    float *work;    /* [heads][most_pages] */
    double *values; /* [heads] */
    trial tried;
    uint32_t chosen[MOST_HEADS], n_chosen;
} search;

/* What was found in a trial. */
typedef struct choice {
    trial tried;
    uint32_t heads[MOST_HEADS], n;
    double safety;
} choice;

int calibrate_out_of_memory(const calibration *c)
{
    return trace_failed(c->job->error, (trace_place){"kvkeep eval calibrate", 0, NULL}, "out of memory");
}

/* ---- Recording -------------------------------------------------------------------------------------------------- */

static int take_cell(search *s, const needle_cell *cell, uint32_t kind, double weight)
{
    needle_peaks *peaks = calloc(cell->n, sizeof *peaks);
    int rc = peaks ? calibrate_record(s->c, cell, peaks) : calibrate_out_of_memory(s->c);
    for (uint32_t i = 0; peaks && i < cell->n; i++) {
        sample *x = &s->samples[s->n++];
        *x = (sample){.peaks = peaks[i], .kind = kind, .weight = weight / cell->n};
        x->alone = calloc((size_t)peaks[i].pages * peaks[i].heads, sizeof *x->alone);
        x->sum = calloc(peaks[i].pages, sizeof *x->sum);
        s->most_pages = peaks[i].pages > s->most_pages ? peaks[i].pages : s->most_pages;
        rc = rc < 0 || (x->alone && x->sum) ? rc : calibrate_out_of_memory(s->c);
    }
    free(peaks);
    return rc;
}

static int take_cells(search *s)
{
    const calibration *c = s->c;
    uint32_t n_kinds = 0;
    int rc = 0;
    for (uint32_t k = 0; k < CALIBRATE_KINDS; k++)
        n_kinds += c->n_cells[k] > 0;
    for (uint32_t k = 0; k < CALIBRATE_KINDS; k++)
        for (uint32_t i = 0; i < c->n_cells[k] && rc == 0; i++)
            rc = take_cell(s, &c->cells[k][i], k, 1.0 / n_kinds / c->n_cells[k]);
    return rc;
}

static int open_search(search *s)
{
    const model_shape *shape = &s->c->job->loaded.model->shape;
    uint32_t prompts = 0;
    for (uint32_t k = 0; k < CALIBRATE_KINDS; k++)
        for (uint32_t i = 0; i < s->c->n_cells[k]; i++)
            prompts += s->c->cells[k][i].n;
    s->heads = shape->n_layers * shape->n_heads;
    s->samples = calloc(prompts, sizeof *s->samples);
    s->values = calloc(s->heads, sizeof *s->values);
    int rc = s->samples && s->values ? take_cells(s) : calibrate_out_of_memory(s->c);
    if (rc == 0)
        s->work = calloc((size_t)s->heads * s->most_pages, sizeof *s->work);
    return rc == 0 && !s->work ? calibrate_out_of_memory(s->c) : rc;
}

static void close_search(search *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        free(s->samples[i].peaks.peaks);
        free(s->samples[i].alone);
        free(s->samples[i].sum);
    }
    free(s->samples);
    free(s->values);
    free(s->work);
}

/* ---- Choosing heads --------------------------------------------------------------------------------------------- */

static needle_reserve reserve_of(const search *s, const sample *x, uint32_t budget)
{
    const eval_options *o = &s->c->job->o;
    const double *knobs = s->c->best.choice.knobs;
    uint32_t tokens = budget_tokens(o->budgets.budgets[budget], (double)x->peaks.pages * o->page_tokens);
    uint32_t pages = tokens / o->page_tokens;
    return (needle_reserve){.damping = s->tried.damping,
                            .spread = s->tried.spread,
                            .holds = (uint32_t)(knobs[calibrate_knob("reserve")] * pages + 0.5),
                            .recent = (uint32_t)(knobs[calibrate_knob("recent_share")] * pages)};
}

/* Budgets count alike. */
static double safety_of(const search *s, const sample *x, const float *importance)
{
    uint32_t budgets = s->c->job->o.budgets.n;
    double sum = 0;
    for (uint32_t b = 0; b < budgets; b++)
        sum += needle_peaks_safety(&x->peaks, &x->reserves[b], importance);
    return sum / budgets;
}

/* How safe the keys are with another head. */
static double value_with(const search *s, uint32_t head)
{
    float *importance = s->work + (size_t)head * s->most_pages;
    double value = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const sample *x = &s->samples[i];
        const float *alone = x->alone + (size_t)head * x->peaks.pages;
        for (uint32_t p = 0; p < x->peaks.pages; p++)
            importance[p] = x->sum[p] + alone[p];
        value += x->weight * safety_of(s, x, importance);
    }
    return value;
}

static int is_chosen(const search *s, uint32_t head)
{
    for (uint32_t i = 0; i < s->n_chosen; i++)
        if (s->chosen[i] == head)
            return 1;
    return 0;
}

/* Takes the best head to those chosen, of equals the first. Returns how safe the keys are then. */
static double choose_head(search *s)
{
    uint32_t best = UINT32_MAX;
#pragma omp parallel for schedule(dynamic)
    for (uint32_t h = 0; h < s->heads; h++)
        s->values[h] = is_chosen(s, h) ? -1 : value_with(s, h);
    for (uint32_t h = 0; h < s->heads; h++)
        if (best == UINT32_MAX || s->values[h] > s->values[best])
            best = h;
    for (uint32_t i = 0; i < s->n; i++) {
        const sample *x = &s->samples[i];
        for (uint32_t p = 0; p < x->peaks.pages; p++)
            x->sum[p] += x->alone[(size_t)best * x->peaks.pages + p];
    }
    s->chosen[s->n_chosen++] = best;
    return s->values[best];
}

static void begin_trial(search *s, const trial *tried)
{
    s->tried = *tried;
    s->n_chosen = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        sample *x = &s->samples[i];
        needle_peaks_weigh(&x->peaks, tried->damping, x->alone);
        memset(x->sum, 0, x->peaks.pages * sizeof *x->sum);
        for (uint32_t b = 0; b < s->c->job->o.budgets.n; b++)
            x->reserves[b] = reserve_of(s, x, b);
    }
}

static choice choose(search *s, const trial *tried)
{
    choice best = {.tried = *tried, .safety = -1};
    begin_trial(s, tried);
    while (s->n_chosen < MOST_HEADS && s->n_chosen < s->heads) {
        double safety = choose_head(s);
        if (safety > best.safety) {
            best.safety = safety;
            best.n = s->n_chosen;
        }
    }
    memcpy(best.heads, s->chosen, best.n * sizeof *best.heads);
    return best;
}

/* ---- What comes of it ------------------------------------------------------------------------------------------- */

/* The share of a kind's keys that these heads would have kept, budgets and cells alike; -1 without memory. */
static double kept_share(const search *s, const choice *x, uint32_t kind)
{
    uint32_t budgets = s->c->job->o.budgets.n;
    double kept = 0, all = 0;
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t b = 0; b < budgets && s->samples[i].kind == kind; b++) {
            const sample *y = &s->samples[i];
            int is_kept = needle_peaks_kept(&y->peaks, &y->reserves[b], x->heads, x->n);
            if (is_kept < 0)
                return -1;
            kept += s->samples[i].weight * is_kept;
            all += s->samples[i].weight;
        }
    return kept / all;
}

static near_heads heads_of(const search *s, const choice *x)
{
    near_heads out = {.kind = s->c->best.near.kind, .n = x->n};
    uint32_t each = s->c->job->loaded.model->shape.n_heads;
    for (uint32_t i = 0; i < x->n; i++)
        out.chosen[i] = (near_head){(uint16_t)(x->heads[i] / each), (uint16_t)(x->heads[i] % each)};
    return out;
}

static int note(const search *s, const choice *x)
{
    near_heads heads = heads_of(s, x);
    json_t *row = json_pack("{s:s, s:f, s:f, s:i, s:f}", "step", "heads", "damping", x->tried.damping, "spread",
                            x->tried.spread, "heads", (int)x->n, "safety", x->safety);
    for (uint32_t k = 0; k < CALIBRATE_KINDS; k++)
        if (s->c->n_cells[k]) {
            double kept = kept_share(s, x, k);
            if (kept < 0)
                return calibrate_out_of_memory(s->c);
            json_object_set_new(row, kinds[k], json_real(kept));
        }
    json_object_set_new(row, "near_heads", profile_heads_json(&heads));
    report_add_row(&s->c->steps, row);
    return 0;
}

static void take(search *s, const choice *x)
{
    calibration *c = s->c;
    c->best.near = heads_of(s, x);
    c->best.choice.knobs[calibrate_knob("damping")] = x->tried.damping;
    c->best.choice.knobs[calibrate_knob("spread")] = x->tried.spread;
}

static int choose_all(search *s)
{
    double best = -1;
    int rc = 0;
    for (uint32_t i = 0; i < N_TRIALS && rc == 0; i++) {
        choice x = choose(s, &trials[i]);
        rc = note(s, &x);
        if (x.safety > best) {
            best = x.safety;
            take(s, &x);
        }
    }
    return rc;
}

int calibrate_heads(calibration *c)
{
    search s = {.c = c};
    int rc = open_search(&s);
    if (rc == 0)
        rc = choose_all(&s);
    close_search(&s);
    return rc;
}
