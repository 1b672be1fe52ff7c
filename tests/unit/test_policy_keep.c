/* keep by its definition: the decayed mean, and the reserve by peaks and by near peaks. */
#include "policy/near.h"
#include "policy_view.h"
#include "run_tests.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void is_about(float found, double expected)
{
    ck_assert_msg(fabs((double)found - expected) <= 1e-5 * fabs(expected) + 1e-12, "%.9g instead of %.9g",
                  (double)found, expected);
}

static kvk_protection protection(const char *text, uint32_t budget)
{
    small_table t;
    small_open(&t, text, 16, 0);
    return t.choice.policy->protect(t.choice.knobs, budget, 16);
}

static uint32_t needs(const char *text, int has_near)
{
    small_table t;
    small_open(&t, text, 16, 0);
    return t.choice.policy->needs(t.choice.knobs, has_near);
}

START_TEST(the_recent_tokens_are_a_share_of_the_budget)
{
    ck_assert_uint_eq(protection("keep", 0).recent, 512);
    ck_assert_uint_eq(protection("keep", 1024).recent, 512);
    ck_assert_uint_eq(protection("keep", 1023).recent, 496);
    ck_assert_uint_eq(protection("keep", 31).recent, 0);
    ck_assert_uint_eq(protection("keep:recent_share=0.3", 160).recent, 48); /* 0.3 * 160 is a little below 48 */
    ck_assert_uint_eq(protection("keep:recent_share=0.75", 160).recent, 112);
    ck_assert_uint_eq(protection("keep:recent_share=0", 160).recent, 0);
    ck_assert_uint_eq(protection("keep:sinks=8", 160).sinks, 8);
}
END_TEST

START_TEST(only_what_the_reserve_goes_by_is_needed)
{
    ck_assert_uint_eq(needs("keep", 0), KVK_NEED_MEAN | KVK_NEED_PEAK);
    ck_assert_uint_eq(needs("keep", 1), KVK_NEED_MEAN | KVK_NEED_NEAR);
    ck_assert_uint_eq(needs("keep-peak", 1), KVK_NEED_MEAN | KVK_NEED_PEAK);
    ck_assert_uint_eq(needs("keep-near", 1), KVK_NEED_MEAN | KVK_NEED_NEAR);
    ck_assert_uint_eq(needs("keep-near", 0), KVK_NEED_MEAN);
    ck_assert_uint_eq(needs("keep-ema", 1), KVK_NEED_MEAN);
}
END_TEST

/* ---- The decayed mean */

START_TEST(a_mass_counts_half_after_the_half_life)
{
    small_table t;
    small_open(&t, "keep-ema:half_life=1", 16, 2);
    small_observe(&t, 32, 1, (float[]){0.5f, 0.25f}, NULL);
    is_about(small_score(&t, 0), 0.25);
    is_about(small_score(&t, 1), 0.125);
    small_observe(&t, 33, 1, (float[]){0, 0.5f}, NULL);
    is_about(small_score(&t, 0), 0.125);
    is_about(small_score(&t, 1), 0.3125);
    small_observe(&t, 34, 2, (float[]){1, 1}, NULL); /* two queries: a quarter is left, the rest is their mean */
    is_about(small_score(&t, 0), 0.125 / 4 + 0.375);
    is_about(small_score(&t, 1), 0.3125 / 4 + 0.375);
}
END_TEST

START_TEST(a_chunk_of_equal_queries_is_as_good_as_each_alone)
{
    small_table one, all;
    small_open(&one, "keep-ema", 16, 1);
    small_open(&all, "keep-ema", 16, 1);
    for (uint32_t i = 0; i < 100; i++)
        small_observe(&one, 16 + i, 1, (float[]){0.25f}, NULL);
    small_observe(&all, 16, 100, (float[]){25}, NULL);
    double left = pow(0.5, 100.0 / 128);
    is_about(small_score(&one, 0), 0.25 * (1 - left));
    is_about(small_score(&all, 0), 0.25 * (1 - left));
}
END_TEST

