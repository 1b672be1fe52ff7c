#include "engine/tokenizer.h"

#include "engine/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

static int set_edge(int32_t *out, int64_t id, const tokenizer_source *from, const char *field, trace_error *error)
{
    if (id < -1 || id >= (int64_t)from->n_tokens)
        return trace_bad_input(error, (trace_place){from->path, 0, field}, "is %jd: the vocabulary has %ju tokens",
                               (intmax_t)id, (uintmax_t)from->n_tokens);
    *out = (int32_t)id;
    return 0;
}

static int set_edges(tokenizer *t, const tokenizer_source *from, trace_error *error)
{
    static const char begin[] = "tokenizer.ggml.bos_token_id", end[] = "tokenizer.ggml.eos_token_id";
    int rc = set_edge(&t->begin, from->begin, from, begin, error);
    if (rc == 0)
        rc = set_edge(&t->end, from->end, from, end, error);
    t->add_begin = from->add_begin < 0 ? t->pretokenizer.add_begin : from->add_begin;
    if (rc == 0 && t->add_begin && t->begin < 0)
        return trace_bad_input(error, (trace_place){from->path, 0, begin}, "missing: texts begin with that token");
    return rc;
}

int tokenizer_open_source(const tokenizer_source *from, tokenizer **out, trace_error *error)
{
    tokenizer *t = calloc(1, sizeof *t);
    if (!t)
        return trace_failed(error, (trace_place){from->path, 0, NULL}, "out of memory");
    int rc = pretokenizer_open(&t->pretokenizer, from, error);
    if (rc == 0)
        rc = vocabulary_open(&t->vocabulary, from, error);
    if (rc == 0)
        rc = marks_open(&t->marks, &t->vocabulary, from, error);
    if (rc == 0)
        rc = set_edges(t, from, error);
    if (rc < 0)
        tokenizer_close(t);
    else
        *out = t;
    return rc;
}

void tokenizer_close(tokenizer *t)
{
    if (!t)
        return;
    pretokenizer_close(&t->pretokenizer);
    if (t->vocabulary.spelled.memory)
        vocabulary_close(&t->vocabulary);
    marks_close(&t->marks);
    free(t);
}

/* ---- From a model file ------------------------------------------------------------------------------------------ */

/* Tokens that are no bytes, as SentencePiece has them, are another kind of model. */
static int check_model(const gguf *g, trace_error *error)
{
    static const char model[] = "tokenizer.ggml.model", prefix[] = "tokenizer.ggml.add_space_prefix";
    gguf_text name;
    int with_prefix = 0, rc = gguf_string(g, model, &name, error);
    if (rc == 0 && (name.n != 4 || memcmp(name.at, "gpt2", 4) != 0))
        return trace_bad_input(error, (trace_place){gguf_path(g), 0, model},
                               "'%.*s' is not supported: gpt2, which is byte-level BPE, is",
                               name.n < 60 ? (int)name.n : 60, name.at);
    if (rc == 0 && gguf_has(g, prefix))
        rc = gguf_bool(g, prefix, &with_prefix, error);
    if (rc == 0 && with_prefix)
        return trace_bad_input(error, (trace_place){gguf_path(g), 0, prefix}, "is true, which is not supported");
    return rc;
}

static int read_id(const gguf *g, const char *key, int64_t *out, trace_error *error)
{
    uint32_t id = 0;
    *out = -1;
    if (!gguf_has(g, key))
        return 0;
    int rc = gguf_u32(g, key, &id, error);
    *out = id;
    return rc;
}

static int read_edges(const gguf *g, tokenizer_source *source, trace_error *error)
{
    static const char add_begin[] = "tokenizer.ggml.add_bos_token";
    int rc = read_id(g, "tokenizer.ggml.bos_token_id", &source->begin, error);
    if (rc == 0)
        rc = read_id(g, "tokenizer.ggml.eos_token_id", &source->end, error);
    if (rc == 0 && gguf_has(g, add_begin))
        rc = gguf_bool(g, add_begin, &source->add_begin, error);
    return rc;
}

/* The lists of a file, which are to be freed. */
typedef struct lists {
    gguf_text *tokens, *merges;
    int32_t *types;
} lists;

static int read_lists(const gguf *g, lists *l, tokenizer_source *source, trace_error *error)
{
    static const char types[] = "tokenizer.ggml.token_type";
    int rc = gguf_strings(g, "tokenizer.ggml.tokens", &l->tokens, &source->n_tokens, error);
    if (rc == 0)
        rc = gguf_strings(g, "tokenizer.ggml.merges", &l->merges, &source->n_merges, error);
    if (rc == 0 && gguf_has(g, types))
        rc = gguf_i32s(g, types, &l->types, &source->n_types, error);
    source->tokens = l->tokens;
    source->merges = l->merges;
    source->types = l->types;
    return rc;
}

int tokenizer_open(const gguf *g, tokenizer **out, trace_error *error)
{
    tokenizer_source source = {.path = gguf_path(g), .add_begin = -1};
    lists l = {0};
    int rc = check_model(g, error);
    if (rc == 0)
        rc = gguf_string(g, "tokenizer.ggml.pre", &source.pre, error);
    if (rc == 0)
        rc = read_edges(g, &source, error);
    if (rc == 0)
        rc = read_lists(g, &l, &source, error);
    if (rc == 0)
        rc = tokenizer_open_source(&source, out, error);
    free(l.tokens);
    free(l.merges);
    free(l.types);
    return rc;
}

/* ---- Looking ---------------------------------------------------------------------------------------------------- */

int tokenizer_bytes(const tokenizer *t, int32_t id, const char **bytes, size_t *n)
{
    if (id < 0 || (uint32_t)id >= t->vocabulary.n)
        return TRACE_BAD_INPUT;
    gguf_text token = vocabulary_bytes(&t->vocabulary, id);
    *bytes = token.at;
    *n = (size_t)token.n;
    return 0;
}

uint32_t tokenizer_size(const tokenizer *t)
{
    return t->vocabulary.n;
}

int32_t tokenizer_begin(const tokenizer *t)
{
    return t->begin;
}

int32_t tokenizer_end(const tokenizer *t)
{
    return t->end;
}

int32_t tokenizer_mark(const tokenizer *t, const char *name)
{
    int32_t id = -1;
    size_t n = strlen(name);
    return marks_match(&t->marks, name, n, &id) == n && n > 0 ? id : -1;
}

int tokenizer_is_end(const tokenizer *t, int32_t id)
{
    static const char *const names[] = {"<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>"};
    if (id < 0)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tokenizer_mark(t, names[i]) == id)
            return 1;
    return id == t->end;
}
