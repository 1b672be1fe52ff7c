/* What is kept of a sequence under a policy always has its room, and what a batch in flight may take back stays. */
#include "api.h"

#include "kvkeep/eviction.h"

#include <string.h>

enum { LAYERS = 64, HEADS = 8, CHANNELS = LAYERS * HEADS };

static void with_near_peaks(kvk_config *config)
{
    static const kvk_group group = {.near_layers = LAYERS, .near_heads = HEADS};
    config->groups = &group;
}

static void set_policy(kvk_seq seq, const char *choice)
{
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.budget = 32;
    ck_assert_int_eq(kvk_policy_parse(choice, NULL, &settings.choice, NULL, 0), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &settings), 0);
}

/* Ends a batch of one entry of one row, in which each page got an equal share, and the same near peaks. */
static int end_with_masses(kvk_batch batch, uint32_t n_pages, uint32_t n_near)
{
    static float mean[API_MAX], near[API_MAX * CHANNELS];
    for (uint32_t i = 0; i < n_pages; i++)
        mean[i] = 1.0f / (float)n_pages;
    for (uint32_t i = 0; i < n_near * CHANNELS; i++)
        near[i] = 0.5f;
    kvk_masses masses = {.size = sizeof masses, .mean = mean, .stride = API_MAX};
    masses.near = n_near ? near : NULL;
    masses.near_stride = API_MAX * CHANNELS;
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .masses = &masses};
    return kvk_batch_end(cache, batch, &result);
}

START_TEST(pages_attached_bring_their_near_peaks_into_room_of_their_own)
{
    api_open(32, with_near_peaks);
    kvk_seq first = api_text(0, 40), second = api_seq();
    set_policy(second, "keep");
    ck_assert_int_eq(api_attach(second, 0, 40), 36);
    ck_assert_int_eq(kvk_reserve(cache, second, 4, KVK_RECLAIM), 1);
    ck_assert_int_ge(end_with_masses(api_plan(second, 4), 10, 2), 0);
    kvk_seq_close(cache, first);
    api_close();
}
END_TEST

/* The parent's last page had no near peaks yet, the child's first masses bring them, and it needs no page for them. */
START_TEST(a_fork_has_room_for_the_near_peaks_of_its_last_page)
{
    api_open(32, with_near_peaks);
    kvk_seq parent = api_seq(), child;
    set_policy(parent, "keep:recent_share=0");
    ck_assert_int_eq(kvk_reserve(cache, parent, 32, KVK_RECLAIM), 8);
    ck_assert_int_ge(end_with_masses(api_plan(parent, 32), 8, 8), 0);
    ck_assert_int_eq(kvk_reserve(cache, parent, 1, KVK_RECLAIM), 1);
    ck_assert_int_ge(end_with_masses(api_plan(parent, 1), 8, 0), 0);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
    ck_assert_int_ge(kvk_seq_close(cache, parent), 0);
    ck_assert_int_eq(kvk_reserve(cache, child, 1, KVK_RECLAIM), 0);
    ck_assert_int_ge(end_with_masses(api_plan(child, 1), 8, 2), 0);
    api_close();
}
END_TEST

/* Each child is its parent's equal, and takes the place of one before it: what the first few need is all that is ever
 * needed. One of the places begins with less room, so that it has to grow. */
START_TEST(forks_of_forks_need_no_more_memory_than_the_first)
{
    api_open(32, NULL);
    kvk_seq parent = api_text(0, 60), smaller = api_text(64, 40), child;
    set_policy(parent, "h2o:recent=8");
    set_policy(smaller, "h2o:recent=8");
    ck_assert_int_ge(kvk_seq_close(cache, smaller), 0);
    uint64_t before = 0;
    for (int i = 0; i < 40; i++) {
        ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
        ck_assert_int_ge(kvk_seq_close(cache, parent), 0);
        parent = child;
        before = i == 4 ? api_stats().memory_bytes : before;
    }
    ck_assert_uint_eq(api_stats().memory_bytes, before);
    api_close();
}
END_TEST

