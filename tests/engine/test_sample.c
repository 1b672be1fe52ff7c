/* Choosing the next token. */
#include "engine/sample.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { N = 1000, DRAWS = 20000 };

static trace_error error;
static float logits[N];
static uint32_t counts[N];

static sampler *open_sampler(const sample_options *options)
{
    sampler *s;
    ck_assert_msg(sampler_open(options, N, &s, &error) == 0, "%s", error.text);
    return s;
}

static void draw_many(const sample_options *options)
{
    sampler *s = open_sampler(options);
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < DRAWS; i++)
        counts[sampler_next(s, logits)]++;
    sampler_close(s);
}

/* Four tokens with probabilities 0.4, 0.3, 0.2 and 0.1, far apart; the rest next to nothing. */
static void four_tokens(void)
{
    for (int i = 0; i < N; i++)
        logits[i] = -60;
    logits[700] = logf(0.4F);
    logits[3] = logf(0.3F);
    logits[999] = logf(0.2F);
    logits[500] = logf(0.1F);
}

static void check_share(uint32_t token, double share)
{
    ck_assert_double_eq_tol((double)counts[token] / DRAWS, share, 0.015); /* over 4 standard errors */
}

START_TEST(greedy)
{
    four_tokens();
    ck_assert_uint_eq(sample_greedy(logits, N), 700);
    logits[2] = logits[700]; /* of equal ones the first */
    logits[0] = NAN;
    ck_assert_uint_eq(sample_greedy(logits, N), 2);
    draw_many(&SAMPLE_GREEDY);
    ck_assert_uint_eq(counts[2], DRAWS);
}
END_TEST

START_TEST(by_probability)
{
    four_tokens();
    draw_many(&(sample_options){.temperature = 1, .top_p = 1, .seed = 1});
    check_share(700, 0.4);
    check_share(3, 0.3);
    check_share(999, 0.2);
    check_share(500, 0.1);
}
END_TEST

/* At a half the probabilities are squared: 16, 9, 4 and 1 of 30. */
START_TEST(temperature)
{
    four_tokens();
    draw_many(&(sample_options){.temperature = 0.5, .top_p = 1, .seed = 2});
    check_share(700, 16.0 / 30);
    check_share(500, 1.0 / 30);
    draw_many(&(sample_options){.temperature = 1e-3, .top_p = 1, .seed = 2});
    ck_assert_uint_eq(counts[700], DRAWS);
}
END_TEST

START_TEST(top_k)
{
    four_tokens();
    draw_many(&(sample_options){.temperature = 1, .top_p = 1, .top_k = 2, .seed = 3});
    check_share(700, 4.0 / 7);
    check_share(3, 3.0 / 7);
    ck_assert_uint_eq(counts[700] + counts[3], DRAWS);
    draw_many(&(sample_options){.temperature = 1, .top_p = 1, .top_k = 1, .seed = 3});
    ck_assert_uint_eq(counts[700], DRAWS);
}
END_TEST

START_TEST(top_p)
{
    four_tokens();
    draw_many(&(sample_options){.temperature = 1, .top_p = 0.71, .seed = 4}); /* three reach it */
    check_share(999, 2.0 / 9);
    ck_assert_uint_eq(counts[700] + counts[3] + counts[999], DRAWS);
    draw_many(&(sample_options){.temperature = 1, .top_p = 0.69, .seed = 4}); /* two do */
    ck_assert_uint_eq(counts[700] + counts[3], DRAWS);
    draw_many(&(sample_options){.temperature = 1, .top_p = 1e-9, .seed = 4});
    ck_assert_uint_eq(counts[700], DRAWS);
    draw_many(&(sample_options){.temperature = 1, .top_p = 0.5, .top_k = 3, .seed = 4}); /* 4/9 and 3/9 do */
    check_share(700, 4.0 / 7);
    ck_assert_uint_eq(counts[700] + counts[3], DRAWS);
}
END_TEST

START_TEST(many_equal_ones)
{
    for (int i = 0; i < N; i++)
        logits[i] = 1;
    draw_many(&(sample_options){.temperature = 1, .top_p = 1, .top_k = 10, .seed = 5});
    for (uint32_t i = 0; i < N; i++)
        ck_assert_int_eq(counts[i] > 0, i < 10);
    draw_many(&(sample_options){.temperature = 1, .top_p = 0.005, .seed = 5});
    for (uint32_t i = 0; i < N; i++)
        ck_assert_int_eq(counts[i] > 0, i < 5);
}
END_TEST

START_TEST(odd_logits)
{
    four_tokens();
    logits[10] = NAN;
    logits[11] = -INFINITY;
    draw_many(&(sample_options){.temperature = 100, .top_p = 1, .seed = 6});
    ck_assert_uint_eq(counts[10] + counts[11], 0);
    logits[12] = INFINITY;
    draw_many(&(sample_options){.temperature = 100, .top_p = 1, .seed = 6});
    ck_assert_uint_eq(counts[12], DRAWS);
}
END_TEST

START_TEST(a_seed_is_a_sequence)
{
    four_tokens();
    sample_options options = {.temperature = 1, .top_p = 0.95, .seed = 8}, others = options;
    others.seed = 9;
    sampler *a = open_sampler(&options), *b = open_sampler(&options), *c = open_sampler(&others);
    int differ = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t token = sampler_next(a, logits);
        ck_assert_uint_eq(token, sampler_next(b, logits));
        differ += token != sampler_next(c, logits);
    }
    ck_assert_int_gt(differ, 50);
    sampler_close(a);
    sampler_close(b);
    sampler_close(c);
}
END_TEST

START_TEST(bad_options)
{
    static const sample_options bad[] = {
        {.temperature = -1, .top_p = 1},  {.temperature = (double)NAN, .top_p = 1}, {.temperature = 1, .top_p = 0},
        {.temperature = 1, .top_p = 1.5}, {.temperature = 1, .top_p = (double)NAN},
    };
    sampler *s;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(sampler_open(&bad[i], N, &s, &error), TRACE_BAD_INPUT);
    ck_assert_int_eq(sampler_open(&SAMPLE_GREEDY, 0, &s, &error), TRACE_BAD_INPUT);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sample");
    tcase_add_test(t, greedy);
    tcase_add_test(t, by_probability);
    tcase_add_test(t, temperature);
    tcase_add_test(t, top_k);
    tcase_add_test(t, top_p);
    tcase_add_test(t, many_equal_ones);
    tcase_add_test(t, odd_logits);
    tcase_add_test(t, a_seed_is_a_sequence);
    tcase_add_test(t, bad_options);
    return run_tests("sample", t);
}
