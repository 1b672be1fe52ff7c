/* eval/needle_prompt.h: prompts of an exact number of tokens with a key somewhere in them, and what to ask.
 *
 * A prompt depends on its specification alone. The key is nowhere but in the needle. */
#ifndef KVKEEP_TOOLS_EVAL_NEEDLE_PROMPT_H
#define KVKEEP_TOOLS_EVAL_NEEDLE_PROMPT_H

#include "engine/tokenizer.h"
#include "kvkeep/eval/needle_wording.h"

/* A text as tokens, with the places where a sentence ends. */
typedef struct needle_haystack {
    const char *name;
    token_list tokens;
    uint8_t *begins; /* [tokens.n] 1: a sentence begins here, with a space or on a new line */
} needle_haystack;

/* Tokens of a text. The name stays the caller's. Bad input: an empty text, or one that the model cannot spell. */
int needle_haystack_open(const tokenizer *t, const char *name, const char *text, size_t n, needle_haystack *out,
                         trace_error *error);

/* The filler, as often as it takes for so many tokens; named "filler". */
int needle_haystack_fill(const tokenizer *t, uint32_t n_tokens, needle_haystack *out, trace_error *error);

void needle_haystack_close(needle_haystack *h);

typedef struct needle_spec {
    const needle_haystack *haystack;
    const needle_wording *wording;
    uint32_t length; /* tokens of the text, the needle included and the question not */
    double depth;    /* 0: at the beginning, 1: at the end; the next place where a sentence begins is taken */
    uint32_t stated; /* 1 or 2 times */
    needle_keys keys;
    uint64_t seed; /* for the key and the part of the haystack */
} needle_spec;

typedef struct needle_prompt {
    uint32_t *tokens; /* the text, the question, the answer that is right */
    uint32_t n_text, n_question, n_answer;
    uint32_t needle, n_needle; /* where it stands in the text */
    char key[NEEDLE_MAX_KEY];
} needle_prompt;

/* Bad input: a haystack that is too short, a length without room for the needle, a wording without a key. */
int needle_prompt_make(const tokenizer *t, const needle_spec *spec, needle_prompt *out, trace_error *error);

void needle_prompt_free(needle_prompt *p);

#endif
