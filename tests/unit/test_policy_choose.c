/* How the cache asks policies: ties, scores that are no numbers, policies that lie. */
#include "policy_view.h"
#include "run_tests.h"

#include <math.h>
#include <string.h>

/* ---- Policies of the caller: scores[0] is what rank gives, scores[1] the tier */

static uint32_t needs(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return 0;
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    for (uint32_t i = 0; i < view->n; i++) {
        score[i] = view->scores[0][i];
        tier[i] = (uint8_t)view->scores[1][i];
    }
}

/* Says page 2 three times, one that does not exist, and one that may not go. */
static uint32_t lie(const kvk_policy_view *view, uint32_t want, uint32_t *victims)
{
    static const uint32_t answer[] = {2, 2, UINT32_MAX, 0, 2};
    (void)want;
    ck_assert_uint_ge(view->n, 5);
    memcpy(victims, answer, sizeof answer);
    return UINT32_MAX;
}

static uint32_t two_last(const kvk_policy_view *view, uint32_t want, uint32_t *victims)
{
    (void)want;
    victims[0] = view->n - 1;
    victims[1] = view->n - 2;
    return 2;
}

static const kvk_policy plain = {
    .size = sizeof(kvk_policy), .name = "plain", .text = "", .n_scores = 2, .needs = needs, .rank = rank};
static const kvk_policy liar = {
    .size = sizeof(kvk_policy), .name = "liar", .text = "", .n_scores = 2, .needs = needs, .rank = rank, .choose = lie};
static const kvk_policy eager = {.size = sizeof(kvk_policy),
                                 .name = "eager",
                                 .text = "",
                                 .n_scores = 2,
                                 .needs = needs,
                                 .rank = rank,
                                 .choose = two_last};

static void open_with(small_table *t, const kvk_policy *policy, uint32_t n, const float *scores)
{
    small_open(t, "full", 16, n);
    kvk_policy_defaults(policy, &t->choice);
    memcpy(t->scores[0], scores, n * sizeof *scores);
}

START_TEST(the_lowest_go_and_of_equal_ones_the_first)
{
    static const float scores[] = {5, 1, 3, 1, 1, 9};
    small_table t;
    open_with(&t, &plain, 6, scores);
    small_expect(&t, 0, "");
    small_expect(&t, 1, "1");
    small_expect(&t, 2, "1 3");
    small_expect(&t, 4, "1 2 3 4");
    small_expect(&t, 6, "0 1 2 3 4 5");
    small_expect(&t, 100, "0 1 2 3 4 5");
    small_expect(&t, UINT32_MAX, "0 1 2 3 4 5");
}
END_TEST

START_TEST(a_tier_counts_more_than_a_score)
{
    static const float scores[] = {1, 2, 30, 40};
    small_table t;
    open_with(&t, &plain, 4, scores);
    t.scores[1][0] = t.scores[1][1] = 1;
    small_expect(&t, 1, "2");
    small_expect(&t, 3, "0 2 3");
}
END_TEST

START_TEST(what_may_not_go_stays)
{
    static const float scores[] = {0, 1, 2, 3};
    small_table t;
    open_with(&t, &plain, 4, scores);
    t.eligible[0] = t.eligible[2] = 0;
    small_expect(&t, 1, "1");
    small_expect(&t, 4, "1 3");
    memset(t.eligible, 0, sizeof t.eligible);
    small_expect(&t, 1, "");
    small_expect(&t, 2, "");
}
END_TEST

START_TEST(a_score_that_is_no_number_is_the_lowest)
{
    static const float scores[] = {-5, NAN, -1e30f, 0, NAN};
    small_table t;
    open_with(&t, &plain, 5, scores);
    small_expect(&t, 1, "1");
    small_expect(&t, 2, "1 4");
    small_expect(&t, 3, "1 2 4");
    ck_assert(small_score(&t, 1) == -INFINITY);
}
END_TEST

