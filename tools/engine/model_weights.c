/* model_weights.c: the weights of a model into one block. A matrix may be stacked of several tensors: Q, K and V are
 * one product, gate and up another. */
#define _POSIX_C_SOURCE 200809L /* posix_memalign */
#define _DEFAULT_SOURCE         /* madvise */
#include "engine/gguf_file.h"
#include "engine/model_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { NAME_CAP = 96, ALIGNMENT = 64, HUGE_PAGE = 2 << 20, MOST_PARTS = 3 };

/* The tensors that a matrix is stacked of, by name and rows. */
typedef struct stack {
    const char *names[MOST_PARTS];
    uint32_t n_out[MOST_PARTS];
    uint32_t n;
} stack;

/* Goes over all weights twice: first to find the tensors, check them and count bytes, then to fill the block. */
typedef struct loader {
    const gguf *g;
    model *m;
    unsigned char *block; /* NULL the first time */
    uint64_t at;
    int layer; /* that names are of; -1: none */
    trace_error *error;
} loader;

static gguf_subject about(const gguf_tensor *t)
{
    return (gguf_subject){"tensor", t->name, 0};
}

int model_find_tensor(const gguf *g, const char *name, uint64_t n_in, uint64_t n_out, const gguf_tensor **out,
                      trace_error *error)
{
    int rc = gguf_tensor_find(g, name, out, error);
    if (rc < 0)
        return rc;
    const gguf_tensor *t = *out;
    if (t->dims[0] != n_in || t->dims[1] != n_out || t->dims[2] != 1 || t->dims[3] != 1)
        return gguf_wrong(g, about(t), error, "has %ju x %ju numbers (x %ju x %ju), not %ju x %ju",
                          (uintmax_t)t->dims[0], (uintmax_t)t->dims[1], (uintmax_t)t->dims[2], (uintmax_t)t->dims[3],
                          (uintmax_t)n_in, (uintmax_t)n_out);
    return 0;
}

static int has_tensor(const gguf *g, const char *name)
{
    gguf_text wanted = {name, strlen(name)};
    for (uint64_t i = 0; i < g->n_tensors; i++)
        if (gguf_text_compare(g->tensors[i].tensor.name, wanted) == 0)
            return 1;
    return 0;
}

static int find(const loader *l, const char *name, uint64_t n_in, uint64_t n_out, const gguf_tensor **out)
{
    char full[NAME_CAP];
    if (l->layer < 0)
        return model_find_tensor(l->g, name, n_in, n_out, out, l->error);
    snprintf(full, sizeof full, "blk.%d.%s", l->layer, name);
    return model_find_tensor(l->g, full, n_in, n_out, out, l->error);
}

/* Room in the block; NULL while it is only counted. */
static unsigned char *take(loader *l, uint64_t bytes)
{
    unsigned char *room = l->block ? l->block + l->at : NULL;
    l->at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return room;
}

static int not_finite(const loader *l, const gguf_tensor *t, uint64_t row)
{
    return gguf_wrong(l->g, about(t), l->error, "row %ju has a number that is not finite", (uintmax_t)row);
}

/* ---- Lists and matrices ----------------------------------------------------------------------------------------- */

static int put_list(const loader *l, const gguf_tensor *t, float *room)
{
    (void)gguf_row(t, 0, room);
    for (uint64_t i = 0; i < t->dims[0]; i++)
        if (!isfinite(room[i]))
            return not_finite(l, t, 0);
    return 0;
}

/* Lists one after the other. */
static int load_lists(loader *l, const stack *s, const float **out)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->n_out[i];
    float *room = (float *)(void *)take(l, n * sizeof *room);
    *out = room;
    for (uint32_t i = 0; i < s->n; i++) {
        const gguf_tensor *t;
        int rc = find(l, s->names[i], s->n_out[i], 1, &t);
        if (rc == 0 && room)
            rc = put_list(l, t, room);
        if (rc < 0)
            return rc;
        room = room ? room + s->n_out[i] : NULL;
    }
    return 0;
}

static int load_list(loader *l, const char *name, uint32_t n, const float **out)
{
    return load_lists(l, &(stack){{name}, {n}, 1}, out);
}

static int put_rows(const loader *l, const matrix *m, uint32_t first, const gguf_tensor *t)
{
    float *numbers = malloc(m->n_in * sizeof *numbers);
    int rc = numbers ? 0 : gguf_no_memory(l->g, l->error);
    for (uint64_t row = 0; rc == 0 && row < t->dims[1]; row++)
        if (matrix_put(m, first + (uint32_t)row, t, row, numbers) < 0)
            rc = not_finite(l, t, row);
    free(numbers);
    return rc;
}

