/* Sessions whose requests wait for each other, small enough to be worked out by hand. */
#include "run_tests.h"
#include "unit/trace_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define DOCUMENT(requests) "{\"block_size\": 64, \"hash_id_scope\": \"local\", \"requests\": [" requests "]}\n"
#define TURN(t, in, out, ids, rest)                                                                                    \
    "{\"t\": " t ", \"type\": \"n\", \"in\": " in ", \"out\": " out ", \"hash_ids\": " ids rest "}"
#define AGENT(t, ms, requests)                                                                                         \
    "{\"t\": " t ", \"type\": \"subagent\", \"duration_ms\": " ms ", \"requests\": [" requests "]}"
#define API(s) ", \"api_time\": " s
#define THINK(s) ", \"think_time\": " s

/* A token takes 1 s where the trace does not say how long a request took. */
static replay_options turns_options(void)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_TURNS;
    options.token_us = 1000000;
    options.audit = true;
    return options;
}

/* 0 .. 5: 130 tokens, 3 pages. 6 .. 7: the sub-agent, 1 page; then at 10, 63 tokens and no output: gone at once.
 * 25 .. 34: 131 tokens, of which 2 pages are found. */
START_TEST(a_session_and_its_sub_agent)
{
    replay_options options = turns_options();
    replay_result r =
        text_replay(DOCUMENT(TURN("0", "130", "3", "[1, 2]", API("5.0")) "," AGENT(
                        "20.0", "14000",
                        TURN("0.0", "64", "1", "[7]", API("1.0")) "," TURN(
                            "4.0", "63", "0", "[]", THINK("3.0"))) "," TURN("25", "131", "9", "[1, 2]", THINK("20"))),
                    &options);
    ck_assert_uint_eq(r.requests, 4);
    ck_assert_uint_eq(r.page_refs, 2 + 1 + 0 + 2);
    ck_assert_uint_eq(r.page_hits, 2);
    ck_assert_uint_eq(r.token_hits, 128);
    ck_assert_uint_eq(r.stats.peak_pages_used, 3);
    ck_assert_uint_eq(r.stats.peak_sequences, 1);
    ck_assert_uint_eq(r.stats.pages_taken, 3 + 1 + 1 + 1);
    ck_assert_uint_eq(r.stats.pages_used, 0);
    ck_assert_uint_eq(r.makespan_us, 34000000);
}
END_TEST

/* Two sub-agents, started together 1 s after the session's request and in the midst of its next one. */
START_TEST(sub_agents_run_beside_each_other)
{
    replay_options options = turns_options();
    replay_result r = text_replay(
        DOCUMENT(TURN("0", "64", "1", "[1]", API("1")) "," AGENT(
            "12", "10000",
            TURN("0", "64", "1", "[2]", API("10"))) "," AGENT("5", "3000",
                                                              TURN("0", "64", "1", "[2]",
                                                                   API("3"))) "," TURN("2", "65", "1", "[1]",
                                                                                       API("1") THINK("1"))),
        &options);
    ck_assert_uint_eq(r.stats.peak_sequences, 3);
    ck_assert_uint_eq(r.stats.peak_pages_used, 1 + 1 + 2); /* the same block in two pages: the last token is computed */
    ck_assert_uint_eq(r.page_hits, 1);
    ck_assert_uint_eq(r.makespan_us, 12000000);
}
END_TEST

/* The second starts when the first ends, and finds what that has just given back. */
START_TEST(at_equal_times_end_then_start)
{
    replay_options options = turns_options();
    replay_result r = text_replay(
        DOCUMENT(TURN("0", "64", "1", "[1]", API("1")) "," TURN("1", "65", "1", "[1]", API("1") THINK("0"))), &options);
    ck_assert_uint_eq(r.stats.peak_sequences, 1);
    ck_assert_uint_eq(r.stats.peak_pages_used, 2);
    ck_assert_uint_eq(r.page_hits, 1);
    ck_assert_uint_eq(r.makespan_us, 2000000);
}
END_TEST

typedef struct starts {
    uint64_t number[8], start_us[8];
    uint32_t n;
} starts;

static void keep_start(void *ctx, const replay_request *request)
{
    starts *s = ctx;
    s->number[s->n] = request->number;
    s->start_us[s->n++] = request->arrival_us;
}

/* 63 tokens and one more each second: the 65th comes at 2 s, and at 4 s all is gone. */
START_TEST(output_grows_evenly_over_the_service_time)
{
    replay_options options = turns_options();
    options.samples = calloc(1, sizeof *options.samples);
    ck_assert_ptr_nonnull(options.samples);
    text_replay(DOCUMENT(TURN("0", "63", "4", "[]", API("4"))), &options);
    const samples *s = options.samples;
    ck_assert_uint_eq(s->n, 3);
    ck_assert_double_eq(s->points[0].x, 0);
    ck_assert_double_eq(s->points[0].a, 64);
    ck_assert_double_eq(s->points[1].x, 2);
    ck_assert_double_eq(s->points[1].a, 128);
    ck_assert_double_eq(s->points[2].x, 4);
    ck_assert_double_eq(s->points[2].a, 0);
    free(options.samples);
}
END_TEST

