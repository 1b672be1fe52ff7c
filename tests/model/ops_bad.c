/* ops_bad.c: arguments out of range, closed handles and short arrays: refused, and nothing changed. */
#include "world.h"

static void refuse(world *w, const char *name, int rc)
{
    world_expect(w, name, KVK_EINVAL, rc);
}

static void bad_sequence_calls(world *w, kvk_seq seq)
{
    kvk_cache *c = w->cache;
    kvk_seq out = 0;
    kvk_seq_info info = {.size = 0};
    const kvk_seq_params params = {.size = 2};
    uint32_t one;
    refuse(w, "open without out", kvk_seq_open(c, NULL, NULL));
    refuse(w, "open with a size of 2", kvk_seq_open(c, &params, &out));
    refuse(w, "open without a cache", kvk_seq_open(NULL, NULL, &out));
    refuse(w, "close without a cache", kvk_seq_close(NULL, seq));
    refuse(w, "fork without a cache", kvk_seq_fork(NULL, seq, &out));
    refuse(w, "fork without out", kvk_seq_fork(c, seq, NULL));
    refuse(w, "set_priority without a cache", kvk_seq_set_priority(NULL, seq, 1));
    refuse(w, "info without out", kvk_seq_info_get(c, seq, NULL));
    refuse(w, "info with a size of 0", kvk_seq_info_get(c, seq, &info));
    refuse(w, "table of a group beyond", kvk_seq_table(c, seq, w->twin.config.n_groups, &one, 1));
    refuse(w, "info without a cache", kvk_seq_info_get(NULL, seq, &info));
    refuse(w, "table without a cache", kvk_seq_table(NULL, seq, 0, &one, 1));
    refuse(w, "table into nothing", kvk_seq_table(c, seq, 0, NULL, 1));
}

static void bad_content_calls(world *w, kvk_seq seq)
{
    kvk_cache *c = w->cache;
    const kvk_text nothing = {.n_tokens = 3, .n_keys = 1};
    refuse(w, "attach without a prompt", kvk_prefix_attach(c, seq, NULL));
    refuse(w, "lookup without a prompt", kvk_prefix_lookup(c, NULL, NULL));
    refuse(w, "commit without text", kvk_commit(c, seq, NULL));
    refuse(w, "attach without a cache", kvk_prefix_attach(NULL, seq, &nothing));
    refuse(w, "lookup without a cache", kvk_prefix_lookup(NULL, NULL, &nothing));
    refuse(w, "commit without a cache", kvk_commit(NULL, seq, &nothing));
    refuse(w, "reset without a cache", kvk_prefix_reset(NULL, NULL));
    if (w->twin.config.content == KVK_CONTENT_NONE)
        return;
    refuse(w, "attach with a text of nothing", kvk_prefix_attach(c, seq, &nothing));
    refuse(w, "lookup with a text of nothing", kvk_prefix_lookup(c, NULL, &nothing));
    refuse(w, "commit with a text of nothing", kvk_commit(c, seq, &nothing));
}

static void bad_room_calls(world *w, kvk_seq seq)
{
    const kvk_effort beyond = (kvk_effort)(KVK_EVICT + 1);
    refuse(w, "can_reserve with an effort beyond", kvk_can_reserve(w->cache, seq, 1, beyond));
    refuse(w, "reserve with an effort beyond", kvk_reserve(w->cache, seq, 1, beyond));
    refuse(w, "can_reserve without a cache", kvk_can_reserve(NULL, seq, 1, KVK_RECLAIM));
    refuse(w, "reserve without a cache", kvk_reserve(NULL, seq, 1, KVK_RECLAIM));
    refuse(w, "truncate without a cache", kvk_truncate(NULL, seq, 0));
}

