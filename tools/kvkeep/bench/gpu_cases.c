/* The kernels on a CUDA device: a step of some layers, so that K and V are many times what the device's cache holds,
 * against copying as many bytes, or against the same step without what a case is about. */
#include "kvkeep/bench/gpu.h"

#include <cuda_runtime_api.h>
#include <stdlib.h>

#define GIGA 1e9

/* Layers by heads of Llama-3-8B: 32 texts of 4,096 tokens, 2.1 GB. */
static gpu_shape large(kvk_dtype dtype)
{
    return (gpu_shape){
        .batch =
            {.dtype = dtype, .kv_heads = 8, .group = 4, .head_size = 128, .n = 32, .n_tokens = 4096, .n_queries = 1},
        .q_dtype = dtype == KVK_F16 ? KVK_F16 : KVK_BF16,
        .n_layers = 4};
}

/* Two steps of which one is measured and the other one is the baseline; b may be NULL. */
typedef struct pair {
    gpu_bench *a, *b;
} pair;

static void close_pair(void *state)
{
    pair *p = state;
    if (p->b)
        bench_gpu_close(p->b);
    if (p->a)
        bench_gpu_close(p->a);
    free(p);
}

static void *open_pair(const gpu_shape *a, const gpu_shape *b)
{
    pair *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->a = bench_gpu_open(a);
    p->b = p->a && b ? bench_gpu_open(b) : NULL;
    if (p->a && (p->b || !b))
        return p;
    close_pair(p);
    return NULL;
}

/* ---- what is measured */

static double run_bytes(void *state)
{
    const pair *p = state;
    return bench_gpu_bytes(p->a) / bench_gpu_step(p->a) / GIGA;
}

static double run_copy(void *state)
{
    const pair *p = state;
    return bench_gpu_bytes(p->a) / bench_gpu_copy(p->a) / GIGA;
}

static double run_moves(void *state)
{
    const pair *p = state;
    return bench_gpu_bytes(p->a) / bench_gpu_moves(p->a) / GIGA;
}

static double run_a(void *state)
{
    return bench_gpu_step(((pair *)state)->a) * 1e3;
}

static double run_b(void *state)
{
    return bench_gpu_step(((pair *)state)->b) * 1e3;
}

static double run_tokens_a(void *state)
{
    const pair *p = state;
    return bench_gpu_tokens(p->a) / bench_gpu_step(p->a) / GIGA;
}

static double run_tokens_b(void *state)
{
    const pair *p = state;
    return bench_gpu_tokens(p->b) / bench_gpu_step(p->b) / GIGA;
}

static double run_operations_a(void *state)
{
    const pair *p = state;
    return bench_gpu_operations(p->a) / bench_gpu_step(p->a) / GIGA / 1e3;
}

static double run_operations_b(void *state)
{
    const pair *p = state;
    return bench_gpu_operations(p->b) / bench_gpu_step(p->b) / GIGA / 1e3;
}

/* Microseconds of a layer. */
static double run_layer(void *state)
{
    return bench_gpu_step(((pair *)state)->a) * 1e6 / 32;
}

static double run_layer_copy(void *state)
{
    return bench_gpu_copy(((pair *)state)->a) * 1e6 / 32;
}

/* ---- shapes */

static void *open_large(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size);
    return open_pair(&a, NULL);
}

/* Heads of Llama-3-70B. */
static void *open_group_8(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size);
    a.batch.group = 8;
    return open_pair(&a, NULL);
}

/* Heads of SmolLM2-135M. */
static void *open_small(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size);
    a.batch.kv_heads = a.batch.group = 3;
    a.batch.head_size = 64;
    a.batch.n = 171;
    return open_pair(&a, NULL);
}

static void *open_one(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size);
    a.batch.n = 1;
    a.n_layers = 32;
    return open_pair(&a, NULL);
}

static void *open_moves(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size);
    a.batch.n = 4;
    a.n_layers = 32;
    return open_pair(&a, NULL);
}

/* A text of 65,536 tokens and 128 of 512, against 32 of 4,096. */
static void *open_skewed(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size), b = a;
    a.batch.n = 128;
    a.batch.n_tokens = 512;
    a.batch.n_long = 1;
    a.batch.long_tokens = 65536;
    return open_pair(&a, &b);
}

