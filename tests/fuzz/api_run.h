/* api_run.h: one run of fuzz_api.c: bytes that become arguments, and what was opened with them. */
#ifndef FUZZ_API_RUN_H
#define FUZZ_API_RUN_H

#include <kvkeep/kvkeep.h>
#include <stdlib.h>

enum { SEQS = 8, BATCHES = 4, TOKENS = 64, ENTRIES = 4, PLAN_PAGES = 32, GROUPS = 3, CALLS = 400, MOST_PAGES = 48 };

typedef struct {
    const uint8_t *data;
    size_t size;
    kvk_cache *cache;
    kvk_config config;
    kvk_group groups[GROUPS];
    int evicts; /* eviction is called, too */
    uint64_t now;
    kvk_seq seqs[SEQS];
    kvk_batch batches[BATCHES];
    uint32_t queries[BATCHES][ENTRIES]; /* planned for each entry */
    char *log;                          /* the recording */
    size_t log_size;
} run;

static inline uint8_t byte(run *r)
{
    if (r->size == 0)
        return 0;
    r->size--;
    return *r->data++;
}

/* Mostly small, now and then anything. */
static inline uint32_t number(run *r)
{
    uint32_t n = byte(r);
    if (n < 240)
        return n % 24;
    for (int i = 0; i < 4; i++)
        n = n << 8 | byte(r);
    return n;
}

static inline void must(int holds)
{
    if (!holds)
        abort();
}

static inline kvk_seq *pick_seq(run *r)
{
    return &r->seqs[byte(r) % SEQS];
}

#endif
