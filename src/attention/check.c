#include "attention/check.h"

#include "attention/layout.h"
#include "base/checked.h"

#include <float.h>

/* Bytes that an address or a stride of a type is a multiple of. */
static uint32_t unit_of(uint32_t dtype)
{
    return dtype == KVK_I4 ? 1 : (uint32_t)layout_row_bytes(dtype, 1);
}

static int is_float_dtype(uint32_t dtype)
{
    return dtype == KVK_F32 || dtype == KVK_F16 || dtype == KVK_BF16;
}

static int is_aligned(const void *data, uint32_t dtype)
{
    return (uintptr_t)data % unit_of(dtype) == 0;
}

static int is_within(uint32_t x, uint32_t least, uint32_t most)
{
    return least <= x && x <= most;
}

/* Adds the way from the first of `count` things to the last. */
static int add_way(uint64_t count, uint64_t stride, uint64_t *sum)
{
    uint64_t way;
    return checked_mul(count - 1, stride, &way) < 0 ? KVK_EINVAL : checked_add(*sum, way, sum);
}

/* ---- K and V */

static int shape_is_valid(const kvk_kv *kv)
{
    return kv && kv->size == sizeof *kv && kv->dtype <= KVK_I4 && is_within(kv->n_pages, 1, INT32_MAX) &&
           is_within(kv->page_tokens, 1, 65536) && kv->n_layers > 0 && kv->n_heads > 0 &&
           is_within(kv->head_size, 1, MAX_HEAD_SIZE) && (kv->dtype != KVK_I4 || kv->head_size % 2 == 0);
}

static int strides_are_whole(const kvk_kv *kv)
{
    uint64_t any = kv->page_stride | kv->layer_stride | kv->value_stride | kv->head_stride | kv->token_stride;
    return any % unit_of(kv->dtype) == 0; /* units are powers of 2 */
}

static int span(const kvk_kv *kv, uint64_t *bytes)
{
    *bytes = layout_row_bytes(kv->dtype, kv->head_size);
    if (add_way(kv->n_pages, kv->page_stride, bytes) < 0 || add_way(kv->n_layers, kv->layer_stride, bytes) < 0 ||
        add_way(2, kv->value_stride, bytes) < 0 || add_way(kv->n_heads, kv->head_stride, bytes) < 0 ||
        add_way(kv->page_tokens, kv->token_stride, bytes) < 0)
        return KVK_EINVAL;
    return *bytes <= INT64_MAX ? 0 : KVK_EINVAL;
}

static int count_scales(const kvk_kv *kv, uint64_t *n)
{
    *n = (uint64_t)kv->n_pages * kv->page_tokens * 2; /* below 2^48 */
    if (checked_mul(*n, kv->n_layers, n) < 0 || checked_mul(*n, kv->n_heads, n) < 0)
        return KVK_EINVAL;
    return *n <= INT64_MAX / sizeof(float) ? 0 : KVK_EINVAL;
}

int check_shape(const kvk_kv *kv, uint64_t *bytes, uint64_t *n_scales)
{
    *n_scales = 0;
    if (!shape_is_valid(kv) || !strides_are_whole(kv) || span(kv, bytes) < 0)
        return KVK_EINVAL;
    return kv->dtype == KVK_I8 || kv->dtype == KVK_I4 ? count_scales(kv, n_scales) : 0;
}

static int is_positive(float x)
{
    return x > 0 && x <= FLT_MAX;
}

static int check_kv(const kvk_kv *kv, uint32_t layer)
{
    uint64_t bytes, n_scales;
    if (check_shape(kv, &bytes, &n_scales) < 0 || layer >= kv->n_layers || !kv->base || (n_scales && !kv->scales))
        return KVK_EINVAL;
    if (kv->dtype == KVK_F8_E4M3 && !(is_positive(kv->k_scale) && is_positive(kv->v_scale)))
        return KVK_EINVAL;
    return is_aligned(kv->base, kv->dtype) ? 0 : KVK_EINVAL;
}

/* ---- rows in the caller's memory */

/* n tokens of `heads` rows at `data`, strides in elements. */
static int check_rows(const kvk_rows *rows, uint64_t n, uint32_t heads, uint32_t head_size)
{
    uint64_t elements = head_size;
    if (n == 0)
        return 0;
    if (!is_float_dtype(rows->dtype) || !rows->data || !is_aligned(rows->data, rows->dtype))
        return KVK_EINVAL;
    if (add_way(n, rows->token_stride, &elements) < 0 || add_way(heads, rows->head_stride, &elements) < 0)
        return KVK_EINVAL;
    return elements <= INT64_MAX / sizeof(float) ? 0 : KVK_EINVAL;
}

int check_append(const kvk_kv *kv, uint32_t layer, const int64_t *slots, uint32_t n, const kvk_rows *k,
                 const kvk_rows *v)
{
    if (check_kv(kv, layer) < 0 || !k || !v || (n && !slots) || check_rows(k, n, kv->n_heads, kv->head_size) < 0 ||
        check_rows(v, n, kv->n_heads, kv->head_size) < 0)
        return KVK_EINVAL;
    int64_t n_slots = (int64_t)kv->n_pages * kv->page_tokens;
    for (uint32_t i = 0; i < n; i++)
        if (slots[i] >= n_slots)
            return KVK_EINVAL;
    return 0;
}

