/* A server's steps from end to end: reserve, plan, append, attention in two layers, masses into the cache, which evicts
 * by them. What attention gives is compared with attention over contiguous K and V of the tokens that are left. */
#include "run_tests.h"

#include <kvkeep/attention.h>
#include <kvkeep/eviction.h>

#include <math.h>
#include <string.h>

enum { PAGE = 4, N_PAGES = 40, LAYERS = 2, KV_HEADS = 2, HEADS = 4, SIZE = 8, TEXT = 60, SEQS = 2, BUDGET = 16 };

typedef struct text {
    float q[LAYERS][TEXT][HEADS][SIZE], k[LAYERS][TEXT][KV_HEADS][SIZE], v[LAYERS][TEXT][KV_HEADS][SIZE];
    kvk_seq seq;
    uint32_t n;
    int held[TEXT / PAGE];   /* by page number */
    double sum[TEXT / PAGE]; /* of the page's masses, mean over layers and heads */
    uint32_t n_lost;
} text;

static text texts[SEQS]; /* the first one has a budget */
static kvk_cache *cache;
static float memory[N_PAGES][LAYERS][2][KV_HEADS][PAGE][SIZE];
static kvk_kv kv;

static int32_t indptr[SEQS + 1], pages[N_PAGES], positions[N_PAGES], seq_lens[SEQS], query_indptr[SEQS + 1];
static int64_t slots[TEXT];
static kvk_plan plan;

static float o[TEXT][HEADS][SIZE], mean[N_PAGES], peak[N_PAGES], near[N_PAGES * LAYERS * HEADS];

/* ---- the engine's arrays */

