#include "kvkeep/bench/cache.h"

#include <stdlib.h>

#define STEPS PAGE_TOKENS

kvk_config bench_cache_config(uint32_t n_pages)
{
    kvk_config config;
    kvk_config_init(&config);
    config.n_pages = n_pages;
    config.page_tokens = PAGE_TOKENS;
    return config;
}

void bench_cache_close(void *state)
{
    cache_bench *s = state;
    kvk_cache_close(s->cache);
    free(s->tokens);
    free(s->plan.indptr);
    free(s->plan.pages);
    free(s->plan.last_page_len);
    free(s->plan.slots);
    free(s);
}

cache_bench *bench_cache_open(const kvk_config *config, uint32_t n_tokens)
{
    cache_bench *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->tokens = calloc(n_tokens, sizeof *s->tokens);
    if (s->tokens && kvk_cache_open(config, &s->cache) == 0)
        return s;
    bench_cache_close(s);
    return NULL;
}

/* ---- a serving step: one new token for each running sequence */

int bench_open_running(cache_bench *s)
{
    uint32_t total = RUNNING * RUNNING_PAGES;
    kvk_plan_init(&s->plan);
    s->plan.entries_cap = RUNNING;
    s->plan.pages_cap = total;
    s->plan.slots_cap = RUNNING;
    s->plan.indptr = calloc(RUNNING + 1, sizeof(int32_t));
    s->plan.pages = calloc(total, sizeof(int32_t));
    s->plan.last_page_len = calloc(RUNNING, sizeof(int32_t));
    s->plan.slots = calloc(RUNNING, sizeof(int64_t));
    int rc = s->plan.indptr && s->plan.pages && s->plan.last_page_len && s->plan.slots ? 0 : -1;
    for (uint32_t i = 0; i < RUNNING && rc >= 0; i++) {
        kvk_text text = {.n_tokens = (RUNNING_PAGES - 1) * PAGE_TOKENS, .tokens = s->tokens};
        s->tokens[0] = i; /* no sharing: each sequence has its own pages */
        rc = kvk_seq_open(s->cache, NULL, &s->seqs[i]);
        rc = rc < 0 ? rc : kvk_reserve(s->cache, s->seqs[i], text.n_tokens, KVK_RECLAIM);
        rc = rc < 0 ? rc : kvk_commit(s->cache, s->seqs[i], &text);
        s->entries[i] = (kvk_batch_entry){.seq = s->seqs[i], .n_query = 1};
    }
    return rc;
}

static void step(cache_bench *s)
{
    kvk_batch batch = 0;
    for (uint32_t i = 0; i < RUNNING; i++)
        kvk_reserve(s->cache, s->seqs[i], 1, KVK_RECLAIM);
    kvk_batch_plan(s->cache, s->entries, RUNNING, &s->plan, &batch);
    kvk_batch_end(s->cache, batch, NULL);
}

double bench_run_steps(void *state)
{
    cache_bench *s = state;
    double start = bench_now_ns();
    for (uint32_t i = 0; i < STEPS; i++)
        step(s);
    double us = (bench_now_ns() - start) / 1e3 / STEPS;
    for (uint32_t i = 0; i < RUNNING; i++)
        kvk_truncate(s->cache, s->seqs[i], (RUNNING_PAGES - 1) * PAGE_TOKENS);
    return us;
}
