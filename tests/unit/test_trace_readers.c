/* What each reader makes of good lines, and the exact line it answers to bad ones. */
#include "run_tests.h"
#include "unit/trace_text.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AZURE "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define VIDUR "arrived_at,num_prefill_tokens,num_decode_tokens\n"
#define ETALON "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n"
#define MOONCAKE(ms, in, out, ids)                                                                                     \
    "{\"timestamp\": " ms ", \"input_length\": " in ", \"output_length\": " out ", \"hash_ids\": " ids "}\n"

static trace_request read_good(const char *text, int n)
{
    trace_request last;
    trace_error error = {""};
    int got = text_read(text, NULL, &last, &error);
    ck_assert_msg(got == n, "%d requests instead of %d: %s", got, n, error.text);
    return last;
}

START_TEST(mooncake_reads_times_lengths_and_ids)
{
    trace_request r =
        read_good(MOONCAKE("0", "1", "0", "[5]") "\n" MOONCAKE("7", "513", "3", "[0, 9223372036854775807]"), 2);
    ck_assert_uint_eq(r.arrival_us, 7000);
    ck_assert_uint_eq(r.n_input, 513);
    ck_assert_uint_eq(r.n_output, 3);
    ck_assert_uint_eq(r.block_tokens, 512);
    ck_assert_uint_eq(r.n_blocks, 2);
    ck_assert_ptr_null(r.tokens);
}
END_TEST

/* As the variants with a session id, a delay or a kind of request have them. */
START_TEST(mooncake_passes_over_fields_it_does_not_need)
{
    trace_request r = read_good("{\"session_id\": \"a\", \"delay\": 2, \"timestamp\": 3, \"input_length\": 1, "
                                "\"output_length\": 1, \"hash_ids\": [1], \"type\": \"chat\"}",
                                1);
    ck_assert_uint_eq(r.arrival_us, 3000);
}
END_TEST

START_TEST(azure_reads_times_from_the_first_request)
{
    trace_request r = read_good(AZURE "2024-02-28 23:59:59.9999999,374,44\r\n2024-03-01 00:00:00.0000001,396,109", 2);
    ck_assert_uint_eq(r.arrival_us, 86400000000u); /* the leap day, and 200 ns that are cut off */
    ck_assert_uint_eq(r.n_input, 396);
    ck_assert_uint_eq(r.n_output, 109);
    ck_assert_ptr_null(r.blocks);
}
END_TEST

START_TEST(vidur_rounds_to_the_nearest_microsecond)
{
    ck_assert_uint_eq(read_good(VIDUR "0.0,374,44\n5.8926549999999995,91,16\n", 2).arrival_us, 5892655);
    ck_assert_uint_eq(read_good(VIDUR "1e1,1,1\n", 1).arrival_us, 10000000);
}
END_TEST

START_TEST(etalon_reads_lengths_and_makes_times)
{
    trace_request r = read_good(ETALON "74,918,992,0.08\r\n290,905,1195,0.32", 2);
    ck_assert_uint_eq(r.n_input, 290);
    ck_assert_uint_eq(r.n_output, 905);
    ck_assert_uint_gt(r.arrival_us, 0);
    ck_assert_uint_eq(r.arrival_us, read_good(ETALON "1,1,2,1\n1,1,2,1\n", 2).arrival_us);
}
END_TEST

#define QWEN(s, in, out, ids)                                                                                          \
    "{\"chat_id\": 4, \"parent_chat_id\": -1, \"timestamp\": " s ", \"input_length\": " in ", \"output_length\": " out \
    ", \"type\": \"text\", \"turn\": 1, \"hash_ids\": " ids "}\n"

START_TEST(qwen_reads_seconds_and_blocks_of_16)
{
    trace_request r = read_good(QWEN("0", "1", "0", "[5]") QWEN("61.1140001", "17", "3", "[5, 6]"), 2);
    ck_assert_uint_eq(r.arrival_us, 61114000);
    ck_assert_uint_eq(r.n_input, 17);
    ck_assert_uint_eq(r.n_output, 3);
    ck_assert_uint_eq(r.block_tokens, 16);
    ck_assert_uint_eq(r.n_blocks, 2);
}
END_TEST

#define OFFLINE(in, ids)                                                                                               \
    "{\"request_id\": 0, \"type\": \"text\", \"input_length\": " in ", \"hash_ids\": " ids ", \"img_ids\": []}\n"

START_TEST(servegen_offline_has_no_times_and_no_outputs)
{
    trace_request r = read_good(OFFLINE("16", "[0]") OFFLINE("33", "[0, 1, 2]"), 2);
    ck_assert_uint_gt(r.arrival_us, 0);
    ck_assert_uint_eq(r.n_input, 33);
    ck_assert_uint_eq(r.n_output, 0);
    ck_assert_uint_eq(r.n_blocks, 3);
}
END_TEST

