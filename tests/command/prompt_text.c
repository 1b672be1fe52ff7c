#include "command/prompt_text.h"

#include <check.h>
#include <string.h>

const char *prompt_text(const tokenizer *t, const uint32_t *tokens, uint32_t n)
{
    static char text[65536];
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const char *bytes = NULL;
        size_t length = 0;
        ck_assert_int_eq(tokenizer_bytes(t, (int32_t)tokens[i], &bytes, &length), 0);
        ck_assert_uint_lt(at + length, sizeof text);
        memcpy(text + at, bytes, length);
        at += length;
    }
    text[at] = '\0';
    return text;
}

uint32_t prompt_count(const char *text, const char *word)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        n++;
    return n;
}
