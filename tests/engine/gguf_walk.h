/* Asks an open GGUF file for everything that it has. */
#ifndef TESTS_ENGINE_GGUF_WALK_H
#define TESTS_ENGINE_GGUF_WALK_H

#include "engine/gguf_file.h"

#include <stdlib.h>

/* True if an error that should be set is one line, of a text that says something. */
static inline int gguf_error_is_a_line(int rc, const trace_error *error)
{
    return rc == 0 || (error->text[0] != '\0' && !strchr(error->text, '\n'));
}

/* Each of these answers, or says why not. Returns how many answered, or -1 if an error was no line. */
static inline int gguf_walk_key(const gguf *g, const char *key)
{
    trace_error error = {""};
    uint32_t u;
    float f;
    int b;
    gguf_text text, *texts = NULL;
    int32_t *wholes = NULL;
    float *floats = NULL;
    uint64_t n;
    int rcs[] = {
        gguf_u32(g, key, &u, &error),
        gguf_f32(g, key, &f, &error),
        gguf_bool(g, key, &b, &error),
        gguf_string(g, key, &text, &error),
        gguf_strings(g, key, &texts, &n, &error),
        gguf_i32s(g, key, &wholes, &n, &error),
        gguf_f32s(g, key, &floats, &n, &error),
    };
    int answered = 0;
    for (size_t i = 0; i < sizeof rcs / sizeof rcs[0]; i++) {
        if (!gguf_error_is_a_line(rcs[i], &error))
            return -1;
        answered += rcs[i] == 0;
    }
    free(texts);
    free(wholes);
    free(floats);
    return answered;
}

/* Reads the first and the last row of a tensor, and looks for one more. */
static inline int gguf_walk_tensor(const gguf *g, const char *name)
{
    trace_error error = {""};
    const gguf_tensor *t;
    int rc = gguf_tensor_find(g, name, &t, &error);
    if (rc < 0)
        return gguf_error_is_a_line(rc, &error) ? 0 : -1;
    uint64_t rows = t->dims[1] * t->dims[2] * t->dims[3];
    float *row = calloc(t->dims[0], sizeof *row);
    if (!row)
        return 0;
    int bad = gguf_row(t, 0, row) < 0 || gguf_row(t, rows - 1, row) < 0 || gguf_row(t, rows, row) == 0;
    free(row);
    return bad ? -1 : 1;
}

static inline int gguf_walk_text(const gguf *g, gguf_text name, int (*walk)(const gguf *g, const char *name))
{
    char *terminated = calloc(name.n + 1, 1);
    if (!terminated)
        return 0;
    memcpy(terminated, name.at, name.n);
    int answered = walk(g, terminated);
    free(terminated);
    return answered;
}

/* Returns what answered, or -1 if something is wrong with the reader. */
static inline int gguf_walk(const gguf *g)
{
    int answered = 0;
    for (uint64_t i = 0; answered >= 0 && i < g->n_entries; i++) {
        int n = gguf_walk_text(g, g->entries[i].key, gguf_walk_key);
        answered = n < 0 ? -1 : answered + n;
    }
    for (uint64_t i = 0; answered >= 0 && i < g->n_tensors; i++) {
        int n = gguf_walk_text(g, g->tensors[i].tensor.name, gguf_walk_tensor);
        answered = n < 0 ? -1 : answered + n;
    }
    return answered;
}

#endif
