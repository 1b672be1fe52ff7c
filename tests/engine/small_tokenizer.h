/* A tokenizer over the small vocabulary. */
#ifndef TESTS_ENGINE_SMALL_TOKENIZER_H
#define TESTS_ENGINE_SMALL_TOKENIZER_H

#include "engine/small_merges.h"
#include "engine/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL_MARKS = 3, /* <|begin|>, <|end|> and the beginning of the latter, <|en */
    SMALL_MERGES = sizeof small_merges / sizeof small_merges[0],
    SMALL_TOKENS = SMALL_MARKS + 256 + SMALL_MERGES + 1
};

/* What a model file with it would say; to be changed by a test before it is opened. */
typedef struct small_source {
    tokenizer_source says;
    gguf_text tokens[SMALL_TOKENS], merges[SMALL_MERGES];
    int32_t types[SMALL_TOKENS];
    char text[SMALL_TOKENS][64], merge[SMALL_MERGES][64];
} small_source;

static inline gguf_text small_text_of(const char *s)
{
    return (gguf_text){s, strlen(s)};
}

/* A byte as the alphabet spells it: printing ones of Latin-1 as themselves, the others from U+0100 on. */
static inline void small_spell_bytes(small_source *s)
{
    for (unsigned b = 0, others = 0; b < 256; b++) {
        char *text = s->text[SMALL_MARKS + b];
        unsigned prints = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        unsigned c = prints ? b : 0x100 + others++;
        if (c < 0x80) {
            text[0] = (char)c;
        } else {
            text[0] = (char)(0xC0 | c >> 6);
            text[1] = (char)(0x80 | (c & 0x3F));
        }
    }
}

static inline void small_spell_merges(small_source *s)
{
    for (uint32_t i = 0; i < SMALL_MERGES; i++) {
        const char *left = s->text[small_merges[i][0]], *right = s->text[small_merges[i][1]];
        snprintf(s->merge[i], sizeof s->merge[i], "%s %s", left, right);
        snprintf(s->text[SMALL_MARKS + 256 + i], sizeof s->text[0], "%s%s", left, right);
        s->merges[i] = small_text_of(s->merge[i]);
    }
}

static inline void small_source_open(small_source *s, const char *pre)
{
    *s = (small_source){.text = {"<|begin|>", "<|end|>", "<|en"}};
    small_spell_bytes(s);
    small_spell_merges(s);
    strcpy(s->text[SMALL_TOKENS - 1], "zqzq");
    for (uint32_t i = 0; i < SMALL_TOKENS; i++) {
        s->tokens[i] = small_text_of(s->text[i]);
        s->types[i] = i < SMALL_MARKS ? 3 : 1;
    }
    s->says = (tokenizer_source){.path = "m.gguf", .tokens = s->tokens, .types = s->types, .merges = s->merges};
    s->says.n_tokens = s->says.n_types = SMALL_TOKENS;
    s->says.n_merges = SMALL_MERGES;
    s->says.pre = small_text_of(pre);
    s->says.end = 1;
    s->says.add_begin = -1;
}

/* NULL if that fails, which it does without memory only. */
static inline tokenizer *small_tokenizer_open(const char *pre)
{
    tokenizer *t = NULL;
    trace_error error;
    small_source *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    small_source_open(s, pre);
    tokenizer_open_source(&s->says, &t, &error);
    free(s);
    return t;
}

/* Whether the tokens of ids[from ..] are, one behind the other, these bytes. */
static inline int small_spells(const tokenizer *t, const token_list *ids, size_t from, const char *text, size_t n)
{
    size_t at = 0, length = 0;
    for (size_t i = from; i < ids->n; i++, at += length) {
        const char *bytes = NULL;
        if (tokenizer_bytes(t, ids->ids[i], &bytes, &length) < 0 || length == 0 || length > n - at ||
            memcmp(text + at, bytes, length) != 0)
            return 0;
    }
    return at == n;
}

#endif
