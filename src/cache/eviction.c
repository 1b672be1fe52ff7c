/* eviction.c: how a sequence is evicted: its settings, its budgets, and the memory for what is kept. */
#include "cache/eviction.h"

#include "base/checked.h"
#include "cache/record.h"

#include <math.h>
#include <string.h>

void kvk_eviction_init(kvk_eviction *settings)
{
    if (!settings)
        return;
    *settings = (kvk_eviction){.size = sizeof *settings, .yields = 1};
    kvk_policy_defaults(kvk_policy_at(0), &settings->choice);
}

/* ---- memory */

void eviction_close(kvk_cache *c, sequence *s)
{
    eviction *e = s->eviction;
    memory_give(c->memory, e->lanes, e->lane_floats * sizeof *e->lanes);
    memory_give(c->memory, e->groups, c->config.n_groups * sizeof *e->groups);
    memory_give(c->memory, e->near, c->config.n_groups * sizeof *e->near);
    memory_give(c->memory, e->shared, e->shared_cap * sizeof *e->shared);
    memory_give(c->memory, e->peaks, (size_t)e->peaks_cap * c->near_row * sizeof *e->peaks);
    memory_give(c->memory, e, sizeof *e);
    s->eviction = NULL;
}

/* Keeps the memory, forgets the rest. */
static void forget_group(group_eviction *g)
{
    *g = (group_eviction){.limit = UINT32_MAX};
}

void eviction_forget(kvk_cache *c, sequence *s)
{
    eviction *e = s->eviction;
    *e = (eviction){.groups = e->groups,
                    .lanes = e->lanes,
                    .lane_floats = e->lane_floats,
                    .near = e->near,
                    .shared = e->shared,
                    .shared_cap = e->shared_cap,
                    .peaks = e->peaks,
                    .peaks_cap = e->peaks_cap};
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        forget_group(&e->groups[g]);
        s->tables[g].indexed = 0;
    }
}

void eviction_restart(kvk_cache *c, sequence *s)
{
    near_cut(c, s, 0);
    s->eviction->asked_at = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        s->eviction->groups[g].lost = 0;
}

static int take_parts(kvk_cache *c, eviction *e)
{
    uint32_t n = c->config.n_groups;
    e->groups = memory_take(c->memory, n * sizeof *e->groups);
    e->near = memory_take(c->memory, n * sizeof *e->near);
    if (!e->groups)
        return KVK_ENOMEM;
    for (uint32_t g = 0; g < n; g++)
        forget_group(&e->groups[g]);
    return e->near ? 0 : KVK_ENOMEM;
}

int eviction_furnish(kvk_cache *c, sequence *s)
{
    if (memory_grow(c->memory, &c->evict.counts, &c->evict.counts_cap, c->config.n_groups, sizeof(uint32_t)) < 0 ||
        memory_grow(c->memory, &c->evict.weights, &c->evict.weights_cap, c->config.n_groups, sizeof(weight)) < 0 ||
        memory_grow(c->memory, &c->evict.places, &c->evict.places_cap, 2u * c->config.n_groups, sizeof(uint64_t)) < 0)
        return KVK_ENOMEM;
    if (s->eviction)
        return 0;
    s->eviction = memory_take(c->memory, sizeof *s->eviction);
    if (!s->eviction)
        return KVK_ENOMEM;
    *s->eviction = (eviction){0};
    if (take_parts(c, s->eviction) == 0)
        return 0;
    eviction_close(c, s);
    return KVK_ENOMEM;
}

/* Room for n entries in each table: first more memory, with the lanes where they were, then the lanes further apart. */
static int grow_lanes(kvk_cache *c, const sequence *s, eviction *e, uint32_t n_scores, uint64_t n)
{
    uint32_t rows = n_scores * c->config.n_groups;
    if (rows == 0 || n <= e->lane_cap)
        return 0;
    if (memory_grow(c->memory, &e->lanes, &e->lane_floats, n * rows, sizeof *e->lanes) < 0)
        return KVK_ENOMEM;
    uint32_t cap = e->lane_floats / rows;
    for (uint32_t r = rows; e->lane_cap && r-- > 1;)
        memmove(e->lanes + (size_t)r * cap, e->lanes + (size_t)r * e->lane_cap,
                s->tables[r % c->config.n_groups].n * sizeof *e->lanes);
    e->lane_cap = cap;
    return 0;
}

