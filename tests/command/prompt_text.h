/* prompt_text.h: what a generated prompt says. */
#ifndef TESTS_PROMPT_TEXT_H
#define TESTS_PROMPT_TEXT_H

#include "engine/tokenizer.h"

/* The bytes of n tokens, up to the next call. */
const char *prompt_text(const tokenizer *t, const uint32_t *tokens, uint32_t n);

/* How often a text has a word in it. */
uint32_t prompt_count(const char *text, const char *word);

#endif