static void bad_batch_calls(world *w, kvk_seq seq)
{
    const kvk_batch_entry entry = {.seq = seq};
    kvk_batch batch = 0;
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = TWIN_PAGES;
    refuse(w, "plan without a plan", kvk_batch_plan(w->cache, &entry, 1, NULL, &batch));
    refuse(w, "plan without a cache", kvk_batch_plan(NULL, &entry, 1, &plan, &batch));
    refuse(w, "plan without out", kvk_batch_plan(w->cache, &entry, 1, &plan, NULL));
    refuse(w, "plan without entries", kvk_batch_plan(w->cache, NULL, 1, &plan, &batch));
    plan.index_bits = 16;
    refuse(w, "plan with 16 bits", kvk_batch_plan(w->cache, &entry, 1, &plan, &batch));
    plan.index_bits = 32;
    plan.form = 2;
    refuse(w, "plan in a form beyond", kvk_batch_plan(w->cache, &entry, 1, &plan, &batch));
    refuse(w, "end without a cache", kvk_batch_end(NULL, 1, NULL));
    refuse(w, "moves without a cache", kvk_moves_take(NULL, NULL, 0));
    refuse(w, "moves into nothing", kvk_moves_take(w->cache, NULL, 1));
}

static void bad_pressure_calls(world *w, kvk_seq seq)
{
    const kvk_retention backward = {.begin = 4, .end = 4}, too_high = {.end = 4, .priority = 101};
    kvk_cache *c = w->cache;
    refuse(w, "preempt in a way beyond", kvk_preempt(c, seq, (kvk_preempt_how)2));
    refuse(w, "preempt without a cache", kvk_preempt(NULL, seq, KVK_PREEMPT_RECOMPUTE));
    refuse(w, "swap_in with an effort beyond", kvk_swap_in(c, seq, (kvk_effort)(KVK_EVICT + 1)));
    refuse(w, "victim without out", kvk_victim(c, NULL));
    refuse(w, "pin without a cache", kvk_pin(NULL, seq, 0));
    refuse(w, "unpin without a cache", kvk_unpin(NULL, seq, 0));
    refuse(w, "retain of nothing", kvk_retain(c, seq, NULL, 1));
    refuse(w, "retain too much", kvk_retain(c, seq, &backward, KVK_MAX_RETENTIONS + 1));
    refuse(w, "retain an empty range", kvk_retain(c, seq, &backward, 1));
    refuse(w, "retain with a priority beyond", kvk_retain(c, seq, &too_high, 1));
    refuse(w, "set_time without a cache", kvk_set_time(NULL, 1));
    refuse(w, "resize to nothing", kvk_resize(c, 0, 1));
    refuse(w, "resize to too much", kvk_resize(c, KVK_MAX_PAGES + 1, 0));
    refuse(w, "first of a group beyond", kvk_seq_first(c, seq, w->twin.config.n_groups));
    refuse(w, "events without a cache", kvk_set_events(NULL, NULL, NULL));
}

static void bad_eviction_calls(world *w, kvk_seq seq)
{
    kvk_cache *c = w->cache;
    uint32_t zero = 0, G = w->twin.config.n_groups;
    kvk_page_score score;
    kvk_eviction_info info = {.size = 0};
    refuse(w, "set_eviction without a cache", kvk_seq_set_eviction(NULL, seq, NULL));
    refuse(w, "evict without a cache", kvk_evict(NULL, seq, 0, &zero, 1));
    refuse(w, "evict from a group beyond", kvk_evict(c, seq, G, &zero, 1));
    refuse(w, "evict of nothing", kvk_evict(c, seq, 0, NULL, 1));
    refuse(w, "scores without a cache", kvk_seq_scores(NULL, seq, 0, &score, 1));
    refuse(w, "scores of a group beyond", kvk_seq_scores(c, seq, G, &score, 1));
    refuse(w, "scores into nothing", kvk_seq_scores(c, seq, 0, NULL, 1));
    refuse(w, "positions without a cache", kvk_seq_positions(NULL, seq, 0, &zero, 1));
    refuse(w, "positions of a group beyond", kvk_seq_positions(c, seq, G, &zero, 1));
    refuse(w, "positions into nothing", kvk_seq_positions(c, seq, 0, NULL, 1));
    refuse(w, "eviction_info without a cache", kvk_eviction_info_get(NULL, seq, &info));
    refuse(w, "eviction_info without out", kvk_eviction_info_get(c, seq, NULL));
    refuse(w, "eviction_info with a size of 0", kvk_eviction_info_get(c, seq, &info));
}

