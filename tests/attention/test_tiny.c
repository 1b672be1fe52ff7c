/* What attention of a few tokens is, by hand. */
#include "attention/tiny.h"
#include "run_tests.h"

#include <math.h>

static const float ln2 = 0.693147181f, ln3 = 1.098612289f;
static tiny t;

static void is(float found, double expected)
{
    ck_assert_double_eq_tol((double)found, expected, 1e-6);
}

/* Every test is run with each of them. */
static int (*const versions[])(const kvk_attention *, const kvk_attention_out *) = {kvk_attention_reference};

static void attend(int version)
{
    ck_assert_int_eq(versions[version](&t.attention, &t.out), 0);
}

/* Two tokens, the last one asks: exp(s) is 1 and 3, so the weights are 1/4 and 3/4. */
static void open_quarters(void)
{
    tiny_open(&t, 2, 1);
    tiny_set(&t, 0, 0, 4);
    tiny_set(&t, 1, ln3, 8);
}

START_TEST(weights_are_exp_of_scores_over_their_sum)
{
    open_quarters();
    attend(_i);
    is(t.o[0], 7); /* 4/4 + 8*3/4 */
    is(t.lse[0], log(4));
    is(t.mean[0], 0.25);
    is(t.mean[1], 0.75);
    is(t.peak[0], 0.25);
    is(t.peak[1], 0.75);
}
END_TEST

START_TEST(scores_are_divided_by_the_root_of_the_head_size)
{
    float wide[4][2][4] = {{{0}, {4}}, {{ln3, ln3, 0, 0}, {8}}}, o[4], q[4] = {1, 1, 1, 1};
    open_quarters();
    ck_assert_int_eq(kvk_kv_shape(&t.kv, 1, 1, 4), 0);
    t.kv.base = wide;
    t.attention.scale = 0; /* 1 / sqrt(4): 2 ln 3 becomes ln 3 */
    t.attention.q.data = q;
    t.out.o = o;
    attend(_i);
    is(o[0], 7);
    is(t.lse[0], log(4));
}
END_TEST

START_TEST(a_sink_takes_a_share_and_gives_no_value)
{
    float sink = 2 * ln2;
    open_quarters();
    t.attention.sinks = &sink;
    attend(_i);
    is(t.o[0], 3.5); /* 4/8 + 8*3/8 */
    is(t.lse[0], log(8));
    is(t.mean[0], 0.125);
    is(t.mean[1], 0.375);
}
END_TEST

START_TEST(a_soft_cap_bends_scores)
{
    double more = exp(2 * 0.8); /* 2 tanh(2 ln 3 / 2), tanh(ln 3) being (9 - 1) / (9 + 1) */
    open_quarters();
    tiny_set(&t, 1, 2 * ln3, 8);
    t.attention.soft_cap = 2;
    attend(_i);
    is(t.mean[1], more / (1 + more));
    is(t.lse[0], log(1 + more));
}
END_TEST

START_TEST(a_soft_cap_comes_before_a_slope)
{
    double less = exp(-0.5), more = exp(2 * 0.8); /* not 2 tanh((2 ln 3 - 0.5 * distance) / 2) */
    float slope = 0.5f;
    open_quarters();
    tiny_set(&t, 1, 2 * ln3, 8);
    t.attention.soft_cap = 2;
    t.attention.slopes = &slope;
    attend(_i);
    is(t.mean[0], less / (less + more));
}
END_TEST

START_TEST(a_slope_goes_by_the_position_in_the_text)
{
    float slope = ln2;
    open_quarters();
    tiny_set(&t, 1, 0, 8);
    t.positions[1] = 3; /* tokens 1 and 2 went: token 0 is 3 away, 2^-3 */
    t.seq_lens[0] = 4;
    t.attention.slopes = &slope;
    attend(_i);
    is(t.mean[0], 1.0 / 9);
    is(t.mean[1], 8.0 / 9);
    is(t.lse[0], log(1.125));
}
END_TEST

START_TEST(a_window_of_1_is_the_token_itself)
{
    open_quarters();
    t.attention.window = 1;
    attend(_i);
    is(t.o[0], 8);
    is(t.lse[0], (double)ln3);
    is(t.mean[0], 0);
    is(t.mean[1], 1);
}
END_TEST

/* Four tokens of score 0, 1 and 2 of which went: a window of 3 reaches to position 1, so not to token 0. */
START_TEST(a_window_goes_by_the_position_in_the_text)
{
    open_quarters();
    t.positions[1] = 3;
    t.seq_lens[0] = 4;
    t.attention.window = 3;
    attend(_i);
    is(t.mean[0], 0);
    is(t.mean[1], 1);
    t.attention.window = 4;
    t.out.mean = t.mean + 2;
    attend(_i);
    is(t.mean[2], 0.25);
}
END_TEST

