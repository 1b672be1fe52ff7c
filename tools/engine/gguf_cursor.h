/* engine/gguf_cursor.h: the walk through a GGUF file's head, which goes no further than the file. */
#ifndef KVKEEP_ENGINE_GGUF_CURSOR_H
#define KVKEEP_ENGINE_GGUF_CURSOR_H

#include "engine/gguf_file.h"

typedef struct gguf_cursor {
    const gguf *g;
    uint64_t at;        /* what is read next; at most g->n */
    gguf_subject about; /* what is being read */
    trace_error *error;
} gguf_cursor;

static inline uint64_t gguf_left(const gguf_cursor *c)
{
    return c->g->n - c->at;
}

/* Each takes what comes next, or says where the file ends too early. A text has at most `most` bytes. */
int gguf_take_u32(gguf_cursor *c, uint32_t *out);
int gguf_take_u64(gguf_cursor *c, uint64_t *out);
int gguf_take_text(gguf_cursor *c, uint64_t most, gguf_text *out);

/* Goes on behind `n` values of a type, which may be unknown; `depth` is the number of arrays that they are in. */
int gguf_take_values(gguf_cursor *c, uint32_t type, uint64_t n, uint32_t depth);

/* The two halves of a file's head. Each takes what a count says, sorts it by name and refuses what is there twice. */
int gguf_take_entries(gguf_cursor *c, gguf *g, uint64_t n);
int gguf_take_tensors(gguf_cursor *c, gguf *g, uint64_t n);

#endif
