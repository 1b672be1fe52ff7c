/* runner_step.c: one step: room, plan, moves, the model, the end of the batch. */
#include "engine/numbers.h"
#include "engine/runner_state.h"

#include <stdlib.h>
#include <string.h>

enum { SCORE_ROWS = 64 }; /* logits that are kept at a time for scores */

/* ---- What is asked ---------------------------------------------------------------------------------------------- */

static int check_tokens(const runner *r, const runner_entry *e, trace_error *error)
{
    uint32_t known = r->config.model->shape.n_vocabulary;
    for (uint32_t i = 0; i < e->n; i++) {
        int scored = e->want == RUNNER_SCORES && e->next[i] != UINT32_MAX;
        if (e->tokens[i] >= known || (scored && e->next[i] >= known))
            return trace_bad_input(error, (trace_place){"the text", 0, NULL}, "token %u is not of the model's %u",
                                   e->tokens[i] >= known ? e->tokens[i] : e->next[i], known);
    }
    return 0;
}

static int check_entry(const runner *r, const runner_entry *e, trace_error *error)
{
    kvk_seq_info info = {.size = sizeof info};
    uint32_t context = r->config.model->shape.context;
    int rc = kvk_seq_info_get(r->cache, e->sequence, &info);
    if (rc < 0)
        return runner_failed("kvk_seq_info_get", rc, error);
    if (e->n == 0)
        return trace_bad_input(error, (trace_place){"the text", 0, NULL}, "has no tokens");
    if (info.n_tokens > context || e->n > context - info.n_tokens)
        return trace_bad_input(error, (trace_place){"the text", 0, NULL}, "%ju tokens are more than the model's %u",
                               (uintmax_t)info.n_tokens + e->n, context);
    return check_tokens(r, e, error);
}

/* ---- Room and plan ---------------------------------------------------------------------------------------------- */

static int make_room(runner *r, const runner_entry *entries, uint32_t n, trace_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        int rc = check_entry(r, &entries[i], error);
        if (rc < 0)
            return rc;
    }
    for (uint32_t i = 0; i < n; i++) {
        int rc = entries[i].has_room ? 0 : kvk_reserve(r->cache, entries[i].sequence, entries[i].n, KVK_RECLAIM);
        if (rc < 0)
            return runner_failed("kvk_reserve", rc, error);
    }
    return 0;
}

static kvk_plan plan_of(const runner_arrays *a)
{
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = a->entries_cap;
    plan.pages_cap = a->pages_cap;
    plan.slots_cap = a->slots_cap;
    plan.indptr = a->indptr;
    plan.pages = a->pages;
    plan.positions = a->positions;
    plan.last_page_len = a->last_page_len;
    plan.seq_lens = a->seq_lens;
    plan.query_indptr = a->query_indptr;
    plan.slots = a->slots;
    return plan;
}

/* What does not fit is asked for again with what the plan says it needs. */
static int plan_batch(runner *r, const runner_entry *entries, uint32_t n, kvk_plan *plan, kvk_batch *batch)
{
    int rc = runner_grow(r, n, 1, 1) < 0 ? KVK_ENOMEM : 0;
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        r->arrays.entries[i] = (kvk_batch_entry){entries[i].sequence, entries[i].n, 0};
    if (rc < 0)
        return rc;
    *plan = plan_of(&r->arrays);
    rc = kvk_batch_plan(r->cache, r->arrays.entries, n, plan, batch);
    if (rc != KVK_ESPACE)
        return rc;
    if (runner_grow(r, n, plan->n_pages, plan->n_slots) < 0)
        return KVK_ENOMEM;
    *plan = plan_of(&r->arrays);
    return kvk_batch_plan(r->cache, r->arrays.entries, n, plan, batch);
}

/* ---- Masses ----------------------------------------------------------------------------------------------------- */

static int end_batch(runner *r, kvk_batch batch, uint32_t n, trace_error *error)
{
    const forward_masses *seen = &r->seen;
    kvk_masses masses = {.size = sizeof masses,
                         .stride = seen->stride,
                         .near_stride = seen->near_stride,
                         .mean = seen->mean,
                         .peak = seen->peak,
                         .near = seen->near,
                         .rows = seen->rows};
    kvk_batch_result result = {.size = sizeof result, .n = n, .masses = seen->mean ? &masses : NULL};
    int rc = kvk_batch_end(r->cache, batch, &result);
    return rc < 0 ? runner_failed("kvk_batch_end", rc, error) : 0;
}

/* Takes the new tokens back. */
static void discard(runner *r, kvk_batch batch, uint32_t n)
{
    kvk_batch_result result = {.size = sizeof result, .n = n, .accepted = r->arrays.none};
    (void)kvk_batch_end(r->cache, batch, &result);
}

/* ---- Results ---------------------------------------------------------------------------------------------------- */

static int grow_logits(runner *r, uint64_t rows)
{
    uint64_t n = rows * r->config.model->shape.n_vocabulary;
    if (n <= r->logits_cap)
        return 0;
    float *fresh = malloc(n * sizeof *fresh);
    if (!fresh)
        return -1;
    free(r->logits);
    r->logits = fresh;
    r->logits_cap = n;
    return 0;
}

