/* A recording of a real trace, replayed, takes the same pages (each line of it expects them) and counts the same. */
#include "golden/golden.h"
#include "trace/oplog.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static int write_to(void *ctx, const char *bytes, size_t n)
{
    return fwrite(bytes, 1, n, ctx) == n ? 0 : -1;
}

static void assert_same(const kvk_stats *a, const kvk_stats *b)
{
    ck_assert_uint_eq(a->n_pages, b->n_pages);
    ck_assert_uint_eq(a->page_tokens, b->page_tokens);
    ck_assert_uint_eq(a->pages_free, b->pages_free);
    ck_assert_uint_eq(a->pages_cached, b->pages_cached);
    ck_assert_uint_eq(a->pages_limbo, b->pages_limbo);
    ck_assert_uint_eq(a->pages_used, b->pages_used);
    ck_assert_uint_eq(a->sequences, b->sequences);
    ck_assert_uint_eq(a->moves_waiting, b->moves_waiting);
    ck_assert_uint_eq(a->peak_pages_used, b->peak_pages_used);
    ck_assert_uint_eq(a->peak_sequences, b->peak_sequences);
    ck_assert_uint_eq(a->live_tokens, b->live_tokens);
    ck_assert_uint_eq(a->pages_taken, b->pages_taken);
    ck_assert_uint_eq(a->pages_reclaimed, b->pages_reclaimed);
    ck_assert_uint_eq(a->cow_copies, b->cow_copies);
    ck_assert_uint_eq(a->prefix_queries, b->prefix_queries);
    ck_assert_uint_eq(a->prefix_hits, b->prefix_hits);
    ck_assert_uint_eq(a->prefix_page_queries, b->prefix_page_queries);
    ck_assert_uint_eq(a->prefix_page_hits, b->prefix_page_hits);
}

static void record_and_replay(const char *file, replay_options options)
{
    FILE *log = tmpfile();
    ck_assert_ptr_nonnull(log);
    options.record = write_to;
    options.record_ctx = log;
    replay_result first = golden_replay(file, &options);
    ck_assert_int_eq(fflush(log), 0);
    rewind(log);

    oplog_summary second;
    trace_error error;
    int rc = oplog_replay(log, "recording", NULL, &second, &error);
    ck_assert_msg(rc == 0, "%s", error.text);
    ck_assert_uint_eq(second.failed_ops, 0);
    assert_same(&first.stats, &second.stats);
    fclose(log);
}

START_TEST(prefix_in_an_unlimited_pool)
{
    record_and_replay(MOONCAKE, REPLAY_OPTIONS_DEFAULT);
}
END_TEST

START_TEST(prefix_where_pages_are_reclaimed)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.n_pages = 1000;
    record_and_replay(MOONCAKE, options);
}
END_TEST

START_TEST(timed)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_TIMED;
    options.page_tokens = 64;
    record_and_replay(AZURE, options);
}
END_TEST

int main(void)
{
    if (!golden_is_here())
        return 77;
    TCase *t = tcase_create("record");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, prefix_in_an_unlimited_pool);
    tcase_add_test(t, prefix_where_pages_are_reclaimed);
    tcase_add_test(t, timed);
    Suite *s = suite_create("record");
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