#define BURSTGPT "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"

/* The second failed; so did the last, whose time would be too early. */
START_TEST(burstgpt_passes_over_requests_that_failed)
{
    trace_request r = read_good(BURSTGPT "5,ChatGPT,472,18,490,Conversation log\n45.5,ChatGPT,1087,0,1087,x\n"
                                         "45.5,GPT-4,417,276,693,API log\n1,GPT-4,0,0,0,API log\n",
                                2);
    ck_assert_uint_eq(r.arrival_us, 45500000);
    ck_assert_uint_eq(r.n_input, 417);
    ck_assert_uint_eq(r.n_output, 276);
}
END_TEST

START_TEST(a_header_alone_is_no_request)
{
    trace_request last;
    trace_error error;
    ck_assert_int_eq(text_read(AZURE, NULL, &last, &error), 0);
}
END_TEST

#define FORMATS "mooncake, azure, vidur, etalon, kv_cache_tester, qwen, servegen_offline, burstgpt, servegen"

/* A refused text, the format it is forced to (NULL: none) and the line that says why. */
typedef struct refusal {
    const char *text, *format, *line;
} refusal;

static const refusal refusals[] = {
    {"", NULL, "t: is empty"},
    {"a,b\n1,2\n", NULL, "t:1: begins like none of " FORMATS},
    {"\xff\xfe\n", NULL, "t:1: begins like none of " FORMATS},
    {AZURE, "csv", "t: field format: 'csv' is none of " FORMATS},

    {"", "azure", "t: field TIMESTAMP: missing from the header"},
    {"TIMESTAMP,GeneratedTokens\n", "azure", "t:1: field ContextTokens: the header has 'GeneratedTokens' in its place"},
    {"TIMESTAMP,ContextTokens\n", "azure", "t:1: field GeneratedTokens: missing from the header"},
    {"TIMESTAMP,ContextTokens,GeneratedTokens,Model\n", "azure", "t:1: field Model: one column too many in the header"},
    {AZURE "2023-11-16 18:15:46.6805900,374\n", NULL,
     "t:2: field GeneratedTokens: missing: the row has 2 of 3 columns"},
    {AZURE "2023-11-16 18:15:46.6805900,374,44,5\n", NULL,
     "t:2: field GeneratedTokens: followed by '5', one column too many"},
    {AZURE AZURE, NULL, "t:2: field TIMESTAMP: 'TIMESTAMP' is not YYYY-MM-DD hh:mm:ss.fffffff"},
    {AZURE "2023-02-29 18:15:46.6805900,374,44\n", NULL,
     "t:2: field TIMESTAMP: '2023-02-29 18:15:46.6805900' is not YYYY-MM-DD hh:mm:ss.fffffff"},
    {AZURE "2023-11-16 24:00:00.0000000,374,44\n", NULL,
     "t:2: field TIMESTAMP: '2023-11-16 24:00:00.0000000' is not YYYY-MM-DD hh:mm:ss.fffffff"},
    {AZURE "2023-11-16 18:15:46.68,374,44\n", NULL,
     "t:2: field TIMESTAMP: '2023-11-16 18:15:46.68' is not YYYY-MM-DD hh:mm:ss.fffffff"},
    {AZURE "2023-11-16 18:15:46.6805900,-1,44\n", NULL, "t:2: field ContextTokens: '-1' is negative"},
    {AZURE "2023-11-16 18:15:46.6805900,,44\n", NULL, "t:2: field ContextTokens: '' is empty"},
    {AZURE "2023-11-16 18:15:46.6805900,1.5,44\n", NULL, "t:2: field ContextTokens: '1.5' is not a whole number"},
    {AZURE "2023-11-16 18:15:46.6805900, 1,44\n", NULL, "t:2: field ContextTokens: ' 1' is not a whole number"},
    {AZURE "2023-11-16 18:15:46.6805900,0,44\n", NULL, "t:2: field ContextTokens: must be at least 1"},
    {AZURE "2023-11-16 18:15:46.6805900,2147483648,44\n", NULL, "t:2: field ContextTokens: '2147483648' is too large"},
    {AZURE "2023-11-16 18:15:46.6805900,9223372036854775808,1\n", NULL,
     "t:2: field ContextTokens: '9223372036854775808' is too large"},
    {AZURE "2023-11-16 18:15:46.6805900,99999999999999999999999,1\n", NULL,
     "t:2: field ContextTokens: '99999999999999999999999' is too large"},
    {AZURE "2023-11-16 18:15:46.6805900,2147483647,1\n", NULL,
     "t:2: field GeneratedTokens: input and output are over 2147483647 tokens together"},
    {AZURE "2023-11-16 18:15:46.6805900,1,\xc3\x28\n", NULL,
     "t:2: field GeneratedTokens: '\\xC3(' is not a whole number"},
    {AZURE "2023-11-16 18:15:46.6805900,1,1\n2023-11-16 18:15:46.6805890,1,1\n", NULL,
     "t:3: field TIMESTAMP: is earlier than the request before"},
    {AZURE "2023-11-16 18:15:46.6805900,1,1\n2023-11-16 18:15:47.0000000,1,1\n2023-11-16 18:15:46.9000000,1,1\n", NULL,
     "t:4: field TIMESTAMP: is earlier than the request before"},

    {VIDUR "nan,1,1\n", NULL, "t:2: field arrived_at: 'nan' is not a number"},
    {VIDUR "inf,1,1\n", NULL, "t:2: field arrived_at: 'inf' is not a number"},
    {VIDUR "0x1,1,1\n", NULL, "t:2: field arrived_at: '0x1' is not a number"},
    {VIDUR "1e400,1,1\n", NULL, "t:2: field arrived_at: '1e400' is too large"},
    {VIDUR "1e10,1,1\n", NULL, "t:2: field arrived_at: '1e10' is too large"},
    {VIDUR "-1.0,1,1\n", NULL, "t:2: field arrived_at: '-1.0' is negative"},
    {VIDUR "1.0.0,1,1\n", NULL, "t:2: field arrived_at: '1.0.0' is not a number"},
    {VIDUR ",1,1\n", NULL, "t:2: field arrived_at: '' is empty"},
    {VIDUR "2.0,1,1\n1.0,1,1\n", NULL, "t:3: field arrived_at: is earlier than the request before"},

    {ETALON "1,1,3,1\n", NULL, "t:2: field num_total_tokens: 3 is not the sum of 1 and 1"},
    {ETALON "1,1,2,x\n", NULL, "t:2: field pd_ratio: 'x' is not a number"},
    {ETALON "1,1,2\n", NULL, "t:2: field pd_ratio: missing: the row has 3 of 4 columns"},

    {BURSTGPT "x,m,1,1,2,l\n", NULL, "t:2: field Timestamp: 'x' is not a number"},
    {BURSTGPT "1e10,m,1,1,2,l\n", NULL, "t:2: field Timestamp: '1e10' is too large"},
    {BURSTGPT "1,m,-1,1,2,l\n", NULL, "t:2: field Request tokens: '-1' is negative"},
    {BURSTGPT "1,m,1,,2,l\n", NULL, "t:2: field Response tokens: '' is empty"},
    {BURSTGPT "1,m,1,0,x,l\n", NULL, "t:2: field Total tokens: 'x' is not a whole number"},
    {BURSTGPT "1,m,1,1,3,l\n", NULL, "t:2: field Total tokens: 3 is not the sum of 1 and 1"},
    {BURSTGPT "1,m,0,1,1,l\n", NULL, "t:2: field Request tokens: must be at least 1"},
    {BURSTGPT "1,m,1,1,2\n", NULL, "t:2: field Log Type: missing: the row has 5 of 6 columns"},
    {BURSTGPT "2,m,1,1,2,l\n1,m,1,1,2,l\n", NULL, "t:3: field Timestamp: is earlier than the request before"},

    {QWEN("-1", "1", "1", "[1]"), NULL, "t:1: field timestamp: -1 is negative"},
    {QWEN("\"1\"", "1", "1", "[1]"), NULL, "t:1: field timestamp: is not a number"},
    {QWEN("1e11", "1", "1", "[1]"), NULL, "t:1: field timestamp: 1e+11 is too large"},
    {QWEN("1", "1", "1.5", "[1]"), NULL, "t:1: field output_length: is not a whole number"},
    {QWEN("1", "17", "1", "[1]"), NULL, "t:1: field hash_ids: has 1 ids where input_length 17 needs 2"},
    {"{\"chat_id\": 1}\n", NULL, "t:1: field timestamp: missing"},
    {QWEN("2", "1", "1", "[1]") QWEN("1.9", "1", "1", "[1]"), NULL,
     "t:2: field timestamp: is earlier than the request before"},
    {"{\"request_id\": 1}\n", NULL, "t:1: field input_length: missing"},
    {OFFLINE("17", "[1]"), NULL, "t:1: field hash_ids: has 1 ids where input_length 17 needs 2"},
    {OFFLINE("2147483648", "[1]"), NULL, "t:1: field input_length: 2147483648 is too large"},

    {"0,0,0,,0,0\n600,1,1,Gamma,1,1\n", NULL,
     "t: must be named FILE-trace.csv, as lengths are in FILE-dataset.json beside it"},
    {"0,0,0,1,0,0\n", NULL, "t:1: begins like none of " FORMATS},
    {"0,0,0,,0,0,0\n", NULL, "t:1: begins like none of " FORMATS},
    {"0,0,0,,0\n", NULL, "t:1: begins like none of " FORMATS},

    {"{}\n", NULL, "t:1: field timestamp: missing"},
    {"{\"timestamp\": 0, \"input_length\": 1", NULL,
     "t:1: field input_length: not JSON at column 34: '}' expected near end of file"},
    {"{\"timestamp\": 0, \"timestamp\": 0}", NULL,
     "t:1: field timestamp: not JSON at column 28: duplicate object key near '\"timestamp\"'"},
    {MOONCAKE("-1", "1", "1", "[1]"), NULL, "t:1: field timestamp: -1 is negative"},
    {MOONCAKE("0.5", "1", "1", "[1]"), NULL, "t:1: field timestamp: is not a whole number"},
    {MOONCAKE("9223372036854775807", "1", "1", "[1]"), NULL, "t:1: field timestamp: 9223372036854775807 is too large"},
    {MOONCAKE("0", "NaN", "1", "[1]"), NULL,
     "t:1: field input_length: not JSON at column 36: invalid token near 'NaN'"},
    {MOONCAKE("0", "0", "1", "[]"), NULL, "t:1: field input_length: must be at least 1"},
    {MOONCAKE("0", "\"1\"", "1", "[1]"), NULL, "t:1: field input_length: is not a whole number"},
    {MOONCAKE("0", "1", "2147483648", "[1]"), NULL, "t:1: field output_length: 2147483648 is too large"},
    {MOONCAKE("0", "513", "1", "[1]"), NULL, "t:1: field hash_ids: has 1 ids where input_length 513 needs 2"},
    {MOONCAKE("0", "512", "1", "[1, 2]"), NULL, "t:1: field hash_ids: has 2 ids where input_length 512 needs 1"},
    {MOONCAKE("0", "1", "1", "7"), NULL, "t:1: field hash_ids: is not a list"},
    {MOONCAKE("0", "1", "1", "[-7]"), NULL, "t:1: field hash_ids: -7 is negative"},
    {MOONCAKE("0", "1", "1", "[1.0]"), NULL, "t:1: field hash_ids: is not a whole number"},
    {MOONCAKE("0", "1", "1", "[9223372036854775808]"), NULL,
     "t:1: field hash_ids: not JSON at column 88: too big integer near '9223372036854775808'"},
    {MOONCAKE("1", "1", "1", "[1]") MOONCAKE("0", "1", "1", "[1]"), NULL,
     "t:2: field timestamp: is earlier than the request before"},
    {MOONCAKE("1", "1", "1", "[1]") "[]\n", NULL, "t:2: is no JSON object"},
    {MOONCAKE("1", "1", "1", "[1]") "{\"a\": \"\xff\"}\n", NULL,
     "t:2: field a: not JSON at column 7: unable to decode byte 0xff near '\"'"},
};