/* Which new tokens' logits are asked for, in the order of the entries. Returns how many. */
static uint32_t list_wanted(const runner *r, const runner_entry *entries, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0, at = 0; i < n; at += entries[i++].n) {
        if (entries[i].want == RUNNER_LAST)
            r->arrays.which[count++] = at + entries[i].n - 1;
        for (uint32_t k = 0; entries[i].want == RUNNER_ALL && k < entries[i].n; k++)
            r->arrays.which[count++] = at + k;
    }
    return count;
}

/* `spare` rows more are made room for behind those that are asked for. */
static int give_logits(runner *r, runner_entry *entries, uint32_t n, uint32_t spare, trace_error *error)
{
    uint32_t count = list_wanted(r, entries, n);
    uint64_t width = r->config.model->shape.n_vocabulary;
    if (count + spare && grow_logits(r, (uint64_t)count + spare) < 0)
        return runner_no_memory(error);
    const float *at = r->logits;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rows = entries[i].want == RUNNER_ALL ? entries[i].n : entries[i].want == RUNNER_LAST;
        entries[i].logits = rows ? at : NULL;
        at = rows ? at + rows * width : at;
    }
    return count ? forward_logits(r->forward, r->arrays.which, count, r->logits, error) : 0;
}

/* Tokens whose next one is to be scored: where they are among the new ones, what follows and where the score goes. */
typedef struct scored {
    uint32_t which[SCORE_ROWS], next[SCORE_ROWS];
    double *nll[SCORE_ROWS];
    uint32_t n;
} scored;

static int score_rows(runner *r, scored *s, trace_error *error)
{
    uint32_t width = r->config.model->shape.n_vocabulary;
    float *logits = r->logits + (r->logits_cap / width - SCORE_ROWS) * width;
    int rc = s->n ? forward_logits(r->forward, s->which, s->n, logits, error) : 0;
    if (rc < 0)
        return rc;
#pragma omp parallel for
    for (uint32_t i = 0; i < s->n; i++)
        *s->nll[i] = negative_log_likelihood(logits + (size_t)i * width, width, s->next[i]);
    s->n = 0;
    return 0;
}

static int give_scores(runner *r, const runner_entry *entries, uint32_t n, trace_error *error)
{
    scored s = {.n = 0};
    for (uint32_t i = 0, at = 0; i < n; at += entries[i++].n)
        for (uint32_t k = 0; entries[i].want == RUNNER_SCORES && k < entries[i].n; k++) {
            entries[i].nll[k] = 0;
            if (entries[i].next[k] == UINT32_MAX)
                continue;
            s.which[s.n] = at + k;
            s.next[s.n] = entries[i].next[k];
            s.nll[s.n++] = &entries[i].nll[k];
            int rc = s.n == SCORE_ROWS ? score_rows(r, &s, error) : 0;
            if (rc < 0)
                return rc;
        }
    return score_rows(r, &s, error);
}

static int give_results(runner *r, runner_entry *entries, uint32_t n, trace_error *error)
{
    uint32_t spare = 0;
    for (uint32_t i = 0; i < n; i++)
        spare = entries[i].want == RUNNER_SCORES ? SCORE_ROWS : spare;
    int rc = give_logits(r, entries, n, spare, error);
    return rc < 0 || spare == 0 ? rc : give_scores(r, entries, n, error);
}

/* ---- The step --------------------------------------------------------------------------------------------------- */

static void list_tokens(const runner *r, const runner_entry *entries, uint32_t n)
{
    uint32_t *to = r->arrays.tokens;
    for (uint32_t i = 0; i < n; to += entries[i++].n)
        memcpy(to, entries[i].tokens, entries[i].n * sizeof *to);
}

static int commit(runner *r, const runner_entry *entries, uint32_t n, trace_error *error)
{
    for (uint32_t i = 0; i < n; i++) {
        int rc = kvk_commit(r->cache, entries[i].sequence,
                            &(kvk_text){.n_tokens = entries[i].n, .tokens = entries[i].tokens});
        if (rc < 0)
            return runner_failed("kvk_commit", rc, error);
    }
    return 0;
}

/* Computes a planned batch and its results, and leaves the cache as it is. */
static int compute(runner *r, runner_entry *entries, uint32_t n, forward_batch *batch, trace_error *error)
{
    int rc = runner_run_moves(r, error);
    list_tokens(r, entries, n);
    if (rc == 0)
        rc = forward_run(r->forward, batch, error);
    return rc < 0 ? rc : give_results(r, entries, n, error);
}

int runner_step(runner *r, runner_entry *entries, uint32_t n, trace_error *error)
{
    kvk_plan plan;
    kvk_batch batch;
    int rc = make_room(r, entries, n, error);
    if (rc < 0)
        return rc;
    rc = plan_batch(r, entries, n, &plan, &batch);
    if (rc < 0)
        return runner_failed("kvk_batch_plan", rc, error);
    if (runner_make_masses(r, entries, n, plan.needs | r->config.watch) < 0) {
        discard(r, batch, n);
        return runner_no_memory(error);
    }
    forward_batch work = {.plan = &plan,
                          .n_groups = r->config.n_groups,
                          .n = n,
                          .tokens = r->arrays.tokens,
                          .kv = &r->kv,
                          .near = {r->config.near.kind, r->near_places, r->groups},
                          .masses = r->seen};
    rc = compute(r, entries, n, &work, error);
    if (rc == 0)
        rc = end_batch(r, batch, n, error);
    if (rc < 0) {
        discard(r, batch, n);
        return rc;
    }
    return commit(r, entries, n, error);
}

const float *runner_near(const runner *r)
{
    return r->seen.near;
}
