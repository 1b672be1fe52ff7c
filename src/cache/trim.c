/* trim.c: which pages a sequence gives up by its own budget. Decided on the side, with nothing changed. */
#include "base/checked.h"
#include "cache/eviction.h"

#include <string.h>

moment eviction_moment(const sequence *s, uint32_t n_tokens)
{
    return (moment){n_tokens, min_u32(n_tokens, s->unsettled)};
}

moment eviction_now(const sequence *s)
{
    return eviction_moment(s, s->n_tokens);
}

/* ---- views */

uint32_t eviction_held(const kvk_cache *c, const sequence *s, uint32_t group, uint32_t n_tokens)
{
    return table_entries(&s->tables[group], pages_of_tokens(c, n_tokens));
}

kvk_policy_view eviction_view(const kvk_cache *c, const sequence *s, uint32_t group, uint32_t n_tokens, float **lanes)
{
    const eviction *e = s->eviction;
    const group_eviction *g = &e->groups[group];
    for (uint32_t k = 0; k < eviction_policy(e)->n_scores; k++)
        lanes[k] = eviction_lane(c, e, group, k);
    return (kvk_policy_view){.knobs = e->settings.choice.knobs,
                             .group = group,
                             .n_groups = c->config.n_groups,
                             .page_tokens = page_tokens(c),
                             .budget = g->budget,
                             .n_tokens = n_tokens,
                             .n_prompt = e->settings.n_prompt,
                             .n = eviction_held(c, s, group, n_tokens),
                             .index = s->tables[group].index,
                             .scores = lanes,
                             .shared = eviction_policy(e)->n_shared && (e->needs & KVK_NEED_NEAR) ? e->shared : NULL,
                             .near = e->needs & KVK_NEED_NEAR ? e->near : NULL};
}

/* ---- eligibility */

static kvk_protection protection(const kvk_cache *c, const eviction *e, uint32_t group)
{
    const kvk_policy *policy = eviction_policy(e);
    return policy->protect ? policy->protect(e->settings.choice.knobs, e->groups[group].budget, page_tokens(c))
                           : (kvk_protection){0, 0};
}

static void withhold_pinned(const kvk_cache *c, const table *t, uint32_t from, uint32_t end)
{
    for (uint32_t k = from; k < end; k++)
        c->evict.eligible[k] = !pool_is_pinned(&c->store.pool, t->pages[k]);
}

uint32_t eviction_eligible(const kvk_cache *c, const sequence *s, uint32_t group, moment at)
{
    const table *t = &s->tables[group];
    uint32_t n = eviction_held(c, s, group, at.n_tokens);
    kvk_protection keep = protection(c, s->eviction, group);
    uint32_t full = at.settled / page_tokens(c), recent = pages_of_tokens(c, keep.recent);
    uint32_t from = table_below(t, min_u32(pages_of_tokens(c, keep.sinks), table_end(t)));
    uint32_t end = full > recent ? min_u32(table_below(t, full - recent), n) : 0;
    memset(c->evict.eligible, 0, n);
    if (from < end)
        memset(c->evict.eligible + from, 1, end - from);
    if (c->store.pool.pins_cap)
        withhold_pinned(c, t, from, end);
    return n;
}

uint32_t eviction_rank(const kvk_cache *c, const sequence *s, uint32_t group)
{
    const evict_scratch *e = &c->evict;
    float *lanes[KVK_MAX_SCORES];
    kvk_policy_view view = eviction_view(c, s, group, s->n_tokens, lanes);
    eviction_eligible(c, s, group, eviction_now(s));
    view.eligible = e->eligible;
    policy_rank(eviction_policy(s->eviction), &view, e->score, e->tier);
    return view.n;
}

/* ---- the smallest budget that keeps a share of the mass */

policy_queue eviction_queue(const kvk_cache *c, uint32_t n)
{
    const evict_scratch *e = &c->evict;
    const policy_scratch ranked = {e->score, e->tier, e->order};
    return policy_queue_of(&ranked, e->eligible, n, e->order);
}

/* How many pages may go so that the rest keeps the target share, `most` at most. */
static uint32_t pages_to_spare(const kvk_cache *c, const eviction *e, const kvk_policy_view *view, uint32_t most)
{
    const evict_scratch *scratch = &c->evict;
    double lost = e->groups[view->group].lost;
    policy_rank(eviction_policy(e), view, scratch->score, scratch->tier);
    double total = eviction_total(c, view->n) + lost, allowed = (1 - (double)e->settings.target) * total;
    if (!(total > 0)) /* nothing was observed yet: nobody knows what can be spared */
        return 0;
    policy_queue q = eviction_queue(c, view->n);
    for (uint32_t n = 0; n < most; n++) {
        uint32_t next = policy_queue_next(&q);
        if (next == UINT32_MAX || lost + (double)scratch->score[next] > allowed)
            return n;
        lost += (double)scratch->score[next];
    }
    return most;
}

/* ---- trimming */

/* Pages that have to go so that a table and the page of the next token fit. */
static uint32_t pages_over(const kvk_cache *c, const sequence *s, const kvk_policy_view *view)
{
    const eviction *e = s->eviction;
    uint64_t held = (uint64_t)view->n + (view->n_tokens % page_tokens(c) == 0);
    uint32_t limit = e->groups[view->group].limit;
    return held > limit ? (uint32_t)(held - limit) + e->settings.slack : 0;
}

