/* Whether heads would have kept a key: a reserve played over peaks that are made up. */
#include "kvkeep/eval/needle_peaks.h"
#include "run_tests.h"

#include <string.h>

enum { HEADS = 6, PAGES = 20, KEY = 7, FAR = 100 };

static float peaks[PAGES][HEADS];

/* Every page matters a little, later ones more; what else stands out is the tests'. */
static needle_peaks usual(void)
{
    for (uint32_t p = 0; p < PAGES; p++)
        for (uint32_t h = 0; h < HEADS; h++)
            peaks[p][h] = 1 + 0.01F * (float)p;
    return (needle_peaks){&peaks[0][0], PAGES, HEADS, KEY, KEY};
}

static int kept_by(const needle_peaks *p, needle_reserve r, uint32_t n, uint32_t first, uint32_t second)
{
    return needle_peaks_kept(p, &r, (const uint32_t[]){first, second}, n);
}

/* How safe it is by the mean of some heads. */
static double safety_by(const needle_peaks *p, needle_reserve r, uint32_t n, uint32_t first, uint32_t second)
{
    float alone[HEADS][PAGES], sum[PAGES];
    needle_peaks_weigh(p, r.damping, &alone[0][0]);
    for (uint32_t i = 0; i < PAGES; i++)
        sum[i] = alone[first][i] + (n > 1 ? alone[second][i] : 0);
    return needle_peaks_safety(p, &r, sum);
}

/* ---- Page after page -------------------------------------------------------------------------------------------- */

START_TEST(a_key_is_kept_by_heads_one_of_which_sees_it)
{
    const needle_reserve r = {.holds = 3, .recent = 2};
    needle_peaks p = usual();
    peaks[KEY][4] = FAR;
    for (uint32_t h = 0; h < HEADS; h++) {
        ck_assert_int_eq(kept_by(&p, r, 1, h, h), h == 4);
        ck_assert_int_eq(kept_by(&p, r, 2, h, 4), 1);
    }
}
END_TEST

START_TEST(a_key_that_nothing_shows_goes_and_a_late_one_is_recent)
{
    const needle_reserve r = {.holds = 3, .recent = 2};
    needle_peaks p = usual();
    ck_assert_int_eq(kept_by(&p, r, 2, 0, 1), 0);
    p.key_first = p.key_last = PAGES - 2;
    ck_assert_int_eq(kept_by(&p, r, 2, 0, 1), 1);
    ck_assert_double_eq(safety_by(&p, r, 2, 0, 1), 1);
}
END_TEST

START_TEST(a_reserve_holds_so_many_pages)
{
    needle_peaks p = usual();
    for (uint32_t i = 1; i <= 5; i++)
        peaks[2 * i + 1][0] = FAR - (float)i; /* pages 3, 5, 7 the third highest */
    ck_assert_int_eq(kept_by(&p, (needle_reserve){.holds = 2, .recent = 1}, 1, 0, 0), 0);
    ck_assert_int_eq(kept_by(&p, (needle_reserve){.holds = 3, .recent = 1}, 1, 0, 0), 1);
}
END_TEST

/* The second page of a key that lies on two shows nothing itself. */
START_TEST(with_spread_a_page_is_kept_for_its_neighbour)
{
    needle_peaks p = usual();
    p.key_last = KEY + 1;
    peaks[KEY][0] = FAR;
    ck_assert_int_eq(kept_by(&p, (needle_reserve){.holds = 4, .recent = 2}, 1, 0, 0), 0);
    ck_assert_int_eq(kept_by(&p, (needle_reserve){.spread = 0.25, .holds = 4, .recent = 2}, 1, 0, 0), 1);
}
END_TEST

START_TEST(damping_is_against_early_pages)
{
    needle_peaks p = usual();
    p.key_first = p.key_last = 1;
    peaks[9][0] = peaks[12][0] = 5;
    peaks[1][0] = 6;
    ck_assert_int_eq(kept_by(&p, (needle_reserve){.holds = 2, .recent = 1}, 1, 0, 0), 1);
    ck_assert_int_eq(kept_by(&p, (needle_reserve){.damping = 8, .holds = 2, .recent = 1}, 1, 0, 0), 0);
}
END_TEST

