/* Whole characters out of bytes that come in any pieces. */
#include "engine/utf8_stream.h"
#include "run_tests.h"
#include "trace/error.h"

#include <string.h>

#define FFFD "\xEF\xBF\xBD"

/* All of a text in pieces of `piece` bytes, as a terminal gets it. */
static void stream(const char *text, size_t n, size_t piece, char *out)
{
    utf8_stream s = {0};
    size_t used = 0;
    for (size_t at = 0; at < n; at += piece)
        used += utf8_stream_put(&s, text + at, piece < n - at ? piece : n - at, out + used);
    used += utf8_stream_end(&s, out + used);
    out[used] = '\0';
}

static const struct {
    const char *text, *want;
} cases[] = {
    {"", ""},
    {"plain\n\ttext", "plain\n\ttext"},
    {"na\xC3\xAFve \xE9\xAF\xA8 \xF0\x9F\x90\x8B", "na\xC3\xAFve \xE9\xAF\xA8 \xF0\x9F\x90\x8B"},
    {"a\x80z", "a" FFFD "z"},
    {"\xC3", FFFD},
    {"\xC3(", FFFD "("},
    {"\xE9\xAF", FFFD},
    {"\xE9\xAFz", FFFD "z"},
    {"\xE9\xE9\xAF\xA8", FFFD "\xE9\xAF\xA8"},
    {"\xF0\x9F\x90\xF0\x9F\x90\x8B", FFFD "\xF0\x9F\x90\x8B"},
    {"\xED\xA0\x80", FFFD FFFD FFFD}, /* a surrogate: its second byte can belong to no character */
    {"\xC0\xAF", FFFD FFFD},
    {"\xF4\x90\x80\x80", FFFD FFFD FFFD FFFD},
    {"\xFF\xFE", FFFD FFFD},
    {"\x1B[2J\r\x7F\xC2\x9B", FFFD "[2J" FFFD FFFD FFFD},
};

START_TEST(pieces_make_no_difference)
{
    char out[UTF8_STREAM_ROOM(64)];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t piece = 1; piece < 6; piece++) {
            stream(cases[i].text, strlen(cases[i].text), piece, out);
            ck_assert_str_eq(out, cases[i].want);
        }
}
END_TEST

START_TEST(a_character_comes_with_its_last_byte)
{
    utf8_stream s = {0};
    char out[UTF8_STREAM_ROOM(1)];
    ck_assert_uint_eq(utf8_stream_put(&s, "\xF0", 1, out), 0);
    ck_assert_uint_eq(utf8_stream_put(&s, "\x9F", 1, out), 0);
    ck_assert_uint_eq(utf8_stream_put(&s, "\x90", 1, out), 0);
    ck_assert_uint_eq(utf8_stream_put(&s, "\x8B", 1, out), 4);
    ck_assert_mem_eq(out, "\xF0\x9F\x90\x8B", 4);
    ck_assert_uint_eq(utf8_stream_end(&s, out), 0);
}
END_TEST

START_TEST(what_comes_out_is_utf8)
{
    uint64_t random = 3;
    char text[64], out[UTF8_STREAM_ROOM(64) + 1];
    for (int round = 0; round < 50000; round++) {
        for (size_t i = 0; i < sizeof text; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[i] = (char)(unsigned char)(random >> 56 | (random & 1u << 20 ? 0xC0 : 0));
        }
        stream(text, sizeof text, 1 + (size_t)round % 7, out);
        for (size_t at = 0, n = strlen(out), length; at < n; at += length) {
            length = trace_utf8_length(out + at, n - at);
            if (length == 0)
                ck_abort_msg("round %d: byte %zu begins no character", round, at);
        }
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("utf8_stream");
    tcase_add_test(tests, pieces_make_no_difference);
    tcase_add_test(tests, a_character_comes_with_its_last_byte);
    tcase_add_test(tests, what_comes_out_is_utf8);
    return run_tests("utf8_stream", tests);
}
