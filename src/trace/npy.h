/* trace/npy.h: NumPy's .npy files of floats, read piece by piece.
 *
 * Formats 1, 2 and 3 (numpy.lib.format): a header that says type, order and shape, then the values. '<f2', '<f4' and
 * '<f8' are read, in C order. Memory does not grow with the file.
 */
#ifndef KVKEEP_TRACE_NPY_H
#define KVKEEP_TRACE_NPY_H

#include "trace/error.h"

#include <stdio.h>

enum {
    NPY_MAX_AXES = 8,
    NPY_MAX_HEADER = 1 << 16 /* bytes; NumPy's own are some 120 */
};

typedef enum npy_type { NPY_F2, NPY_F4, NPY_F8 } npy_type;

typedef struct npy_reader {
    const char *name; /* of the file, for errors; not copied */
    uint64_t shape[NPY_MAX_AXES];
    uint32_t n_axes;

    npy_type type; /* the rest is the reader's own */
    FILE *in;
    uint64_t data; /* where the values begin */
} npy_reader;

/* Reads the header of a file that can be rewound; `in` stays the caller's. The file must hold as many values as the
 * shape says, no fewer and no more. 0, TRACE_BAD_INPUT or TRACE_FAILED. */
int npy_open(npy_reader *npy, FILE *in, const char *name, trace_error *error);

/* The next `n` values, of all that the shape says, into out[n]; what is too large for a float becomes infinite. 0, or
 * an error where the file ends before. */
int npy_read(npy_reader *npy, float *out, uint64_t n, trace_error *error);

/* Back to the first value. */
int npy_rewind(npy_reader *npy, trace_error *error);

#endif
