/* What a replay expects, prints, counts and keeps. Bad logs are in test_oplog_errors.c. */
#define _POSIX_C_SOURCE 200809L /* fmemopen, for the long logs */
#include "api.h"
#include "oplog_text.h"
#include "trace/oplog_ids.h"

#include <stdlib.h>
#include <string.h>

#define HEAD "{\"kvkeep_oplog\": 1, \"pages\": 4, \"page_tokens\": 4}\n"
#define OPEN "{\"op\": \"open\", \"seq\": 1}\n"
#define RESERVE "{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 8"

static const oplog_options defaults;

START_TEST(a_mismatch_names_line_field_and_both_values)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {RESERVE ", \"expect\": {\"result\": 3}}", "t:3: field expect.result: reserve: expected 3, got 2"},
        {RESERVE ", \"expect\": {\"result\": \"2\"}}", "t:3: field expect.result: reserve: expected \"2\", got 2"},
        {RESERVE ", \"expect\": {\"pages\": [1, 0]}}", "t:3: field expect.pages: reserve: expected [1,0], got [0,1]"},
        {RESERVE ", \"expect\": {\"result\": 2, \"pages\": [0]}}",
         "t:3: field expect.pages: reserve: expected [0], got [0,1]"},
        {RESERVE ", \"expect\": {\"pagse\": [0, 1]}}", "t:3: field expect.pagse: reserve: expected [0,1], got nothing"},
        {RESERVE ", \"expect\": {\"error\": \"KVK_ENOPAGE\"}}",
         "t:3: field expect.error: reserve: expected \"KVK_ENOPAGE\", got nothing"},
        {"{\"op\": \"close\", \"seq\": 2, \"expect\": {\"error\": \"KVK_EBUSY\"}}",
         "t:3: field expect.error: close: expected \"KVK_EBUSY\", got \"KVK_ESTALE\""},
        {"{\"op\": \"page\", \"page\": 1, \"expect\": {\"state\": \"used\"}}",
         "t:3: field expect.state: page: expected \"used\", got \"free\""},
        {"{\"op\": \"stats\", \"expect\": {\"usage_pages\": 0.5}}",
         "t:3: field expect.usage_pages: stats: expected 0.5, got 0.0"},
        {"{\"op\": \"reset\", \"expect\": {\"line\": 4}}", "t:3: field expect.line: reset: expected 4, got 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD OPEN "%s\n", cases[i].line);
        oplog_text_ends(text, TRACE_FAILED, cases[i].text);
    }
}
END_TEST

START_TEST(a_failure_that_nobody_expects_fails_the_run)
{
    oplog_text_ends(HEAD "{\"op\": \"close\", \"seq\": 9}", TRACE_FAILED,
                    "t:2: field result: close: expected success, got -5 KVK_ESTALE (handle is not open)");
    oplog_text_ends(HEAD OPEN RESERVE "000, \"expect\": {\"pages\": []}}", TRACE_FAILED,
                    "t:3: field result: reserve: expected success, got -4 KVK_ENEVER (needs more pages than the pool "
                    "can ever give)");
    oplog_text_ends(HEAD "{\"op\": \"close\", \"seq\": 9, \"expect\": {\"result\": -5}}", 0, "");
    oplog_text_ends(HEAD "{\"op\": \"close\", \"seq\": 9, \"expect\": {\"error\": \"KVK_ESTALE\"}}", 0, "");
}
END_TEST

START_TEST(numbers_are_equal_by_value)
{
    oplog_text_ends(HEAD OPEN RESERVE ", \"expect\": {\"result\": 2.0}}", 0, "");
    oplog_text_ends(HEAD OPEN RESERVE ", \"expect\": {}}\n{\"op\": \"stats\", \"expect\": {\"usage_pages\": 0.5, "
                                      "\"pages_free\": 2.0, \"usage_tokens\": 0}}",
                    0, "");
}
END_TEST

START_TEST(a_long_value_is_cut)
{
    char text[2048] = HEAD OPEN RESERVE ", \"expect\": {\"pages\": [0";
    trace_error error;
    oplog_summary summary;
    for (int i = 0; i < 200; i++)
        strcat(text, ",11");
    strcat(text, "]}}");
    ck_assert_int_eq(oplog_text_run(text, NULL, &summary, &error), TRACE_FAILED);
    ck_assert_ptr_nonnull(strstr(error.text, ",11,..., got [0,1]"));
    ck_assert_uint_lt(strlen(error.text), 256);
}
END_TEST

