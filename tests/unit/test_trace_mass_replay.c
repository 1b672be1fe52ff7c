/* Evict replay: every figure against hand arithmetic. */
#include "run_tests.h"
#include "trace/replay_evict.h"
#include "unit/mass_memory.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static evict_result run(mass_trace *t, const char *policy, uint32_t budget)
{
    evict_options options = {.budget = budget, .audit = true};
    evict_result result;
    trace_error error = {""};
    char why[256] = "";
    ck_assert_msg(kvk_policy_parse(policy, NULL, &options.choice, why, sizeof why) == 0, "%s", why);
    ck_assert_msg(replay_evict(t, &options, &result, &error) == 0, "%s", error.text);
    return result;
}

static void near_to(double got, double want)
{
    ck_assert_msg(fabs(got - want) < 1e-6, "%.9f instead of %.9f", got, want);
}

/* Six queries over pages of one token. With room for 3, the window drops page 0 at query 3, page 1 at 4, page 2 at 5.
 */
static const float six[] = {
    1,     NAN,    NAN,    NAN,    NAN,   NAN,  /* all held */
    0.5F,  0.5F,   NAN,    NAN,    NAN,   NAN,  /* all held */
    0.25F, 0.25F,  0.5F,   NAN,    NAN,   NAN,  /* all held */
    0.5F,  0.25F,  0.125F, 0.125F, NAN,   NAN,  /* 1, 2, 3: 0.5 */
    0.5F,  0.125F, 0,      0.125F, 0.25F, NAN,  /* 2, 3, 4: 0.375 */
    0.25F, 0,      0.25F,  0,      0.25F, 0.25F /* 3, 4, 5: 0.5 */
};

START_TEST(a_window_by_hand)
{
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, six, NULL);
    evict_result r = run(t, "window", 3);
    near_to(r.active.mean, (0.5 + 0.375 + 0.5) / 3);
    near_to(r.active.p5, 0.375);
    near_to(r.active.min, 0.375);
    near_to(r.all.mean, (3 + 0.5 + 0.375 + 0.5) / 6);
    ck_assert_uint_eq(r.evicted, 3);
    near_to(r.churn_per_1k, 500);
    near_to(r.kept_share, 0.5);
    near_to(r.pages_mean, (1 + 2 + 3 + 3 + 3 + 3) / 6.0);
    ck_assert_uint_eq(r.pages_max, 3);
    ck_assert_uint_eq(r.budget_pages, 3);
    ck_assert(isnan(r.needle_recall) && r.ns_per_step > 0);
    mass_close(t);
}
END_TEST

/* The sink is kept: pages 0, 2, 3; 0, 3, 4; 0, 4, 5. */
START_TEST(sinks_by_hand)
{
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, six, NULL);
    near_to(run(t, "streaming:sinks=1", 3).active.mean, (0.75 + 0.875 + 0.75) / 3);
    evict_result full = run(t, "full", 3);
    near_to(full.active.mean, 1);
    near_to(full.kept_share, 1);
    ck_assert_uint_eq(full.evicted, 0);
    mass_close(t);
}
END_TEST

/* h2o without protection: sums at query 3 are 1.75, 0.75, 0.5: page 2 goes; at 4 they are 2.25, 1.0, -, 0.125: page 3
 * goes; at 5 2.75, 1.125, -, -, 0.25: page 4 goes. Masses of pages that went are not counted, nor shared out. */
START_TEST(heavy_hitters_by_hand)
{
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, six, NULL);
    evict_result r = run(t, "h2o:sinks=0:recent=0", 3);
    near_to(r.active.mean, (0.875 + 0.875 + 0.5) / 3);
    near_to(r.active.min, 0.5);
    mass_close(t);
}
END_TEST

/* The best: page 2 goes at query 3 with 0.375 to come (page 1 has as much, page 0 has 1.25), then of pages 1 and 3 one
 * at query 4 with 0.125 to come and one at query 5 with nothing: 0.5 in all. */
START_TEST(the_bounds_by_hand)
{
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, six, NULL);
    evict_futures futures;
    evict_result r;
    trace_error error = {""};
    ck_assert_int_eq(evict_futures_read(&futures, t, 0, &error), 0);
    ck_assert_int_eq(replay_evict_bound(t, &futures, evict_optimum, 3, &r, &error), 0);
    near_to(r.active.mean, 1 - 0.5 / 3);
    ck_assert_uint_eq(r.evicted, 3);
    ck_assert(isnan(r.ns_per_step));
    evict_futures_close(&futures);
    mass_close(t);
}
END_TEST

