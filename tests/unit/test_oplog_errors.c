/* Logs that are wrong: each is refused with one line that names file, line and field, before the call is made. */
#include "api.h"
#include "oplog_text.h"

#include <stdlib.h>
#include <string.h>

#define HEAD "{\"kvkeep_oplog\": 1, \"pages\": 4, \"page_tokens\": 4}\n"
#define OPEN "{\"op\": \"open\", \"seq\": 1}\n"

START_TEST(a_first_line_is_required_and_checked)
{
    static const refusal cases[] = {
        {"", "t: empty: no first line"},
        {"\n \t\n\r\n", "t: empty: no first line"},
        {"[]", "t:1: not a JSON object"},
        {"{}", "t:1: field kvkeep_oplog: missing"},
        {"{\"kvkeep_oplog\": 1}", "t:1: field pages: missing"},
        {"{\"kvkeep_oplog\": 2, \"pages\": 1}", "t:1: field kvkeep_oplog: expected an integer 1 to 1, got 2"},
        {"{\"kvkeep_oplog\": \"1\", \"pages\": 1}", "t:1: field kvkeep_oplog: expected an integer 1 to 1, got \"1\""},
        {"{\"kvkeep_oplog\": 1, \"pages\": 0}", "t:1: field pages: expected an integer 1 to 2147483647, got 0"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 2147483648}",
         "t:1: field pages: expected an integer 1 to 2147483647, got 2147483648"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1.0}", "t:1: field pages: expected an integer 1 to 2147483647, got 1.0"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1, \"page_tokens\": 65537}",
         "t:1: field page_tokens: expected an integer 1 to 65536, got 65537"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1, \"groups\": 1025}",
         "t:1: field groups: expected an integer 1 to 1024, got 1025"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 3, \"watermark\": 4}", "t:1: field watermark: more than the 3 pages"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1, \"content\": \"text\"}",
         "t:1: field content: expected one of none tokens keys, got \"text\""},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1, \"content\": 1}",
         "t:1: field content: expected one of none tokens keys, got 1"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1, \"zero_fill\": 1}",
         "t:1: field zero_fill: expected true or false, got 1"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1, \"note\": 1}", "t:1: field note: expected a string, got 1"},
        {"{\"kvkeep_oplog\": 1, \"pages\": 1, \"size\": 4}", "t:1: field size: unknown argument"},
        {"{\"op\": \"open\", \"seq\": 1}", "t:1: field op: unknown argument"},
    };
    CHECK_REFUSED("", cases);
}
END_TEST

START_TEST(a_line_is_one_json_object_without_doubles)
{
    static const refusal cases[] = {
        {"7\n", "t:2: bad JSON at byte 1: '[' or '{' expected near '7'"},
        {"[1]\n", "t:2: not a JSON object"},
        {"{\"op\": \"reset\"\n", "t:2: bad JSON at byte 14: '}' expected near end of file"},
        {"{\"op\": \"reset\"} x\n", "t:2: bad JSON at byte 17: end of file expected near 'x'"},
        {"{\"op\": \"reset\", \"op\": \"reset\"}\n", "t:2: bad JSON at byte 20: duplicate object key near '\"op\"'"},
        {"\n\n{\"op\": }\n", "t:4: bad JSON at byte 8: unexpected token near '}'"},
        {"{\"op\": \"close\", \"seq\": 9223372036854775808}\n",
         "t:2: bad JSON at byte 42: too big integer near '9223372036854775808'"},
        {"{\"op\": \"open\", \"seq\": 1, \"note\": \"\xff\"}\n",
         "t:2: bad JSON at byte 34: unable to decode byte 0xff near '\"'"},
    };
    CHECK_REFUSED(HEAD, cases);
}
END_TEST

START_TEST(ops_and_arguments_are_known)
{
    static const refusal cases[] = {
        {"{}", "t:2: field op: missing"},
        {"{\"op\": 1}", "t:2: field op: unknown op 1"},
        {"{\"op\": \"opne\"}", "t:2: field op: unknown op \"opne\""},
        {"{\"op\": \"\\u001b[2J\\n\"}", "t:2: field op: unknown op \"\\u001B[2J\\n\""},
        {"{\"op\": \"open\"}", "t:2: field seq: missing"},
        {"{\"op\": \"open\", \"seq\": 1, \"sequence\": 1}", "t:2: field sequence: unknown argument"},
        {"{\"op\": \"open\", \"seq\": 1, \"n_tokens\": 1}", "t:2: field n_tokens: unknown argument"},
        {"{\"op\": \"open\", \"seq\": 1, \"expect\": []}", "t:2: field expect: expected an object, got []"},
        {"{\"op\": \"open\", \"seq\": 1, \"note\": null}", "t:2: field note: expected a string, got null"},
        {"{\"op\": \"fork\", \"seq\": 1}", "t:2: field child: missing"},
        {"{\"op\": \"reserve\", \"seq\": 1}", "t:2: field n_tokens: missing"},
        {"{\"op\": \"set_priority\", \"seq\": 1}", "t:2: field priority: missing"},
        {"{\"op\": \"attach\", \"seq\": 1}", "t:2: field tokens: missing"},
        {"{\"op\": \"attach\", \"seq\": 1, \"n_tokens\": 1}", "t:2: field n_tokens: unknown argument"},
        {"{\"op\": \"attach\", \"seq\": 1, \"tokens\": [], \"keys\": []}", "t:2: field keys: unknown argument"},
        {"{\"op\": \"plan\", \"batch\": 1}", "t:2: field entries: missing"},
        {"{\"op\": \"end\"}", "t:2: field batch: missing"},
        {"{\"op\": \"page\"}", "t:2: field page: missing"},
    };
    CHECK_REFUSED(HEAD, cases);
}
END_TEST

