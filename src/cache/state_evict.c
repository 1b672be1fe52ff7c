/* state_evict.c: eviction in a saved state: what tables lack, near peaks, and what is kept of a sequence. */
#include "base/checked.h"
#include "cache/eviction.h"
#include "cache/state.h"

#include <float.h>

#define NAME_BYTES 32u /* of a policy of the library, at most */

/* ---- tables that lack pages */

void state_put_index(state_writer *w, const table *t)
{
    put32(w, t->lost);
    for (uint32_t k = 0; t->lost && k < t->n; k++)
        put32(w, t->index[k]);
}

void state_get_index(state_reader *r, kvk_cache *c, const sequence *s, uint32_t group)
{
    table *t = &s->tables[group];
    uint32_t least = t->first;
    t->lost = get_most(r, s->eviction ? s->n_tokens / page_tokens(c) - t->first : 0);
    if (s->eviction && !r->failed)
        require_memory(r, table_keep_index(c->memory, t));
    for (uint32_t k = 0; t->lost && k < t->n && !r->failed; k++) {
        t->index[k] = get_below(r, table_end(t));
        require(r, t->index[k] >= least);
        least = t->index[k] + 1;
    }
}

/* ---- near peaks of pages that can be found */

void state_put_page_near(state_writer *w, const kvk_cache *c, uint32_t group, uint32_t page)
{
    if (near_channels(c, group) == 0)
        return;
    put32(w, c->near_sealed[page]);
    state_put_floats(w, near_of_page(c, page), near_channels(c, group));
}

static void get_near(state_reader *r, float *values, uint32_t channels)
{
    state_get_floats(r, values, channels);
    require(r, r->failed || floats_are_within(values, channels, FLT_MAX));
}

void state_get_page_near(state_reader *r, kvk_cache *c, uint32_t group, uint32_t page)
{
    if (c->near_stride == 0 || r->failed)
        return;
    c->near_sealed[page] = near_channels(c, group) ? (uint8_t)get_most(r, 1) : 0;
    get_near(r, near_of_page(c, page), near_channels(c, group));
}

/* ---- settings */

static void put_choice(state_writer *w, const kvk_policy_choice *choice)
{
    uint32_t length = (uint32_t)strlen(choice->policy->name);
    put32(w, length);
    state_put(w, choice->policy->name, length);
    put32(w, choice->policy->n_knobs);
    for (uint32_t i = 0; i < choice->policy->n_knobs; i++)
        put_double(w, choice->knobs[i]);
}

static const kvk_policy *find_policy(const char *name, uint32_t length)
{
    const kvk_policy *policy;
    for (uint32_t i = 0; (policy = kvk_policy_at(i)); i++)
        if (strlen(policy->name) == length && memcmp(policy->name, name, length) == 0)
            return policy;
    return NULL;
}

static void get_choice(state_reader *r, kvk_policy_choice *out)
{
    char name[NAME_BYTES];
    uint32_t length = get_most(r, NAME_BYTES);
    state_get(r, name, length);
    const kvk_policy *policy = find_policy(name, length);
    require(r, policy != NULL);
    if (r->failed)
        return;
    kvk_policy_defaults(policy, out);
    get_equal(r, policy->n_knobs);
    for (uint32_t i = 0; i < policy->n_knobs; i++)
        out->knobs[i] = get_double(r);
}

/* Whatever the budgets were made of, the groups have them. */
static void put_settings(state_writer *w, const kvk_cache *c, const eviction *e)
{
    const kvk_eviction *set = &e->settings;
    const uint32_t values[] = {set->budget, set->slack, set->floor, set->yields, set->n_prompt, e->asked_at};
    put_choice(w, &set->choice);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        put32(w, values[i]);
    state_put_floats(w, &set->slope, 1);
    state_put_floats(w, &set->target, 1);
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        put32(w, e->groups[g].budget);
}

static void take_settings(state_reader *r, kvk_cache *c, sequence *s, const kvk_eviction *saved)
{
    kvk_eviction settings;
    int rc = eviction_read_settings(saved, &settings);
    if (rc == 0)
        rc = eviction_take_settings(c, s, &settings, 0);
    require(r, rc != KVK_EINVAL);
    require_memory(r, rc);
}

