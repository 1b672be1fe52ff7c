/* kvkeep/attention.h: attention over pages, on the CPU: where K and V lie, writing new tokens, and attention that reads
 * through a plan's page lists and reports how much of it each page got.
 *
 * A user of kvkeep.h needs nothing of this: an engine may have kernels of its own. It keeps no state and takes no
 * memory; arrays belong to the caller. Results are 0 or a negative KVK_E* code; a call that fails has written nothing.
 *
 * What attention computes, for a query at text position p, and head h of KV head h / (n_heads / kv heads):
 *     s(t)  = scale * q . k(t), then soft_cap * tanh(s / soft_cap), then + slope(h) * (t - p)
 *     over the tokens t <= p that the entry's pages hold, and t > p - window; and a sink of logit sinks[h], no value
 *     lse   = log(sum exp(s)), o = sum exp(s - lse) v(t); for no token and no sink o = 0 and lse = -inf
 *     mass of a page = sum of exp(s - lse) over its tokens: an entry's masses sum to 1, or to less with a sink
 * Unused places of pages may hold anything, NaN too. */
#ifndef KVKEEP_ATTENTION_H
#define KVKEEP_ATTENTION_H

#include <kvkeep/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kvk_dtype {
    KVK_F32 = 0,
    KVK_F16 = 1,
    KVK_BF16 = 2,
    KVK_F8_E4M3 = 3, /* with one scale for K and one for V; saturates at 448 */
    KVK_I8 = 4,      /* -127 .. 127 times a scale per token and head */
    KVK_I4 = 5 /* -7 .. 7, two in a byte, the even dimension in the low half, stored + 8; scale per token and head */
} kvk_dtype;

/* K and V of the layers of one group, in pages. The default layout is HND, kv[page][layer][K|V][head][token][dim]; any
 * other is described by the strides, in bytes, whole elements each. A token's row of one head is contiguous. */
typedef struct kvk_kv {
    uint32_t size;  /* sizeof(kvk_kv) */
    uint32_t dtype; /* a kvk_dtype */
    void *base;
    uint32_t n_pages, page_tokens; /* page_tokens 1 .. 65536 */
    uint32_t n_layers, n_heads;    /* KV heads */
    uint32_t head_size;            /* 1 .. 1024, even for KVK_I4 */
    float k_scale, v_scale;        /* KVK_F8_E4M3: what a stored 1 stands for; default 1 */
    uint32_t reserved;
    uint64_t page_stride, layer_stride, value_stride, head_stride, token_stride; /* value_stride: from K to V */
    float *scales; /* KVK_I8, KVK_I4: [n_pages][n_layers][K|V][n_heads][page_tokens], contiguous */
} kvk_kv;

/* Fills in `size`, the shape and the strides of the default layout; base and scales NULL. */
KVK_API void kvk_kv_init(kvk_kv *kv, kvk_dtype dtype, uint32_t n_pages, uint32_t page_tokens);

/* Sets layers, heads and head size, and the strides that follow. KVK_EINVAL if out of range or past 2^63 bytes. */
KVK_API int kvk_kv_shape(kvk_kv *kv, uint32_t n_layers, uint32_t n_heads, uint32_t head_size);

/* Bytes that the strides span, and floats of `scales` (0 where there are none). KVK_EINVAL. */
KVK_API int kvk_kv_bytes(const kvk_kv *kv, uint64_t *bytes, uint64_t *n_scales);

/* Rows of tokens in the caller's memory: [n][heads][head_size], strides in elements. */
typedef struct kvk_rows {
    const void *data;
    uint32_t dtype; /* KVK_F32, KVK_F16 or KVK_BF16 */
    uint32_t reserved;
    uint64_t token_stride, head_stride;
} kvk_rows;

/* Writes K and V of n tokens of a layer to their slots (page * page_tokens + offset, as a plan has them), converted or
 * quantised. A negative slot is skipped. O(n * heads * head_size). KVK_EINVAL: a slot past the last page, or a bad
 * shape. */
KVK_API int kvk_append(const kvk_kv *kv, uint32_t layer, const int64_t *slots, uint32_t n, const kvk_rows *k,
                       const kvk_rows *v);

