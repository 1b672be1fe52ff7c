/* Requests at their times in pools of many sizes, by hand. */
#include "run_tests.h"
#include "trace/cores.h"
#include "trace/pools.h"

#include <check.h>

enum { MOST = 64 };

/* 2 pages of 4 tokens from 0 and 3 from 10 to 20 us; 2 pages from 5 to 15: 5 at most. */
static char two[] = "arrived_at,num_prefill_tokens,num_decode_tokens\n0,8,2\n0.000005,8,1\n";

static replay_options options_by_hand(void)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.page_tokens = 4;
    options.token_us = 10;
    options.watermark = 0;
    return options;
}

static int sweep_two(const replay_options *options, pool_run *runs, uint32_t *n, trace_error *error)
{
    request_list list;
    replay_result unlimited;
    trace *t = NULL;
    FILE *in = fmemopen(two, sizeof two - 1, "r");
    ck_assert_ptr_nonnull(in);
    ck_assert_int_eq(request_list_open(&list), 0);
    ck_assert_int_eq(trace_open(in, "t", &TRACE_OPTIONS_DEFAULT, &t, error), 0);
    ck_assert_int_eq(pools_measure(t, options, &list, &unlimited, error), 0);
    ck_assert_uint_eq(list.n, 2);
    ck_assert_uint_eq(unlimited.stats.peak_pages_used, 5);
    ck_assert_uint_eq(unlimited.makespan_us, 20);
    trace_close(t);
    *n = pools_sizes(unlimited.stats.peak_pages_used, runs, *n);
    int rc = pools_sweep(&list, options, runs, *n, error);
    request_list_close(&list);
    fclose(in);
    return rc;
}

static void check_run(const pool_run *run, const replay_result *want)
{
    const replay_result *got = &run->result;
    ck_assert_str_eq(run->error.text, "");
    ck_assert_uint_eq(run->n_pages, want->n_pages);
    ck_assert_uint_eq(got->n_pages, want->n_pages);
    ck_assert_uint_eq(got->requests, 2);
    ck_assert_uint_eq(got->rejected, want->rejected);
    ck_assert_uint_eq(got->served_output_tokens, want->served_output_tokens);
    ck_assert_uint_eq(got->makespan_us, want->makespan_us);
    ck_assert_uint_eq(got->wait_us_p50, want->wait_us_p50);
    ck_assert_uint_eq(got->wait_us_p99, want->wait_us_p99);
    ck_assert_uint_eq(got->stats.preemptions, want->stats.preemptions);
    ck_assert_uint_eq(got->recomputed_tokens, want->recomputed_tokens);
    ck_assert_uint_eq(got->stats.swapped_out_pages, want->stats.swapped_out_pages);
}

/* A pool of 1 has room for neither, one of 2 for the second only. In one of 3 the second waits from 5 to 20 and ends at
 * 30. In one of 4 it comes in at once, but gives its 2 pages up at 10, and runs again from 20 to 30. 5 are enough. */
static void check_by_hand(kvk_preempt_how how)
{
    bool swaps = how == KVK_PREEMPT_SWAP;
    const replay_result want[] = {
        {.n_pages = 1, .rejected = 2},
        {.n_pages = 2, .rejected = 1, .served_output_tokens = 1, .makespan_us = 15},
        {.n_pages = 3, .served_output_tokens = 3, .makespan_us = 30, .wait_us_p99 = 15},
        {.n_pages = 4,
         .served_output_tokens = 3,
         .makespan_us = 30,
         .recomputed_tokens = swaps ? 0 : 8,
         .stats = {.preemptions = 1, .swapped_out_pages = swaps ? 2 : 0}},
        {.n_pages = 5, .served_output_tokens = 3, .makespan_us = 20},
    };
    replay_options options = options_by_hand();
    options.preempt = how;
    pool_run runs[16];
    uint32_t n = 16;
    trace_error error = {""};
    ck_assert_msg(sweep_two(&options, runs, &n, &error) == 0, "%s", error.text);
    ck_assert_uint_eq(n, 5);
    for (uint32_t i = 0; i < n; i++)
        check_run(&runs[i], &want[i]);
}

START_TEST(two_requests_in_five_pools)
{
    check_by_hand(KVK_PREEMPT_RECOMPUTE);
    check_by_hand(KVK_PREEMPT_SWAP);
}
END_TEST

/* Pools of 1 and 2 cannot leave 2 pages free; the error of the smaller one is told. */
START_TEST(the_first_error_is_told)
{
    replay_options options = options_by_hand();
    options.watermark = 2;
    options.watermark_is_share = false;
    for (int i = 0; i < 50; i++) {
        pool_run runs[16];
        uint32_t n = 16;
        trace_error error = {""};
        ck_assert_int_eq(sweep_two(&options, runs, &n, &error), TRACE_BAD_INPUT);
        ck_assert_str_eq(error.text, "t: field watermark: leaves nothing of 1 pages");
    }
}
END_TEST

START_TEST(sizes_from_a_quarter)
{
    pool_run runs[16];
    ck_assert_uint_eq(pools_sizes(1000, runs, 4), 4);
    ck_assert_uint_eq(runs[0].n_pages, 250);
    ck_assert_uint_eq(runs[1].n_pages, 500);
    ck_assert_uint_eq(runs[2].n_pages, 750);
    ck_assert_uint_eq(runs[3].n_pages, 1000);
    ck_assert_uint_eq(pools_sizes(7, runs, 1), 1);
    ck_assert_uint_eq(runs[0].n_pages, 7);
    ck_assert_uint_eq(pools_sizes(1, runs, 16), 1);
    ck_assert_uint_eq(runs[0].n_pages, 1);
    ck_assert_uint_eq(pools_sizes(0, runs, 16), 0);
    ck_assert_uint_eq(pools_sizes(KVK_MAX_PAGES, runs, 2), 2);
    ck_assert_uint_eq(runs[1].n_pages, KVK_MAX_PAGES);
}
END_TEST

/* ---- Pieces of work ---------------------------------------------------------------------------------------------- */

/* Marks a piece; those from 40 on fail. */
static int mark(void *ctx, uint32_t i)
{
    int *seen = ctx;
    seen[i]++;
    return i < 40 ? 0 : -(int)i;
}

START_TEST(each_piece_once_and_the_first_failure)
{
    int seen[MOST] = {0};
    ck_assert_int_eq(cores_run(mark, seen, 0), 0);
    ck_assert_int_eq(cores_run(mark, seen, 40), 0);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(seen[i], 1);
    ck_assert_int_eq(cores_run(mark, seen, MOST), -40);
    for (int i = 0; i < MOST; i++)
        ck_assert_int_le(seen[i], 2);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pools");
    tcase_add_test(t, two_requests_in_five_pools);
    tcase_add_test(t, the_first_error_is_told);
    tcase_add_test(t, sizes_from_a_quarter);
    tcase_add_test(t, each_piece_once_and_the_first_failure);
    return run_tests("trace_pools", t);
}
