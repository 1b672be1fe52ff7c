/* Vocabularies and texts that a tokenizer refuses: each with one line that names what is wrong. */
#include "engine/gguf_writer.h"
#include "engine/small_tokenizer.h"
#include "run_tests.h"

#include <stdio.h>

static small_source small;

static void start(void)
{
    small_source_open(&small, "gpt2");
}

static void refused(const char *line)
{
    tokenizer *t = NULL;
    trace_error error = {""};
    ck_assert_int_eq(tokenizer_open_source(&small.says, &t, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
    ck_assert_ptr_null(t);
    start();
}

static tokenizer *accepted(void)
{
    tokenizer *t = NULL;
    trace_error error = {""};
    ck_assert_msg(tokenizer_open_source(&small.says, &t, &error) == 0, "%s", error.text);
    start();
    return t;
}

#define TOKENS "m.gguf: field tokenizer.ggml.tokens: "
#define MERGES "m.gguf: field tokenizer.ggml.merges: "
#define A_BYTE (SMALL_MARKS + 'a')

START_TEST(pre_tokenizers)
{
    static const char *const known[] = {"gpt2", "gpt-2", "smollm", "llama-bpe", "llama3", "llama-v3", "qwen2"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        small.says.pre = small_text_of(known[i]);
        tokenizer_close(accepted());
    }
    small.says.pre = small_text_of("tekken");
    refused("m.gguf: field tokenizer.ggml.pre: 'tekken' is none of gpt2, smollm, llama-bpe, qwen2");
    small.says.pre = (gguf_text){"gpt2\n", 5};
    refused("m.gguf: field tokenizer.ggml.pre: 'gpt2\\x0A' is none of gpt2, smollm, llama-bpe, qwen2");
    small.says.pre = (gguf_text){"", 0};
    refused("m.gguf: field tokenizer.ggml.pre: '' is none of gpt2, smollm, llama-bpe, qwen2");
}
END_TEST

START_TEST(counts)
{
    small.says.n_tokens = 0;
    refused(TOKENS "has 0 tokens: 1 to 16777216 are possible");
    small.says.n_tokens = 1ull << 40;
    refused(TOKENS "has 1099511627776 tokens: 1 to 16777216 are possible");
    small.says.n_types = 5;
    refused("m.gguf: field tokenizer.ggml.token_type: has 5 entries for 680 tokens");
    small.says.n_merges = 1ull << 40;
    refused(MERGES "has more than 16777216 entries");
}
END_TEST

START_TEST(tokens)
{
    small.tokens[A_BYTE] = small_text_of("b");
    refused(TOKENS "tokens 100 and 101 are the same: 'b'");
    small.tokens[0] = small.tokens[1];
    refused(TOKENS "control tokens 0 and 1 are the same: '<|end|>'");
    small.types[9] = 7;
    refused("m.gguf: field tokenizer.ggml.token_type: token 9 has type 7: 1 to 6 are known");
    small.types[9] = -1;
    refused("m.gguf: field tokenizer.ggml.token_type: token 9 has type -1: 1 to 6 are known");
    char name[300];
    memset(name, 'x', sizeof name);
    small.tokens[1] = (gguf_text){name, sizeof name};
    refused(TOKENS "control token 1 is longer than 256 bytes");
}
END_TEST

static void refused_merge(const char *merge)
{
    char line[256];
    small.merges[3] = small_text_of(merge);
    snprintf(line, sizeof line, MERGES "entry 3, '%s', is not two tokens that make a third", merge);
    refused(line);
}

START_TEST(merges)
{
    refused_merge("");
    refused_merge(" ");
    refused_merge("ab");
    refused_merge("a ");
    refused_merge(" b");
    refused_merge("a  b");
    refused_merge("i n g");
    refused_merge("q q");            /* which is no token */
    refused_merge("zz a");           /* whose left is none */
    refused_merge("a zz");           /* whose right is none */
    refused_merge("<|en d|>");       /* which is a control token */
    refused_merge("\xE9\xAF\xA8 a"); /* out of the alphabet */
}
END_TEST

START_TEST(edges)
{
    small.says.end = SMALL_TOKENS;
    refused("m.gguf: field tokenizer.ggml.eos_token_id: is 680: the vocabulary has 680 tokens");
    small.says.begin = 1ll << 32;
    refused("m.gguf: field tokenizer.ggml.bos_token_id: is 4294967296: the vocabulary has 680 tokens");
    small.says.begin = -1;
    small.says.add_begin = 1;
    refused("m.gguf: field tokenizer.ggml.bos_token_id: missing: texts begin with that token");
    small.says.begin = small.says.end = -1;
    tokenizer *t = accepted();
    ck_assert(tokenizer_begin(t) == -1 && tokenizer_end(t) == -1 && !tokenizer_is_end(t, -1));
    tokenizer_close(t);
}
END_TEST

/* What is called normal but not spelled in the alphabet, or has no text, stands for itself and is found in no text. */
START_TEST(odd_tokens_do_no_harm)
{
    const char *bytes = NULL;
    size_t n = 0;
    small.tokens[SMALL_TOKENS - 1] = small_text_of("a b");
    small.tokens[0] = (gguf_text){NULL, 0};
    small.says.n_merges = 0;
    tokenizer *t = accepted();
    ck_assert_int_eq(tokenizer_bytes(t, SMALL_TOKENS - 1, &bytes, &n), 0);
    ck_assert(n == 3 && memcmp(bytes, "a b", 3) == 0);
    ck_assert_int_eq(tokenizer_bytes(t, 0, &bytes, &n), 0);
    ck_assert_uint_eq(n, 0);
    token_list ids = {0};
    trace_error error;
    ck_assert_int_eq(tokenizer_encode(t, "a b", 3, TOKENIZER_MARKS, &ids, &error), 0);
    ck_assert_uint_eq(ids.n, 3);
    token_list_free(&ids);
    tokenizer_close(t);
}
END_TEST

/* SmolLM2's vocabulary lacks 21 bytes. */
START_TEST(a_byte_that_the_vocabulary_lacks_is_refused_in_a_text)
{
    token_list ids = {0};
    trace_error error = {""};
    small.types[SMALL_MARKS + 0xFF] = 5;
    tokenizer *t = accepted();
    ck_assert_int_eq(tokenizer_encode(t, "one", 3, 0, &ids, &error), 0);
    size_t had = ids.n;
    ck_assert_int_eq(tokenizer_encode(t, "one\n<|end|>\xFF", 12, TOKENIZER_MARKS, &ids, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "text:2: byte 0xFF at offset 11 is not in the model's vocabulary");
    ck_assert_uint_eq(ids.n, had);
    ck_assert(small_spells(t, &ids, 0, "one", 3));
    token_list_free(&ids);
    tokenizer_close(t);
}
END_TEST

START_TEST(too_long_a_text)
{
    token_list ids = {0};
    trace_error error = {""};
    tokenizer *t = accepted();
    ck_assert_int_eq(tokenizer_encode(t, "x", (size_t)1 << 31, 0, &ids, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, "text: is longer than 2147483647 bytes");
    tokenizer_close(t);
}
END_TEST

/* ---- Model files ------------------------------------------------------------------------------------------------ */

static gguf_out file;

#define KEY_TEXT(key, v) TEXT(key), U4(T_STRING), TEXT(v)
#define MODEL(v) KEY_TEXT("tokenizer.ggml.model", v)
#define PRE(v) KEY_TEXT("tokenizer.ggml.pre", v)
#define AB TEXT("tokenizer.ggml.tokens"), ARRAY_OF(T_STRING, 3), TEXT("a"), TEXT("b"), TEXT("ab")
#define JOINED TEXT("tokenizer.ggml.merges"), ARRAY_OF(T_STRING, 1), TEXT("a b")

static int open_file(tokenizer **t, trace_error *error)
{
    gguf *g = NULL;
    ck_assert_msg(gguf_open_bytes(file.bytes, file.n, "m.gguf", &g, error) == 0, "%s", error->text);
    int rc = tokenizer_open(g, t, error);
    gguf_close(g);
    file.n = 0;
    return rc;
}

static void file_refused(const char *line)
{
    tokenizer *t = NULL;
    trace_error error = {""};
    ck_assert_int_eq(open_file(&t, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
}

START_TEST(a_model_file_has_all_that_a_tokenizer_needs)
{
    tokenizer *t = NULL;
    trace_error error = {""};
    token_list ids = {0};
    WRITE(&file, HEAD(3, 0, 6), MODEL("gpt2"), PRE("smollm"), AB, JOINED, KEY_U32("tokenizer.ggml.bos_token_id", 1),
          TEXT("tokenizer.ggml.add_bos_token"), U4(T_BOOL), U1(1));
    ck_assert_msg(open_file(&t, &error) == 0, "%s", error.text);
    ck_assert_int_eq(tokenizer_encode(t, "aba", 3, TOKENIZER_BEGIN, &ids, &error), 0);
    ck_assert(ids.n == 3 && ids.ids[0] == 1 && ids.ids[1] == 2 && ids.ids[2] == 0);
    token_list_free(&ids);
    tokenizer_close(t);
}
END_TEST

START_TEST(model_files_that_have_not)
{
    WRITE(&file, HEAD(3, 0, 0));
    file_refused("m.gguf: key tokenizer.ggml.model: missing");
    WRITE(&file, HEAD(3, 0, 1), MODEL("llama"));
    file_refused("m.gguf: field tokenizer.ggml.model: 'llama' is not supported: gpt2, which is byte-level BPE, is");
    WRITE(&file, HEAD(3, 0, 2), MODEL("gpt2"), TEXT("tokenizer.ggml.add_space_prefix"), U4(T_BOOL), U1(1));
    file_refused("m.gguf: field tokenizer.ggml.add_space_prefix: is true, which is not supported");
    WRITE(&file, HEAD(3, 0, 1), MODEL("gpt2"));
    file_refused("m.gguf: key tokenizer.ggml.pre: missing");
    WRITE(&file, HEAD(3, 0, 2), MODEL("gpt2"), PRE("gpt2"));
    file_refused("m.gguf: key tokenizer.ggml.tokens: missing");
    WRITE(&file, HEAD(3, 0, 3), MODEL("gpt2"), PRE("gpt2"), AB);
    file_refused("m.gguf: key tokenizer.ggml.merges: missing");
    WRITE(&file, HEAD(3, 0, 5), MODEL("gpt2"), PRE("gpt2"), AB, JOINED, TEXT("tokenizer.ggml.token_type"),
          ARRAY_OF(T_I32, 1), U4(1));
    file_refused("m.gguf: field tokenizer.ggml.token_type: has 1 entries for 3 tokens");
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("tokenizer_refusals");
    tcase_add_checked_fixture(tests, start, NULL);
    tcase_add_test(tests, pre_tokenizers);
    tcase_add_test(tests, counts);
    tcase_add_test(tests, tokens);
    tcase_add_test(tests, merges);
    tcase_add_test(tests, edges);
    tcase_add_test(tests, odd_tokens_do_no_harm);
    tcase_add_test(tests, a_byte_that_the_vocabulary_lacks_is_refused_in_a_text);
    tcase_add_test(tests, too_long_a_text);
    tcase_add_test(tests, a_model_file_has_all_that_a_tokenizer_needs);
    tcase_add_test(tests, model_files_that_have_not);
    return run_tests("tokenizer_refusals", tests);
}
