/* The op log's calls for windows, pins, retention, preemption, resizing and events: bad logs, what is recorded. */
#include "api.h"
#include "oplog_text.h"

#include <stdlib.h>
#include <string.h>

#define HEAD "{\"kvkeep_oplog\": 1, \"pages\": 4, \"page_tokens\": 4}\n"
#define OPEN "{\"op\": \"open\", \"seq\": 1}\n"

START_TEST(first_lines_are_checked)
{
    static const refusal cases[] = {
        {"\"windows\": 4}", "t:1: field windows: expected a list of windows, got 4"},
        {"\"windows\": []}", "t:1: field windows: 0 items for 1 groups"},
        {"\"windows\": [4, 4]}", "t:1: field windows: 2 items for 1 groups"},
        {"\"windows\": [4], \"groups\": 2}", "t:1: field windows: 1 items for 2 groups"},
        {"\"windows\": [0, -1], \"groups\": 2}", "t:1: field windows[1]: expected a number of tokens, got -1"},
        {"\"windows\": [4294967296]}", "t:1: field windows[0]: expected a number of tokens, got 4294967296"},
        {"\"host_pages\": -1}", "t:1: field host_pages: expected an integer 0 to 2147483647, got -1"},
        {"\"host_pages\": 2147483648}", "t:1: field host_pages: expected an integer 0 to 2147483647, got 2147483648"},
        {"\"reclaim\": \"LRU\"}", "t:1: field reclaim: expected one of lru fifo lfu s3fifo, got \"LRU\""},
        {"\"extra_keys\": 1}", "t:1: field extra_keys: expected true or false, got 1"},
        {"\"extra_keys\": true, \"content\": \"none\"}", "t:1: field extra_keys: only where the content is tokens"},
        {"\"content\": \"keys\", \"partial_reuse\": true}",
         "t:1: field partial_reuse: only where the content is tokens"},
        {"\"reclaim\": 0}", "t:1: field reclaim: expected one of lru fifo lfu s3fifo, got 0"},
    };
    CHECK_REFUSED("{\"kvkeep_oplog\": 1, \"pages\": 4, ", cases);
}
END_TEST

START_TEST(arguments_are_checked)
{
    static const refusal cases[] = {
        {"{\"op\": \"lookup\", \"tokens\": [1], \"extras\": {}}", "t:2: field extras: expected a list, got {}"},
        {"{\"op\": \"lookup\", \"tokens\": [1], \"extras\": [[0, \"a\"], [0]]}",
         "t:2: field extras[1]: expected [position, 1 to 32 hexadecimal digits], got [0]"},
        {"{\"op\": \"lookup\", \"tokens\": [1], \"extras\": [[0, 7]]}",
         "t:2: field extras[0]: expected [position, 1 to 32 hexadecimal digits], got [0,7]"},
        {"{\"op\": \"pin\", \"n_tokens\": 1}", "t:2: field seq: missing"},
        {"{\"op\": \"unpin\", \"seq\": 1}", "t:2: field n_tokens: missing"},
        {"{\"op\": \"preempt\", \"seq\": 1}", "t:2: field how: missing"},
        {"{\"op\": \"preempt\", \"seq\": 1, \"how\": \"swap_out\"}",
         "t:2: field how: expected one of recompute swap, got \"swap_out\""},
        {"{\"op\": \"swap_in\", \"seq\": 1, \"effort\": 1}",
         "t:2: field effort: expected one of free_only reclaim evict, got 1"},
        {"{\"op\": \"swap_in\", \"seq\": 1, \"how\": \"swap\"}", "t:2: field how: unknown argument"},
        {"{\"op\": \"victim\", \"seq\": 1}", "t:2: field seq: unknown argument"},
        {"{\"op\": \"events\", \"cap\": 1}", "t:2: field cap: unknown argument"},
        {"{\"op\": \"set_time\"}", "t:2: field now_ms: missing"},
        {"{\"op\": \"set_time\", \"now_ms\": -1}",
         "t:2: field now_ms: expected an integer 0 to 9223372036854775807, got -1"},
        {"{\"op\": \"set_time\", \"now_ms\": 1.5}",
         "t:2: field now_ms: expected an integer 0 to 9223372036854775807, got 1.5"},
        {"{\"op\": \"set_time\", \"now_ms\": \"0x1\"}",
         "t:2: field now_ms: expected an integer or 1 to 16 hexadecimal digits, got \"0x1\""},
        {"{\"op\": \"resize\", \"move\": true}", "t:2: field pages: missing"},
        {"{\"op\": \"resize\", \"pages\": 4294967296}",
         "t:2: field pages: expected an integer 0 to 4294967295, got 4294967296"},
        {"{\"op\": \"resize\", \"pages\": 1, \"move\": 1}", "t:2: field move: expected true or false, got 1"},
    };
    CHECK_REFUSED(HEAD, cases);
}
END_TEST

