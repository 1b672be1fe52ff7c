#include "kvkeep/eval/needle_prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 4096, /* of a needle or a question */ DRAWS = 64 /* of keys, before it is given up */ };

static int no_memory(trace_error *error)
{
    return trace_failed(error, (trace_place){"the needles", 0, NULL}, "out of memory");
}

/* ---- Haystacks -------------------------------------------------------------------------------------------------- */

/* A sentence begins with a token that brings its own space, so that tokens put together are those of the whole text. */
static int begins(const tokenizer *t, int32_t before, int32_t id)
{
    const char *end, *bytes;
    size_t n_end, n;
    if (tokenizer_bytes(t, before, &end, &n_end) < 0 || tokenizer_bytes(t, id, &bytes, &n) < 0 || !n || !n_end)
        return 0;
    return (bytes[0] == ' ' || bytes[0] == '\n') && memchr(".!?", end[n_end - 1], 3) != NULL;
}

static int find_sentences(const tokenizer *t, needle_haystack *h)
{
    h->begins = calloc(h->tokens.n, 1);
    if (!h->begins)
        return -1;
    h->begins[0] = 1;
    for (size_t i = 1; i < h->tokens.n; i++)
        h->begins[i] = (uint8_t)begins(t, h->tokens.ids[i - 1], h->tokens.ids[i]);
    return 0;
}

static int finish_haystack(const tokenizer *t, needle_haystack *h, trace_error *error)
{
    if (h->tokens.n == 0)
        return trace_bad_input(error, (trace_place){h->name, 0, NULL}, "is empty");
    return find_sentences(t, h) < 0 ? no_memory(error) : 0;
}

int needle_haystack_open(const tokenizer *t, const char *name, const char *text, size_t n, needle_haystack *out,
                         trace_error *error)
{
    needle_haystack h = {.name = name};
    int rc = tokenizer_encode(t, text, n, 0, &h.tokens, error);
    if (rc == 0)
        rc = finish_haystack(t, &h, error);
    if (rc < 0)
        needle_haystack_close(&h);
    else
        *out = h;
    return rc;
}

int needle_haystack_fill(const tokenizer *t, uint32_t n_tokens, needle_haystack *out, trace_error *error)
{
    needle_haystack h = {.name = "filler"};
    int rc = 0;
    while (rc == 0 && h.tokens.n < n_tokens)
        rc = tokenizer_encode(t, needle_filler, strlen(needle_filler), 0, &h.tokens, error);
    if (rc == 0)
        rc = finish_haystack(t, &h, error);
    if (rc < 0)
        needle_haystack_close(&h);
    else
        *out = h;
    return rc;
}

void needle_haystack_close(needle_haystack *h)
{
    token_list_free(&h->tokens);
    free(h->begins);
    *h = (needle_haystack){0};
}

/* ---- Templates -------------------------------------------------------------------------------------------------- */

/* Puts the template at the end of text[MOST_BYTES], the key in all its places. */
static int fill_in(const char *template, const char *key, char *text, trace_error *error)
{
    size_t n = strlen(text);
    for (const char *at = template; *at;) {
        int is_key = strncmp(at, NEEDLE_KEY, strlen(NEEDLE_KEY)) == 0;
        int wrote =
            is_key ? snprintf(text + n, MOST_BYTES - n, "%s", key) : snprintf(text + n, MOST_BYTES - n, "%c", *at);
        n += (size_t)wrote;
        if (n >= MOST_BYTES)
            return trace_bad_input(error, (trace_place){"the needle", 0, NULL}, "is longer than %d bytes", MOST_BYTES);
        at += is_key ? strlen(NEEDLE_KEY) : 1;
    }
    return 0;
}

static int encode_needle(const tokenizer *t, const needle_spec *s, const char *key, token_list *ids, trace_error *error)
{
    char text[MOST_BYTES] = "";
    if (!strstr(s->wording->once, NEEDLE_KEY) || (s->stated > 1 && !strstr(s->wording->again, NEEDLE_KEY)))
        return trace_bad_input(error, (trace_place){"the needle", 0, NULL}, "has no " NEEDLE_KEY);
    int rc = fill_in(s->wording->once, key, text, error);
    if (rc == 0 && s->stated > 1)
        rc = fill_in(s->wording->again, key, text, error);
    return rc < 0 ? rc : tokenizer_encode(t, text, strlen(text), 0, ids, error);
}

/* Tokens that both lists begin with. */
static size_t common(const token_list *a, const token_list *b)
{
    size_t n = 0;
    while (n < a->n && n < b->n && a->ids[n] == b->ids[n])
        n++;
    return n;
}

/* A space that is a token of its own belongs to the question: nobody is to be judged by it. */
static size_t skip_space(const tokenizer *t, const token_list *all, size_t at)
{
    const char *bytes;
    size_t n;
    int is_space = at < all->n && tokenizer_bytes(t, all->ids[at], &bytes, &n) == 0 && n == 1 && bytes[0] == ' ';
    return at + (size_t)is_space;
}

