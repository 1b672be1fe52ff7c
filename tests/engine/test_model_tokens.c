/* The tokens of SmolLM2-135M-Instruct against those that an independent implementation found (shared/golden). */
#include "engine/chat.h"
#include "engine/real_model.h"
#include "engine/tokenizer.h"
#include "run_tests.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char golden[] = KVK_SHARED_DIR "/golden/smollm2.json", novel[] = KVK_SHARED_DIR "/text/moby_dick.txt";

static gguf *model;
static tokenizer *t;
static json_t *expected;

static void open_all(void)
{
    trace_error error = {""};
    json_error_t wrong;
    ck_assert_msg(gguf_open(model_path(), &model, &error) == 0, "%s", error.text);
    ck_assert_msg(tokenizer_open(model, &t, &error) == 0, "%s", error.text);
    expected = json_load_file(golden, JSON_REJECT_DUPLICATES, &wrong);
    ck_assert_msg(expected != NULL, "%s:%d: %s", golden, wrong.line, wrong.text);
}

static void close_all(void)
{
    json_decref(expected);
    tokenizer_close(t);
    gguf_close(model);
}

static token_list encode(const char *text, size_t n)
{
    token_list ids = {0};
    trace_error error = {""};
    ck_assert_msg(tokenizer_encode(t, text, n, TOKENIZER_BEGIN, &ids, &error) == 0, "%s", error.text);
    return ids;
}

static void compare(const token_list *ids, const json_t *want, const char *what)
{
    size_t i;
    const json_t *id;
    json_array_foreach(want, i, id)
    {
        ck_assert_msg(i < ids->n && ids->ids[i] == json_integer_value(id), "%s: token %zu", what, i);
    }
}

START_TEST(short_texts)
{
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(expected, "tokenizer"), i, one)
    {
        const char *text = json_string_value(json_object_get(one, "text"));
        const json_t *want = json_object_get(one, "ids");
        token_list ids = encode(text, strlen(text));
        ck_assert_uint_eq(ids.n, json_array_size(want));
        compare(&ids, want, text);
        token_list_free(&ids);
    }
    ck_assert_uint_gt(i, 0);
}
END_TEST

static uint64_t count_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    ck_assert_msg(json_is_integer(value), "%s is expected to be there", name);
    return (uint64_t)json_integer_value(value);
}

static char *read_novel(size_t n)
{
    FILE *in = fopen(novel, "rb");
    char *text = malloc(n);
    ck_assert_msg(in && text, "%s cannot be read", novel);
    ck_assert_uint_eq(fread(text, 1, n, in), n);
    fclose(in);
    return text;
}

static int spells(const token_list *ids, const char *text, size_t n)
{
    size_t at = 0, length = 0;
    for (size_t i = 0; i < ids->n; i++, at += length) {
        const char *bytes = NULL;
        if (tokenizer_bytes(t, ids->ids[i], &bytes, &length) < 0 || length > n - at ||
            memcmp(text + at, bytes, length) != 0)
            return 0;
    }
    return at == n;
}

START_TEST(a_novel)
{
    const json_t *want = json_object_get(expected, "moby_dick");
    size_t n = count_of(want, "bytes");
    char *text = read_novel(n);
    token_list ids = encode(text, n);
    ck_assert_uint_eq(ids.n, count_of(want, "tokens"));
    compare(&ids, json_object_get(want, "first64"), "the novel");
    ck_assert(spells(&ids, text, n));
    token_list_free(&ids);
    free(text);
}
END_TEST

/* The template puts a default system message before what has none. Its ids are PyPI's tokenizers' for what PyPI's
 * jinja2 makes of the model's own template. */
START_TEST(a_conversation)
{
    static const int32_t want[] = {1,    9690,  198,   2683, 359, 253, 5356,  5646, 11173, 3365, 3511,
                                   308,  34519, 28,    7018, 411, 407, 19712, 8182, 2,     198,  1,
                                   4093, 198,   19556, 2,    198, 1,   520,   9531, 198};
    const chat_message hello = {CHAT_USER, "Hello", 5};
    chat_format format;
    token_list ids = {0};
    trace_error error = {""};
    ck_assert_msg(chat_format_open(model, &format, &error) == 0, "%s", error.text);
    ck_assert_msg(chat_render(t, &format, &(chat_conversation){&hello, 1, 1}, &ids, &error) == 0, "%s", error.text);
    ck_assert_uint_eq(ids.n, sizeof want / sizeof want[0]);
    ck_assert_mem_eq(ids.ids, want, sizeof want);
    ck_assert(tokenizer_is_end(t, 2) && tokenizer_end(t) == 2 && tokenizer_mark(t, "<|im_start|>") == 1);
    token_list_free(&ids);
}
END_TEST

int main(void)
{
    if (!model_path())
        return MODEL_SKIPPED;
    if (access(golden, R_OK) != 0 || access(novel, R_OK) != 0) {
        printf("skipped: the golden values are not at %s\n", KVK_SHARED_DIR);
        return MODEL_SKIPPED;
    }
    TCase *tests = tcase_create("model_tokens");
    tcase_add_checked_fixture(tests, open_all, close_all);
    tcase_add_test(tests, short_texts);
    tcase_add_test(tests, a_novel);
    tcase_add_test(tests, a_conversation);
    return run_tests("model_tokens", tests);
}
