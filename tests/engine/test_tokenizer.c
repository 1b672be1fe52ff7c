/* Text to ids and back, in a small vocabulary with every pre-tokenizer. */
#include "engine/small_texts.h"
#include "engine/small_tokenizer.h"
#include "run_tests.h"

#include <time.h>

enum { N_TEXTS = sizeof small_texts / sizeof small_texts[0], MEGABYTE = 1 << 20 };

static const struct family {
    const char *pre;
    const int32_t *ids;
} families[] = {{"gpt2", ids_gpt2}, {"smollm", ids_smollm}, {"llama-bpe", ids_llama_bpe}, {"qwen2", ids_qwen2}};

enum { N_FAMILIES = sizeof families / sizeof families[0] };

static tokenizer *open_small(const char *pre)
{
    tokenizer *t = small_tokenizer_open(pre);
    ck_assert_ptr_nonnull(t);
    return t;
}

/* The text ends where its memory does, so that a sanitizer sees a read past it. */
static token_list encode(const tokenizer *t, const char *text, size_t n, unsigned flags)
{
    token_list ids = {0};
    trace_error error = {""};
    char *exact = malloc(n ? n : 1);
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, text, n);
    ck_assert_msg(tokenizer_encode(t, exact, n, flags, &ids, &error) == 0, "%s", error.text);
    free(exact);
    return ids;
}

static const int32_t *check_ids(const tokenizer *t, const small_text *text, const int32_t *want)
{
    token_list ids = encode(t, text->text, text->n, 0);
    size_t n = 0;
    for (; want[n] >= 0; n++) {
        ck_assert_msg(n < ids.n, "'%s' has %zu tokens only", text->text, ids.n);
        ck_assert_msg(ids.ids[n] == want[n], "'%s': token %zu is %d, not %d", text->text, n, ids.ids[n], want[n]);
    }
    ck_assert_uint_eq(ids.n, n);
    ck_assert(small_spells(t, &ids, 0, text->text, text->n));
    token_list_free(&ids);
    return want + n + 1;
}

START_TEST(ids_are_those_of_another_implementation)
{
    tokenizer *t = open_small(families[_i].pre);
    const int32_t *want = families[_i].ids;
    for (size_t i = 0; i < N_TEXTS; i++)
        want = check_ids(t, &small_texts[i], want);
    tokenizer_close(t);
}
END_TEST

static void expect(const tokenizer *t, const char *text, unsigned flags, const int32_t *want)
{
    token_list ids = encode(t, text, strlen(text), flags);
    for (size_t i = 0; i < ids.n; i++)
        ck_assert_int_eq(ids.ids[i], want[i]);
    ck_assert_int_eq(want[ids.n], -1);
    token_list_free(&ids);
}

#define EXPECT(t, text, flags, ...) expect(t, text, flags, (const int32_t[]){__VA_ARGS__, -1})
#define BYTE(c) (SMALL_MARKS + (c))

START_TEST(control_tokens_are_recognised_where_that_is_asked_for)
{
    tokenizer *t = open_small("gpt2");
    EXPECT(t, "<|end|>", TOKENIZER_MARKS, 1);
    EXPECT(t, "x<|end|><|begin|>", TOKENIZER_MARKS, BYTE('x'), 1, 0);
    /* The longest one, and the rest as text. */
    EXPECT(t, "<|en", TOKENIZER_MARKS, 2);
    EXPECT(t, "<|en<|end|", TOKENIZER_MARKS, 2, 2, BYTE('d'), BYTE('|'));
    EXPECT(t, "<<|end|>>", TOKENIZER_MARKS, BYTE('<'), 1, BYTE('>'));
    token_list ids = encode(t, "<|end|>", 7, 0);
    for (size_t i = 0; i < ids.n; i++)
        ck_assert_int_ge(ids.ids[i], SMALL_MARKS);
    token_list_free(&ids);
    tokenizer_close(t);
}
END_TEST

START_TEST(no_token_joins_across_a_control_token)
{
    tokenizer *t = open_small("gpt2");
    EXPECT(t, "i<|end|>n", TOKENIZER_MARKS, BYTE('i'), 1, BYTE('n'));
    token_list whole = encode(t, "in", 2, 0);
    ck_assert_uint_eq(whole.n, 1);
    token_list_free(&whole);
    tokenizer_close(t);
}
END_TEST

START_TEST(a_text_begins_as_the_models_texts_do)
{
    tokenizer *plain = open_small("gpt2"), *begins = open_small("llama-bpe");
    EXPECT(plain, "x", TOKENIZER_BEGIN, BYTE('x'));
    EXPECT(begins, "x", TOKENIZER_BEGIN, 0, BYTE('x'));
    EXPECT(begins, "x", 0, BYTE('x'));
    EXPECT(begins, "", TOKENIZER_BEGIN, 0);
    tokenizer_close(plain);
    tokenizer_close(begins);
}
END_TEST

