/* trace/quantile.h: exact quantiles of many whole numbers of which most are 0: those are counted, the others kept. */
#ifndef KVKEEP_TRACE_QUANTILE_H
#define KVKEEP_TRACE_QUANTILE_H

#include "base/memory.h"

typedef struct quantile {
    uint64_t zeroes;
    uint64_t *values; /* [n] the others */
    uint32_t n, cap;
} quantile;

/* KVK_ENOMEM. */
int quantile_add(quantile *q, memory *from, uint64_t value);

/* The smallest value that at least `share` of all values do not exceed (nearest rank); 0 of none. Sorts them. */
uint64_t quantile_at(quantile *q, double share);

void quantile_close(quantile *q, memory *from);

#endif