/* How far apart lanes can be in the memory that there is. */
static uint32_t lane_cap_for(const kvk_cache *c, const eviction *e, uint32_t n_scores)
{
    return n_scores ? e->lane_floats / n_scores / c->config.n_groups : 0;
}

static uint32_t lanes_copied(const kvk_policy *policy)
{
    return policy && policy->choose ? policy->n_scores : 0;
}

/* Room to decide about a sequence whose policy changes `n_lanes` numbers per page when it chooses. */
static int prepare_scratch(kvk_cache *c, const sequence *s, uint32_t n_lanes)
{
    evict_scratch *e = &c->evict;
    uint64_t all = 1, longest = 1;
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        all += s->tables[g].cap;
        longest = max_u32((uint32_t)longest, s->tables[g].cap);
    }
    if (memory_grow(c->memory, &e->victims, &e->victims_cap, all, sizeof *e->victims) < 0 ||
        memory_grow(c->memory, &e->score, &e->score_cap, longest, sizeof *e->score) < 0 ||
        memory_grow(c->memory, &e->tier, &e->tier_cap, longest, sizeof *e->tier) < 0 ||
        memory_grow(c->memory, &e->eligible, &e->eligible_cap, longest, sizeof *e->eligible) < 0 ||
        memory_grow(c->memory, &e->order, &e->order_cap, longest, sizeof *e->order) < 0 ||
        memory_grow(c->memory, &e->row, &e->row_cap, 2 * longest, sizeof *e->row) < 0)
        return KVK_ENOMEM;
    return memory_grow(c->memory, &e->lanes, &e->lanes_cap, all * n_lanes, sizeof *e->lanes);
}

int eviction_prepare(kvk_cache *c, sequence *s, uint64_t n)
{
    if (grow_lanes(c, s, s->eviction, eviction_lanes(s->eviction), n) < 0)
        return KVK_ENOMEM;
    return prepare_scratch(c, s, lanes_copied(eviction_policy(s->eviction)));
}

int eviction_keep_index(kvk_cache *c, sequence *s)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        if (table_keep_index(c->memory, &s->tables[g]) < 0)
            return KVK_ENOMEM;
    return 0;
}

/* ---- entries that come and go */

void eviction_begin_entries(const kvk_cache *c, sequence *s, uint32_t group, uint32_t from)
{
    for (uint32_t k = 0; k < eviction_lanes(s->eviction) && s->tables[group].n > from; k++)
        memset(eviction_lane(c, s->eviction, group, k) + from, 0, (s->tables[group].n - from) * sizeof(float));
}

void eviction_slide(const kvk_cache *c, sequence *s, uint32_t group, uint32_t gone)
{
    for (uint32_t k = 0; k < eviction_lanes(s->eviction); k++) {
        float *lane = eviction_lane(c, s->eviction, group, k);
        memmove(lane, lane + gone, s->tables[group].n * sizeof *lane);
    }
}

/* Moves what is left of an array of `n` items up over those at `gone`. */
static void close_gaps(void *array, size_t item, uint32_t n, const uint32_t *gone, uint32_t n_gone)
{
    char *to = (char *)array + gone[0] * item;
    for (uint32_t k = 0; k < n_gone; k++) {
        uint32_t from = gone[k] + 1, end = k + 1 < n_gone ? gone[k + 1] : n;
        memmove(to, (const char *)array + from * item, (end - from) * item);
        to += (end - from) * item;
    }
}

void eviction_compact(const kvk_cache *c, sequence *s, uint32_t group, const uint32_t *gone, uint32_t n_gone)
{
    table *t = &s->tables[group];
    close_gaps(t->pages, sizeof *t->pages, t->n, gone, n_gone);
    close_gaps(t->index, sizeof *t->index, t->n, gone, n_gone);
    for (uint32_t k = 0; k < eviction_lanes(s->eviction); k++)
        close_gaps(eviction_lane(c, s->eviction, group, k), sizeof(float), t->n, gone, n_gone);
    t->n -= n_gone;
    t->lost += n_gone;
}

/* ---- forks */

int eviction_prepare_fork(kvk_cache *c, sequence *child, const sequence *parent)
{
    if (eviction_furnish(c, child) < 0 || eviction_keep_index(c, child) < 0 ||
        memory_grow(c->memory, &child->eviction->lanes, &child->eviction->lane_floats,
                    (uint64_t)eviction_lanes(parent->eviction) * c->config.n_groups * sequence_longest(c, parent),
                    sizeof(float)) < 0 ||
        (parent->eviction->n_peaks && near_prepare_all(c, child, parent->eviction->n_peaks) < 0))
        return KVK_ENOMEM;
    return prepare_scratch(c, child, lanes_copied(eviction_policy(parent->eviction)));
}

