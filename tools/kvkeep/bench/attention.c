#define _DEFAULT_SOURCE /* madvise */
#include "kvkeep/bench/attention.h"
#include "kvkeep/bench/yardsticks.h"

#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_BYTES (2ull << 20)

/* ---- K and V: one page's tokens of random numbers, for every page anew from another place of them */

#define DIFFERENT 256u /* tokens */

static void fill_page(const attention_bench *s, uint32_t page, const float *rows)
{
    uint64_t token = (uint64_t)s->kv.n_heads * s->kv.head_size;
    int64_t slots[BENCH_PAGE_TOKENS];
    kvk_rows k = {.data = rows + page % DIFFERENT * token,
                  .dtype = KVK_F32,
                  .token_stride = token,
                  .head_stride = s->kv.head_size};
    kvk_rows v = k;
    v.data = rows + (page + DIFFERENT / 2) % DIFFERENT * token;
    for (uint32_t i = 0; i < BENCH_PAGE_TOKENS; i++)
        slots[i] = (int64_t)page * BENCH_PAGE_TOKENS + i;
    kvk_append(&s->kv, 0, slots, BENCH_PAGE_TOKENS, &k, &v);
}

static int fill_pages(const attention_bench *s)
{
    uint64_t random = 1, n = (uint64_t)(DIFFERENT + BENCH_PAGE_TOKENS) * s->kv.n_heads * s->kv.head_size;
    float *rows = malloc(n * sizeof *rows);
    if (!rows)
        return -1;
    for (uint64_t i = 0; i < n; i++)
        rows[i] = bench_normal(&random);
    int64_t n_pages = s->kv.n_pages;
#pragma omp parallel for
    for (int64_t page = 0; page < n_pages; page++)
        fill_page(s, (uint32_t)page, rows);
    free(rows);
    return 0;
}

/* In huge pages, where there are any: pages of 4 KB in random order cost about a quarter of the bandwidth. */
static void *take_huge(uint64_t bytes)
{
    uint64_t whole = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    void *memory = aligned_alloc(HUGE_BYTES, whole);
    if (memory)
        madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

static int open_kv(attention_bench *s, uint32_t n_pages)
{
    uint64_t n_scales;
    kvk_kv_init(&s->kv, s->shape.dtype, n_pages, BENCH_PAGE_TOKENS);
    if (kvk_kv_shape(&s->kv, 1, s->shape.kv_heads, s->shape.head_size) < 0 ||
        kvk_kv_bytes(&s->kv, &s->kv_bytes, &n_scales) < 0)
        return -1;
    s->kv.base = take_huge(s->kv_bytes);
    s->kv.scales = n_scales ? malloc(n_scales * sizeof(float)) : NULL;
    return s->kv.base && (s->kv.scales || !n_scales) ? fill_pages(s) : -1;
}

/* ---- the batch */

static int open_rows(attention_bench *s)
{
    uint64_t n = (uint64_t)s->batch.query_indptr[s->a.n] * s->a.n_heads * s->kv.head_size, random = 3;
    float *q = malloc(n * sizeof *q);
    s->q = q;
    s->o = malloc(n * sizeof(float));
    for (uint64_t i = 0; q && i < n; i++)
        q[i] = bench_normal(&random);
    s->a.q = (kvk_rows){.data = q,
                        .dtype = KVK_F32,
                        .token_stride = (uint64_t)s->a.n_heads * s->kv.head_size,
                        .head_stride = s->kv.head_size};
    return s->q && s->o ? 0 : -1;
}

static kvk_attention_out results_of(const attention_bench *s, int results)
{
    kvk_attention_out out;
    kvk_attention_out_init(&out);
    out.o = s->o;
    out.o_dtype = KVK_F32;
    out.o_token_stride = s->a.q.token_stride;
    out.o_head_stride = s->a.q.head_stride;
    out.mean = results & RESULT_MASSES ? s->mean : NULL;
    out.peak = results & RESULT_MASSES ? s->peak : NULL;
    out.near = results & RESULT_NEAR ? s->near : NULL;
    out.near_kind = KVK_NEAR_ERROR;
    out.near_values = s->a.n_heads;
    return out;
}

static int open_results(attention_bench *s)
{
    uint64_t pages = (uint64_t)s->batch.indptr[s->a.n];
    kvk_attention_out out;
    s->mean = calloc(pages, sizeof *s->mean);
    s->peak = calloc(pages, sizeof *s->peak);
    s->near = calloc(pages * s->a.n_heads, sizeof *s->near);
    if (!s->mean || !s->peak || !s->near)
        return -1;
    out = results_of(s, RESULT_MASSES | RESULT_NEAR);
    int64_t bytes = kvk_attention_workspace(&s->a, &out);
    s->workspace_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    s->workspace = bytes > 0 ? aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64) : NULL;
    return s->workspace ? 0 : -1;
}

attention_bench *bench_attention_open(const attention_shape *shape)
{
    attention_bench *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->shape = *shape;
    if (bench_batch_open(shape, &s->batch) == 0 && open_kv(s, s->batch.n_pages) == 0) {
        kvk_attention_init(&s->a);
        s->a.n = s->batch.n;
        s->a.kv = &s->kv;
        s->a.n_heads = shape->kv_heads * shape->group;
        s->a.indptr = s->batch.indptr;
        s->a.pages = s->batch.pages;
        s->a.seq_lens = s->batch.seq_lens;
        s->a.query_indptr = s->batch.query_indptr;
        if (open_rows(s) == 0 && open_results(s) == 0)
            return s;
    }
    bench_attention_close(s);
    return NULL;
}

void bench_attention_close(attention_bench *s)
{
    void *all[] = {s->kv.base, s->kv.scales, s->q, s->o, s->mean, s->peak, s->near, s->workspace};
    bench_batch_close(&s->batch);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    free(s);
}

/* ---- what is measured */

double bench_attend(attention_bench *s, int results)
{
    kvk_attention_out out = results_of(s, results);
    double start = bench_now_ns();
    kvk_attention_cpu(&s->a, &out, s->workspace, s->workspace_bytes);
    return (bench_now_ns() - start) / 1e9;
}

static const char *page_of(const attention_bench *s, int64_t i)
{
    return (const char *)s->kv.base + (uint64_t)s->batch.pages[i] * s->kv.page_stride;
}

double bench_read_pages(const attention_bench *s)
{
    int64_t n = s->kv.n_pages;
    double start = bench_now_ns();
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i++) {
        uint64_t sum = bench_read(page_of(s, i), s->kv.page_stride, page_of(s, i + 1 < n ? i + 1 : i));
        __asm__ volatile("" : : "r"(sum) : "memory");
    }
    return (bench_now_ns() - start) / 1e9;
}