START_TEST(without_a_half_life_it_is_the_sum)
{
    small_table t;
    small_open(&t, "keep-sum", 16, 2);
    small_observe(&t, 32, 1, (float[]){0.5f, 0.25f}, NULL);
    small_observe(&t, 33, 8, (float[]){4, 2}, NULL);
    ck_assert(small_score(&t, 0) == 4.5f);
    ck_assert(small_score(&t, 1) == 2.25f);
    small_expect(&t, 1, "1");
}
END_TEST

/* ---- The reserve */

/* Eight pages of budget, all held: a quarter of them is two. */
static void open_peaks(small_table *t, const char *policy)
{
    static const float mean[] = {8, 7, 6, 5, 4, 3, 2, 1}, early[] = {.9f, .1f, .2f, .3f, .3f, .1f, .8f, .1f},
                       late[] = {.1f, .1f, .1f, .1f, .1f, .7f, .1f, .1f};
    small_open(t, policy, 16, 8);
    t->view.budget = 128;
    small_observe(t, 128, 1, mean, early);
    small_observe(t, 129, 1, mean, late);
}

START_TEST(the_pages_with_the_highest_peaks_are_reserved)
{
    small_table t;
    open_peaks(&t, "keep");
    t.eligible[0] = 0; /* highest of all, but out of reach anyway */
    small_expect(&t, 1, "7");
    small_expect(&t, 3, "3 4 7"); /* 5 and 6 are reserved */
    small_expect(&t, 7, "1 2 3 4 5 6 7");
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_uint_eq(small_tier(&t, i), i == 5 || i == 6);
    small_expect(&t, 6, "1 2 3 4 6 7"); /* of the reserved ones the lowest mean goes first */
    open_peaks(&t, "keep-ema");
    small_expect(&t, 3, "5 6 7");
    ck_assert_uint_eq(t.choice.policy->score_is_mass, 1);
}
END_TEST

START_TEST(of_equal_importances_the_first_pages_are_reserved)
{
    static const float ones[] = {1, 1, 1, 1};
    small_table t;
    small_open(&t, "keep:reserve=0.5", 16, 4);
    t.view.budget = 64;
    small_observe(&t, 64, 1, ones, ones);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(small_tier(&t, i), i < 2);
}
END_TEST

static uint32_t reserved(const char *text, uint32_t budget, uint32_t eligible)
{
    small_table t;
    uint32_t n = 0;
    small_open(&t, text, 16, 12);
    t.view.budget = budget;
    for (uint32_t i = eligible; i < 12; i++)
        t.eligible[i] = 0;
    for (uint32_t i = 0; i < 12; i++)
        n += small_tier(&t, i);
    return n;
}

START_TEST(a_share_of_the_budget_is_reserved_and_all_but_one_at_most)
{
    ck_assert_uint_eq(reserved("keep", 160, 12), 3); /* ten pages: 2.5 */
    ck_assert_uint_eq(reserved("keep", 159, 12), 2); /* nine whole pages: 2.25 */
    ck_assert_uint_eq(reserved("keep-8", 160, 12), 1);
    ck_assert_uint_eq(reserved("keep-ema", 160, 12), 0);
    ck_assert_uint_eq(reserved("keep:reserve=1", 160, 12), 10);
    ck_assert_uint_eq(reserved("keep:reserve=1", 160, 5), 4);
    ck_assert_uint_eq(reserved("keep", 160, 1), 0);
    ck_assert_uint_eq(reserved("keep", 160, 0), 0);
    ck_assert_uint_eq(reserved("keep", 0, 12), 3);        /* without a budget of the pages held */
    ck_assert_uint_eq(reserved("keep-near", 160, 12), 0); /* in a cache without near peaks */
}
END_TEST

/* ---- Near peaks */

