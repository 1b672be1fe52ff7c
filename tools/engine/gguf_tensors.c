#include "engine/gguf_cursor.h"

#include <stdlib.h>

static gguf_subject about(const gguf_stored *s)
{
    return (gguf_subject){"tensor", s->tensor.name, 0};
}

static int take_dims(gguf_cursor *c, gguf_tensor *t)
{
    int rc = gguf_take_u32(c, &t->n_dims);
    if (rc == 0 && (t->n_dims < 1 || t->n_dims > 4))
        rc = gguf_wrong(c->g, c->about, c->error, "has %u dimensions, not 1 to 4, before byte %ju", t->n_dims,
                        (uintmax_t)c->at);
    for (uint32_t i = 0; i < 4; i++) {
        t->dims[i] = 1;
        if (rc == 0 && i < t->n_dims)
            rc = gguf_take_u64(c, &t->dims[i]);
        if (rc == 0 && t->dims[i] == 0)
            rc = gguf_wrong(c->g, c->about, c->error, "dimension %u is 0, before byte %ju", i, (uintmax_t)c->at);
    }
    return rc;
}

static int take_tensor(gguf_cursor *c, gguf_stored *s)
{
    gguf_tensor *t = &s->tensor;
    int rc = gguf_take_text(c, GGUF_MAX_TENSOR_NAME, &t->name);
    if (rc == 0 && t->name.n == 0)
        rc = gguf_wrong(c->g, c->about, c->error, "has no name, before byte %ju", (uintmax_t)c->at);
    if (rc < 0)
        return rc;
    c->about.name = t->name;
    rc = take_dims(c, t);
    if (rc == 0)
        rc = gguf_take_u32(c, &t->type);
    return rc < 0 ? rc : gguf_take_u64(c, &s->offset);
}

/* What the tensor's type and dimensions ask for. */
static int count_bytes(const gguf *g, gguf_stored *s, trace_error *error)
{
    gguf_tensor *t = &s->tensor;
    const gguf_blocks *b = gguf_blocks_of(t->type);
    if (!b)
        return 0;
    if (t->dims[0] % b->elements != 0)
        return gguf_wrong(g, about(s), error, "rows of %ju numbers are no whole blocks of %u, which %s has",
                          (uintmax_t)t->dims[0], b->elements, b->name);
    t->bytes = b->bytes;
    uint64_t dims[4] = {t->dims[0] / b->elements, t->dims[1], t->dims[2], t->dims[3]};
    for (uint32_t i = 0; i < 4; i++)
        if (__builtin_mul_overflow(t->bytes, dims[i], &t->bytes))
            return gguf_wrong(g, about(s), error, "has too many numbers");
    return 0;
}

/* Tensors of an unknown type can lie anywhere as far as this goes: nobody reads them. */
static int place(const gguf *g, gguf_stored *s, uint64_t data, uint64_t alignment, trace_error *error)
{
    uint64_t from = 0, end = 0;
    int rc = count_bytes(g, s, error);
    if (rc < 0)
        return rc;
    if (s->offset % alignment != 0)
        return gguf_wrong(g, about(s), error, "offset %ju is no multiple of the alignment, %ju", (uintmax_t)s->offset,
                          (uintmax_t)alignment);
    if (__builtin_add_overflow(data, s->offset, &from) || __builtin_add_overflow(from, s->tensor.bytes, &end) ||
        end > g->n)
        return gguf_wrong(g, about(s), error, "%ju bytes at offset %ju run past the end of the file, at byte %ju",
                          (uintmax_t)s->tensor.bytes, (uintmax_t)s->offset, (uintmax_t)g->n);
    s->tensor.data = g->bytes + from;
    return 0;
}

static int by_offset(const void *a, const void *b)
{
    const gguf_stored *s = a, *t = b;
    if (s->offset != t->offset)
        return s->offset < t->offset ? -1 : 1;
    if (s->tensor.bytes != t->tensor.bytes)
        return s->tensor.bytes < t->tensor.bytes ? -1 : 1;
    return gguf_text_compare(s->tensor.name, t->tensor.name);
}

static int check_apart(gguf *g, trace_error *error)
{
    qsort(g->tensors, g->n_tensors, sizeof *g->tensors, by_offset);
    for (uint64_t i = 1; i < g->n_tensors; i++) {
        const gguf_stored *before = &g->tensors[i - 1], *s = &g->tensors[i];
        if (s->offset - before->offset < before->tensor.bytes)
            return gguf_wrong(g, about(s), error, "offset %ju is within tensor %.*s, %ju bytes at offset %ju",
                              (uintmax_t)s->offset, (int)before->tensor.name.n, before->tensor.name.at,
                              (uintmax_t)before->tensor.bytes, (uintmax_t)before->offset);
    }
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return gguf_text_compare(((const gguf_stored *)a)->tensor.name, ((const gguf_stored *)b)->tensor.name);
}

static int check_once(gguf *g, trace_error *error)
{
    qsort(g->tensors, g->n_tensors, sizeof *g->tensors, by_name);
    for (uint64_t i = 1; i < g->n_tensors; i++)
        if (by_name(&g->tensors[i - 1], &g->tensors[i]) == 0)
            return gguf_wrong(g, about(&g->tensors[i]), error, "stands there twice");
    return 0;
}

static int read_alignment(const gguf *g, uint32_t *out, trace_error *error)
{
    const gguf_entry *e = gguf_entry_find(g, "general.alignment");
    *out = GGUF_DEFAULT_ALIGNMENT;
    int rc = e ? gguf_u32(g, "general.alignment", out, error) : 0;
    if (rc == 0 && (*out < GGUF_MIN_ALIGNMENT || (*out & (*out - 1)) != 0))
        rc = gguf_wrong(g, gguf_key("general.alignment"), error, "is %u, no power of 2 from %d on", *out,
                        GGUF_MIN_ALIGNMENT);
    return rc;
}

/* The tensors' data begins at the next multiple of the alignment. */
static int place_all(const gguf_cursor *c, gguf *g)
{
    uint32_t alignment = 0;
    int rc = read_alignment(g, &alignment, c->error);
    if (rc < 0)
        return rc;
    uint64_t data = c->at + (alignment - c->at % alignment) % alignment;
    for (uint64_t i = 0; rc == 0 && i < g->n_tensors; i++)
        rc = place(g, &g->tensors[i], data, alignment, c->error);
    return rc;
}

int gguf_take_tensors(gguf_cursor *c, gguf *g, uint64_t n)
{
    g->tensors = calloc(n + 1, sizeof *g->tensors);
    if (!g->tensors)
        return gguf_no_memory(g, c->error);
    for (uint64_t i = 0; i < n; i++) {
        c->about = (gguf_subject){"tensor", {"", 0}, i + 1};
        int rc = take_tensor(c, &g->tensors[i]);
        if (rc < 0)
            return rc;
    }
    g->n_tensors = n;
    int rc = place_all(c, g);
    if (rc == 0)
        rc = check_apart(g, c->error);
    return rc < 0 ? rc : check_once(g, c->error);
}

int gguf_tensor_find(const gguf *g, const char *name, const gguf_tensor **out, trace_error *error)
{
    gguf_stored wanted = {.tensor.name = {name, strlen(name)}};
    const gguf_stored *found = bsearch(&wanted, g->tensors, g->n_tensors, sizeof *g->tensors, by_name);
    if (!found)
        return gguf_wrong(g, about(&wanted), error, "missing");
    if (!gguf_blocks_of(found->tensor.type))
        return gguf_wrong(g, about(&wanted), error, "is of type %u, which is not known", found->tensor.type);
    *out = &found->tensor;
    return 0;
}
