/* The tokenizer and the prompts run out of memory at each allocation in turn: one line says so, nothing is kept and the
 * list of ids is as it was. The linker puts the functions below in the place of malloc, calloc and realloc. */
#include "engine/chat.h"
#include "engine/small_tokenizer.h"
#include "run_tests.h"

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

/* From the allocation numbered `fails_from` on there is none; 0: there is. */
static int made, fails_from;

static int fails(void)
{
    return ++made >= fails_from && fails_from > 0;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    return fails() ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return fails() ? NULL : __real_realloc(old, bytes);
}

static small_source source;
static char text[3000];

static int encode(const tokenizer *t, token_list *ids, trace_error *error)
{
    int rc = tokenizer_encode(t, text, sizeof text, TOKENIZER_MARKS, ids, error);
    return rc < 0 ? rc : tokenizer_encode(t, "the whale<|end|> and in", 23, TOKENIZER_MARKS, ids, error);
}

static int converse(const tokenizer *t, token_list *ids, trace_error *error)
{
    static const char chatml[] = "'<|im_start|>assistant\n' + '<|im_end|>\n'";
    const chat_message one = {CHAT_USER, text, sizeof text};
    chat_format format;
    int rc = chat_format_read(small_text_of(chatml), "m.gguf", &format, error);
    return rc < 0 ? rc : chat_render(t, &format, &(chat_conversation){&one, 1, 1}, ids, error);
}

static int do_all(token_list *ids, trace_error *error)
{
    tokenizer *t = NULL;
    int rc = tokenizer_open_source(&source.says, &t, error);
    if (rc == 0)
        rc = encode(t, ids, error);
    if (rc == 0)
        rc = converse(t, ids, error);
    tokenizer_close(t);
    return rc;
}

static void prepare(void)
{
    small_source_open(&source, "gpt2");
    source.tokens[0] = small_text_of("<|im_start|>");
    source.tokens[2] = small_text_of("<|im_end|>");
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "thequick whales\n"[i * i % 16];
}

/* Check's own assertions allocate too, hence none between a reset of `made` and what it counts. */
START_TEST(each_fails_in_turn)
{
    trace_error error = {""};
    token_list ids = {0};
    prepare();
    made = fails_from = 0;
    int rc = do_all(&ids, &error), n = made;
    token_list_free(&ids);
    ck_assert_msg(rc == 0, "%s", error.text);
    ck_assert_int_gt(n, 20);
    for (int k = 1; k <= n; k++) {
        made = 0;
        fails_from = k;
        rc = do_all(&ids, &error);
        fails_from = 0;
        token_list_free(&ids);
        ck_assert_int_eq(rc, TRACE_FAILED);
        ck_assert_msg(strstr(error.text, ": out of memory"), "%s", error.text);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tokenizer_memory");
    tcase_add_test(tests, each_fails_in_turn);
    return run_tests("tokenizer_memory", tests);
}
