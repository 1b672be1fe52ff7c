/* kvkeep/outfile.h: files that appear whole or not at all.
 *
 * What is written stays nameless in the target's folder (or, where the file system cannot do that, in the folder for
 * temporary files) until it is committed; so nothing half written is left behind, whatever ends the process. A target
 * that is no regular file, such as /dev/stdout, is written directly.
 */
#ifndef KVKEEP_TOOLS_OUTFILE_H
#define KVKEEP_TOOLS_OUTFILE_H

#include "trace/error.h"

#include <stdio.h>

typedef enum outfile_kind { OUTFILE_DIRECT, OUTFILE_NAMELESS, OUTFILE_ELSEWHERE } outfile_kind;

typedef struct outfile {
    const char *path; /* as given; not copied. NULL: not open */
    char *target;     /* where the file will be, symbolic links followed */
    FILE *stream;
    outfile_kind kind;
} outfile;

/* 0, or bad input where no file can be made there. */
int outfile_open(outfile *f, const char *path, trace_error *error);

/* Gives the file its name, replacing what had it, and closes it. 0, or TRACE_FAILED with the old file untouched. */
int outfile_commit(outfile *f, trace_error *error);

/* Closes it without a trace. One that is not open is ignored. */
void outfile_discard(outfile *f);

#endif
