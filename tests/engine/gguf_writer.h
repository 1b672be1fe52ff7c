/* GGUF files for tests, written piece by piece; what a file says may be anything. */
#ifndef TESTS_ENGINE_GGUF_WRITER_H
#define TESTS_ENGINE_GGUF_WRITER_H

#include <stddef.h>
#include <stdint.h>

typedef struct gguf_out {
    unsigned char bytes[4096];
    size_t n;
} gguf_out;

/* A number of `bytes` bytes, or a string behind its length, or zeroes up to a multiple of `align`. */
typedef struct gguf_piece {
    uint32_t bytes;
    uint64_t value;
    const char *text;
    uint32_t align;
} gguf_piece;

#define U1(v) ((gguf_piece){1, (uint64_t)(v), NULL, 0})
#define U2(v) ((gguf_piece){2, (uint64_t)(v), NULL, 0})
#define U4(v) ((gguf_piece){4, (uint64_t)(v), NULL, 0})
#define U8(v) ((gguf_piece){8, (uint64_t)(v), NULL, 0})
#define TEXT(t) ((gguf_piece){0, 0, t, 0})
#define PAD(align) ((gguf_piece){0, 0, NULL, align})

/* Value types, as the format numbers them. */
enum { T_U8, T_I8, T_U16, T_I16, T_U32, T_I32, T_F32, T_BOOL, T_STRING, T_ARRAY, T_U64, T_I64, T_F64 };

#define HEAD(version, tensors, keys) U4(0x46554747), U4(version), U8(tensors), U8(keys)
#define KEY_U32(key, v) TEXT(key), U4(T_U32), U4(v)
#define ARRAY_OF(type, n) U4(T_ARRAY), U4(type), U8(n)
/* Of one dimension, and of two. */
#define LINE(name, type, n, offset) TEXT(name), U4(1), U8(n), U4(type), U8(offset)
#define TABLE(name, type, columns, rows, offset) TEXT(name), U4(2), U8(columns), U8(rows), U4(type), U8(offset)

#define WRITE(out, ...) gguf_write(out, (const gguf_piece[]){__VA_ARGS__, {0, 0, NULL, 0}})
void gguf_write(gguf_out *out, const gguf_piece *pieces);

/* Zeroes. */
void gguf_write_zeroes(gguf_out *out, size_t n);

/* A sound file with every type of value, arrays of arrays, and tensors of several types. */
void gguf_write_sample(gguf_out *out);

#endif
