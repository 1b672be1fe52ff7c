#include "engine/vocabulary.h"

#include "engine/byte_alphabet.h"
#include "engine/heap_memory.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* As the format numbers them. */
enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };

static trace_place place(const tokenizer_source *from, const char *field)
{
    return (trace_place){from->path, 0, field};
}

static int no_memory(const tokenizer_source *from, trace_error *error)
{
    return trace_failed(error, place(from, NULL), "out of memory");
}

/* How much of a text fits a message. */
static int shown(gguf_text text)
{
    return text.n < 60 ? (int)text.n : 60;
}

gguf_text vocabulary_bytes(const vocabulary *v, int32_t id)
{
    return (gguf_text){v->bytes + v->at[id], v->at[id + 1] - v->at[id]};
}

/* The key under which these bytes stand, or where they would go. Seeded by where the vocabulary lies, so that no file
 * can be made of tokens that collide. */
static uint64_t key_of(const vocabulary *v, const char *bytes, size_t n)
{
    uint64_t key = XXH3_64bits_withSeed(bytes, n, (uintptr_t)v), id;
    while ((id = map_get(&v->spelled, key)) != MAP_NONE) {
        gguf_text token = vocabulary_bytes(v, (int32_t)id);
        if (token.n == n && memcmp(token.at, bytes, n) == 0)
            break;
        key++;
    }
    return key;
}

int32_t vocabulary_find(const vocabulary *v, const char *bytes, size_t n)
{
    uint64_t id = map_get(&v->spelled, key_of(v, bytes, n));
    return id == MAP_NONE ? -1 : (int32_t)id;
}

/* ---- Tokens ----------------------------------------------------------------------------------------------------- */

static int check_counts(const tokenizer_source *from, trace_error *error)
{
    if (from->n_tokens == 0 || from->n_tokens > VOCABULARY_MAX)
        return trace_bad_input(error, place(from, "tokenizer.ggml.tokens"), "has %ju tokens: 1 to %d are possible",
                               (uintmax_t)from->n_tokens, VOCABULARY_MAX);
    if (from->n_merges > VOCABULARY_MAX)
        return trace_bad_input(error, place(from, "tokenizer.ggml.merges"), "has more than %d entries", VOCABULARY_MAX);
    if (from->types && from->n_types != from->n_tokens)
        return trace_bad_input(error, place(from, "tokenizer.ggml.token_type"), "has %ju entries for %ju tokens",
                               (uintmax_t)from->n_types, (uintmax_t)from->n_tokens);
    return 0;
}

/* A token is never longer than its text. */
static int make_room(vocabulary *v, const tokenizer_source *from)
{
    uint64_t bytes = 1;
    for (uint64_t i = 0; i < from->n_tokens; i++)
        bytes += from->tokens[i].n;
    v->n = (uint32_t)from->n_tokens;
    v->at = malloc((v->n + (size_t)1) * sizeof *v->at);
    v->bytes = malloc(bytes);
    v->kinds = malloc(v->n);
    if (!v->at || !v->bytes || !v->kinds)
        return -1;
    v->at[0] = 0;
    return map_prepare(&v->spelled, v->n) < 0 || map_prepare(&v->merges, (uint32_t)from->n_merges) < 0 ? -1 : 0;
}

static void add_token(vocabulary *v, uint32_t id, gguf_text text, int32_t type)
{
    char *to = v->bytes + v->at[id];
    int64_t n = type == TYPE_NORMAL && text.n > 0 ? byte_alphabet_read(text, to) : -1;
    v->kinds[id] = type == TYPE_CONTROL || type == TYPE_USER_DEFINED ? TOKEN_MARK : n < 0 ? TOKEN_OTHER : TOKEN_SPELLED;
    if (n < 0) {
        n = (int64_t)text.n;
        if (n)
            memcpy(to, text.at, text.n);
    }
    v->at[id + 1] = v->at[id] + (uint64_t)n;
}