/* Whole small numbers only if all tensors of the stack have them. */
static int load_matrix(loader *l, const stack *s, uint32_t n_in, matrix *out)
{
    const gguf_tensor *parts[MOST_PARTS] = {NULL};
    matrix m = {.n_in = n_in};
    for (uint32_t i = 0; i < s->n; i++) {
        int rc = find(l, s->names[i], n_in, s->n_out[i], &parts[i]);
        if (rc < 0)
            return rc;
        matrix_kind kind = matrix_kind_of(parts[i]->type);
        m.kind = i == 0 || m.kind == kind ? kind : MATRIX_F32;
        m.n_out += s->n_out[i];
    }
    m.panels = take(l, matrix_panels(&m) * matrix_panel_bytes(m.kind, n_in));
    for (uint32_t i = 0, first = 0; m.panels && i < s->n; first += s->n_out[i++]) {
        int rc = put_rows(l, &m, first, parts[i]);
        if (rc < 0)
            return rc;
    }
    *out = m;
    return 0;
}

/* ---- The whole model -------------------------------------------------------------------------------------------- */

static int load_attention(loader *l, const model_family *family, model_layer *layer)
{
    const model_shape *s = &l->m->shape;
    uint32_t q = s->n_heads * s->head_size, kv = s->n_kv_heads * s->head_size;
    int rc = load_list(l, "attn_norm.weight", s->width, &layer->attention_norm);
    if (rc == 0)
        rc = load_matrix(l, &(stack){{"attn_q.weight", "attn_k.weight", "attn_v.weight"}, {q, kv, kv}, 3}, s->width,
                         &layer->qkv);
    if (rc == 0 && family->has_bias)
        rc = load_lists(l, &(stack){{"attn_q.bias", "attn_k.bias", "attn_v.bias"}, {q, kv, kv}, 3}, &layer->qkv_bias);
    if (rc == 0)
        rc = load_matrix(l, &(stack){{"attn_output.weight"}, {s->width}, 1}, q, &layer->attention_out);
    return rc;
}

static int load_layer(loader *l, const model_family *family, model_layer *layer)
{
    const model_shape *s = &l->m->shape;
    int rc = load_attention(l, family, layer);
    if (rc == 0)
        rc = load_list(l, "ffn_norm.weight", s->width, &layer->ff_norm);
    if (rc == 0)
        rc = load_matrix(l, &(stack){{"ffn_gate.weight", "ffn_up.weight"}, {s->ff_width, s->ff_width}, 2}, s->width,
                         &layer->gate_up);
    if (rc == 0)
        rc = load_matrix(l, &(stack){{"ffn_down.weight"}, {s->width}, 1}, s->ff_width, &layer->down);
    return rc;
}

static int load_all(loader *l, const model_family *family)
{
    model *m = l->m;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < m->shape.n_layers; i++) {
        l->layer = (int)i;
        rc = load_layer(l, family, &m->layers[i]);
    }
    l->layer = -1;
    if (rc == 0)
        rc = load_list(l, "output_norm.weight", m->shape.width, &m->output_norm);
    if (rc == 0 && has_tensor(l->g, "rope_freqs.weight"))
        rc = load_list(l, "rope_freqs.weight", m->shape.n_rotated / 2, &m->rope_factors);
    if (rc == 0)
        rc = model_find_tensor(l->g, "token_embd.weight", m->shape.width, m->shape.n_vocabulary, &m->embedding,
                               l->error);
    const char *output = has_tensor(l->g, "output.weight") ? "output.weight" : "token_embd.weight";
    if (rc == 0)
        rc = load_matrix(l, &(stack){{output}, {m->shape.n_vocabulary}, 1}, m->shape.width, &m->output);
    return rc;
}

/* Large pages spare the processor looking up addresses; where there are none nothing is lost. Panels that are wider
 * than their matrix are filled with zeroes. */
static int make_block(model *m, uint64_t bytes)
{
    if (posix_memalign(&m->weights, HUGE_PAGE, bytes) != 0)
        return -1;
    (void)madvise(m->weights, bytes, MADV_HUGEPAGE);
    memset(m->weights, 0, bytes);
    m->weight_bytes = bytes;
    return 0;
}

static int check_factors(const model *m, const gguf *g, trace_error *error)
{
    for (uint32_t i = 0; m->rope_factors && i < m->shape.n_rotated / 2; i++)
        if (!(m->rope_factors[i] > 0))
            return gguf_wrong(g, (gguf_subject){"tensor", {"rope_freqs.weight", 17}, 0}, error,
                              "number %u is not above 0", i);
    return 0;
}

int model_read_weights(const gguf *g, const model_family *family, model *m, trace_error *error)
{
    loader l = {.g = g, .m = m, .error = error};
    int rc = load_all(&l, family);
    if (rc < 0)
        return rc;
    if (make_block(m, l.at) < 0)
        return gguf_no_memory(g, error);
    l = (loader){.g = g, .m = m, .error = error, .block = m->weights};
    rc = load_all(&l, family);
    return rc < 0 ? rc : check_factors(m, g, error);
}
