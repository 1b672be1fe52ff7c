/* attention/cpu_rows.h: the two products that attention is made of, over rows as they are stored: rows of K with a few
 * queries, and weights with rows of V. A row is converted in registers, once for all queries of a group. */
#ifndef KVK_ATTENTION_CPU_ROWS_H
#define KVK_ATTENTION_CPU_ROWS_H

#include "attention/convert.h"
#include "attention/cpu.h"
#include "attention/cpu_simd.h"

#define GROUP 4u                    /* queries at a time */
#define DOT_COLUMNS (WIDTH / GROUP) /* rows of K at a time, so that WIDTH sums are folded into one vector */
#define ADD_COLUMNS (VECTOR_BYTES == 64 ? 4u : 2u) /* vectors of a row of V at a time: what registers hold */

/* Rows of one KV head. */
typedef struct cpu_rows {
    const char *const *at;      /* [TILE] */
    const char *const *next;    /* [TILE] rows to fetch into the cache meanwhile; NULL: none */
    uint64_t shift, next_shift; /* to be added to each */
    uint32_t n, bytes;          /* rows, and bytes of one */
    uint32_t size, stride;      /* elements: a multiple of WIDTH; floats from one query's to the next one's */
} cpu_rows;

typedef void (*cpu_rows_fn)(const cpu_rows *x, const float *in, float *out);

/* ---- WIDTH elements of a row, from element i on */

INLINE floats load_f32(const char *row, uint32_t i)
{
    return floats_at(row + 4ull * i);
}

INLINE floats load_f16(const char *row, uint32_t i)
{
    return floats_of_f16(row + 2ull * i);
}

INLINE floats load_bf16(const char *row, uint32_t i)
{
    return (floats)(ints_of_u16(row + 2ull * i) << 16);
}

INLINE floats load_e4m3(const char *row, uint32_t i)
{
    ints bits = ints_of_u8(row + i), magnitude = bits & 0x7f;
    floats finite = (floats)(magnitude << 20) * 0x1p120f; /* whose exponent is 120 higher; subnormal ones too */
    return (floats)((ints)choose(magnitude == 0x7f, all(NAN), finite) | (bits & 0x80) << 24);
}

INLINE floats load_i8(const char *row, uint32_t i)
{
    return __builtin_convertvector(ints_of_i8(row + i), floats);
}

INLINE floats load_i4(const char *row, uint32_t i)
{
    return __builtin_convertvector(ints_of_u4(row + i / 2) - 8, floats);
}

/* ---- fetching what comes next, from byte `from` to `to` of a row */

INLINE void fetch(const cpu_rows *x, uint32_t row, uint32_t from, uint32_t to)
{
    const char *next = x->next[row] + x->next_shift;
    for (uint32_t byte = from; byte < to; byte += 64)
        __builtin_prefetch(next + byte, 0, 2); /* into the second level: the first has no room for as many */
}

/* ---- the products, for `rows` queries */

typedef floats (*load_fn)(const char *row, uint32_t i);

/* scores[query][i] = query . row i. A row past the n-th is computed too, and nothing is said of what it gives. */
INLINE void dot_rows(const cpu_rows *x, const float *q, float *scores, load_fn load, uint32_t rows)
{
    for (uint32_t i = 0; i < x->n; i += DOT_COLUMNS) {
        floats sums[GROUP][DOT_COLUMNS] = {{{0}}};
        const char *at[DOT_COLUMNS];
        for (uint32_t c = 0; c < DOT_COLUMNS; c++) {
            at[c] = x->at[i + c] + x->shift;
            if (x->next)
                fetch(x, i + c, 0, x->bytes);
        }
        for (uint32_t d = 0; d < x->size; d += WIDTH) {
            floats k[DOT_COLUMNS];
            for (uint32_t c = 0; c < DOT_COLUMNS; c++)
                k[c] = load(at[c], d);
            for (uint32_t r = 0; r < rows; r++) {
                floats of_query = floats_at(q + r * x->stride + d);
                for (uint32_t c = 0; c < DOT_COLUMNS; c++)
                    sums[r][c] += of_query * k[c];
            }
        }
        floats folded = fold(sums);
        for (uint32_t r = 0; r < rows; r++)
            memcpy(scores + r * TILE + i, (const float *)&folded + r * DOT_COLUMNS, DOT_COLUMNS * sizeof(float));
    }
}

