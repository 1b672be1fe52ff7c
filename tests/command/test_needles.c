/* Prompts with needles, over a small vocabulary: exact lengths, depths, keys where they belong and nowhere else. */
#include "command/prompt_text.h"
#include "engine/small_tokenizer.h"
#include "kvkeep/eval/needle_prompt.h"
#include "run_tests.h"

static tokenizer *t;
static needle_haystack filler;

enum { LENGTH = 600 };

static void open_all(void)
{
    trace_error error;
    t = small_tokenizer_open("smollm");
    ck_assert_ptr_nonnull(t);
    ck_assert_msg(needle_haystack_fill(t, LENGTH, &filler, &error) == 0, "%s", error.text);
}

static void close_all(void)
{
    needle_haystack_close(&filler);
    tokenizer_close(t);
}

static needle_prompt make(const needle_spec *spec)
{
    needle_prompt p;
    trace_error error;
    ck_assert_msg(needle_prompt_make(t, spec, &p, &error) == 0, "%s", error.text);
    return p;
}

static needle_spec spec_of(uint32_t wording, uint32_t stated, needle_keys keys, uint64_t seed)
{
    return (needle_spec){.haystack = &filler,
                         .wording = needle_wording_at(wording),
                         .length = LENGTH,
                         .depth = 0.5,
                         .stated = stated,
                         .keys = keys,
                         .seed = seed};
}

/* ---- What a prompt is made of ----------------------------------------------------------------------------------- */

START_TEST(a_text_has_its_length_and_the_key_as_often_as_it_is_stated)
{
    for (uint32_t w = 0; needle_wording_at(w); w++)
        for (uint32_t stated = 1; stated <= 2; stated++)
            for (int keys = NEEDLE_DIGITS; keys <= NEEDLE_WORDS; keys++) {
                needle_spec spec = spec_of(w, stated, (needle_keys)keys, w + 10);
                needle_prompt p = make(&spec);
                ck_assert_uint_eq(p.n_text, LENGTH);
                ck_assert_uint_eq(prompt_count(prompt_text(t, p.tokens, p.n_text), p.key), stated);
                ck_assert_uint_eq(prompt_count(prompt_text(t, p.tokens + p.needle, p.n_needle), p.key), stated);
                ck_assert_uint_eq(prompt_count(prompt_text(t, p.tokens + p.n_text, p.n_question), p.key), 0);
                needle_prompt_free(&p);
            }
}
END_TEST

START_TEST(the_answer_is_the_key)
{
    needle_spec spec = spec_of(0, 1, NEEDLE_DIGITS, 3);
    needle_prompt p = make(&spec);
    ck_assert_str_eq(prompt_text(t, p.tokens + p.n_text + p.n_question, p.n_answer), p.key);
    ck_assert_uint_eq(p.n_answer, 5); /* a token each: a space before them is the question's */
    ck_assert_uint_eq(strspn(p.key, "0123456789"), 5);
    needle_prompt_free(&p);
    spec = spec_of(0, 1, NEEDLE_WORDS, 3);
    p = make(&spec);
    const char *answer = prompt_text(t, p.tokens + p.n_text + p.n_question, p.n_answer);
    ck_assert_str_eq(answer + (answer[0] == ' '), p.key);
    ck_assert_uint_eq(prompt_count(p.key, " "), 1);
    needle_prompt_free(&p);
}
END_TEST

START_TEST(the_needle_stands_at_its_depth_between_sentences)
{
    for (uint32_t i = 0; i <= 10; i++) {
        needle_spec spec = spec_of(i, 1, NEEDLE_DIGITS, i);
        spec.depth = i / 10.0;
        needle_prompt p = make(&spec);
        double wanted = spec.depth * (LENGTH - p.n_needle);
        ck_assert_double_eq_tol(p.needle, wanted,
                                40); /* tokens of the small vocabulary in the longest sentence, halved */
        if (p.needle > 0)
            ck_assert_str_eq(prompt_text(t, p.tokens + p.needle - 1, 1), ".");
        ck_assert_int_eq(prompt_text(t, p.tokens + p.needle, 1)[0], ' ');
        needle_prompt_free(&p);
    }
}
END_TEST

/* Cut between sentences, the tokens are those that the whole text has. */
START_TEST(tokens_are_those_of_the_text)
{
    needle_spec spec = spec_of(1, 2, NEEDLE_WORDS, 5);
    needle_prompt p = make(&spec);
    token_list ids = {0};
    trace_error error;
    const char *text = prompt_text(t, p.tokens, p.n_text);
    ck_assert_int_eq(tokenizer_encode(t, text, strlen(text), 0, &ids, &error), 0);
    ck_assert_uint_ge(ids.n, p.n_text - 4); /* the last ones may be part of a word */
    for (size_t i = 0; i < p.n_text - 4; i++)
        ck_assert_uint_eq((uint32_t)ids.ids[i], p.tokens[i]);
    token_list_free(&ids);
    needle_prompt_free(&p);
}
END_TEST