#define RETAIN "{\"op\": \"retain\", \"seq\": 1, \"ranges\": "
#define WANTED "expected {begin, end, priority, duration_ms}, got "

START_TEST(ranges_are_checked)
{
    static const refusal cases[] = {
        {"{\"op\": \"retain\", \"seq\": 1}", "t:3: field ranges: missing"},
        {RETAIN "{}}", "t:3: field ranges: expected a list, got {}"},
        {RETAIN "[7]}", "t:3: field ranges[0]: " WANTED "7"},
        {RETAIN "[{\"begin\": 0, \"end\": 1}]}", "t:3: field ranges[0]: " WANTED "{\"begin\":0,\"end\":1}"},
        {RETAIN "[{\"begin\": 0, \"end\": 1, \"priority\": 1}, {\"begin\": -1, \"end\": 1, \"priority\": 1}]}",
         "t:3: field ranges[1]: " WANTED "{\"begin\":-1,\"end\":1,\"priority\":1}"},
        {RETAIN "[{\"begin\": 0, \"end\": 1, \"priority\": 1, \"ttl\": 1}]}",
         "t:3: field ranges[0]: " WANTED "{\"begin\":0,\"end\":1,\"priority\":1,\"ttl\":1}"},
        {RETAIN "[{\"begin\": 0, \"end\": 1, \"priority\": 1, \"duration_ms\": \"\"}]}",
         "t:3: field ranges[0]: " WANTED "{\"begin\":0,\"end\":1,\"priority\":1,\"duration_ms\":\"\"}"},
    };
    CHECK_REFUSED(HEAD OPEN, cases);
}
END_TEST

#define RANGE "{\"begin\": 0, \"end\": 4, \"priority\": 1}"
#define FOUR_RANGES RANGE ", " RANGE ", " RANGE ", " RANGE

#define SWAP_OUT "{\"op\": \"preempt\", \"seq\": 1, \"how\": \"swap\"}\n"

START_TEST(the_library_judges_values)
{
    static const char *const lines[] = {
        RETAIN "[{\"begin\": 4, \"end\": 4, \"priority\": 1}], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        RETAIN "[{\"begin\": 0, \"end\": 4, \"priority\": 101}], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        RETAIN "[" FOUR_RANGES ", " FOUR_RANGES ", " FOUR_RANGES ", " FOUR_RANGES "]}\n",
        RETAIN "[" FOUR_RANGES ", " FOUR_RANGES ", " FOUR_RANGES ", " FOUR_RANGES ", " RANGE
               "], \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        RETAIN "[]}\n",
        "{\"op\": \"resize\", \"pages\": 0, \"expect\": {\"error\": \"KVK_EINVAL\"}}\n",
        "{\"op\": \"pin\", \"seq\": 7, \"n_tokens\": 0, \"expect\": {\"error\": \"KVK_ESTALE\"}}\n",
        SWAP_OUT "{\"op\": \"swap_in\", \"seq\": 1, \"expect\": {\"result\": 0, \"pages\": []}}\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char text[2048];
        snprintf(text, sizeof text, HEAD OPEN "%s", lines[i]);
        oplog_text_ends(text, 0, "");
    }
}
END_TEST

START_TEST(a_wrong_expectation_shows_what_came)
{
    oplog_text_ends(HEAD "{\"op\": \"victim\", \"expect\": {\"seq\": 1}}", TRACE_FAILED,
                    "t:2: field expect.seq: victim: expected 1, got nothing");
    oplog_text_ends(HEAD "{\"op\": \"events\"}\n" OPEN "{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 4}\n"
                         "{\"op\": \"commit\", \"seq\": 1, \"tokens\": [[7, 4]]}\n"
                         "{\"op\": \"events\", \"expect\": {\"events\": []}}",
                    TRACE_FAILED,
                    "t:6: field expect.events: events: expected [], got "
                    "[{\"kind\":\"stored\",\"group\":0,\"page\":0,\"tokens\":[7,8,9,10],\"first\":true}]");
    oplog_text_ends(HEAD OPEN "{\"op\": \"resize\", \"pages\": 4294967295}", TRACE_FAILED,
                    "t:3: field result: resize: expected success, got -1 KVK_EINVAL (argument out of range)");
}
END_TEST

