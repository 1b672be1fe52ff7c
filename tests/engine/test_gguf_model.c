/* A real model's file, SmolLM2-135M-Instruct in Q4_1: its keys, some of its numbers, and the file cut short. */
#include "engine/gguf_walk.h"
#include "engine/real_model.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>

static gguf *g;
static trace_error error;

static void open_model(void)
{
    ck_assert_msg(gguf_open(model_path(), &g, &error) == 0, "%s", error.text);
}

static void close_model(void)
{
    gguf_close(g);
}

/* As the model is described. */
START_TEST(its_shape)
{
    static const struct {
        const char *key;
        uint32_t want;
    } cases[] = {
        {"llama.block_count", 30},          {"llama.embedding_length", 576},      {"llama.feed_forward_length", 1536},
        {"llama.attention.head_count", 9},  {"llama.attention.head_count_kv", 3}, {"llama.vocab_size", 49152},
        {"llama.rope.dimension_count", 64}, {"llama.context_length", 8192},       {"tokenizer.ggml.eos_token_id", 2},
    };
    float base = 0, epsilon = 0;
    int adds_first = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t value = 0;
        ck_assert_int_eq(gguf_u32(g, cases[i].key, &value, &error), 0);
        ck_assert_uint_eq(value, cases[i].want);
    }
    ck_assert_int_eq(gguf_f32(g, "llama.rope.freq_base", &base, &error), 0);
    ck_assert_int_eq(gguf_f32(g, "llama.attention.layer_norm_rms_epsilon", &epsilon, &error), 0);
    ck_assert_int_eq(gguf_bool(g, "tokenizer.ggml.add_bos_token", &adds_first, &error), 0);
    ck_assert(base == 100000 && epsilon == 1e-5F && adds_first == 0);
}
END_TEST

START_TEST(its_vocabulary)
{
    gguf_text *tokens, *merges, architecture;
    int32_t *types;
    uint64_t n;
    ck_assert_int_eq(gguf_string(g, "general.architecture", &architecture, &error), 0);
    ck_assert(architecture.n == 5 && memcmp(architecture.at, "llama", 5) == 0);
    ck_assert_int_eq(gguf_strings(g, "tokenizer.ggml.tokens", &tokens, &n, &error), 0);
    ck_assert_uint_eq(n, 49152);
    ck_assert(tokens[2].n == 10 && memcmp(tokens[2].at, "<|im_end|>", 10) == 0);
    ck_assert_int_eq(gguf_i32s(g, "tokenizer.ggml.token_type", &types, &n, &error), 0);
    ck_assert_uint_eq(n, 49152);
    ck_assert_int_eq(types[2], 3); /* a control token */
    ck_assert_int_eq(gguf_strings(g, "tokenizer.ggml.merges", &merges, &n, &error), 0);
    ck_assert_uint_eq(n, 48900);
    free(tokens);
    free(types);
    free(merges);
}
END_TEST

/* Numbers of a row at its beginning and end, and the sum of all of a tensor, as PyPI's gguf 0.19.0 computes them. */
typedef struct known {
    const char *name;
    uint64_t row;
    float first, second, last;
    double sum;
} known;

static const known knowns[] = {
    {"token_embd.weight", 49151, 0.011505127F, 0.00575256348F, -0.0417022705F, -15353.044494152069},
    {"blk.0.attn_q.weight", 0, -0.0963134766F, 0.157348633F, 0.123535156F, 59.223220825195312},
    {"blk.29.ffn_down.weight", 575, -0.229187012F, -0.0391235352F, 0.056640625F, 49.835708618164062},
    {"output_norm.weight", 0, 1.7578125F, 1.8203125F, 1.984375F, 1038.33203125},
};

START_TEST(its_numbers)
{
    const known *k = &knowns[_i];
    const gguf_tensor *t;
    ck_assert_int_eq(gguf_tensor_find(g, k->name, &t, &error), 0);
    float *row = calloc(t->dims[0], sizeof *row);
    ck_assert_ptr_nonnull(row);
    double sum = 0;
    for (uint64_t r = 0; gguf_row(t, r, row) == 0; r++) {
        if (r == k->row)
            ck_assert(row[0] == k->first && row[1] == k->second && row[t->dims[0] - 1] == k->last);
        for (uint64_t i = 0; i < t->dims[0]; i++)
            sum += (double)row[i];
    }
    ck_assert_msg(fabs(sum - k->sum) < 1e-8, "%s: %.17g, not %.17g", k->name, sum, k->sum);
    free(row);
}
END_TEST

START_TEST(everything_can_be_asked_for)
{
    ck_assert_int_eq(gguf_walk(g), 33 + 272); /* each key has one type, each tensor a known one */
}
END_TEST

/* ---- Cut short -------------------------------------------------------------------------------------------------- */

static void refuses(const void *bytes, uint64_t n)
{
    gguf *none = NULL;
    int rc = gguf_open_bytes(bytes, n, "m.gguf", &none, &error);
    ck_assert_msg(rc == TRACE_BAD_INPUT && gguf_error_is_a_line(rc, &error), "cut at %ju: %d", (uintmax_t)n, rc);
}

/* Where the tensors' data begins. */
static uint64_t head_bytes(void)
{
    uint64_t least = g->n;
    for (uint64_t i = 0; i < g->n_tensors; i++) {
        uint64_t at = (uint64_t)((const unsigned char *)g->tensors[i].tensor.data - g->bytes);
        least = at < least ? at : least;
    }
    return least;
}

START_TEST(cut_within_its_head)
{
    uint64_t head = head_bytes();
    ck_assert_uint_gt(head, 1000000);
    for (uint64_t n = 0; n < head; n += 1000) {
        unsigned char *exact = malloc(n + 1); /* ends where its memory does, but for one byte */
        ck_assert_ptr_nonnull(exact);
        memcpy(exact + 1, g->bytes, n);
        refuses(exact + 1, n);
        free(exact);
    }
}
END_TEST

START_TEST(cut_within_its_data)
{
    for (uint64_t n = head_bytes(); n < g->n; n += 100003)
        refuses(g->bytes, n);
    refuses(g->bytes, g->n - 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gguf_model");
    if (!model_path())
        return MODEL_SKIPPED;
    tcase_add_checked_fixture(t, open_model, close_model);
    tcase_add_test(t, its_shape);
    tcase_add_test(t, its_vocabulary);
    tcase_add_loop_test(t, its_numbers, 0, (int)(sizeof knowns / sizeof knowns[0]));
    tcase_add_test(t, everything_can_be_asked_for);
    tcase_add_test(t, cut_within_its_head);
    tcase_add_test(t, cut_within_its_data);
    return run_tests("gguf_model", t);
}
