/* Pools of a size on a clock: who waits, who gives way and when, by hand. Pages of 4 tokens, one every 10 us. */
#include "run_tests.h"
#include "unit/trace_text.h"

#include <check.h>

#define VIDUR "arrived_at,num_prefill_tokens,num_decode_tokens\n"

static replay_options pool_of(uint32_t n_pages, uint32_t watermark)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_TIMED;
    options.page_tokens = 4;
    options.token_us = 10;
    options.n_pages = n_pages;
    options.watermark = watermark;
    options.watermark_is_share = false;
    options.audit = true;
    return options;
}

/* The first has 2 pages from 0 and 3 from 10 to 20; the second, here at 5, needs 2 and runs from 20 to 30. */
START_TEST(two_that_cannot_run_together)
{
    replay_options options = pool_of(3, 0);
    replay_result r = text_replay(VIDUR "0,8,2\n0.000005,8,1\n", &options);
    ck_assert_uint_eq(r.peak_running, 1);
    ck_assert_uint_eq(r.stats.preemptions, 0);
    ck_assert_uint_eq(r.page_us, 2 * 10 + 3 * 10 + 2 * 10);
    ck_assert_uint_eq(r.token_us, 8 * 10 + 9 * 10 + 8 * 10);
    ck_assert_uint_eq(r.makespan_us, 30);
    ck_assert_uint_eq(r.wait_us_p50, 0);
    ck_assert_uint_eq(r.wait_us_p99, 15);
    ck_assert_double_eq(r.withheld_page_us, 0);
}
END_TEST

/* Both have a page and want a second one at 10. The first gets the last; the second is the youngest and gives way,
 * with its 4 tokens, until the first ends at 30. It then goes on: 5 tokens from 40, 6 from 50, gone at 60. */
static void check_one_that_gives_way(kvk_preempt_how how)
{
    replay_options options = pool_of(3, 0);
    options.preempt = how;
    replay_result r = text_replay(VIDUR "0,4,3\n0,4,3\n", &options);
    ck_assert_uint_eq(r.peak_running, 2);
    ck_assert_uint_eq(r.stats.preemptions, 1);
    ck_assert_uint_eq(r.recomputed_tokens, how == KVK_PREEMPT_SWAP ? 0 : 4);
    ck_assert_uint_eq(r.stats.swapped_out_pages, how == KVK_PREEMPT_SWAP ? 1 : 0);
    ck_assert_uint_eq(r.stats.swapped_in_pages, r.stats.swapped_out_pages);
    ck_assert_uint_eq(r.page_us, 2 * 10 + 2 * 20 + 1 * 10 + 2 * 20);
    ck_assert_uint_eq(r.token_us, 8 * 10 + (5 + 6) * 10 + (4 + 5 + 6) * 10);
    ck_assert_uint_eq(r.makespan_us, 60);
    ck_assert_uint_eq(r.wait_us_p99, 0);
    ck_assert_double_eq(r.usage_when_reclaiming_p50, 9.0 / 12);
    ck_assert_uint_eq(r.stats.pages_used + r.stats.host_pages_used + r.stats.sequences, 0);
}

START_TEST(the_youngest_gives_way)
{
    check_one_that_gives_way(KVK_PREEMPT_RECOMPUTE);
    check_one_that_gives_way(KVK_PREEMPT_SWAP);
}
END_TEST

/* The first, of 7 tokens, wants its third page at 20, when the second has made one token since 5: it gives way in the
 * middle of its second token. From 50 on it has 4 tokens, from 60 on 5, and is gone at 70. */
static void check_another_that_gives_way(kvk_preempt_how how)
{
    replay_options options = pool_of(3, 0);
    options.preempt = how;
    replay_result r = text_replay(VIDUR "0,7,5\n0.000005,3,3\n", &options);
    ck_assert_uint_eq(r.stats.preemptions, 1);
    ck_assert_uint_eq(r.recomputed_tokens, how == KVK_PREEMPT_SWAP ? 0 : 4);
    ck_assert_uint_eq(r.page_us, 2 * 5 + 3 * 15 + 3 * 30 + 1 * 10 + 2 * 10);
    ck_assert_uint_eq(r.token_us, (7 + 8 + 9 + 10 + 11) * 10 + 3 * 10 + 4 * 5 + (4 + 5) * 10);
    ck_assert_uint_eq(r.makespan_us, 70);
    ck_assert_double_eq(r.usage_when_reclaiming_p50, (8 + 4) / 12.0);
}

START_TEST(who_came_first_takes_from_who_came_later)
{
    check_another_that_gives_way(KVK_PREEMPT_RECOMPUTE);
    check_another_that_gives_way(KVK_PREEMPT_SWAP);
}
END_TEST