/* One layer's attention of a batch. The index arrays are a CSR plan's for the group of that layer, 32 bits wide. */
typedef struct kvk_attention {
    uint32_t size; /* sizeof(kvk_attention) */
    uint32_t n;    /* entries */
    const kvk_kv *kv;
    uint32_t layer;
    uint32_t n_heads;            /* of queries: a multiple of kv->n_heads */
    const int32_t *indptr;       /* [n+1] ascending from 0 */
    const int32_t *pages;        /* [indptr[n]] */
    const int32_t *positions;    /* [indptr[n]] of each page's first token: multiples of page_tokens below the entry's
                                    seq_lens, ascending; a page that is missing has no place. NULL: every page of the
                                    text is there, page i from i * page_tokens on */
    const int32_t *seq_lens;     /* [n] tokens of the text, the new ones included */
    const int32_t *query_indptr; /* [n+1] query i of an entry is at position seq_lens - queries + i */
    kvk_rows q;                  /* [query_indptr[n]][n_heads][head_size] */
    float scale;                 /* 0: 1 / sqrt(head_size) */
    float soft_cap;              /* 0: none */
    uint32_t window;             /* tokens that a query attends to, itself included; 0: all */
    uint32_t reserved;
    const float *slopes; /* [n_heads] ALiBi; NULL: none */
    const float *sinks;  /* [n_heads] logits of learned sinks; NULL: none */
} kvk_attention;

/* Fills in `size` and the defaults. */
KVK_API void kvk_attention_init(kvk_attention *attention);

/* What a page did to a head's output, for the near peaks (kvk_masses.near). */
typedef enum kvk_near_kind {
    KVK_NEAR_MASS = 0,
    /* |m*o - u| / max(1 - m, 1e-3), u the sum of exp(s - lse) v over the page's tokens: how far o is from what it would
     * be without the page. */
    KVK_NEAR_ERROR = 1
} kvk_near_kind;

/* Where the results go; NULL arrays are left out. The masses have the form of kvk_masses for one group, so that the
 * layers of a group can add to the same arrays. */
typedef struct kvk_attention_out {
    uint32_t size;    /* sizeof(kvk_attention_out) */
    uint32_t o_dtype; /* KVK_F32, KVK_F16 or KVK_BF16 */
    void *o;          /* [queries][n_heads][head_size], strides in elements */
    uint64_t o_token_stride, o_head_stride;
    float *lse; /* [queries][n_heads] natural logarithm */
    const uint32_t
        *rows;          /* [n] 1: an entry's masses are summed over its queries; or its queries: a row each. NULL: 1 */
    float *mean;        /* entry after entry, row after row, per page: += weight * mean over heads of the mass */
    float *peak;        /* the same places: the larger of what is there and the largest mass over heads and queries */
    float weight;       /* default 1; 1/layers for the mean over a group's layers */
    uint32_t near_kind; /* a kvk_near_kind */
    /* Entry after entry, row after row, for each page from number max(0, tokens_before / page_tokens - 1) on (by
     * position) near_values numbers, those of all layers (near_layers * near_heads of kvk_group). Head h of this layer
     * makes number near_first + h, or near_places[h], the larger of what is there and the largest value over the row's
     * queries that stand in the page or the next one; a head with a place below 0 is left out. */
    float *near;
    uint32_t near_values, near_first; /* near_values: below 2^31 */
    const int32_t *near_places;       /* [n_heads] below near_values; NULL: near_first + h */
} kvk_attention_out;

/* Fills in `size` and the defaults. The caller zeroes mean, peak and near before the first layer. */
KVK_API void kvk_attention_out_init(kvk_attention_out *out);

/* In double precision, one obvious loop after the other: what the others are compared with. KVK_EINVAL. */
KVK_API int kvk_attention_reference(const kvk_attention *attention, const kvk_attention_out *out);

/* The same, fast: OpenMP over entries, KV heads and parts of long ones; single precision. `workspace` of at least
 * kvk_attention_workspace bytes, aligned to 64. Results do not depend on the number of threads. KVK_EINVAL, KVK_ESPACE
 * (workspace too small). */
KVK_API int kvk_attention_cpu(const kvk_attention *attention, const kvk_attention_out *out, void *workspace,
                              uint64_t workspace_bytes);

/* Bytes of workspace that these arguments need, up to INT64_MAX; KVK_EINVAL. */
KVK_API int64_t kvk_attention_workspace(const kvk_attention *attention, const kvk_attention_out *out);

#ifdef __cplusplus
}
#endif

#endif
