/* bench/cache.h: the caches that cases run on. */
#ifndef KVKEEP_TOOLS_BENCH_CACHE_H
#define KVKEEP_TOOLS_BENCH_CACHE_H

#include "kvkeep/bench/bench.h"

#include <kvkeep/kvkeep.h>

#define PAGE_TOKENS 16u
#define RUNNING 256u      /* sequences of a serving step */
#define RUNNING_PAGES 64u /* pages of each */

typedef struct cache_bench {
    kvk_cache *cache;
    uint32_t *tokens;
    kvk_seq seqs[RUNNING];
    kvk_batch_entry entries[RUNNING];
    kvk_plan plan;
    uint32_t next; /* a token never used before, and so an unknown content */
} cache_bench;

/* A cache and room for so many tokens, or NULL. */
cache_bench *bench_cache_open(const kvk_config *config, uint32_t n_tokens);
void bench_cache_close(void *state);

/* The defaults, with pages of PAGE_TOKENS. */
kvk_config bench_cache_config(uint32_t n_pages);

/* Opens the running sequences, one page short of RUNNING_PAGES each, and arrays for their plan. Negative on failure. */
int bench_open_running(cache_bench *s);

/* The steps that fill the last page of each running sequence, back to where they were. Returns microseconds a step. */
double bench_run_steps(void *state);

#endif