/* ---- The bounds of a list of events */

static void add(sink *log, const char *line)
{
    sink_write(log, line, strlen(line));
}

/* Publishes `rounds` times `pages` pages of a cache, each time in place of what was there. */
static int events_of(sink *log, uint32_t rounds, uint32_t pages, uint32_t page_tokens)
{
    uint32_t n = pages * page_tokens;
    char line[256];
    add(log, "{\"op\": \"events\"}\n");
    for (uint32_t i = 0; i < rounds; i++) {
        snprintf(line, sizeof line,
                 OPEN "{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": %u}\n"
                      "{\"op\": \"commit\", \"seq\": 1, \"tokens\": [[%u, %u]]}\n{\"op\": \"close\", \"seq\": 1}\n",
                 n, i * n, n);
        add(log, line);
    }
    return (int)(rounds * pages + (rounds - 1) * pages); /* all but the last are removed too */
}

static void check_last_list(const char *head, uint32_t rounds, uint32_t pages, uint32_t page_tokens)
{
    sink log = {0}, printed = {0};
    const oplog_options options = {.print = sink_print, .print_ctx = &printed};
    oplog_summary summary;
    trace_error error;
    add(&log, head);
    int wanted = events_of(&log, rounds, pages, page_tokens);
    add(&log, "{\"op\": \"events\"}\n");
    ck_assert_int_eq(oplog_text_run(log.bytes, &options, &summary, &error), 0);
    const char *last = strstr(strstr(printed.bytes, "\"events\"") + 1, "\"op\":\"events\"");
    ck_assert_ptr_nonnull(last);
    int result = 0, listed = 0;
    ck_assert_int_eq(sscanf(last, "\"op\":\"events\",\"result\":%d", &result), 1);
    ck_assert_int_eq(result, wanted);
    for (const char *at = last; (at = strstr(at, "\"kind\"")); at++)
        listed++;
    int room = (int)(1048576 / page_tokens) < 65536 ? (int)(1048576 / page_tokens) : 65536;
    ck_assert_int_eq(listed, wanted < room ? wanted : room);
    sink_free(&log);
    sink_free(&printed);
}

START_TEST(a_list_of_events_is_bounded)
{
    check_last_list("{\"kvkeep_oplog\": 1, \"pages\": 8, \"page_tokens\": 2}\n", 3, 8, 2);
    check_last_list("{\"kvkeep_oplog\": 1, \"pages\": 40000, \"page_tokens\": 1}\n", 2, 40000, 1);
    check_last_list("{\"kvkeep_oplog\": 1, \"pages\": 20, \"page_tokens\": 65536}\n", 1, 20, 65536);
}
END_TEST

/* ---- Recordings */

static sink recorded;

static void start(uint32_t n_pages, void (*change)(kvk_config *config))
{
    recorded = (sink){0};
    api_open(n_pages, change);
}

/* Ends the recording; replays it; that records the same. */
static void stop_and_check(const char *wanted)
{
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    api_close();
    ck_assert_msg(strstr(recorded.bytes, wanted) != NULL, "no %s in\n%s", wanted, recorded.bytes);
    sink again = oplog_text_record(recorded.bytes);
    ck_assert_str_eq(again.bytes, recorded.bytes);
    sink_free(&again);
    sink_free(&recorded);
}

static const kvk_group windows[] = {{.window = 0}, {.window = 1}};

static void all_fields(kvk_config *config)
{
    config->n_groups = 2;
    config->groups = windows;
    config->host_pages = 9;
    config->reclaim = KVK_RECLAIM_S3FIFO;
    config->partial_reuse = 1;
    config->extra_keys = 1;
}

static void first_group_slides(kvk_config *config)
{
    static const kvk_group groups[] = {{.window = 1}, {.window = 0}};
    config->n_groups = 2;
    config->groups = groups;
}

START_TEST(a_first_line_says_only_what_is_not_the_default)
{
    start(8, all_fields);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
    stop_and_check("\"zero_fill\":false,\"windows\":[0,1],\"host_pages\":9,\"reclaim\":\"s3fifo\","
                   "\"partial_reuse\":true,\"extra_keys\":true}\n");
    start(8, NULL);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
    stop_and_check("{\"kvkeep_oplog\":1,\"page_tokens\":4,\"pages\":8,\"groups\":1,\"watermark\":0,"
                   "\"content\":\"tokens\",\"zero_fill\":false}\n");
}
END_TEST

