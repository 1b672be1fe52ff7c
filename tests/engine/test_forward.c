/* Small models through pages: logits against those of plain loops without any. */
#include "engine/tiny_model.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { LENGTH = 75, V = TINY_VOCABULARY, PAGE = 8 };

static uint32_t text[3][LENGTH];
static double want[3][LENGTH * V];
static float got[3][LENGTH * V];
static tiny_model tiny;
static trace_error error;

static void open_model(const tiny_options *options)
{
    tiny = tiny_open(options);
    for (uint32_t i = 0; i < 3; i++) {
        tiny_text(i + 1, text[i], LENGTH);
        tiny_logits(&tiny, text[i], LENGTH, want[i]);
    }
}

static runner *open_runner(uint32_t n_groups, kvk_dtype kv_type)
{
    runner *r;
    runner_config config = RUNNER_CONFIG(tiny.m);
    config.page_tokens = PAGE;
    config.n_groups = n_groups;
    config.kv_type = kv_type;
    config.kv_tokens = 4 * (LENGTH + PAGE);
    ck_assert_msg(runner_open(&config, &r, &error) == 0, "%s", error.text);
    return r;
}

static kvk_seq open_sequence(runner *r, const char *policy)
{
    kvk_seq seq;
    kvk_eviction eviction;
    if (policy)
        ck_assert_msg(runner_policy(policy, 1 << 20, &eviction, &error) == 0, "%s", error.text);
    ck_assert_msg(runner_sequence(r, policy ? &eviction : NULL, &seq, &error) == 0, "%s", error.text);
    return seq;
}

static double distance(const float *a, const double *b, uint32_t n)
{
    double worst = 0;
    for (uint32_t i = 0; i < n; i++)
        worst = fmax(worst, isfinite(a[i]) ? fabs((double)a[i] - b[i]) : HUGE_VAL);
    return worst;
}

/* Text 0 alone, by chunks. */
static void run_alone(runner *r, const char *policy, uint32_t chunk)
{
    kvk_seq seq = open_sequence(r, policy);
    for (uint32_t at = 0; at < LENGTH; at += chunk) {
        uint32_t n = LENGTH - at < chunk ? LENGTH - at : chunk;
        runner_entry entry = {.sequence = seq, .tokens = text[0] + at, .n = n, .want = RUNNER_ALL};
        ck_assert_msg(runner_step(r, &entry, 1, &error) == 0, "%s", error.text);
        memcpy(got[0] + (size_t)at * V, entry.logits, (size_t)n * V * sizeof(float));
    }
    ck_assert_int_ge(kvk_seq_close(runner_cache(r), seq), 0);
}

typedef struct variant {
    tiny_options options;
    kvk_dtype kv_type;
    double most; /* that a logit may be off */
} variant;

static const variant variants[] = {
    {{.architecture = "llama", .type = GGUF_F32}, KVK_F32, 2e-5},
    {{.architecture = "llama", .type = GGUF_F32, .untied = 1}, KVK_F32, 2e-5},
    {{.architecture = "qwen2", .type = GGUF_F32}, KVK_F32, 2e-5},
    {{.architecture = "llama", .type = GGUF_Q8_0, .untied = 1}, KVK_F32, 2e-5},
    {{.architecture = "qwen2", .type = GGUF_Q4_0}, KVK_F32, 2e-5},
    {{.architecture = "llama", .type = GGUF_Q4_1}, KVK_F32, 5e-5},
    {{.architecture = "llama", .type = GGUF_F32}, KVK_F16, 1e-2},
    {{.architecture = "llama", .type = GGUF_F32}, KVK_BF16, 0.1},
    {{.architecture = "llama", .type = GGUF_F32}, KVK_I8, 0.2},
    {{.architecture = "llama", .type = GGUF_F32}, KVK_F8_E4M3, 0.7},
    {{.architecture = "llama", .type = GGUF_F32}, KVK_I4, 2},
};

enum { N_VARIANTS = sizeof variants / sizeof variants[0] };

