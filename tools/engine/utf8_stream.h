/* engine/utf8_stream.h: whole characters for a terminal out of bytes that come token by token.
 *
 * A token may end within a character: its bytes wait for the rest. What can be no character any more, and control
 * characters but for newline and tab, with which a text could command a terminal, come out as U+FFFD. */
#ifndef KVKEEP_ENGINE_UTF8_STREAM_H
#define KVKEEP_ENGINE_UTF8_STREAM_H

#include <stddef.h>

/* All zeroes at the start. */
typedef struct utf8_stream {
    char waiting[4];
    size_t n;
} utf8_stream;

/* Room that `out` needs for `n` further bytes: each may become a U+FFFD. */
#define UTF8_STREAM_ROOM(n) (3 * ((n) + 4))

/* Takes bytes[0 .. n-1] and puts what is complete into out[UTF8_STREAM_ROOM(n)]. Returns how many bytes that are. */
size_t utf8_stream_put(utf8_stream *s, const char *bytes, size_t n, char *out);

/* The end: what still waits is no character. */
size_t utf8_stream_end(utf8_stream *s, char *out);

#endif
