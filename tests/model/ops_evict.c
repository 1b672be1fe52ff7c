/* ops_evict.c: budgets and policies, and pages dropped by the caller. */
#include "world.h"

#include <math.h>
#include <string.h>

static unsigned long long print(uint64_t handle)
{
    return (unsigned long long)handle;
}

/* ---- Settings ---- */

static const kvk_policy *draw_policy(world *w)
{
    static const char *const names[] = {"full", "window", "streaming", "h2o", "h2o", "tova", "lru", "keep"};
    const char *name = names[world_random(w, 8)];
    if (w->own_policies && world_one_in(w, 3))
        return &world_witness;
    if (w->own_policies && world_one_in(w, 10))
        return &world_nonsense;
    for (uint32_t i = 0; kvk_policy_at(i); i++) {
        if (strcmp(kvk_policy_at(i)->name, name) == 0)
            return kvk_policy_at(i);
    }
    return kvk_policy_at(0);
}

/* Small values, so that much is evicted. What is asked for besides masses is asked for with them. */
static double draw_knob(world *w, const char *name)
{
    uint32_t tokens = world_random(w, 3 * w->twin.config.page_tokens + 1);
    if (strcmp(name, "tokens") == 0 || strcmp(name, "heavy") == 0)
        return 1 + tokens * 2;
    if (strcmp(name, "sinks") == 0 || strcmp(name, "recent") == 0)
        return world_one_in(w, 2) ? 0 : tokens;
    if (strcmp(name, "budget") == 0)
        return tokens * 3;
    if (strcmp(name, "needs") == 0)
        return 1 + 2 * world_random(w, 8);
    if (strcmp(name, "threshold") == 0)
        return world_random(w, 128) / 64.0;
    if (strcmp(name, "half_life") == 0)
        return world_random(w, 4);
    if (strcmp(name, "recent_share") == 0)
        return world_random(w, 4) / 4.0;
    if (strcmp(name, "importance") == 0)
        return world_random(w, 3);
    return world_one_in(w, 2); /* exit, chooses, damping, layers, spread, least */
}

/* By peaks a share of the budget; by near peaks so little that it comes to no page. */
static double draw_reserve(world *w, const kvk_policy_choice *choice)
{
    for (uint32_t i = 0; i < choice->policy->n_knobs; i++) {
        if (strcmp(choice->policy->knobs[i].name, "importance") == 0 && choice->knobs[i] > 1)
            return world_random(w, 3) / 4.0;
    }
    return world_one_in(w, 3) ? 0 : 0.001;
}

static void draw_choice(world *w, kvk_policy_choice *choice)
{
    kvk_policy_defaults(draw_policy(w), choice);
    for (uint32_t i = 0; i < choice->policy->n_knobs; i++) {
        const kvk_knob *knob = &choice->policy->knobs[i];
        choice->knobs[i] = draw_knob(w, knob->name);
        if (world_one_in(w, 200))
            choice->knobs[i] = world_one_in(w, 2) ? knob->max * 2 + 1 : (double)NAN;
    }
    for (uint32_t i = 0; i < choice->policy->n_knobs; i++) {
        if (strcmp(choice->policy->knobs[i].name, "reserve") == 0)
            choice->knobs[i] = draw_reserve(w, choice);
    }
}

static uint32_t draw_budget(world *w)
{
    return world_one_in(w, 6) ? 0 : world_random(w, 12 * w->twin.config.page_tokens);
}

static void draw_settings(world *w, kvk_eviction *e, uint32_t budgets[TWIN_GROUPS])
{
    kvk_eviction_init(e);
    draw_choice(w, &e->choice);
    e->budget = draw_budget(w);
    e->slack = world_one_in(w, 2) ? 0 : world_random(w, 3);
    e->floor = world_one_in(w, 2) ? 0 : world_random(w, 20);
    e->yields = !world_one_in(w, 4);
    e->n_prompt = world_random(w, 20);
    e->slope = world_one_in(w, 2) ? 0 : (float)world_random(w, 5) / 4;
    if (e->choice.policy->score_is_mass && world_one_in(w, 3))
        e->target = (float)world_random(w, 9) / 8;
    for (uint32_t g = 0; g < TWIN_GROUPS; g++)
        budgets[g] = draw_budget(w);
    e->budgets = world_one_in(w, 3) ? budgets : NULL;
    if (world_one_in(w, 60))
        e->target = world_one_in(w, 2) ? 1.5f : 0.5f;
    if (world_one_in(w, 60))
        e->slope = world_one_in(w, 2) ? -0.5f : NAN;
    if (world_one_in(w, 60))
        e->yields = 2;
}

