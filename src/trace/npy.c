#define _POSIX_C_SOURCE 200809L /* fseeko */
#include "trace/npy.h"

#include "base/checked.h"
#include "trace/npy_header.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC_BYTES = 8, BLOCK = 4096 };

static const uint32_t item_bytes[] = {[NPY_F2] = 2, [NPY_F4] = 4, [NPY_F8] = 8};

static trace_place place(const npy_reader *npy, const char *field)
{
    return (trace_place){npy->name, 0, field};
}

static int cut_short(const npy_reader *npy, const char *where, trace_error *error)
{
    if (ferror(npy->in) && errno == EISDIR)
        return trace_bad_input(error, place(npy, NULL), "is a directory");
    if (ferror(npy->in))
        return trace_failed(error, place(npy, NULL), "cannot read: %s", strerror(errno));
    return trace_bad_input(error, place(npy, NULL), "ends within its %s", where);
}

static int read_bytes(const npy_reader *npy, void *out, size_t n, trace_error *error)
{
    return fread(out, 1, n, npy->in) == n ? 0 : cut_short(npy, "header", error);
}

static uint64_t little_endian(const unsigned char *bytes, uint32_t n)
{
    uint64_t value = 0;
    for (uint32_t i = n; i-- > 0;)
        value = value << 8 | bytes[i];
    return value;
}

/* Magic, version and the length of the header, which format 1 gives in 2 bytes and the others in 4. */
static int read_length(const npy_reader *npy, uint64_t *length, trace_error *error)
{
    unsigned char bytes[MAGIC_BYTES];
    int rc = read_bytes(npy, bytes, MAGIC_BYTES, error);
    if (rc < 0)
        return rc;
    if (memcmp(bytes, "\x93NUMPY", 6) != 0)
        return trace_bad_input(error, place(npy, NULL), "is no .npy file");
    if (bytes[6] < 1 || bytes[6] > 3)
        return trace_bad_input(error, place(npy, "version"), "is %u: 1, 2 and 3 are known", (unsigned)bytes[6]);
    uint32_t n = bytes[6] == 1 ? 2 : 4;
    rc = read_bytes(npy, bytes, n, error);
    if (rc < 0)
        return rc;
    *length = little_endian(bytes, n);
    if (*length > NPY_MAX_HEADER)
        return trace_bad_input(error, place(npy, "header"), "is longer than %d bytes", NPY_MAX_HEADER);
    return 0;
}

static int read_header(npy_reader *npy, trace_error *error)
{
    uint64_t length = 0;
    int rc = read_length(npy, &length, error);
    if (rc < 0)
        return rc;
    char *text = malloc(length + 1);
    if (!text)
        return trace_failed(error, place(npy, NULL), "out of memory");
    rc = read_bytes(npy, text, length, error);
    text[length] = '\0';
    if (rc == 0 && strlen(text) < length)
        rc = trace_bad_input(error, place(npy, "header"), "holds a NUL byte");
    if (rc == 0)
        rc = npy_header_parse(npy, text, error);
    free(text);
    return rc;
}

/* The bytes that the shape asks for. */
static int bytes_of(const npy_reader *npy, uint64_t *out, trace_error *error)
{
    *out = item_bytes[npy->type];
    for (uint32_t i = 0; i < npy->n_axes; i++)
        if (checked_mul(*out, npy->shape[i], out) < 0)
            return trace_bad_input(error, place(npy, "shape"), "is too large");
    return 0;
}

/* Compares what the shape asks for with what there is, so that no size is believed that the file does not have. */
static int check_size(npy_reader *npy, trace_error *error)
{
    uint64_t want = 0;
    off_t data = ftello(npy->in);
    if (data < 0 || fseeko(npy->in, 0, SEEK_END) < 0)
        return trace_bad_input(error, place(npy, NULL), "cannot be read twice: %s", strerror(errno));
    off_t end = ftello(npy->in);
    npy->data = (uint64_t)data;
    int rc = bytes_of(npy, &want, error);
    if (rc < 0)
        return rc;
    uint64_t have = end < data ? 0 : (uint64_t)(end - data);
    if (have != want)
        return trace_bad_input(error, place(npy, "shape"), "asks for %ju bytes of values, the file has %ju",
                               (uintmax_t)want, (uintmax_t)have);
    return npy_rewind(npy, error);
}

int npy_open(npy_reader *npy, FILE *in, const char *name, trace_error *error)
{
    *npy = (npy_reader){.name = name, .in = in};
    int rc = read_header(npy, error);
    return rc < 0 ? rc : check_size(npy, error);
}

int npy_rewind(npy_reader *npy, trace_error *error)
{
    if (fseeko(npy->in, (off_t)npy->data, SEEK_SET) == 0)
        return 0;
    return trace_failed(error, place(npy, NULL), "cannot go back: %s", strerror(errno));
}

/* IEEE 754 binary16: 5 bits of exponent, 10 of the fraction. */
static float half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float value = exponent == 31  ? fraction ? NAN : INFINITY
                  : exponent == 0 ? ldexpf((float)fraction, -24)
                                  : ldexpf((float)(fraction + 1024), exponent - 25);
    return bits >> 15 ? -value : value;
}

static float convert(const unsigned char *bytes, npy_type type)
{
    if (type == NPY_F2)
        return half((uint16_t)little_endian(bytes, 2));
    if (type == NPY_F4) {
        uint32_t bits = (uint32_t)little_endian(bytes, 4);
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint64_t bits = little_endian(bytes, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

int npy_read(npy_reader *npy, float *out, uint64_t n, trace_error *error)
{
    unsigned char block[BLOCK];
    uint32_t bytes = item_bytes[npy->type];
    while (n > 0) {
        uint64_t items = n < BLOCK / bytes ? n : BLOCK / bytes;
        if (fread(block, bytes, items, npy->in) != items)
            return cut_short(npy, "values", error);
        for (uint64_t i = 0; i < items; i++)
            out[i] = convert(block + i * bytes, npy->type);
        out += items;
        n -= items;
    }
    return 0;
}