/* One layer of two heads; head 1 gives ten times as much. Without damping, over pages 1 to 3:
 * means 2 and 20; scaled (1, .5) (1.5, 1) (.5, 1.5); highest 1 1.5 1.5, mean 4/3; importances .75 1.125 1.125. */
START_TEST(near_peaks_are_scaled_by_head)
{
    static const float peaks[][2] = {{100, 100}, {2, 10}, {3, 20}, {1, 30}};
    float found[4];
    const kvk_near near = {peaks[0], 2, 4, 1, 2};
    const near_pages pages = {NULL, 4, found};
    near_importance(&near, 1, 0, &pages);
    is_about(found[0], 50 / (4.0 / 3));
    is_about(found[1], 0.75);
    is_about(found[2], 1.125);
    is_about(found[3], 1.125);
}
END_TEST

/* One head, means equal to one page's: pages 1 and 3 with peaks 5, page 2 unknown. Damping 4 makes them 5 * 2/6 and
 * 5 * 4/8: their mean is 25/12. */
START_TEST(unknown_pages_are_in_no_mean_and_early_ones_are_damped)
{
    static const float peaks[] = {7, 5, 0, 5};
    static const uint32_t table[] = {1, 2, 3, 9};
    float found[4];
    const kvk_near near = {peaks, 1, 4, 1, 1};
    const near_pages pages = {table, 4, found};
    near_importance(&near, 1, 4, &pages);
    is_about(found[0], 5.0 / 3 / (25.0 / 12));
    ck_assert(found[1] == 0);
    is_about(found[2], 2.5 / (25.0 / 12));
    ck_assert(found[3] == 0); /* beyond what is known */
}
END_TEST

enum { PAGES = 20, CHANNELS = 24 };

/* Y[page][layer][head] as the definition writes it. */
static double damped_peak(const kvk_near *near, uint32_t page, uint32_t channel)
{
    return (double)near->peaks[page * near->layers * near->heads + channel] * (page + 1) / (page + 5);
}

static int is_known(const kvk_near *near, uint32_t page)
{
    for (uint32_t j = 0; j < near->layers * near->heads; j++)
        if (near->peaks[page * near->layers * near->heads + j] > 0)
            return 1;
    return 0;
}

static double scaled_peak(const kvk_near *near, uint32_t page, uint32_t channel)
{
    double sum = 0;
    int n = 0;
    for (uint32_t p = 1; p < near->n_pages; p++) {
        sum += damped_peak(near, p, channel);
        n += is_known(near, p);
    }
    return damped_peak(near, page, channel) / fmax(sum / n, 1e-9);
}

static double layer_score(const kvk_near *near, uint32_t page, uint32_t layer)
{
    double best = 0;
    for (uint32_t h = 0; h < near->heads; h++)
        best = fmax(best, scaled_peak(near, page, layer * near->heads + h));
    return best;
}

static double definition(const kvk_near *groups, uint32_t n_groups, uint32_t page)
{
    double sum = 0;
    int layers = 0;
    for (uint32_t g = 0; g < n_groups; g++)
        for (uint32_t l = 0; l < groups[g].layers; l++, layers++) {
            double mean = 0;
            int n = 0;
            for (uint32_t p = 1; p < groups[g].n_pages; p++) {
                mean += layer_score(&groups[g], p, l);
                n += is_known(&groups[g], p);
            }
            sum += page < groups[g].n_pages && mean > 0 ? layer_score(&groups[g], page, l) / (mean / n) : 0;
        }
    return sum / layers;
}

/* Peaks of many sizes; one page is unknown, one head (in one group a whole layer) does nothing. */
static void fill(float *peaks, uint32_t seed)
{
    uint64_t random = seed;
    for (uint32_t i = 0; i < PAGES * CHANNELS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        peaks[i] = (float)(random >> 40) * powf(10, (float)(i % CHANNELS) / 4);
        if (i / CHANNELS == 5 || i % CHANNELS == 3)
            peaks[i] = 0;
    }
}

