/* Small models of random weights, written as GGUF files in memory, and what they compute, in double precision, one
 * obvious loop after the other, with no pages. */
#ifndef TESTS_ENGINE_TINY_MODEL_H
#define TESTS_ENGINE_TINY_MODEL_H

#include "engine/runner.h"

enum {
    TINY_LAYERS = 2,
    TINY_WIDTH = 32,
    TINY_HEADS = 4,
    TINY_KV_HEADS = 2,
    TINY_HEAD = 8,
    TINY_FF = 64,
    TINY_VOCABULARY = 40, /* no multiple of 16 */
    TINY_CONTEXT = 128
};

/* A key to be written otherwise than usual, or a tensor. */
typedef struct tiny_change {
    const char *name;
    int drop;
    const char *text; /* of a key */
    float real;       /* of a key; 0: a number or a text is meant */
    uint64_t number;  /* of a key; a tensor's columns */
    uint64_t rows;    /* of a tensor */
    int not_finite;   /* 1: a tensor's first number is none */
} tiny_change;

typedef struct tiny_options {
    const char *architecture;
    int untied;
    uint32_t type;              /* a gguf_type of the matrices: F32, Q4_0, Q4_1 or Q8_0 */
    const tiny_change *changes; /* [n_changes] */
    uint32_t n_changes;
} tiny_options;

typedef struct tiny_file {
    unsigned char *bytes;
    uint64_t n, cap;
} tiny_file;

tiny_file tiny_write(const tiny_options *options);

/* An opened one. */
typedef struct tiny_model {
    tiny_file file;
    gguf *g;
    model *m;
} tiny_model;

tiny_model tiny_open(const tiny_options *options);
void tiny_close(tiny_model *t);

/* The logits after each of n tokens, logits[n][TINY_VOCABULARY]. */
void tiny_logits(const tiny_model *t, const uint32_t *tokens, uint32_t n, double *logits);

/* Any tokens, the same for the same seed. */
void tiny_text(uint32_t seed, uint32_t *tokens, uint32_t n);

#endif
