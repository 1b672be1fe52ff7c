/* H2O by its definition: the paper's, and the two pools. */
#include "policy_view.h"
#include "run_tests.h"

#include <string.h>

START_TEST(the_lowest_sum_goes)
{
    static const float one[] = {0.4f, 0.3f, 0.2f, 0.1f}, two[] = {0.1f, 0, 0.4f, 0.5f}, chunk[] = {0, 4, 0, 0};
    small_table t;
    small_open(&t, "h2o", 16, 4);
    small_observe(&t, 62, 1, one, NULL);
    small_expect(&t, 1, "3");
    small_observe(&t, 63, 1, two, NULL); /* 0.5 0.3 0.6 0.6 */
    small_expect(&t, 1, "1");
    small_observe(&t, 64, 4, chunk, NULL); /* a chunk is the sum over its queries */
    small_expect(&t, 1, "0");
    small_expect(&t, 2, "0 2");
    ck_assert_uint_eq(t.choice.policy->needs(t.choice.knobs, 1), KVK_NEED_MEAN);
    ck_assert_uint_eq(t.choice.policy->score_is_mass, 1);
}
END_TEST

START_TEST(only_the_two_pools_are_asked_at_each_page)
{
    small_table t;
    small_open(&t, "h2o", 16, 0);
    ck_assert_uint_eq(t.choice.policy->needs(t.choice.knobs, 1), KVK_NEED_MEAN);
    small_open(&t, "h2o-lowest", 16, 0);
    ck_assert_uint_eq(t.choice.policy->needs(t.choice.knobs, 1), KVK_NEED_MEAN | KVK_NEED_ASK);
}
END_TEST

/* Pages of one token: one sink, a recent pool of 2, the page that is written, so a heavy pool of 8 - 4 = 4. */
static void open_pools(small_table *t, const char *policy)
{
    small_open(t, policy, 1, 0);
    t->view.budget = 8;
}

/* Adds a page that gets `mass` at once, and asks. */
static void add_and_expect(small_table *t, uint32_t number, float mass, const char *gone)
{
    float masses[SMALL] = {0};
    small_add(t, number);
    t->eligible[t->view.n - 1] = number >= 1;
    masses[t->view.n - 1] = mass;
    small_observe(t, number, 1, masses, NULL);
    small_expect(t, 0, gone);
    for (uint32_t i = t->n_victims; i-- > 0;)
        small_remove(t, t->victims[i]);
}

START_TEST(the_lowest_of_the_recent_pool_enters_the_heavy_one)
{
    small_table t;
    open_pools(&t, "h2o:exit=1:sinks=1:recent=2:threshold=0.5");
    add_and_expect(&t, 0, 9, ""); /* the sink */
    add_and_expect(&t, 1, 3, "");
    add_and_expect(&t, 2, 5, "");
    add_and_expect(&t, 3, 4, "");      /* recent 1 2 3: 1 leaves and is heavy */
    add_and_expect(&t, 4, 0.25f, "4"); /* 4 leaves at once, and is not above the threshold */
    add_and_expect(&t, 5, 0.5f, "5");  /* nor is what equals it */
    add_and_expect(&t, 6, 1, "");      /* 6 leaves at once and is heavy */
    add_and_expect(&t, 7, 8, "");      /* recent 2 3 7: 3 is heavy */
    add_and_expect(&t, 8, 8, "");      /* recent 2 7 8: 2 is heavy; heavy 1 2 3 6 */
    add_and_expect(&t, 9, 8, "6");     /* recent 7 8 9: the first of equals is heavy, and 6 the lowest there */
    add_and_expect(&t, 10, 2, "10");   /* leaves at once, above the threshold, the lowest of the heavy */
    ck_assert_uint_eq(t.view.n, 7);    /* with the sink: room for the page that is written */
    small_expect(&t, 2, "1 3");        /* more than leaves the pools: the lowest heavy ones */
    small_expect(&t, 5, "1 2 3 7 8");  /* then recent ones */
    ck_assert_uint_eq(small_tier(&t, 1), 0);
    ck_assert_uint_eq(small_tier(&t, 6), 1);
}
END_TEST