START_TEST(numbers_and_words_have_their_range)
{
    static const refusal cases[] = {
        {"{\"op\": \"open\", \"seq\": 0}", "t:2: field seq: expected an integer 1 to 9223372036854775807, got 0"},
        {"{\"op\": \"open\", \"seq\": -1}", "t:2: field seq: expected an integer 1 to 9223372036854775807, got -1"},
        {"{\"op\": \"close\", \"seq\": -1}", "t:2: field seq: expected an integer 0 to 9223372036854775807, got -1"},
        {"{\"op\": \"close\", \"seq\": \"1\"}",
         "t:2: field seq: expected an integer 0 to 9223372036854775807, got \"1\""},
        {"{\"op\": \"open\", \"seq\": 1, \"priority\": 2147483648}",
         "t:2: field priority: expected an integer -2147483648 to 2147483647, got 2147483648"},
        {"{\"op\": \"open\", \"seq\": 1, \"adapter\": -1}",
         "t:2: field adapter: expected an integer 0 to 9223372036854775807, got -1"},
        {"{\"op\": \"open\", \"seq\": 1, \"adapter\": \"00000000000000001\"}",
         "t:2: field adapter: expected an integer or 1 to 16 hexadecimal digits, got \"00000000000000001\""},
        {"{\"op\": \"open\", \"seq\": 1, \"salt\": 5}", "t:2: field salt: expected 1 to 32 hexadecimal digits, got 5"},
        {"{\"op\": \"open\", \"seq\": 1, \"salt\": \"\"}",
         "t:2: field salt: expected 1 to 32 hexadecimal digits, got \"\""},
        {"{\"op\": \"open\", \"seq\": 1, \"salt\": \"0x1\"}",
         "t:2: field salt: expected 1 to 32 hexadecimal digits, got \"0x1\""},
        {"{\"op\": \"open\", \"seq\": 1, \"salt\": \"000000000000000000000000000000001\"}",
         "t:2: field salt: expected 1 to 32 hexadecimal digits, got \"000000000000000000000000000000001\""},
        {"{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 4294967296}",
         "t:2: field n_tokens: expected an integer 0 to 4294967295, got 4294967296"},
        {"{\"op\": \"reserve\", \"seq\": 1, \"n_tokens\": 1, \"effort\": \"all\"}",
         "t:2: field effort: expected one of free_only reclaim evict, got \"all\""},
        {"{\"op\": \"moves\", \"cap\": 0}", "t:2: field cap: expected an integer 1 to 4294967295, got 0"},
        {"{\"op\": \"plan\", \"batch\": 0, \"entries\": []}",
         "t:2: field batch: expected an integer 1 to 9223372036854775807, got 0"},
        {"{\"op\": \"plan\", \"batch\": 1, \"entries\": [], \"form\": \"rows\"}",
         "t:2: field form: expected one of csr padded, got \"rows\""},
    };
    CHECK_REFUSED(HEAD, cases);
}
END_TEST

START_TEST(lists_name_the_bad_item)
{
    static const refusal cases[] = {
        {"{\"op\": \"lookup\", \"tokens\": 5}", "t:2: field tokens: expected a list of tokens, got 5"},
        {"{\"op\": \"lookup\", \"tokens\": [1, -1]}",
         "t:2: field tokens[1]: expected a token or a run [first, count] below 2^32, got -1"},
        {"{\"op\": \"lookup\", \"tokens\": [4294967296]}",
         "t:2: field tokens[0]: expected a token or a run [first, count] below 2^32, got 4294967296"},
        {"{\"op\": \"lookup\", \"tokens\": [[1]]}",
         "t:2: field tokens[0]: expected a token or a run [first, count] below 2^32, got [1]"},
        {"{\"op\": \"lookup\", \"tokens\": [[1, 0]]}",
         "t:2: field tokens[0]: expected a token or a run [first, count] below 2^32, got [1,0]"},
        {"{\"op\": \"lookup\", \"tokens\": [[1, 2, 3]]}",
         "t:2: field tokens[0]: expected a token or a run [first, count] below 2^32, got [1,2,3]"},
        {"{\"op\": \"lookup\", \"tokens\": [[4294967295, 2]]}",
         "t:2: field tokens[0]: expected a token or a run [first, count] below 2^32, got [4294967295,2]"},
        {"{\"op\": \"lookup\", \"tokens\": [[0, 9223372036854775807]]}",
         "t:2: field tokens[0]: expected a token or a run [first, count] below 2^32, got [0,9223372036854775807]"},
        {"{\"op\": \"lookup\", \"tokens\": [[0, 4294967296]]}", "t:2: field tokens: more than 67108864 tokens"},
        {"{\"op\": \"lookup\", \"tokens\": [[0, 67108864], 1]}", "t:2: field tokens: more than 67108864 tokens"},
        {"{\"op\": \"plan\", \"batch\": 1, \"entries\": {}}", "t:2: field entries: expected a list, got {}"},
        {"{\"op\": \"plan\", \"batch\": 1, \"entries\": [[1, 1], [1]]}",
         "t:2: field entries[1]: expected [seq, n_query], got [1]"},
        {"{\"op\": \"plan\", \"batch\": 1, \"entries\": [[1, -1]]}",
         "t:2: field entries[0]: expected [seq, n_query], got [1,-1]"},
        {"{\"op\": \"end\", \"batch\": 1, \"accepted\": 1}", "t:2: field accepted: expected a list, got 1"},
        {"{\"op\": \"end\", \"batch\": 1, \"accepted\": [1, null]}",
         "t:2: field accepted[1]: expected a number of tokens, got null"},
    };
    CHECK_REFUSED(HEAD, cases);
}
END_TEST

