/* twin_settings.c: how a sequence is to be evicted, and what can be seen of it. */
#include "twin_view.h"

#include <math.h>

uint32_t twin_needs(const twin *t, const twin_seq *s)
{
    const twin_eviction *e = &s->eviction;
    bool near = false;
    for (uint32_t g = 0; g < t->config.n_groups; g++)
        near = near || t->n_near[g];
    uint32_t needs = e->policy && e->policy->needs ? e->policy->needs(e->knobs, near) : 0;
    if (!near)
        needs &= ~(uint32_t)KVK_NEED_NEAR;
    return needs & (KVK_NEED_PEAK | KVK_NEED_NEAR) ? needs | KVK_NEED_MEAN : needs;
}

static uint32_t budget_without_slope(const kvk_eviction *from, const twin_eviction *e)
{
    return from->budget == 0 && e->policy->budget ? e->policy->budget(e->knobs) : from->budget;
}

static uint32_t budget_of(const twin *t, const kvk_eviction *from, const twin_eviction *e, uint32_t group)
{
    uint32_t budget = budget_without_slope(from, e), G = t->config.n_groups;
    if (!e->policy->rank)
        return 0;
    if (from->budgets)
        return from->budgets[group];
    double slope = G > 1 ? (double)from->slope * (1 - 2.0 * group / (G - 1)) : 0;
    return (uint32_t)(budget * (1 + slope));
}

/* Is at least a page left besides the slack and what the policy protects? */
static bool is_wide_enough(const twin *t, const twin_eviction *e, uint32_t group)
{
    twin_reach reach = twin_protection(t, e, group);
    return e->budget[group] / t->config.page_tokens >= (uint64_t)e->slack + reach.sinks + reach.recent + 1;
}

/* Works out the budgets. False if one is too small. */
static bool divide(const twin *t, const kvk_eviction *from, twin_eviction *e)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        bool no_limit =
            !e->policy->rank || (from->budgets ? from->budgets[g] == 0 : budget_without_slope(from, e) == 0);
        e->budget[g] = budget_of(t, from, e, g);
        if (!no_limit && !is_wide_enough(t, e, g))
            return false;
    }
    return true;
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

static bool settings_are_valid(const kvk_eviction *from)
{
    return knobs_are_valid(&from->choice) && from->yields <= 1 && from->slope >= 0 && from->slope <= 1 &&
           from->target >= 0 && from->target <= 1 && !(from->target > 0 && !from->choice.policy->score_is_mass);
}

static void copy_settings(const kvk_eviction *from, twin_eviction *to)
{
    *to = (twin_eviction){.slack = from->slack,
                          .floor = from->floor,
                          .yields = from->yields,
                          .n_prompt = from->n_prompt,
                          .target = (double)from->target};
    to->policy = twin_policy(&from->choice, to->knobs);
}

bool twin_settings_fit(const twin *t, const kvk_eviction *settings)
{
    twin_eviction e;
    copy_settings(settings, &e);
    return settings_are_valid(settings) && divide(t, settings, &e);
}

int twin_set_eviction(twin *t, kvk_seq handle, const kvk_eviction *settings)
{
    twin_seq *s;
    twin_eviction e = {0};
    int rc = twin_use(t, handle, &s);
    if (rc < 0)
        return rc;
    if (settings && !settings_are_valid(settings))
        return KVK_EINVAL;
    if (s->n_in_flight)
        return KVK_EBUSY;
    if (settings)
        copy_settings(settings, &e);
    if (settings && !divide(t, settings, &e))
        return KVK_EINVAL;
    s->eviction = e;
    for (uint32_t g = 0; g < t->config.n_groups; g++) {
        for (uint32_t i = 0; i < s->end; i++) {
            if (twin_holds(s, g, i))
                twin_near_attach(t, s, g, i);
        }
    }
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
                                     .eligible = copy.eviction.policy && v.eligible[i]};
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
    const twin_figures *f = &s->figures;
    uint32_t G = t->config.n_groups;
    double mass = 0;
    *out = (kvk_eviction_info){.tainted = s->first_taint != UINT32_MAX,
                               .first_taint = s->first_taint,
                               .policy_needs = twin_needs(t, s),
                               .policy = s->eviction.policy ? s->eviction.policy->name : "full",
                               .pages_evicted = f->pages,
                               .tokens_evicted = f->pages * t->config.page_tokens,
                               .queries = f->queries,
                               .evicted_mass = f->share};
    count_kept(t, s, out);
    for (uint32_t g = 0; g < G; g++) {
        out->retained_last += f->last[g] / G;
        mass += f->mass[g];
    }
    out->retained_mean = f->queries ? mass / (double)f->queries : 0;
    out->churn_per_1k = s->n_tokens ? (double)f->pages * 1000 / ((double)s->n_tokens * G) : 0;
}
