/* cache/reserve.h: what a reservation would take. */
#ifndef KVK_CACHE_RESERVE_H
#define KVK_CACHE_RESERVE_H

#include "cache/cache.h"

typedef struct growth {
    uint64_t pages;  /* entries that each table is to reach to; 0: nothing to do */
    uint64_t held;   /* pages the sequence has, all groups */
    uint64_t need;   /* pages to take, all groups, copies included */
    uint32_t tails;  /* groups whose tail must be made writable */
    uint32_t copies; /* groups whose shared tail is replaced by a copy */
    uint64_t frees;  /* pages that come free before that, since the sequence gives them up */
    int too_long;    /* past KVK_MAX_TOKENS */
} growth;

/* A kvk_can. */
int reserve_judge(const kvk_cache *c, const growth *g, kvk_effort effort);

/* Pages that live sequences must give up for it, if the judgement is `can` and the effort allows it; else 0. */
uint64_t reserve_missing(const kvk_cache *c, const growth *g, int can, kvk_effort effort);

#endif
