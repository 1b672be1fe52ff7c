/* What a runner tells of attention, and steps whose tokens are observed one by one. */
#include "engine/tiny_model.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <string.h>

enum { LENGTH = 60, PAGE = 4, MOST_SEQS = 16 };

static tiny_model tiny;
static runner *r;
static uint32_t text[LENGTH + 1];
static trace_error error;

static void set_up(void)
{
    tiny = tiny_open(&(tiny_options){.architecture = "llama"});
    tiny_text(5, text, LENGTH + 1);
    r = NULL;
}

static void tear_down(void)
{
    runner_close(r);
    tiny_close(&tiny);
}

static void open_runner(uint32_t n_groups, uint32_t watch)
{
    runner_config config = RUNNER_CONFIG(tiny.m);
    runner_close(r);
    config.page_tokens = PAGE;
    config.n_groups = n_groups;
    config.kv_tokens = MOST_SEQS * (LENGTH + PAGE);
    config.watch = watch;
    ck_assert_msg(runner_open(&config, &r, &error) == 0, "%s", error.text);
}

/* A sequence for each policy of the library; returns how many. */
static uint32_t open_all(kvk_seq *seqs)
{
    uint32_t n = 0;
    for (; kvk_policy_at(n); n++) {
        kvk_eviction eviction;
        ck_assert_int_eq(runner_policy(kvk_policy_at(n)->name, 24, &eviction, &error), 0);
        ck_assert_msg(runner_sequence(r, &eviction, &seqs[n], &error) == 0, "%s", error.text);
    }
    return n;
}

/* What became of all of them. */
typedef struct outcome {
    double nll[MOST_SEQS][LENGTH];
    uint32_t positions[MOST_SEQS][TINY_LAYERS][LENGTH / PAGE];
    int pages[MOST_SEQS][TINY_LAYERS];
} outcome;

static void note_pages(const kvk_seq *seqs, uint32_t n, uint32_t n_groups, outcome *out)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t g = 0; g < n_groups; g++)
            out->pages[i][g] = kvk_seq_positions(runner_cache(r), seqs[i], g, out->positions[i][g], LENGTH / PAGE);
}

/* Through the text by steps of so many tokens. */
static void run_text(uint32_t n_groups, uint32_t by, uint32_t each, outcome *out)
{
    kvk_seq seqs[MOST_SEQS];
    open_runner(n_groups == 1 ? 1 : RUNNER_PER_LAYER, 0);
    uint32_t n = open_all(seqs);
    memset(out, 0, sizeof *out);
    for (uint32_t at = 0; at < LENGTH; at += by) {
        runner_entry entries[MOST_SEQS];
        for (uint32_t i = 0; i < n; i++)
            entries[i] = (runner_entry){.sequence = seqs[i],
                                        .tokens = text + at,
                                        .n = by,
                                        .want = RUNNER_SCORES,
                                        .next = text + at + 1,
                                        .nll = out->nll[i] + at,
                                        .each = each};
        ck_assert_msg(runner_step(r, entries, n, &error) == 0, "%s", error.text);
    }
    note_pages(seqs, n, n_groups, out);
    ck_assert_int_eq(kvk_audit(runner_cache(r), NULL, NULL), 0);
}

/* Nothing is evicted within a page, so a page may be computed at once. */
START_TEST(a_page_at_a_time_is_as_token_by_token)
{
    static outcome one_by_one, by_pages;
    for (uint32_t groups = 1; groups <= TINY_LAYERS; groups += TINY_LAYERS - 1) {
        run_text(groups, 1, 0, &one_by_one);
        run_text(groups, PAGE, 1, &by_pages);
        ck_assert_mem_eq(&by_pages, &one_by_one, sizeof by_pages);
    }
}
END_TEST

/* Else the test before would say nothing: as one sum, a page's queries count otherwise. */
START_TEST(a_sum_is_another_observation)
{
    static outcome by_pages, summed;
    run_text(TINY_LAYERS, PAGE, 1, &by_pages);
    run_text(TINY_LAYERS, PAGE, 0, &summed);
    ck_assert_mem_ne(&by_pages.positions, &summed.positions, sizeof by_pages.positions);
}
END_TEST

static void check_row(const runner_masses *m, uint32_t row)
{
    double sum = 0;
    for (uint32_t p = 0; p < m->n_pages; p++) {
        size_t at = (size_t)row * m->n_pages + p;
        sum += (double)m->mean[at];
        ck_assert_double_ge((double)m->peak[at], (double)m->mean[at] - 1e-6);
    }
    ck_assert_double_eq_tol(sum, 1, 1e-5);
}