static void *open_type(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size), b = large(KVK_BF16);
    return open_pair(&a, &b);
}

static void *open_masses(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size), b = a;
    a.has_masses = 1;
    return open_pair(&a, &b);
}

static void *open_near(const bench_case *me)
{
    gpu_shape a = large((kvk_dtype)me->size), b;
    a.has_masses = 1;
    b = a;
    a.has_near = 1;
    return open_pair(&a, &b);
}

static void *open_fixed(const bench_case *me)
{
    gpu_shape a = large(KVK_BF16), b = a;
    a.split_tokens = me->size;
    return open_pair(&a, &b);
}

static void *open_drafts(const bench_case *me)
{
    gpu_shape a = large(KVK_BF16), b = a;
    a.batch.n_queries = me->size;
    return open_pair(&a, &b);
}

/* Four texts' chunks of so many queries, against chunks of 16. */
static void *open_chunk(const bench_case *me)
{
    gpu_shape a = large(KVK_BF16), b;
    a.batch.n = 4;
    b = a;
    a.batch.n_queries = me->size;
    b.batch.n_queries = 16;
    return open_pair(&a, &b);
}

#define AGAINST_COPY(name, dtype, open)                                                                                \
    {                                                                                                                  \
        name, "GB/s", "copying as many bytes", dtype, open, run_bytes, run_copy, close_pair                            \
    }
#define AGAINST_STEP(name, baseline, size, open)                                                                       \
    {                                                                                                                  \
        name, "ms", baseline, size, open, run_a, run_b, close_pair                                                     \
    }
#define AGAINST_BF16(name, dtype)                                                                                      \
    {                                                                                                                  \
        name, "Gtok/s", "bf16", dtype, open_type, run_tokens_a, run_tokens_b, close_pair                               \
    }

const bench_case bench_gpu_cases[] = {
    AGAINST_COPY("decode.bf16.32/8x128", KVK_BF16, open_large),
    AGAINST_COPY("decode.f16.32/8x128", KVK_F16, open_large),
    AGAINST_COPY("decode.bf16.64/8x128", KVK_BF16, open_group_8),
    AGAINST_COPY("decode.f16.9/3x64", KVK_F16, open_small),
    AGAINST_COPY("decode.e4m3.32/8x128", KVK_F8_E4M3, open_large),
    AGAINST_COPY("decode.i8.32/8x128", KVK_I8, open_large),
    AGAINST_COPY("decode.i4.32/8x128", KVK_I4, open_large),
    AGAINST_BF16("decode.e4m3", KVK_F8_E4M3),
    AGAINST_BF16("decode.i8", KVK_I8),
    AGAINST_BF16("decode.i4", KVK_I4),
    {"decode.one_text", "us/layer", "copying as many bytes", KVK_BF16, open_one, run_layer, run_layer_copy, close_pair},
    AGAINST_STEP("decode.skewed", "texts of one length", KVK_BF16, open_skewed),
    AGAINST_STEP("decode.mass", "without masses", KVK_BF16, open_masses),
    AGAINST_STEP("decode.near", "masses only", KVK_BF16, open_near),
    AGAINST_STEP("decode.fixed_512", "parts as the batch suggests", 512, open_fixed),
    AGAINST_STEP("decode.drafts_4", "one query each", 4, open_drafts),
    {"chunk.512x4096", "TFLOP/s", "chunks of 16", 512, open_chunk, run_operations_a, run_operations_b, close_pair},
    {"moves.copy", "GB/s", "copying as many bytes", KVK_BF16, open_moves, run_moves, run_copy, close_pair},
};
const uint32_t bench_gpu_count = sizeof bench_gpu_cases / sizeof *bench_gpu_cases;

int bench_gpu_ready(trace_error *error)
{
    int n = 0;
    cudaError_t rc = cudaGetDeviceCount(&n);
    if (rc == cudaSuccess && n > 0)
        return 0;
    return trace_failed(error, (trace_place){"kvkeep bench", 0, "gpu"}, "no CUDA device: %s",
                        rc == cudaSuccess ? "none is there" : cudaGetErrorString(rc));
}
