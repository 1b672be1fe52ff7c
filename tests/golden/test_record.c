/* A recording of a real trace, replayed, takes the same pages (each line of it expects them) and counts the same. */
#include "golden/golden.h"
#include "run_tests.h"
#include "trace/oplog.h"

#include <check.h>
#include <stdio.h>

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
    ck_assert_uint_eq(a->batches_in_flight, b->batches_in_flight);
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
    ck_assert_uint_eq(a->pages_pinned, b->pages_pinned);
    ck_assert_uint_eq(a->host_pages_used, b->host_pages_used);
    ck_assert_uint_eq(a->preemptions, b->preemptions);
    ck_assert_uint_eq(a->swapped_out_pages, b->swapped_out_pages);
    ck_assert_uint_eq(a->swapped_in_pages, b->swapped_in_pages);
    ck_assert_uint_eq(a->partial_hits, b->partial_hits);
}

static const struct {
    const char *file; /* NULL: all of SESSIONS */
    replay_mode mode;
    uint32_t page_tokens; /* 0: the trace's */
    uint32_t n_pages;
    kvk_preempt_how preempt;
} cases[] = {
    {MOONCAKE, REPLAY_PREFIX, 0, REPLAY_UNLIMITED, KVK_PREEMPT_RECOMPUTE},
    {MOONCAKE, REPLAY_PREFIX, 0, 1000, KVK_PREEMPT_RECOMPUTE},
    {MOONCAKE, REPLAY_TIMED, 0, 900, KVK_PREEMPT_RECOMPUTE},
    {AZURE, REPLAY_TIMED, 64, REPLAY_UNLIMITED, KVK_PREEMPT_RECOMPUTE},
    {AZURE, REPLAY_TIMED, 64, 600, KVK_PREEMPT_SWAP},
    {VIDUR, REPLAY_TIMED, 64, REPLAY_UNLIMITED, KVK_PREEMPT_RECOMPUTE},
    {ETALON_SHAREGPT, REPLAY_LENGTHS, 0, REPLAY_UNLIMITED, KVK_PREEMPT_RECOMPUTE},
    {ETALON_BWB, REPLAY_LENGTHS, 0, REPLAY_UNLIMITED, KVK_PREEMPT_RECOMPUTE},
    {NULL, REPLAY_PREFIX, 0, REPLAY_UNLIMITED, KVK_PREEMPT_RECOMPUTE},
    {NULL, REPLAY_TURNS, 0, 5000, KVK_PREEMPT_SWAP},
    {"servegen/offline_trace_a.first93.jsonl", REPLAY_PREFIX, 0, REPLAY_UNLIMITED, KVK_PREEMPT_RECOMPUTE},
};

static replay_result replay_case(int i, FILE *log)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = cases[i].mode;
    options.page_tokens = cases[i].page_tokens;
    options.n_pages = cases[i].n_pages;
    options.preempt = cases[i].preempt;
    options.record = write_to;
    options.record_ctx = log;
    return cases[i].file ? golden_replay(cases[i].file, &options) : golden_replay_sessions(&options);
}

START_TEST(the_recording_does_the_same)
{
    FILE *log = tmpfile();
    ck_assert_ptr_nonnull(log);
    replay_result first = replay_case(_i, log);
    ck_assert_int_eq(fflush(log), 0);
    rewind(log);

    oplog_summary second;
    trace_error error;
    int rc = oplog_replay(log, "recording", NULL, &second, &error);
    ck_assert_msg(rc == 0, "%s", error.text);
    if (cases[_i].n_pages == REPLAY_UNLIMITED) /* else calls for pages are refused, as they were the first time */
        ck_assert_uint_eq(second.failed_ops, 0);
    assert_same(&first.stats, &second.stats);
    fclose(log);
}
END_TEST

int main(void)
{
    if (!golden_is_here())
        return 77;
    TCase *t = tcase_create("record");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, the_recording_does_the_same, 0, sizeof cases / sizeof cases[0]);
    return run_tests("record", t);
}