/* Settings of a policy that is none. */
static void bad_settings(world *w, const twin_seq *s)
{
    kvk_policy none = world_witness;
    kvk_eviction settings;
    none.rank = NULL; /* it chooses nevertheless */
    kvk_eviction_init(&settings);
    settings.choice.policy = &none;
    int rc = s->swapped ? KVK_ESTATE : KVK_EINVAL;
    world_expect(w, "set_eviction to a policy that only chooses", rc,
                 kvk_seq_set_eviction(w->cache, s->handle, &settings));
    settings.choice.policy = NULL;
    world_expect(w, "set_eviction to no policy", rc, kvk_seq_set_eviction(w->cache, s->handle, &settings));
    kvk_eviction_init(&settings);
    settings.size = 2;
    world_expect(w, "set_eviction with a size of 2", rc, kvk_seq_set_eviction(w->cache, s->handle, &settings));
}

static void bad_views(world *w)
{
    kvk_stats stats = {.size = 0};
    kvk_page_info page = {.size = sizeof page};
    refuse(w, "stats with a size of 0", kvk_stats_get(w->cache, &stats));
    refuse(w, "stats without a cache", kvk_stats_get(NULL, &stats));
    refuse(w, "a page without a cache", kvk_page_info_get(NULL, 0, &page));
    refuse(w, "a page into nothing", kvk_page_info_get(w->cache, 0, NULL));
    refuse(w, "stats into nothing", kvk_stats_get(w->cache, NULL));
    refuse(w, "a page beyond", kvk_page_info_get(w->cache, TWIN_PAGES, &page));
    refuse(w, "audit without a cache", kvk_audit(NULL, NULL, NULL));
    refuse(w, "recording to nobody", kvk_record_start(w->cache, NULL, NULL));
}

static void short_and_stale(world *w, const twin_seq *s)
{
    uint32_t pages[TWIN_ENTRIES];
    kvk_seq_info info = {.size = sizeof info};
    kvk_seq stale = w->stale_seqs[world_random(w, WORLD_STALE)];
    uint32_t n = twin_count_held(s, 0, s->end);
    world_expect(w, "length of a table", s->swapped ? KVK_ESTATE : (int)n,
                 kvk_seq_table(w->cache, s->handle, 0, NULL, 0));
    if (n && !s->swapped)
        world_expect(w, "table too short", KVK_ESPACE, kvk_seq_table(w->cache, s->handle, 0, pages, n - 1));
    if (n && !s->swapped)
        world_expect(w, "positions too short", KVK_ESPACE, kvk_seq_positions(w->cache, s->handle, 0, pages, n - 1));
    world_expect(w, "info of a closed handle", KVK_ESTALE, kvk_seq_info_get(w->cache, stale, &info));
    world_expect(w, "positions of a closed handle", KVK_ESTALE,
                 kvk_seq_positions(w->cache, stale, 0, pages, TWIN_ENTRIES));
    world_expect(w, "scores of a closed handle", KVK_ESTALE, kvk_seq_scores(w->cache, stale, 0, NULL, 0));
    world_expect(w, "evict from a closed handle", KVK_ESTALE, kvk_evict(w->cache, stale, 0, pages, 0));
    world_expect(w, "table of a closed handle", KVK_ESTALE, kvk_seq_table(w->cache, stale, 0, pages, TWIN_ENTRIES));
}

void op_bad_arguments(world *w)
{
    const twin_seq *s = world_pick_open(w);
    world_say(w, "bad arguments");
    if (!s)
        return;
    bad_sequence_calls(w, s->handle);
    bad_content_calls(w, s->handle);
    bad_room_calls(w, s->handle);
    bad_batch_calls(w, s->handle);
    bad_pressure_calls(w, s->handle);
    bad_eviction_calls(w, s->handle);
    bad_settings(w, s);
    bad_views(w);
    short_and_stale(w, s);
}
