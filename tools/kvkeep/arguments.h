/* kvkeep/arguments.h: argp with this command's manners: one line for an error, and exit status 2 for bad usage. */
#ifndef KVKEEP_TOOLS_ARGUMENTS_H
#define KVKEEP_TOOLS_ARGUMENTS_H

#include "trace/error.h"

#include <argp.h>

/* What a subcommand's parser finds as state->input. */
typedef struct arguments {
    const char *command; /* "kvkeep replay", for errors */
    void *options;       /* the subcommand's own */
    trace_error *error;
} arguments;

/* Parses argv. Returns 0, 1 where --help was asked for and shown, or TRACE_BAD_INPUT with the error set. */
int arguments_parse(const struct argp *argp, int argc, char **argv, arguments *a);

typedef struct whole_range {
    uint64_t min, max;
} whole_range;

/* For parsers: reads a whole number within a range, or a decimal number above 0. Returns 0, or sets the error, which
 * names the option, and returns EINVAL. */
error_t arguments_whole(const arguments *a, const char *option, const char *text, whole_range range, uint64_t *out);
error_t arguments_u32(const arguments *a, const char *option, const char *text, whole_range range, uint32_t *out);
error_t arguments_positive(const arguments *a, const char *option, const char *text, double *out);

/* For parsers: MiB, at least 1, as bytes. */
error_t arguments_mib(const arguments *a, const char *option, const char *text, uint64_t *out);

/* Prints an error and returns the exit status for the code. */
int arguments_report(const trace_error *error, int code);

/* Flushes stdout; EXIT_OK, or EXIT_FAILED with a line on stderr where it cannot be written. */
int arguments_finish_stdout(void);

#endif