/* o[query] += weights[query][i] * row i, for `columns` vectors of each row from element d on. */
INLINE void add_columns(const cpu_rows *x, const float *weights, float *o, load_fn load, uint32_t rows,
                        const uint32_t columns[2])
{
    uint32_t d = columns[0], n = columns[1];
    uint32_t from = d * x->bytes / x->size, to = (d + n * WIDTH) * x->bytes / x->size;
    floats sums[GROUP][ADD_COLUMNS];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < n; c++)
            sums[r][c] = floats_at(o + r * x->stride + d + c * WIDTH);
    for (uint32_t i = 0; i < x->n; i++) {
        const char *at = x->at[i] + x->shift;
        floats v[ADD_COLUMNS];
        if (x->next)
            fetch(x, i, from, to);
        for (uint32_t c = 0; c < n; c++)
            v[c] = load(at, d + c * WIDTH);
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t c = 0; c < n; c++)
                sums[r][c] += all(weights[r * TILE + i]) * v[c];
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < n; c++)
            put_floats(o + r * x->stride + d + c * WIDTH, sums[r][c]);
}

INLINE void add_rows(const cpu_rows *x, const float *weights, float *o, load_fn load, uint32_t rows)
{
    uint32_t d = 0;
    for (; d + ADD_COLUMNS * WIDTH <= x->size; d += ADD_COLUMNS * WIDTH)
        add_columns(x, weights, o, load, rows, (const uint32_t[]){d, ADD_COLUMNS});
    for (; d < x->size; d += WIDTH)
        add_columns(x, weights, o, load, rows, (const uint32_t[]){d, 1});
}

INLINE void widen_rows(const cpu_rows *x, float *to, load_fn load)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t d = 0; d < x->size; d += WIDTH)
            put_floats(to + (uint64_t)i * x->stride + d, load(x->at[i] + x->shift, d));
}

/* ---- one of each for every type and number of queries */

#define ROWS_OF(type, rows)                                                                                            \
    static void dot_##type##_##rows(const cpu_rows *x, const float *q, float *scores)                                  \
    {                                                                                                                  \
        dot_rows(x, q, scores, load_##type, rows);                                                                     \
    }                                                                                                                  \
    static void add_##type##_##rows(const cpu_rows *x, const float *weights, float *o)                                 \
    {                                                                                                                  \
        add_rows(x, weights, o, load_##type, rows);                                                                    \
    }
#define ROWS(type)                                                                                                     \
    ROWS_OF(type, 1)                                                                                                   \
    ROWS_OF(type, 2)                                                                                                   \
    ROWS_OF(type, 3)                                                                                                   \
    ROWS_OF(type, 4)                                                                                                   \
    static void widen_##type(const cpu_rows *x, float *to)                                                             \
    {                                                                                                                  \
        widen_rows(x, to, load_##type);                                                                                \
    }
ROWS(f32)
ROWS(f16)
ROWS(bf16)
ROWS(e4m3)
ROWS(i8)
ROWS(i4)

typedef struct rows_kernels {
    cpu_rows_fn dot[GROUP], add[GROUP];
    void (*widen)(const cpu_rows *x, float *to);
} rows_kernels;

#define ROWS_KERNELS(type)                                                                                             \
    {                                                                                                                  \
        {dot_##type##_1, dot_##type##_2, dot_##type##_3, dot_##type##_4},                                              \
            {add_##type##_1, add_##type##_2, add_##type##_3, add_##type##_4}, widen_##type                             \
    }
static const rows_kernels kernels_of[] = {
    [KVK_F32] = ROWS_KERNELS(f32),      [KVK_F16] = ROWS_KERNELS(f16), [KVK_BF16] = ROWS_KERNELS(bf16),
    [KVK_F8_E4M3] = ROWS_KERNELS(e4m3), [KVK_I8] = ROWS_KERNELS(i8),   [KVK_I4] = ROWS_KERNELS(i4),
};

/* How many queries to take at a time, of n that are left: 5 as 3 and 2 rather than 4 and 1. */
INLINE uint32_t next_rows(uint32_t n)
{
    uint32_t turns = (n + GROUP - 1) / GROUP;
    return (n + turns - 1) / turns;
}

#endif
