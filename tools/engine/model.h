/* engine/model.h: a model of the LLaMA family out of a GGUF file, ready to run: its shape and its weights.
 *
 * Known architectures: llama, and qwen2 (biases on Q, K and V; heads rotated by halves). The output matrix may be the
 * embedding's (tied) or one of its own. What a file says is checked against what it has before any of it is used: a
 * file that is no such model, or that contradicts itself, is bad input with one line that says where. */
#ifndef KVKEEP_ENGINE_MODEL_H
#define KVKEEP_ENGINE_MODEL_H

#include "engine/gguf.h"
#include "engine/matrix.h"

enum {
    MODEL_MAX_LAYERS = 1024,
    MODEL_MAX_WIDTH = 1 << 16,      /* of the residual stream, the feed-forward and all heads together */
    MODEL_MAX_HEAD = 1024,          /* dimensions of a head */
    MODEL_MAX_VOCABULARY = 1 << 24, /* tokens */
    MODEL_MAX_CONTEXT = 1 << 28     /* tokens */
};

/* Which dimensions of a head make a pair that is rotated by a position. */
typedef enum model_pairs {
    MODEL_PAIRS_NEXT = 0,  /* 2i and 2i + 1 */
    MODEL_PAIRS_HALVES = 1 /* i and i + half */
} model_pairs;

typedef struct model_shape {
    uint32_t n_layers;
    uint32_t width, ff_width;     /* of the residual stream; of the feed-forward */
    uint32_t n_heads, n_kv_heads; /* n_heads is a multiple of n_kv_heads */
    uint32_t head_size;           /* even */
    uint32_t n_rotated;           /* dimensions of a head that are rotated, the first ones; even */
    uint32_t n_vocabulary;
    uint32_t context; /* tokens that it was trained for */
    model_pairs pairs;
    float rope_base, rms_epsilon;
} model_shape;

typedef struct model_layer {
    const float *attention_norm, *ff_norm; /* [width] */
    matrix qkv;                            /* width -> Q of all heads, then K, then V of all KV heads */
    const float *qkv_bias;                 /* as qkv gives them; NULL: none */
    matrix attention_out;                  /* n_heads * head_size -> width */
    matrix gate_up;                        /* width -> ff_width for the gate, then as many */
    matrix down;                           /* ff_width -> width */
} model_layer;

/* Nothing of it changes after it is opened: several threads may use it at once. */
typedef struct model {
    model_shape shape;
    const gguf_tensor *embedding; /* [n_vocabulary][width], in the file */
    model_layer *layers;          /* [n_layers] */
    const float *output_norm;     /* [width] */
    matrix output;                /* width -> n_vocabulary; may be the embedding's numbers */
    const float *rope_factors;    /* [n_rotated / 2] what a pair's frequency is divided by; NULL: 1 */
    void *weights;                /* all of them, one block */
    uint64_t weight_bytes;
} model;

/* Takes a model out of an open file, which must stay open. Returns 0, TRACE_BAD_INPUT or TRACE_FAILED (no memory). */
int model_open(const gguf *file, model **out, trace_error *error);

/* NULL is ignored. */
void model_close(model *m);

/* The embedding of a token, out[width]. */
void model_embed(const model *m, uint32_t token, float *out);

#endif
