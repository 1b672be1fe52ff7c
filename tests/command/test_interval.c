/* Wilson's interval against published values. */
#include "kvkeep/eval/interval.h"
#include "run_tests.h"

typedef struct published {
    uint32_t right, n;
    double low, high;
} published;

/* Newcombe, Two-sided confidence intervals for the single proportion, Statistics in Medicine 17 (1998), table I, method
 * 3 (score), to four places. */
START_TEST(as_newcombe_has_it)
{
    static const published table[] = {
        {81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        interval x = interval_wilson(table[i].right, table[i].n);
        ck_assert_double_eq_tol(x.low, table[i].low, 5e-5);
        ck_assert_double_eq_tol(x.high, table[i].high, 5e-5);
    }
}
END_TEST

START_TEST(all_right_is_none_wrong_mirrored)
{
    for (uint32_t n = 1; n <= 50; n++)
        for (uint32_t right = 0; right <= n; right++) {
            interval x = interval_wilson(right, n), mirrored = interval_wilson(n - right, n);
            ck_assert_double_eq_tol(x.low, 1 - mirrored.high, 1e-12);
            ck_assert(x.low >= 0 && x.high <= 1 && x.low < x.high);
            ck_assert(x.low * n <= right && right <= x.high * n);
        }
}
END_TEST

START_TEST(of_nothing_nothing_is_known)
{
    interval x = interval_wilson(0, 0);
    ck_assert_double_eq(x.low, 0);
    ck_assert_double_eq(x.high, 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("interval");
    tcase_add_test(t, as_newcombe_has_it);
    tcase_add_test(t, all_right_is_none_wrong_mirrored);
    tcase_add_test(t, of_nothing_nothing_is_known);
    return run_tests("interval", t);
}