START_TEST(bad_input_is_refused_with_one_line)
{
    const refusal *r = &refusals[_i];
    text_refused(r->text, r->format, r->line);
}
END_TEST

START_TEST(deep_nesting_is_refused)
{
    enum { DEEP = 100000 };
    char *text = malloc(DEEP + 32);
    size_t n = (size_t)sprintf(text, "{\"hash_ids\": ");
    memset(text + n, '[', DEEP);
    text[n + DEEP] = '\0';
    trace_request last;
    trace_error error;
    ck_assert_int_eq(text_read(text, NULL, &last, &error), TRACE_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(error.text, "t:1: field hash_ids: not JSON"));
    ck_assert_ptr_nonnull(strstr(error.text, "maximum parsing depth reached"));
    free(text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("readers");
    tcase_add_test(t, mooncake_reads_times_lengths_and_ids);
    tcase_add_test(t, mooncake_passes_over_fields_it_does_not_need);
    tcase_add_test(t, azure_reads_times_from_the_first_request);
    tcase_add_test(t, vidur_rounds_to_the_nearest_microsecond);
    tcase_add_test(t, etalon_reads_lengths_and_makes_times);
    tcase_add_test(t, qwen_reads_seconds_and_blocks_of_16);
    tcase_add_test(t, servegen_offline_has_no_times_and_no_outputs);
    tcase_add_test(t, burstgpt_passes_over_requests_that_failed);
    tcase_add_test(t, a_header_alone_is_no_request);
    tcase_add_loop_test(t, bad_input_is_refused_with_one_line, 0, sizeof refusals / sizeof refusals[0]);
    tcase_add_test(t, deep_nesting_is_refused);
    return run_tests("trace_readers", t);
}