START_TEST(a_full_host_pool_means_to_recompute)
{
    replay_options options = pool_of(4, 0);
    options.preempt = KVK_PREEMPT_SWAP;
    options.host_pages = 1;
    replay_result r = text_replay(VIDUR "0,4,3\n0,8,3\n", &options);
    ck_assert_uint_eq(r.stats.preemptions, 1);
    ck_assert_uint_eq(r.recomputed_tokens, 8);
    ck_assert_uint_eq(r.stats.swapped_out_pages, 0);
}
END_TEST

/* The second may not come back while the third, which is smaller, would fit: it stands at the head of the queue. */
START_TEST(who_gave_way_stands_first)
{
    replay_options options = pool_of(3, 0);
    replay_result r = text_replay(VIDUR "0,4,3\n0,4,3\n0.000015,1,1\n", &options);
    ck_assert_uint_eq(r.stats.preemptions, 1);
    ck_assert_uint_eq(r.wait_us_p99, 15);
    ck_assert_uint_eq(r.makespan_us, 60);
}
END_TEST

START_TEST(what_never_fits_is_refused_at_once)
{
    replay_options options = pool_of(3, 0);
    replay_result r = text_replay(VIDUR "0,13,1\n0,12,2\n0,12,1\n0,1,0\n", &options);
    ck_assert_uint_eq(r.requests, 4);
    ck_assert_uint_eq(r.rejected, 2);
    ck_assert_uint_eq(r.makespan_us, 10);
    options = pool_of(3, 1); /* with the watermark beside it */
    ck_assert_uint_eq(text_replay(VIDUR "0,9,1\n0,8,1\n", &options).rejected, 1);
    options = pool_of(3, 3);
    text_replay_fails(VIDUR "0,9,1\n", &options, TRACE_BAD_INPUT, "t: field watermark: leaves nothing of 3 pages");
}
END_TEST

/* 2 + 1 pages of 4, one of which stays free: the third waits for the others' end at 10. */
START_TEST(the_watermark_stays_free)
{
    replay_options options = pool_of(4, 1);
    replay_result r = text_replay(VIDUR "0,8,1\n0,4,1\n0,4,1\n", &options);
    ck_assert_uint_eq(r.peak_running, 2);
    ck_assert_uint_eq(r.wait_us_p99, 10);
    ck_assert_double_eq(r.withheld_page_us, 1 * 10);
    options.watermark = 0.25;
    options.watermark_is_share = true;
    ck_assert_uint_eq(text_replay(VIDUR "0,8,1\n", &options).watermark, 1);
}
END_TEST

/* 4 tokens from 0, 8 from 10, 10 from 20, the first output token would be at 30. */
START_TEST(a_prompt_in_chunks)
{
    replay_options options = pool_of(REPLAY_UNLIMITED, 0);
    options.chunk = 4;
    replay_result r = text_replay(VIDUR "0,10,2\n", &options);
    ck_assert_uint_eq(r.page_us, 1 * 10 + 2 * 10 + 3 * 20);
    ck_assert_uint_eq(r.token_us, 4 * 10 + 8 * 10 + 10 * 10 + 11 * 10);
    ck_assert_uint_eq(r.makespan_us, 40);
}
END_TEST

/* The second, whose prompt of 12 would fit when it comes, finds no page for its last chunk at 25, since the first took
 * one at 10; it begins again when that has ended at 50. */
START_TEST(a_chunk_that_finds_no_page)
{
    replay_options options = pool_of(4, 0);
    options.chunk = 4;
    replay_result r = text_replay(VIDUR "0,4,5\n0.000005,12,1\n", &options);
    ck_assert_uint_eq(r.stats.preemptions, 1);
    ck_assert_uint_eq(r.recomputed_tokens, 8);
    ck_assert_uint_eq(r.makespan_us, 50 + 10 + 10 + 10);
    ck_assert_uint_eq(r.token_us, (4 + 5 + 6 + 7 + 8) * 10 + (4 + 8) * 10 + (4 + 8 + 12) * 10);
}
END_TEST

/* Of 3 pages the first prompt has one, and needs one more at 10: the second, of 2, is let in when it has gone at 20. */
START_TEST(a_prompt_leaves_room_for_those_begun)
{
    replay_options options = pool_of(3, 0);
    options.chunk = 4;
    replay_result r = text_replay(VIDUR "0,8,1\n0,8,1\n", &options);
    ck_assert_uint_eq(r.stats.preemptions, 0);
    ck_assert_uint_eq(r.wait_us_p99, 20);
    ck_assert_uint_eq(r.makespan_us, 40);
}
END_TEST

typedef struct simulated {
    const char *text;
    uint32_t pages, watermark, chunk, host_pages; /* host_pages 0: by recompute */
    uint64_t rejected, preemptions, recomputed_tokens, swapped_pages, wait_us_p50, wait_us_p99, makespan_us;
    uint32_t peak_pages;
    uint64_t page_allocations;
} simulated;