static int index_token(vocabulary *v, uint32_t id, const tokenizer_source *from, trace_error *error)
{
    gguf_text bytes = vocabulary_bytes(v, (int32_t)id), text = from->tokens[id];
    uint64_t key = key_of(v, bytes.at, bytes.n), same = map_get(&v->spelled, key);
    if (same != MAP_NONE)
        return trace_bad_input(error, place(from, "tokenizer.ggml.tokens"), "tokens %ju and %u are the same: '%.*s'",
                               (uintmax_t)same, id, shown(text), text.at);
    map_set(&v->spelled, key, id);
    if (bytes.n == 1)
        v->of_byte[(unsigned char)bytes.at[0]] = (int32_t)id;
    return 0;
}

static int add_tokens(vocabulary *v, const tokenizer_source *from, trace_error *error)
{
    for (uint32_t id = 0; id < v->n; id++) {
        int32_t type = from->types ? from->types[id] : TYPE_NORMAL;
        if (type < TYPE_NORMAL || type > TYPE_BYTE)
            return trace_bad_input(error, place(from, "tokenizer.ggml.token_type"),
                                   "token %u has type %d: 1 to 6 are known", id, type);
        add_token(v, id, from->tokens[id], type);
        int rc = v->kinds[id] == TOKEN_SPELLED ? index_token(v, id, from, error) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- Merges ----------------------------------------------------------------------------------------------------- */

/* The two halves of a merge's text, which stand around the only space: the alphabet has none. */
static int halves(gguf_text text, gguf_text *left, gguf_text *right)
{
    const char *space = text.n ? memchr(text.at, ' ', text.n) : NULL;
    if (!space)
        return -1;
    left->at = text.at;
    left->n = (uint64_t)(space - text.at);
    right->at = space + 1;
    right->n = text.n - left->n - 1;
    return 0;
}

/* Of merges that stand there twice the first one counts, as in llama.cpp. `buffer` has room for the text. */
static int add_merge(vocabulary *v, uint32_t rank, gguf_text text, char *buffer)
{
    gguf_text left, right;
    if (halves(text, &left, &right) < 0)
        return -1;
    int64_t n_left = byte_alphabet_read(left, buffer);
    int64_t n_right = n_left < 0 ? -1 : byte_alphabet_read(right, buffer + n_left);
    if (n_right < 0)
        return -1;
    int32_t a = vocabulary_find(v, buffer, (size_t)n_left);
    int32_t b = vocabulary_find(v, buffer + n_left, (size_t)n_right);
    int32_t both = vocabulary_find(v, buffer, (size_t)(n_left + n_right));
    if (a < 0 || b < 0 || both < 0)
        return -1;
    if (vocabulary_merge(v, a, b) == MAP_NONE)
        map_set(&v->merges, (uint64_t)a << 32 | (uint32_t)b, (uint64_t)rank << 32 | (uint32_t)both);
    return 0;
}

static int add_merges(vocabulary *v, const tokenizer_source *from, trace_error *error)
{
    uint64_t longest = 1;
    for (uint64_t i = 0; i < from->n_merges; i++)
        longest = from->merges[i].n > longest ? from->merges[i].n : longest;
    char *buffer = malloc(longest);
    int rc = buffer ? 0 : no_memory(from, error);
    for (uint32_t i = 0; rc == 0 && i < from->n_merges; i++)
        if (add_merge(v, i, from->merges[i], buffer) < 0)
            rc = trace_bad_input(error, place(from, "tokenizer.ggml.merges"),
                                 "entry %u, '%.*s', is not two tokens that make a third", i, shown(from->merges[i]),
                                 from->merges[i].at);
    free(buffer);
    return rc;
}

int vocabulary_open(vocabulary *v, const tokenizer_source *from, trace_error *error)
{
    *v = (vocabulary){0};
    heap_memory_open(&v->memory);
    map_open(&v->spelled, &v->memory);
    map_open(&v->merges, &v->memory);
    for (int b = 0; b < 256; b++)
        v->of_byte[b] = -1;
    int rc = check_counts(from, error);
    if (rc == 0 && make_room(v, from) < 0)
        rc = no_memory(from, error);
    if (rc == 0)
        rc = add_tokens(v, from, error);
    return rc < 0 ? rc : add_merges(v, from, error);
}

void vocabulary_close(vocabulary *v)
{
    map_close(&v->spelled);
    map_close(&v->merges);
    free(v->at);
    free(v->bytes);
    free(v->kinds);
}