START_TEST(results_are_printed_one_object_a_call)
{
    sink printed = {0};
    oplog_options options = {.print = sink_print, .print_ctx = &printed};
    oplog_summary summary;
    trace_error error;
    const char *text = HEAD "\n{\"op\": \"open\", \"seq\": 1, \"note\": \"blank lines count\"}\n" RESERVE "}\n"
                            "{\"op\": \"commit\", \"seq\": 1, \"tokens\": [[0, 4]]}\n"
                            "{\"op\": \"can_reserve\", \"seq\": 1, \"n_tokens\": 99}\n"
                            "{\"op\": \"reset\", \"expect\": {\"result\": -6}}\n"
                            "{\"op\": \"info\", \"seq\": 1}\n"
                            "{\"op\": \"page\", \"page\": 0}\n"
                            "{\"op\": \"audit\"}\n";
    ck_assert_int_eq(oplog_text_run(text, &options, &summary, &error), 0);
    ck_assert_str_eq(printed.bytes,
                     "{\"line\":3,\"op\":\"open\",\"result\":0}\n"
                     "{\"line\":4,\"op\":\"reserve\",\"result\":2,\"pages\":[0,1],\"evicted\":[]}\n"
                     "{\"line\":5,\"op\":\"commit\",\"result\":1}\n"
                     "{\"line\":6,\"op\":\"can_reserve\",\"result\":2,\"can\":\"NEVER\"}\n"
                     "{\"line\":7,\"op\":\"reset\",\"result\":-6,\"error\":\"KVK_EBUSY\",\"in_use\":2}\n"
                     "{\"line\":8,\"op\":\"info\",\"result\":0,\"priority\":0,\"n_tokens\":4,\"n_committed\":4,"
                     "\"n_pages\":2,\"n_in_flight\":0,\"swapped\":0,\"tainted\":0}\n"
                     "{\"line\":9,\"op\":\"page\",\"result\":0,\"state\":\"used\",\"refs\":1,\"generation\":1,"
                     "\"n_tokens\":4,\"findable\":1}\n"
                     "{\"line\":10,\"op\":\"audit\",\"result\":0,\"violations\":[]}\n");
    sink_free(&printed);
}
END_TEST

START_TEST(printing_and_not_printing_do_the_same)
{
    const char *text = HEAD OPEN RESERVE "}\n{\"op\": \"plan\", \"batch\": 1, \"entries\": [[1, 5]]}\n"
                                         "{\"op\": \"end\", \"batch\": 1, \"accepted\": [2]}\n";
    sink printed = {0};
    oplog_options options = {.print = sink_print, .print_ctx = &printed};
    oplog_summary quiet, loud;
    trace_error error;
    ck_assert_int_eq(oplog_text_run(text, &defaults, &quiet, &error), 0);
    ck_assert_int_eq(oplog_text_run(text, &options, &loud, &error), 0);
    ck_assert_uint_eq(quiet.stats.live_tokens, 2);
    ck_assert_mem_eq(&quiet.stats, &loud.stats, offsetof(kvk_stats, memory_bytes));
    sink_free(&printed);
}
END_TEST

START_TEST(the_summary_tells_what_ran)
{
    const char *text = HEAD OPEN "{\"op\": \"close\", \"seq\": 5, \"expect\": {\"result\": -5}}\n" RESERVE
                                 ", \"expect\": {\"result\": 7}}\n" OPEN;
    oplog_summary summary;
    trace_error error;
    ck_assert_int_eq(oplog_text_run(text, NULL, &summary, &error), TRACE_FAILED);
    ck_assert_uint_eq(summary.ops, 3);
    ck_assert_uint_eq(summary.failed_ops, 1);
    ck_assert_uint_eq(summary.config.n_pages, 4);
    ck_assert_uint_eq(summary.config.content, KVK_CONTENT_TOKENS);
    ck_assert_uint_eq(summary.stats.pages_used, 2);
}
END_TEST

START_TEST(a_run_can_stop_early)
{
    oplog_options options = {.max_ops = 2};
    oplog_summary summary;
    trace_error error;
    ck_assert_int_eq(oplog_text_run(HEAD OPEN RESERVE "}\nno JSON", &options, &summary, &error), 0);
    ck_assert_uint_eq(summary.ops, 2);
    ck_assert_uint_eq(summary.stats.pages_used, 2);
}
END_TEST

static int refuse(void *ctx, const char *bytes, size_t n)
{
    (void)ctx, (void)bytes, (void)n;
    return 1;
}

START_TEST(a_writer_that_fails_fails_the_run)
{
    oplog_options print = {.print = refuse}, record = {.record = refuse};
    oplog_summary summary;
    trace_error error;
    ck_assert_int_eq(oplog_text_run(HEAD OPEN OPEN, &print, &summary, &error), TRACE_FAILED);
    ck_assert_str_eq(error.text, "t:2: cannot print the result");
    ck_assert_int_eq(oplog_text_run(HEAD OPEN, &record, &summary, &error), TRACE_FAILED);
    ck_assert_str_eq(error.text, "t: cannot record: a writer of the caller's failed");
}
END_TEST

static void *no_memory(void *ctx, size_t bytes)
{
    (void)ctx, (void)bytes;
    return NULL;
}

static void nothing(void *ctx, void *block, size_t bytes)
{
    (void)ctx, (void)block, (void)bytes;
}

START_TEST(want_of_memory_fails_the_run)
{
    const kvk_allocator none = {no_memory, nothing, NULL};
    oplog_options options = {.allocator = &none};
    oplog_summary summary;
    trace_error error;
    ck_assert_int_eq(oplog_text_run(HEAD OPEN, &options, &summary, &error), TRACE_FAILED);
    ck_assert_str_eq(error.text, "t: cannot open the cache: out of host memory");
}
END_TEST

