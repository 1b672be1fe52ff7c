/* How often a policy is asked: once for each filled page and group, and not at all within the budget. */
#include "../run_tests.h"

#include <kvkeep/eviction.h>

enum { PAGE_TOKENS = 4, GROUPS = 3, BUDGET = 16, TOKENS = 100 };

static uint32_t n_ranked;

static uint32_t needs(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return 0;
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    for (uint32_t i = 0; i < view->n; i++)
        score[i] = (float)i;
    n_ranked++;
}

static const kvk_policy counting = {.size = sizeof(kvk_policy),
                                    .name = "counting",
                                    .text = "counts how often it is asked",
                                    .needs = needs,
                                    .rank = rank};

static kvk_cache *cache;
static kvk_seq seq;

static void open_sequence(void)
{
    kvk_config config;
    kvk_eviction eviction;
    kvk_config_init(&config);
    config.page_tokens = PAGE_TOKENS;
    config.n_groups = GROUPS;
    config.n_pages = 64;
    config.content = KVK_CONTENT_NONE;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &seq), 0);
    kvk_eviction_init(&eviction);
    eviction.budget = BUDGET;
    kvk_policy_defaults(&counting, &eviction.choice);
    ck_assert_int_eq(kvk_seq_set_eviction(cache, seq, &eviction), 0);
    n_ranked = 0;
}

static void decode(uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        kvk_plan plan;
        kvk_batch batch;
        kvk_batch_entry entry = {.seq = seq, .n_query = 1};
        kvk_plan_init(&plan);
        ck_assert_int_ge(kvk_reserve(cache, seq, 1, KVK_RECLAIM), 0);
        ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), 0);
        ck_assert_int_ge(kvk_batch_end(cache, batch, NULL), 0);
    }
}

START_TEST(within_its_budget_nobody_is_asked)
{
    open_sequence();
    decode(BUDGET);
    ck_assert_uint_eq(n_ranked, 0);
    kvk_cache_close(cache);
}
END_TEST

/* Tokens 16, 20, .. 96 each begin a page for which another one goes: 21 times. */
START_TEST(each_filled_page_is_asked_about_once_in_each_group)
{
    open_sequence();
    decode(TOKENS);
    ck_assert_uint_eq(n_ranked, (TOKENS - BUDGET) / PAGE_TOKENS * GROUPS);
    kvk_cache_close(cache);
}
END_TEST

/* Three chunks of 8 pages and 1 token on top of a full budget: asked at each, whatever its length. */
START_TEST(a_chunk_is_asked_about_once)
{
    open_sequence();
    decode(BUDGET);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_ge(kvk_reserve(cache, seq, 33, KVK_RECLAIM), 0);
        ck_assert_int_ge(kvk_commit(cache, seq, &(kvk_text){.n_tokens = 33}), 0);
    }
    ck_assert_uint_eq(n_ranked, 3 * GROUPS);
    kvk_cache_close(cache);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("evict_once");
    tcase_add_test(c, within_its_budget_nobody_is_asked);
    tcase_add_test(c, each_filled_page_is_asked_about_once_in_each_group);
    tcase_add_test(c, a_chunk_is_asked_about_once);
    return run_tests("evict_once", c);
}
