#include "engine/byte_alphabet.h"

#include <stdbool.h>

static bool prints(unsigned c)
{
    return (c > 0x20 && c < 0x7F) || (c > 0xA0 && c < 0xAD) || (c > 0xAD && c < 0x100);
}

/* The byte that a character stands for, or -1. The three runs of bytes that do not print follow one another. */
static int byte_of(unsigned c)
{
    if (c < 0x100)
        return prints(c) ? (int)c : -1;
    unsigned i = c - 0x100;
    return i <= 0x20 ? (int)i : i <= 0x42 ? (int)(i - 0x21 + 0x7F) : i == 0x43 ? 0xAD : -1;
}

int64_t byte_alphabet_read(gguf_text text, char *out)
{
    int64_t n = 0;
    for (size_t at = 0, length; at < text.n; at += length) {
        const unsigned char *s = (const unsigned char *)text.at + at;
        length = trace_utf8_length(text.at + at, text.n - at);
        unsigned c = length == 1 ? s[0] : length == 2 ? (s[0] & 0x1Fu) << 6 | (s[1] & 0x3Fu) : UINT32_MAX;
        int byte = byte_of(c);
        if (length == 0 || byte < 0)
            return -1;
        out[n++] = (char)(unsigned char)byte;
    }
    return n;
}