static void fill(float *numbers, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        numbers[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
}

static void open_plan(void)
{
    kvk_plan_init(&plan);
    plan.entries_cap = SEQS;
    plan.pages_cap = N_PAGES;
    plan.slots_cap = TEXT;
    plan.indptr = indptr;
    plan.pages = pages;
    plan.positions = positions;
    plan.seq_lens = seq_lens;
    plan.query_indptr = query_indptr;
    plan.slots = slots;
}

static void set_eviction(const char *policy)
{
    kvk_eviction eviction;
    char why[200];
    kvk_eviction_init(&eviction);
    ck_assert_msg(kvk_policy_parse(policy, NULL, &eviction.choice, why, sizeof why) >= 0, "%s", why);
    eviction.budget = BUDGET;
    ck_assert_int_eq(kvk_seq_set_eviction(cache, texts[0].seq, &eviction), 0);
}

static void open_all(const char *policy)
{
    kvk_group group = {.near_layers = LAYERS, .near_heads = HEADS};
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = PAGE;
    config.n_pages = N_PAGES;
    config.groups = &group;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    memset(texts, 0, sizeof texts);
    for (uint32_t i = 0; i < SEQS; i++) {
        fill(texts[i].q[0][0][0], sizeof texts[i].q / sizeof(float), i + 1);
        fill(texts[i].k[0][0][0], sizeof texts[i].k / sizeof(float), i + 11);
        fill(texts[i].v[0][0][0], sizeof texts[i].v / sizeof(float), i + 21);
        ck_assert_int_eq(kvk_seq_open(cache, NULL, &texts[i].seq), 0);
    }
    set_eviction(policy);
    memset(memory, 0xff, sizeof memory);
    kvk_kv_init(&kv, KVK_F32, N_PAGES, PAGE);
    ck_assert_int_eq(kvk_kv_shape(&kv, LAYERS, KV_HEADS, SIZE), 0);
    kv.base = memory;
    open_plan();
}

/* ---- attention over contiguous K and V */

/* exp(s) of the token at `at` with head h's query at p; 0 if its page went or it comes after. */
static double weight(const text *t, uint32_t layer, uint32_t p, uint32_t h, uint32_t at)
{
    double s = 0;
    if (at > p || !t->held[at / PAGE])
        return 0;
    for (uint32_t d = 0; d < SIZE; d++)
        s += (double)t->q[layer][p][h][d] * (double)t->k[layer][at][h / 2][d];
    return exp(s / sqrt(SIZE));
}

/* Adds the masses of a head's query and compares its output. */
static void attend_plainly(text *t, uint32_t layer, uint32_t p, uint32_t h, const float *found)
{
    double sum = 0, out[SIZE] = {0};
    for (uint32_t at = 0; at <= p; at++)
        sum += weight(t, layer, p, h, at);
    for (uint32_t at = 0; at <= p; at++) {
        double share = weight(t, layer, p, h, at) / sum;
        t->sum[at / PAGE] += share / (LAYERS * HEADS);
        for (uint32_t d = 0; d < SIZE; d++)
            out[d] += share * (double)t->v[layer][at][h / 2][d];
    }
    for (uint32_t d = 0; d < SIZE; d++)
        ck_assert_double_eq_tol((double)found[d], out[d], 1e-5);
}

/* ---- a step */

/* Marks the pages that a plan lists. A page that went had none of the first or the last four tokens; where `by_sum`,
 * none of the others that may go has a lower sum. */
static void see_table(text *t, uint32_t entry, int by_sum)
{
    int listed[TEXT / PAGE] = {0};
    for (int32_t i = indptr[entry]; i < indptr[entry + 1]; i++)
        listed[positions[i] / PAGE] = 1;
    uint32_t recent = t->n > 4 ? (t->n - 4) / PAGE : 0;
    for (uint32_t lost = 0; lost < TEXT / PAGE; lost++) {
        if (!t->held[lost] || listed[lost])
            continue;
        ck_assert(lost > 0 && lost < recent);
        for (uint32_t other = 1; by_sum && other < recent; other++)
            ck_assert(!listed[other] || t->sum[lost] <= t->sum[other]);
        t->n_lost++;
    }
    memcpy(t->held, listed, sizeof listed);
}

static void append_layer(uint32_t layer, const uint32_t *n)
{
    for (uint32_t i = 0; i < SEQS; i++) {
        text *t = &texts[i];
        kvk_rows k = {t->k[layer][t->n], KVK_F32, 0, KV_HEADS * SIZE, SIZE}, v = k;
        v.data = t->v[layer][t->n];
        ck_assert_int_eq(kvk_append(&kv, layer, slots + query_indptr[i], n[i], &k, &v), 0);
    }
}

static void attend_layer(uint32_t layer, const uint32_t *n)
{
    static float q[TEXT][HEADS][SIZE];
    kvk_attention a;
    kvk_attention_out out;
    for (uint32_t i = 0; i < SEQS; i++)
        memcpy(q[query_indptr[i]], texts[i].q[layer][texts[i].n], n[i] * sizeof q[0]);
    kvk_attention_init(&a);
    a.n = SEQS;
    a.kv = &kv;
    a.layer = layer;
    a.n_heads = HEADS;
    a.indptr = indptr;
    a.pages = pages;
    a.positions = positions;
    a.seq_lens = seq_lens;
    a.query_indptr = query_indptr;
    a.q = (kvk_rows){q, KVK_F32, 0, (uint64_t)HEADS * SIZE, SIZE};
    kvk_attention_out_init(&out);
    out.o = o;
    out.o_token_stride = (uint64_t)HEADS * SIZE;
    out.o_head_stride = SIZE;
    out.mean = mean;
    out.peak = peak;
    out.near = near;
    out.weight = 1.0f / LAYERS;
    out.near_values = LAYERS * HEADS;
    out.near_first = layer * HEADS;
    ck_assert_int_eq(kvk_attention_reference(&a, &out), 0);
    for (uint32_t i = 0; i < SEQS; i++)
        for (uint32_t j = 0; j < n[i] * HEADS; j++)
            attend_plainly(&texts[i], layer, texts[i].n + j / HEADS, j % HEADS,
                           o[(uint32_t)query_indptr[i] + j / HEADS][j % HEADS]);
}

/* The arrays that attention added to are what the cache takes. */
static void end_batch(kvk_batch batch)
{
    kvk_masses masses = {.size = sizeof masses, .mean = mean, .peak = peak, .near = near};
    masses.stride = N_PAGES;
    masses.near_stride = sizeof near / sizeof *near;
    kvk_batch_result result = {.size = sizeof result, .n = SEQS, .masses = &masses};
    ck_assert_int_ge(kvk_batch_end(cache, batch, &result), 0);
}

static void step(uint32_t n0, uint32_t n1, int by_sum)
{
    const uint32_t n[SEQS] = {n0, n1};
    kvk_batch_entry entries[SEQS] = {{texts[0].seq, n0, 0}, {texts[1].seq, n1, 0}};
    kvk_batch batch;
    for (uint32_t i = 0; i < SEQS; i++)
        ck_assert_int_ge(kvk_reserve(cache, texts[i].seq, n[i], KVK_RECLAIM), 0);
    ck_assert_int_eq(kvk_batch_plan(cache, entries, SEQS, &plan, &batch), 0);
    memset(mean, 0, sizeof mean);
    memset(peak, 0, sizeof peak);
    memset(near, 0, sizeof near);
    for (uint32_t i = 0; i < SEQS; i++)
        see_table(&texts[i], i, by_sum);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        append_layer(layer, n);
        attend_layer(layer, n);
    }
    end_batch(batch);
    for (uint32_t i = 0; i < SEQS; i++)
        texts[i].n += n[i];
}

static void run(const char *policy, int by_sum)
{
    open_all(policy);
    step(10, 3, by_sum);
    while (texts[0].n < TEXT - 3)
        step(1 + (texts[0].n % 7 == 0), 1, by_sum);
    ck_assert_uint_ge(texts[0].n_lost, 8);
    ck_assert_uint_eq(texts[1].n_lost, 0);
}

START_TEST(h2o_evicts_the_page_that_attention_gave_least)
{
    kvk_page_score scores[TEXT / PAGE];
    run("h2o:sinks=4:recent=4", 1);
    int n = kvk_seq_scores(cache, texts[0].seq, 0, scores, TEXT / PAGE);
    ck_assert_int_ge(n, BUDGET / PAGE);
    for (int i = 0; i < n; i++)
        ck_assert_double_eq_tol((double)scores[i].score, texts[0].sum[scores[i].position / PAGE], 1e-4);
    kvk_cache_close(cache);
}
END_TEST

START_TEST(near_peaks_are_taken_too)
{
    run("keep", 0);
    kvk_eviction_info info = {.size = sizeof info};
    ck_assert_int_eq(kvk_eviction_info_get(cache, texts[0].seq, &info), 0);
    ck_assert(info.policy_needs & KVK_NEED_NEAR);
    kvk_cache_close(cache);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("step");
    tcase_add_test(tests, h2o_evicts_the_page_that_attention_gave_least);
    tcase_add_test(tests, near_peaks_are_taken_too);
    return run_tests("step", tests);
}