static void get_settings(state_reader *r, kvk_cache *c, sequence *s)
{
    kvk_eviction set;
    uint32_t asked_at = 0;
    uint32_t *const values[] = {&set.budget, &set.slack, &set.floor, &set.yields, &set.n_prompt, &asked_at};
    kvk_eviction_init(&set);
    get_choice(r, &set.choice);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        *values[i] = get32(r);
    state_get_floats(r, &set.slope, 1);
    state_get_floats(r, &set.target, 1);
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        c->evict.counts[g] = get32(r);
    require(r, asked_at <= KVK_MAX_TOKENS);
    set.budgets = c->evict.counts; /* free for it now; furnished with the eviction */
    if (!r->failed)
        take_settings(r, c, s, &set);
    s->eviction->asked_at = asked_at;
}

/* ---- what is kept by group */

static void put_counts(state_writer *w, const group_eviction *g)
{
    put64(w, g->pages_evicted);
    put64(w, g->tokens_evicted);
    put64(w, g->queries);
    put_double(w, g->mass);
    put_double(w, g->last);
    put_double(w, g->share);
    put_double(w, g->lost);
}

static void get_counts(state_reader *r, group_eviction *g)
{
    double *const sums[] = {&g->mass, &g->last, &g->share, &g->lost};
    g->pages_evicted = get_events(r);
    g->tokens_evicted = get_events(r);
    g->queries = get_events(r);
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        *sums[i] = get_double(r);
        require(r, *sums[i] >= 0 && *sums[i] <= DBL_MAX);
    }
}

static void put_lanes(state_writer *w, const kvk_cache *c, const sequence *s, uint32_t group)
{
    const table *t = &s->tables[group];
    for (uint32_t k = 0; t->n && k < eviction_lanes(s->eviction); k++)
        state_put_floats(w, eviction_lane(c, s->eviction, group, k), t->n);
}

static void get_lanes(state_reader *r, const kvk_cache *c, const sequence *s, uint32_t group)
{
    const eviction *e = s->eviction;
    const table *t = &s->tables[group];
    float *lanes[KVK_MAX_SCORES];
    if (t->n == 0 || eviction_lanes(e) == 0)
        return;
    for (uint32_t k = 0; k < eviction_lanes(e); k++) {
        lanes[k] = eviction_lane(c, e, group, k);
        state_get_floats(r, lanes[k], t->n);
    }
    require(r, r->failed || policy_scores_are_sound(&e->settings.choice, lanes, t->n));
}

static void put_text_near(state_writer *w, const kvk_cache *c, const eviction *e)
{
    put32(w, e->n_peaks);
    state_put_floats(w, e->peaks, (size_t)e->n_peaks * c->near_row);
    state_put_floats(w, e->shared, e->n_peaks);
}

static void get_text_near(state_reader *r, kvk_cache *c, sequence *s)
{
    eviction *e = s->eviction;
    uint32_t n = get_most(r, pages_of_tokens(c, s->n_tokens));
    for (; e->n_peaks < n && !r->failed; e->n_peaks++) {
        require_memory(r, near_prepare_all(c, s, e->n_peaks + 1u));
        if (!r->failed)
            get_near(r, e->peaks + (size_t)e->n_peaks * c->near_row, c->near_row);
    }
    if (!r->failed)
        state_get_floats(r, e->shared, e->n_peaks);
    near_show(c, e);
}

/* ---- all of it */

void state_put_eviction(state_writer *w, const kvk_cache *c, const sequence *s)
{
    const eviction *e = s->eviction;
    if (!e)
        return;
    put32(w, (uint32_t)e->is_on);
    if (e->is_on)
        put_settings(w, c, e);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        put_counts(w, &e->groups[g]);
        put_lanes(w, c, s, g);
    }
    if (near_is_kept(e))
        put_text_near(w, c, e);
}

void state_get_eviction(state_reader *r, kvk_cache *c, sequence *s)
{
    eviction *e = s->eviction;
    if (!e || r->failed)
        return;
    if (get_most(r, 1))
        get_settings(r, c, s);
    for (uint32_t g = 0; g < c->config.n_groups && !r->failed; g++) {
        get_counts(r, &e->groups[g]);
        get_lanes(r, c, s, g);
    }
    if (near_is_kept(e) && !r->failed)
        get_text_near(r, c, s);
}
