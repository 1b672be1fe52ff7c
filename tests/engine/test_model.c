/* Loading models: what a file says is checked, and what is wrong is told in one line. */
#include "engine/tiny_model.h"
#include "run_tests.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static trace_error error;

static int load(const tiny_options *options, model **m)
{
    tiny_file file = tiny_write(options);
    gguf *g;
    int rc = gguf_open_bytes(file.bytes, file.n, "tiny", &g, &error);
    if (rc == 0) {
        rc = model_open(g, m, &error);
        if (rc == 0)
            model_close(*m);
        gguf_close(g);
    }
    free(file.bytes);
    return rc;
}

START_TEST(shapes)
{
    tiny_model t = tiny_open(&(tiny_options){.architecture = "llama"});
    const model_shape *s = &t.m->shape;
    ck_assert_uint_eq(s->n_layers, TINY_LAYERS);
    ck_assert_uint_eq(s->width, TINY_WIDTH);
    ck_assert_uint_eq(s->head_size, TINY_HEAD);
    ck_assert_uint_eq(s->n_rotated, TINY_HEAD);
    ck_assert_uint_eq(s->n_vocabulary, TINY_VOCABULARY);
    ck_assert_int_eq(s->pairs, MODEL_PAIRS_NEXT);
    ck_assert(t.m->layers[1].qkv_bias == NULL && t.m->rope_factors == NULL);
    ck_assert_uint_eq(t.m->layers[1].qkv.n_out, (TINY_HEADS + 2 * TINY_KV_HEADS) * TINY_HEAD);
    tiny_close(&t);
    t = tiny_open(&(tiny_options){.architecture = "qwen2", .untied = 1});
    ck_assert_int_eq(t.m->shape.pairs, MODEL_PAIRS_HALVES);
    ck_assert(t.m->layers[1].qkv_bias != NULL);
    tiny_close(&t);
}
END_TEST

/* What may be absent or be there besides. */
START_TEST(allowed)
{
    static const tiny_change changes[] = {
        {.name = "llama.rope.freq_base", .drop = 1},
        {.name = "+llama.vocab_size", .number = TINY_VOCABULARY},
        {.name = "+llama.attention.key_length", .number = TINY_HEAD},
        {.name = "+llama.attention.value_length", .number = TINY_HEAD},
        {.name = "+llama.rope.dimension_count", .number = 4},
        {.name = "+llama.expert_count", .number = 0},
        {.name = "+llama.rope.scaling.type", .text = "none"},
    };
    model *m;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        ck_assert_msg(load(&(tiny_options){"llama", 0, GGUF_F32, &changes[i], 1}, &m) == 0, "%s", error.text);
}
END_TEST

typedef struct refusal {
    tiny_change change;
    const char *why; /* part of the line */
} refusal;

