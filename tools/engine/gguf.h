/* engine/gguf.h: model files in the GGUF format, versions 2 and 3, little-endian: keys with values, and tensors.
 *
 * A file is mapped, not copied. All of it but the tensors' numbers is checked when it is opened: what it says about
 * lengths, counts, places and types is never believed beyond what the file has, so an open file can be read without
 * further care (as long as nobody cuts it while it is open). Keys and tensor names stand there once each, tensors do
 * not overlap. A tensor of a type that is not in gguf_type is refused only when it is asked for.
 *
 * Functions that can fail return 0, TRACE_BAD_INPUT or TRACE_FAILED with the error's line set, and leave *out alone
 * then. An open file may be read by several threads at once. */
#ifndef KVKEEP_ENGINE_GGUF_H
#define KVKEEP_ENGINE_GGUF_H

#include "trace/error.h"

/* How a tensor's numbers are stored (ggml's names and values). Those with a Q are blocks of 32, or 256 for a K, small
 * whole numbers with scales. */
typedef enum gguf_type {
    GGUF_F32 = 0,
    GGUF_F16 = 1,
    GGUF_Q4_0 = 2,
    GGUF_Q4_1 = 3,
    GGUF_Q5_0 = 6,
    GGUF_Q5_1 = 7,
    GGUF_Q8_0 = 8,
    GGUF_Q4_K = 12,
    GGUF_Q5_K = 13,
    GGUF_Q6_K = 14,
    GGUF_BF16 = 30
} gguf_type;

enum {
    GGUF_MAX_KEYS = 1 << 16,
    GGUF_MAX_TENSORS = 1 << 17,
    GGUF_MAX_KEY = 65535,       /* bytes */
    GGUF_MAX_TENSOR_NAME = 64,  /* bytes */
    GGUF_MAX_STRING = 16 << 20, /* bytes of a value */
    GGUF_MAX_NESTING = 4,       /* arrays of arrays */
    GGUF_MIN_ALIGNMENT = 8,     /* bytes, of what general.alignment may say */
    GGUF_DEFAULT_ALIGNMENT = 32 /* where it says nothing */
};

/* Not terminated; lies in the file, lives until gguf_close. It may hold any bytes. */
typedef struct gguf_text {
    const char *at;
    uint64_t n;
} gguf_text;

typedef struct gguf_tensor {
    gguf_text name;
    uint32_t type, n_dims;
    uint64_t dims[4]; /* at least 1 each; dims[0] is contiguous; absent ones are 1 */
    const void *data; /* at a multiple of the file's alignment */
    uint64_t bytes;
} gguf_tensor;

typedef struct gguf gguf;

/* The file must stay as it is while it is open. */
int gguf_open(const char *path, gguf **out, trace_error *error);

/* The same from memory that stays the caller's and is to be aligned like the file; `path` is what errors name it. */
int gguf_open_bytes(const void *bytes, uint64_t n, const char *path, gguf **out, trace_error *error);

/* NULL is ignored. */
void gguf_close(gguf *g);

const char *gguf_path(const gguf *g);

/* ---- Keys ------------------------------------------------------------------------------------------------------- */

int gguf_has(const gguf *g, const char *key);

/* Bad input: no such key, or a value that is something else. Whole numbers may be stored in any whole type, floats in
 * either, as long as they fit; the single float must be finite. */
int gguf_u32(const gguf *g, const char *key, uint32_t *out, trace_error *error);
int gguf_f32(const gguf *g, const char *key, float *out, trace_error *error);
int gguf_bool(const gguf *g, const char *key, int *out, trace_error *error);
int gguf_string(const gguf *g, const char *key, gguf_text *out, trace_error *error);

/* Arrays into lists that the caller frees; never NULL, even when empty. */
int gguf_strings(const gguf *g, const char *key, gguf_text **out, uint64_t *n, trace_error *error);
int gguf_i32s(const gguf *g, const char *key, int32_t **out, uint64_t *n, trace_error *error);
int gguf_f32s(const gguf *g, const char *key, float **out, uint64_t *n, trace_error *error);

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

/* Bad input: none of that name, or of a type that is not known. */
int gguf_tensor_find(const gguf *g, const char *name, const gguf_tensor **out, trace_error *error);

/* The numbers of row `row`, out[dims[0]], of a tensor seen as [dims[3] * dims[2] * dims[1]][dims[0]]. TRACE_BAD_INPUT
 * if it has no such row; it can't fail otherwise on a tensor that was found. */
int gguf_row(const gguf_tensor *t, uint64_t row, float *out);

#endif