START_TEST(ids_go_to_the_end_of_the_list)
{
    tokenizer *t = open_small("gpt2");
    token_list ids = {0};
    trace_error error;
    ck_assert_int_eq(tokenizer_encode(t, "x x", 3, 0, &ids, &error), 0);
    size_t first = ids.n;
    ck_assert_int_eq(tokenizer_encode(t, "x x", 3, 0, &ids, &error), 0);
    ck_assert_uint_eq(ids.n, 2 * first);
    ck_assert(small_spells(t, &ids, 0, "x xx x", 6));
    token_list_free(&ids);
    tokenizer_close(t);
}
END_TEST

START_TEST(tokens_are_known_by_their_ids)
{
    tokenizer *t = open_small("gpt2");
    const char *bytes = NULL;
    size_t n = 0;
    ck_assert_uint_eq(tokenizer_size(t), SMALL_TOKENS);
    ck_assert_int_eq(tokenizer_bytes(t, -1, &bytes, &n), TRACE_BAD_INPUT);
    ck_assert_int_eq(tokenizer_bytes(t, SMALL_TOKENS, &bytes, &n), TRACE_BAD_INPUT);
    ck_assert_int_eq(tokenizer_bytes(t, BYTE(0), &bytes, &n), 0);
    ck_assert(n == 1 && bytes[0] == '\0');
    ck_assert_int_eq(tokenizer_begin(t), 0);
    ck_assert_int_eq(tokenizer_end(t), 1);
    ck_assert_int_eq(tokenizer_mark(t, "<|end|>"), 1);
    ck_assert_int_eq(tokenizer_mark(t, "<|en"), 2);
    ck_assert_int_eq(tokenizer_mark(t, "<|e"), -1);
    ck_assert_int_eq(tokenizer_mark(t, "<|end|>x"), -1);
    ck_assert_int_eq(tokenizer_mark(t, ""), -1);
    ck_assert(tokenizer_is_end(t, 1) && !tokenizer_is_end(t, 0) && !tokenizer_is_end(t, -1));
    tokenizer_close(t);
}
END_TEST

static uint32_t draw(uint64_t *random, uint32_t n)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*random >> 33) % n;
}

/* Bytes of any kind, or of few kinds, so that merges and marks come up. */
static size_t draw_text(uint64_t *random, char *text, size_t cap)
{
    static const char few[] = " the\n<|end|>in'0\xE9\xAF\xA8\xC3";
    size_t n = draw(random, (uint32_t)cap);
    int any = draw(random, 2) == 0;
    for (size_t i = 0; i < n; i++)
        text[i] = any ? (char)(unsigned char)draw(random, 256) : few[draw(random, sizeof few - 1)];
    return n;
}

START_TEST(any_bytes_come_back)
{
    tokenizer *t = open_small(families[_i].pre);
    uint64_t random = 5;
    char text[200];
    for (int round = 0; round < 4000; round++) {
        size_t n = draw_text(&random, text, sizeof text);
        token_list ids = encode(t, text, n, round % 2 ? TOKENIZER_MARKS : 0);
        ck_assert(small_spells(t, &ids, 0, text, n));
        token_list_free(&ids);
    }
    tokenizer_close(t);
}
END_TEST

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Texts that are all one word, or that a pre-tokenizer may go back over. Each takes some tenths of a second at most; a
 * quadratic step would take minutes. */
START_TEST(a_megabyte_of_anything_takes_no_longer_than_another)
{
    static const char *const patterns[] = {"a", " ", "\n",   " \n", "the",  "-",
                                           "'", "1", "<|en", "<",   "\x80", "\xE9\xAF\xA8"};
    tokenizer *t = open_small(families[_i].pre);
    char *text = malloc(MEGABYTE);
    ck_assert_ptr_nonnull(text);
    for (size_t p = 0; p < sizeof patterns / sizeof patterns[0]; p++) {
        size_t length = strlen(patterns[p]);
        for (size_t i = 0; i < MEGABYTE; i++)
            text[i] = patterns[p][i % length];
        double start = seconds();
        token_list ids = encode(t, text, MEGABYTE, TOKENIZER_MARKS);
        ck_assert_msg(seconds() - start < 20, "'%s' takes %.1f s", patterns[p], seconds() - start);
        ck_assert(small_spells(t, &ids, 0, text, MEGABYTE));
        token_list_free(&ids);
    }
    free(text);
    tokenizer_close(t);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tokenizer");
    tcase_add_loop_test(tests, ids_are_those_of_another_implementation, 0, N_FAMILIES);
    tcase_add_test(tests, control_tokens_are_recognised_where_that_is_asked_for);
    tcase_add_test(tests, no_token_joins_across_a_control_token);
    tcase_add_test(tests, a_text_begins_as_the_models_texts_do);
    tcase_add_test(tests, ids_go_to_the_end_of_the_list);
    tcase_add_test(tests, tokens_are_known_by_their_ids);
    tcase_add_loop_test(tests, any_bytes_come_back, 0, N_FAMILIES);
    tcase_add_loop_test(tests, a_megabyte_of_anything_takes_no_longer_than_another, 0, N_FAMILIES);
    return run_tests("tokenizer", tests);
}