START_TEST(a_text_by_chunks)
{
    static const uint32_t chunks[] = {LENGTH, 1, 7, 16};
    const variant *v = &variants[_i];
    open_model(&v->options);
    for (uint32_t groups = 1; groups <= TINY_LAYERS; groups++) {
        runner *r = open_runner(groups, v->kv_type);
        for (uint32_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
            run_alone(r, NULL, chunks[i]);
            ck_assert_double_le(distance(got[0], want[0], LENGTH * V), v->most);
        }
        runner_close(r);
    }
    tiny_close(&tiny);
}
END_TEST

/* Three texts at once, of different lengths of steps, and policies that want to know everything. */
static void run_together(runner *r)
{
    static const char *const policies[] = {NULL, "keep", "keep:importance=2"};
    static const uint32_t chunks[] = {1, 5, 3};
    uint32_t at[3] = {0};
    kvk_seq seqs[3];
    for (int i = 0; i < 3; i++)
        seqs[i] = open_sequence(r, policies[i]);
    for (uint32_t n = 1; n > 0;) {
        runner_entry entries[3];
        uint32_t who[3];
        n = 0;
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t left = LENGTH - at[i];
            if (left == 0)
                continue;
            who[n] = i;
            entries[n++] = (runner_entry){.sequence = seqs[i],
                                          .tokens = text[i] + at[i],
                                          .n = left < chunks[i] ? left : chunks[i],
                                          .want = RUNNER_ALL};
        }
        ck_assert_msg(n == 0 || runner_step(r, entries, n, &error) == 0, "%s", error.text);
        for (uint32_t k = 0; k < n; at[who[k]] += entries[k].n, k++)
            memcpy(got[who[k]] + (size_t)at[who[k]] * V, entries[k].logits, (size_t)entries[k].n * V * sizeof(float));
    }
}

START_TEST(texts_in_a_batch)
{
    open_model(&variants[_i].options);
    for (uint32_t groups = 1; groups <= TINY_LAYERS; groups++) {
        runner *r = open_runner(groups, variants[_i].kv_type);
        run_together(r);
        for (uint32_t i = 0; i < 3; i++)
            ck_assert_double_le(distance(got[i], want[i], LENGTH * V), variants[_i].most);
        ck_assert_int_eq(kvk_audit(runner_cache(r), NULL, NULL), 0);
        runner_close(r);
    }
    tiny_close(&tiny);
}
END_TEST

START_TEST(threads_change_nothing)
{
    static float with_one[LENGTH * V];
    open_model(&variants[0].options);
    runner *r = open_runner(1, KVK_F32);
#ifdef _OPENMP
    omp_set_num_threads(1);
#endif
    run_alone(r, "keep", 20);
    memcpy(with_one, got[0], sizeof with_one);
#ifdef _OPENMP
    omp_set_num_threads(3);
#endif
    run_alone(r, "keep", 20);
    ck_assert_mem_eq(with_one, got[0], sizeof with_one);
    runner_close(r);
    tiny_close(&tiny);
}
END_TEST

/* The masses of all pages of a text that lost none are what a query has to give. */
START_TEST(masses_sum_to_one)
{
    open_model(&variants[2].options);
    for (uint32_t groups = 1; groups <= TINY_LAYERS; groups++) {
        runner *r = open_runner(groups, KVK_F32);
        kvk_seq seq = open_sequence(r, "keep");
        runner_entry entry = {.sequence = seq, .tokens = text[0], .n = LENGTH};
        kvk_eviction_info info = {.size = sizeof info};
        ck_assert_msg(runner_step(r, &entry, 1, &error) == 0, "%s", error.text);
        ck_assert_int_eq(kvk_eviction_info_get(runner_cache(r), seq, &info), 0);
        ck_assert_uint_eq(info.queries, (uint64_t)LENGTH * groups);
        ck_assert_double_eq_tol(info.retained_mean, 1, 1e-5);
        runner_close(r);
    }
    tiny_close(&tiny);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("forward");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, a_text_by_chunks, 0, N_VARIANTS);
    tcase_add_loop_test(t, texts_in_a_batch, 0, N_VARIANTS);
    tcase_add_test(t, threads_change_nothing);
    tcase_add_test(t, masses_sum_to_one);
    return run_tests("forward", t);
}