/* ---- At the text's end ------------------------------------------------------------------------------------------ */

/* The bar is the third of pages 1 .. 17 other than the key: of 5, 4 and 3 the 3, so r is 6 / 3. */
START_TEST(safety_is_by_how_much_the_key_stands_above_the_bar)
{
    const needle_reserve r = {.holds = 3, .recent = 2};
    float importance[PAGES] = {[0] = 99, [2] = 4, [4] = 5, [KEY] = 6, [9] = 3, [11] = 1, [18] = 99, [19] = 99};
    needle_peaks p = usual();
    ck_assert_double_eq_tol(needle_peaks_safety(&p, &r, importance), 16.0 / 17, 1e-12);
    importance[KEY] = 3;
    ck_assert_double_eq_tol(needle_peaks_safety(&p, &r, importance), 0.5, 1e-12);
    importance[KEY] = 1.5;
    ck_assert_double_eq_tol(needle_peaks_safety(&p, &r, importance), 1.0 / 17, 1e-12);
}
END_TEST

/* With two pages of the key there is room for one of the others: the bar is 4, and the key's lower page counts. */
START_TEST(a_key_on_two_pages_needs_room_for_both)
{
    const needle_reserve r = {.holds = 3, .recent = 2};
    float importance[PAGES] = {[2] = 4, [4] = 5, [KEY] = 90, [KEY + 1] = 8, [10] = 3};
    needle_peaks p = usual();
    p.key_last = KEY + 1;
    ck_assert_double_eq_tol(needle_peaks_safety(&p, &r, importance), 16.0 / 17, 1e-12);
}
END_TEST

/* Page 8, the key's, has half of what page 7 has; so has page 6, which is the bar where two may stay. */
START_TEST(safety_counts_what_neighbours_lend)
{
    const needle_reserve r = {.spread = 0.5, .holds = 2, .recent = 2};
    float importance[PAGES] = {[KEY] = 6};
    needle_peaks p = usual();
    p.key_first = p.key_last = KEY + 1;
    ck_assert_double_eq_tol(needle_peaks_safety(&p, &r, importance), 0.5, 1e-12); /* 3 against 3 */
    ck_assert_double_gt(needle_peaks_safety(&p, &(needle_reserve){.spread = 0.5, .holds = 3, .recent = 2}, importance),
                        0.99);
}
END_TEST

START_TEST(where_all_pages_stay_the_key_is_safe)
{
    needle_peaks p = usual();
    ck_assert_double_eq(safety_by(&p, (needle_reserve){.holds = PAGES, .recent = 2}, 1, 0, 0), 1);
    ck_assert_double_eq(safety_by(&p, (needle_reserve){.holds = 1, .recent = PAGES}, 1, 0, 0), 1);
}
END_TEST

/* A head's peaks are divided by their mean: heads of any size count alike. */
START_TEST(heads_count_alike)
{
    const needle_reserve r = {.holds = 3, .recent = 2};
    needle_peaks p = usual();
    double plain = safety_by(&p, r, 2, 0, 1);
    for (uint32_t i = 0; i < PAGES; i++)
        peaks[i][1] *= 1000;
    ck_assert_double_eq_tol(safety_by(&p, r, 2, 0, 1), plain, 1e-6);
    peaks[KEY][0] = 10; /* and 1 by the other: about 5 times the others' mean */
    ck_assert_double_gt(safety_by(&p, r, 2, 0, 1), 0.9);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("needle peaks");
    tcase_add_test(t, a_key_is_kept_by_heads_one_of_which_sees_it);
    tcase_add_test(t, a_key_that_nothing_shows_goes_and_a_late_one_is_recent);
    tcase_add_test(t, a_reserve_holds_so_many_pages);
    tcase_add_test(t, with_spread_a_page_is_kept_for_its_neighbour);
    tcase_add_test(t, damping_is_against_early_pages);
    tcase_add_test(t, safety_is_by_how_much_the_key_stands_above_the_bar);
    tcase_add_test(t, a_key_on_two_pages_needs_room_for_both);
    tcase_add_test(t, safety_counts_what_neighbours_lend);
    tcase_add_test(t, where_all_pages_stay_the_key_is_safe);
    tcase_add_test(t, heads_count_alike);
    return run_tests("needle peaks", t);
}
