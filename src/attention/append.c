/* append.c: new tokens' K and V into their slots. */
#include "attention/check.h"
#include "attention/convert.h"

typedef struct place {
    uint32_t page, layer, value, head, token;
} place;

static void *row_at(const kvk_kv *kv, place p)
{
    return (char *)kv->base + layout_row(kv, p.page, p.layer, p.value, p.head, p.token);
}

/* The scale to store a row with, which is put where the type keeps one for each row. */
static float settle_scale(const kvk_kv *kv, place p, const float *row)
{
    if (!dtype_has_scales(kv->dtype))
        return p.value ? kv->v_scale : kv->k_scale;
    float scale = row_scale(row, kv->head_size, dtype_most(kv->dtype));
    kv->scales[layout_scale(kv, p.page, p.layer, p.value, p.head, p.token)] = scale;
    return scale;
}

static void append_row(const kvk_kv *kv, place p, const void *from, uint32_t dtype)
{
    float row[MAX_HEAD_SIZE];
    if (dtype == kv->dtype) {
        memcpy(row_at(kv, p), from, layout_row_bytes(dtype, kv->head_size));
        return;
    }
    load_row_float(from, dtype, kv->head_size, 1, row);
    store_row(row, kv->head_size, kv->dtype, settle_scale(kv, p, row), row_at(kv, p));
}

/* The heads of token i of `rows`, to where `p` says. */
static void append_token(const kvk_kv *kv, place p, const kvk_rows *rows, uint32_t i)
{
    const char *data = rows->data;
    uint64_t bytes = layout_row_bytes(rows->dtype, 1);
    for (p.head = 0; p.head < kv->n_heads; p.head++)
        append_row(kv, p, data + (i * rows->token_stride + p.head * rows->head_stride) * bytes, rows->dtype);
}

int kvk_append(const kvk_kv *kv, uint32_t layer, const int64_t *slots, uint32_t n, const kvk_rows *k, const kvk_rows *v)
{
    if (check_append(kv, layer, slots, n, k, v) < 0)
        return KVK_EINVAL;
    for (uint32_t i = 0; i < n; i++) {
        if (slots[i] < 0)
            continue;
        place p = {.page = (uint32_t)(slots[i] / kv->page_tokens),
                   .layer = layer,
                   .token = (uint32_t)(slots[i] % kv->page_tokens)};
        append_token(kv, p, k, i);
        p.value = 1;
        append_token(kv, p, v, i);
    }
    return 0;
}
