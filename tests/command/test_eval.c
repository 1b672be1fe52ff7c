/* The parts of kvkeep eval that compute from numbers alone: estimates with their errors, the smallest budget, lists of
 * policies and budgets. */
#include "kvkeep/eval/stats.h"
#include "kvkeep/eval/suggest.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { N = 4 * EVAL_BLOCK };

/* ---- Estimates -------------------------------------------------------------------------------------------------- */

/* Blocks of equal values: 1, 2, 3 and 6, whose mean is 3 and whose squares from it are 4, 1, 0 and 9. */
static void fill_blocks(double values[N])
{
    static const double of_block[4] = {1, 2, 3, 6};
    for (int i = 0; i < N; i++)
        values[i] = of_block[i / EVAL_BLOCK];
}

START_TEST(the_error_of_a_mean_is_that_of_its_blocks)
{
    double values[N];
    fill_blocks(values);
    eval_estimate e = eval_estimate_of(values, N);
    ck_assert_double_eq_tol(e.mean, 3, 1e-12);
    ck_assert_double_eq_tol(e.error, sqrt(14.0 / (4 * 3)), 1e-12);
}
END_TEST

START_TEST(values_after_the_last_block_count_in_the_mean_only)
{
    double values[N];
    fill_blocks(values);
    eval_estimate e = eval_estimate_of(values, N - 1);
    ck_assert_double_eq_tol(e.mean, (3.0 * N - 6) / (N - 1), 1e-12);
    ck_assert_double_eq_tol(e.error, sqrt(2.0 / (3 * 2)), 1e-12);
}
END_TEST

START_TEST(few_values_have_no_error_and_none_no_mean)
{
    double values[N] = {0};
    ck_assert(isnan(eval_estimate_of(values, 0).mean));
    ck_assert(!isnan(eval_estimate_of(values, 1).mean));
    ck_assert(isnan(eval_estimate_of(values, 2 * EVAL_BLOCK - 1).error));
    ck_assert(!isnan(eval_estimate_of(values, 2 * EVAL_BLOCK).error));
}
END_TEST

/* Both have the same ups and downs, so that their difference is known exactly. */
START_TEST(a_difference_on_the_same_tokens_is_better_known_than_the_means)
{
    double a[N], b[N];
    fill_blocks(a);
    fill_blocks(b);
    for (int i = 0; i < N; i++)
        a[i] += 0.25;
    eval_estimate e = eval_estimate_difference(a, b, N);
    ck_assert_double_eq_tol(e.mean, 0.25, 1e-12);
    ck_assert_double_eq_tol(e.error, 0, 1e-12);
}
END_TEST

START_TEST(a_change_of_perplexity_is_relative)
{
    eval_estimate e = eval_change((eval_estimate){log(1.5), 0.01});
    ck_assert_double_eq_tol(e.mean, 0.5, 1e-12);
    ck_assert_double_eq_tol(e.error, 0.015, 1e-12);
}
END_TEST

/* ---- The smallest budget ---------------------------------------------------------------------------------------- */

static const eval_point points[] = {
    {64, {0.10, 0.02}}, {128, {0.009, 0.01}}, {192, {0.02, 0.01}}, {256, {0.008, 0.004}}, {320, {0.001, 0.001}},
};

enum { N_POINTS = sizeof points / sizeof points[0] };

START_TEST(all_budgets_above_the_smallest_hold_too)
{
    ck_assert_uint_eq(eval_smallest(points, N_POINTS, 0.01, 0), 3); /* not 1, above which 2 fails */
    ck_assert_uint_eq(eval_smallest(points, N_POINTS, 0.02, 0), 1);
    ck_assert_uint_eq(eval_smallest(points, N_POINTS, 0.5, 0), 0);
}
END_TEST

START_TEST(to_be_sure_takes_more)
{
    ck_assert_uint_eq(eval_smallest(points, N_POINTS, 0.01, 1.645), 4);
}
END_TEST

