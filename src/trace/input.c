#define _GNU_SOURCE /* fopencookie */
#include "trace/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = 1 << 16 };

/* A stream whose beginning was read already. */
typedef struct replayed {
    FILE *rest;
    size_t used, length; /* head[used .. length-1] is still to be given */
    char head[HEAD + 1];
} replayed;

int input_open(const char *path, FILE **out, trace_error *error)
{
    *out = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!*out)
        return trace_bad_input(error, (trace_place){path, 0, NULL}, "cannot open: %s", strerror(errno));
    return 0;
}

static ssize_t give(void *cookie, char *out, size_t n)
{
    replayed *r = cookie;
    size_t left = r->length - r->used;
    if (left == 0) {
        size_t got = fread(out, 1, n, r->rest);
        return got == 0 && ferror(r->rest) ? -1 : (ssize_t)got;
    }
    if (n > left)
        n = left;
    memcpy(out, r->head + r->used, n);
    r->used += n;
    return (ssize_t)n;
}

static int close_replayed(void *cookie)
{
    replayed *r = cookie;
    int rc = fclose(r->rest);
    free(r);
    return rc;
}

static bool first_line_has(replayed *r, const char *word)
{
    r->head[r->length] = '\0';
    char *first = r->head + strspn(r->head, "\r\n"); /* blank lines do not count */
    char *end = strchr(first, '\n'), kept = end ? *end : '\0';
    if (end)
        *end = '\0';
    bool found = strstr(first, word) != NULL;
    if (end)
        *end = kept;
    return found;
}

int input_begins_with_line_of(FILE **in, const char *name, const char *word, trace_error *error)
{
    replayed *r = calloc(1, sizeof *r);
    FILE *whole = r ? fopencookie(r, "rb", (cookie_io_functions_t){.read = give, .close = close_replayed}) : NULL;
    if (!whole) {
        free(r);
        return trace_failed(error, (trace_place){name, 0, NULL}, "out of memory");
    }
    r->rest = *in;
    *in = whole;
    errno = 0;
    r->length = fread(r->head, 1, HEAD, r->rest);
    if (!ferror(r->rest))
        return first_line_has(r, word);
    trace_place place = {name, 0, NULL};
    if (errno == EISDIR)
        return trace_bad_input(error, place, "is a directory");
    return trace_failed(error, place, "cannot read: %s", strerror(errno));
}
