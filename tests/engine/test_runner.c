/* Sequences on a cache: budgets, scores, prefixes, forks, and steps that can't be. */
#include "engine/numbers.h"
#include "engine/tiny_model.h"
#include "run_tests.h"

#include <check.h>
#include <string.h>

enum { LENGTH = 60, V = TINY_VOCABULARY, PAGE = 4 };

static tiny_model tiny;
static runner *r;
static uint32_t text[LENGTH];
static trace_error error;

static runner_config config_of(void)
{
    runner_config config = RUNNER_CONFIG(tiny.m);
    config.page_tokens = PAGE;
    config.kv_tokens = 4 * LENGTH;
    return config;
}

static void open_runner(const runner_config *config)
{
    ck_assert_msg(runner_open(config, &r, &error) == 0, "%s", error.text);
}

static void set_up(void)
{
    tiny = tiny_open(&(tiny_options){.architecture = "llama"});
    tiny_text(5, text, LENGTH);
}

static void tear_down(void)
{
    runner_close(r);
    tiny_close(&tiny);
}

static kvk_seq open_sequence(const char *policy, uint32_t budget)
{
    kvk_seq seq;
    kvk_eviction eviction;
    if (policy)
        ck_assert_msg(runner_policy(policy, budget, &eviction, &error) == 0, "%s", error.text);
    ck_assert_msg(runner_sequence(r, policy ? &eviction : NULL, &seq, &error) == 0, "%s", error.text);
    return seq;
}

/* The logits after text[from .. end-1]; they last until the next step. */
static const float *step(kvk_seq seq, uint32_t from, uint32_t end)
{
    runner_entry entry = {.sequence = seq, .tokens = text + from, .n = end - from, .want = RUNNER_LAST};
    ck_assert_msg(runner_step(r, &entry, 1, &error) == 0, "%s", error.text);
    return entry.logits;
}

static uint32_t tokens_of(kvk_seq seq)
{
    kvk_seq_info info = {.size = sizeof info};
    ck_assert_int_eq(kvk_seq_info_get(runner_cache(r), seq, &info), 0);
    return info.n_tokens;
}

static uint32_t pages_used(void)
{
    kvk_stats stats = {.size = sizeof stats};
    ck_assert_int_eq(kvk_stats_get(runner_cache(r), &stats), 0);
    return stats.pages_used;
}

static void refuse(runner_entry entry, int rc, const char *why)
{
    uint32_t before = tokens_of(entry.sequence);
    ck_assert_int_eq(runner_step(r, &entry, 1, &error), rc);
    ck_assert_msg(strstr(error.text, why) != NULL && !strchr(error.text, '\n'), "%s", error.text);
    ck_assert_uint_eq(tokens_of(entry.sequence), before);
}

START_TEST(a_budget_is_kept)
{
    for (uint32_t groups = 1; groups <= TINY_LAYERS; groups++) {
        runner_config config = config_of();
        config.n_groups = groups == 1 ? 1 : RUNNER_PER_LAYER;
        open_runner(&config);
        kvk_seq seq = open_sequence("h2o:sinks=4:recent=8", 24);
        for (uint32_t t = 0; t < LENGTH; t++) {
            step(seq, t, t + 1);
            ck_assert_uint_le(pages_used(), 24 / PAGE * groups);
        }
        kvk_eviction_info info = {.size = sizeof info};
        ck_assert_int_eq(kvk_eviction_info_get(runner_cache(r), seq, &info), 0);
        ck_assert_uint_eq(info.pages_evicted, (uint64_t)(LENGTH - 24) / PAGE * groups);
        ck_assert_int_eq(kvk_audit(runner_cache(r), NULL, NULL), 0);
        if (groups < TINY_LAYERS)
            runner_close(r);
    }
}
END_TEST

/* What a window drops can't be seen any more: a text with another beginning of the same length ends alike. */
START_TEST(dropped_pages_do_not_count)
{
    float first[V], again[V];
    runner_config config = config_of();
    open_runner(&config);
    for (int i = 0; i < 2; i++) {
        kvk_seq seq = open_sequence("window", 8);
        const float *logits = NULL;
        for (uint32_t t = 0; t < LENGTH; t++)
            logits = step(seq, t, t + 1);
        memcpy(i ? again : first, logits, sizeof first);
        tiny_text(77, text, 20); /* two layers see 2 * 8 tokens, and the partial page */
    }
    ck_assert_mem_eq(first, again, sizeof first);
}
END_TEST

START_TEST(scores_are_those_of_the_logits)
{
    double nll[LENGTH];
    uint32_t next[LENGTH];
    runner_config config = config_of();
    open_runner(&config);
    memcpy(next, text + 1, sizeof next - sizeof *next);
    next[LENGTH - 1] = UINT32_MAX;
    runner_entry entries[2] = {
        {.sequence = open_sequence(NULL, 0), .tokens = text, .n = LENGTH, .want = RUNNER_ALL},
        {.sequence = open_sequence(NULL, 0),
         .tokens = text,
         .n = LENGTH,
         .want = RUNNER_SCORES,
         .next = next,
         .nll = nll},
    };
    ck_assert_msg(runner_step(r, entries, 2, &error) == 0, "%s", error.text);
    ck_assert(entries[1].logits == NULL);
    for (uint32_t i = 0; i + 1 < LENGTH; i++)
        ck_assert_double_eq(nll[i], negative_log_likelihood(entries[0].logits + (size_t)i * V, V, next[i]));
    ck_assert_double_eq(nll[LENGTH - 1], 0);
}
END_TEST