/* Neither a reservation nor a view of it needs a page of the table to be there. */
START_TEST(an_empty_table_has_nothing_to_rank)
{
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    api_open(32, NULL);
    for (int i = 0; kvk_policy_at((uint32_t)i); i++) {
        kvk_seq seq = api_seq();
        kvk_policy_defaults(kvk_policy_at((uint32_t)i), &settings.choice);
        settings.target = kvk_policy_at((uint32_t)i)->score_is_mass ? 0.5f : 0;
        ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &settings), 0);
        ck_assert_int_eq(kvk_can_reserve(cache, seq, 8, KVK_EVICT), KVK_OK);
        ck_assert_int_eq(kvk_reserve(cache, seq, 8, KVK_EVICT), 2);
        ck_assert_int_eq(kvk_seq_scores(cache, seq, 0, NULL, 0), 0);
    }
    api_close();
}
END_TEST

/* Positions 8 to 11 are an older batch's drafts, which may yet be rejected when those after them are taken in. */
START_TEST(drafts_do_not_evict_what_an_older_batch_may_take_back)
{
    float mean[8 * 5];
    uint32_t positions[API_MAX];
    const uint32_t rows = 8, accepted = 1;
    for (int i = 0; i < 8 * 5; i++)
        mean[i] = i % 5 == 2 ? 0 : 0.2f; /* page 2 is the lightest */
    const kvk_masses masses = {.size = sizeof masses, .mean = mean, .stride = 8 * 5, .rows = &rows};
    const kvk_batch_result heavy = {.size = sizeof heavy, .n = 1, .masses = &masses};
    const kvk_batch_result rejected = {.size = sizeof rejected, .n = 1, .accepted = &accepted};
    api_open(32, NULL);
    kvk_seq seq = api_text(0, 8);
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.budget = 16;
    ck_assert_int_eq(kvk_policy_parse("h2o:sinks=0:recent=0", NULL, &settings.choice, NULL, 0), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &settings), 0);
    ck_assert_int_ge(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 0);
    kvk_batch older = api_plan(seq, 4), later = api_plan(seq, 8);
    ck_assert_int_ge(kvk_batch_end(cache, later, &heavy), 0);
    ck_assert_int_ge(kvk_batch_end(cache, older, &rejected), 0);
    ck_assert_uint_eq(api_info(seq).n_tokens, 9);
    int n = kvk_seq_positions(cache, seq, 0, positions, API_MAX);
    ck_assert_int_ge(n, 2);
    int holds_its_last = 0;
    for (int i = 0; i < n; i++)
        holds_its_last |= positions[i] == 8;
    ck_assert(holds_its_last);
    api_close();
}
END_TEST

/* A page that is given up by its own sequence's budget counts for the reserve of pages as ever: with it the other two
 * are reserved, and another sequence's page goes before them. */
START_TEST(pressure_ranks_a_table_as_it_is_before_its_trim)
{
    const float mean[] = {0.2f, 0.5f, 0.3f}, peak[] = {0.5f, 0.9f, 0.1f};
    const kvk_masses masses = {.size = sizeof masses, .mean = mean, .peak = peak, .stride = 3};
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .masses = &masses};
    uint32_t positions[4];
    api_open(5, NULL);
    kvk_seq seq = api_seq(), other = api_seq();
    set_policy(other, "h2o:sinks=0:recent=0");
    ck_assert_int_eq(kvk_reserve(cache, other, 8, KVK_RECLAIM), 2);
    ck_assert_int_ge(end_with_masses(api_plan(other, 8), 2, 0), 0);
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.budget = 12;
    ck_assert_int_eq(kvk_policy_parse("keep:sinks=0:recent_share=0:half_life=0:reserve=0.5:importance=2", NULL,
                                      &settings.choice, NULL, 0),
                     0);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &settings), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 3);
    ck_assert_int_ge(kvk_batch_end(cache, api_plan(seq, 12), &result), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 8, KVK_EVICT), 2);
    ck_assert_int_eq(kvk_seq_positions(cache, seq, 0, positions, 4), 4);
    ck_assert_uint_eq(positions[0], 0);
    ck_assert_uint_eq(positions[1], 4);
    ck_assert_int_eq(kvk_seq_positions(cache, other, 0, positions, 4), 1);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("evict_room", pages_attached_bring_their_near_peaks_into_room_of_their_own,
                     a_fork_has_room_for_the_near_peaks_of_its_last_page,
                     forks_of_forks_need_no_more_memory_than_the_first, an_empty_table_has_nothing_to_rank,
                     drafts_do_not_evict_what_an_older_batch_may_take_back,
                     pressure_ranks_a_table_as_it_is_before_its_trim);
}
