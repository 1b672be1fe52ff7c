/* day_evict.c: a day with policies: budgets, drafts, pressure, forks, swaps, and a state saved in the middle. */
#include "day.h"

enum { BUDGET = 16, DRAFTS = 8, PLACES = PAGES * DRAFTS, NEAR_PLACES = 4 * PLACES };

static kvk_seq_info info_of(const day *d, int i)
{
    kvk_seq_info info = {.size = sizeof info};
    ck_assert_int_eq(kvk_seq_info_get(d->cache, d->seqs[i], &info), 0);
    return info;
}

static int set_policy(const day *d, int i, const char *choice)
{
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.budget = BUDGET;
    ck_assert_int_eq(kvk_policy_parse(choice, NULL, &settings.choice, NULL, 0), 0);
    return kvk_seq_set_eviction(d->cache, d->seqs[i], &settings);
}

static int open_seq(day *d, int i)
{
    return kvk_seq_open(d->cache, NULL, &d->seqs[i]);
}

static int attach(const day *d, int i)
{
    kvk_text text = day_prompt(d, 0, PROMPT);
    return kvk_prefix_attach(d->cache, d->seqs[i], &text);
}

/* Room up to `end` tokens. */
static int reserve(const day *d, int i, uint32_t end, kvk_effort effort)
{
    return kvk_reserve(d->cache, d->seqs[i], end - info_of(d, i).n_tokens, effort);
}

static int plan(day *d, int i, uint32_t end)
{
    const kvk_batch_entry entry = {.seq = d->seqs[i], .n_query = end - info_of(d, i).n_tokens};
    kvk_plan plan;
    kvk_plan_init(&plan);
    return kvk_batch_plan(d->cache, &entry, 1, &plan, &d->batches[0]);
}

/* With a mass for each page, and near peaks where the cache has some. */
static int end(const day *d, uint32_t rows, uint32_t accepted)
{
    static float some[2 * NEAR_PLACES];
    for (int i = 0; i < 2 * NEAR_PLACES; i++)
        some[i] = (float)(1 + i % 11) / 32;
    kvk_masses masses = {.size = sizeof masses, .stride = PLACES, .near_stride = NEAR_PLACES, .rows = &rows};
    masses.mean = masses.peak = masses.near = some;
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .accepted = &accepted, .masses = &masses};
    return kvk_batch_end(d->cache, d->batches[0], &result);
}

/* Names all tokens that are not named yet. */
static int name(const day *d, int i)
{
    kvk_seq_info info = info_of(d, i);
    kvk_text text = day_prompt(d, info.n_committed, info.n_tokens);
    return kvk_commit(d->cache, d->seqs[i], &text);
}

/* The second page of its table goes, whatever the policy says. */
static int evict(const day *d, int i)
{
    uint32_t positions[PAGES];
    ck_assert_int_ge(kvk_seq_positions(d->cache, d->seqs[i], 0, positions, PAGES), 3);
    return kvk_evict(d->cache, d->seqs[i], 0, &positions[1], 1);
}

/* Tokens in more pages than nobody refers to. */
static uint32_t too_many(const day *d)
{
    kvk_stats stats = {.size = sizeof stats};
    ck_assert_int_eq(kvk_stats_get(d->cache, &stats), 0);
    return PAGE_TOKENS * ((stats.pages_free + stats.pages_cached) / d->config.n_groups + 1);
}

static int asks_for_too_many(day *d)
{
    return kvk_can_reserve(d->cache, d->seqs[3], too_many(d), KVK_EVICT);
}

static int takes_pages_of_others(day *d)
{
    return kvk_reserve(d->cache, d->seqs[3], too_many(d), KVK_EVICT);
}

static int has_lost_pages(day *d)
{
    kvk_eviction_info info = {.size = sizeof info};
    ck_assert_int_eq(kvk_eviction_info_get(d->cache, d->seqs[0], &info), 0);
    return info.pages_evicted > 0 ? 0 : KVK_ESTATE; /* the day is one of eviction */
}

static int sets_h2o(day *d)
{
    return set_policy(d, 0, "h2o:sinks=4:recent=4");
}

static int reserves_a_chunk(day *d)
{
    return reserve(d, 0, 12, KVK_FREE_ONLY);
}

static int plans_the_chunk(day *d)
{
    return plan(d, 0, 12);
}

static int ends_the_chunk(day *d)
{
    return end(d, 1, 12);
}

static int names_the_first(day *d)
{
    return name(d, 0);
}

static int reserves_drafts(day *d)
{
    return reserve(d, 0, 12 + DRAFTS, KVK_RECLAIM);
}

static int plans_drafts(day *d)
{
    return plan(d, 0, 12 + DRAFTS);
}

static int ends_drafts(day *d)
{
    return end(d, DRAFTS, 6);
}

static int trims_the_first(day *d)
{
    return reserve(d, 0, 24, KVK_RECLAIM);
}

static int opens_the_second(day *d)
{
    return open_seq(d, 1);
}

static int sets_keep(day *d)
{
    return set_policy(d, 1, "keep");
}