START_TEST(the_same_seed_gives_the_same_prompt_and_another_one_another)
{
    needle_spec spec = spec_of(2, 1, NEEDLE_DIGITS, 11);
    needle_prompt a = make(&spec), b = make(&spec);
    ck_assert_uint_eq(a.n_question + a.n_answer, b.n_question + b.n_answer);
    ck_assert_mem_eq(a.tokens, b.tokens, (a.n_text + a.n_question + a.n_answer) * sizeof *a.tokens);
    needle_prompt_free(&b);
    spec.seed++;
    b = make(&spec);
    ck_assert_str_ne(a.key, b.key);
    needle_prompt_free(&a);
    needle_prompt_free(&b);
}
END_TEST

START_TEST(a_key_that_the_haystack_holds_is_not_taken)
{
    needle_haystack h;
    trace_error error;
    needle_spec spec = spec_of(0, 1, NEEDLE_DIGITS, 1);
    needle_prompt p = make(&spec), q;
    char text[256];
    snprintf(text, sizeof text, "The number is%s%s. That is all there is to say of it in this text of ours. ", " ",
             p.key);
    ck_assert_int_eq(needle_haystack_open(t, "h", text, strlen(text), &h, &error), 0);
    spec.haystack = &h;
    spec.length = (uint32_t)h.tokens.n + p.n_needle;
    q = make(&spec);
    ck_assert_str_ne(p.key, q.key);
    needle_prompt_free(&p);
    needle_prompt_free(&q);
    needle_haystack_close(&h);
}
END_TEST

/* ---- Wordings --------------------------------------------------------------------------------------------------- */

START_TEST(there_are_enough_wordings_of_each_set)
{
    for (int tuning = 0; tuning <= 1; tuning++) {
        uint32_t n = 0;
        for (; needle_wording_of(tuning, n); n++)
            ck_assert_int_eq(needle_wording_of(tuning, n)->tuning, tuning);
        ck_assert_uint_ge(n, 4);
    }
    for (uint32_t i = 0; needle_wording_at(i); i++) {
        const needle_wording *w = needle_wording_at(i);
        ck_assert_ptr_eq(needle_wording_find(w->name), w);
        ck_assert_uint_eq(prompt_count(w->once, NEEDLE_KEY), 1);
        ck_assert_uint_eq(prompt_count(w->again, NEEDLE_KEY), 1);
        ck_assert_uint_eq(prompt_count(w->question, NEEDLE_KEY), 0);
    }
    ck_assert_ptr_null(needle_wording_find("nothing"));
}
END_TEST

/* ---- Refusals --------------------------------------------------------------------------------------------------- */

static void refused(const needle_spec *spec, const char *line)
{
    needle_prompt p = {.n_text = 7};
    trace_error error;
    ck_assert_int_eq(needle_prompt_make(t, spec, &p, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
    ck_assert_uint_eq(p.n_text, 7);
}

START_TEST(what_cannot_be_made_is_refused)
{
    needle_haystack h;
    trace_error error;
    needle_wording own = {"own", " No key here.", "", " What?", 0};
    needle_spec spec = spec_of(0, 1, NEEDLE_DIGITS, 1);
    spec.wording = &own;
    refused(&spec, "the needle: has no {KEY}");
    own.once = " One {KEY}.";
    spec.stated = 2;
    refused(&spec, "the needle: has no {KEY}");
    spec.stated = 1;
    spec.length = 3;
    ck_assert_int_eq(needle_prompt_make(t, &spec, &(needle_prompt){0}, &error), TRACE_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(error.text, "does not fit into 3"));
    spec.length = 100000;
    ck_assert_int_eq(needle_prompt_make(t, &spec, &(needle_prompt){0}, &error), TRACE_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(error.text, "filler: has "));
    ck_assert_int_eq(needle_haystack_open(t, "empty.txt", "", 0, &h, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "empty.txt: is empty");
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("needles");
    tcase_add_checked_fixture(c, open_all, close_all);
    tcase_add_test(c, a_text_has_its_length_and_the_key_as_often_as_it_is_stated);
    tcase_add_test(c, the_answer_is_the_key);
    tcase_add_test(c, the_needle_stands_at_its_depth_between_sentences);
    tcase_add_test(c, tokens_are_those_of_the_text);
    tcase_add_test(c, the_same_seed_gives_the_same_prompt_and_another_one_another);
    tcase_add_test(c, a_key_that_the_haystack_holds_is_not_taken);
    tcase_add_test(c, there_are_enough_wordings_of_each_set);
    tcase_add_test(c, what_cannot_be_made_is_refused);
    return run_tests("needles", c);
}
