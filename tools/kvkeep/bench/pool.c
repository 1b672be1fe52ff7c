/* bench/pool.c: what the manager's hot paths cost: pages got and freed, reclaim, a serving step, a prefix hit. */
#include "kvkeep/bench/cache.h"

#include "page/store.h"

#include <kvkeep/kvkeep.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#if KVK_HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>
#define MALLOC_NAME "jemalloc malloc/free of 64 bytes"
#define take_block() mallocx(64, 0)
#define give_block(block) sdallocx(block, 64, 0)
#else
#define MALLOC_NAME "malloc/free of 64 bytes"
#define take_block() malloc(64)
#define give_block(block) free(block)
#endif

#define POOL_PAGES 100000u

/* ---- pages got and freed in batches (vLLM's block pool benchmark has the same shape) */

typedef struct pool_bench {
    memory memory;
    store store;
    uint32_t batch;
    uint32_t pages[1000];
    void *blocks[1000];
} pool_bench;

static void *open_pool(const bench_case *me)
{
    pool_bench *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->batch = me->size;
    if (memory_open(&s->memory, NULL) < 0) {
        free(s);
        return NULL;
    }
    if (pool_open(&s->store.pool, &s->memory, POOL_PAGES, &reclaim_lru) == 0 &&
        pool_prepare(&s->store.pool, POOL_PAGES) == 0)
        return s;
    pool_close(&s->store.pool);
    memory_close(&s->memory);
    free(s);
    return NULL;
}

static void close_pool(void *state)
{
    pool_bench *s = state;
    pool_close(&s->store.pool);
    memory_close(&s->memory);
    free(s);
}

/* All pages once, so that none is new to the CPU's caches because it was never taken. */
static double run_pool(void *state)
{
    pool_bench *s = state;
    double start = bench_now_ns();
    for (uint32_t done = 0; done < POOL_PAGES; done += s->batch) {
        for (uint32_t i = 0; i < s->batch; i++)
            s->pages[i] = store_take(&s->store);
        for (uint32_t i = s->batch; i-- > 0;)
            pool_unref(&s->store.pool, s->pages[i], 0);
    }
    return (bench_now_ns() - start) / POOL_PAGES;
}

static double run_malloc(void *state)
{
    pool_bench *s = state;
    double start = bench_now_ns();
    for (uint32_t done = 0; done < POOL_PAGES; done += s->batch) {
        for (uint32_t i = 0; i < s->batch; i++) {
            s->blocks[i] = take_block();
            __asm__ volatile("" : : "r"(s->blocks[i]) : "memory"); /* a pair must not be optimised away */
        }
        for (uint32_t i = s->batch; i-- > 0;)
            give_block(s->blocks[i]);
    }
    return (bench_now_ns() - start) / POOL_PAGES;
}

static cache_bench *open_cache(uint32_t n_pages, uint32_t n_tokens)
{
    kvk_config config = bench_cache_config(n_pages);
    return bench_cache_open(&config, n_tokens);
}

/* ---- reclaim of 1,000 pages among 41,000 cached leaves (where one peer took 70 ms, sglang) */

#define LEAVES 41000u
#define RECLAIMED 1000u

/* Adds n cached one-page contents that nobody has named yet. */
static int add_leaves(cache_bench *s, uint32_t n)
{
    int rc = 0;
    for (uint32_t i = 0; i < n && rc >= 0; i++) {
        kvk_seq seq;
        s->tokens[0] = ++s->next;
        kvk_text text = {.n_tokens = PAGE_TOKENS, .tokens = s->tokens};
        rc = kvk_seq_open(s->cache, NULL, &seq);
        rc = rc < 0 ? rc : kvk_reserve(s->cache, seq, PAGE_TOKENS, KVK_RECLAIM);
        rc = rc < 0 ? rc : kvk_commit(s->cache, seq, &text);
        rc = rc < 0 ? rc : kvk_seq_close(s->cache, seq);
    }
    return rc;
}

static void *open_reclaim(const bench_case *me)
{
    cache_bench *s = open_cache(me->size, PAGE_TOKENS);
    if (!s || add_leaves(s, me->size) >= 0)
        return s;
    bench_cache_close(s);
    return NULL;
}

/* Microseconds to reserve RECLAIMED pages. */
static double time_reserve(cache_bench *s)
{
    kvk_seq seq = 0;
    kvk_seq_open(s->cache, NULL, &seq);
    double start = bench_now_ns();
    kvk_reserve(s->cache, seq, RECLAIMED * PAGE_TOKENS, KVK_RECLAIM);
    double us = (bench_now_ns() - start) / 1e3;
    kvk_seq_close(s->cache, seq);
    return us;
}