START_TEST(each_query_gives_its_attention_once)
{
    kvk_seq seqs[2];
    kvk_eviction eviction;
    open_runner(RUNNER_PER_LAYER, KVK_NEED_MEAN | KVK_NEED_PEAK);
    ck_assert_int_eq(runner_policy("window", 24, &eviction, &error), 0);
    ck_assert_int_eq(runner_sequence(r, NULL, &seqs[0], &error), 0);
    ck_assert_int_eq(runner_sequence(r, &eviction, &seqs[1], &error), 0);
    for (uint32_t at = 0; at < LENGTH; at += PAGE) {
        runner_entry entries[2] = {{.sequence = seqs[0], .tokens = text + at, .n = PAGE, .each = 1},
                                   {.sequence = seqs[1], .tokens = text + at, .n = PAGE, .each = 1}};
        ck_assert_msg(runner_step(r, entries, 2, &error) == 0, "%s", error.text);
        for (uint32_t i = 0; i < 2 * TINY_LAYERS; i++) {
            runner_masses m;
            runner_seen(r, i % 2, i / 2, &m);
            uint32_t pages = at / PAGE + 1, most = i % 2 ? 24 / PAGE : LENGTH;
            ck_assert_uint_eq(m.n_pages, pages < most ? pages : most);
            ck_assert_uint_eq(m.n_rows, PAGE);
            ck_assert_int_eq(m.positions[m.n_pages - 1], (int32_t)at);
            for (uint32_t row = 0; row < m.n_rows; row++)
                check_row(&m, row);
        }
    }
}
END_TEST

START_TEST(what_nobody_asked_for_is_not_there)
{
    kvk_seq seq;
    runner_masses m;
    open_runner(1, 0);
    ck_assert_int_eq(runner_sequence(r, NULL, &seq, &error), 0);
    runner_entry entry = {.sequence = seq, .tokens = text, .n = PAGE};
    ck_assert_msg(runner_step(r, &entry, 1, &error) == 0, "%s", error.text);
    runner_seen(r, 0, 0, &m);
    ck_assert_ptr_null(m.mean);
    ck_assert_ptr_null(m.peak);
    ck_assert_uint_eq(m.n_pages, 1);
}
END_TEST

/* The near peaks of the first two pages. */
static const float *near_of_two_pages(const near_heads *near)
{
    kvk_seq seq;
    kvk_eviction eviction;
    runner_config config = RUNNER_CONFIG(tiny.m);
    runner_close(r);
    config.page_tokens = PAGE;
    config.kv_tokens = LENGTH;
    config.near = *near;
    ck_assert_msg(runner_open(&config, &r, &error) == 0, "%s", error.text);
    ck_assert_int_eq(runner_policy("keep", 24, &eviction, &error), 0);
    ck_assert_int_eq(runner_sequence(r, &eviction, &seq, &error), 0);
    runner_entry entry = {.sequence = seq, .tokens = text, .n = 2 * PAGE};
    ck_assert_msg(runner_step(r, &entry, 1, &error) == 0, "%s", error.text);
    return runner_near(r);
}

START_TEST(chosen_heads_have_the_peaks_that_they_have_among_all)
{
    const near_heads some = {KVK_NEAR_MASS, 3, {{1, 2}, {0, 3}, {1, 0}}};
    float all[2][TINY_LAYERS][TINY_HEADS];
    memcpy(all, near_of_two_pages(&(near_heads){.kind = KVK_NEAR_MASS}), sizeof all);
    const float *chosen = near_of_two_pages(&some);
    for (uint32_t i = 0; i < 2 * some.n; i++) {
        near_head x = some.chosen[i % some.n];
        float expected = all[i / some.n][x.layer][x.head];
        ck_assert(expected > 0 && !(chosen[i] < expected) && !(chosen[i] > expected));
    }
}
END_TEST

/* With a group for each layer its heads are counted by themselves. */
START_TEST(chosen_heads_have_places_in_their_groups)
{
    const model_shape shape = {.n_layers = 3, .n_heads = 2};
    const near_heads some = {KVK_NEAR_MASS, 3, {{2, 1}, {0, 1}, {2, 0}}};
    const int32_t together[3][2] = {{-1, 1}, {-1, -1}, {2, 0}}, apart[3][2] = {{-1, 0}, {-1, -1}, {1, 0}};
    const int32_t all[3][2] = {{0, 1}, {0, 1}, {0, 1}};
    int32_t places[3][2];
    kvk_group groups[3] = {{0}};
    near_heads_place(&some, &shape, 3, &places[0][0]);
    ck_assert_mem_eq(places, together, sizeof places);
    near_heads_place(&some, &shape, 1, &places[0][0]);
    ck_assert_mem_eq(places, apart, sizeof places);
    near_heads_place(&(near_heads){.n = 0}, &shape, 1, &places[0][0]);
    ck_assert_mem_eq(places, all, sizeof places);
    near_heads_describe(&some, &shape, 1, groups);
    ck_assert(groups[0].near_layers == 1 && groups[1].near_layers == 0 && groups[2].near_layers == 2);
    ck_assert(groups[0].near_heads == 1 && groups[1].near_heads == 0 && groups[2].near_heads == 1);
    near_heads_describe(&some, &shape, 3, groups);
    ck_assert(groups[0].near_layers == 3 && groups[0].near_heads == 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("runner masses");
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_page_at_a_time_is_as_token_by_token);
    tcase_add_test(t, a_sum_is_another_observation);
    tcase_add_test(t, each_query_gives_its_attention_once);
    tcase_add_test(t, what_nobody_asked_for_is_not_there);
    tcase_add_test(t, chosen_heads_have_the_peaks_that_they_have_among_all);
    tcase_add_test(t, chosen_heads_have_places_in_their_groups);
    return run_tests("runner masses", t);
}
