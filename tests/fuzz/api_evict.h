/* api_evict.h: the calls of eviction, for fuzz_api.c. */
#ifndef FUZZ_API_EVICT_H
#define FUZZ_API_EVICT_H

#include "api_run.h"

#include <kvkeep/eviction.h>
#include <math.h>

/* A knob at its default, at a bound or at a small number. */
static inline double knob_value(run *r, const kvk_knob *knob)
{
    uint8_t b = byte(r);
    if (b < 64)
        return knob->standard;
    if (b >= 240)
        return b < 248 ? knob->min : b < 254 ? knob->max : (double)NAN;
    double value = knob->whole ? b % 12 : knob->min + (knob->max - knob->min) * (b % 12) / 11;
    return value < knob->min ? knob->min : value > knob->max ? knob->max : value;
}

static inline kvk_policy_choice any_choice(run *r)
{
    kvk_policy_choice choice;
    kvk_policy_defaults(kvk_policy_at(byte(r) % 10), &choice);
    for (uint32_t i = 0; i < choice.policy->n_knobs; i++)
        choice.knobs[i] = knob_value(r, &choice.policy->knobs[i]);
    return choice;
}

static inline int call_set_eviction(run *r)
{
    static const float shares[] = {0, 0.25f, 0.5f, 0.9f, 1, -1, NAN, 0};
    uint32_t budgets[GROUPS], flags = byte(r);
    kvk_seq *seq = pick_seq(r);
    kvk_eviction e;
    if (flags == 255)
        return kvk_seq_set_eviction(r->cache, *seq, NULL);
    kvk_eviction_init(&e);
    e.choice = any_choice(r);
    e.budget = flags & 1 ? number(r) : 0;
    e.slack = flags & 2 ? byte(r) % 4 : 0;
    e.floor = flags & 4 ? number(r) : 0;
    e.yields = flags & 8 ? byte(r) % 3 : 1;
    e.n_prompt = flags & 16 ? number(r) : 0;
    e.slope = flags & 32 ? shares[byte(r) % 8] : 0;
    e.target = flags & 64 ? shares[byte(r) % 8] : 0;
    for (int g = 0; flags & 128 && g < GROUPS; g++)
        budgets[g] = byte(r) % 32;
    e.budgets = flags & 128 ? budgets : NULL;
    return kvk_seq_set_eviction(r->cache, *seq, &e);
}

/* Mostly positions that are held. */
static inline int call_evict(run *r)
{
    uint32_t held[PLAN_PAGES], chosen[PLAN_PAGES], n_chosen = 0, group = byte(r) % (GROUPS + 1);
    kvk_seq seq = *pick_seq(r);
    int n = kvk_seq_positions(r->cache, seq, group, held, PLAN_PAGES);
    uint32_t choice = number(r);
    for (int i = 0; i < n; i++)
        if (choice >> (i % 32) & 1)
            chosen[n_chosen++] = held[i] + (choice == 23);
    return kvk_evict(r->cache, seq, group, chosen, n_chosen);
}

/* What is told of a sequence agrees with itself. */
static inline int call_look_at_eviction(run *r)
{
    uint32_t positions[PLAN_PAGES];
    kvk_page_score scores[PLAN_PAGES];
    uint32_t group = byte(r) % GROUPS;
    kvk_seq seq = *pick_seq(r);
    kvk_eviction_info info = {.size = sizeof info};
    int n = kvk_seq_scores(r->cache, seq, group, scores, PLAN_PAGES);
    int held = kvk_seq_positions(r->cache, seq, group, positions, PLAN_PAGES);
    must(kvk_seq_table(r->cache, seq, group, NULL, 0) == kvk_seq_positions(r->cache, seq, group, NULL, 0));
    for (int i = 0; i < n && i < held; i++)
        must(scores[i].position == positions[i] && positions[i] % r->config.page_tokens == 0 &&
             (i == 0 || positions[i] > positions[i - 1]));
    if (kvk_eviction_info_get(r->cache, seq, &info) == 0)
        must((info.first_taint != UINT32_MAX) == info.tainted && info.retained_last >= 0 && info.evicted_mass >= 0);
    return n;
}

/* Masses of a batch in arrays of their own, which end where they say, so that a sanitizer sees who reads past it. */
typedef struct {
    kvk_masses masses;
    uint32_t rows[ENTRIES], summed[ENTRIES];
    float *mean, *peak, *near;
} any_masses;

static inline float *any_floats(run *r, uint64_t n)
{
    static const float odd[] = {NAN, INFINITY, -1, 1.5f, 0x1p-149f, -0.0f, 1e30f, 300};
    float *values = malloc((n ? n : 1) * sizeof *values);
    must(values != NULL);
    uint32_t step = byte(r), flags = byte(r);
    for (uint64_t i = 0; i < n; i++)
        values[i] = (float)(i * step % 17) / 17;
    if (n && flags >= 224)
        values[byte(r) % n] = odd[flags % 8];
    return values;
}

static inline void make_masses(run *r, const uint32_t *queries, any_masses *m)
{
    uint32_t flags = byte(r);
    *m = (any_masses){.masses = {.size = sizeof m->masses}};
    m->masses.stride = flags & 128 ? byte(r) : 2048;
    m->masses.near_stride = flags & 64 ? byte(r) : 4096;
    m->mean = any_floats(r, m->masses.stride * r->config.n_groups);
    m->peak = any_floats(r, m->masses.stride * r->config.n_groups);
    m->near = any_floats(r, m->masses.near_stride * r->config.n_groups);
    m->masses.mean = flags & 1 || !(flags & 32) ? m->mean : NULL;
    m->masses.peak = flags & 2 ? m->peak : NULL;
    m->masses.near = flags & 4 ? m->near : NULL;
    for (int i = 0; i < ENTRIES; i++) {
        m->rows[i] = byte(r) % 4 ? queries[i] : byte(r) % 3;
        m->summed[i] = byte(r) % 4 ? queries[i] : byte(r);
    }
    m->masses.rows = flags & 8 ? m->rows : NULL;
    m->masses.n_summed = flags & 16 ? m->summed : NULL;
}

static inline void free_masses(any_masses *m)
{
    free(m->mean);
    free(m->peak);
    free(m->near);
}

#endif
