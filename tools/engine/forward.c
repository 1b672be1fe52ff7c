#define _POSIX_C_SOURCE 200809L /* posix_memalign */
#include "engine/forward.h"
#include "engine/numbers.h"

#include <stdlib.h>
#include <string.h>

/* Memory that grows; its content is lost when it does. */
typedef struct room {
    void *at;
    uint64_t bytes;
} room;

enum { ALIGNMENT = 64 };

struct forward {
    const model *m;
    uint32_t n;  /* tokens of the batch that ran last */
    room x;      /* [n][width] the residual stream */
    room normed; /* [n][width] */
    room qkv;    /* [n] what matrix qkv gives */
    room heads;  /* [n][n_heads * head_size] what attention gives */
    room wide;   /* [n][2][ff_width] */
    room gated;  /* [n][ff_width] */
    room turns;  /* [n][n_rotated] cosines and sines */
    room work;   /* attention's */
};

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static int grow(room *r, uint64_t n, uint64_t bytes_each)
{
    uint64_t bytes;
    void *at = NULL;
    if (__builtin_mul_overflow(n, bytes_each, &bytes))
        return -1;
    if (bytes <= r->bytes)
        return 0;
    if (posix_memalign(&at, ALIGNMENT, bytes) != 0)
        return -1;
    free(r->at);
    *r = (room){at, bytes};
    return 0;
}

static int grow_all(forward *f, uint64_t n)
{
    const model_shape *s = &f->m->shape;
    uint64_t heads = (uint64_t)s->n_heads * s->head_size;
    int rc = grow(&f->x, n, s->width * sizeof(float));
    rc |= grow(&f->normed, n, s->width * sizeof(float));
    rc |= grow(&f->qkv, n, f->m->layers[0].qkv.n_out * sizeof(float));
    rc |= grow(&f->heads, n, heads * sizeof(float));
    rc |= grow(&f->wide, n, 2 * (uint64_t)s->ff_width * sizeof(float));
    rc |= grow(&f->gated, n, s->ff_width * sizeof(float));
    rc |= grow(&f->turns, n, s->n_rotated * sizeof(float));
    return rc;
}

static int no_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"the model", 0, NULL}, "out of memory");
}

static int kvkeep_failed(const char *call, int rc, trace_error *error)
{
    return trace_failed(error, (trace_place){"the model", 0, NULL}, "%s: %s", call, kvk_strerror(rc));
}

int forward_open(const model *m, forward **out, trace_error *error)
{
    forward *f = calloc(1, sizeof *f);
    if (!f)
        return no_memory(error);
    f->m = m;
    *out = f;
    return 0;
}

void forward_close(forward *f)
{
    if (!f)
        return;
    room *const all[] = {&f->x, &f->normed, &f->qkv, &f->heads, &f->wide, &f->gated, &f->turns, &f->work};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]->at);
    free(f);
}

/* ---- Before the layers ------------------------------------------------------------------------------------------ */

static void embed(const forward *f, const uint32_t *tokens)
{
    for (uint32_t i = 0; i < f->n; i++)
        model_embed(f->m, tokens[i], (float *)f->x.at + (size_t)i * f->m->shape.width);
}

/* Each entry's new tokens are the last ones of its text. */
static void find_turns(const forward *f, const forward_batch *b)
{
    const model_shape *s = &f->m->shape;
    const int32_t *lengths = b->plan->seq_lens, *queries = b->plan->query_indptr;
    for (uint32_t e = 0; e < b->n; e++)
        for (int32_t i = queries[e]; i < queries[e + 1]; i++)
            rotation_at(s, f->m->rope_factors, (uint32_t)(lengths[e] - queries[e + 1] + i),
                        (float *)f->turns.at + (size_t)i * s->n_rotated);
}

/* ---- One layer -------------------------------------------------------------------------------------------------- */

/* A layer's place among the groups. */
typedef struct layer_place {
    uint32_t layer, group, in_group, group_layers;
} layer_place;

static layer_place place_of(const forward *f, const forward_batch *b, uint32_t layer)
{
    uint32_t each = f->m->shape.n_layers / b->n_groups;
    return (layer_place){layer, layer / each, layer % each, each};
}

static void turn_heads(const forward *f, const model_layer *layer)
{
    const model_shape *s = &f->m->shape;
    uint32_t width = layer->qkv.n_out;
#pragma omp parallel for if (f->n >= 16)
    for (uint32_t i = 0; i < f->n; i++) {
        float *heads = (float *)f->qkv.at + (size_t)i * width;
        if (layer->qkv_bias)
            add(heads, layer->qkv_bias, width);
        rotate(s, (const float *)f->turns.at + (size_t)i * s->n_rotated, heads, s->n_heads + s->n_kv_heads);
    }
}

static int append(const forward *f, const forward_batch *b, layer_place at)
{
    const model_shape *s = &f->m->shape;
    const float *k = (const float *)f->qkv.at + (size_t)s->n_heads * s->head_size;
    kvk_rows rows = {k, KVK_F32, 0, f->m->layers[0].qkv.n_out, s->head_size}, values = rows;
    values.data = k + (size_t)s->n_kv_heads * s->head_size;
    return kvk_append(b->kv, at.in_group, b->plan->slots + at.group * b->plan->slots_cap, f->n, &rows, &values);
}

