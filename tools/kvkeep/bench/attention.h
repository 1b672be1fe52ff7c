/* bench/attention.h: attention of a batch over random K and V, for cases to be measured on. */
#ifndef KVKEEP_TOOLS_BENCH_ATTENTION_H
#define KVKEEP_TOOLS_BENCH_ATTENTION_H

#include "kvkeep/bench/batch.h"
#include "kvkeep/bench/bench.h"

#define BENCH_KV_BYTES (512ull << 20) /* of a decode's cache: several times what a cache of the processor holds */

enum attention_results { RESULT_O = 0, RESULT_MASSES = 1, RESULT_NEAR = 2 };

typedef struct attention_bench {
    attention_shape shape;
    kvk_kv kv;
    kvk_attention a;
    bench_batch batch;
    void *q, *o;
    float *mean, *peak, *near;
    void *workspace;
    uint64_t workspace_bytes, kv_bytes; /* kv_bytes: without scales */
} attention_bench;

/* NULL without memory. */
attention_bench *bench_attention_open(const attention_shape *shape);
void bench_attention_close(attention_bench *s);

/* Seconds of a call with these results, a sum of attention_results. */
double bench_attend(attention_bench *s, int results);

/* Seconds in which the same threads read the same pages in the same order. */
double bench_read_pages(const attention_bench *s);

#endif
