#include "kvkeep/whole_file.h"

#include "trace/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Doubles what was read; what a file says of its size is not believed (pipes, /proc). */
static int read_all(FILE *in, const char *path, char **out, size_t *n, trace_error *error)
{
    size_t cap = 1 << 16, got;
    *n = 0;
    while (!*out || *n == cap) {
        char *more = realloc(*out, *out ? cap *= 2 : cap);
        if (!more)
            return trace_failed(error, (trace_place){path, 0, NULL}, "out of memory");
        *out = more;
        while (*n < cap && (got = fread(*out + *n, 1, cap - *n, in)) > 0)
            *n += got;
        if (ferror(in))
            return trace_bad_input(error, (trace_place){path, 0, NULL}, "cannot read: %s", strerror(errno));
        if (*n > WHOLE_FILE_MAX)
            return trace_bad_input(error, (trace_place){path, 0, NULL}, "is larger than 1 GiB");
    }
    return 0;
}

int whole_file_read(const char *path, char **out, size_t *n, trace_error *error)
{
    FILE *in;
    *out = NULL;
    int rc = input_open(path, &in, error);
    if (rc < 0)
        return rc;
    rc = read_all(in, path, out, n, error);
    if (in != stdin)
        fclose(in);
    if (rc < 0) {
        free(*out);
        *out = NULL;
    }
    return rc;
}
