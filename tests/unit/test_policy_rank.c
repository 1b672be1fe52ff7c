/* What each policy keeps, on tables small enough to be reckoned by hand. keep has a file of its own. */
#include "policy_view.h"
#include "run_tests.h"

#include <string.h>

static kvk_protection protection(const char *text, uint32_t budget, uint32_t page_tokens)
{
    small_table t;
    small_open(&t, text, page_tokens, 0);
    return t.choice.policy->protect(t.choice.knobs, budget, page_tokens);
}

static uint32_t own_budget(const char *text)
{
    small_table t;
    small_open(&t, text, 16, 0);
    return t.choice.policy->budget ? t.choice.policy->budget(t.choice.knobs) : 0;
}

static uint32_t needs(const char *text)
{
    small_table t;
    small_open(&t, text, 16, 0);
    return t.choice.policy->needs(t.choice.knobs, 0);
}

START_TEST(full_never_evicts)
{
    small_table t;
    small_open(&t, "full", 16, 5);
    small_expect(&t, 5, "");
    ck_assert(t.choice.policy->rank == NULL);
    ck_assert_uint_eq(needs("full"), 0);
}
END_TEST

START_TEST(window_and_streaming_let_the_oldest_go)
{
    static const char *const names[] = {"window", "streaming"};
    for (int i = 0; i < 2; i++) {
        small_table t;
        small_open(&t, names[i], 16, 6);
        t.eligible[0] = 0;
        small_expect(&t, 2, "1 2");
        small_remove(&t, 1);
        small_expect(&t, 2, "2 3");
        ck_assert_uint_eq(needs(names[i]), 0);
    }
}
END_TEST

START_TEST(budgets_follow_from_the_knobs)
{
    ck_assert_uint_eq(own_budget("full"), 0);
    ck_assert_uint_eq(own_budget("lru"), 0);
    ck_assert_uint_eq(own_budget("keep"), 0);
    ck_assert_uint_eq(own_budget("window-1024"), 1024);
    ck_assert_uint_eq(own_budget("window:tokens=77"), 77);
    ck_assert_uint_eq(own_budget("streaming-4-1020"), 1024);
    ck_assert_uint_eq(own_budget("h2o-4-512-512"), 1028);
    ck_assert_uint_eq(own_budget("h2o:sinks=1000000000:heavy=1000000000:recent=1000000000"), 3000000000u);
}
END_TEST

/* Half of 100 tokens is 50: three whole pages of 16. */
START_TEST(recent_tokens_are_at_most_half_the_budget)
{
    static const char *const names[] = {"h2o", "random"};
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(protection(names[i], 0, 16).recent, 512);
        ck_assert_uint_eq(protection(names[i], 1024, 16).recent, 512);
        ck_assert_uint_eq(protection(names[i], 1023, 16).recent, 496);
        ck_assert_uint_eq(protection(names[i], 100, 16).recent, 48);
        ck_assert_uint_eq(protection(names[i], 100, 1).recent, 50);
        ck_assert_uint_eq(protection(names[i], 31, 16).recent, 0);
        ck_assert_uint_eq(protection(names[i], 100, 16).sinks, 4);
    }
    ck_assert_uint_eq(protection("snapkv", 100, 16).recent, 32);
    ck_assert_uint_eq(protection("scissorhands", 100, 16).recent, 10);
    ck_assert_uint_eq(protection("scissorhands:recent=100:sinks=7", 100, 16).recent, 48);
    ck_assert_uint_eq(protection("scissorhands:recent=100:sinks=7", 100, 16).sinks, 7);
    ck_assert_uint_eq(protection("streaming", 100, 16).recent, 0);
    ck_assert_uint_eq(protection("streaming", 100, 16).sinks, 4);
    ck_assert_uint_eq(protection("h2o-lowest", 100, 16).recent, 0);
    ck_assert_uint_eq(protection("h2o-lowest", 100, 16).sinks, 4);
    ck_assert_uint_eq(protection("lru", 100, 16).sinks, 0);
}
END_TEST

