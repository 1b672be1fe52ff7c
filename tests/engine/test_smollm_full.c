/* The real model without eviction: golden NLL and logits, however the text comes in. */
#include "engine/sample.h"
#include "engine/smollm.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <string.h>

static smollm s;
static double nll[TEXT_TOKENS]; /* nll[t]: of token t + 1 after token t */

static void set_up(void)
{
    smollm_open(&s);
    memset(nll, 0, sizeof nll);
}

static void tear_down(void)
{
    smollm_close(&s);
}

static const json_t *full(void)
{
    return json_object_get(s.golden, "full");
}

/* Scores text[from .. from + n - 1]. */
static runner_entry scored(kvk_seq seq, uint32_t from, uint32_t n)
{
    return (runner_entry){.sequence = seq,
                          .tokens = s.text + from,
                          .n = n,
                          .want = RUNNER_SCORES,
                          .next = s.text + from + 1,
                          .nll = nll + from};
}

/* `length` tokens have length - 1 targets. */
static void check_nll(uint32_t length)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(full(), "mean_nll_targets_1_to_N_minus_1"), name, value)
    {
        uint32_t n = (uint32_t)strtoul(name, NULL, 10);
        if (n <= length)
            ck_assert_double_eq_tol(mean_of(nll, 0, n - 1), json_number_value(value), 1e-4);
    }
    if (length == TEXT_TOKENS)
        ck_assert_double_eq_tol(mean_of(nll, 1023, 2047), golden_number(full(), "mean_nll_targets_1024_to_2047"), 1e-4);
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_double_eq_tol(nll[i], json_number_value(json_array_get(json_object_get(full(), "nll_first_32"), i)),
                                1e-4);
}

START_TEST(chunks)
{
    runner *r = smollm_runner(&s, 1, TEXT_TOKENS, KVK_NEAR_ERROR);
    kvk_seq seq = smollm_sequence(r, NULL, 0);
    for (uint32_t at = 0, n; at < TEXT_TOKENS; at += n) {
        n = at == 0 ? 100 : 250; /* no whole pages */
        n = n < TEXT_TOKENS - at ? n : TEXT_TOKENS - at;
        runner_entry entry = scored(seq, at, n);
        smollm_step(r, &entry, 1);
    }
    check_nll(TEXT_TOKENS);
    runner_close(r);
}
END_TEST

/* Beside it another text comes in by chunks, and a third token by token. */
START_TEST(token_by_token_in_a_batch)
{
    runner *r = smollm_runner(&s, 1, 3 * TEXT_TOKENS, KVK_NEAR_ERROR);
    kvk_seq seq = smollm_sequence(r, NULL, 0), chunked = smollm_sequence(r, NULL, 0);
    kvk_seq other = smollm_sequence(r, "h2o:sinks=4", 128);
    for (uint32_t t = 0; t < TEXT_TOKENS; t++) {
        uint32_t n = 1;
        runner_entry entries[3] = {scored(seq, t, 1)};
        if (t % 16 == 3)
            entries[n++] = (runner_entry){.sequence = chunked, .tokens = s.text + t / 2, .n = 7};
        if (t < 512)
            entries[n++] = (runner_entry){.sequence = other, .tokens = s.text + 1000 + t, .n = 1};
        smollm_step(r, entries, n);
    }
    check_nll(TEXT_TOKENS);
    runner_close(r);
}
END_TEST

static void check_logits(const float *logits)
{
    const json_t *top = json_object_get(full(), "top5_logits_after_16_tokens");
    for (uint32_t i = 0; i < 5; i++) {
        const json_t *pair = json_array_get(top, i);
        double want = json_number_value(json_array_get(pair, 1));
        ck_assert_double_eq_tol((double)logits[json_integer_value(json_array_get(pair, 0))], want, 1e-3);
    }
}

START_TEST(logits)
{
    uint32_t width = s.model->shape.n_vocabulary;
    const json_t *best = json_object_get(full(), "argmax_first_32");
    for (uint32_t groups = 1; groups <= 30; groups += 29) {
        runner *r = smollm_runner(&s, groups, 64, KVK_NEAR_ERROR);
        runner_entry entry = {.sequence = smollm_sequence(r, NULL, 0), .tokens = s.text, .n = 32, .want = RUNNER_ALL};
        smollm_step(r, &entry, 1);
        for (uint32_t i = 0; i < 32; i++)
            ck_assert_uint_eq(sample_greedy(entry.logits + (size_t)i * width, width),
                              (uint32_t)json_integer_value(json_array_get(best, i)));
        check_logits(entry.logits + (size_t)15 * width);
        runner_close(r);
    }
}
END_TEST

int main(void)
{
    if (!smollm_is_here())
        return 77;
    TCase *t = tcase_create("smollm full");
    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, logits);
    tcase_add_test(t, chunks);
    tcase_add_test(t, token_by_token_in_a_batch);
    return run_tests("smollm full", t);
}
