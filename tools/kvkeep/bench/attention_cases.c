/* Attention on the CPU: decoding against what reading the pages costs, what masses add, prefill against sgemm. */
#include "kvkeep/bench/attention.h"
#include "kvkeep/bench/yardsticks.h"

#include <stdlib.h>

#define GIGA 1e9

/* ---- two runs over shapes that may be the same, by the name of the case */

typedef struct pair {
    attention_bench *a, *b;
    int results_a, results_b;
} pair;

static void close_pair(void *state)
{
    pair *p = state;
    if (p->b && p->b != p->a)
        bench_attention_close(p->b);
    if (p->a)
        bench_attention_close(p->a);
    free(p);
}

static pair *open_pair(const attention_shape *a, const attention_shape *b)
{
    pair *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->a = bench_attention_open(a);
    p->b = b ? bench_attention_open(b) : p->a;
    if (p->a && p->b)
        return p;
    close_pair(p);
    return NULL;
}

/* ---- shapes: heads of Llama-3-8B and of SmolLM2-135M, 512 MB of 16-bit numbers */

static attention_shape large(kvk_dtype dtype)
{
    return (attention_shape){
        .dtype = dtype, .kv_heads = 8, .group = 4, .head_size = 128, .n = 32, .n_tokens = 4096, .n_queries = 1};
}

static attention_shape small(kvk_dtype dtype)
{
    return (attention_shape){
        .dtype = dtype, .kv_heads = 3, .group = 3, .head_size = 64, .n = 171, .n_tokens = 4096, .n_queries = 1};
}

static void *open_large(const bench_case *me)
{
    attention_shape shape = large((kvk_dtype)me->size);
    return open_pair(&shape, NULL);
}

static void *open_small(const bench_case *me)
{
    attention_shape shape = small((kvk_dtype)me->size);
    return open_pair(&shape, NULL);
}

static double run_decode(void *state)
{
    pair *p = state;
    return (double)p->a->kv_bytes / bench_attend(p->a, RESULT_O) / GIGA;
}

static double run_read(void *state)
{
    pair *p = state;
    return (double)p->a->kv_bytes / bench_read_pages(p->a) / GIGA;
}

/* ---- what results add */

static void *open_masses(const bench_case *me)
{
    pair *p = open_large(&(bench_case){.size = KVK_F16});
    if (p) {
        p->results_a = (int)me->size;
        p->results_b = (int)me->size / 2; /* masses, or without */
    }
    return p;
}

static double run_a(void *state)
{
    pair *p = state;
    return bench_attend(p->a, p->results_a) * 1e3;
}

static double run_b(void *state)
{
    pair *p = state;
    return bench_attend(p->b, p->results_b) * 1e3;
}

/* ---- one shape against another of as many tokens */

static void *open_int8(const bench_case *me)
{
    attention_shape a = large((kvk_dtype)me->size), b = large(KVK_F16);
    return open_pair(&a, &b);
}

static void *open_paged(const bench_case *me)
{
    attention_shape a = large((kvk_dtype)me->size), b = a;
    b.is_contiguous = 1;
    return open_pair(&a, &b);
}

static void *open_skewed(const bench_case *me)
{
    attention_shape a = large((kvk_dtype)me->size), b = a;
    a.n = 128;
    a.n_tokens = 512;
    a.n_long = 1;
    a.long_tokens = 65536;
    return open_pair(&a, &b);
}

static double run_tokens(const attention_bench *s, double seconds)
{
    return (double)s->batch.n_tokens / seconds / 1e6;
}

static double run_tokens_a(void *state)
{
    pair *p = state;
    return run_tokens(p->a, bench_attend(p->a, RESULT_O));
}

static double run_tokens_b(void *state)
{
    pair *p = state;
    return run_tokens(p->b, bench_attend(p->b, RESULT_O));
}

/* ---- the bandwidth itself: pages in random order against all memory in order */

static double run_stream(void *state)
{
    pair *p = state;
    return (double)p->a->kv_bytes / bench_read_stream(p->a->kv.base, p->a->kv_bytes) / GIGA;
}

/* ---- prefill */

#if KVK_HAVE_OPENBLAS

typedef struct prefill {
    attention_bench *s;
    float *matrices;
} prefill;

static void close_prefill(void *state)
{
    prefill *p = state;
    if (p->s)
        bench_attention_close(p->s);
    free(p->matrices);
    free(p);
}

static void *open_prefill(const bench_case *me)
{
    attention_shape shape = large((kvk_dtype)me->size);
    prefill *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    shape.n = 1;
    shape.n_queries = 512;
    p->s = bench_attention_open(&shape);
    p->matrices = bench_sgemm_open();
    if (p->s && p->matrices)
        return p;
    close_prefill(p);
    return NULL;
}

/* Only the pairs of query and key that causal order leaves. */
static double run_prefill(void *state)
{
    prefill *p = state;
    double queries = p->s->shape.n_queries, pairs = queries * (p->s->shape.n_tokens - (queries - 1) / 2);
    double operations = 4 * pairs * p->s->a.n_heads * p->s->kv.head_size;
    return operations / bench_attend(p->s, RESULT_O) / GIGA;
}

static double run_sgemm(void *state)
{
    return bench_sgemm(((prefill *)state)->matrices);
}

#define PREFILL_CASES                                                                                                  \
    {"prefill.f16.512x4096", "GFLOP/s",   "sgemm by OpenBLAS", KVK_F16,                                                \
     open_prefill,           run_prefill, run_sgemm,           close_prefill},
#else
#define PREFILL_CASES
#endif

#define DECODE_CASE(name, dtype, open)                                                                                 \
    {                                                                                                                  \
        name, "GB/s", "reading these pages", dtype, open, run_decode, run_read, close_pair                             \
    }

const bench_case bench_attention_cases[] = {
    {"read.32/8x128", "GB/s", "reading in order", KVK_F16, open_large, run_read, run_stream, close_pair},
    {"read.9/3x64", "GB/s", "reading in order", KVK_F16, open_small, run_read, run_stream, close_pair},
    DECODE_CASE("decode.f16.32/8x128", KVK_F16, open_large),
    DECODE_CASE("decode.bf16.32/8x128", KVK_BF16, open_large),
    DECODE_CASE("decode.f16.9/3x64", KVK_F16, open_small),
    DECODE_CASE("decode.bf16.9/3x64", KVK_BF16, open_small),
    {"decode.mass", "ms", "without masses", RESULT_MASSES, open_masses, run_a, run_b, close_pair},
    {"decode.near", "ms", "masses only", RESULT_MASSES | RESULT_NEAR, open_masses, run_a, run_b, close_pair},
    {"decode.i8", "Mtok/s", "f16", KVK_I8, open_int8, run_tokens_a, run_tokens_b, close_pair},
    {"decode.paged", "Mtok/s", "a contiguous layout", KVK_F16, open_paged, run_tokens_a, run_tokens_b, close_pair},
    {"decode.skewed", "Mtok/s", "texts of one length", KVK_F16, open_skewed, run_tokens_a, run_tokens_b, close_pair},
    PREFILL_CASES};
const uint32_t bench_attention_count = sizeof bench_attention_cases / sizeof *bench_attention_cases;