/* Four pages of 16: the even share of each is a quarter. */
START_TEST(lru_lets_go_what_was_used_longest_ago)
{
    static const float first[] = {0.3f, 0.3f, 0.2f, 0.2f}, second[] = {0.9f, 0, 0.1f, 0},
                       even[] = {.25f, .25f, .25f, .25f}, chunk[] = {0.4f, 0.4f, 0.4f, 0.8f};
    small_table t;
    small_open(&t, "lru", 16, 4);
    small_observe(&t, 64, 1, first, NULL);
    small_observe(&t, 65, 1, second, NULL);
    small_observe(&t, 66, 1, even, NULL);
    ck_assert(small_score(&t, 0) == 66);
    ck_assert(small_score(&t, 1) == 65);
    ck_assert(small_score(&t, 2) == 0);
    small_expect(&t, 1, "2");
    small_expect(&t, 3, "1 2 3");
    small_observe(&t, 67, 2, chunk, NULL); /* a quarter of two queries' mass is 0.5 */
    ck_assert(small_score(&t, 3) == 69);
    small_expect(&t, 3, "0 1 2");
}
END_TEST

/* 16 + 4 tokens: the shares are 0.8 and 0.2. A place that no token has yet has no share and no mass. */
START_TEST(the_even_share_goes_by_the_tokens_in_a_page)
{
    static const float masses[] = {0.75f, 0.25f, 0};
    small_table t;
    small_open(&t, "lru", 16, 3);
    t.view.n_tokens = 20;
    small_observe(&t, 19, 1, masses, NULL);
    ck_assert(small_score(&t, 0) == 0);
    ck_assert(small_score(&t, 1) == 20);
    ck_assert(small_score(&t, 2) == 0);
}
END_TEST

START_TEST(tova_goes_by_the_last_query)
{
    static const float old[] = {0.9f, 0.05f, 0.05f}, last[] = {0.25f, 0.5f, 0.25f}, chunk[] = {2, 1, 1};
    small_table t;
    small_open(&t, "tova", 16, 3);
    small_observe(&t, 48, 1, old, NULL);
    small_expect(&t, 1, "1");
    small_observe(&t, 49, 1, last, NULL);
    small_expect(&t, 1, "0");
    ck_assert(small_score(&t, 1) == 0.5f);
    small_observe(&t, 50, 4, chunk, NULL);
    ck_assert(small_score(&t, 0) == 0.5f);
    ck_assert(t.choice.policy->protect == NULL);
}
END_TEST

/* The prompt has 64 tokens, its last 8 queries vote: 56 to 63. */
START_TEST(snapkv_counts_the_last_queries_of_the_prompt)
{
    static const float before[] = {9, 0, 0, 0}, across[] = {0, 2, 1, 1}, within[] = {0, 1, 2, 1},
                       after[] = {0, 0, 0, 9};
    small_table t;
    small_open(&t, "snapkv:window=8", 16, 4);
    t.view.n_prompt = 64;
    small_observe(&t, 40, 16, before, NULL);
    small_observe(&t, 52, 8, across, NULL); /* one observation: all of it or nothing */
    small_observe(&t, 60, 4, within, NULL);
    small_observe(&t, 64, 1, after, NULL);
    static const float votes[] = {0, 3, 3, 2};
    for (uint32_t i = 0; i < 4; i++)
        ck_assert(small_score(&t, i) == votes[i]);
    small_expect(&t, 3, "0 1 3");
}
END_TEST

START_TEST(snapkv_counts_all_queries_of_a_prompt_it_does_not_know)
{
    static const float one[] = {1, 2, 4}, two[] = {4, 2, 2};
    small_table t;
    small_open(&t, "snapkv", 16, 3);
    small_observe(&t, 0, 32, one, NULL);
    small_observe(&t, 32, 16, two, NULL);
    ck_assert(small_score(&t, 0) == 5);
    ck_assert(small_score(&t, 1) == 4);
    ck_assert(small_score(&t, 2) == 6);
}
END_TEST

