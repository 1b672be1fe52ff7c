#include "trace/error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_continuation(const unsigned char *s, size_t n, size_t i)
{
    return i < n && (s[i] & 0xC0) == 0x80;
}

/* Overlong forms, surrogates and values past U+10FFFF show in the second byte (Unicode, table 3-7). */
static bool second_byte_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0;
    case 0xED:
        return second <= 0x9F;
    case 0xF0:
        return second >= 0x90;
    case 0xF4:
        return second <= 0x8F;
    default:
        return true;
    }
}

size_t trace_utf8_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (n == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t want = s[0] >= 0xC2 && s[0] <= 0xDF   ? 2
                  : s[0] >= 0xE0 && s[0] <= 0xEF ? 3
                  : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4
                                                 : 0;
    if (want == 0 || !is_continuation(s, n, 1) || !second_byte_fits(s[0], s[1]))
        return 0;
    for (size_t i = 2; i < want; i++)
        if (!is_continuation(s, n, i))
            return 0;
    return want;
}

static bool is_control(const char *s, size_t length)
{
    const unsigned char *u = (const unsigned char *)s;
    return (length == 1 && (u[0] < 0x20 || u[0] == 0x7F)) || (length == 2 && u[0] == 0xC2 && u[1] < 0xA0);
}

/* Copies `from` into out[cap], each byte that is no printable UTF-8 as \xHH, and stops before what does not fit
 * whole. */
static void copy_escaped(char *out, size_t cap, const char *from)
{
    size_t n = strlen(from), used = 0;
    while (n > 0) {
        size_t length = trace_utf8_length(from, n);
        bool plain = length > 0 && !is_control(from, length);
        if (length == 0)
            length = 1;
        size_t room = plain ? length : 4 * length;
        if (used + room >= cap)
            break;
        if (plain)
            memcpy(out + used, from, length);
        else
            for (size_t i = 0; i < length; i++)
                snprintf(out + used + 4 * i, 5, "\\x%02X", (unsigned)(unsigned char)from[i]);
        used += room;
        from += length;
        n -= length;
    }
    out[used] = '\0';
}

/* Formats into a buffer larger than the text, since a file's name alone may fill it. */
static void __attribute__((format(printf, 3, 0)))
set_text(trace_error *error, trace_place place, const char *format, va_list arguments)
{
    char what[sizeof error->text], whole[2 * sizeof error->text + 4096], line[32] = "";
    vsnprintf(what, sizeof what, format, arguments);
    if (place.line > 0)
        snprintf(line, sizeof line, ":%llu", (unsigned long long)place.line);
    snprintf(whole, sizeof whole, "%.255s%s: %s%.127s%s%s", place.file, line, place.field ? "field " : "",
             place.field ? place.field : "", place.field ? ": " : "", what);
    copy_escaped(error->text, sizeof error->text, whole);
}

int trace_bad_input(trace_error *error, trace_place place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(error, place, format, arguments);
    va_end(arguments);
    return TRACE_BAD_INPUT;
}

int trace_failed(trace_error *error, trace_place place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(error, place, format, arguments);
    va_end(arguments);
    return TRACE_FAILED;
}
