/* cuda/append.cu: new tokens' K and V into their slots: a warp for each row. */
#include "cuda/launch.cuh"
#include "cuda/ptx.cuh"

#include <kvkeep/cuda.h>

namespace
{

const uint32_t WARPS = 4;

struct append_parameters {
    kvk_kv kv;
    uint32_t layer;
    kvk_cuda_tokens tokens;
};

/* A row of a token: from where to where. */
struct append_row {
    const unsigned char *from;
    unsigned char *to;
    uint32_t dtype;
    float *scale; /* where its scale goes; NULL: the type has none for a row */
    float given;  /* the scale of all rows */
};

/* False if there is no such token, or no place for it. */
KVK_DEVICE bool find_row(const append_parameters &p, uint64_t index, append_row *row)
{
    const kvk_kv &kv = p.kv;
    uint32_t value = index % 2, head = index / 2 % kv.n_heads;
    uint64_t token = index / 2 / kv.n_heads;
    int64_t slot = token < p.tokens.n ? p.tokens.slots[token] : -1;
    if (slot < 0 || slot >= static_cast<int64_t>(kv.n_pages) * kv.page_tokens)
        return false;
    uint32_t page = static_cast<uint32_t>(slot / kv.page_tokens), at = static_cast<uint32_t>(slot % kv.page_tokens);
    const kvk_rows &rows = value ? p.tokens.v : p.tokens.k;
    uint64_t element = token * rows.token_stride + head * rows.head_stride;
    row->from = static_cast<const unsigned char *>(rows.data) + element * layout_row_bytes(rows.dtype, 1);
    row->to = static_cast<unsigned char *>(kv.base) + layout_row(&kv, page, p.layer, value, head, at);
    row->dtype = rows.dtype;
    row->scale = dtype_has_scales(kv.dtype) ? kv.scales + layout_scale(&kv, page, p.layer, value, head, at) : NULL;
    row->given = value ? kv.v_scale : kv.k_scale;
    return true;
}

/* As row_scale of convert.h. */
KVK_DEVICE float find_scale(const append_row &row, uint32_t n, float most)
{
    uint32_t largest = 0;
    for (uint32_t d = threadIdx.x % 32; d < n; d += 32) {
        uint32_t magnitude = float_bits(load_element(row.from, row.dtype, d)) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    for (uint32_t distance = 16; distance > 0; distance /= 2) {
        uint32_t other = __shfl_xor_sync(ALL_LANES, largest, distance);
        largest = other > largest ? other : largest;
    }
    return bits_float(largest) / most;
}

KVK_DEVICE void store_i8(const append_row &row, uint32_t n, float scale)
{
    for (uint32_t d = threadIdx.x % 32; d < n; d += 32)
        row.to[d] = static_cast<unsigned char>(quantise(load_element(row.from, row.dtype, d), scale, KVK_I8));
}

KVK_DEVICE void store_i4(const append_row &row, uint32_t n, float scale)
{
    for (uint32_t i = threadIdx.x % 32; i < n / 2; i += 32) {
        int32_t low = quantise(load_element(row.from, row.dtype, 2 * i), scale, KVK_I4);
        int32_t high = quantise(load_element(row.from, row.dtype, 2 * i + 1), scale, KVK_I4);
        row.to[i] = static_cast<unsigned char>((low + 8) | (high + 8) << 4);
    }
}

KVK_DEVICE void store_floats(const append_row &row, uint32_t n, uint32_t dtype)
{
    float scale = dtype == KVK_F8_E4M3 ? row.given : 1.0f;
    for (uint32_t d = threadIdx.x % 32; d < n; d += 32)
        store_element(row.to, dtype, d, load_element(row.from, row.dtype, d) / scale);
}

__global__ void __launch_bounds__(WARPS * 32) append(const __grid_constant__ append_parameters p)
{
    append_row row;
    uint32_t n = p.kv.head_size, dtype = p.kv.dtype;
    if (!find_row(p, static_cast<uint64_t>(blockIdx.x) * WARPS + threadIdx.x / 32, &row))
        return;
    if (row.dtype == dtype) {
        for (uint32_t i = threadIdx.x % 32; i < layout_row_bytes(dtype, n); i += 32)
            row.to[i] = row.from[i];
    } else if (row.scale) {
        float scale = find_scale(row, n, dtype_most(dtype));
        *row.scale = scale;
        if (dtype == KVK_I8)
            store_i8(row, n, scale);
        else
            store_i4(row, n, scale);
    } else {
        store_floats(row, n, dtype);
    }
}

bool rows_are_valid(const kvk_rows &rows)
{
    return rows.data && (rows.dtype == KVK_F32 || rows.dtype == KVK_F16 || rows.dtype == KVK_BF16);
}

bool kv_is_valid(const kvk_kv *kv, uint32_t layer)
{
    return kv && kv->size == sizeof *kv && kv->base && kv->dtype <= KVK_I4 && layer < kv->n_layers && kv->n_heads > 0 &&
           kv->page_tokens > 0 && kv->head_size > 0 && (kv->dtype != KVK_I4 || kv->head_size % 2 == 0) &&
           (!dtype_has_scales(kv->dtype) || kv->scales) &&
           (kv->dtype != KVK_F8_E4M3 || (kv->k_scale > 0 && kv->v_scale > 0));
}

} // namespace

int kvk_cuda_append(const kvk_kv *kv, uint32_t layer, const kvk_cuda_tokens *tokens, void *stream)
{
    if (!kv_is_valid(kv, layer) || !tokens || tokens->size != sizeof *tokens)
        return KVK_EINVAL;
    if (tokens->n == 0)
        return 0;
    uint64_t rows = static_cast<uint64_t>(tokens->n) * kv->n_heads * 2, blocks = (rows + WARPS - 1) / WARPS;
    if (!tokens->slots || !rows_are_valid(tokens->k) || !rows_are_valid(tokens->v) || blocks > INT32_MAX)
        return KVK_EINVAL;
    append_parameters p = {*kv, layer, *tokens};
    launch_shape shape = {static_cast<uint32_t>(blocks), WARPS * 32, 0};
    return launch(append, shape, p, stream);
}