START_TEST(importance_is_as_defined)
{
    static float peaks[3][PAGES * CHANNELS];
    static const uint32_t shapes[3][2] = {{4, 6}, {24, 1}, {1, 24}};
    kvk_near groups[3];
    float found[PAGES];
    const near_pages pages = {NULL, PAGES, found};
    for (uint32_t g = 0; g < 3; g++) {
        fill(peaks[g], g + 1);
        groups[g] = (kvk_near){peaks[g], (uint64_t)shapes[g][0] * shapes[g][1], PAGES - g, shapes[g][0], shapes[g][1]};
    }
    for (uint32_t n = 1; n <= 3; n++) {
        near_importance(groups, n, 4, &pages);
        for (uint32_t p = 0; p < PAGES; p++)
            is_about(found[p], definition(groups, n, p));
    }
}
END_TEST

START_TEST(no_peaks_are_too_large_few_or_many)
{
    static float peaks[4097 * 3];
    float found[3];
    near_pages pages = {NULL, 3, found};
    for (int i = 0; i < 6; i++)
        peaks[i] = FLT_MAX;
    const kvk_near bad[] = {{peaks, 2, 3, 1, 2}, {peaks, 4097, 3, 4097, 1}, {peaks, 4097, 3, 1, 4097},
                            {peaks, 0, 3, 0, 0}, {peaks, 8192, 3, 2, 4096}, {peaks, 1, 1, 1, 1},
                            {NULL, 1, 0, 1, 1}};
    small_table t;
    for (int i = 0; i < 7; i++) {
        near_importance(&bad[i], 1, 4, &pages);
        small_open(&t, "keep:layers=0", 16, 3);
        t.view.near = &bad[i];
        t.view.budget = 48;
        small_expect(&t, 3, "0 1 2");
    }
}
END_TEST

/* Two groups that hold different pages: by all layers page 1 matters most, by group 1 alone page 3. */
static const float two_groups[2][4] = {{1, 60, 1, 2}, {1, 1, 1, 2}};
static const kvk_near two_near[2] = {{two_groups[0], 1, 4, 1, 1}, {two_groups[1], 1, 4, 1, 1}};

static void open_near(small_table *t, const char *policy, uint32_t group)
{
    small_open(t, policy, 16, 4);
    t->view.near = two_near;
    t->view.n_groups = 2;
    t->view.group = group;
    t->view.budget = 64;
    t->eligible[0] = 0;
}

static void expect_reserved(const small_table *t, uint32_t page)
{
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(small_tier(t, i), i == page);
}

START_TEST(importance_is_of_all_groups_or_of_its_own)
{
    small_table t;
    for (uint32_t g = 0; g < 2; g++) {
        open_near(&t, "keep:damping=0", g);
        expect_reserved(&t, 1);
        open_near(&t, "keep-near:damping=0", g);
        expect_reserved(&t, 1);
        t.view.shared = NULL;
        expect_reserved(&t, 1);
    }
    open_near(&t, "keep:damping=0:layers=0", 0);
    expect_reserved(&t, 1);
    open_near(&t, "keep:damping=0:layers=0", 1);
    expect_reserved(&t, 3);
}
END_TEST

/* By group 1 alone importances are 1, 1, 2 over their mean for pages 1 to 3. Held are 1 to 3, so page 2 has two
 * neighbours; where it is missing nobody has one. */
START_TEST(neighbours_lend_each_other_importance)
{
    small_table t;
    open_near(&t, "keep:damping=0:layers=0:spread=1", 1); /* 1+1, 1+1+2, 2+1 */
    expect_reserved(&t, 2);
    open_near(&t, "keep:damping=0:layers=0:spread=0.25", 1); /* 1.25, 1.75, 2.25 */
    expect_reserved(&t, 3);
    open_near(&t, "keep:damping=0:layers=0:spread=1", 1);
    t.index[2] = 3;
    t.index[3] = 5;
    expect_reserved(&t, 2); /* which is page 3 now */
}
END_TEST