/* The question with the right answer behind it. Returns in *n_question where the answer begins. */
static int encode_question(const tokenizer *t, const needle_spec *s, const char *key, token_list *all,
                           size_t *n_question, trace_error *error)
{
    char text[MOST_BYTES] = "";
    token_list alone = {0};
    int rc = fill_in(s->wording->question, key, text, error);
    if (rc == 0)
        rc = tokenizer_encode(t, text, strlen(text), 0, &alone, error);
    if (rc == 0)
        rc = fill_in(" " NEEDLE_KEY, key, text, error);
    if (rc == 0)
        rc = tokenizer_encode(t, text, strlen(text), 0, all, error);
    *n_question = skip_space(t, all, common(&alone, all));
    token_list_free(&alone);
    return rc;
}

/* ---- Prompts ---------------------------------------------------------------------------------------------------- */

/* The parts of a prompt. */
typedef struct parts {
    token_list needle, asked; /* the needle; the question with the answer */
    size_t n_question;
    uint32_t first, before, after; /* where in the haystack it begins, and tokens of it before and after the needle */
} parts;

static void free_parts(parts *p)
{
    token_list_free(&p->needle);
    token_list_free(&p->asked);
}

/* The place nearest to `wanted` within 0 .. most where a sentence begins, or `wanted` where none does. */
static uint32_t nearest_sentence(const needle_haystack *h, uint32_t first, uint32_t wanted, uint32_t most)
{
    for (uint32_t off = 0; off <= most; off++) {
        if (off <= wanted && h->begins[first + wanted - off])
            return wanted - off;
        if (wanted + off <= most && first + wanted + off < h->tokens.n && h->begins[first + wanted + off])
            return wanted + off;
    }
    return wanted;
}

/* Which part of the haystack, and where in it the needle goes. */
static int place(const needle_spec *s, parts *p, random_state *random, trace_error *error)
{
    const needle_haystack *h = s->haystack;
    if (s->length <= p->needle.n)
        return trace_bad_input(error, (trace_place){"the needle", 0, NULL}, "of %zu tokens does not fit into %u",
                               p->needle.n, s->length);
    uint32_t n = s->length - (uint32_t)p->needle.n;
    if (n > h->tokens.n)
        return trace_bad_input(error, (trace_place){h->name, 0, NULL}, "has %zu tokens, not the %u that are needed",
                               h->tokens.n, n);
    uint32_t spare = (uint32_t)h->tokens.n - n;
    p->first = nearest_sentence(h, 0, random_below(random, spare + 1), spare);
    p->before = nearest_sentence(h, p->first, (uint32_t)(s->depth * n + 0.5), n);
    p->after = n - p->before;
    return 0;
}

static int occurs(const int32_t *what, size_t n, const int32_t *in, size_t n_in)
{
    for (size_t i = 0; i + n <= n_in; i++)
        if (memcmp(in + i, what, n * sizeof *what) == 0)
            return 1;
    return 0;
}

static int is_in_haystack(const needle_spec *s, const parts *p)
{
    return occurs(p->asked.ids + p->n_question, p->asked.n - p->n_question, s->haystack->tokens.ids + p->first,
                  p->before + p->after);
}

static uint32_t *put(uint32_t *to, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] = (uint32_t)ids[i];
    return to + n;
}

static int join(const needle_spec *s, const parts *p, needle_prompt *out, trace_error *error)
{
    const int32_t *hay = s->haystack->tokens.ids + p->first;
    out->tokens = malloc((s->length + p->asked.n) * sizeof *out->tokens);
    if (!out->tokens)
        return no_memory(error);
    uint32_t *to = put(out->tokens, hay, p->before);
    to = put(to, p->needle.ids, p->needle.n);
    to = put(to, hay + p->before, p->after);
    put(to, p->asked.ids, p->asked.n);
    out->n_text = s->length;
    out->n_question = (uint32_t)p->n_question;
    out->n_answer = (uint32_t)(p->asked.n - p->n_question);
    out->needle = p->before;
    out->n_needle = (uint32_t)p->needle.n;
    return 0;
}

/* With one draw of a key. Returns 1 if that is in the haystack by chance. */
static int try_key(const tokenizer *t, const needle_spec *s, random_state *random, needle_prompt *out,
                   trace_error *error)
{
    parts p = {0};
    needle_key(s->keys, random, out->key);
    int rc = encode_needle(t, s, out->key, &p.needle, error);
    if (rc == 0)
        rc = encode_question(t, s, out->key, &p.asked, &p.n_question, error);
    if (rc == 0)
        rc = place(s, &p, random, error);
    if (rc == 0)
        rc = is_in_haystack(s, &p) ? 1 : join(s, &p, out, error);
    free_parts(&p);
    return rc;
}

int needle_prompt_make(const tokenizer *t, const needle_spec *spec, needle_prompt *out, trace_error *error)
{
    random_state random;
    needle_prompt p = {0};
    int rc = 1;
    random_seed(&random, spec->seed);
    for (uint32_t i = 0; i < DRAWS && rc == 1; i++)
        rc = try_key(t, spec, &random, &p, error);
    if (rc == 0)
        *out = p;
    return rc == 1 ? trace_bad_input(error, (trace_place){spec->haystack->name, 0, NULL}, "holds every key") : rc;
}

void needle_prompt_free(needle_prompt *p)
{
    free(p->tokens);
    *p = (needle_prompt){0};
}