/* The recorded time of the second is 99 s; what counts is the end of the first, 3 tokens, and 2 s of thought. */
START_TEST(requests_are_shown_when_they_start)
{
    starts seen = {.n = 0};
    replay_options options = turns_options();
    options.on_request = keep_start;
    options.ctx = &seen;
    text_replay(DOCUMENT(TURN("0", "1", "3", "[]", "") "," TURN("99", "1", "1", "[]", THINK("2"))), &options);
    ck_assert_uint_eq(seen.n, 2);
    ck_assert_uint_eq(seen.number[1], 2);
    ck_assert_uint_eq(seen.start_us[1], 5000000);
}
END_TEST

/* Smaller pages: of 127 tokens 4 are named, 3 are full and unnamed, one is partial; the second prompt finds 4. */
START_TEST(unnamed_pages_are_not_found)
{
    replay_options options = turns_options();
    options.page_tokens = 16;
    replay_result r =
        text_replay(DOCUMENT(TURN("0", "127", "40", "[1]", API("1")) "," TURN("1", "127", "1", "[1]", "")), &options);
    ck_assert_uint_eq(r.page_refs, 8);
    ck_assert_uint_eq(r.page_hits, 4);
    ck_assert_uint_eq(r.stats.pages_taken, 11 + 4);
}
END_TEST

/* The first needs 5 pages of 3 and is refused, so that the second starts 2 s later. The third takes one page from the
 * cache, and of the 3 that it then holds one is new; the fourth finds nothing any more. */
START_TEST(a_pool_of_three_pages)
{
    replay_options options = turns_options();
    options.n_pages = 3;
    replay_result r = text_replay(
        DOCUMENT(TURN("0", "300", "1", "[1, 2, 3, 4]", API("1")) "," TURN(
            "0", "129", "1", "[1, 2]",
            API("1") THINK("2")) "," TURN("0", "129", "1", "[1, 3]",
                                          API("1") THINK(
                                              "0")) "," TURN("0", "65", "1", "[5]",
                                                             API("1")) "," TURN("0", "129", "1", "[6, 7]",
                                                                                API("1")) "," TURN("0", "65", "1",
                                                                                                   "[1]", API("1"))),
        &options);
    ck_assert_uint_eq(r.requests, 6);
    ck_assert_uint_eq(r.rejected, 1);
    ck_assert_uint_eq(r.page_refs, 2 + 2 + 1 + 2 + 1);
    ck_assert_uint_eq(r.page_hits, 1);
    ck_assert_uint_eq(r.makespan_us, 7000000);
    ck_assert_uint_eq(r.stats.pages_used, 0);
}
END_TEST

/* Two sub-agents from 1 s on, with 2 pages each, who want a third one of 5 at 2 s. The second gives way until the first
 * ends at 4 s, and finds its prompt still there but for the page with the token that attach leaves to compute. */
START_TEST(who_gave_way_finds_its_prompt)
{
    replay_options options = turns_options();
    options.n_pages = 5;
    options.page_tokens = 32;
    replay_result r = text_replay(
        DOCUMENT(TURN("0", "1", "1", "[]", API("1")) "," AGENT("1", "1000", TURN("0", "64", "3", "[1]", "")) "," AGENT(
            "1", "1000", TURN("0", "64", "3", "[2]", ""))),
        &options);
    ck_assert_uint_eq(r.stats.preemptions, 1);
    ck_assert_uint_eq(r.recomputed_tokens, 64 - 32);
    ck_assert_uint_eq(r.page_hits, 0);
    ck_assert_uint_eq(r.makespan_us, 7000000);
}
END_TEST

START_TEST(what_it_cannot_do_is_refused)
{
    static const char one[] = DOCUMENT(TURN("0", "1", "9", "[]", ""));
    replay_options options = turns_options();
    options.page_tokens = 48;
    text_replay_fails(one, &options, TRACE_BAD_INPUT,
                      "t: a page of 48 tokens is no part and no multiple of the trace's 64");
    options = turns_options();
    options.token_us = UINT64_MAX / 4;
    text_replay_fails(one, &options, TRACE_BAD_INPUT, "t: field requests[0]: the time passes 2^64 microseconds");
    options = turns_options();
    options.session_rate = 1e-300;
    text_replay_fails(one, &options, TRACE_BAD_INPUT, "t: field requests[0]: the time passes 2^64 microseconds");
    text_replay_fails("arrived_at,num_prefill_tokens,num_decode_tokens\n0,1,1\n", &options, TRACE_BAD_INPUT,
                      "t: vidur traces do not say how requests follow each other");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("turns");
    tcase_add_test(t, a_session_and_its_sub_agent);
    tcase_add_test(t, sub_agents_run_beside_each_other);
    tcase_add_test(t, at_equal_times_end_then_start);
    tcase_add_test(t, output_grows_evenly_over_the_service_time);
    tcase_add_test(t, requests_are_shown_when_they_start);
    tcase_add_test(t, unnamed_pages_are_not_found);
    tcase_add_test(t, a_pool_of_three_pages);
    tcase_add_test(t, who_gave_way_finds_its_prompt);
    tcase_add_test(t, what_it_cannot_do_is_refused);
    return run_tests("trace_turns", t);
}
