#include "engine/tiny_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_U32 = 4, KEY_F32 = 6, KEY_STRING = 8, ALIGN = 32, MOST_TENSORS = 64, NAME_CAP = 64 };

typedef struct tensor {
    char name[NAME_CAP];
    uint64_t n_in, n_out, offset;
    uint32_t type, dims;
    int not_finite;
} tensor;

typedef struct writer {
    const tiny_options *options;
    tiny_file out;
    tensor tensors[MOST_TENSORS];
    uint32_t n_tensors, n_keys;
    uint64_t chance;
} writer;

/* ---- Pieces ----------------------------------------------------------------------------------------------------- */

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void put(tiny_file *f, const void *bytes, uint64_t n)
{
    if (f->n + n > f->cap) {
        f->cap = 2 * (f->n + n);
        f->bytes = realloc(f->bytes, f->cap);
        if (!f->bytes)
            ck_abort_msg("out of memory");
    }
    memcpy(f->bytes + f->n, bytes, n);
    f->n += n;
}

static void put_number(tiny_file *f, uint64_t value, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        put(f, &(unsigned char){i < 8 ? (unsigned char)(value >> 8 * i) : 0}, 1);
}

static void put_text(tiny_file *f, const char *text)
{
    put_number(f, strlen(text), 8);
    put(f, text, strlen(text));
}

static void put_float(tiny_file *f, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(f, bits, 4);
}

static const tiny_change *change_of(const writer *w, const char *name)
{
    for (uint32_t i = 0; i < w->options->n_changes; i++)
        if (strcmp(w->options->changes[i].name, name) == 0)
            return &w->options->changes[i];
    return NULL;
}

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

static void write_key(writer *w, const char *name, uint32_t number, float real, const char *text)
{
    const tiny_change *c = change_of(w, name);
    if (c && c->drop)
        return;
    number = c ? (uint32_t)c->number : number;
    real = c ? c->real : real;
    text = c ? c->text : text;
    w->n_keys++;
    put_text(&w->out, name);
    put_number(&w->out, text ? KEY_STRING : real != 0 ? KEY_F32 : KEY_U32, 4);
    if (text)
        put_text(&w->out, text);
    else if (real != 0)
        put_float(&w->out, real);
    else
        put_number(&w->out, number, 4);
}

static void write_own_key(writer *w, const char *suffix, uint32_t number, float real)
{
    char name[NAME_CAP];
    snprintf(name, sizeof name, "%s.%s", w->options->architecture, suffix);
    write_key(w, name, number, real, NULL);
}

/* Changes of keys that are not there by themselves. */
static void write_more_keys(writer *w)
{
    for (uint32_t i = 0; i < w->options->n_changes; i++) {
        const tiny_change *c = &w->options->changes[i];
        if (c->name[0] == '+') /* "+name": one more */
            write_key(w, c->name + 1, (uint32_t)c->number, c->real, c->text);
    }
}

static void write_keys(writer *w)
{
    write_key(w, "general.architecture", 0, 0, w->options->architecture);
    write_own_key(w, "block_count", TINY_LAYERS, 0);
    write_own_key(w, "embedding_length", TINY_WIDTH, 0);
    write_own_key(w, "feed_forward_length", TINY_FF, 0);
    write_own_key(w, "context_length", TINY_CONTEXT, 0);
    write_own_key(w, "attention.head_count", TINY_HEADS, 0);
    write_own_key(w, "attention.head_count_kv", TINY_KV_HEADS, 0);
    write_own_key(w, "attention.layer_norm_rms_epsilon", 0, 1e-5F);
    write_own_key(w, "rope.freq_base", 0, 500);
    write_more_keys(w);
}

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

static void add_tensor(writer *w, const char *name, uint64_t n_in, uint64_t n_out)
{
    const tiny_change *c = change_of(w, name);
    if (c && c->drop)
        return;
    ck_assert_uint_lt(w->n_tensors, MOST_TENSORS);
    tensor *t = &w->tensors[w->n_tensors++];
    snprintf(t->name, sizeof t->name, "%s", name);
    t->n_in = c && c->number ? c->number : n_in;
    t->n_out = c && c->rows ? c->rows : n_out;
    t->not_finite = c && c->not_finite;
    t->dims = t->n_out > 1 ? 2 : 1;
    t->type = t->n_out > 1 && t->n_in % 32 == 0 ? w->options->type : (uint32_t)GGUF_F32;
}