static void fork_group(const kvk_cache *c, sequence *child, const sequence *parent, uint32_t g)
{
    child->eviction->groups[g] = parent->eviction->groups[g];
    for (uint32_t k = 0; k < eviction_lanes(parent->eviction) && parent->tables[g].n; k++)
        memcpy(eviction_lane(c, child->eviction, g, k), eviction_lane(c, parent->eviction, g, k),
               parent->tables[g].n * sizeof(float));
    child->tables[g].indexed = parent->tables[g].indexed;
}

void eviction_fork(kvk_cache *c, sequence *child, const sequence *parent)
{
    eviction *to = child->eviction;
    *to = (eviction){.is_on = parent->eviction->is_on,
                     .settings = parent->eviction->settings,
                     .needs = parent->eviction->needs,
                     .asked_at = parent->eviction->asked_at,
                     .groups = to->groups,
                     .lanes = to->lanes,
                     .lane_floats = to->lane_floats,
                     .lane_cap = lane_cap_for(c, to, eviction_lanes(parent->eviction)),
                     .near = to->near,
                     .shared = to->shared,
                     .shared_cap = to->shared_cap,
                     .peaks = to->peaks,
                     .peaks_cap = to->peaks_cap,
                     .n_peaks = parent->eviction->n_peaks};
    if (to->n_peaks) {
        memcpy(to->peaks, parent->eviction->peaks, (size_t)to->n_peaks * c->near_row * sizeof *to->peaks);
        memcpy(to->shared, parent->eviction->shared, to->n_peaks * sizeof *to->shared);
    }
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        fork_group(c, child, parent, g);
    near_show(c, to);
}

/* ---- settings */

int eviction_read_settings(const kvk_eviction *from, kvk_eviction *to)
{
    if (from->size < sizeof from->size || from->size > sizeof *from)
        return KVK_EINVAL;
    kvk_eviction_init(to);
    memcpy(to, from, from->size);
    to->size = sizeof *to;
    if (kvk_policy_check(&to->choice) < 0 || to->yields > 1 || to->budget > KVK_MAX_TOKENS ||
        to->floor > KVK_MAX_TOKENS || to->n_prompt > KVK_MAX_TOKENS)
        return KVK_EINVAL;
    return to->slope >= 0 && to->slope <= 1 && to->target >= 0 && to->target <= 1 &&
                   (to->target == 0 || to->choice.policy->score_is_mass)
               ? 0
               : KVK_EINVAL;
}

static uint32_t sloped(const kvk_cache *c, const kvk_eviction *settings, uint32_t budget, uint32_t group)
{
    uint32_t n = c->config.n_groups;
    double place = n > 1 ? 1 - 2.0 * group / (n - 1) : 0, sloped = budget * (1 + (double)settings->slope * place);
    return sloped < KVK_MAX_TOKENS ? (uint32_t)sloped : KVK_MAX_TOKENS;
}

static int evicts(const kvk_eviction *settings)
{
    return settings->choice.policy->rank != NULL;
}

/* Before the slope; 0: no limit. */
static uint32_t budget_asked(const kvk_eviction *settings, uint32_t group)
{
    const kvk_policy *policy = settings->choice.policy;
    if (!evicts(settings))
        return 0;
    if (settings->budgets)
        return settings->budgets[group];
    return settings->budget || !policy->budget ? settings->budget : policy->budget(settings->choice.knobs);
}

static uint32_t budget_of(const kvk_cache *c, const kvk_eviction *settings, uint32_t group)
{
    uint32_t budget = budget_asked(settings, group);
    return settings->budgets ? budget : sloped(c, settings, budget, group);
}

/* Pages that no eviction can go below. */
static uint64_t least_pages(const kvk_cache *c, const kvk_eviction *settings, uint32_t budget)
{
    const kvk_policy *policy = settings->choice.policy;
    kvk_protection keep = {0, 0};
    if (policy->protect)
        keep = policy->protect(settings->choice.knobs, budget, page_tokens(c));
    return (uint64_t)pages_of_tokens(c, keep.sinks) + pages_of_tokens(c, keep.recent) + 1;
}