static double run_reclaim(void *state)
{
    return time_reserve(state);
}

/* The pages that the run reclaimed are free now; afterwards they become cached leaves again. */
static double run_reserve_free(void *state)
{
    double us = time_reserve(state);
    add_leaves(state, RECLAIMED);
    return us;
}

/* ---- a serving step: 256 sequences of 64 pages, one new token each */

#define STEPS PAGE_TOKENS

static void *open_step(const bench_case *me)
{
    cache_bench *s = open_cache(me->size, RUNNING_PAGES * PAGE_TOKENS);
    if (!s || bench_open_running(s) >= 0)
        return s;
    bench_cache_close(s);
    return NULL;
}

static double run_copy_tables(void *state)
{
    static const uint32_t source[RUNNING * RUNNING_PAGES];
    cache_bench *s = state;
    double start = bench_now_ns();
    for (uint32_t i = 0; i < STEPS; i++) {
        memcpy(s->plan.pages, source, sizeof source);
        __asm__ volatile("" : : "r"(s->plan.pages) : "memory");
    }
    return (bench_now_ns() - start) / 1e3 / STEPS;
}

/* ---- a prefix hit */

#define HITS 64u

static void *open_attach(const bench_case *me)
{
    uint32_t n = me->size;
    cache_bench *s = open_cache(2 * n / PAGE_TOKENS, n + 1);
    if (!s)
        return NULL;
    for (uint32_t i = 0; i <= n; i++)
        s->tokens[i] = i;
    kvk_text text = {.n_tokens = n, .tokens = s->tokens};
    s->next = n;
    if (kvk_seq_open(s->cache, NULL, &s->seqs[0]) == 0 && kvk_reserve(s->cache, s->seqs[0], n, KVK_RECLAIM) >= 0 &&
        kvk_commit(s->cache, s->seqs[0], &text) >= 0 && kvk_seq_close(s->cache, s->seqs[0]) >= 0)
        return s;
    bench_cache_close(s);
    return NULL;
}

static double run_attach(void *state)
{
    cache_bench *s = state;
    kvk_text prompt = {.n_tokens = s->next + 1, .tokens = s->tokens};
    double ns = 0;
    for (uint32_t i = 0; i < HITS; i++) {
        kvk_seq seq = 0;
        kvk_seq_open(s->cache, NULL, &seq);
        double start = bench_now_ns();
        kvk_prefix_attach(s->cache, seq, &prompt);
        ns += bench_now_ns() - start;
        kvk_seq_close(s->cache, seq);
    }
    return ns / 1e3 / HITS;
}

/* Only the hashing that any content index has to do, one page after the other. */
static double run_hash(void *state)
{
    const cache_bench *s = state;
    uint64_t seed = 0;
    double start = bench_now_ns();
    for (uint32_t i = 0; i < HITS; i++)
        for (uint32_t at = 0; at < s->next; at += PAGE_TOKENS)
            seed = XXH3_128bits_withSeed(s->tokens + at, PAGE_TOKENS * sizeof *s->tokens, seed).low64;
    double us = (bench_now_ns() - start) / 1e3 / HITS;
    __asm__ volatile("" : : "r"(seed));
    return us;
}

#define POOL_CASE(name, n)                                                                                             \
    {                                                                                                                  \
        name, "ns/page", MALLOC_NAME, n, open_pool, run_pool, run_malloc, close_pool                                   \
    }

const bench_case bench_pool_cases[] = {
    POOL_CASE("pool.alloc_free", 1),
    POOL_CASE("pool.batch_10", 10),
    POOL_CASE("pool.batch_50", 50),
    POOL_CASE("pool.batch_100", 100),
    POOL_CASE("pool.batch_500", 500),
    POOL_CASE("pool.batch_1000", 1000),
    {"pool.reclaim_41k", "us", "reserve of 1,000 free pages", LEAVES, open_reclaim, run_reclaim, run_reserve_free,
     bench_cache_close},
    {"step.256x64", "us/step", "memcpy of the same tables", RUNNING *RUNNING_PAGES, open_step, bench_run_steps,
     run_copy_tables, bench_cache_close},
    {"prefix.attach_4096", "us", "XXH3-128 of the prompt's pages", 4096, open_attach, run_attach, run_hash,
     bench_cache_close},
};
const uint32_t bench_pool_count = sizeof bench_pool_cases / sizeof *bench_pool_cases;
