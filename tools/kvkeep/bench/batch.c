#include "kvkeep/bench/batch.h"

#include <stdlib.h>

static uint64_t next(uint64_t *state) /* SplitMix64 */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

float bench_normal(uint64_t *random)
{
    float sum = 0;
    for (uint32_t i = 0; i < 4; i++, sum -= 0.5f)
        sum += (float)(next(random) >> 40) / 16777216;
    return sum * 1.7320508f;
}

static void fill_lists(const attention_shape *shape, bench_batch *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t tokens = i < shape->n_long ? shape->long_tokens : shape->n_tokens;
        b->seq_lens[i] = (int32_t)tokens;
        b->indptr[i + 1] = b->indptr[i] + (int32_t)((tokens + BENCH_PAGE_TOKENS - 1) / BENCH_PAGE_TOKENS);
        b->query_indptr[i + 1] = b->query_indptr[i] + (int32_t)shape->n_queries;
    }
    b->n_pages = (uint32_t)b->indptr[b->n];
    b->n_queries = (uint32_t)b->query_indptr[b->n];
    b->n_tokens = (uint64_t)shape->n * shape->n_tokens + (uint64_t)shape->n_long * shape->long_tokens;
}

static void fill_pages(const attention_shape *shape, bench_batch *b)
{
    uint64_t random = 2;
    uint32_t n = b->n_pages;
    for (uint32_t i = 0; i < n; i++)
        b->pages[i] = (int32_t)i;
    for (uint32_t i = 0; i < n && !shape->is_contiguous; i++) {
        uint32_t other = i + (uint32_t)(next(&random) % (n - i));
        int32_t page = b->pages[other];
        b->pages[other] = b->pages[i];
        b->pages[i] = page;
    }
}

int bench_batch_open(const attention_shape *shape, bench_batch *batch)
{
    uint32_t n = shape->n + shape->n_long;
    *batch = (bench_batch){.n = n};
    batch->indptr = calloc(n + 1, sizeof *batch->indptr);
    batch->seq_lens = calloc(n, sizeof *batch->seq_lens);
    batch->query_indptr = calloc(n + 1, sizeof *batch->query_indptr);
    if (!batch->indptr || !batch->seq_lens || !batch->query_indptr)
        return -1;
    fill_lists(shape, batch);
    batch->pages = calloc(batch->n_pages, sizeof *batch->pages);
    if (!batch->pages)
        return -1;
    fill_pages(shape, batch);
    return 0;
}

void bench_batch_close(bench_batch *batch)
{
    free(batch->indptr);
    free(batch->pages);
    free(batch->seq_lens);
    free(batch->query_indptr);
}