START_TEST(a_prefix_is_found_again)
{
    float whole[V];
    runner_config config = config_of();
    config.prefix_cache = 1;
    open_runner(&config);
    memcpy(whole, step(open_sequence(NULL, 0), 0, 40), sizeof whole);
    kvk_seq seq = open_sequence(NULL, 0);
    int found = kvk_prefix_attach(runner_cache(r), seq, &(kvk_text){.n_tokens = 40, .tokens = text});
    ck_assert_int_eq(found, 36); /* whole pages, and the last token is left */
    ck_assert_mem_eq(step(seq, 36, 40), whole, sizeof whole);
}
END_TEST

/* A fork writes into a page that it shares: the cache asks for a copy. Also where numbers have scales beside them. */
START_TEST(a_fork_goes_its_own_way)
{
    static const kvk_dtype types[] = {KVK_F32, KVK_F16, KVK_I8, KVK_I4};
    float alone[V];
    runner_config config = config_of();
    config.kv_type = types[_i];
    config.n_groups = 1 + (uint32_t)_i % TINY_LAYERS;
    open_runner(&config);
    kvk_seq parent = open_sequence(NULL, 0), child;
    step(parent, 0, 10);
    ck_assert_int_eq(kvk_seq_fork(runner_cache(r), parent, &child), 0);
    step(child, 30, 35);
    memcpy(alone, step(parent, 10, 16), sizeof alone);
    kvk_seq other = open_sequence(NULL, 0);
    step(other, 0, 10);
    ck_assert_mem_eq(step(other, 10, 16), alone, sizeof alone);
}
END_TEST

START_TEST(steps_that_can_not_be)
{
    static const uint32_t unknown[] = {3, V};
    double nll[2];
    runner_config config = config_of();
    open_runner(&config);
    kvk_seq seq = open_sequence(NULL, 0), other = open_sequence(NULL, 0);
    step(seq, 0, 8);
    refuse((runner_entry){.sequence = seq, .tokens = unknown, .n = 2}, TRACE_BAD_INPUT,
           "token 40 is not of the model's 40");
    refuse((runner_entry){.sequence = seq, .tokens = text, .n = 2, .want = RUNNER_SCORES, .next = unknown, .nll = nll},
           TRACE_BAD_INPUT, "token 40 is not of the model's 40");
    refuse((runner_entry){.sequence = seq, .tokens = text, .n = 0}, TRACE_BAD_INPUT, "has no tokens");
    step(other, 0, LENGTH);
    step(other, 0, LENGTH);
    refuse((runner_entry){.sequence = other, .tokens = text, .n = LENGTH}, TRACE_BAD_INPUT,
           "180 tokens are more than the model's 128");
    ck_assert_int_ge(kvk_seq_close(runner_cache(r), other), 0);
    runner_entry closed = {.sequence = other, .tokens = text, .n = 1};
    ck_assert_int_eq(runner_step(r, &closed, 1, &error), TRACE_FAILED);
    step(seq, 8, LENGTH);
}
END_TEST

START_TEST(no_pages)
{
    float alone[V];
    runner_config config = config_of();
    config.kv_tokens = 32;
    open_runner(&config);
    kvk_seq seq = open_sequence(NULL, 0), other = open_sequence(NULL, 0);
    memcpy(alone, step(seq, 0, 16), sizeof alone);
    step(other, 0, 8);
    refuse((runner_entry){.sequence = other, .tokens = text, .n = 12}, TRACE_FAILED, "not enough pages");
    refuse((runner_entry){.sequence = other, .tokens = text, .n = 60}, TRACE_FAILED, "more pages than the pool");
    ck_assert_int_ge(kvk_seq_close(runner_cache(r), seq), 0);
    ck_assert_mem_eq(step(other, 8, 16), alone, sizeof alone);
}
END_TEST

START_TEST(configurations_that_can_not_be)
{
    runner_config bad[] = {config_of(), config_of(), config_of(), config_of(), config_of(), config_of(), config_of()};
    bad[0].page_tokens = 0;
    bad[1].n_groups = 3;
    bad[2].kv_type = 6;
    bad[3].kv_tokens = 0;
    bad[4].kv_tokens = 1ull << 60;
    bad[5].near = (near_heads){.n = 1, .chosen = {{0, TINY_HEADS}}};
    bad[6].near = (near_heads){.n = 2, .chosen = {{1, 0}, {1, 0}}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(runner_open(&bad[i], &r, &error), TRACE_BAD_INPUT);
        ck_assert(!strchr(error.text, '\n'));
    }
    r = NULL;
}
END_TEST

START_TEST(policies_that_can_not_be)
{
    kvk_eviction eviction;
    kvk_seq seq;
    runner_config config = config_of();
    open_runner(&config);
    ck_assert_int_eq(runner_policy("h3o", 64, &eviction, &error), TRACE_BAD_INPUT);
    ck_assert_int_eq(runner_policy("h2o:sinks=-1", 64, &eviction, &error), TRACE_BAD_INPUT);
    ck_assert_msg(runner_policy("h2o:sinks=16", 16, &eviction, &error) == 0, "%s", error.text);
    ck_assert_int_eq(runner_sequence(r, &eviction, &seq, &error), TRACE_BAD_INPUT);
    ck_assert_msg(strstr(error.text, "h2o:sinks=16: a budget of 16 tokens") != NULL, "%s", error.text);
    ck_assert_uint_eq(pages_used(), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("runner");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_budget_is_kept);
    tcase_add_test(t, dropped_pages_do_not_count);
    tcase_add_test(t, scores_are_those_of_the_logits);
    tcase_add_test(t, a_prefix_is_found_again);
    tcase_add_loop_test(t, a_fork_goes_its_own_way, 0, 4);
    tcase_add_test(t, steps_that_can_not_be);
    tcase_add_test(t, no_pages);
    tcase_add_test(t, configurations_that_can_not_be);
    tcase_add_test(t, policies_that_can_not_be);
    return run_tests("runner", t);
}
