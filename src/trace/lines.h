/* trace/lines.h: lines of a file, a pipe or memory, one at a time.
 *
 * The buffer is reused and stays below three times TRACE_LINE_MAX, whatever the input is. A line ends with \n, \r\n
 * or the end of the input. A NUL byte or an overlong line is an error.
 */
#ifndef KVKEEP_TRACE_LINES_H
#define KVKEEP_TRACE_LINES_H

#include "trace/error.h"

#include <stdbool.h>
#include <stdio.h>

#define TRACE_LINE_MAX ((size_t)16 << 20) /* bytes of a line, its end not counted */

typedef struct line_reader {
    const char *name; /* of the input, for errors; not copied */
    uint64_t line;    /* number of the current line, from 1 */
    char *text;       /* the current line, without its end, then a NUL; it may be written to */
    size_t length;

    FILE *in; /* the rest is the reader's own */
    char *buffer;
    size_t cap, start, end; /* buffer[start .. end-1] is not yet handed out */
    bool at_end, again;
} line_reader;

/* Reads from `in`, which stays the caller's. Allocates nothing. */
void lines_open(line_reader *lines, FILE *in, const char *name);

/* Goes to the next line. Returns 1, 0 at the end, TRACE_FAILED or TRACE_BAD_INPUT. */
int lines_next(line_reader *lines, trace_error *error);

/* Shows the beginning of an input of which nothing was read yet: the first 64 KiB, or all of a shorter one, with a NUL
 * behind. What it shows is still to be read. 0, or TRACE_FAILED or TRACE_BAD_INPUT. */
int lines_peek(line_reader *lines, const char **head, trace_error *error);

/* Makes all that is left the current line, ends of lines included, if it is no longer than `max` bytes. The buffer
 * grows to twice that. 0, TRACE_FAILED or TRACE_BAD_INPUT. */
int lines_all(line_reader *lines, size_t max, trace_error *error);

/* Makes the next lines_next give the current line once more, so that a reader can look at it first. */
void lines_unread(line_reader *lines);

/* The current line, and a field of it or NULL, as a place for an error. */
trace_place lines_place(const line_reader *lines, const char *field);

/* Frees the buffer. */
void lines_close(line_reader *lines);

#endif
