/* engine/gguf_file.h: an open GGUF file from inside: what the parts of the reader share. */
#ifndef KVKEEP_ENGINE_GGUF_FILE_H
#define KVKEEP_ENGINE_GGUF_FILE_H

#include "engine/gguf.h"

#include <string.h>

/* The types of values, as the format numbers them. */
enum {
    VALUE_U8,
    VALUE_I8,
    VALUE_U16,
    VALUE_I16,
    VALUE_U32,
    VALUE_I32,
    VALUE_F32,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_ARRAY,
    VALUE_U64,
    VALUE_I64,
    VALUE_F64,
    VALUE_TYPES
};

/* A key with its value, or with the `n` values of an array. */
typedef struct gguf_entry {
    gguf_text key;
    uint32_t type; /* of the value, or of each of an array's */
    int is_array;
    uint64_t n;                 /* 1 if it is no array */
    const unsigned char *value; /* the first one, all checked */
} gguf_entry;

typedef struct gguf_stored {
    gguf_tensor tensor; /* of an unknown type: no bytes */
    uint64_t offset;    /* of its data, in the tensors' part of the file */
} gguf_stored;

struct gguf {
    char *path;
    const unsigned char *bytes; /* [n], the whole file */
    uint64_t n;
    void *mapping; /* to unmap, or NULL */
    gguf_entry *entries;
    uint64_t n_entries; /* in the order of their keys */
    gguf_stored *tensors;
    uint64_t n_tensors; /* in the order of their names */
};

/* How the numbers of a tensor's type are stored. */
typedef struct gguf_blocks {
    const char *name;                                         /* NULL: not known */
    uint32_t elements, bytes;                                 /* of a block */
    void (*to_float)(const unsigned char *block, float *out); /* out[elements] */
} gguf_blocks;

const gguf_blocks *gguf_blocks_of(uint32_t type);

/* The bytes of a value; of a string or an array, the fewest there can be. */
uint32_t gguf_value_bytes(uint32_t type);

/* NULL if there is none. */
const gguf_entry *gguf_entry_find(const gguf *g, const char *key);

/* What an error is about: a key or a tensor by its name or, while that is not known, by its number. */
typedef struct gguf_subject {
    const char *kind;
    gguf_text name;
    uint64_t number; /* from 1; 0: it has none */
} gguf_subject;

/* Sets "FILE: KIND NAME: what is wrong". Return TRACE_BAD_INPUT and TRACE_FAILED. */
int gguf_wrong(const gguf *g, gguf_subject about, trace_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int gguf_no_memory(const gguf *g, trace_error *error);

static inline gguf_subject gguf_key(const char *key)
{
    return (gguf_subject){"key", {key, strlen(key)}, 0};
}

/* The order of names: below 0, 0 or above, as memcmp. */
int gguf_text_compare(gguf_text a, gguf_text b);

/* Numbers as the file has them, little-endian and anywhere. */
static inline uint16_t u16_at(const unsigned char *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static inline uint32_t u32_at(const unsigned char *bytes)
{
    return u16_at(bytes) | (uint32_t)u16_at(bytes + 2) << 16;
}

static inline uint64_t u64_at(const unsigned char *bytes)
{
    return u32_at(bytes) | (uint64_t)u32_at(bytes + 4) << 32;
}

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Shifted into place, a half's exponent is 112 below what a float's would be, which a product puts right, for numbers
 * below the smallest normal one too. */
static inline float half_at(const unsigned char *bytes)
{
    uint32_t half = u16_at(bytes), sign = (half & 0x8000) << 16, magnitude = (half & 0x7FFF) << 13;
    if (magnitude >= 0x7C00 << 13)
        return float_of_bits(sign | 0x7F800000 | magnitude);
    float value = float_of_bits(magnitude) * 0x1p112F;
    return sign ? -value : value;
}

#endif
