/* Lines and error texts, whatever bytes come. */
#define _POSIX_C_SOURCE 200809L /* fmemopen */
#include "run_tests.h"
#include "trace/lines.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static char bytes[] = "one\n\ntwo\r\nlast";

START_TEST(lines_end_with_lf_crlf_or_the_input)
{
    static const char *const want[] = {"one", "", "two", "last"};
    line_reader lines;
    trace_error error;
    FILE *in = fmemopen(bytes, strlen(bytes), "r");
    lines_open(&lines, in, "t");
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(lines_next(&lines, &error), 1);
        ck_assert_str_eq(lines.text, want[i]);
        ck_assert_uint_eq(lines.length, strlen(want[i]));
        ck_assert_uint_eq(lines.line, i + 1);
    }
    ck_assert_int_eq(lines_next(&lines, &error), 0);
    ck_assert_int_eq(lines_next(&lines, &error), 0);
    lines_close(&lines);
    fclose(in);
}
END_TEST

START_TEST(an_unread_line_comes_again)
{
    line_reader lines;
    trace_error error;
    FILE *in = fmemopen(bytes, strlen(bytes), "r");
    lines_open(&lines, in, "t");
    ck_assert_int_eq(lines_next(&lines, &error), 1);
    lines_unread(&lines);
    ck_assert_int_eq(lines_next(&lines, &error), 1);
    ck_assert_str_eq(lines.text, "one");
    ck_assert_uint_eq(lines.line, 1);
    ck_assert_int_eq(lines_next(&lines, &error), 1);
    ck_assert_str_eq(lines.text, "");
    lines_close(&lines);
    fclose(in);
}
END_TEST

START_TEST(a_look_takes_nothing_away)
{
    line_reader lines;
    trace_error error;
    const char *head;
    FILE *in = fmemopen(bytes, strlen(bytes), "r");
    lines_open(&lines, in, "t");
    ck_assert_int_eq(lines_peek(&lines, &head, &error), 0);
    ck_assert_str_eq(head, bytes);
    ck_assert_uint_eq(lines.line, 0);
    ck_assert_int_eq(lines_next(&lines, &error), 1);
    ck_assert_str_eq(lines.text, "one");
    lines_close(&lines);
    fclose(in);
}
END_TEST

/* After a look, which must not count, and more than a block. */
START_TEST(all_that_is_left_is_one_text)
{
    enum { LONG = 200000 };
    char *want = calloc(1, LONG + 1);
    const char *head;
    for (int most = LONG - 1; most <= LONG; most++) {
        line_reader lines;
        trace_error error;
        FILE *in = tmpfile();
        for (int i = 0; i < LONG; i++)
            fputc(want[i] = (char)(i % 70 ? 'a' + i % 7 : '\n'), in);
        rewind(in);
        lines_open(&lines, in, "t");
        ck_assert_int_eq(lines_peek(&lines, &head, &error), 0);
        ck_assert_int_eq(lines_all(&lines, (size_t)most, &error), most == LONG ? 0 : TRACE_BAD_INPUT);
        if (most == LONG)
            ck_assert_str_eq(lines.text, want);
        else
            ck_assert_str_eq(error.text, "t: longer than 199999 bytes");
        lines_close(&lines);
        fclose(in);
    }
    free(want);
}
END_TEST

/* Across many blocks, and the buffer is reused. */
START_TEST(long_and_short_lines_alternate)
{
    enum { LONG = 300000 };
    line_reader lines;
    trace_error error;
    FILE *in = tmpfile();
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < (i % 2 ? LONG : 3); j++)
            fputc('a' + i, in);
        fputc('\n', in);
    }
    rewind(in);
    lines_open(&lines, in, "t");
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(lines_next(&lines, &error), 1);
        ck_assert_uint_eq(lines.length, i % 2 ? LONG : 3);
        ck_assert_int_eq(lines.text[0], 'a' + i);
        ck_assert_int_eq(lines.text[lines.length - 1], 'a' + i);
    }
    ck_assert_int_eq(lines_next(&lines, &error), 0);
    lines_close(&lines);
    fclose(in);
}
END_TEST

