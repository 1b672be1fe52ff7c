/* twin_settings.c: how a sequence is to be evicted, and what can be seen of it. */
#include "twin_view.h"

#include <math.h>
#include <string.h>

uint32_t twin_needs(const twin *t, const twin_seq *s)
{
    const twin_eviction *e = &s->eviction;
    bool near = false;
    for (uint32_t g = 0; g < t->config.n_groups; g++)
        near = near || t->n_near[g];
    return e->policy && e->policy->needs ? e->policy->needs(e->knobs, near) : 0;
}

static uint32_t budget_of(const twin *t, const kvk_eviction *from, const twin_eviction *e, uint32_t group)
{
    uint32_t budget = from->budget, G = t->config.n_groups;
    if (from->budgets)
        return from->budgets[group];
    if (budget == 0 && e->policy->budget)
        budget = e->policy->budget(e->knobs);
    double slope = G > 1 ? (double)from->slope * (1 - 2.0 * group / (G - 1)) : 0;
    return (uint32_t)(budget * (1 + slope));
}

/* Is at least a page left besides the slack and what the policy protects? */
static bool is_wide_enough(const twin *t, const twin_eviction *e, uint32_t group)
{
    twin_reach reach = twin_protection(t, e, group);
    uint64_t limit = e->budget[group] / t->config.page_tokens;
    return e->budget[group] == 0 || limit >= (uint64_t)e->slack + reach.sinks + reach.recent + 1;
}

static bool knobs_are_valid(const kvk_policy_choice *choice)
{
    for (uint32_t i = 0; i < choice->policy->n_knobs; i++) {
        const kvk_knob *knob = &choice->policy->knobs[i];
        double value = choice->knobs[i];
        if (!(value >= knob->min && value <= knob->max) || (knob->whole && value > floor(value)))
            return false;
    }
    return true;
}

/* Works out the settings. False if they are out of range. */
static bool work_out(const twin *t, const kvk_eviction *from, twin_eviction *e)
{
    memset(e, 0, sizeof *e);
    if (!knobs_are_valid(&from->choice) || from->yields > 1 || !(from->slope >= 0 && from->slope <= 1) ||
        !(from->target >= 0 && from->target <= 1))
        return false;
    e->policy = twin_policy(&from->choice, e->knobs);
    if (from->target > 0 && !e->policy->score_is_mass)
        return false;
    e->slack = from->slack;
    e->floor = from->floor;
    e->yields = from->yields;
    e->n_prompt = from->n_prompt;
    e->target = (double)from->target;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        e->budget[g] = budget_of(t, from, e, g);
        if (!is_wide_enough(t, e, g))
            return false;
    }
    return true;
}

int twin_set_eviction(twin *t, kvk_seq handle, const kvk_eviction *eviction)
{
    twin_seq *s;
    twin_eviction settings = {0};
    if (eviction && !work_out(t, eviction, &settings))
        return KVK_EINVAL;
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    if (s->n_in_flight)
        return KVK_EBUSY;
    s->eviction = settings;
    return 0;
}

uint32_t twin_scores(const twin *t, const twin_seq *s, uint32_t group, kvk_page_score *scores)
{
    twin_seq copy = *s;
    twin_view v;
    twin_look(t, &copy, group, twin_now(t, s), &v);
    twin_rank(&copy, &v);
    for (uint32_t i = 0; i < v.view.n; i++)
        scores[i] = (kvk_page_score){.page = s->table[group][v.index[i]],
                                     .position = v.index[i] * t->config.page_tokens,
                                     .score = v.score[i],
                                     .tier = v.tier[i],
                                     .eligible = v.eligible[i]};
    return v.view.n;
}

static void count_kept(const twin *t, const twin_seq *s, kvk_eviction_info *out)
{
    uint32_t P = t->config.page_tokens;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = 0; i * P < s->n_tokens; i++) {
            if (!twin_holds(s, g, i))
                continue;
            out->pages_kept++;
            out->tokens_kept += s->n_tokens - i * P < P ? s->n_tokens - i * P : P;
        }
    }
}

void twin_info(const twin *t, const twin_seq *s, kvk_eviction_info *out)
{
    const twin_eviction *e = &s->eviction;
    uint32_t G = t->config.n_groups;
    *out = (kvk_eviction_info){.tainted = s->first_taint != UINT32_MAX,
                               .first_taint = s->first_taint,
                               .policy_needs = twin_needs(t, s),
                               .policy = e->policy ? e->policy->name : "full",
                               .pages_evicted = s->n_evicted,
                               .tokens_evicted = s->n_evicted * t->config.page_tokens,
                               .evicted_mass = e->share};
    count_kept(t, s, out);
    double mass = 0;
    for (uint32_t g = 0; g < G; g++) {
        out->queries += e->queries[g];
        out->retained_last += e->last[g] / G;
        mass += e->mass[g];
    }
    out->retained_mean = out->queries ? mass / (double)out->queries : 0;
    out->churn_per_1k = s->n_tokens ? (double)s->n_evicted * 1000 / ((double)s->n_tokens * G) : 0;
}