/* Pages of one token; a kernel of 5 reaches two tokens to each side. Page 3 is gone: distances are of the text. */
START_TEST(snapkv_takes_the_highest_vote_nearby)
{
    static const float votes[] = {1, 0, 0, 0, 7, 2, 0};
    static const float pooled[] = {1, 1, 7, 7, 7, 7};
    small_table t;
    small_open(&t, "snapkv:kernel=5", 1, 7);
    small_observe(&t, 6, 1, votes, NULL);
    small_remove(&t, 3);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_msg(small_score(&t, i) == pooled[i], "%u", i);
    t.view.page_tokens = 2; /* two tokens are one page */
    static const float by_page[] = {1, 1, 0, 7, 7, 2};
    for (uint32_t i = 0; i < 6; i++)
        ck_assert_msg(small_score(&t, i) == by_page[i], "%u", i);
}
END_TEST

START_TEST(random_is_the_same_for_the_same_question_only)
{
    small_table a, b;
    small_open(&a, "random", 16, 24);
    small_open(&b, "random", 16, 24);
    for (uint32_t i = 0; i < 24; i++) {
        ck_assert(small_score(&a, i) == small_score(&b, i));
        ck_assert(small_score(&a, i) >= 0 && small_score(&a, i) < 1);
    }
    int differ[4] = {0};
    small_open(&b, "random:seed=2", 16, 24);
    for (uint32_t i = 0; i < 24; i++)
        differ[0] += small_score(&a, i) != small_score(&b, i);
    small_open(&b, "random", 16, 24);
    b.view.group = 1;
    for (uint32_t i = 0; i < 24; i++)
        differ[1] += small_score(&a, i) != small_score(&b, i);
    b.view.group = 0;
    b.view.n_tokens++;
    for (uint32_t i = 0; i < 24; i++)
        differ[2] += small_score(&a, i) != small_score(&b, i);
    b.view.n_tokens--;
    small_remove(&b, 0); /* a page keeps its score wherever it stands in the table */
    for (uint32_t i = 0; i < 23; i++)
        differ[3] += small_score(&a, i + 1) != small_score(&b, i);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ge(differ[i], 23);
    ck_assert_int_eq(differ[3], 0);
}
END_TEST

/* 24 pages, 4,000 questions: each page is lowest 167 times on average, with a deviation of 12.6. */
START_TEST(random_takes_all_pages_alike)
{
    int taken[24] = {0};
    small_table t;
    small_open(&t, "random", 16, 24);
    for (uint32_t i = 0; i < 4000; i++) {
        t.view.n_tokens = 1000 + 16 * i;
        small_choose(&t, 1);
        taken[t.victims[0]]++;
    }
    for (int i = 0; i < 24; i++)
        ck_assert_msg(taken[i] > 104 && taken[i] < 230, "page %d %d times", i, taken[i]); /* 5 deviations */
}
END_TEST

/* ---- Scissorhands */

START_TEST(scissorhands_counts_within_its_history)
{
    static const float masses[][3] = {
        {0.8f, 0.1f, 0.1f}, {0.8f, 0.1f, 0.1f}, {0.1f, 0.5f, 0.4f}, {0.1f, 0.5f, 0.4f}, {0.1f, 0.8f, 0.1f}};
    static const float counts[][3] = {{1, 0, 0}, {2, 0, 0}, {2, 1, 1}, {1, 2, 2}, {0, 3, 2}};
    small_table t;
    small_open(&t, "scissorhands:history=3", 16, 3);
    for (uint32_t step = 0; step < 5; step++) {
        small_observe(&t, 48 + step, 1, masses[step], NULL);
        for (uint32_t i = 0; i < 3; i++)
            ck_assert_msg(small_score(&t, i) == counts[step][i], "step %u page %u", step, i);
    }
}
END_TEST

