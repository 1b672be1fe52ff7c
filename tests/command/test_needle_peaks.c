/* Which layers' near peaks would have kept a key: a reserve played over peaks that are made up. */
#include "kvkeep/needle_peaks.h"
#include "run_tests.h"

#include <string.h>

enum { LAYERS = 3, HEADS = 2, PAGES = 20, KEY = 7, FAR = 100 };

static float peaks[PAGES][LAYERS][HEADS];

/* Every page matters a little, later ones more; what else stands out is the tests'. */
static needle_peaks usual(void)
{
    for (uint32_t p = 0; p < PAGES; p++)
        for (uint32_t l = 0; l < LAYERS; l++)
            for (uint32_t h = 0; h < HEADS; h++)
                peaks[p][l][h] = 1 + 0.01F * (float)p;
    return (needle_peaks){&peaks[0][0][0], PAGES, LAYERS, HEADS, KEY, KEY};
}

static uint32_t kept_by(const needle_peaks *p, const needle_reserve *r, uint32_t first, uint32_t last)
{
    uint32_t kept[LAYERS * LAYERS] = {0};
    ck_assert_int_eq(needle_peaks_count(p, r, kept), 0);
    for (uint32_t a = 0; a < LAYERS; a++)
        for (uint32_t b = 0; b < a; b++)
            ck_assert_uint_eq(kept[a * LAYERS + b], 0); /* no range */
    return kept[first * LAYERS + last];
}

START_TEST(a_key_that_one_layer_sees_is_kept_by_ranges_with_that_layer)
{
    const needle_reserve r = {.holds = 3, .recent = 2};
    needle_peaks p = usual();
    peaks[KEY][1][0] = FAR;
    for (uint32_t first = 0; first < LAYERS; first++)
        for (uint32_t last = first; last < LAYERS; last++)
            ck_assert_uint_eq(kept_by(&p, &r, first, last), first <= 1 && last >= 1);
}
END_TEST

START_TEST(a_key_that_nothing_shows_goes_and_a_late_one_is_recent)
{
    const needle_reserve r = {.holds = 3, .recent = 2};
    needle_peaks p = usual();
    ck_assert_uint_eq(kept_by(&p, &r, 0, 2), 0);
    p.key_first = p.key_last = PAGES - 2;
    ck_assert_uint_eq(kept_by(&p, &r, 0, 2), 1);
}
END_TEST

START_TEST(a_reserve_holds_so_many_pages)
{
    needle_peaks p = usual();
    for (uint32_t i = 1; i <= 5; i++)
        peaks[2 * i + 1][0][0] = FAR - (float)i; /* pages 3, 5, 7 the third highest */
    ck_assert_uint_eq(kept_by(&p, &(needle_reserve){.holds = 2, .recent = 1}, 0, 0), 0);
    ck_assert_uint_eq(kept_by(&p, &(needle_reserve){.holds = 3, .recent = 1}, 0, 0), 1);
}
END_TEST

/* The second page of a key that lies on two shows nothing itself. */
START_TEST(with_spread_a_page_is_kept_for_its_neighbour)
{
    needle_peaks p = usual();
    p.key_last = KEY + 1;
    peaks[KEY][0][0] = FAR;
    ck_assert_uint_eq(kept_by(&p, &(needle_reserve){.holds = 4, .recent = 2}, 0, 0), 0);
    ck_assert_uint_eq(kept_by(&p, &(needle_reserve){.spread = 0.25, .holds = 4, .recent = 2}, 0, 0), 1);
}
END_TEST

START_TEST(damping_is_against_early_pages)
{
    needle_peaks p = usual();
    p.key_first = p.key_last = 1;
    peaks[1][0][0] = peaks[9][0][0] = peaks[12][0][0] = 5;
    peaks[1][0][0] = 6;
    ck_assert_uint_eq(kept_by(&p, &(needle_reserve){.holds = 2, .recent = 1}, 0, 0), 1);
    ck_assert_uint_eq(kept_by(&p, &(needle_reserve){.damping = 8, .holds = 2, .recent = 1}, 0, 0), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("needle peaks");
    tcase_add_test(t, a_key_that_one_layer_sees_is_kept_by_ranges_with_that_layer);
    tcase_add_test(t, a_key_that_nothing_shows_goes_and_a_late_one_is_recent);
    tcase_add_test(t, a_reserve_holds_so_many_pages);
    tcase_add_test(t, with_spread_a_page_is_kept_for_its_neighbour);
    tcase_add_test(t, damping_is_against_early_pages);
    return run_tests("needle peaks", t);
}
