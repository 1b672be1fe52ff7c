/* kv-cache-tester's documents: order, times, sub-agents, scopes, and the exact line that answers to a bad one. */
#include "run_tests.h"
#include "unit/trace_text.h"

#include <check.h>
#include <string.h>

#define DOCUMENT(requests)                                                                                             \
    "{\"id\": \"x\",\n\"block_size\": 64, \"hash_id_scope\": \"local\", \"requests\": [" requests "]}\n"
#define TURN(t, in, out, ids, rest)                                                                                    \
    "{\"t\": " t ", \"type\": \"n\", \"in\": " in ", \"out\": " out ", \"hash_ids\": " ids rest "}"
#define AGENT(t, ms, requests)                                                                                         \
    "{\"t\": " t ", \"type\": \"subagent\", \"duration_ms\": " ms ", \"requests\": [" requests "]}"

/* The session asks at 0 (for 5 s) and, 20 s of thought later, at 25. A sub-agent that ended at 20 after 14 s began at
 * 6, and asked at 6 and, 3 s after the end of that, at 10. */
#define WITH_AGENT                                                                                                     \
    DOCUMENT(TURN("0", "130", "3", "[1, 2]", ", \"api_time\": 5.0, \"think_time\": 0.0") ",\n" AGENT(                  \
        "20.0", "14000",                                                                                               \
        TURN("0.0", "64", "1", "[7]", ", \"api_time\": 1.0") "," TURN(                                                 \
            "4.0", "63", "0", "[]", ", \"think_time\": 3.0")) "," TURN("25", "131", "9", "[1, 2]",                     \
                                                                       ", \"api_time\": null, \"think_time\": 20"))

typedef struct expected_turn {
    uint64_t arrival_us;
    uint32_t n_input, n_output, n_blocks;
    trace_turn turn;
} expected_turn;

static const expected_turn turns[] = {
    {0, 130, 3, 2, {0, 0, 0, 5000000}},
    {6000000, 64, 1, 1, {0, 1, 1000000, 1000000}}, /* 1 s after the session's first request ended */
    {10000000, 63, 0, 0, {0, 1, 3000000, 0}},
    {25000000, 131, 9, 2, {0, 3, 20000000, 0}},
};

START_TEST(sub_agents_run_from_their_end_less_their_duration)
{
    char copy[] = WITH_AGENT;
    FILE *in = fmemopen(copy, sizeof copy - 1, "r");
    trace *t;
    trace_error error;
    trace_request r;
    ck_assert_int_eq(trace_open(in, "t", &TRACE_OPTIONS_DEFAULT, &t, &error), 0);
    ck_assert_str_eq(trace_format_name(t), "kv_cache_tester");
    ck_assert(trace_has_turns(t));
    for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
        const expected_turn *e = &turns[i];
        ck_assert_int_eq(trace_next(t, &r, &error), 1);
        ck_assert_uint_eq(r.arrival_us, e->arrival_us);
        ck_assert_uint_eq(r.n_input, e->n_input);
        ck_assert_uint_eq(r.n_output, e->n_output);
        ck_assert_uint_eq(r.n_blocks, e->n_blocks);
        ck_assert_uint_eq(r.turn.after, e->turn.after);
        ck_assert_uint_eq(r.turn.think_us, e->turn.think_us);
        ck_assert_uint_eq(r.turn.service_us, e->turn.service_us);
    }
    ck_assert_int_eq(trace_next(t, &r, &error), 0);
    trace_close(t);
    fclose(in);
}
END_TEST

/* Pages of a block; of two blocks, of which the last, half of one, is not named; of a quarter, where 2 of 130 tokens
 * and 3 of 131 lie past the blocks. */
START_TEST(only_what_full_blocks_name_is_counted)
{
    static const uint32_t page_tokens[] = {64, 128, 16}, refs[] = {5, 2, 20}, hits[] = {2, 1, 8};
    for (int i = 0; i < 3; i++) {
        replay_options options = REPLAY_OPTIONS_DEFAULT;
        options.page_tokens = page_tokens[i];
        options.audit = true;
        replay_result r = text_replay(WITH_AGENT, &options);
        ck_assert_uint_eq(r.page_refs, refs[i]);
        ck_assert_uint_eq(r.page_hits, hits[i]);
        ck_assert_uint_eq(r.token_hits, 128);
        ck_assert_uint_eq(r.unique_pages, refs[i] - hits[i]);
    }
}
END_TEST

/* Full pages of the tail that no block names stay apart from each other. */
START_TEST(unnamed_pages_are_never_found)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.page_tokens = 16;
    options.audit = true;
    replay_result r =
        text_replay(DOCUMENT(TURN("0", "127", "1", "[1]", "") "," TURN("1", "127", "1", "[1]", "")), &options);
    ck_assert_uint_eq(r.page_refs, 8);
    ck_assert_uint_eq(r.page_hits, 4);
    ck_assert_uint_eq(r.stats.pages_taken, 8 + 4);
}
END_TEST

START_TEST(a_session_without_requests)
{
    trace_request last;
    trace_error error;
    ck_assert_int_eq(text_read(DOCUMENT(""), NULL, &last, &error), 0);
}
END_TEST

#define ONE(turn) DOCUMENT(TURN("0", "1", "1", "[]", "") "," turn)

typedef struct refusal {
    const char *text, *line;
} refusal;

