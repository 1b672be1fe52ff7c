#define _POSIX_C_SOURCE 200809L /* strdup, O_CLOEXEC */
#include "engine/gguf_cursor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The fewest bytes of a key with its value: a name's length and a byte, a type, a value. Of a tensor: a name, one
 * dimension and the number of them, a type, an offset. */
enum { MIN_ENTRY = 8 + 1 + 4 + 1, MIN_TENSOR = 8 + 1 + 4 + 8 + 4 + 8 };

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

int gguf_wrong(const gguf *g, gguf_subject about, trace_error *error, const char *format, ...)
{
    char what[256], number[24] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    int length = about.name.n < 128 ? (int)about.name.n : 128;
    if (length == 0 && about.number > 0)
        snprintf(number, sizeof number, " %ju", (uintmax_t)about.number);
    return trace_bad_input(error, (trace_place){g->path, 0, NULL}, "%s%s%s%.*s: %s", about.kind, number,
                           length ? " " : "", length, about.name.at, what);
}

int gguf_no_memory(const gguf *g, trace_error *error)
{
    return trace_failed(error, (trace_place){g->path, 0, NULL}, "out of memory");
}

int gguf_text_compare(gguf_text a, gguf_text b)
{
    int order = memcmp(a.at, b.at, a.n < b.n ? a.n : b.n);
    return order != 0 ? order : (a.n > b.n) - (a.n < b.n);
}

/* ---- The head of a file ----------------------------------------------------------------------------------------- */

static int check_version(const gguf_cursor *c, uint32_t version)
{
    if (version != 0 && (version & 0xFFFF) == 0)
        return gguf_wrong(c->g, c->about, c->error, "the file is big-endian");
    if (version != 2 && version != 3)
        return gguf_wrong(c->g, c->about, c->error, "version %u is not known, 2 and 3 are", version);
    return 0;
}

static int check_count(const gguf_cursor *c, const char *what, uint64_t n, uint64_t most, uint64_t least_bytes)
{
    if (n > most)
        return gguf_wrong(c->g, c->about, c->error, "%ju %s, more than %ju", (uintmax_t)n, what, (uintmax_t)most);
    if (n > gguf_left(c) / least_bytes)
        return gguf_wrong(c->g, c->about, c->error, "%ju %s have no room in the %ju bytes after it", (uintmax_t)n, what,
                          (uintmax_t)gguf_left(c));
    return 0;
}

static int take_head(gguf_cursor *c, uint64_t *n_tensors, uint64_t *n_keys)
{
    uint32_t magic = 0, version = 0;
    int rc = gguf_take_u32(c, &magic);
    if (rc == 0 && magic != 0x46554747) /* the letters GGUF */
        rc = trace_bad_input(c->error, (trace_place){c->g->path, 0, NULL}, "is no GGUF file");
    if (rc == 0)
        rc = gguf_take_u32(c, &version);
    if (rc == 0)
        rc = check_version(c, version);
    if (rc == 0)
        rc = gguf_take_u64(c, n_tensors);
    if (rc == 0)
        rc = gguf_take_u64(c, n_keys);
    if (rc == 0)
        rc = check_count(c, "tensors", *n_tensors, GGUF_MAX_TENSORS, MIN_TENSOR);
    return rc < 0 ? rc : check_count(c, "keys", *n_keys, GGUF_MAX_KEYS, MIN_ENTRY);
}

static int parse(gguf *g, trace_error *error)
{
    gguf_cursor c = {g, 0, {"header", {"", 0}, 0}, error};
    uint64_t n_tensors = 0, n_keys = 0;
    int rc = take_head(&c, &n_tensors, &n_keys);
    if (rc == 0)
        rc = gguf_take_entries(&c, g, n_keys);
    return rc < 0 ? rc : gguf_take_tensors(&c, g, n_tensors);
}

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

int gguf_open_bytes(const void *bytes, uint64_t n, const char *path, gguf **out, trace_error *error)
{
    gguf *g = calloc(1, sizeof *g);
    if (!g)
        return trace_failed(error, (trace_place){path, 0, NULL}, "out of memory");
    *g = (gguf){.path = strdup(path), .bytes = bytes, .n = n};
    int rc = g->path ? parse(g, error) : trace_failed(error, (trace_place){path, 0, NULL}, "out of memory");
    if (rc < 0)
        gguf_close(g);
    else
        *out = g;
    return rc;
}

/* Maps a whole file; an empty one is NULL. */
static int map(int file, const char *path, void **bytes, uint64_t *n, trace_error *error)
{
    struct stat about;
    trace_place place = {path, 0, NULL};
    if (fstat(file, &about) < 0)
        return trace_failed(error, place, "cannot read: %s", strerror(errno));
    if (!S_ISREG(about.st_mode))
        return trace_bad_input(error, place, S_ISDIR(about.st_mode) ? "is a directory" : "is no regular file");
    *n = (uint64_t)about.st_size;
    *bytes = *n ? mmap(NULL, *n, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
    if (*bytes != MAP_FAILED)
        return 0;
    return trace_failed(error, place, "cannot map: %s", strerror(errno));
}

int gguf_open(const char *path, gguf **out, trace_error *error)
{
    void *bytes = NULL;
    uint64_t n = 0;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is refused, not waited for */
    if (file < 0)
        return trace_bad_input(error, (trace_place){path, 0, NULL}, "cannot open: %s", strerror(errno));
    int rc = map(file, path, &bytes, &n, error);
    close(file);
    if (rc < 0)
        return rc;
    rc = gguf_open_bytes(bytes, n, path, out, error);
    if (rc == 0)
        (*out)->mapping = bytes;
    else if (bytes)
        munmap(bytes, n);
    return rc;
}

void gguf_close(gguf *g)
{
    if (!g)
        return;
    if (g->mapping)
        munmap(g->mapping, g->n);
    free(g->entries);
    free(g->tensors);
    free(g->path);
    free(g);
}

const char *gguf_path(const gguf *g)
{
    return g->path;
}
