/* kv.c: describing where K and V lie. */
#include "attention/check.h"
#include "attention/layout.h"

void kvk_kv_init(kvk_kv *kv, kvk_dtype dtype, uint32_t n_pages, uint32_t page_tokens)
{
    if (!kv)
        return;
    *kv = (kvk_kv){
        .size = sizeof *kv, .dtype = dtype, .n_pages = n_pages, .page_tokens = page_tokens, .k_scale = 1, .v_scale = 1};
}

/* Strides of [page][layer][K|V][head][token][dim]; what wraps around is found by the check of the shape. */
static void set_default_strides(kvk_kv *kv)
{
    kv->token_stride = layout_row_bytes(kv->dtype, kv->head_size);
    kv->head_stride = kv->token_stride * kv->page_tokens;
    kv->value_stride = kv->head_stride * kv->n_heads;
    kv->layer_stride = kv->value_stride * 2;
    kv->page_stride = kv->layer_stride * kv->n_layers;
}

int kvk_kv_shape(kvk_kv *kv, uint32_t n_layers, uint32_t n_heads, uint32_t head_size)
{
    uint64_t bytes, n_scales;
    if (!kv)
        return KVK_EINVAL;
    kvk_kv shaped = *kv;
    shaped.n_layers = n_layers;
    shaped.n_heads = n_heads;
    shaped.head_size = head_size;
    set_default_strides(&shaped);
    if (check_shape(&shaped, &bytes, &n_scales) < 0)
        return KVK_EINVAL;
    *kv = shaped;
    return 0;
}

int kvk_kv_bytes(const kvk_kv *kv, uint64_t *bytes, uint64_t *n_scales)
{
    uint64_t spanned, scales;
    if (!bytes || !n_scales || check_shape(kv, &spanned, &scales) < 0)
        return KVK_EINVAL;
    *bytes = spanned;
    *n_scales = scales;
    return 0;
}