static kvk_attention attention_of(const forward *f, const forward_batch *b, layer_place at)
{
    const model_shape *s = &f->m->shape;
    const kvk_plan *p = b->plan;
    kvk_attention a;
    kvk_attention_init(&a);
    a.n = b->n;
    a.kv = b->kv;
    a.layer = at.in_group;
    a.n_heads = s->n_heads;
    a.indptr = (const int32_t *)p->indptr + (size_t)at.group * (p->entries_cap + 1);
    a.pages = (const int32_t *)p->pages + at.group * p->pages_cap;
    a.positions = (const int32_t *)p->positions + at.group * p->pages_cap;
    a.seq_lens = p->seq_lens;
    a.query_indptr = p->query_indptr;
    a.q = (kvk_rows){f->qkv.at, KVK_F32, 0, f->m->layers[0].qkv.n_out, s->head_size};
    return a;
}

/* A layer of which no head is kept has nothing to find out. */
static void set_near(const forward *f, const forward_batch *b, layer_place at, kvk_attention_out *out)
{
    uint32_t heads = f->m->shape.n_heads;
    const int32_t *places = b->near.places + (size_t)at.layer * heads;
    const kvk_group *group = &b->near.groups[at.group];
    out->near_kind = b->near.kind;
    out->near_values = (uint32_t)group->near_layers * group->near_heads;
    out->near_places = places;
    for (uint32_t h = 0; h < heads && !out->near; h++)
        out->near = places[h] >= 0 ? b->masses.near + at.group * b->masses.near_stride : NULL;
}

/* The layers of a group add to the same masses. */
static kvk_attention_out results_of(const forward *f, const forward_batch *b, layer_place at)
{
    const model_shape *s = &f->m->shape;
    const forward_masses *masses = &b->masses;
    kvk_attention_out out;
    kvk_attention_out_init(&out);
    out.o_dtype = KVK_F32;
    out.o = f->heads.at;
    out.o_token_stride = (uint64_t)s->n_heads * s->head_size;
    out.o_head_stride = s->head_size;
    out.rows = masses->rows;
    out.mean = masses->mean ? masses->mean + at.group * masses->stride : NULL;
    out.peak = masses->peak ? masses->peak + at.group * masses->stride : NULL;
    out.weight = 1 / (float)at.group_layers;
    if (masses->near)
        set_near(f, b, at, &out);
    return out;
}

static int attend(forward *f, const forward_batch *b, layer_place at, trace_error *error)
{
    int rc = append(f, b, at);
    if (rc < 0)
        return kvkeep_failed("kvk_append", rc, error);
    kvk_attention a = attention_of(f, b, at);
    kvk_attention_out out = results_of(f, b, at);
    int64_t bytes = kvk_attention_workspace(&a, &out);
    if (bytes < 0)
        return kvkeep_failed("kvk_attention_workspace", (int)bytes, error);
    if (grow(&f->work, (uint64_t)bytes, 1) < 0)
        return no_memory(error);
    rc = kvk_attention_cpu(&a, &out, f->work.at, f->work.bytes);
    return rc < 0 ? kvkeep_failed("kvk_attention_cpu", rc, error) : 0;
}

static int run_layer(forward *f, const forward_batch *b, uint32_t number, trace_error *error)
{
    const model_shape *s = &f->m->shape;
    const model_layer *layer = &f->m->layers[number];
    uint64_t n = (uint64_t)f->n * s->width;
    rms_norm(f->x.at, f->n, s->width, layer->attention_norm, s->rms_epsilon, f->normed.at);
    matrix_multiply(&layer->qkv, f->normed.at, f->n, f->qkv.at);
    turn_heads(f, layer);
    int rc = attend(f, b, place_of(f, b, number), error);
    if (rc < 0)
        return rc;
    matrix_multiply(&layer->attention_out, f->heads.at, f->n, f->normed.at);
    add(f->x.at, f->normed.at, n);
    rms_norm(f->x.at, f->n, s->width, layer->ff_norm, s->rms_epsilon, f->normed.at);
    matrix_multiply(&layer->gate_up, f->normed.at, f->n, f->wide.at);
    gate(f->wide.at, f->n, s->ff_width, f->gated.at);
    matrix_multiply(&layer->down, f->gated.at, f->n, f->normed.at);
    add(f->x.at, f->normed.at, n);
    return 0;
}

int forward_run(forward *f, const forward_batch *batch, trace_error *error)
{
    f->n = 0;
    if (grow_all(f, batch->plan->n_slots) < 0)
        return no_memory(error);
    f->n = (uint32_t)batch->plan->n_slots;
    embed(f, batch->tokens);
    find_turns(f, batch);
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && f->n > 0 && i < f->m->shape.n_layers; i++)
        rc = run_layer(f, batch, i, error);
    return rc;
}

/* ---- After the layers ------------------------------------------------------------------------------------------- */

int forward_logits(forward *f, const uint32_t *which, uint32_t n, float *logits, trace_error *error)
{
    const model_shape *s = &f->m->shape;
    if (grow(&f->heads, n, s->width * sizeof(float)) < 0 || grow(&f->normed, n, s->width * sizeof(float)) < 0)
        return no_memory(error);
    float *wanted = f->heads.at; /* attention's results are not needed any more */
    for (uint32_t i = 0; i < n; i++)
        memcpy(wanted + (size_t)i * s->width, (float *)f->x.at + (size_t)which[i] * s->width,
               s->width * sizeof *wanted);
    rms_norm(wanted, n, s->width, f->m->output_norm, s->rms_epsilon, f->normed.at);
    matrix_multiply(&f->m->output, f->normed.at, n, logits);
    return 0;
}
