/* eval/calibrate_knobs.c: what of keep's knobs takes runs of the model to be found. */
#include "kvkeep/eval/calibrate.h"
#include "kvkeep/eval/table.h"
#include "kvkeep/report.h"

#include <math.h>
#include <string.h>

enum { MOST_VALUES = 5 };

/* A knob and what is tried of it, in the order in which they are found: what matters most goes first. */
typedef struct candidate_values {
    const char *knob;
    uint32_t n;
    double values[MOST_VALUES];
} candidate_values;

static const candidate_values tried[] = {
    {"reserve", 4, {0.25, 0.375, 0.5, 0.625}},
    {"recent_share", 3, {0.125, 0.25, 0.375}},
    {"half_life", 3, {64, 128, 512}},
    {"least", 4, {0, 1.2, 1.4, 1.6}},
};

uint32_t calibrate_knob(const char *name)
{
    const kvk_policy *keep;
    uint32_t i = 0, k = 0;
    while ((keep = kvk_policy_at(i)) && strcmp(keep->name, "keep") != 0)
        i++;
    while (strcmp(keep->knobs[k].name, name) != 0)
        k++;
    return k;
}

/* What came of each value. */
typedef struct outcomes {
    double recall[MOST_VALUES], loss[MOST_VALUES];
} outcomes;

static void set_policies(calibration *c, const candidate_values *v)
{
    policy_list *p = &c->job->o.policies;
    p->n = v->n;
    for (uint32_t i = 0; i < v->n; i++) {
        p->choices[i] = c->best.choice;
        p->choices[i].knobs[calibrate_knob(v->knob)] = v->values[i];
    }
}

/* ---- Recall ----------------------------------------------------------------------------------------------------- */

/* A kind's share of all: kinds are weighed alike, and of a kind all its rows. */
static void add_recall(const needle_table *t, double weight, uint32_t n_values, outcomes *out)
{
    uint32_t each = t->n_rows / n_values;
    for (uint32_t i = 0; i < t->n_rows; i++)
        out->recall[i % n_values] += weight * needle_row_recall(&t->rows[i]) / each;
}

static int measure_recall(calibration *c, const candidate_values *v, outcomes *out)
{
    uint32_t kinds = 0;
    int rc = 0;
    for (uint32_t k = 0; k < CALIBRATE_KINDS; k++)
        kinds += c->n_cells[k] > 0;
    for (uint32_t k = 0; k < CALIBRATE_KINDS && rc == 0; k++) {
        needle_table t = {.job = c->job, .cells = c->cells[k], .n_cells = c->n_cells[k]};
        if (t.n_cells == 0)
            continue;
        rc = needle_table_ask(&t);
        if (rc == 0)
            add_recall(&t, 1.0 / kinds, v->n, out);
        needle_table_close(&t);
    }
    return rc;
}

/* ---- Perplexity ------------------------------------------------------------------------------------------------- */

/* Full goes first and is put back out. */
static int measure_loss(calibration *c, const candidate_values *v, outcomes *out)
{
    eval_table t = {.job = c->job};
    const eval_options *o = &c->job->o;
    int rc = eval_table_measure(&t, &c->text);
    for (uint32_t b = 0; b < o->budgets.n && rc == 0; b++)
        for (uint32_t i = 0; i < v->n; i++)
            out->loss[i] += eval_row_change_active(&t.rows[b * (v->n + 1) + 1 + i]).mean / o->budgets.n;
    eval_table_close(&t);
    return rc;
}

/* ---- One knob after the other ----------------------------------------------------------------------------------- */

static double least(const double *values, uint32_t n)
{
    double low = values[0];
    for (uint32_t i = 1; i < n; i++)
        low = fmin(low, values[i]);
    return low;
}

static uint32_t choose(const calibration *c, const candidate_values *v, const outcomes *out)
{
    double allowed = least(out->loss, v->n) + c->job->o.calibrate.loss;
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < v->n; i++) {
        if (out->loss[i] > allowed)
            continue;
        if (best == UINT32_MAX || out->recall[i] > out->recall[best] ||
            (out->recall[i] >= out->recall[best] && out->loss[i] < out->loss[best]))
            best = i;
    }
    return best == UINT32_MAX ? 0 : best; /* none where a loss is no number */
}

static void note(calibration *c, const candidate_values *v, const outcomes *out, uint32_t chosen)
{
    for (uint32_t i = 0; i < v->n; i++)
        report_add_row(&c->steps, json_pack("{s:s, s:f, s:f, s:o, s:b}", "step", v->knob, "value", v->values[i],
                                            "recall", out->recall[i], "change_active", eval_json_number(out->loss[i]),
                                            "chosen", (int)(i == chosen)));
}

int calibrate_knobs(calibration *c)
{
    int rc = 0;
    c->job->profile.near = c->best.near;
    for (size_t k = 0; k < sizeof tried / sizeof tried[0] && rc == 0; k++) {
        const candidate_values *v = &tried[k];
        outcomes out = {{0}, {0}};
        set_policies(c, v);
        rc = measure_recall(c, v, &out);
        if (rc == 0)
            rc = measure_loss(c, v, &out);
        if (rc < 0)
            break;
        uint32_t chosen = choose(c, v, &out);
        note(c, v, &out, chosen);
        c->best.choice.knobs[calibrate_knob(v->knob)] = v->values[chosen];
    }
    return rc;
}
