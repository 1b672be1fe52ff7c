#include "engine/utf8_stream.h"

#include "trace/error.h"

#include <stdbool.h>
#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";
enum { REPLACEMENT_BYTES = 3 };

/* Whether some bytes behind text[0 .. n-1], n below 4, make it a character: of all that may follow a first byte, some
 * allow the least that there is and the others the most (Unicode, table 3-7). */
static bool may_go_on(const char *text, size_t n)
{
    char least[4] = {'\x80', '\x80', '\x80', '\x80'}, most[4] = {'\xBF', '\xBF', '\xBF', '\xBF'};
    memcpy(least, text, n);
    memcpy(most, text, n);
    return trace_utf8_length(least, 4) > n || trace_utf8_length(most, 4) > n;
}

/* C0 and C1, which begins U+0080 .. U+009F. */
static bool is_command(const char *character, size_t n)
{
    unsigned char first = (unsigned char)character[0];
    return n == 1 ? (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F
                  : n == 2 && first == 0xC2 && (unsigned char)character[1] < 0xA0;
}

static size_t put_replacement(char *out)
{
    memcpy(out, replacement, REPLACEMENT_BYTES);
    return REPLACEMENT_BYTES;
}

static size_t put_character(const char *character, size_t n, char *out)
{
    if (is_command(character, n))
        return put_replacement(out);
    memcpy(out, character, n);
    return n;
}

/* Adds one byte to what waits. Where that cannot be a character any more, the byte may begin the next one. */
static size_t put_byte(utf8_stream *s, char byte, char *out)
{
    size_t used = 0;
    s->waiting[s->n++] = byte;
    size_t length = trace_utf8_length(s->waiting, s->n);
    if (length == s->n) {
        used = put_character(s->waiting, length, out);
        s->n = 0;
    } else if (!may_go_on(s->waiting, s->n)) {
        bool first = s->n == 1;
        used = put_replacement(out);
        s->n = 0;
        if (!first)
            used += put_byte(s, byte, out + used);
    }
    return used;
}

size_t utf8_stream_put(utf8_stream *s, const char *bytes, size_t n, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++)
        used += put_byte(s, bytes[i], out + used);
    return used;
}

size_t utf8_stream_end(utf8_stream *s, char *out)
{
    size_t waited = s->n;
    s->n = 0;
    return waited ? put_replacement(out) : 0;
}
