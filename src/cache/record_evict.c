/* What a recording says of eviction: policies, what was evicted by name, and the masses that a batch ends with. */
#include "cache/record.h"
#include "cache/record_line.h"
#include "policy/choose.h"

#include <kvkeep/eviction.h>
#include <string.h>

static void put_float(recorder *r, const char *name, float value)
{
    line_name(r, name);
    line_float(r, value);
}

static void put_list(recorder *r, const char *name, const uint32_t *values, uint32_t n)
{
    line_name(r, name);
    line_text(r, "[");
    line_list(r, values, n);
    line_text(r, "]");
}

/* Fields that have their default are left out. */
static void put_eviction(kvk_cache *c, const kvk_eviction *e)
{
    recorder *r = c->recorder;
    if (e->budget)
        line_field(r, "budget", e->budget);
    if (e->budgets)
        put_list(r, "budgets", e->budgets, c->config.n_groups);
    if (e->slack)
        line_field(r, "slack", e->slack);
    if (e->floor)
        line_field(r, "floor", e->floor);
    if (!e->yields)
        line_text(r, ",\"yields\":false");
    if (e->n_prompt)
        line_field(r, "n_prompt", e->n_prompt);
    if (e->slope != 0)
        put_float(r, "slope", e->slope);
    if (e->target != 0)
        put_float(r, "target", e->target);
}

/* Puts a choice into words; false for one that a replay could not repeat, which is refused. */
static int print_policy(const kvk_policy_choice *choice, char *text)
{
    return kvk_policy_check(choice) >= 0 && policy_is_own(choice->policy) &&
           kvk_policy_print(choice, text, KVK_MAX_POLICY_TEXT) >= 0;
}

static void put_set_eviction(kvk_cache *c, kvk_seq seq, const char *policy, const kvk_eviction *e, int rc)
{
    if (!line_begin(c, "set_eviction", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    if (policy)
        line_word(c->recorder, "policy", policy);
    else
        line_text(c->recorder, ",\"policy\":null");
    if (policy)
        put_eviction(c, e);
    line_finish(c, rc);
}

/* A call that was refused for its sequence may bring anything. */
void record_set_eviction(kvk_cache *c, kvk_seq seq, const kvk_eviction *asked, int rc)
{
    char policy[KVK_MAX_POLICY_TEXT];
    kvk_eviction e;
    kvk_eviction_init(&e);
    if (asked)
        memcpy(&e, asked, asked->size < sizeof e ? asked->size : sizeof e);
    if (!asked)
        put_set_eviction(c, seq, NULL, NULL, rc);
    else if (print_policy(&e.choice, policy))
        put_set_eviction(c, seq, policy, &e, rc);
}

void record_evict(kvk_cache *c, kvk_seq seq, uint32_t group, const uint32_t *positions, uint32_t n, int rc)
{
    if (!line_begin(c, "evict", rc))
        return;
    line_field(c->recorder, "seq", known_id(seq));
    line_field(c->recorder, "group", group);
    put_list(c->recorder, "positions", positions, n);
    line_finish(c, rc);
}

static void put_floats(recorder *r, const float *values, uint64_t n)
{
    line_text(r, "[");
    for (uint64_t i = 0; i < n; i++) {
        line_text(r, i ? "," : "");
        line_float(r, values[i]);
    }
    line_text(r, "]");
}

/* A list per group: values[G][stride], of which places[G] count. */
static void put_lists(kvk_cache *c, const char *name, const float *values, uint64_t stride, const uint64_t *places)
{
    line_name(c->recorder, name);
    for (uint32_t g = 0; g < c->config.n_groups; g++) {
        line_text(c->recorder, g ? "," : "[");
        put_floats(c->recorder, values + g * stride, places[g]);
    }
    line_text(c->recorder, "]");
}

static void put_masses(kvk_cache *c, const kvk_batch_result *result, const uint64_t *places)
{
    const kvk_masses *m = result->masses;
    if (m->rows)
        put_list(c->recorder, "rows", m->rows, result->n);
    if (m->n_summed)
        put_list(c->recorder, "n_summed", m->n_summed, result->n);
    put_lists(c, "mean", m->mean, m->stride, places);
    if (m->peak)
        put_lists(c, "peak", m->peak, m->stride, places);
    if (m->near)
        put_lists(c, "near", m->near, m->near_stride, places + c->config.n_groups);
}

void record_end(kvk_cache *c, kvk_batch batch, const kvk_batch_result *result, const uint64_t *places, int rc)
{
    if (!line_begin(c, "end", rc))
        return;
    line_field(c->recorder, "batch", known_id(batch));
    if (result && result->accepted)
        put_list(c->recorder, "accepted", result->accepted, result->n);
    if (places)
        put_masses(c, result, places);
    line_finish(c, rc);
}