static int attaches_the_second(day *d)
{
    return attach(d, 1);
}

static int reserves_the_rest(day *d)
{
    return reserve(d, 1, 16, KVK_RECLAIM);
}

static int plans_the_rest(day *d)
{
    return plan(d, 1, 16);
}

static int ends_the_rest(day *d)
{
    return end(d, 1, info_of(d, 1).n_tokens - info_of(d, 1).n_committed);
}

static int names_the_second(day *d)
{
    return name(d, 1);
}

static int trims_the_second(day *d)
{
    return reserve(d, 1, 20, KVK_RECLAIM);
}

static int plans_the_second(day *d)
{
    return plan(d, 1, 20);
}

static int ends_the_second(day *d)
{
    return end(d, 1, 4);
}

static int evicts_from_the_second(day *d)
{
    return evict(d, 1);
}

static int forks_the_second(day *d)
{
    return kvk_seq_fork(d->cache, d->seqs[1], &d->seqs[2]);
}

static int sets_two_pools(day *d)
{
    return set_policy(d, 2, "h2o:sinks=4:recent=4:exit=1");
}

static int trims_the_third(day *d)
{
    return reserve(d, 2, 23, KVK_RECLAIM);
}

static int plans_the_third(day *d)
{
    return plan(d, 2, 23);
}

static int ends_the_third(day *d)
{
    return end(d, 3, 2);
}

static int opens_the_fourth(day *d)
{
    return open_seq(d, 3);
}

static int closes_the_fourth(day *d)
{
    return kvk_seq_close(d->cache, d->seqs[3]);
}

static int swaps_the_second_out(day *d)
{
    return kvk_preempt(d->cache, d->seqs[1], KVK_PREEMPT_SWAP);
}

static int opens_the_fifth(day *d)
{
    return open_seq(d, 4);
}

static int sets_scissorhands(day *d)
{
    return set_policy(d, 4, "scissorhands:recent=4");
}

static int reserves_the_fifth(day *d)
{
    return reserve(d, 4, 28, KVK_EVICT);
}

static int plans_the_fifth(day *d)
{
    return plan(d, 4, 28);
}

static int ends_the_fifth(day *d)
{
    return end(d, 1, 28);
}

static int names_the_fifth(day *d)
{
    return name(d, 4);
}

static int trims_the_fifth(day *d)
{
    return reserve(d, 4, 29, KVK_EVICT);
}

static int swaps_the_second_in(day *d)
{
    return kvk_swap_in(d->cache, d->seqs[1], KVK_EVICT);
}

static int forgets_the_third(day *d)
{
    return kvk_seq_set_eviction(d->cache, d->seqs[2], NULL);
}

static int truncates_the_second(day *d)
{
    return kvk_truncate(d->cache, d->seqs[1], 18);
}

static int plans_after(day *d)
{
    return plan(d, 4, 29);
}

static int ends_after(day *d)
{
    return end(d, 1, 1);
}

static int grows_after(day *d)
{
    return reserve(d, 1, 24, KVK_EVICT);
}

static int recomputes_the_fifth(day *d)
{
    return kvk_preempt(d->cache, d->seqs[4], KVK_PREEMPT_RECOMPUTE);
}

static int attaches_the_fifth(day *d)
{
    return attach(d, 4);
}

static int opens_a_sixth(day *d)
{
    return open_seq(d, 5);
}

static int sets_the_sixth(day *d)
{
    return set_policy(d, 5, "keep:layers=0");
}

static const day_call calls[] = {
    day_opens,
    day_starts_recording,
    day_listens,
    day_opens_the_first,
    sets_h2o,
    reserves_a_chunk,
    plans_the_chunk,
    ends_the_chunk,
    names_the_first,
    reserves_drafts,
    plans_drafts,
    ends_drafts,
    names_the_first,
    trims_the_first,
    has_lost_pages,
    opens_the_second,
    sets_keep,
    attaches_the_second,
    reserves_the_rest,
    plans_the_rest,
    ends_the_rest,
    names_the_second,
    trims_the_second,
    plans_the_second,
    ends_the_second,
    names_the_second,
    evicts_from_the_second,
    forks_the_second,
    sets_two_pools,
    trims_the_third,
    plans_the_third,
    ends_the_third,
    opens_the_fourth,
    asks_for_too_many,
    takes_pages_of_others,
    closes_the_fourth,
    swaps_the_second_out,
    opens_the_fifth,
    sets_scissorhands,
    reserves_the_fifth,
    plans_the_fifth,
    ends_the_fifth,
    names_the_fifth,
    trims_the_fifth,
    day_takes_all_moves,
    day_saves,
    day_loads,
    swaps_the_second_in,
    forgets_the_third,
    truncates_the_second,
    plans_after,
    ends_after,
    grows_after,
    recomputes_the_fifth,
    attaches_the_fifth,
    day_takes_all_moves,
    day_saves,
    day_loads,
    opens_a_sixth,
    sets_the_sixth,
    day_audits,
    day_stops_recording,
};

const schedule evicting_day = {calls, sizeof calls / sizeof calls[0]};