START_TEST(any_id_may_be_stale)
{
    oplog_ids ids;
    memory from;
    ck_assert_int_eq(memory_open(&from, NULL), 0);
    oplog_ids_open(&ids, &from);
    ck_assert_uint_eq(oplog_ids_handle(&ids, 5), 0);
    ck_assert_int_eq(oplog_ids_prepare(&ids), 0);
    oplog_ids_add(&ids, 5, 50);
    ck_assert(oplog_ids_is_open(&ids, 5));
    oplog_ids_retire(&ids, 5);
    oplog_ids_retire(&ids, 5);
    ck_assert(!oplog_ids_is_open(&ids, 5));
    ck_assert_uint_eq(oplog_ids_handle(&ids, 5), 50);
    ck_assert_int_eq(oplog_ids_prepare(&ids), 0);
    oplog_ids_add(&ids, 5, 51);
    ck_assert_uint_eq(oplog_ids_handle(&ids, 5), 51);
    oplog_ids_close(&ids);
    memory_close(&from);
}
END_TEST

START_TEST(closed_ids_are_forgotten_in_time)
{
    oplog_ids ids;
    memory from;
    uint64_t bytes = 0;
    ck_assert_int_eq(memory_open(&from, NULL), 0);
    oplog_ids_open(&ids, &from);
    for (uint64_t id = 1; id <= 100000; id++) {
        ck_assert_int_eq(oplog_ids_prepare(&ids), 0);
        oplog_ids_add(&ids, id, id + 7);
        oplog_ids_retire(&ids, id);
        if (id == 1)
            bytes = from.bytes;
    }
    ck_assert_uint_eq(from.bytes, bytes);
    ck_assert_uint_eq(oplog_ids_handle(&ids, 100000 - OPLOG_CLOSED_IDS), 0);
    ck_assert_uint_eq(oplog_ids_handle(&ids, 100000 - OPLOG_CLOSED_IDS + 1), 100000 - OPLOG_CLOSED_IDS + 8);
    oplog_ids_close(&ids);
    memory_close(&from);
}
END_TEST

/* A stream of `rounds` times the same few calls, each with ids of its own. */
static FILE *long_log(char **text, size_t *n, uint64_t rounds)
{
    FILE *out = open_memstream(text, n);
    fputs(HEAD, out);
    for (uint64_t i = 1; i <= rounds; i++)
        fprintf(out,
                "{\"op\":\"open\",\"seq\":%llu}\n{\"op\":\"reserve\",\"seq\":%llu,\"n_tokens\":9}\n"
                "{\"op\":\"plan\",\"batch\":%llu,\"entries\":[[%llu,9]]}\n{\"op\":\"end\",\"batch\":%llu}\n"
                "{\"op\":\"close\",\"seq\":%llu}\n",
                (unsigned long long)i, (unsigned long long)i, (unsigned long long)i, (unsigned long long)i,
                (unsigned long long)i, (unsigned long long)i);
    fclose(out);
    return fmemopen(*text, *n, "r");
}

typedef struct ledger {
    uint64_t held, peak;
} ledger;

static void *counted_alloc(void *ctx, size_t bytes)
{
    ledger *l = ctx;
    l->held += bytes;
    l->peak = l->held > l->peak ? l->held : l->peak;
    return malloc(bytes);
}

static void counted_free(void *ctx, void *block, size_t bytes)
{
    ((ledger *)ctx)->held -= bytes;
    free(block);
}

static ledger memory_of(uint64_t rounds)
{
    char *text;
    size_t n;
    ledger l = {0};
    const kvk_allocator counted = {counted_alloc, counted_free, &l};
    oplog_options options = {.allocator = &counted};
    oplog_summary summary;
    trace_error error;
    FILE *in = long_log(&text, &n, rounds);
    ck_assert_int_eq(oplog_replay(in, "t", &options, &summary, &error), 0);
    ck_assert_uint_eq(summary.ops, 5 * rounds);
    fclose(in);
    free(text);
    return l;
}

START_TEST(memory_does_not_grow_with_the_file)
{
    ledger brief = memory_of(10), lengthy = memory_of(20000);
    ck_assert_uint_eq(lengthy.peak, brief.peak);
    ck_assert_uint_eq(lengthy.held, 0);
}
END_TEST

int main(void)
{
    return RUN_TESTS("oplog", a_mismatch_names_line_field_and_both_values, a_failure_that_nobody_expects_fails_the_run,
                     numbers_are_equal_by_value, a_long_value_is_cut, results_are_printed_one_object_a_call,
                     printing_and_not_printing_do_the_same, the_summary_tells_what_ran, a_run_can_stop_early,
                     a_writer_that_fails_fails_the_run, want_of_memory_fails_the_run, any_id_may_be_stale,
                     closed_ids_are_forgotten_in_time, memory_does_not_grow_with_the_file);
}
