/* attention/layout.h: where things lie. Shared by host and device, so it is C and CUDA at once; all offsets have 64
 * bits, since a cache is larger than what 32 can count. */
#ifndef KVK_ATTENTION_LAYOUT_H
#define KVK_ATTENTION_LAYOUT_H

#include <kvkeep/attention.h>

#ifdef __CUDACC__
#define KVK_HD __host__ __device__ __forceinline__
#else
#define KVK_HD static inline
#endif

/* The byte where the row of a token begins, for K (value 0) or V (value 1). */
KVK_HD uint64_t layout_row(const kvk_kv *kv, uint32_t page, uint32_t layer, uint32_t value, uint32_t head,
                           uint32_t token)
{
    return page * kv->page_stride + layer * kv->layer_stride + value * kv->value_stride + head * kv->head_stride +
           token * kv->token_stride;
}

/* The place of a row's scale in kv->scales. */
KVK_HD uint64_t layout_scale(const kvk_kv *kv, uint32_t page, uint32_t layer, uint32_t value, uint32_t head,
                             uint32_t token)
{
    uint64_t rows = ((uint64_t)page * kv->n_layers + layer) * 2 + value;
    return (rows * kv->n_heads + head) * kv->page_tokens + token;
}

/* Which of a page's near peaks is a head's; below 0: none. */
KVK_HD int32_t layout_near(const kvk_attention_out *out, uint32_t head)
{
    return out->near_places ? out->near_places[head] : (int32_t)(out->near_first + head);
}

/* Bytes of a row of head_size elements. */
KVK_HD uint64_t layout_row_bytes(uint32_t dtype, uint32_t head_size)
{
    if (dtype == KVK_F32)
        return 4ull * head_size;
    if (dtype == KVK_F16 || dtype == KVK_BF16)
        return 2ull * head_size;
    return dtype == KVK_I4 ? head_size / 2 : head_size;
}

#endif