START_TEST(what_came_before_the_recording_is_recorded)
{
    start(8, NULL);
    ck_assert_int_eq(kvk_set_time(cache, 1000), 0);
    ck_assert_int_eq(kvk_resize(cache, 5, 0), 0);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
    stop_and_check("\"pages\":5,\"groups\":1,\"watermark\":0,\"content\":\"tokens\",\"zero_fill\":false}\n"
                   "{\"op\":\"set_time\",\"now_ms\":1000,\"expect\":{\"result\":0}}\n");
}
END_TEST

START_TEST(a_hit_without_pages_in_the_first_group_is_recorded)
{
    start(8, first_group_slides);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
    ck_assert_int_ge(kvk_seq_close(cache, api_text(0, 8)), 0);
    ck_assert_int_eq(api_attach(api_seq(), 0, 9), 8);
    stop_and_check("\"expect\":{\"result\":8,\"pages\":[2,3]}}");
}
END_TEST

START_TEST(extra_keys_are_recorded)
{
    const uint32_t tokens[6] = {5, 6, 7, 8, 9, 9};
    const kvk_extra extras[] = {{.position = 1, .key = {10, 0}}, {.position = 4, .key = {0, 11}}};
    const kvk_text text = {.n_tokens = 6, .tokens = tokens, .extras = extras, .n_extras = 2};
    start(8, all_fields);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
    kvk_seq seq = api_seq();
    ck_assert_int_ge(kvk_reserve(cache, seq, 6, KVK_RECLAIM), 0);
    ck_assert_int_eq(kvk_commit(cache, seq, &text), 1);
    ck_assert_int_eq(kvk_prefix_attach(cache, api_seq(), &text), 4);
    stop_and_check("\"tokens\":[[5,5],9],\"extras\":[[1,\"a\"],[4,\"b0000000000000000\"]]");
}
END_TEST

START_TEST(calls_under_pressure_are_recorded)
{
    const kvk_retention ranges[] = {{0, 4, 80, 0, UINT64_MAX}, {4, UINT32_MAX, 0, 0, 0}};
    kvk_seq victim;
    start(8, all_fields);
    ck_assert_int_eq(kvk_record_start(cache, sink_write, &recorded), 0);
    kvk_seq seq = api_text(0, 6);
    ck_assert_int_eq(kvk_pin(cache, seq, 4), 1); /* the other group's page has slid out */
    ck_assert_int_eq(kvk_pin(cache, seq, 8), KVK_EINVAL);
    ck_assert_int_eq(kvk_unpin(cache, seq, 4), 1);
    ck_assert_int_eq(kvk_retain(cache, seq, ranges, 2), 0);
    ck_assert_int_eq(kvk_retain(cache, UINT64_MAX, NULL, 0), KVK_ESTALE);
    ck_assert_int_eq(kvk_victim(cache, &victim), 1);
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), 3);
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), KVK_ESTATE);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_EVICT), 3);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_EVICT), KVK_ESTATE);
    ck_assert_int_ge(kvk_resize(cache, 3, 0), 0);
    ck_assert_int_ge(kvk_resize(cache, 5, 7), 0);
    ck_assert_int_eq(kvk_set_time(cache, UINT64_MAX), 0);
    ck_assert_int_ge(kvk_preempt(cache, seq, KVK_PREEMPT_RECOMPUTE), 0);
    stop_and_check("\"ranges\":[{\"begin\":0,\"end\":4,\"priority\":80,\"duration_ms\":\"ffffffffffffffff\"},"
                   "{\"begin\":4,\"end\":4294967295,\"priority\":0}],\"expect\":{\"result\":0}}\n");
}
END_TEST

int main(void)
{
    return RUN_TESTS("oplog_pressure", first_lines_are_checked, arguments_are_checked, ranges_are_checked,
                     the_library_judges_values, a_wrong_expectation_shows_what_came, a_list_of_events_is_bounded,
                     a_first_line_says_only_what_is_not_the_default, what_came_before_the_recording_is_recorded,
                     a_hit_without_pages_in_the_first_group_is_recorded, extra_keys_are_recorded,
                     calls_under_pressure_are_recorded);
}
