/* encode.c: a text is cut at marks, then at bytes that are not UTF-8, then into words; each word becomes tokens. */
#include "engine/merger.h"
#include "engine/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { CACHE_BITS = 12, CACHE_MAX_WORD = 64 /* bytes; longer ones seldom come again */ };

/* A word that this text has had: where, and where its tokens are. */
typedef struct cached_word {
    uint32_t at, n; /* n 0: none */
    size_t ids_at;
    uint32_t n_ids;
} cached_word;

typedef struct encoding {
    const tokenizer *t;
    const char *text;
    size_t n;
    token_list *ids;
    merger merger;
    pretokenizer_search search;
    cached_word *cache; /* [1 << CACHE_BITS] by the hash of the word */
    trace_error *error;
} encoding;

static int no_memory(encoding *e)
{
    return trace_failed(e->error, (trace_place){"text", 0, NULL}, "out of memory");
}

/* ---- Words ------------------------------------------------------------------------------------------------------ */

static int merge_word(encoding *e, size_t at, uint32_t n)
{
    int32_t whole = e->t->pretokenizer.whole_words ? vocabulary_find(&e->t->vocabulary, e->text + at, n) : -1;
    int rc = whole < 0 ? merger_word(&e->merger, e->text + at, n, e->ids) : token_list_add(e->ids, whole);
    return rc < 0 ? no_memory(e) : 0;
}

static int repeat_word(encoding *e, const cached_word *known)
{
    if (token_list_reserve(e->ids, known->n_ids) < 0)
        return no_memory(e);
    memcpy(e->ids->ids + e->ids->n, e->ids->ids + known->ids_at, known->n_ids * sizeof *e->ids->ids);
    e->ids->n += known->n_ids;
    return 0;
}

/* Texts repeat their words: most are found among those that were met before. */
static int encode_word(encoding *e, size_t at, uint32_t n)
{
    if (n > CACHE_MAX_WORD)
        return merge_word(e, at, n);
    cached_word *known = &e->cache[XXH3_64bits(e->text + at, n) >> (64 - CACHE_BITS)];
    if (known->n == n && memcmp(e->text + known->at, e->text + at, n) == 0)
        return repeat_word(e, known);
    size_t ids_at = e->ids->n;
    int rc = merge_word(e, at, n);
    if (rc == 0)
        *known = (cached_word){(uint32_t)at, n, ids_at, (uint32_t)(e->ids->n - ids_at)};
    return rc;
}

/* ---- Stretches of text ------------------------------------------------------------------------------------------ */

static int encode_utf8(encoding *e, size_t from, size_t to)
{
    int rc = 0;
    for (size_t at = 0, n = to - from, end; rc == 0 && at < n; at = end) {
        end = pretokenizer_word_end(&e->search, e->text + from, n, at);
        rc = end <= at ? no_memory(e) : encode_word(e, from + at, (uint32_t)(end - at));
    }
    return rc;
}

/* The end of the UTF-8, or of what is none, that begins at `at`. */
static size_t stretch_end(const encoding *e, size_t at, size_t to, int is_utf8)
{
    size_t length;
    while (at < to && ((length = trace_utf8_length(e->text + at, to - at)) > 0) == is_utf8)
        at += length ? length : 1;
    return at;
}

static int check_bytes(const encoding *e, size_t from, size_t to)
{
    uint64_t line = 1;
    size_t at = from;
    while (at < to && e->t->vocabulary.of_byte[(unsigned char)e->text[at]] >= 0)
        at++;
    if (at == to)
        return 0;
    for (size_t i = 0; i < at; i++)
        line += e->text[i] == '\n';
    return trace_bad_input(e->error, (trace_place){"text", line, NULL},
                           "byte 0x%02X at offset %zu is not in the model's vocabulary",
                           (unsigned)(unsigned char)e->text[at], at);
}

/* A text without marks. What is not UTF-8 has no words: each run of it is taken as one. */
static int encode_plain(encoding *e, size_t from, size_t to)
{
    int rc = check_bytes(e, from, to);
    while (rc == 0 && from < to) {
        size_t end = stretch_end(e, from, to, 1);
        rc = encode_utf8(e, from, end);
        from = end;
        end = stretch_end(e, from, to, 0);
        if (rc == 0 && from < end)
            rc = encode_word(e, from, (uint32_t)(end - from));
        from = end;
    }
    return rc;
}

static int encode_marked(encoding *e)
{
    size_t plain = 0;
    int rc = 0;
    int32_t id = -1;
    for (size_t at = 0, n; rc == 0 && at < e->n; at += n ? n : 1) {
        n = marks_match(&e->t->marks, e->text + at, e->n - at, &id);
        if (n == 0)
            continue;
        rc = encode_plain(e, plain, at);
        if (rc == 0 && token_list_add(e->ids, id) < 0)
            rc = no_memory(e);
        plain = at + n;
    }
    return rc < 0 ? rc : encode_plain(e, plain, e->n);
}

static int encode_flags(encoding *e, unsigned flags)
{
    const tokenizer *t = e->t;
    if ((flags & TOKENIZER_BEGIN) && t->add_begin && token_list_add(e->ids, t->begin) < 0)
        return no_memory(e);
    return flags & TOKENIZER_MARKS ? encode_marked(e) : encode_plain(e, 0, e->n);
}

int tokenizer_encode(const tokenizer *t, const char *text, size_t n, unsigned flags, token_list *ids,
                     trace_error *error)
{
    encoding e = {.t = t, .text = text, .n = n, .ids = ids, .error = error};
    size_t had = ids->n;
    if (n > TOKENIZER_MAX_TEXT)
        return trace_bad_input(error, (trace_place){"text", 0, NULL}, "is longer than %d bytes", TOKENIZER_MAX_TEXT);
    merger_open(&e.merger, &t->vocabulary);
    e.cache = calloc((size_t)1 << CACHE_BITS, sizeof *e.cache);
    int rc = pretokenizer_search_open(&e.search, &t->pretokenizer) < 0 || !e.cache ? no_memory(&e) : 0;
    if (rc == 0)
        rc = encode_flags(&e, flags);
    if (rc < 0)
        ids->n = had;
    pretokenizer_search_close(&e.search);
    free(e.cache);
    merger_close(&e.merger);
    return rc;
}
