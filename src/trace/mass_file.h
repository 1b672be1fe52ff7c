/* trace/mass_file.h: masses in a .npy file, with a JSON file beside it that says what they are. */
#ifndef KVKEEP_TRACE_MASS_FILE_H
#define KVKEEP_TRACE_MASS_FILE_H

#include "trace/mass.h"

#include <stdio.h>

enum { MASS_FILE_NAME = 256 }; /* bytes of a file's name, its 0 included */

/* What the JSON file says. */
typedef struct mass_about {
    uint32_t page_tokens, groups, heads, first;
    bool head_maximum;
    char peaks[MASS_FILE_NAME]; /* the file of peaks, beside it; "": none */
} mass_about;

/* Reads a JSON file; `in` stays the caller's. 0 or an error. */
int mass_about_read(mass_about *about, FILE *in, const char *name, trace_error *error);

/* Files of one trace. */
typedef struct mass_files {
    const char *name, *peaks_name; /* not copied */
    FILE *masses, *peaks;          /* taken over, whatever comes of it; `peaks` NULL: none */
} mass_files;

/* Opens a trace that `about` describes. A step of it is held in memory, which must be within `memory_limit` bytes (0:
 * none). 0 or an error. */
int mass_files_open(const mass_files *files, const mass_about *about, uint64_t memory_limit, mass_trace **out,
                    trace_error *error);

/* The same of FILE.npy, which FILE.json describes. */
int mass_open(const char *path, uint64_t memory_limit, mass_trace **out, trace_error *error);

#endif
