/* day.h: a day in the life of a cache, call by call, and the memory that it is lived with. */
#ifndef OOM_DAY_H
#define OOM_DAY_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kvkeep/kvkeep.h"

enum { PAGE_TOKENS = 4, PAGES = 24, SEQS = 12, PROMPT = 30, STATE_BYTES = 1 << 16 };

/* An allocator that counts, checks sizes, and fails once. */
typedef struct {
    uint64_t n_made, fails_at; /* 0: never */
    size_t n_held;             /* bytes */
} memory;

void *memory_take_block(void *ctx, size_t bytes);
void memory_give_block(void *ctx, void *block, size_t bytes);

typedef struct {
    memory memory;
    kvk_config config;
    kvk_allocator allocator;
    bool recorded;
    kvk_cache *cache;
    kvk_seq seqs[SEQS];
    kvk_batch batches[2];
    uint32_t tokens[PROMPT];
    kvk_key keys[PROMPT / PAGE_TOKENS];
    char state[STATE_BYTES]; /* saved */
    size_t n_state, n_read;
    uint32_t n_events;
} day;

/* The calls of the day, in order. Each returns what the library did. */
typedef int (*day_call)(day *d);
extern const day_call day_calls[];
extern const size_t day_n_calls;

#endif