/* By group 1 alone importances are 3/4, 3/4, 3/2 for pages 1 to 3; the budget reserves one page. */
START_TEST(only_pages_of_some_importance_are_reserved)
{
    small_table t;
    open_near(&t, "keep:damping=0:layers=0:least=1.5", 1);
    expect_reserved(&t, 3);
    open_near(&t, "keep:damping=0:layers=0:least=1.51", 1);
    expect_reserved(&t, 4);                                             /* none */
    open_near(&t, "keep:damping=0:layers=0:least=1.51:spread=0.25", 1); /* 1.5 + 0.75/4 */
    expect_reserved(&t, 3);
}
END_TEST

/* Peaks have no mean to be compared with: what a knob says of near peaks is nothing to them. */
START_TEST(peaks_are_reserved_whatever_their_size)
{
    static const float mean[4] = {0.25F, 0.25F, 0.25F, 0.25F}, peak[4] = {0, 0.1F, 0.3F, 0.2F};
    small_table t;
    small_open(&t, "keep:importance=2:least=100", 16, 4);
    t.view.budget = 64;
    t.eligible[0] = 0;
    small_observe(&t, 63, 1, mean, peak);
    expect_reserved(&t, 2);
}
END_TEST

/* It is found by the last group's observation of a page's last query, and stands for all groups. */
START_TEST(importance_is_renewed_when_a_page_is_full)
{
    static const float none[4] = {0};
    small_table t;
    open_near(&t, "keep:damping=0", 1);
    small_observe(&t, 60, 1, none, NULL);
    ck_assert(t.shared[1] == 0);
    t.view.group = 0;
    small_observe(&t, 63, 1, none, NULL);
    ck_assert(t.shared[1] == 0);
    t.view.group = 1;
    small_observe(&t, 63, 1, none, NULL);
    /* means of pages 1 to 3: 21 and 4/3 */
    is_about(t.shared[1], (60 / 21.0 + 0.75) / 2);
    is_about(t.shared[2], (1 / 21.0 + 0.75) / 2);
    is_about(t.shared[3], (2 / 21.0 + 1.5) / 2);
    t.shared[2] = 99; /* what stands there is believed */
    expect_reserved(&t, 2);
    t.view.group = 0;
    expect_reserved(&t, 2);
    t.shared[3] = 0; /* a page that has just begun */
    expect_reserved(&t, 2);
    t.shared[2] = 0; /* nothing of the last two pages: found anew */
    expect_reserved(&t, 1);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("keep");
    tcase_add_test(c, the_recent_tokens_are_a_share_of_the_budget);
    tcase_add_test(c, only_what_the_reserve_goes_by_is_needed);
    tcase_add_test(c, a_mass_counts_half_after_the_half_life);
    tcase_add_test(c, a_chunk_of_equal_queries_is_as_good_as_each_alone);
    tcase_add_test(c, without_a_half_life_it_is_the_sum);
    tcase_add_test(c, the_pages_with_the_highest_peaks_are_reserved);
    tcase_add_test(c, of_equal_importances_the_first_pages_are_reserved);
    tcase_add_test(c, a_share_of_the_budget_is_reserved_and_all_but_one_at_most);
    tcase_add_test(c, near_peaks_are_scaled_by_head);
    tcase_add_test(c, unknown_pages_are_in_no_mean_and_early_ones_are_damped);
    tcase_add_test(c, importance_is_as_defined);
    tcase_add_test(c, no_peaks_are_too_large_few_or_many);
    tcase_add_test(c, importance_is_of_all_groups_or_of_its_own);
    tcase_add_test(c, neighbours_lend_each_other_importance);
    tcase_add_test(c, only_pages_of_some_importance_are_reserved);
    tcase_add_test(c, peaks_are_reserved_whatever_their_size);
    tcase_add_test(c, importance_is_renewed_when_a_page_is_full);
    return run_tests("policy keep", c);
}
