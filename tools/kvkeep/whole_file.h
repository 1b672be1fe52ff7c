/* kvkeep/whole_file.h: all bytes of a file. */
#ifndef KVKEEP_TOOLS_WHOLE_FILE_H
#define KVKEEP_TOOLS_WHOLE_FILE_H

#include "trace/error.h"

enum { WHOLE_FILE_MAX = 1 << 30 /* bytes */ };

/* Reads a file ("-": the standard input) into *out[*n], which the caller frees. 0 or an error, *out NULL then. */
int whole_file_read(const char *path, char **out, size_t *n, trace_error *error);

#endif
