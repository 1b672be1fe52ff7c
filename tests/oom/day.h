/* day.h: days in the life of a cache, call by call, and the memory that they are lived with. */
#ifndef OOM_DAY_H
#define OOM_DAY_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kvkeep/eviction.h"

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

/* A call, which returns what the library did; and those of a day, in order. */
typedef int (*day_call)(day *d);
typedef struct {
    const day_call *calls;
    size_t n;
} schedule;

extern const schedule usual_day;    /* day.c */
extern const schedule evicting_day; /* day_evict.c */

/* ---- what both have (day.c) */

/* The tokens `from` .. `to` of the prompt. */
kvk_text day_prompt(const day *d, uint32_t from, uint32_t to);

int day_opens(day *d);
int day_starts_recording(day *d);
int day_listens(day *d);
int day_opens_the_first(day *d);
int day_takes_all_moves(day *d);
int day_saves(day *d);
int day_loads(day *d);
int day_audits(day *d);
int day_stops_recording(day *d);

#endif
