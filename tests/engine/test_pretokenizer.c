/* Where words end. */
#include "engine/pretokenizer.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>

static pretokenizer p;
static pretokenizer_search search;

static void open_named(const char *name)
{
    trace_error error = {""};
    tokenizer_source source = {.path = "m.gguf", .pre = {name, strlen(name)}};
    ck_assert_msg(pretokenizer_open(&p, &source, &error) == 0, "%s", error.text);
    ck_assert_int_eq(pretokenizer_search_open(&search, &p), 0);
}

static void close_it(void)
{
    pretokenizer_search_close(&search);
    pretokenizer_close(&p);
}

static size_t put_utf8(uint32_t c, char *out)
{
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3F));
    out[0] = (char)(first[n] | c);
    return n;
}

/* Three of a character and a mark: only white space leaves its last one to the next word. */
static int is_space(uint32_t c)
{
    char text[16];
    size_t n = put_utf8(c, text);
    memcpy(text + n, text, n);
    memcpy(text + 2 * n, text, n);
    text[3 * n] = '!';
    return pretokenizer_word_end(&search, text, 3 * n + 1, 0) == 2 * n;
}

/* The property White_Space of Unicode's PropList.txt, unchanged since version 6.3. */
START_TEST(white_space_is_unicodes)
{
    static const uint32_t spaces[] = {0x9,    0xA,    0xB,    0xC,    0xD,    0x20,   0x85,   0xA0,   0x1680,
                                      0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008,
                                      0x2009, 0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0};
    static const char *const names[] = {"gpt2", "smollm", "qwen2"};
    size_t next = 0;
    open_named(names[_i]);
    for (uint32_t c = 1; c < 0x110000; c++) {
        if (c >= 0xD800 && c < 0xE000)
            continue;
        int want = c == spaces[next];
        /* A line's end takes all line ends in qwen2, none of which is left to the next word. */
        int lines = _i == 2 && (c == '\n' || c == '\r');
        if (is_space(c) != (want && !lines))
            ck_abort_msg("U+%04X is%s white space", (unsigned)c, want ? "" : " no");
        next += (size_t)want;
    }
    ck_assert_uint_eq(spaces[next], 0);
    close_it();
}
END_TEST

/* Lengths of the words as PyPI's tokenizers 0.23.3 gives them (pre_tokenize_str), in bytes. */
static const struct {
    const char *text;
    const char *gpt2, *smollm, *llama3, *qwen2;
} cases[] = {
    {"\?!\r\n\n$", "2 2 1 1", "2 2 1 1", "5 1", "5 1"},
    {"  \r\n \n  x", "7 2", "7 2", "6 1 2", "6 1 2"},
    {"x1234 5", "1 4 2", "1 1 1 1 1 1 1", "1 3 1 1 1", "1 1 1 1 1 1 1"},
    {"'LLx'll", "1 3 3", "1 3 3", "3 1 3", "3 1 3"},
    {"a.b\tc", "1 1 1 1 1", "1 1 1 1 1", "1 2 2", "1 2 2"},
    {" \xE2\x80\xA8 !", "4 2", "4 2", "4 2", "4 2"},
};

static void check_words(const char *name, const char *text, const char *want)
{
    char found[64] = "";
    open_named(name);
    for (size_t at = 0, n = strlen(text), end; at < n; at = end) {
        end = pretokenizer_word_end(&search, text, n, at);
        ck_assert_uint_gt(end, at);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%zu", at ? " " : "", end - at);
    }
    ck_assert_str_eq(found, want);
    close_it();
}

START_TEST(words_are_those_of_another_implementation)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_words("gpt2", cases[i].text, cases[i].gpt2);
        check_words("smollm", cases[i].text, cases[i].smollm);
        check_words("llama3", cases[i].text, cases[i].llama3);
        check_words("qwen2", cases[i].text, cases[i].qwen2);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("pretokenizer");
    tcase_add_loop_test(tests, white_space_is_unicodes, 0, 3);
    tcase_add_test(tests, words_are_those_of_another_implementation);
    return run_tests("pretokenizer", tests);
}