START_TEST(queries_see_what_is_before_them_and_their_masses_are_summed)
{
    open_quarters();
    t.query_indptr[1] = 2;
    attend(_i);
    is(t.o[0], 4); /* the first sees itself only */
    is(t.o[1], 7);
    is(t.lse[0], 0);
    is(t.lse[1], log(4));
    is(t.mean[0], 1.25);
    is(t.mean[1], 0.75);
    is(t.peak[0], 1);
    is(t.peak[1], 0.75);
}
END_TEST

START_TEST(each_query_may_have_a_row)
{
    uint32_t rows = 2;
    open_quarters();
    t.query_indptr[1] = 2;
    t.out.rows = &rows;
    attend(_i);
    is(t.mean[0], 1);
    is(t.mean[1], 0);
    is(t.mean[2], 0.25);
    is(t.mean[3], 0.75);
    is(t.peak[2], 0.25);
}
END_TEST

/* Two heads of queries on one of K and V; the second asks with 0, so its weights are a half each. */
START_TEST(mean_and_peak_are_over_heads)
{
    open_quarters();
    t.attention.n_heads = t.out.near_values = 2;
    t.q[1] = 0;
    attend(_i);
    is(t.o[0], 7);
    is(t.o[1], 6);
    is(t.lse[1], log(2));
    is(t.mean[0], 0.375);
    is(t.mean[1], 0.625);
    is(t.peak[0], 0.5);
    is(t.peak[1], 0.75);
}
END_TEST

/* Four heads of queries, two of K and V: heads 0 and 1 read the first one, 2 and 3 the second one. */
START_TEST(neighbouring_heads_share_one_of_k_and_v)
{
    tiny_open(&t, 1, 1);
    ck_assert_int_eq(kvk_kv_shape(&t.kv, 1, 2, 1), 0);
    t.attention.n_heads = t.out.near_values = 4;
    t.cache[0][1][0] = 5;
    t.cache[0][1][1] = 9;
    attend(_i);
    is(t.o[0], 5);
    is(t.o[1], 5);
    is(t.o[2], 9);
    is(t.o[3], 9);
}
END_TEST

START_TEST(masses_are_added_to_what_is_there_by_weight)
{
    open_quarters();
    t.out.weight = 0.5f;
    t.mean[0] = 10;
    t.peak[1] = 0.9f;
    t.near[0] = 0.5f;
    attend(_i);
    is(t.mean[0], 10.125);
    is(t.mean[1], 0.375);
    is(t.peak[0], 0.25);
    is(t.peak[1], 0.9);
    is(t.near[0], 0.5);
    is(t.near[1], 0.75);
}
END_TEST

/* ---- near peaks */

/* With pages of one token, a query is near its own token and the one before it. */
START_TEST(near_are_a_querys_page_and_the_one_before)
{
    tiny_open(&t, 4, 2); /* all scores 0: queries 2 and 3 give each token they see 1/3 and 1/4 */
    attend(_i);
    is(t.near[0], 1.0 / 3); /* of pages 1, 2, 3: page 0 has no place */
    is(t.near[1], 1.0 / 3); /* the larger of both */
    is(t.near[2], 0.25);
    is(t.near[3], 0);
}
END_TEST

START_TEST(near_peaks_have_places_for_layers_and_heads)
{
    open_quarters();
    t.attention.n_heads = 2;
    t.q[1] = 0;
    t.out.near_values = 6;
    t.out.near_first = 2;
    attend(_i);
    const double expected[12] = {0, 0, 0.25, 0.5, 0, 0, 0, 0, 0.75, 0.5, 0, 0}; /* [page][layer][head] */
    for (int i = 0; i < 12; i++)
        is(t.near[i], expected[i]);
}
END_TEST

START_TEST(heads_choose_their_places_among_the_near_peaks)
{
    static const int32_t places[2] = {-1, 1};
    open_quarters();
    t.attention.n_heads = 2;
    t.q[1] = 0;
    t.out.near_values = 2;
    t.out.near_first = 1000; /* says nothing beside places */
    t.out.near_places = places;
    attend(_i);
    const double expected[4] = {0, 0.5, 0, 0.5}; /* [page][number] */
    for (int i = 0; i < 4; i++)
        is(t.near[i], expected[i]);
}
END_TEST