static int read_long_line(size_t length, trace_error *error)
{
    line_reader lines;
    FILE *in = tmpfile();
    char block[4096];
    memset(block, 'x', sizeof block);
    for (size_t done = 0; done < length; done += sizeof block)
        fwrite(block, 1, length - done < sizeof block ? length - done : sizeof block, in);
    fputs("\nnext\n", in);
    rewind(in);
    lines_open(&lines, in, "t");
    int rc = lines_next(&lines, error);
    ck_assert(rc < 0 || lines.length == length);
    lines_close(&lines);
    fclose(in);
    return rc;
}

START_TEST(a_line_has_a_limit)
{
    trace_error error;
    ck_assert_int_eq(read_long_line(TRACE_LINE_MAX, &error), 1);
    ck_assert_int_eq(read_long_line(TRACE_LINE_MAX + 1, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "t:1: longer than 16777216 bytes");
    ck_assert_int_eq(read_long_line(3 * TRACE_LINE_MAX, &error), TRACE_BAD_INPUT);
}
END_TEST

START_TEST(a_nul_byte_is_an_error)
{
    char with_nul[] = "ok\na\0b\n";
    line_reader lines;
    trace_error error;
    FILE *in = fmemopen(with_nul, sizeof with_nul - 1, "r");
    lines_open(&lines, in, "t");
    ck_assert_int_eq(lines_next(&lines, &error), 1);
    ck_assert_int_eq(lines_next(&lines, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "t:2: holds a NUL byte");
    lines_close(&lines);
    fclose(in);
}
END_TEST

START_TEST(a_directory_is_an_error)
{
    line_reader lines;
    trace_error error;
    FILE *in = fopen("/", "r");
    lines_open(&lines, in, "/");
    ck_assert_int_eq(lines_next(&lines, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "/: is a directory");
    lines_close(&lines);
    fclose(in);
}
END_TEST

START_TEST(an_error_names_file_line_and_field)
{
    trace_error error;
    ck_assert_int_eq(trace_bad_input(&error, (trace_place){"f", 7, "x"}, "%d is odd", 3), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "f:7: field x: 3 is odd");
    ck_assert_int_eq(trace_failed(&error, (trace_place){"f", 0, NULL}, "no"), TRACE_FAILED);
    ck_assert_str_eq(error.text, "f: no");
}
END_TEST

START_TEST(an_error_escapes_what_it_quotes)
{
    trace_error error;
    trace_bad_input(&error, (trace_place){"a\nb", 1, "\x1b[31m"}, "%s",
                    "\xc3\xa9 \xff \xc0\x80 \xed\xa0\x80 \xc2\x85 \x7f");
    ck_assert_str_eq(error.text,
                     "a\\x0Ab:1: field \\x1B[31m: \xc3\xa9 \\xFF \\xC0\\x80 \\xED\\xA0\\x80 \\xC2\\x85 \\x7F");
}
END_TEST

/* Cut between characters, never within one. */
START_TEST(a_long_error_is_cut)
{
    trace_error error;
    char text[1200];
    for (size_t i = 0; i + 1 < sizeof text; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    text[1197] = '\0';
    trace_bad_input(&error, (trace_place){"f", 1, NULL}, "%s", text);
    size_t n = strlen(error.text);
    ck_assert_uint_lt(n, sizeof error.text);
    ck_assert_uint_gt(n, sizeof error.text - 20);
    for (size_t i = 0; i < n; i += trace_utf8_length(error.text + i, n - i))
        ck_assert_uint_gt(trace_utf8_length(error.text + i, n - i), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lines");
    tcase_add_test(t, lines_end_with_lf_crlf_or_the_input);
    tcase_add_test(t, an_unread_line_comes_again);
    tcase_add_test(t, a_look_takes_nothing_away);
    tcase_add_test(t, all_that_is_left_is_one_text);
    tcase_add_test(t, long_and_short_lines_alternate);
    tcase_add_test(t, a_line_has_a_limit);
    tcase_add_test(t, a_nul_byte_is_an_error);
    tcase_add_test(t, a_directory_is_an_error);
    tcase_add_test(t, an_error_names_file_line_and_field);
    tcase_add_test(t, an_error_escapes_what_it_quotes);
    tcase_add_test(t, a_long_error_is_cut);
    return run_tests("trace_lines", t);
}