START_TEST(sums_grow_in_both_pools)
{
    small_table t;
    open_pools(&t, "h2o:exit=1:sinks=1:recent=2");
    for (uint32_t i = 0; i < 8; i++) /* heavy 1 2 3 4 5, recent 6 7 would be five: the lowest heavy goes */
        add_and_expect(&t, i, (float)(10 + i), i == 7 ? "1" : "");
    float masses[SMALL] = {0, 0, 0, 0, 0, 1, 9}; /* table 0 2 3 4 5 6 7 */
    masses[1] = 7;                               /* page 2 has 19 now, page 6 17 and page 7 26 */
    small_observe(&t, 8, 1, masses, NULL);
    add_and_expect(&t, 8, 20, "3"); /* recent 6 7 8: 6 becomes heavy; of 2 3 4 5 6 the lowest is 3 with 13 */
}
END_TEST

/* A chunk fills several pages at once: they enter one after the other, by position. */
START_TEST(pages_that_come_together_enter_in_order)
{
    static const float masses[] = {9, 1, 2, 3, 4, 5, 6, 7, 8};
    small_table t;
    open_pools(&t, "h2o:exit=1:sinks=1:recent=2:threshold=2.5");
    for (uint32_t i = 0; i < 9; i++)
        small_add(&t, i);
    t.eligible[0] = 0;
    small_observe(&t, 0, 9, masses, NULL);
    /* 1 and 2 are not above the threshold; 3 4 5 6 are heavy, 7 8 recent */
    small_expect(&t, 0, "1 2");
}
END_TEST

START_TEST(pages_that_may_not_go_enter_no_pool)
{
    static const float masses[] = {1, 1, 1, 1, 1};
    small_table t;
    open_pools(&t, "h2o:exit=1:sinks=0:recent=2:threshold=5");
    for (uint32_t i = 0; i < 5; i++)
        small_add(&t, i);
    small_observe(&t, 0, 5, masses, NULL);
    t.eligible[0] = t.eligible[4] = 0; /* pinned; in a batch in flight */
    small_expect(&t, 0, "1");          /* of 1 2 3 */
    small_remove(&t, 1);
    t.eligible[0] = t.eligible[3] = 1;
    small_expect(&t, 0, "0 2"); /* 0 enters and leaves at once, the first of three; then 4 comes, and 2 leaves */
}
END_TEST

/* A small budget caps the recent pool at its half: of 4 tokens 2. */
START_TEST(pools_fit_into_a_small_budget)
{
    static const float masses[] = {5, 4, 3, 2, 1};
    small_table t;
    small_open(&t, "h2o:exit=1:sinks=0", 1, 5);
    t.view.budget = 4;
    small_observe(&t, 0, 5, masses, NULL);
    /* recent 0 1, heavy 4 - 2 - 1 = 1. 2 leaves: heavy. 3 leaves, enters, is lower: goes. 4 the same. */
    small_expect(&t, 0, "3 4");
    small_open(&t, "h2o:exit=1", 16, 5);
    t.view.budget = 16; /* less than what is out of reach: no heavy pool, no recent one */
    t.eligible[0] = 0;
    small_observe(&t, 0, 80, masses, NULL);
    small_expect(&t, 0, "1 2 3 4");
}
END_TEST

START_TEST(without_a_budget_the_pools_have_no_end)
{
    static const float masses[] = {4, 3, 2, 1};
    small_table t;
    small_open(&t, "h2o-lowest", 16, 4);
    small_observe(&t, 0, 64, masses, NULL);
    small_expect(&t, 0, "");
    small_expect(&t, 1, "3");
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("h2o");
    tcase_add_test(c, the_lowest_sum_goes);
    tcase_add_test(c, only_the_two_pools_are_asked_at_each_page);
    tcase_add_test(c, the_lowest_of_the_recent_pool_enters_the_heavy_one);
    tcase_add_test(c, sums_grow_in_both_pools);
    tcase_add_test(c, pages_that_come_together_enter_in_order);
    tcase_add_test(c, pages_that_may_not_go_enter_no_pool);
    tcase_add_test(c, pools_fit_into_a_small_budget);
    tcase_add_test(c, without_a_budget_the_pools_have_no_end);
    return run_tests("policy h2o", c);
}
