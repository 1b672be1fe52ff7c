/* trace/input.h: opening what a path names, with a look at its beginning. */
#ifndef KVKEEP_TRACE_INPUT_H
#define KVKEEP_TRACE_INPUT_H

#include "trace/error.h"

#include <stdbool.h>
#include <stdio.h>

/* Opens a file to read; "-" is the standard input. 0, or bad input. */
int input_open(const char *path, FILE **out, trace_error *error);

/* Whether the first line of *in contains `word` within its first 4,096 bytes. Works on pipes too: *in is replaced by a
 * stream that gives everything from the start (closing it closes the old one). 0 or 1, or an error. */
int input_begins_with_line_of(FILE **in, const char *name, const char *word, trace_error *error);

#endif
