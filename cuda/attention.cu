/* cuda/attention.cu: kvk_cuda_attention: which kernel, and whether it can read what it is given. */
#include "cuda/kernels.cuh"
#include "cuda/near.cuh"

#include <cfloat>

namespace
{

const decode_kernels *const all_kernels[] = {&decode_f16,  &decode_f16_e4m3,  &decode_f16_i8,  &decode_f16_i4,
                                             &decode_bf16, &decode_bf16_e4m3, &decode_bf16_i8, &decode_bf16_i4};
const uint32_t head_sizes[] = {64, 80, 96, 128, 256};

/* NULL if there is none. */
const decode_kernel *find_kernel(uint32_t kv_dtype, uint32_t dtype, uint32_t head_size)
{
    for (const decode_kernels *k : all_kernels)
        for (int i = 0; i < 5; i++)
            if (k->kv_dtype == kv_dtype && k->dtype == dtype && head_sizes[i] == head_size)
                return k->by_size[i].kernel ? &k->by_size[i] : NULL;
    return NULL;
}

bool is_finite(float x)
{
    return x >= -FLT_MAX && x <= FLT_MAX;
}

/* Rows are copied 16 bytes at a time, and found in their page with 32 bits for the stride. */
bool kv_is_valid(const kvk_kv *kv, uint32_t layer)
{
    uint64_t strides = kv->page_stride | kv->layer_stride | kv->value_stride | kv->head_stride | kv->token_stride;
    bool has_scales = kv->dtype == KVK_I8 || kv->dtype == KVK_I4;
    return kv->base && layer < kv->n_layers && kv->token_stride <= UINT32_MAX &&
           (reinterpret_cast<uint64_t>(kv->base) | strides) % 16 == 0 && (!has_scales || kv->scales) &&
           (kv->dtype != KVK_F8_E4M3 || (is_finite(kv->k_scale) && is_finite(kv->v_scale)));
}

bool is_float_dtype(uint32_t dtype)
{
    return dtype == KVK_F32 || dtype == KVK_F16 || dtype == KVK_BF16;
}

bool out_is_valid(const kvk_cuda_plan *p, const kvk_attention_out *out)
{
    bool has_places = out && out->near_values <= INT32_MAX &&
                      (out->near_places || uint64_t(out->near_first) + p->n_heads <= out->near_values);
    return out && out->size == sizeof *out && (!out->o || is_float_dtype(out->o_dtype)) &&
           (!out->near || (p->near_peaks && out->near_kind <= KVK_NEAR_ERROR && has_places));
}

bool call_is_valid(const kvk_cuda_plan *p, const kvk_attention *a, const kvk_attention_out *out, uint32_t mass_layer)
{
    return attention_fits(p, a) && kv_is_valid(a->kv, a->layer) && a->q.data && is_finite(a->scale) &&
           a->soft_cap >= 0 && is_finite(a->soft_cap) && out_is_valid(p, out) &&
           mass_layer < (p->n_mass_layers ? p->n_mass_layers : 1);
}

/* Scales of K and V belong to e4m3 alone. */
void set_scales(const kvk_attention *a, decode_parameters *d)
{
    bool is_scaled = a->kv->dtype == KVK_F8_E4M3;
    float scale = a->scale != 0 ? a->scale : 1.0f / __builtin_sqrtf(static_cast<float>(a->kv->head_size));
    d->score_scale = scale * (is_scaled ? a->kv->k_scale : 1.0f) * (a->soft_cap > 0 ? 1.0f / a->soft_cap : 1.0f);
    d->score_cap = a->soft_cap;
    d->o_scale = is_scaled ? a->kv->v_scale : 1.0f;
}

/* After decode with the same parameters. */
int launch_near(const decode_kernel &k, decode_parameters d, void *stream)
{
    launch_shape shape = k.shape;
    shape.blocks = d.plan.n_tiles * d.plan.near_blocks * d.plan.n_kv_heads;
    d.has_masses = 0;
    d.near_blocks = d.plan.near_blocks;
    return launch(k.kernel, shape, d, stream);
}

} // namespace

int kvk_cuda_attention(const kvk_cuda_plan *plan, const kvk_attention *attention, const kvk_attention_out *out,
                       uint32_t mass_layer, void *stream)
{
    decode_parameters d;
    int rc = plan_use(plan, &d.plan);
    if (rc < 0)
        return rc;
    if (!call_is_valid(plan, attention, out, mass_layer))
        return KVK_EINVAL;
    const decode_kernel *k = find_kernel(attention->kv->dtype, attention->q.dtype, attention->kv->head_size);
    if (!k)
        return KVK_EINVAL;
    d.kv = *attention->kv;
    d.attention = *attention;
    d.out = *out;
    d.mass_layer = mass_layer;
    d.has_masses = plan->n_mass_layers > 0;
    d.window = attention->window && attention->window < INT32_MAX ? static_cast<int32_t>(attention->window) : INT32_MAX;
    set_scales(attention, &d);
    d.near_blocks = 0;
    launch_shape shape = k->shape;
    shape.blocks = d.plan.n_items * d.plan.n_kv_heads;
    rc = launch(k->kernel, shape, d, stream);
    return rc == 0 && out->near ? launch_near(*k, d, stream) : rc;
}