/* ---- attention */

static int ascends_from_0(const int32_t *at, uint32_t n)
{
    int ascends = at[0] == 0;
    for (uint32_t i = 0; i < n; i++)
        ascends &= at[i] <= at[i + 1];
    return ascends;
}

static int arrays_are_there(const kvk_attention *a)
{
    if (!a->indptr || !a->query_indptr || !ascends_from_0(a->indptr, a->n) || !ascends_from_0(a->query_indptr, a->n))
        return 0;
    return (a->n == 0 || a->seq_lens) && (a->indptr[a->n] == 0 || a->pages);
}

/* Without positions the pages must be those of the whole text; with them, some of its pages in order. */
static int pages_are_valid(const kvk_attention *a, uint32_t i)
{
    int64_t page_tokens = a->kv->page_tokens, tokens = a->seq_lens[i], last = -1;
    int32_t begin = a->indptr[i], end = a->indptr[i + 1];
    int valid = a->positions || (end - begin) * page_tokens < tokens + page_tokens;
    valid &= a->positions || (end - begin) * page_tokens >= tokens;
    for (int32_t k = begin; k < end; k++) {
        valid &= a->pages[k] >= 0 && (uint32_t)a->pages[k] < a->kv->n_pages;
        if (!a->positions)
            continue;
        valid &= a->positions[k] > last && a->positions[k] % page_tokens == 0 && a->positions[k] < tokens;
        last = a->positions[k];
    }
    return valid;
}

static int entries_are_valid(const kvk_attention *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        int32_t queries = a->query_indptr[i + 1] - a->query_indptr[i];
        if (queries > a->seq_lens[i] || !pages_are_valid(a, i)) /* so no length is negative */
            return 0;
    }
    return 1;
}

static int check_input(const kvk_attention *a)
{
    if (!a || a->size != sizeof *a || check_kv(a->kv, a->layer) < 0)
        return KVK_EINVAL;
    if (a->n_heads == 0 || a->n_heads % a->kv->n_heads || !(a->scale >= -FLT_MAX && a->scale <= FLT_MAX) ||
        !(a->soft_cap >= 0 && a->soft_cap <= FLT_MAX))
        return KVK_EINVAL;
    if (!arrays_are_there(a) || !entries_are_valid(a))
        return KVK_EINVAL;
    return check_rows(&a->q, (uint64_t)a->query_indptr[a->n], a->n_heads, a->kv->head_size);
}

/* Rows of every entry, and that the masses, which have a place for each row and page, can be counted. */
static int check_masses(const kvk_attention *a, const kvk_attention_out *out)
{
    uint64_t places = 0, values; /* below 2^62: the sum of products of what sums up to 2^31 each, twice */
    for (uint32_t i = 0; i < a->n; i++) {
        uint32_t queries = (uint32_t)(a->query_indptr[i + 1] - a->query_indptr[i]);
        uint32_t rows = out->rows ? out->rows[i] : 1;
        if (rows != 1 && rows != queries)
            return KVK_EINVAL;
        places += (uint64_t)rows * (uint32_t)(a->indptr[i + 1] - a->indptr[i]);
    }
    if (out->near && checked_mul(places, out->near_values, &values) == 0)
        places = values;
    else if (out->near)
        return KVK_EINVAL;
    return places <= INT64_MAX / sizeof(float) ? 0 : KVK_EINVAL;
}

/* Every head has a place among a page's near peaks, or none. */
static int near_is_valid(const kvk_attention *a, const kvk_attention_out *out)
{
    if (out->near_values > INT32_MAX)
        return 0;
    if (!out->near_places)
        return (uint64_t)out->near_first + a->n_heads <= out->near_values;
    for (uint32_t head = 0; head < a->n_heads; head++)
        if (out->near_places[head] >= (int32_t)out->near_values)
            return 0;
    return 1;
}

static int check_output(const kvk_attention *a, const kvk_attention_out *out)
{
    kvk_rows o = {out->o, out->o_dtype, 0, out->o_token_stride, out->o_head_stride};
    if (out->o && check_rows(&o, (uint64_t)a->query_indptr[a->n], a->n_heads, a->kv->head_size) < 0)
        return KVK_EINVAL;
    if (!(out->weight >= 0 && out->weight <= FLT_MAX))
        return KVK_EINVAL;
    if (out->near && (out->near_kind > KVK_NEAR_ERROR || !near_is_valid(a, out)))
        return KVK_EINVAL;
    return check_masses(a, out);
}

int check_attention(const kvk_attention *a, const kvk_attention_out *out)
{
    if (check_input(a) < 0 || !out || out->size != sizeof *out)
        return KVK_EINVAL;
    return check_output(a, out);
}
