#include "trace/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

void lines_open(line_reader *lines, FILE *in, const char *name)
{
    *lines = (line_reader){.name = name, .in = in};
}

trace_place lines_place(const line_reader *lines, const char *field)
{
    return (trace_place){lines->name, lines->line, field};
}

/* Makes room for a block and a closing NUL behind what is still unread. */
static int make_room(line_reader *l, trace_error *error)
{
    if (l->start > 0) {
        memmove(l->buffer, l->buffer + l->start, l->end - l->start);
        l->end -= l->start;
        l->start = 0;
    }
    if (l->cap - l->end > BLOCK)
        return 0;
    size_t cap = l->cap < BLOCK ? 2 * (size_t)BLOCK : 2 * l->cap;
    char *grown = realloc(l->buffer, cap);
    if (!grown)
        return trace_failed(error, lines_place(l, NULL), "out of memory");
    l->buffer = grown;
    l->cap = cap;
    return 0;
}

static int read_block(line_reader *l, trace_error *error)
{
    int rc = make_room(l, error);
    if (rc < 0)
        return rc;
    errno = 0;
    size_t got = fread(l->buffer + l->end, 1, BLOCK, l->in);
    l->end += got;
    if (got == BLOCK)
        return 0;
    l->at_end = true;
    if (!ferror(l->in))
        return 0;
    trace_place place = {l->name, 0, NULL};
    if (errno == EISDIR)
        return trace_bad_input(error, place, "is a directory");
    return trace_failed(error, place, "cannot read: %s", strerror(errno));
}

/* Finds the end of the line at `start`, reading on as needed. Returns its offset from `start`, or a negative code. */
static long find_end(line_reader *l, trace_error *error)
{
    for (size_t seen = 0;;) {
        size_t held = l->end - l->start;
        const char *from = l->buffer ? l->buffer + l->start : NULL;
        const char *newline = held > seen ? memchr(from + seen, '\n', held - seen) : NULL;
        if (newline || l->at_end)
            return newline ? (long)(newline - from) : (long)held;
        if (held > TRACE_LINE_MAX + 1)
            return (long)held;
        seen = held;
        int rc = read_block(l, error);
        if (rc < 0)
            return rc;
    }
}

static int check_line(const line_reader *l, size_t max, trace_error *error)
{
    if (l->length > max)
        return trace_bad_input(error, lines_place(l, NULL), "longer than %zu bytes", max);
    if (memchr(l->text, '\0', l->length))
        return trace_bad_input(error, lines_place(l, NULL), "holds a NUL byte");
    return 1;
}

int lines_next(line_reader *l, trace_error *error)
{
    if (l->again) {
        l->again = false;
        return 1;
    }
    long end = find_end(l, error);
    if (end < 0)
        return (int)end;
    if (l->start == l->end)
        return 0;
    l->line++;
    l->text = l->buffer + l->start;
    l->length = (size_t)end;
    l->start += (size_t)end + (l->start + (size_t)end < l->end);
    if (l->length > 0 && l->text[l->length - 1] == '\r')
        l->length--;
    l->text[l->length] = '\0';
    return check_line(l, TRACE_LINE_MAX, error);
}

int lines_peek(line_reader *l, const char **head, trace_error *error)
{
    int rc = read_block(l, error);
    if (rc < 0)
        return rc;
    l->buffer[l->end] = '\0';
    *head = l->buffer;
    return 0;
}

int lines_all(line_reader *l, size_t max, trace_error *error)
{
    int rc = 0;
    while (rc == 0 && !l->at_end && l->end - l->start <= max)
        rc = read_block(l, error);
    if (rc < 0)
        return rc;
    l->text = l->buffer + l->start;
    l->length = l->end - l->start;
    l->text[l->length] = '\0';
    l->start = l->end;
    rc = check_line(l, max, error);
    return rc < 0 ? rc : 0;
}

void lines_unread(line_reader *lines)
{
    lines->again = true;
}

void lines_close(line_reader *lines)
{
    free(lines->buffer);
    *lines = (line_reader){0};
}
