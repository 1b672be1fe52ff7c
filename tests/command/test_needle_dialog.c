/* Conversations with a fact at their beginning. */
#include "command/prompt_text.h"
#include "engine/chat_templates.h"
#include "engine/small_chat.h"
#include "kvkeep/eval/needle_dialog.h"
#include "run_tests.h"

static tokenizer *t;
static chat_format format;

static void open_all(void)
{
    trace_error error;
    t = small_chat_open();
    ck_assert_ptr_nonnull(t);
    ck_assert_msg(chat_format_read(small_text_of(chat_cases[0].text), "m.gguf", &format, &error) == 0, "%s",
                  error.text);
}

static void close_all(void)
{
    tokenizer_close(t);
}

static needle_prompt make(uint32_t length, int again, uint64_t seed)
{
    needle_prompt p;
    trace_error error;
    needle_dialog d = {&format, length, again, NEEDLE_DIGITS, seed};
    ck_assert_msg(needle_dialog_make(t, &d, &p, &error) == 0, "%s", error.text);
    return p;
}

START_TEST(the_fact_stands_early_and_the_question_last)
{
    static const char end[] = "\nYour order number is ";
    for (int again = 0; again <= 1; again++) {
        needle_prompt p = make(3000, again, 4);
        const char *key = p.key;
        ck_assert_uint_le(p.n_text, 3000);
        ck_assert_uint_ge(p.n_text, 3000 - 250); /* the longest turn of the small vocabulary */
        ck_assert_uint_lt(p.needle, 300);
        ck_assert_uint_eq(prompt_count(prompt_text(t, p.tokens, p.n_text), key), 1 + (uint32_t)again);
        ck_assert_str_eq(prompt_text(t, p.tokens + p.needle, p.n_needle), key);
        const char *question = prompt_text(t, p.tokens + p.n_text, p.n_question);
        ck_assert_uint_eq(prompt_count(question, key), 0);
        ck_assert_uint_eq(prompt_count(question, "what is my order number?"), 1);
        ck_assert_str_eq(question + strlen(question) - strlen(end), end);
        ck_assert_str_eq(prompt_text(t, p.tokens + p.n_text + p.n_question, p.n_answer), key);
        needle_prompt_free(&p);
    }
}
END_TEST

START_TEST(the_seed_decides)
{
    needle_prompt a = make(2000, 0, 1), b = make(2000, 0, 1), c = make(2000, 0, 2);
    ck_assert_uint_eq(a.n_text, b.n_text);
    ck_assert_mem_eq(a.tokens, b.tokens, (a.n_text + a.n_question + a.n_answer) * sizeof *a.tokens);
    ck_assert_str_ne(a.key, c.key);
    needle_prompt_free(&a);
    needle_prompt_free(&b);
    needle_prompt_free(&c);
}
END_TEST

START_TEST(a_length_without_room_is_refused)
{
    needle_prompt p = {.n_text = 7};
    trace_error error;
    needle_dialog d = {&format, 30, 0, NEEDLE_DIGITS, 1};
    ck_assert_int_eq(needle_dialog_make(t, &d, &p, &error), TRACE_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(error.text, "does not fit into 30"));
    ck_assert_uint_eq(p.n_text, 7);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("dialogs");
    tcase_add_checked_fixture(c, open_all, close_all);
    tcase_add_test(c, the_fact_stands_early_and_the_question_last);
    tcase_add_test(c, the_seed_decides);
    tcase_add_test(c, a_length_without_room_is_refused);
    return run_tests("dialogs", c);
}