static const refusal refusals[] = {
    {"", "t:1: not JSON at column 0: '[' or '{' expected near end of file"},
    {"[]", "t: is no JSON object"},
    {"{\"a\":\n \"b\": 1}", "t:2: field b: not JSON at column 5: '}' expected near ':'"},
    {"{}", "t: field block_size: missing"},
    {"{\"block_size\": \"64\"}", "t: field block_size: is not a whole number"},
    {"{\"block_size\": 16}", "t: field block_size: 16 is not 64"},
    {"{\"block_size\": 64}", "t: field hash_id_scope: missing"},
    {"{\"block_size\": 64, \"hash_id_scope\": \"global\"}", "t: field hash_id_scope: is not \"local\""},
    {"{\"block_size\": 64, \"hash_id_scope\": \"local\"}", "t: field requests: missing"},
    {"{\"block_size\": 64, \"hash_id_scope\": \"local\", \"requests\": {}}", "t: field requests: is not a list"},
    {DOCUMENT("7"), "t: field requests[0]: is no JSON object"},
    {DOCUMENT("{}"), "t: field requests[0].type: missing"},
    {DOCUMENT("{\"type\": 1}"), "t: field requests[0].type: is not a string"},
    {DOCUMENT("{\"type\": \"x\"}"), "t: field requests[0].type: 'x' is none of n, s, subagent"},
    {DOCUMENT("{\"type\": \"n\"}"), "t: field requests[0].t: missing"},
    {ONE(TURN("\"0\"", "1", "1", "[]", "")), "t: field requests[1].t: is not a number"},
    {ONE(TURN("-1", "1", "1", "[]", "")), "t: field requests[1].t: -1 is negative"},
    {ONE(TURN("1e10", "1", "1", "[]", "")), "t: field requests[1].t: 1e+10 is too large"},
    {DOCUMENT(TURN("2", "1", "1", "[]", "") "," TURN("1.5", "1", "1", "[]", "")),
     "t: field requests[1].t: is earlier than the request before"},
    {ONE(TURN("1", "1", "1", "[]", ", \"api_time\": -1")), "t: field requests[1].api_time: -1 is negative"},
    {ONE(TURN("1", "1", "1", "[]", ", \"think_time\": []")), "t: field requests[1].think_time: is not a number"},
    {ONE(TURN("1", "0", "1", "[]", "")), "t: field requests[1].in: must be at least 1"},
    {ONE(TURN("1", "1.5", "1", "[]", "")), "t: field requests[1].in: is not a whole number"},
    {ONE("{\"t\": 1, \"type\": \"s\", \"in\": 1}"), "t: field requests[1].out: missing"},
    {ONE(TURN("1", "1", "2147483648", "[]", "")), "t: field requests[1].out: 2147483648 is too large"},
    {ONE(TURN("1", "2147483647", "1", "[]", "")),
     "t: field requests[1].hash_ids: has 0 ids where in 2147483647 needs 33554431"},
    {ONE("{\"t\": 1, \"type\": \"s\", \"in\": 1, \"out\": 2147483647, \"hash_ids\": []}"),
     "t: field requests[1].out: input and output are over 2147483647 tokens together"},
    {ONE("{\"t\": 1, \"type\": \"s\", \"in\": 1, \"out\": 1}"), "t: field requests[1].hash_ids: missing"},
    {ONE(TURN("1", "64", "1", "[-1]", "")), "t: field requests[1].hash_ids: -1 is negative"},
    {ONE(TURN("1", "63", "1", "[5]", "")), "t: field requests[1].hash_ids: has 1 ids where in 63 needs 0"},
    {ONE("{\"t\": 1, \"type\": \"subagent\"}"), "t: field requests[1].requests: missing"},
    {ONE("{\"type\": \"subagent\", \"requests\": []}"), "t: field requests[1].t: missing"},
    {ONE(AGENT("1", "-1", "")), "t: field requests[1].duration_ms: -1 is negative"},
    {ONE(AGENT("1", "1", TURN("1", "64", "1", "[]", ""))),
     "t: field requests[1].requests[0].hash_ids: has 0 ids where in 64 needs 1"},
    {DOCUMENT(
         AGENT("1", "1",
               AGENT("1", "1",
                     AGENT("1", "1",
                           AGENT("1", "1", AGENT("1", "1", AGENT("1", "1", AGENT("1", "1", AGENT("1", "1", ""))))))))),
     "t: field "
     "requests[0].requests[0].requests[0].requests[0].requests[0].requests[0].requests[0].requests[0].requests: more "
     "than 7 sub-agents"},
};

START_TEST(bad_input_is_refused_with_one_line)
{
    trace_request last;
    trace_error error = {""};
    const refusal *r = &refusals[_i];
    ck_assert_int_eq(text_read(r->text, "kv_cache_tester", &last, &error), TRACE_BAD_INPUT);
    ck_assert_msg(strncmp(error.text, r->line, 120) == 0, "'%s' instead of '%s'", error.text, r->line);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("documents");
    tcase_add_test(t, sub_agents_run_from_their_end_less_their_duration);
    tcase_add_test(t, only_what_full_blocks_name_is_counted);
    tcase_add_test(t, unnamed_pages_are_never_found);
    tcase_add_test(t, a_session_without_requests);
    tcase_add_loop_test(t, bad_input_is_refused_with_one_line, 0, sizeof refusals / sizeof refusals[0]);
    return run_tests("trace_documents", t);
}
