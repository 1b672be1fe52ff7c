/* engine/numbers.h: what a model does with vectors besides products, written so that compilers vectorise it. */
#ifndef KVKEEP_ENGINE_NUMBERS_H
#define KVKEEP_ENGINE_NUMBERS_H

#include "engine/model.h"

/* y = x / sqrt(mean of squares + epsilon) * weight, for each of x[n][width]. */
void rms_norm(const float *x, uint32_t n, uint32_t width, const float *weight, float epsilon, float *y);

/* out[n][width] = gate / (1 + exp(-gate)) * up, of gate_up[n][2][width]. */
void gate(const float *gate_up, uint32_t n, uint32_t width, float *out);

/* to += from. */
void add(float *to, const float *from, uint64_t n);

/* Cosine and sine of each pair's angle at a position, out[n_rotated / 2][2]. */
void rotation_at(const model_shape *s, const float *factors, uint32_t position, float *out);

/* Rotates heads[n_heads][head_size]. */
void rotate(const model_shape *s, const float *rotation, float *heads, uint32_t n_heads);

/* -log of the probability that logits[n] give a token. */
double negative_log_likelihood(const float *logits, uint32_t n, uint32_t token);

#endif