/* Without page 0 o would be 8, without page 1 it would be 4; it is 7. */
START_TEST(removal_error_is_how_far_the_output_moves)
{
    open_quarters();
    t.out.near_kind = KVK_NEAR_ERROR;
    attend(_i);
    is(t.near[0], 1);
    is(t.near[1], 3);
}
END_TEST

/* Weights 1/10000 and 9999/10000: o = 7.9996, and without page 1 it would be 4. 1 - m is 1e-4, which counts as 1e-3. */
START_TEST(removal_error_of_almost_everything_is_bounded)
{
    open_quarters();
    tiny_set(&t, 1, logf(9999), 8);
    t.out.near_kind = KVK_NEAR_ERROR;
    attend(_i);
    is(t.near[0], 0.0004); /* 8 - 7.9996 */
    is(t.near[1], 0.39996);
}
END_TEST

/* ---- nothing to see */

START_TEST(a_query_that_sees_nothing_gets_zero_and_minus_infinity)
{
    open_quarters();
    t.query_indptr[1] = 2;
    t.indptr[1] = 1; /* token 1 only; the query at 0 is before it */
    t.pages[0] = t.positions[0] = 1;
    t.o[0] = NAN;
    attend(_i);
    ck_assert(t.o[0] == 0);
    ck_assert(t.lse[0] == -HUGE_VALF);
    is(t.o[1], 8);
    is(t.mean[0], 1);
}
END_TEST

START_TEST(a_sink_alone_has_its_lse)
{
    float sink = 3;
    open_quarters();
    t.indptr[1] = 0;
    t.o[0] = NAN;
    t.attention.sinks = &sink;
    attend(_i);
    ck_assert(t.o[0] == 0);
    is(t.lse[0], 3);
}
END_TEST

START_TEST(an_entry_without_tokens_has_no_results)
{
    tiny_open(&t, 0, 0);
    t.mean[0] = t.lse[0] = 5;
    attend(_i);
    is(t.mean[0], 5);
    is(t.lse[0], 5);
}
END_TEST

START_TEST(arrays_that_are_not_there_are_left_out)
{
    open_quarters();
    t.out = (kvk_attention_out){.size = sizeof t.out, .weight = 1};
    attend(_i);
    t.out.mean = t.mean;
    attend(_i);
    is(t.mean[0], 0.25);
    is(t.mean[1], 0.75);
}
END_TEST

int main(void)
{
    int n = sizeof versions / sizeof *versions;
    TCase *tests = tcase_create("tiny");
    tcase_add_loop_test(tests, weights_are_exp_of_scores_over_their_sum, 0, n);
    tcase_add_loop_test(tests, scores_are_divided_by_the_root_of_the_head_size, 0, n);
    tcase_add_loop_test(tests, a_sink_takes_a_share_and_gives_no_value, 0, n);
    tcase_add_loop_test(tests, a_soft_cap_bends_scores, 0, n);
    tcase_add_loop_test(tests, a_soft_cap_comes_before_a_slope, 0, n);
    tcase_add_loop_test(tests, a_slope_goes_by_the_position_in_the_text, 0, n);
    tcase_add_loop_test(tests, a_window_of_1_is_the_token_itself, 0, n);
    tcase_add_loop_test(tests, a_window_goes_by_the_position_in_the_text, 0, n);
    tcase_add_loop_test(tests, queries_see_what_is_before_them_and_their_masses_are_summed, 0, n);
    tcase_add_loop_test(tests, each_query_may_have_a_row, 0, n);
    tcase_add_loop_test(tests, mean_and_peak_are_over_heads, 0, n);
    tcase_add_loop_test(tests, neighbouring_heads_share_one_of_k_and_v, 0, n);
    tcase_add_loop_test(tests, masses_are_added_to_what_is_there_by_weight, 0, n);
    tcase_add_loop_test(tests, near_are_a_querys_page_and_the_one_before, 0, n);
    tcase_add_loop_test(tests, near_peaks_have_places_for_layers_and_heads, 0, n);
    tcase_add_loop_test(tests, heads_choose_their_places_among_the_near_peaks, 0, n);
    tcase_add_loop_test(tests, removal_error_is_how_far_the_output_moves, 0, n);
    tcase_add_loop_test(tests, removal_error_of_almost_everything_is_bounded, 0, n);
    tcase_add_loop_test(tests, a_query_that_sees_nothing_gets_zero_and_minus_infinity, 0, n);
    tcase_add_loop_test(tests, a_sink_alone_has_its_lse, 0, n);
    tcase_add_loop_test(tests, an_entry_without_tokens_has_no_results, 0, n);
    tcase_add_loop_test(tests, arrays_that_are_not_there_are_left_out, 0, n);
    return run_tests("tiny", tests);
}