static const refusal refusals[] = {
    {{.name = "general.architecture", .text = "mamba"}, "key general.architecture: \"mamba\" is not supported"},
    {{.name = "general.architecture", .drop = 1}, "key general.architecture: missing"},
    {{.name = "llama.block_count", .number = 0}, "key llama.block_count: is 0, not within 1 to 1024"},
    {{.name = "llama.block_count", .number = 1000000}, "is 1000000, not within 1 to 1024"},
    {{.name = "llama.block_count", .number = 3}, "tensor blk.2.attn_norm.weight: missing"},
    {{.name = "llama.block_count", .drop = 1}, "key llama.block_count: missing"},
    {{.name = "llama.embedding_length", .number = 64}, "tensor blk.0.attn_norm.weight: has 32 x 1 numbers"},
    {{.name = "llama.embedding_length", .number = 33}, "is 33, no multiple of the 4 heads"},
    {{.name = "llama.embedding_length", .real = 32}, "llama.embedding_length"},
    {{.name = "llama.feed_forward_length", .number = 0x80000000}, "is 2147483648, not within 1 to 65536"},
    {{.name = "llama.feed_forward_length", .number = 63}, "tensor blk.0.ffn_gate.weight: has 32 x 64"},
    {{.name = "llama.context_length", .number = 0}, "key llama.context_length: is 0"},
    {{.name = "llama.attention.head_count", .number = 0}, "key llama.attention.head_count: is 0"},
    {{.name = "llama.attention.head_count", .number = 32}, "32 heads of 1 dimensions are not supported"},
    {{.name = "llama.attention.head_count", .number = 65536}, "no multiple of the 65536 heads"},
    {{.name = "llama.attention.head_count_kv", .number = 3}, "is 4, no multiple of the 3 of K and V"},
    {{.name = "llama.attention.head_count_kv", .number = 1}, "tensor blk.0.attn_k.weight: has 32 x 16"},
    {{.name = "llama.attention.layer_norm_rms_epsilon", .drop = 1}, "layer_norm_rms_epsilon: missing"},
    {{.name = "llama.attention.layer_norm_rms_epsilon", .real = -1}, "is not between 0 and 1"},
    {{.name = "llama.rope.freq_base", .real = 0.5F}, "key llama.rope.freq_base: is below 1"},
    {{.name = "+llama.rope.dimension_count", .number = 3}, "is 3, of heads of 8 dimensions"},
    {{.name = "+llama.rope.dimension_count", .number = 16}, "is 16, of heads of 8 dimensions"},
    {{.name = "+llama.attention.key_length", .number = 2048}, "is 2048, not within 1 to 1024"},
    {{.name = "+llama.attention.key_length", .number = 16}, "tensor blk.0.attn_q.weight: has 32 x 32"},
    {{.name = "+llama.attention.value_length", .number = 4}, "is 4, not the 8 of the keys"},
    {{.name = "+llama.vocab_size", .number = 41}, "is 41, but there are 40 embeddings"},
    {{.name = "+llama.expert_count", .number = 8}, "key llama.expert_count: is 8: not supported"},
    {{.name = "+llama.rope.scaling.type", .text = "yarn"}, "is \"yarn\": not supported"},
    {{.name = "+llama.rope.scale_linear", .real = 4}, "is not 1: not supported"},
    {{.name = "token_embd.weight", .drop = 1}, "tensor token_embd.weight: missing"},
    {{.name = "token_embd.weight", .number = 31}, "tensor token_embd.weight: has 31 x 40 numbers"},
    {{.name = "output_norm.weight", .number = 31}, "tensor output_norm.weight: has 31 x 1 numbers"},
    {{.name = "output.weight", .rows = 41}, "tensor output.weight: has 32 x 41 numbers"},
    {{.name = "blk.1.attn_v.weight", .drop = 1}, "tensor blk.1.attn_v.weight: missing"},
    {{.name = "blk.1.attn_output.weight", .rows = 16}, "tensor blk.1.attn_output.weight: has 32 x 16"},
    {{.name = "blk.1.ffn_down.weight", .number = 32}, "tensor blk.1.ffn_down.weight: has 32 x 32"},
    {{.name = "blk.1.ffn_up.weight", .not_finite = 1}, "blk.1.ffn_up.weight: row 0 has a number that is not finite"},
    {{.name = "blk.0.ffn_norm.weight", .not_finite = 1},
     "blk.0.ffn_norm.weight: row 0 has a number that is not finite"},
};

enum { N_REFUSALS = sizeof refusals / sizeof refusals[0] };

START_TEST(refused)
{
    model *m;
    const refusal *r = &refusals[_i];
    tiny_options options = {"llama", 1, GGUF_F32, &r->change, 1};
    ck_assert_int_eq(load(&options, &m), TRACE_BAD_INPUT);
    ck_assert_msg(strstr(error.text, r->why) != NULL, "%s", error.text);
    ck_assert_msg(strncmp(error.text, "tiny: ", 6) == 0 && !strchr(error.text, '\n'), "%s", error.text);
}
END_TEST

START_TEST(a_bias_is_missing)
{
    static const tiny_change change = {.name = "blk.1.attn_k.bias", .drop = 1};
    model *m;
    ck_assert_int_eq(load(&(tiny_options){"qwen2", 0, GGUF_F32, &change, 1}, &m), TRACE_BAD_INPUT);
    ck_assert_msg(strstr(error.text, "tensor blk.1.attn_k.bias: missing") != NULL, "%s", error.text);
}
END_TEST

START_TEST(null_is_closed)
{
    model_close(NULL);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("model");
    tcase_add_test(t, shapes);
    tcase_add_test(t, allowed);
    tcase_add_loop_test(t, refused, 0, N_REFUSALS);
    tcase_add_test(t, a_bias_is_missing);
    tcase_add_test(t, null_is_closed);
    return run_tests("model", t);
}