/* Whatever the history's length: a count is that of the last `history` bits written down beside it. */
START_TEST(scissorhands_counts_as_a_list_of_all_observations_does)
{
    static const char *const names[] = {"scissorhands:history=1", "scissorhands:history=33", "scissorhands",
                                        "scissorhands:history=448"};
    static const int lengths[] = {1, 33, 400, 448};
    static uint8_t counted[2000][2];
    uint64_t random = 3;
    for (int k = 0; k < 4; k++) {
        small_table t;
        small_open(&t, names[k], 16, 2);
        for (int step = 0; step < 2000; step++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            float mass = random >> 63 ? 0.75f : 0.25f;
            small_observe(&t, (uint32_t)step, 1, (float[]){mass, 1 - mass}, NULL);
            counted[step][0] = mass > 0.5f;
            counted[step][1] = mass < 0.5f;
            int count[2] = {0};
            for (int i = step; i >= 0 && i > step - lengths[k]; i--)
                for (int page = 0; page < 2; page++)
                    count[page] += counted[i][page];
            for (uint32_t page = 0; page < 2; page++)
                ck_assert(small_score(&t, page) == (float)count[page]);
        }
    }
}
END_TEST

/* Ten pages of budget, all held, and the next token needs one more: of 11 five are left, so six go. */
START_TEST(scissorhands_goes_down_to_half_its_budget)
{
    static const float masses[] = {0, 0.2f, 0, 0.2f, 0, 0.2f, 0, 0.2f, 0, 0.2f};
    small_table t;
    small_open(&t, "scissorhands", 16, 10);
    t.view.budget = 160;
    small_observe(&t, 159, 1, masses, NULL);
    small_expect(&t, 0, "");
    small_expect(&t, 1, "0 1 2 4 6 8"); /* those that never counted, then the first of the rest */
    small_expect(&t, 8, "0 1 2 3 4 5 6 8");
    t.eligible[0] = t.eligible[9] = 0;
    small_expect(&t, 1, "1 2 3 4 6 8");
    t.view.n_tokens--; /* in the middle of a page: ten held, five go */
    small_expect(&t, 1, "1 2 4 6 8");
    t.view.budget = 144; /* nine pages: five are left */
    small_expect(&t, 1, "1 2 4 6 8");
    t.view.budget = 0;
    small_expect(&t, 1, "2");
    memset(t.eligible, 0, sizeof t.eligible);
    t.view.budget = 160;
    small_expect(&t, 1, "");
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("rank");
    tcase_add_test(c, full_never_evicts);
    tcase_add_test(c, window_and_streaming_let_the_oldest_go);
    tcase_add_test(c, budgets_follow_from_the_knobs);
    tcase_add_test(c, recent_tokens_are_at_most_half_the_budget);
    tcase_add_test(c, lru_lets_go_what_was_used_longest_ago);
    tcase_add_test(c, the_even_share_goes_by_the_tokens_in_a_page);
    tcase_add_test(c, tova_goes_by_the_last_query);
    tcase_add_test(c, snapkv_counts_the_last_queries_of_the_prompt);
    tcase_add_test(c, snapkv_counts_all_queries_of_a_prompt_it_does_not_know);
    tcase_add_test(c, snapkv_takes_the_highest_vote_nearby);
    tcase_add_test(c, random_is_the_same_for_the_same_question_only);
    tcase_add_test(c, random_takes_all_pages_alike);
    tcase_add_test(c, scissorhands_counts_within_its_history);
    tcase_add_test(c, scissorhands_counts_as_a_list_of_all_observations_does);
    tcase_add_test(c, scissorhands_goes_down_to_half_its_budget);
    return run_tests("policy rank", c);
}