static int check_budgets(const kvk_cache *c, const kvk_eviction *settings)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        uint32_t budget = budget_of(c, settings, g);
        if (budget > KVK_MAX_TOKENS)
            return KVK_EINVAL;
        int limited = budget_asked(settings, g) > 0;
        if (limited && (uint64_t)budget / page_tokens(c) < least_pages(c, settings, budget) + settings->slack)
            return KVK_EINVAL;
    }
    return 0;
}

/* What the policy asks for, as far as the cache has it. Nothing is observed without the mass. */
static uint32_t needs_of(const kvk_cache *c, const kvk_eviction *settings)
{
    uint32_t needs = settings->choice.policy->needs(settings->choice.knobs, c->near_stride > 0);
    if (c->near_stride == 0)
        needs &= ~(uint32_t)KVK_NEED_NEAR;
    return needs & (KVK_NEED_PEAK | KVK_NEED_NEAR) ? needs | KVK_NEED_MEAN : needs;
}

static void apply_settings(kvk_cache *c, sequence *s, const kvk_eviction *settings)
{
    eviction *e = s->eviction;
    const kvk_policy *policy = settings->choice.policy;
    e->is_on = 1;
    e->settings = *settings;
    e->settings.budgets = NULL;
    e->needs = needs_of(c, settings);
    e->asked_at = 0;
    e->lane_cap = lane_cap_for(c, e, policy->n_scores);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        group_eviction *group = &e->groups[g];
        group->budget = budget_of(c, settings, g);
        group->limit = group->budget ? group->budget / page_tokens(c) : UINT32_MAX;
        group->lost = 0;
    }
}

/* What the pages of its tables bring along. */
static void begin_scores(kvk_cache *c, sequence *s)
{
    near_cut(c, s, 0);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        const table *t = &s->tables[g];
        eviction_begin_entries(c, s, g, 0);
        for (uint32_t k = 0; c->near_stride && k < t->n; k++)
            near_attach(c, s, g, table_number(t, k), t->pages[k]);
    }
}

/* All memory that the settings need; the old ones stand as they were. */
static int prepare_settings(kvk_cache *c, sequence *s, const kvk_eviction *settings, uint32_t n_near)
{
    const kvk_policy *policy = settings->choice.policy;
    uint32_t longest = 0;
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        longest = max_u32(longest, s->tables[g].cap);
    if (eviction_keep_index(c, s) < 0 ||
        memory_grow(c->memory, &s->eviction->lanes, &s->eviction->lane_floats,
                    (uint64_t)longest * policy->n_scores * c->config.n_groups, sizeof(float)) < 0)
        return KVK_ENOMEM;
    if (c->near_stride && near_prepare_all(c, s, n_near) < 0)
        return KVK_ENOMEM;
    return prepare_scratch(c, s, lanes_copied(policy));
}

int eviction_take_settings(kvk_cache *c, sequence *s, const kvk_eviction *settings, uint32_t n_near)
{
    int rc = check_budgets(c, settings);
    if (rc == 0)
        rc = prepare_settings(c, s, settings, n_near);
    if (rc == 0)
        apply_settings(c, s, settings);
    return rc;
}

static int set_eviction(kvk_cache *c, kvk_seq seq, const kvk_eviction *asked)
{
    kvk_eviction settings;
    sequence *s;
    int rc = sequence_use(c, seq, &s);
    if (rc < 0)
        return rc;
    if (asked && eviction_read_settings(asked, &settings) < 0)
        return KVK_EINVAL;
    if (s->n_in_flight)
        return KVK_EBUSY;
    if (!asked) {
        if (s->eviction)
            s->eviction->is_on = 0;
        return 0;
    }
    if (c->recorder && !policy_is_own(settings.choice.policy))
        return KVK_ESTATE;
    if (eviction_furnish(c, s) < 0)
        return KVK_ENOMEM;
    rc = eviction_take_settings(c, s, &settings, table_end(&s->tables[0]));
    if (rc == 0)
        begin_scores(c, s);
    return rc;
}

int kvk_seq_set_eviction(kvk_cache *cache, kvk_seq seq, const kvk_eviction *settings)
{
    if (!cache_is_ready(cache))
        return cache_refuses(cache);
    int rc = set_eviction(cache, seq, settings);
    if (cache->recorder)
        record_set_eviction(cache, seq, settings, rc);
    return rc;
}
