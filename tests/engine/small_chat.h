/* A tokenizer over the small vocabulary whose last tokens give way to the marks of the chat families. */
#ifndef TESTS_ENGINE_SMALL_CHAT_H
#define TESTS_ENGINE_SMALL_CHAT_H

#include "engine/small_tokenizer.h"

static const char *const marks[] = {"<|im_start|>",        "<|im_end|>",        "<|begin_of_text|>",
                                    "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};

enum { N_MARKS = sizeof marks / sizeof marks[0], FIRST_MARK = SMALL_TOKENS - N_MARKS };

static inline void small_chat_source(small_source *s)
{
    small_source_open(s, "smollm");
    s->says.n_merges -= N_MARKS;
    s->says.begin = FIRST_MARK + 2;
    for (int i = 0; i < N_MARKS; i++) {
        s->tokens[FIRST_MARK + i] = small_text_of(marks[i]);
        s->types[FIRST_MARK + i] = 3;
    }
}

/* NULL if that fails, which it does without memory only. */
static inline tokenizer *small_chat_open(void)
{
    tokenizer *t = NULL;
    trace_error error;
    small_source *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    small_chat_source(s);
    tokenizer_open_source(&s->says, &t, &error);
    free(s);
    return t;
}

#endif
