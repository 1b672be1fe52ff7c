/* tiny_forward.c: what a small model computes, from the formulas. All in double, weights read as they are needed. */
#include "engine/tiny_model.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = TINY_CONTEXT, HEAD = TINY_HEAD, KV = TINY_KV_HEADS * TINY_HEAD, WIDE = 64 };

typedef struct state {
    const tiny_model *t;
    uint32_t n;
    int halves;
    double x[MOST][TINY_WIDTH];
    double q[MOST][TINY_HEADS * HEAD], k[MOST][KV], v[MOST][KV];
} state;

static int has(const state *s, const char *name)
{
    const gguf_tensor *t;
    trace_error error;
    return gguf_tensor_find(s->t->g, name, &t, &error) == 0;
}

static void weights_of(const state *s, const char *name, uint32_t row, float *out)
{
    const gguf_tensor *t;
    trace_error error;
    if (gguf_tensor_find(s->t->g, name, &t, &error) < 0 || gguf_row(t, row, out) < 0)
        ck_abort_msg("%s", error.text); /* an assertion is noted even when it holds, which would take longest of all */
}

static const char *name_in(int layer, const char *part)
{
    static char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", layer, part);
    return name;
}

/* out[n_out] = weights * in[n_in] */
static void product(const state *s, const char *name, const double *in, uint32_t n_in, double *out, uint32_t n_out)
{
    float weights[WIDE];
    for (uint32_t o = 0; o < n_out; o++) {
        weights_of(s, name, o, weights);
        out[o] = 0;
        for (uint32_t i = 0; i < n_in; i++)
            out[o] += (double)weights[i] * in[i];
    }
}

static void norm(const state *s, const char *name, const double *in, double *out)
{
    float weights[WIDE];
    double sum = 0;
    weights_of(s, name, 0, weights);
    for (int i = 0; i < TINY_WIDTH; i++)
        sum += in[i] * in[i];
    for (int i = 0; i < TINY_WIDTH; i++)
        out[i] = in[i] / sqrt(sum / TINY_WIDTH + (double)1e-5F) * (double)weights[i];
}

static void add_bias(const state *s, const char *name, double *to, uint32_t n)
{
    float bias[WIDE];
    weights_of(s, name, 0, bias);
    for (uint32_t i = 0; i < n; i++)
        to[i] += (double)bias[i];
}

static void turn(const state *s, double *head, uint32_t position)
{
    for (int i = 0; i < HEAD / 2; i++) {
        int a = s->halves ? i : 2 * i, b = s->halves ? i + HEAD / 2 : 2 * i + 1;
        double angle = position / pow(500, 2.0 * i / HEAD), x = head[a], y = head[b];
        head[a] = x * cos(angle) - y * sin(angle);
        head[b] = x * sin(angle) + y * cos(angle);
    }
}

static void find_qkv(state *s, int layer, uint32_t p)
{
    double normed[TINY_WIDTH];
    norm(s, name_in(layer, "attn_norm.weight"), s->x[p], normed);
    product(s, name_in(layer, "attn_q.weight"), normed, TINY_WIDTH, s->q[p], TINY_HEADS * HEAD);
    product(s, name_in(layer, "attn_k.weight"), normed, TINY_WIDTH, s->k[p], KV);
    product(s, name_in(layer, "attn_v.weight"), normed, TINY_WIDTH, s->v[p], KV);
    if (has(s, name_in(layer, "attn_q.bias"))) {
        add_bias(s, name_in(layer, "attn_q.bias"), s->q[p], TINY_HEADS * HEAD);
        add_bias(s, name_in(layer, "attn_k.bias"), s->k[p], KV);
        add_bias(s, name_in(layer, "attn_v.bias"), s->v[p], KV);
    }
    for (int h = 0; h < TINY_HEADS; h++)
        turn(s, s->q[p] + h * HEAD, p);
    for (int h = 0; h < TINY_KV_HEADS; h++)
        turn(s, s->k[p] + h * HEAD, p);
}

static void attend(const state *s, int h, uint32_t p, double *out)
{
    int kv = h / (TINY_HEADS / TINY_KV_HEADS) * HEAD;
    double weights[MOST], sum = 0;
    for (uint32_t t = 0; t <= p; t++) {
        double dot = 0;
        for (int i = 0; i < HEAD; i++)
            dot += s->q[p][h * HEAD + i] * s->k[t][kv + i];
        weights[t] = exp(dot / sqrt(HEAD));
        sum += weights[t];
    }
    for (int i = 0; i < HEAD; i++) {
        out[i] = 0;
        for (uint32_t t = 0; t <= p; t++)
            out[i] += weights[t] / sum * s->v[t][kv + i];
    }
}

static void feed_forward(state *s, int layer, uint32_t p)
{
    double normed[TINY_WIDTH], gates[TINY_FF], ups[TINY_FF], out[TINY_WIDTH];
    norm(s, name_in(layer, "ffn_norm.weight"), s->x[p], normed);
    product(s, name_in(layer, "ffn_gate.weight"), normed, TINY_WIDTH, gates, TINY_FF);
    product(s, name_in(layer, "ffn_up.weight"), normed, TINY_WIDTH, ups, TINY_FF);
    for (int i = 0; i < TINY_FF; i++)
        gates[i] = gates[i] / (1 + exp(-gates[i])) * ups[i];
    product(s, name_in(layer, "ffn_down.weight"), gates, TINY_FF, out, TINY_WIDTH);
    for (int i = 0; i < TINY_WIDTH; i++)
        s->x[p][i] += out[i];
}

static void run_layer(state *s, int layer)
{
    double heads[TINY_HEADS * HEAD], out[TINY_WIDTH];
    for (uint32_t p = 0; p < s->n; p++)
        find_qkv(s, layer, p);
    for (uint32_t p = 0; p < s->n; p++) {
        for (int h = 0; h < TINY_HEADS; h++)
            attend(s, h, p, heads + h * HEAD);
        product(s, name_in(layer, "attn_output.weight"), heads, TINY_HEADS * HEAD, out, TINY_WIDTH);
        for (int i = 0; i < TINY_WIDTH; i++)
            s->x[p][i] += out[i];
        feed_forward(s, layer, p);
    }
}

void tiny_logits(const tiny_model *t, const uint32_t *tokens, uint32_t n, double *logits)
{
    static state s;
    s = (state){.t = t, .n = n, .halves = t->m->shape.pairs == MODEL_PAIRS_HALVES};
    for (uint32_t p = 0; p < n; p++) {
        float row[TINY_WIDTH];
        weights_of(&s, "token_embd.weight", tokens[p], row);
        for (int i = 0; i < TINY_WIDTH; i++)
            s.x[p][i] = (double)row[i];
    }
    for (int layer = 0; layer < TINY_LAYERS; layer++)
        run_layer(&s, layer);
    for (uint32_t p = 0; p < n; p++) {
        double normed[TINY_WIDTH];
        norm(&s, "output_norm.weight", s.x[p], normed);
        product(&s, has(&s, "output.weight") ? "output.weight" : "token_embd.weight", normed, TINY_WIDTH,
                logits + (size_t)p * TINY_VOCABULARY, TINY_VOCABULARY);
    }
}
