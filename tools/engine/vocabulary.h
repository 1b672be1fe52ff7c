/* engine/vocabulary.h: the tokens of a byte-level BPE tokenizer as bytes, and which two join into which.
 *
 * A normal token is spelled in the byte alphabet and can be looked up by its bytes. Control and user-defined tokens are
 * marks: their text is their bytes, and no plain text becomes one. What is none of these, or is called normal but not
 * spelled in the alphabet, has its text as bytes and is found in no text.
 *
 * Invariant: where two tokens join, the bytes of the one that comes out are theirs, one behind the other. */
#ifndef KVKEEP_ENGINE_VOCABULARY_H
#define KVKEEP_ENGINE_VOCABULARY_H

#include "base/map.h"
#include "engine/tokenizer.h"

enum { VOCABULARY_MAX = 1 << 24 /* tokens, and merges */ };

typedef enum token_kind { TOKEN_SPELLED, TOKEN_MARK, TOKEN_OTHER } token_kind;

typedef struct vocabulary {
    uint32_t n;
    uint64_t *at; /* [n + 1] where each token begins in bytes[] */
    char *bytes;
    uint8_t *kinds;       /* [n] token_kind */
    int32_t of_byte[256]; /* the token that is this byte; -1: none */
    memory memory;
    map spelled; /* hash of a token's bytes -> id; a taken place sends the next to the key after it */
    map merges;  /* left << 32 | right -> rank << 32 | id */
} vocabulary;

/* Bad input: a token twice, a type that is none, a merge that is not two tokens which make a third. */
int vocabulary_open(vocabulary *v, const tokenizer_source *from, trace_error *error);
void vocabulary_close(vocabulary *v);

gguf_text vocabulary_bytes(const vocabulary *v, int32_t id);

/* The normal token of these bytes, or -1. */
int32_t vocabulary_find(const vocabulary *v, const char *bytes, size_t n);

/* What two tokens join into: rank << 32 | id, low ranks first; MAP_NONE if they do not. */
static inline uint64_t vocabulary_merge(const vocabulary *v, int32_t left, int32_t right)
{
    return map_get(&v->merges, (uint64_t)left << 32 | (uint32_t)right);
}

#endif