static void add_layer(writer *w, uint32_t layer)
{
    static const struct {
        const char *name;
        uint32_t n_in, n_out;
    } parts[] = {
        {"attn_norm.weight", TINY_WIDTH, 1},
        {"attn_q.weight", TINY_WIDTH, TINY_HEADS * TINY_HEAD},
        {"attn_k.weight", TINY_WIDTH, TINY_KV_HEADS * TINY_HEAD},
        {"attn_v.weight", TINY_WIDTH, TINY_KV_HEADS * TINY_HEAD},
        {"attn_output.weight", TINY_HEADS * TINY_HEAD, TINY_WIDTH},
        {"ffn_norm.weight", TINY_WIDTH, 1},
        {"ffn_gate.weight", TINY_WIDTH, TINY_FF},
        {"ffn_up.weight", TINY_WIDTH, TINY_FF},
        {"ffn_down.weight", TINY_FF, TINY_WIDTH},
        {"attn_q.bias", TINY_HEADS * TINY_HEAD, 1},
        {"attn_k.bias", TINY_KV_HEADS * TINY_HEAD, 1},
        {"attn_v.bias", TINY_KV_HEADS * TINY_HEAD, 1},
    };
    uint32_t n = strcmp(w->options->architecture, "qwen2") == 0 ? 12 : 9;
    for (uint32_t i = 0; i < n; i++) {
        char name[NAME_CAP];
        snprintf(name, sizeof name, "blk.%u.%s", layer, parts[i].name);
        add_tensor(w, name, parts[i].n_in, parts[i].n_out);
    }
}

static uint64_t bytes_of(const tensor *t)
{
    uint64_t n = t->n_in * t->n_out;
    switch (t->type) {
    case GGUF_Q4_0:
        return n / 32 * 18;
    case GGUF_Q4_1:
        return n / 32 * 20;
    case GGUF_Q8_0:
        return n / 32 * 34;
    default:
        return n * 4;
    }
}

/* Scales of 1/64 and 1/32, as halves. */
static void write_blocks(writer *w, const tensor *t)
{
    uint64_t bytes = bytes_of(t), block = t->type == GGUF_Q4_0 ? 18 : t->type == GGUF_Q4_1 ? 20 : 34;
    for (uint64_t i = 0; i < bytes; i++) {
        uint64_t at = i % block;
        uint32_t value = next_random(&w->chance) & 255;
        if (at < 2)
            value = at == 0 ? 0 : t->type == GGUF_Q8_0 ? 0x18 : 0x28; /* 2^-9 or 2^-5 */
        else if (at < 4 && t->type == GGUF_Q4_1)
            value = at == 2 ? 0 : 0xB4; /* -1/4 */
        put_number(&w->out, value, 1);
    }
}

static void write_floats(writer *w, const tensor *t)
{
    int is_norm = strstr(t->name, "norm") != NULL;
    for (uint64_t i = 0; i < t->n_in * t->n_out; i++) {
        float value = (float)next_random(&w->chance) * 0x1p-30F - 1; /* -1 to 1 */
        put_float(&w->out, t->not_finite && i == 0 ? 1e38F * 10 : is_norm ? 1 + value / 4 : value / 3);
    }
}

static void write_tensors(writer *w)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        tensor *t = &w->tensors[i];
        put_text(&w->out, t->name);
        put_number(&w->out, t->dims, 4);
        put_number(&w->out, t->n_in, 8);
        if (t->dims == 2)
            put_number(&w->out, t->n_out, 8);
        put_number(&w->out, t->type, 4);
        put_number(&w->out, offset, 8);
        offset += (bytes_of(t) + ALIGN - 1) / ALIGN * ALIGN;
    }
    for (uint32_t i = 0; i < w->n_tensors; i++) {
        put_number(&w->out, 0, (uint32_t)((ALIGN - w->out.n % ALIGN) % ALIGN));
        if (w->tensors[i].type == GGUF_F32)
            write_floats(w, &w->tensors[i]);
        else
            write_blocks(w, &w->tensors[i]);
    }
}

tiny_file tiny_write(const tiny_options *options)
{
    writer w = {.options = options, .chance = 7};
    put(&w.out, "GGUF\3\0\0\0", 8);
    put_number(&w.out, 0, 16); /* counts, put in below */
    write_keys(&w);
    add_tensor(&w, "token_embd.weight", TINY_WIDTH, TINY_VOCABULARY);
    add_tensor(&w, "output_norm.weight", TINY_WIDTH, 1);
    if (options->untied)
        add_tensor(&w, "output.weight", TINY_WIDTH, TINY_VOCABULARY);
    for (uint32_t i = 0; i < TINY_LAYERS; i++)
        add_layer(&w, i);
    write_tensors(&w);
    w.out.bytes[8] = (unsigned char)w.n_tensors;
    w.out.bytes[16] = (unsigned char)w.n_keys;
    return w.out;
}

/* ---- Opened ----------------------------------------------------------------------------------------------------- */

tiny_model tiny_open(const tiny_options *options)
{
    trace_error error;
    tiny_model t = {.file = tiny_write(options)};
    ck_assert_msg(gguf_open_bytes(t.file.bytes, t.file.n, "tiny", &t.g, &error) == 0, "%s", error.text);
    ck_assert_msg(model_open(t.g, &t.m, &error) == 0, "%s", error.text);
    return t;
}

void tiny_close(tiny_model *t)
{
    model_close(t->m);
    gguf_close(t->g);
    free(t->file.bytes);
}

void tiny_text(uint32_t seed, uint32_t *tokens, uint32_t n)
{
    uint64_t chance = seed;
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = next_random(&chance) % TINY_VOCABULARY;
}
