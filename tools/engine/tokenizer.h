/* engine/tokenizer.h: text to token ids and back, by the vocabulary and merges of a model file (byte-level BPE).
 *
 * Text is any bytes: tokens are bytes, so what is not UTF-8 survives the way there and back as it is. Only where the
 * vocabulary lacks a byte (some do, for bytes that their training never met) a text that holds it is refused.
 * Encoding takes time O(n log n) at worst, whatever the text.
 *
 * Plain text never becomes a control token, however it spells one: that takes TOKENIZER_MARKS, which is for prompts
 * that are written by whoever runs the model, and engine/chat.h for those that hold what others wrote.
 *
 * What a text is cut into before tokens are joined is the pre-tokenizer's business: gpt2, smollm, llama-bpe and qwen2
 * are known. Text is taken as it stands: Qwen2's own tokenizer composes it first (NFC).
 *
 * Functions that can fail return 0, TRACE_BAD_INPUT or TRACE_FAILED with the error's line set, and change nothing then.
 * An open tokenizer may be used by several threads at once. */
#ifndef KVKEEP_ENGINE_TOKENIZER_H
#define KVKEEP_ENGINE_TOKENIZER_H

#include "engine/gguf.h"
#include "engine/token_list.h"

enum {
    TOKENIZER_MARKS = 1, /* control and user-defined tokens are recognised in the text */
    TOKENIZER_BEGIN = 2  /* the token goes first that the model's texts begin with, if they do with any */
};

enum { TOKENIZER_MAX_TEXT = INT32_MAX /* bytes */ };

typedef struct tokenizer tokenizer;

/* What a model file says; the texts may go once the tokenizer is open. */
typedef struct tokenizer_source {
    const char *path;        /* for errors */
    const gguf_text *tokens; /* [n_tokens] */
    const int32_t *types;    /* [n_types], as tokenizer.ggml.token_type has them; NULL: all normal */
    const gguf_text *merges; /* [n_merges], best first */
    uint64_t n_tokens, n_types, n_merges;
    gguf_text pre;      /* the pre-tokenizer's name */
    int64_t begin, end; /* ids of the tokens around a text; -1: none */
    int add_begin;      /* texts begin with `begin`; -1: as the pre-tokenizer's models do */
} tokenizer_source;

int tokenizer_open(const gguf *g, tokenizer **out, trace_error *error);
int tokenizer_open_source(const tokenizer_source *from, tokenizer **out, trace_error *error);

/* NULL is ignored. */
void tokenizer_close(tokenizer *t);

/* Puts the ids of text[0 .. n-1] at the end of a list. */
int tokenizer_encode(const tokenizer *t, const char *text, size_t n, unsigned flags, token_list *ids,
                     trace_error *error);

/* The bytes of a token, which may be part of a character, and of a control token its name; they live as long as the
 * tokenizer. Returns TRACE_BAD_INPUT, without a line, if there is no such id. */
int tokenizer_bytes(const tokenizer *t, int32_t id, const char **bytes, size_t *n);

/* Ids are 0 .. size - 1. */
uint32_t tokenizer_size(const tokenizer *t);

/* The tokens around a text, -1 if the model has none. */
int32_t tokenizer_begin(const tokenizer *t);
int32_t tokenizer_end(const tokenizer *t);

/* Whether a model that gave this token has said all: the end token, or a control token that ends a turn by its name. */
int tokenizer_is_end(const tokenizer *t, int32_t id);

/* The control or user-defined token of this name (NUL-terminated), or -1. */
int32_t tokenizer_mark(const tokenizer *t, const char *name);

#endif