/* Random requests, and what a simulation says of them that was written apart from this program, in another language: it
 * goes from microsecond to microsecond and token to token. */
static const simulated by_another_program[] = {
    {VIDUR "0.000064,12,14\n0.000086,9,2\n0.000096,11,5\n0.000196,4,14\n0.000228,7,14\n0.000366,19,1\n0.00037,8,5\n0."
           "000399,17,5\n",
     8, 1, 3, 0, 0, 3, 32, 0, 30, 175, 674, 8, 46},
    {VIDUR "0.000007,15,14\n0.000014,17,20\n0.000025,1,5\n0.000043,7,9\n0.000179,2,14\n0.000182,10,5\n0.00021,15,14\n0."
           "000302,7,14\n",
     11, 0, 3, 2, 0, 6, 68, 4, 8, 225, 737, 11, 64},
    {VIDUR "0.000061,14,5\n0.000062,13,14\n0.000093,18,9\n0.000164,2,5\n0.000275,12,5\n0.000284,14,14\n0.000286,11,"
           "20\n0.000307,5,9\n",
     10, 0, 3, 0, 0, 3, 39, 0, 58, 96, 735, 10, 54},
    {VIDUR "0.000009,9,20\n0.000013,20,9\n0.000151,20,2\n0.000162,7,20\n0.000191,8,1\n0.000194,14,9\n0.0002,19,2\n0."
           "000355,3,1\n",
     9, 0, 3, 16, 0, 3, 0, 13, 157, 339, 649, 9, 54},
    {VIDUR "0.000003,13,20\n0.000024,18,20\n0.000086,13,14\n0.000102,5,9\n0.000151,1,14\n0.000217,1,20\n0.000235,5,"
           "1\n0.00031,4,2\n",
     11, 0, 3, 0, 0, 7, 71, 0, 183, 371, 763, 11, 61},
    {VIDUR "0.000011,14,20\n0.000014,8,9\n0.000077,5,20\n0.000162,1,2\n0.000165,2,20\n0.000274,11,14\n0.000352,18,1\n0."
           "000384,7,9\n",
     9, 0, 0, 16, 0, 5, 0, 18, 46, 134, 601, 9, 59},
    {VIDUR "0.000091,20,5\n0.00011,5,20\n0.000136,11,9\n0.000174,4,14\n0.000213,16,1\n0.000312,7,1\n0.000353,18,5\n0."
           "000394,20,14\n",
     6, 0, 3, 0, 1, 4, 36, 0, 91, 348, 801, 6, 43},
    {VIDUR "0.000015,14,20\n0.000102,20,14\n0.000112,7,20\n0.000267,14,20\n0.000285,15,5\n0.00032,6,2\n0.000354,4,9\n0."
           "000374,3,1\n",
     12, 1, 7, 16, 0, 3, 0, 16, 113, 215, 625, 12, 61},
};

START_TEST(as_another_program_says)
{
    const simulated *x = &by_another_program[_i];
    replay_options options = pool_of(x->pages, x->watermark);
    options.chunk = x->chunk;
    options.preempt = x->host_pages ? KVK_PREEMPT_SWAP : KVK_PREEMPT_RECOMPUTE;
    options.host_pages = x->host_pages;
    replay_result r = text_replay(x->text, &options);
    ck_assert_uint_eq(r.rejected, x->rejected);
    ck_assert_uint_eq(r.stats.preemptions, x->preemptions);
    ck_assert_uint_eq(r.recomputed_tokens, x->recomputed_tokens);
    ck_assert_uint_eq(r.stats.swapped_out_pages, x->swapped_pages);
    ck_assert_uint_eq(r.wait_us_p50, x->wait_us_p50);
    ck_assert_uint_eq(r.wait_us_p99, x->wait_us_p99);
    ck_assert_uint_eq(r.makespan_us, x->makespan_us);
    ck_assert_uint_eq(r.stats.peak_pages_used, x->peak_pages);
    ck_assert_uint_eq(r.stats.pages_taken, x->page_allocations);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("serve");
    tcase_add_test(t, two_that_cannot_run_together);
    tcase_add_test(t, the_youngest_gives_way);
    tcase_add_test(t, who_came_first_takes_from_who_came_later);
    tcase_add_test(t, a_full_host_pool_means_to_recompute);
    tcase_add_test(t, who_gave_way_stands_first);
    tcase_add_test(t, what_never_fits_is_refused_at_once);
    tcase_add_test(t, the_watermark_stays_free);
    tcase_add_test(t, a_prompt_in_chunks);
    tcase_add_test(t, a_prompt_leaves_room_for_those_begun);
    tcase_add_loop_test(t, as_another_program_says, 0, sizeof by_another_program / sizeof by_another_program[0]);
    tcase_add_test(t, a_chunk_that_finds_no_page);
    return run_tests("trace_serve", t);
}