START_TEST(other_content_has_other_arguments)
{
    static const refusal keys[] = {
        {"{\"op\": \"lookup\", \"tokens\": [1]}", "t:2: field tokens: unknown argument"},
        {"{\"op\": \"lookup\", \"n_tokens\": 1}", "t:2: field keys: missing"},
        {"{\"op\": \"lookup\", \"keys\": []}", "t:2: field n_tokens: missing"},
        {"{\"op\": \"lookup\", \"n_tokens\": 9, \"keys\": 1}", "t:2: field keys: expected a list of keys, got 1"},
        {"{\"op\": \"lookup\", \"n_tokens\": 9, \"keys\": [\"a\", \"g\"]}",
         "t:2: field keys[1]: expected 1 to 32 hexadecimal digits, got \"g\""},
    };
    static const refusal none[] = {
        {"{\"op\": \"lookup\", \"tokens\": [1]}", "t:2: field tokens: unknown argument"},
        {"{\"op\": \"lookup\", \"n_tokens\": 1, \"keys\": []}", "t:2: field keys: unknown argument"},
        {"{\"op\": \"lookup\"}", "t:2: field n_tokens: missing"},
    };
    CHECK_REFUSED("{\"kvkeep_oplog\": 1, \"pages\": 4, \"content\": \"keys\"}\n", keys);
    CHECK_REFUSED("{\"kvkeep_oplog\": 1, \"pages\": 4, \"content\": \"none\"}\n", none);
}
END_TEST

START_TEST(an_open_id_cannot_be_opened_again)
{
    static const refusal cases[] = {
        {"{\"op\": \"open\", \"seq\": 1}",
         "t:3: field seq: 1 is open already"}, /* TensorRT-LLM: duplicate request id */
        {"{\"op\": \"fork\", \"seq\": 1, \"child\": 1}", "t:3: field child: 1 is open already"},
        {"{\"op\": \"plan\", \"batch\": 7, \"entries\": []}\n{\"op\": \"plan\", \"batch\": 7, \"entries\": []}",
         "t:4: field batch: 7 is open already"},
    };
    CHECK_REFUSED(HEAD OPEN, cases);
}
END_TEST

START_TEST(a_batch_has_a_limit)
{
    enum { ITEMS = 65537 };
    char *text = malloc(sizeof HEAD + 64 + 6 * ITEMS);
    char *at = text + sprintf(text, HEAD "{\"op\": \"plan\", \"batch\": 1, \"entries\": [[1,0]");
    for (int i = 1; i < ITEMS; i++)
        at += sprintf(at, ",[1,0]");
    strcpy(at, "]}");
    oplog_text_ends(text, TRACE_BAD_INPUT, "t:2: field entries: more than 65536 items");
    free(text);
}
END_TEST

START_TEST(a_plan_that_is_read_has_a_limit)
{
    static const refusal cases[] = {
        {"{\"op\": \"plan\", \"batch\": 1, \"entries\": [], \"row_pages\": 16777217}",
         "t:3: field entries: its lists take more than 16777216 places"},
        {"{\"op\": \"plan\", \"batch\": 1, \"entries\": [[1, 0]], \"row_pages\": 4294967295, \"form\": \"padded\"}",
         "t:3: field entries: its lists take more than 16777216 places"},
    };
    CHECK_REFUSED(HEAD OPEN, cases);
}
END_TEST

int main(void)
{
    return RUN_TESTS("oplog_errors", a_first_line_is_required_and_checked, a_line_is_one_json_object_without_doubles,
                     ops_and_arguments_are_known, numbers_and_words_have_their_range, lists_name_the_bad_item,
                     other_content_has_other_arguments, an_open_id_cannot_be_opened_again, a_batch_has_a_limit,
                     a_plan_that_is_read_has_a_limit);
}