/* A target is looked at once per page, so that drafts come to the same tables as plain decoding. */
static int aims(const kvk_cache *c, const eviction *e, const kvk_policy_view *view)
{
    return e->settings.target > 0 && view->n_tokens % page_tokens(c) == 0;
}

static uint32_t wanted(const kvk_cache *c, const sequence *s, const kvk_policy_view *view)
{
    const eviction *e = s->eviction;
    uint32_t over = pages_over(c, s, view), floor = pages_of_tokens(c, e->settings.floor);
    uint32_t held = view->n + 1; /* with the page that the next token begins */
    if (!aims(c, e, view) || held <= floor)
        return over;
    return max_u32(over, pages_to_spare(c, e, view, held - floor));
}

static int asks(const kvk_cache *c, const eviction *e, const kvk_policy_view *view)
{
    return (e->needs & KVK_NEED_ASK) && e->groups[view->group].limit != UINT32_MAX &&
           view->n_tokens % page_tokens(c) == 0 && view->n_tokens > 0 && e->asked_at != view->n_tokens;
}

/* The policy's numbers in a copy, for one that changes them when it chooses. Returns the place after them. */
static float *copy_lanes(const kvk_policy *policy, const kvk_policy_view *view, float **lanes, float *to)
{
    for (uint32_t k = 0; policy->choose && view->n && k < policy->n_scores; k++, to += view->n) {
        memcpy(to, lanes[k], view->n * sizeof *to);
        lanes[k] = to;
    }
    return to;
}

int eviction_frees(const kvk_cache *c, const sequence *s, uint32_t page)
{
    const pool *p = &c->store.pool;
    const page_record *g = &p->pages[page];
    return g->refs == 1 && page < p->limit && g->epoch < p->oldest_open && s->last_epoch < p->oldest_open;
}

/* Where the answers about the next table go. */
typedef struct trim_cursor {
    uint32_t *victims;
    float *lanes;
} trim_cursor;

/* What the victims are worth, by the ranking that chose them or, where the policy chose them itself, by one of now. */
static weight weigh(const kvk_cache *c, const kvk_policy *policy, const kvk_policy_view *view, const uint32_t *victims)
{
    const evict_scratch *e = &c->evict;
    uint32_t n = e->counts[view->group];
    if (n == 0 || !policy->score_is_mass)
        return (weight){0, 0};
    if (policy->choose)
        policy_rank(policy, view, e->score, e->tier);
    return evict_weight(c, victims, n, view->n);
}

static void plan_group(const kvk_cache *c, const sequence *s, moment at, uint32_t g, trim_cursor *to, trim *out)
{
    const evict_scratch *e = &c->evict;
    const kvk_policy *policy = eviction_policy(s->eviction);
    float *lanes[KVK_MAX_SCORES];
    kvk_policy_view view = eviction_view(c, s, g, at.n_tokens, lanes);
    to->lanes = copy_lanes(policy, &view, lanes, to->lanes);
    eviction_eligible(c, s, g, at);
    view.eligible = e->eligible;
    uint32_t want = wanted(c, s, &view);
    policy_scratch scratch = {e->score, e->tier, e->order};
    e->counts[g] = want || asks(c, s->eviction, &view) ? policy_choose(policy, &view, want, &scratch, to->victims) : 0;
    e->weights[g] = weigh(c, policy, &view, to->victims);
    for (uint32_t k = 0; k < e->counts[g]; k++)
        out->frees += (uint32_t)eviction_frees(c, s, s->tables[g].pages[to->victims[k]]);
    to->victims += e->counts[g];
    out->victims += e->counts[g];
}

/* True if a group's policy has something to say: the usual decode step has nothing to trim. */
static int has_to_trim(const kvk_cache *c, const sequence *s, moment at)
{
    float *lanes[KVK_MAX_SCORES];
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        kvk_policy_view view = eviction_view(c, s, g, at.n_tokens, lanes);
        if (asks(c, s->eviction, &view) || pages_over(c, s, &view) > 0 || aims(c, s->eviction, &view))
            return 1;
    }
    return 0;
}

trim trim_plan(const kvk_cache *c, const sequence *s, moment at)
{
    trim out = {0, 0, 0};
    trim_cursor to = {c->evict.victims, c->evict.lanes};
    memset(c->evict.counts, 0, c->config.n_groups * sizeof *c->evict.counts);
    if (!has_to_trim(c, s, at))
        return out;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        plan_group(c, s, at, g, &to, &out);
    out.asked = eviction_policy(s->eviction)->choose != NULL;
    return out;
}

/* The numbers that the policy changed when it chose. */
static void take_lanes(const kvk_cache *c, sequence *s, moment at, uint32_t group, trim_cursor *from)
{
    float *lanes[KVK_MAX_SCORES];
    kvk_policy_view view = eviction_view(c, s, group, at.n_tokens, lanes);
    for (uint32_t k = 0; view.n && k < eviction_policy(s->eviction)->n_scores; k++, from->lanes += view.n)
        memcpy(lanes[k], from->lanes, view.n * sizeof(float));
}

void trim_apply(kvk_cache *c, sequence *s, const trim *t, moment at)
{
    trim_cursor from = {c->evict.victims, c->evict.lanes};
    if (at.n_tokens % page_tokens(c) == 0)
        s->eviction->asked_at = at.n_tokens;
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        if (t->asked)
            take_lanes(c, s, at, g, &from);
        evict_entries(c, s, g, from.victims, c->evict.counts[g], c->evict.weights[g]);
        from.victims += c->evict.counts[g];
    }
}
