/* bench/batch.h: batches that attention is measured on, whichever processor it runs on. */
#ifndef KVKEEP_TOOLS_BENCH_BATCH_H
#define KVKEEP_TOOLS_BENCH_BATCH_H

#include <kvkeep/attention.h>

#define BENCH_PAGE_TOKENS 16u

/* What is attended to. The long texts come first. */
typedef struct attention_shape {
    kvk_dtype dtype; /* of K and V */
    uint32_t kv_heads, group, head_size;
    uint32_t n, n_tokens;         /* texts, and tokens of each */
    uint32_t n_long, long_tokens; /* texts besides */
    uint32_t n_queries;           /* of each text */
    int is_contiguous;            /* pages of a text follow one another; else in random order */
} attention_shape;

/* A plan's lists. */
typedef struct bench_batch {
    int32_t *indptr, *pages, *seq_lens, *query_indptr;
    uint32_t n, n_pages, n_queries;
    uint64_t n_tokens;
} bench_batch;

/* 0, or -1 without memory; to be closed either way. */
int bench_batch_open(const attention_shape *shape, bench_batch *batch);
void bench_batch_close(bench_batch *batch);

/* About normal, of variance 1. */
float bench_normal(uint64_t *random);

#endif
