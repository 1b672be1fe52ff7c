#include "trace/npy_header.h"

#include "base/checked.h"

#include <stdbool.h>
#include <string.h>

enum { DESCR, ORDER, SHAPE, N_FIELDS };

static const char *const fields[N_FIELDS] = {"descr", "fortran_order", "shape"};

typedef struct parser {
    npy_reader *npy;
    const char *at; /* what is still to be read */
    trace_error *error;
} parser;

static int wrong(const parser *p, const char *field, const char *what)
{
    return trace_bad_input(p->error, (trace_place){p->npy->name, 0, field}, "%s near '%.20s'", what, p->at);
}

/* Takes a character if it comes next. */
static bool take(parser *p, char c)
{
    p->at += strspn(p->at, " \t\r\n");
    if (*p->at != c)
        return false;
    p->at++;
    return true;
}

static bool take_word(parser *p, const char *word)
{
    size_t n = strlen(word);
    p->at += strspn(p->at, " \t\r\n");
    if (strncmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

/* A string between quotes of either kind. It has no escapes in any header that is of use here. */
static bool take_string(parser *p, char *out, size_t cap)
{
    char quote = take(p, '\'') ? '\'' : take(p, '"') ? '"' : '\0';
    const char *end = quote ? strchr(p->at, quote) : NULL;
    size_t n = end ? (size_t)(end - p->at) : cap;
    if (n >= cap)
        return false;
    memcpy(out, p->at, n);
    out[n] = '\0';
    p->at = end + 1;
    return true;
}

static int parse_descr(parser *p)
{
    static const char *const names[] = {[NPY_F2] = "<f2", [NPY_F4] = "<f4", [NPY_F8] = "<f8"};
    char text[32];
    if (!take_string(p, text, sizeof text))
        return wrong(p, fields[DESCR], "is no type of numbers");
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            p->npy->type = (npy_type)i;
            return 0;
        }
    return trace_bad_input(p->error, (trace_place){p->npy->name, 0, fields[DESCR]}, "'%s' is none of <f2, <f4, <f8",
                           text);
}

static int parse_order(parser *p)
{
    if (take_word(p, "False"))
        return 0;
    return wrong(p, fields[ORDER], "must be False: the last axis is to vary fastest");
}

static int parse_axis(parser *p)
{
    uint64_t n = 0;
    if (p->npy->n_axes == NPY_MAX_AXES)
        return wrong(p, fields[SHAPE], "has too many axes");
    p->at += strspn(p->at, " \t\r\n");
    if (*p->at < '0' || *p->at > '9')
        return wrong(p, fields[SHAPE], "is no tuple of whole numbers");
    for (; *p->at >= '0' && *p->at <= '9'; p->at++)
        if (checked_mul(n, 10, &n) < 0 || checked_add(n, (uint64_t)(*p->at - '0'), &n) < 0)
            return wrong(p, fields[SHAPE], "is too large");
    p->npy->shape[p->npy->n_axes++] = n;
    return 0;
}

static int parse_shape(parser *p)
{
    if (!take(p, '('))
        return wrong(p, fields[SHAPE], "is no tuple of whole numbers");
    while (!take(p, ')')) {
        int rc = parse_axis(p);
        if (rc < 0)
            return rc;
        if (!take(p, ',') && *p->at != ')')
            return wrong(p, fields[SHAPE], "is no tuple of whole numbers");
    }
    return 0;
}

static int parse_field(parser *p, uint32_t *seen)
{
    static int (*const parse[N_FIELDS])(parser *) = {parse_descr, parse_order, parse_shape};
    char name[32];
    uint32_t i = 0;
    if (!take_string(p, name, sizeof name) || !take(p, ':'))
        return wrong(p, "header", "is no dictionary as NumPy writes it");
    while (i < N_FIELDS && strcmp(name, fields[i]) != 0)
        i++;
    if (i == N_FIELDS || *seen & 1u << i)
        return trace_bad_input(p->error, (trace_place){p->npy->name, 0, name}, "%s",
                               i == N_FIELDS ? "is not known" : "stands there twice");
    *seen |= 1u << i;
    return parse[i](p);
}

int npy_header_parse(npy_reader *npy, const char *text, trace_error *error)
{
    parser p = {npy, text, error};
    uint32_t seen = 0;
    if (!take(&p, '{'))
        return wrong(&p, "header", "is no dictionary as NumPy writes it");
    while (!take(&p, '}')) {
        int rc = parse_field(&p, &seen);
        if (rc < 0)
            return rc;
        if (!take(&p, ',') && *p.at != '}')
            return wrong(&p, "header", "is no dictionary as NumPy writes it");
    }
    for (uint32_t i = 0; i < N_FIELDS; i++)
        if (!(seen & 1u << i))
            return trace_bad_input(error, (trace_place){npy->name, 0, fields[i]}, "missing");
    p.at += strspn(p.at, " \t\r\n");
    return *p.at ? wrong(&p, "header", "goes on after its dictionary") : 0;
}
