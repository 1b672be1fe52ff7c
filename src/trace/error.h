/* trace/error.h: one line that says which file, line and field is wrong.
 *
 * Every function of src/trace that can fail returns one of two negative codes. Minus the code is the exit status that
 * the command gives. The text is one line without a newline; whatever it quotes is escaped, so hostile input can
 * neither add lines nor send control bytes to a terminal.
 */
#ifndef KVKEEP_TRACE_ERROR_H
#define KVKEEP_TRACE_ERROR_H

#include <stddef.h>
#include <stdint.h>

enum {
    TRACE_FAILED = -1,   /* the job failed: no memory, no pages, a read or write error, an unmet expectation */
    TRACE_BAD_INPUT = -2 /* the input or the options are wrong */
};

typedef struct trace_error {
    char text[512];
} trace_error;

/* Where something is wrong. `line` 0 and `field` NULL are left out of the text. */
typedef struct trace_place {
    const char *file;
    uint64_t line;
    const char *field;
} trace_place;

/* Sets "FILE:LINE: field NAME: what is wrong", escaped and cut to fit. Return TRACE_BAD_INPUT and TRACE_FAILED. */
int trace_bad_input(trace_error *error, trace_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int trace_failed(trace_error *error, trace_place place, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The length of the well-formed UTF-8 character at text[0 .. n-1], 1 to 4; 0 if there is none. */
size_t trace_utf8_length(const char *text, size_t n);

#endif
