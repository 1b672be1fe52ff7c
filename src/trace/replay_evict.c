#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "trace/replay_evict.h"

#include <kvkeep/eviction.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct evict_run {
    mass_trace *trace;
    const evict_options *options;
    trace_error *error;
    kvk_cache *cache;
    kvk_seq seq;
    kvk_plan plan;
    kvk_group *groups;   /* [groups] */
    int32_t *indptr;     /* [groups][2] */
    int32_t *positions;  /* [groups][pages] */
    uint32_t *held;      /* [pages] of one group */
    float *mean, *peak;  /* [groups][pages] of the pages held */
    float *near;         /* [groups][2][near_heads] */
    double ns;           /* in the cache's calls */
    char violation[256]; /* what the audit found */
} evict_run;

static trace_place place(const evict_run *r, const char *field)
{
    return (trace_place){r->trace->name, 0, field};
}

static int call_failed(const evict_run *r, const char *call, int rc)
{
    return trace_failed(r->error, place(r, NULL), "step %u: %s: %s", r->trace->step, call, kvk_strerror(rc));
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static int take_memory(evict_run *r)
{
    const mass_shape *s = &r->trace->shape;
    size_t entries = (size_t)s->groups * s->pages, near = (size_t)s->groups * 2 * s->near_heads;
    r->groups = calloc(s->groups, sizeof *r->groups);
    r->indptr = calloc(s->groups, 2 * sizeof *r->indptr);
    r->positions = calloc(entries, sizeof *r->positions);
    r->held = calloc(s->pages, sizeof *r->held);
    r->mean = calloc(entries, sizeof *r->mean);
    r->peak = calloc(entries, sizeof *r->peak);
    r->near = calloc(near + 1, sizeof *r->near);
    if (r->groups && r->indptr && r->positions && r->held && r->mean && r->peak && r->near)
        return 0;
    return trace_failed(r->error, place(r, NULL), "out of memory");
}

/* A pool that never lacks a page: what goes, goes by the policy. */
static int open_cache(evict_run *r)
{
    const mass_shape *s = &r->trace->shape;
    uint64_t pages = ((uint64_t)s->pages + 1) * s->groups;
    kvk_config config;
    kvk_config_init(&config);
    for (uint32_t g = 0; g < s->groups; g++)
        r->groups[g] = (kvk_group){.near_layers = s->near_heads > 0, .near_heads = (uint16_t)s->near_heads};
    config.page_tokens = s->page_tokens;
    config.n_pages = pages < KVK_MAX_PAGES ? (uint32_t)pages : KVK_MAX_PAGES;
    config.n_groups = s->groups;
    config.groups = r->groups;
    config.content = KVK_CONTENT_NONE;
    config.memory_limit = r->options->memory_limit;
    int rc = kvk_cache_open(&config, &r->cache);
    if (rc == 0)
        rc = kvk_seq_open(r->cache, NULL, &r->seq);
    return rc < 0 ? trace_failed(r->error, place(r, NULL), "cannot open a cache: %s", kvk_strerror(rc)) : 0;
}

/* The choice itself is good, so that what can be wrong is the budget. */
static int set_policy(const evict_run *r)
{
    kvk_eviction eviction;
    kvk_eviction_init(&eviction);
    eviction.budget = r->options->budget;
    eviction.choice = r->options->choice;
    int rc = kvk_seq_set_eviction(r->cache, r->seq, &eviction);
    if (rc == KVK_EINVAL)
        return trace_bad_input(r->error, place(r, "budget"),
                               "%u tokens, in pages of %u, are too few for %s: all would be out of its reach",
                               eviction.budget, r->trace->shape.page_tokens, eviction.choice.policy->name);
    return rc < 0 ? call_failed(r, "kvk_seq_set_eviction", rc) : 0;
}

static void set_plan(evict_run *r)
{
    kvk_plan_init(&r->plan);
    r->plan.entries_cap = 1;
    r->plan.pages_cap = r->trace->shape.pages;
    r->plan.indptr = r->indptr;
    r->plan.positions = r->positions;
}

static int open_run(evict_run *r)
{
    if (r->options->budget < r->trace->shape.page_tokens)
        return trace_bad_input(r->error, place(r, "budget"), "%u tokens are no page of %u", r->options->budget,
                               r->trace->shape.page_tokens);
    int rc = take_memory(r);
    if (rc == 0)
        rc = open_cache(r);
    if (rc == 0)
        rc = set_policy(r);
    set_plan(r);
    return rc;
}

static void close_run(evict_run *r)
{
    kvk_cache_close(r->cache);
    free(r->groups);
    free(r->indptr);
    free(r->positions);
    free(r->held);
    free(r->mean);
    free(r->peak);
    free(r->near);
}

/* ---- A step ------------------------------------------------------------------------------------------------------ */

static uint32_t count_held(const evict_run *r, uint32_t group)
{
    return (uint32_t)r->indptr[2 * group + 1];
}

static uint32_t page_at(const evict_run *r, uint32_t group, uint32_t i)
{
    const mass_shape *s = &r->trace->shape;
    return (uint32_t)r->positions[(size_t)group * s->pages + i] / s->page_tokens;
}

/* The values of one group's pages from the one before the query's on. */
static void fill_near(evict_run *r, const mass_step *step, uint32_t group)
{
    const mass_shape *s = &r->trace->shape;
    size_t n = s->near_heads;
    float *to = r->near + group * 2 * n;
    const float *from = step->near + group * 2 * n;
    uint32_t own = mass_position(r->trace) / s->page_tokens, first = own ? own - 1 : 0;
    for (uint32_t i = 0; i < count_held(r, group); i++) {
        uint32_t p = page_at(r, group, i);
        if (p < first)
            continue;
        memcpy(to, from + (p - first) * n, n * sizeof *to);
        to += n;
    }
}

static void fill_group(evict_run *r, const mass_step *step, uint32_t group)
{
    const mass_shape *s = &r->trace->shape;
    size_t to = (size_t)group * s->pages, from = (size_t)group * s->columns;
    for (uint32_t i = 0; i < count_held(r, group); i++) {
        uint32_t p = page_at(r, group, i);
        r->mean[to + i] = step->mean[from + p];
        r->peak[to + i] = step->peak ? step->peak[from + p] : 0;
    }
    if (step->near)
        fill_near(r, step, group);
}

static kvk_masses masses_for(const evict_run *r, const mass_step *step)
{
    const mass_shape *s = &r->trace->shape;
    uint32_t needs = r->plan.needs;
    return (kvk_masses){.size = sizeof(kvk_masses),
                        .stride = s->pages,
                        .near_stride = 2 * (uint64_t)s->near_heads,
                        .mean = needs & KVK_NEED_MEAN ? r->mean : NULL,
                        .peak = needs & KVK_NEED_PEAK && step->peak ? r->peak : NULL,
                        .near = needs & KVK_NEED_NEAR && step->near ? r->near : NULL};
}

/* Makes room for one more token and plans it: whatever goes, goes here. */
static int plan_token(evict_run *r, kvk_batch *batch)
{
    const kvk_batch_entry entry = {r->seq, 1, 0};
    double start = now_ns();
    int rc = kvk_reserve(r->cache, r->seq, 1, KVK_RECLAIM);
    if (rc < 0)
        return call_failed(r, "kvk_reserve", rc);
    rc = kvk_batch_plan(r->cache, &entry, 1, &r->plan, batch);
    r->ns += now_ns() - start;
    return rc < 0 ? call_failed(r, "kvk_batch_plan", rc) : 0;
}

static int end_token(evict_run *r, kvk_batch batch, const mass_step *step)
{
    kvk_masses masses = masses_for(r, step);
    kvk_batch_result result = {.size = sizeof result, .n = 1, .masses = &masses};
    double start = now_ns();
    int rc = kvk_batch_end(r->cache, batch, &result);
    r->ns += now_ns() - start;
    return rc < 0 ? call_failed(r, "kvk_batch_end", rc) : 0;
}

static void on_violation(void *ctx, const char *invariant, const char *text)
{
    evict_run *r = ctx;
    if (!r->violation[0])
        snprintf(r->violation, sizeof r->violation, "%s: %s", invariant, text);
}

static int audit(evict_run *r)
{
    int found = kvk_audit(r->cache, on_violation, r);
    if (found < 0)
        return call_failed(r, "kvk_audit", found);
    return found ? trace_failed(r->error, place(r, NULL), "step %u: invariant %s", r->trace->step, r->violation) : 0;
}

static int run_step(evict_run *r, const mass_step *step, evict_tally *tally)
{
    kvk_batch batch = 0;
    int rc = plan_token(r, &batch);
    if (rc < 0)
        return rc;
    for (uint32_t g = 0; g < r->trace->shape.groups; g++) {
        uint32_t n = count_held(r, g);
        for (uint32_t i = 0; i < n; i++)
            r->held[i] = page_at(r, g, i);
        evict_tally_add(tally, step, g, r->held, n);
        fill_group(r, step, g);
    }
    rc = end_token(r, batch, step);
    return rc == 0 && r->options->audit ? audit(r) : rc;
}

/* Text before the first query, of which nothing was seen. */
static int run_before(evict_run *r)
{
    kvk_batch_entry entry = {r->seq, r->trace->shape.first, 0};
    kvk_batch batch = 0;
    if (entry.n_query == 0)
        return 0;
    int rc = kvk_reserve(r->cache, r->seq, entry.n_query, KVK_RECLAIM);
    if (rc < 0)
        return call_failed(r, "kvk_reserve", rc);
    rc = kvk_batch_plan(r->cache, &entry, 1, &r->plan, &batch);
    if (rc < 0)
        return call_failed(r, "kvk_batch_plan", rc);
    rc = kvk_batch_end(r->cache, batch, NULL);
    return rc < 0 ? call_failed(r, "kvk_batch_end", rc) : 0;
}

static int run_steps(evict_run *r, evict_tally *tally)
{
    mass_step step;
    int rc = mass_rewind(r->trace, r->error);
    if (rc == 0)
        rc = run_before(r);
    while (rc == 0 && (rc = mass_next(r->trace, &step, r->error)) > 0)
        rc = run_step(r, &step, tally);
    return rc;
}

/* ------------------------------------------------------------------------------------------------------------------ */

int replay_evict_check(mass_trace *t, const evict_options *options, trace_error *error)
{
    evict_run run = {.trace = t, .options = options, .error = error};
    int rc = open_run(&run);
    close_run(&run);
    return rc;
}

int replay_evict(mass_trace *t, const evict_options *options, evict_result *result, trace_error *error)
{
    evict_run run = {.trace = t, .options = options, .error = error};
    evict_tally tally;
    int rc = evict_tally_open(&tally, t, options->budget / t->shape.page_tokens, error);
    if (rc < 0)
        return rc;
    rc = open_run(&run);
    if (rc == 0)
        rc = run_steps(&run, &tally);
    if (rc == 0) {
        evict_tally_result(&tally, result);
        result->budget = options->budget;
        result->ns_per_step = run.ns / t->shape.steps;
    }
    close_run(&run);
    evict_tally_close(&tally);
    return rc;
}