static bool is_of_the_tests(const kvk_eviction *settings)
{
    return settings && (settings->choice.policy == &world_witness || settings->choice.policy == &world_nonsense);
}

void world_set_eviction(world *w, kvk_seq handle)
{
    kvk_eviction settings;
    uint32_t budgets[TWIN_GROUPS], tries = world_one_in(w, 8) ? 1 : 20;
    do {
        draw_settings(w, &settings, budgets);
    } while (--tries && !twin_settings_fit(&w->twin, &settings));
    const kvk_eviction *given = world_one_in(w, 12) ? NULL : &settings;
    int rc;
    world_say(w, "set_eviction %llu: %s, budget %u, slack %u", print(handle),
              given ? settings.choice.policy->name : "none", settings.budget, settings.slack);
    do {
        world_arm(w);
        rc = kvk_seq_set_eviction(w->cache, handle, given);
    } while (world_struck(w, rc));
    world_unbind(w, handle);
    if (w->recorded && is_of_the_tests(given))
        world_expect(w, "kvk_seq_set_eviction while recorded", true, rc < 0);
    else
        world_expect(w, "kvk_seq_set_eviction", twin_set_eviction(&w->twin, handle, given), rc);
}

void op_set_eviction(world *w)
{
    world_set_eviction(w, world_pick_seq(w));
}

/* ---- Decoding ---- */

static kvk_seq pick_evicted(world *w)
{
    uint32_t first = world_random(w, TWIN_SEQS);
    for (uint32_t i = 0; i < TWIN_SEQS; i++) {
        const twin_seq *s = &w->twin.seqs[(first + i) % TWIN_SEQS];
        if (s->handle && s->eviction.policy && !s->swapped)
            return s->handle;
    }
    return world_pick_seq(w);
}

/* A step as a server makes it. */
static void decode(world *w, kvk_seq handle, uint32_t n, kvk_effort effort)
{
    const twin_seq *s = twin_find(&w->twin, handle);
    kvk_batch batch;
    world_reserve(w, handle, n, effort);
    world_check(w);
    if (!s || s->swapped || !world_has_batch_place(w))
        return;
    uint32_t room = s->end * w->twin.config.page_tokens - s->n_tokens;
    batch = world_plan(w, handle, n < room ? n : room);
    world_check(w);
    if (!batch)
        return;
    world_end(w, batch);
    world_check(w);
    if (!world_one_in(w, 4))
        world_commit(w, handle, s->n_tokens - s->n_committed);
}

/* A sequence, mostly one that is evicted, grows: by single tokens, chunks or drafts. */
void op_decode(world *w)
{
    kvk_seq handle = pick_evicted(w);
    uint32_t steps = 1 + world_random(w, 10), most = 1 + world_random(w, 2 * w->twin.config.page_tokens + 1);
    kvk_effort effort = world_one_in(w, 2) ? KVK_EVICT : (kvk_effort)world_random(w, 3);
    for (uint32_t i = 0; i < steps; i++)
        decode(w, handle, 1 + world_random(w, most), effort);
}

/* ---- Dropping pages ---- */

/* Mostly full pages that it holds; some must stay nevertheless. */
static uint32_t draw_positions(world *w, const twin_seq *s, uint32_t group, uint32_t *positions)
{
    uint32_t n = 0, share = 1 + world_random(w, 6), P = w->twin.config.page_tokens;
    uint32_t end = !s ? 0 : world_one_in(w, 6) ? s->end : s->n_tokens / P;
    for (uint32_t i = 0; i < end; i++) {
        if (twin_holds(s, group, i) ? world_one_in(w, share) : world_one_in(w, 300))
            positions[n++] = i * P;
    }
    if (n && world_one_in(w, 20))
        positions[world_random(w, n)] += world_random(w, 2 * P);
    return n;
}

void op_evict(world *w)
{
    kvk_seq handle = world_pick_seq(w);
    uint32_t positions[TWIN_ENTRIES], group = world_random(w, w->twin.config.n_groups);
    uint32_t n = draw_positions(w, twin_find(&w->twin, handle), group, positions);
    int rc;
    world_say(w, "evict %u pages of %llu in group %u", n, print(handle), group);
    w->by_hand = true;
    do {
        world_arm(w);
        rc = kvk_evict(w->cache, handle, group, positions, n);
    } while (world_struck(w, rc));
    w->by_hand = false;
    world_expect(w, "kvk_evict", twin_evict(&w->twin, handle, group, positions, n), rc);
}
