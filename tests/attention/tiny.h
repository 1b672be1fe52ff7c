/* tiny.h: attention small enough to be computed by hand: one entry, pages of one token, heads of one dimension. */
#ifndef TESTS_TINY_H
#define TESTS_TINY_H

#include <kvkeep/attention.h>

#define TINY_TOKENS 4u
#define TINY_HEADS 2u

typedef struct tiny {
    float cache[TINY_TOKENS][2][TINY_HEADS]; /* [page][K|V][KV head] */
    float q[TINY_TOKENS * TINY_HEADS];       /* [query][head] */
    int32_t indptr[2], pages[TINY_TOKENS], positions[TINY_TOKENS], seq_lens[1], query_indptr[2];
    kvk_kv kv;
    kvk_attention attention;
    kvk_attention_out out;
    float o[TINY_TOKENS * TINY_HEADS], lse[TINY_TOKENS * TINY_HEADS]; /* [query][head] */
    float mean[16], peak[16], near[32];
} tiny;

/* One head; pages and positions 0, 1, 2, ...; the last `n_queries` of n tokens are queries of 1; scale 1. K and V are
 * the tests' to set. Everything is asked for. */
static inline void tiny_open(tiny *t, uint32_t n, uint32_t n_queries)
{
    *t = (tiny){.indptr = {0, (int32_t)n}, .seq_lens = {(int32_t)n}, .query_indptr = {0, (int32_t)n_queries}};
    kvk_kv_init(&t->kv, KVK_F32, TINY_TOKENS, 1);
    kvk_kv_shape(&t->kv, 1, 1, 1);
    t->kv.base = t->cache;
    t->kv.page_stride = sizeof t->cache[0];
    t->kv.value_stride = sizeof t->cache[0][0];
    for (uint32_t i = 0; i < TINY_TOKENS; i++)
        t->pages[i] = t->positions[i] = (int32_t)i;
    for (uint32_t i = 0; i < TINY_TOKENS * TINY_HEADS; i++)
        t->q[i] = 1;
    kvk_attention_init(&t->attention);
    kvk_attention *a = &t->attention;
    a->n = a->n_heads = 1;
    a->kv = &t->kv;
    a->indptr = t->indptr;
    a->pages = t->pages;
    a->positions = t->positions;
    a->seq_lens = t->seq_lens;
    a->query_indptr = t->query_indptr;
    a->q = (kvk_rows){t->q, KVK_F32, 0, 1, 1};
    a->scale = 1;
    kvk_attention_out_init(&t->out);
    t->out.o = t->o;
    t->out.o_token_stride = t->out.o_head_stride = 1;
    t->out.lse = t->lse;
    t->out.mean = t->mean;
    t->out.peak = t->peak;
    t->out.near = t->near;
    t->out.near_values = 1;
}

static inline void tiny_set(tiny *t, uint32_t page, float k, float v)
{
    t->cache[page][0][0] = k;
    t->cache[page][1][0] = v;
}

#endif
