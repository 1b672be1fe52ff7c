/* grid.h: random cases of attention for every version of it, and how far a result may be from the reference's.
 *
 * K and V of a case are contiguous floats that its type holds exactly, so a plain implementation over them knows
 * nothing of pages, conversions and strides. Every place of the cache that no token has is NaN, and so are the outputs
 * before a run, except those that are added to. */
#ifndef TESTS_GRID_H
#define TESTS_GRID_H

#include <kvkeep/attention.h>

enum grid_feature {
    GRID_ALIBI = 1,
    GRID_SINKS = 2,
    GRID_EVICTED = 4,      /* about a third of the pages before the queries' is missing */
    GRID_MASKED = 8,       /* all pages but the last one are missing: queries before it see nothing */
    GRID_NHD = 16,         /* [page][layer][K|V][token][head][dim] */
    GRID_GAPS = 32,        /* gaps of 16 bytes in every stride of K and V, of 8 elements in those of q and o */
    GRID_ROWS = 64,        /* masses for each query */
    GRID_NEAR_ERROR = 128, /* near peaks of removal error instead of mass */
    GRID_FAR = 256, /* page ids above 65,536 in a sparse cache with offsets beyond 2^32; pages not listed are zeroes */
    GRID_SHARED = 512 /* texts begin as the first one, in its pages; not with missing pages */
};

typedef struct grid_shape {
    const char *name;
    kvk_dtype dtype, q_dtype, o_dtype;
    uint32_t page_tokens, kv_heads, group, head_size; /* group: heads of queries to a KV head */
    uint32_t n;                                       /* entries */
    const uint32_t *lengths;                          /* [n] tokens */
    const uint32_t *queries;                          /* [n] of them; NULL: 1 each, or 0 of nothing */
    uint32_t window;
    float soft_cap, scale, q_size; /* q_size: a power of 2 that q is multiplied by; 0: 1 */
    uint32_t features;             /* grid_feature bits */
    uint32_t seed;
} grid_shape;

typedef struct grid_case {
    const grid_shape *shape;
    uint32_t n_heads;
    uint64_t n_tokens, n_queries, n_pages; /* of all entries: of the texts, queries, listed pages */
    uint64_t n_mean, n_near;               /* floats of mean and peak, and of near */
    uint64_t kv_bytes, n_scales;
    /* [n_tokens][kv_heads][head_size] and [n_queries][n_heads][head_size], contiguous */
    float *k, *v, *query;
    uint64_t *first_token; /* [n+1] of each entry in k and v */
    uint8_t *held;         /* [n_tokens] 1: its page is listed */
    kvk_kv kv;
    void *q;
    int32_t *indptr, *pages, *positions, *seq_lens, *query_indptr;
    uint32_t *rows;       /* NULL without GRID_ROWS */
    int32_t *near_places; /* with GRID_NEAR_ERROR: from the end, and none for every third head; else NULL */
    float *slopes, *sinks;
    kvk_attention attention; /* of the last of two layers */
} grid_case;

/* Makes a case; ends the test if that fails. */
grid_case *grid_open(const grid_shape *shape);
void grid_close(grid_case *c);

/* The outputs of a run of a case: o of the case's type, or `o_dtype`; all arrays present; near of two layers. */
typedef struct grid_result {
    kvk_attention_out out;
    uint64_t o_elements, n_lse;
} grid_result;

grid_result *grid_result_open(const grid_case *c, kvk_dtype o_dtype);
void grid_result_close(grid_result *r);

/* What a plain implementation computes with: everything in double precision; or sums in single precision, and weights
 * in that, f16 or bf16 before they are multiplied by V. */
typedef enum grid_precision { GRID_DOUBLE = 0, GRID_FLOAT = 1, GRID_HALF = 2, GRID_BRAIN = 3 } grid_precision;

/* Softmax attention over the contiguous arrays. */
void grid_plain(const grid_case *c, grid_precision precision, const kvk_attention_out *out);

/* One head of one query of it. */
typedef struct plain_head {
    double lse;
    double o[1024];
    double *weight; /* [tokens of the entry's text] 0 where not seen */
} plain_head;

plain_head *plain_open(const grid_case *c, uint32_t entry);
void plain_close(plain_head *p);
void plain_attend(const grid_case *c, grid_precision precision, uint32_t entry, uint32_t query, uint32_t head,
                  plain_head *p);

/* A version of attention: returns what kvk_attention_reference returns. */
typedef int (*grid_version)(void *ctx, const grid_case *c, const kvk_attention_out *out);

/* Runs a version on a shape and ends the test if a result is farther from the reference's than three times what the
 * plain implementation of that precision is, plus 1e-5 (for sums over queries, for each); if masses do not sum up to
 * what sinks leave within 1e-5; or if anything else was written. */
void grid_check(const grid_shape *shape, grid_precision precision, grid_version version, void *ctx);

/* The same with another version in the place of the reference. */
void grid_check_by(grid_version exact, const grid_shape *shape, grid_precision precision, grid_version version,
                   void *ctx);

/* The shapes that every version is to pass, in a reduced form of all combinations. */
const grid_shape *grid_shapes(uint32_t *n);

/* A number that grows with the work of a shape: query heads * queries * tokens * head size. */
double grid_work(const grid_shape *shape);

#endif