START_TEST(an_empty_table_gives_nothing)
{
    small_table t;
    float none = 0;
    open_with(&t, &plain, 0, &none);
    small_expect(&t, 0, "");
    small_expect(&t, 1, "");
    small_expect(&t, 7, "");
}
END_TEST

START_TEST(a_policy_that_never_evicts_gives_nothing)
{
    small_table t;
    small_open(&t, "full", 16, 4);
    small_expect(&t, 3, "");
    ck_assert(small_score(&t, 3) == 0);
    ck_assert_uint_eq(small_tier(&t, 3), 0);
}
END_TEST

START_TEST(a_lying_policy_is_corrected_by_its_rank)
{
    static const float scores[] = {0, 9, 8, 7, 6};
    small_table t;
    open_with(&t, &liar, 5, scores);
    t.eligible[0] = 0;
    small_expect(&t, 0, "2");
    small_expect(&t, 1, "2");
    small_expect(&t, 2, "2 4");
    small_expect(&t, 3, "2 3 4");
}
END_TEST

START_TEST(a_policy_may_name_more_than_is_wanted)
{
    static const float scores[] = {1, 2, 3, 4};
    small_table t;
    open_with(&t, &eager, 4, scores);
    small_expect(&t, 0, "2 3");
    small_expect(&t, 1, "2 3");
    small_expect(&t, 3, "0 2 3");
}
END_TEST

/* ---- Against the definition: the lowest of what is left, again and again */

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static uint32_t lowest_left(const small_table *t, const uint8_t *gone)
{
    uint32_t best = t->view.n;
    for (uint32_t i = 0; i < t->view.n; i++) {
        if (gone[i] || !t->eligible[i])
            continue;
        if (best == t->view.n || t->scores[1][i] < t->scores[1][best] ||
            (t->scores[1][i] == t->scores[1][best] && t->scores[0][i] < t->scores[0][best]))
            best = i;
    }
    return best;
}

START_TEST(any_table_gives_the_lowest_of_what_is_left_again_and_again)
{
    uint64_t random = 5;
    for (int round = 0; round < 3000; round++) {
        small_table t;
        float scores[SMALL];
        uint8_t gone[SMALL] = {0};
        uint32_t n = next_random(&random) % (SMALL + 1), want = next_random(&random) % (SMALL + 1), left = want;
        for (uint32_t i = 0; i < n; i++)
            scores[i] = (float)(next_random(&random) % 6);
        open_with(&t, &plain, n, scores);
        for (uint32_t i = 0; i < n; i++) {
            t.eligible[i] = next_random(&random) % 4 > 0;
            t.scores[1][i] = (float)(next_random(&random) % 2);
        }
        for (uint32_t page; left > 0 && (page = lowest_left(&t, gone)) < n; left--)
            gone[page] = 1;
        small_choose(&t, want);
        ck_assert_uint_eq(t.n_victims, want - left);
        for (uint32_t i = 0; i < t.n_victims; i++) {
            ck_assert_uint_eq(gone[t.victims[i]], 1);
            ck_assert(i == 0 || t.victims[i] > t.victims[i - 1]);
        }
    }
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("choose");
    tcase_add_test(c, the_lowest_go_and_of_equal_ones_the_first);
    tcase_add_test(c, a_tier_counts_more_than_a_score);
    tcase_add_test(c, what_may_not_go_stays);
    tcase_add_test(c, a_score_that_is_no_number_is_the_lowest);
    tcase_add_test(c, an_empty_table_gives_nothing);
    tcase_add_test(c, a_policy_that_never_evicts_gives_nothing);
    tcase_add_test(c, a_lying_policy_is_corrected_by_its_rank);
    tcase_add_test(c, a_policy_may_name_more_than_is_wanted);
    tcase_add_test(c, any_table_gives_the_lowest_of_what_is_left_again_and_again);
    return run_tests("policy choose", c);
}
