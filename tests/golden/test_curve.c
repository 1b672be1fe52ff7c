/* The curve in one pass against a replay at each of its points. */
#include "golden/golden.h"
#include "run_tests.h"
#include "trace/curve.h"

#include <check.h>

enum { POINTS = 64 };

static void list_of(const char *file, replay_mode mode, uint32_t page_tokens, prompt_list *list)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    ck_assert_int_eq(prompt_list_open(list), 0);
    options.mode = mode;
    options.page_tokens = page_tokens;
    options.prompts = list;
    golden_replay(file, &options);
}

static void assert_same(const prompt_list_run *a, const prompt_list_run *b)
{
    ck_assert_uint_eq(a->n_pages, b->n_pages);
    ck_assert_msg(a->page_hits == b->page_hits, "%lu instead of %lu page hits of %u pages", (unsigned long)a->page_hits,
                  (unsigned long)b->page_hits, a->n_pages);
    ck_assert_uint_eq(a->token_hits, b->token_hits);
    ck_assert_uint_eq(a->reclaimed_pages, b->reclaimed_pages);
}

static void check_curve(const char *file, replay_mode mode, uint32_t page_tokens, uint32_t points)
{
    prompt_list list;
    prompt_list_run once[POINTS], each[POINTS];
    list_of(file, mode, page_tokens, &list);
    uint32_t n = curve_sizes(&list, once, points);
    ck_assert_uint_eq(curve_sizes(&list, each, points), n);
    ck_assert_uint_ge(n, points / 2);
    ck_assert(curve_is_stack(&list, KVK_RECLAIM_LRU));
    ck_assert_int_eq(curve_run(&list, once, n), 0);
    ck_assert_int_eq(curve_sweep(&list, each, n), 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_same(&once[i], &each[i]);
        ck_assert_uint_ge(once[i].page_hits, i ? once[i - 1].page_hits : 0);
    }
    ck_assert_uint_eq(once[n - 1].reclaimed_pages, 0);
    prompt_list_close(&list);
}

START_TEST(mooncake)
{
    check_curve(MOONCAKE, REPLAY_PREFIX, 512, POINTS);
}
END_TEST

START_TEST(mooncake_pages_alone)
{
    check_curve(MOONCAKE, REPLAY_FLAT, 512, 12);
}
END_TEST

START_TEST(mooncake_in_larger_pages)
{
    check_curve(MOONCAKE, REPLAY_PREFIX, 1024, 12);
}
END_TEST

/* Prompts end with pages that nothing names, and with partial ones. */
START_TEST(a_session)
{
    check_curve(SESSIONS "/trace_0277.json", REPLAY_PREFIX, 64, POINTS);
    check_curve(SESSIONS "/trace_0277.json", REPLAY_PREFIX, 16, 12);
}
END_TEST

/* The list finds what the trace itself finds, in every order. */
START_TEST(a_list_stands_for_its_trace)
{
    prompt_list list;
    list_of(MOONCAKE, REPLAY_PREFIX, 512, &list);
    for (int order = 0; order < REPLAY_RECLAIMS; order++) {
        replay_options options = REPLAY_OPTIONS_DEFAULT;
        options.n_pages = 5859;
        options.reclaim = (kvk_reclaim)order;
        replay_result r = golden_replay(MOONCAKE, &options);
        prompt_list_run run = {.n_pages = 5859, .reclaim = (kvk_reclaim)order};
        ck_assert_int_eq(prompt_list_replay(&list, &run), 0);
        ck_assert_uint_eq(run.page_hits, r.page_hits);
        ck_assert_uint_eq(run.token_hits, r.token_hits);
        ck_assert_uint_eq(run.reclaimed_pages, r.stats.pages_reclaimed);
    }
    prompt_list_close(&list);
}
END_TEST

int main(void)
{
    if (!golden_is_here())
        return 77;
    TCase *t = tcase_create("curve");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, mooncake);
    tcase_add_test(t, mooncake_pages_alone);
    tcase_add_test(t, mooncake_in_larger_pages);
    tcase_add_test(t, a_session);
    tcase_add_test(t, a_list_stands_for_its_trace);
    return run_tests("curve", t);
}
