/* twin_view.c: one table as its policy sees it, and how the policy ranks it. */
#include "twin_view.h"

#include <math.h>
#include <string.h>

/* The start of the oldest batch in flight that holds it, or all of it. */
twin_moment twin_now(const twin *t, const twin_seq *s)
{
    twin_moment at = {s->n_tokens, s->n_tokens};
    for (uint32_t i = 0; i < TWIN_BATCHES; i++) {
        const twin_batch *b = &t->batches[i];
        for (uint32_t k = 0; b->handle && k < b->n; k++) {
            if (b->entries[k].seq == s->handle && b->entries[k].start < at.settled)
                at.settled = b->entries[k].start;
        }
    }
    return at;
}

static uint32_t round_up(uint32_t n_tokens, uint32_t page_tokens)
{
    return n_tokens / page_tokens + (n_tokens % page_tokens != 0);
}

twin_reach twin_protection(const twin *t, const twin_eviction *e, uint32_t group)
{
    kvk_protection p = {0};
    if (e->policy && e->policy->protect)
        p = e->policy->protect(e->knobs, e->budget[group], t->config.page_tokens);
    return (twin_reach){round_up(p.sinks, t->config.page_tokens), round_up(p.recent, t->config.page_tokens)};
}

static bool may_go(const twin *t, const twin_seq *s, uint32_t group, uint32_t entry, uint32_t settled)
{
    twin_reach reach = twin_protection(t, &s->eviction, group);
    uint32_t full = settled / t->config.page_tokens;
    return entry >= reach.sinks && full >= reach.recent && entry < full - reach.recent &&
           t->pages[s->table[group][entry]].pins == 0;
}

static void look_at_near(const twin *t, twin_seq *s, twin_view *v)
{
    for (uint32_t g = 0; g < t->config.n_groups; g++)
        v->near[g] = (kvk_near){.peaks = s->eviction.near[g],
                                .stride = t->n_near[g],
                                .n_pages = TWIN_ENTRIES,
                                .layers = t->near_layers[g],
                                .heads = t->near_layers[g] ? t->n_near[g] / t->near_layers[g] : 0};
    v->view.near = twin_needs(t, s) & KVK_NEED_NEAR ? v->near : NULL;
}

static void add_page(const twin *t, const twin_seq *s, twin_view *v, uint32_t entry, uint32_t settled)
{
    uint32_t i = v->view.n++, group = v->view.group;
    v->index[i] = entry;
    v->eligible[i] = may_go(t, s, group, entry, settled);
    for (uint32_t k = 0; k < TWIN_NUMBERS; k++)
        v->numbers[k][i] = s->eviction.numbers[group][k][entry];
}

void twin_look(const twin *t, twin_seq *s, uint32_t group, twin_moment at, twin_view *v)
{
    twin_eviction *e = &s->eviction;
    v->view = (kvk_policy_view){.knobs = e->knobs,
                                .group = group,
                                .n_groups = t->config.n_groups,
                                .page_tokens = t->config.page_tokens,
                                .budget = e->budget[group],
                                .n_tokens = at.n_tokens,
                                .n_prompt = e->n_prompt,
                                .index = v->index,
                                .eligible = v->eligible,
                                .scores = v->columns,
                                .shared = e->shared};
    look_at_near(t, s, v);
    for (uint32_t k = 0; k < TWIN_NUMBERS; k++)
        v->columns[k] = v->numbers[k];
    for (uint32_t i = 0; i < twin_pages_for(t, at.n_tokens); i++) {
        if (twin_holds(s, group, i))
            add_page(t, s, v, i, at.settled);
    }
}

void twin_keep_numbers(twin_seq *s, const twin_view *v)
{
    for (uint32_t i = 0; i < v->view.n; i++) {
        for (uint32_t k = 0; k < TWIN_NUMBERS; k++)
            s->eviction.numbers[v->view.group][k][v->index[i]] = v->numbers[k][i];
    }
}

double twin_rank(const twin_seq *s, twin_view *v)
{
    double sum = 0;
    memset(v->score, 0, sizeof v->score);
    memset(v->tier, 0, sizeof v->tier);
    if (s->eviction.policy && s->eviction.policy->rank)
        s->eviction.policy->rank(&v->view, v->score, v->tier);
    for (uint32_t i = 0; i < v->view.n; i++) {
        if (isnan(v->score[i]))
            v->score[i] = -INFINITY;
        sum += (double)v->score[i];
    }
    return sum;
}

static bool goes_before(const twin_view *v, uint32_t a, uint32_t b)
{
    if (v->tier[a] != v->tier[b])
        return v->tier[a] < v->tier[b];
    return v->score[a] < v->score[b];
}

uint32_t twin_lowest(const twin_view *v, const bool goes[TWIN_ENTRIES])
{
    uint32_t best = v->view.n;
    for (uint32_t i = 0; i < v->view.n; i++) {
        if (v->eligible[i] && !goes[v->index[i]] && (best == v->view.n || goes_before(v, i, best)))
            best = i;
    }
    return best;
}