/* Pages of 2 tokens in two groups: the border is at query 4, where a budget of 5 tokens is 2 pages. */
START_TEST(groups_and_pages_by_hand)
{
    static const float masses[] = {1,    NAN,   NAN,   1,      NAN,    NAN,   1, NAN,  NAN,  1, NAN, NAN,
                                   1,    0,     NAN,   1,      0,      NAN,   1, 0,    NAN,  1, 0,   NAN,
                                   0.5F, 0.25F, 0.25F, 0.125F, 0.125F, 0.75F, 0, 0.5F, 0.5F, 1, 0,   0};
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 2, .groups = 2, .steps = 6}, masses, NULL);
    evict_result r = run(t, "window", 5);
    near_to(r.active.mean, (0.5 + 0.875 + 1 + 0) / 4);
    near_to(r.active.p5, 0);
    near_to(r.all.mean, (8 + 0.5 + 0.875 + 1 + 0) / 12);
    ck_assert_uint_eq(r.evicted, 2);
    near_to(r.churn_per_1k, 1000 * 2 / 12.0);
    mass_close(t);
}
END_TEST

/* Masses are shares of what a query gives: half of everything makes no difference. */
START_TEST(a_query_that_gives_less_counts_as_much)
{
    float half[36];
    for (int i = 0; i < 36; i++)
        half[i] = six[i] / (i < 24 ? 2 : 4);
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, half, NULL);
    near_to(run(t, "window", 3).active.mean, (0.5 + 0.375 + 0.5) / 3);
    mass_close(t);
}
END_TEST

/* A prompt of 3 tokens of which nothing was seen. */
START_TEST(a_text_that_began_before)
{
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .first = 3, .steps = 3}, six + 18, NULL);
    evict_result r = run(t, "window", 2);
    near_to(r.active.mean, (0.25 + 0.375 + 0.5) / 3);
    ck_assert_uint_eq(r.evicted, 4);
    near_to(r.churn_per_1k, 4000 / 6.0);
    ck_assert_uint_eq(r.pages_max, 2);
    mass_close(t);
}
END_TEST

START_TEST(needles_by_hand)
{
    static const mass_needle needles[] = {{0, 1, 2}, {1, 2, 3}, {1, 2, 4}, {4, 1, 5}, {0, 1, 5}};
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, six, NULL);
    memory_needles(t, needles, 5);
    /* At query 2 all is held; at 3 pages 1, 2, 3; at 4 page 1 is gone; at 5 page 4 is there, page 0 is not. */
    near_to(run(t, "window", 3).needle_recall, 3 / 5.0);
    near_to(run(t, "full", 3).needle_recall, 1);
    mass_close(t);
}
END_TEST

/* With 40 shares the second smallest is the least that 5 % do not exceed. */
START_TEST(the_fifth_percentile)
{
    const mass_shape shape = {.page_tokens = 1, .groups = 1, .steps = 42};
    float *masses = calloc(42 * 42, sizeof *masses);
    ck_assert_ptr_nonnull(masses);
    for (uint32_t q = 0; q < 42; q++)
        for (uint32_t p = 0; p < 42; p++)
            masses[q * 42 + p] = p > q ? NAN : p == q ? (float)q / 64 : p == 0 ? 1 - (float)q / 64 : 0;
    mass_trace *t = memory_trace(shape, masses, NULL);
    evict_result r = run(t, "window", 2); /* page 0 is gone from query 2 on: 2/64, 3/64, ... are kept */
    near_to(r.active.min, 2 / 64.0);
    near_to(r.active.p5, 3 / 64.0);
    near_to(r.all.p5, 4 / 64.0); /* of 42 the third */
    mass_close(t);
    free(masses);
}
END_TEST

START_TEST(a_budget_that_is_never_reached)
{
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, six, NULL);
    evict_result r = run(t, "window", 6);
    ck_assert(isnan(r.active.mean) && isnan(r.active.p5) && isnan(r.active.min));
    near_to(r.all.min, 1);
    ck_assert_uint_eq(r.evicted, 0);
    mass_close(t);
}
END_TEST

static void refuses(const char *policy, uint32_t budget, const char *line)
{
    evict_options options = {.budget = budget};
    trace_error error = {""};
    mass_trace *t = memory_trace((mass_shape){.page_tokens = 1, .groups = 1, .steps = 6}, six, NULL);
    t->shape.page_tokens = 16; /* of which only the check knows */
    ck_assert_int_eq(kvk_policy_parse(policy, NULL, &options.choice, NULL, 0), 0);
    ck_assert_int_eq(replay_evict_check(t, &options, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
    mass_close(t);
}

START_TEST(a_budget_too_small_is_named)
{
    refuses("window", 15, "memory: field budget: 15 tokens are no page of 16");
    refuses(
        "streaming", 16,
        "memory: field budget: 16 tokens, in pages of 16, are too few for streaming: all would be out of its reach");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("replay");
    tcase_add_test(t, a_window_by_hand);
    tcase_add_test(t, sinks_by_hand);
    tcase_add_test(t, heavy_hitters_by_hand);
    tcase_add_test(t, the_bounds_by_hand);
    tcase_add_test(t, groups_and_pages_by_hand);
    tcase_add_test(t, a_query_that_gives_less_counts_as_much);
    tcase_add_test(t, a_text_that_began_before);
    tcase_add_test(t, needles_by_hand);
    tcase_add_test(t, the_fifth_percentile);
    tcase_add_test(t, a_budget_that_is_never_reached);
    tcase_add_test(t, a_budget_too_small_is_named);
    return run_tests("trace_mass_replay", t);
}