START_TEST(no_budget_may_be_enough)
{
    ck_assert_uint_eq(eval_smallest(points, N_POINTS, 0.0005, 0), N_POINTS);
    ck_assert_uint_eq(eval_smallest(points, 0, 1, 0), 0);
}
END_TEST

/* What is not known is not below a bound. */
START_TEST(a_loss_that_is_not_known_does_not_hold)
{
    const eval_point unknown[] = {{64, {0.001, (double)NAN}}, {128, {(double)NAN, (double)NAN}}};
    ck_assert_uint_eq(eval_smallest(unknown, 2, 0.01, 0), 2);
    ck_assert_uint_eq(eval_smallest(unknown, 1, 0.01, 1), 1);
    ck_assert_uint_eq(eval_smallest(unknown, 1, 0.01, 0), 0);
}
END_TEST

/* ---- Lists ------------------------------------------------------------------------------------------------------ */

static trace_error error;
static const arguments a = {"kvkeep test", NULL, &error};

START_TEST(budgets_are_tokens_or_shares)
{
    budget_list list = {.n = 0};
    ck_assert_int_eq(budget_list_add(&a, &list, "737"), 0);
    ck_assert_int_eq(budget_list_add(&a, &list, "36%"), 0);
    ck_assert_int_eq(budget_list_add(&a, &list, "29%"), 0);
    ck_assert_uint_eq(budget_tokens(list.budgets[0], 2048), 737);
    ck_assert_uint_eq(budget_tokens(list.budgets[1], 2048), 737);
    ck_assert_uint_eq(budget_tokens(list.budgets[2], 100), 29);
}
END_TEST

START_TEST(budgets_that_are_none_are_refused)
{
    static const char *const bad[] = {"", "0", "-1", "1.5", "x", "%", "0%", "101%", "20%%", "inf", "nan", "4294967296"};
    budget_list list = {.n = 0};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(budget_list_add(&a, &list, bad[i]) != 0, "'%s' is taken", bad[i]);
    ck_assert_uint_eq(list.n, 0);
}
END_TEST

START_TEST(lists_end)
{
    budget_list budgets = {.n = 0};
    policy_list policies = {.n = 0};
    for (int i = 0; i < BUDGET_LIST_MAX; i++)
        ck_assert_int_eq(budget_list_add(&a, &budgets, "1"), 0);
    ck_assert_int_ne(budget_list_add(&a, &budgets, "1"), 0);
    for (int i = 0; i < POLICY_LIST_MAX; i++)
        ck_assert_int_eq(policy_list_add(&a, &policies, "h2o"), 0);
    ck_assert_int_ne(policy_list_add(&a, &policies, "h2o"), 0);
    ck_assert_str_eq(error.text, "kvkeep test: field --policy: 'h2o' is one policy too many");
}
END_TEST

START_TEST(all_is_every_policy)
{
    policy_list list = {.n = 0};
    ck_assert_int_eq(policy_list_add(&a, &list, "all"), 0);
    for (uint32_t i = 0; i < list.n; i++)
        ck_assert_ptr_eq(list.choices[i].policy, kvk_policy_at(i));
    ck_assert_ptr_null(kvk_policy_at(list.n));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("eval");
    tcase_add_test(t, the_error_of_a_mean_is_that_of_its_blocks);
    tcase_add_test(t, values_after_the_last_block_count_in_the_mean_only);
    tcase_add_test(t, few_values_have_no_error_and_none_no_mean);
    tcase_add_test(t, a_difference_on_the_same_tokens_is_better_known_than_the_means);
    tcase_add_test(t, a_change_of_perplexity_is_relative);
    tcase_add_test(t, all_budgets_above_the_smallest_hold_too);
    tcase_add_test(t, to_be_sure_takes_more);
    tcase_add_test(t, no_budget_may_be_enough);
    tcase_add_test(t, a_loss_that_is_not_known_does_not_hold);
    tcase_add_test(t, budgets_are_tokens_or_shares);
    tcase_add_test(t, budgets_that_are_none_are_refused);
    tcase_add_test(t, lists_end);
    tcase_add_test(t, all_is_every_policy);
    return run_tests("eval", t);
}
