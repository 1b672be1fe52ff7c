/* trace/distinct.h: counts pages of distinct content, that is distinct in themselves and everything before.
 *
 * Contents are told apart by 128 bits of their chained hash, so a count is exact but for chance (below 10^-18 at a
 * thousand million pages). Takes 32 to 64 bytes for each of them. */
#ifndef KVKEEP_TRACE_DISTINCT_H
#define KVKEEP_TRACE_DISTINCT_H

#include "base/map.h"

typedef struct distinct {
    memory memory;
    map seen; /* low half of a chained hash -> its high half; a taken place sends the next to the key after it */
} distinct;

/* A place in a chain of pages. */
typedef struct distinct_chain {
    uint64_t lo, hi;
} distinct_chain;

/* KVK_ENOMEM. */
int distinct_open(distinct *d);

/* One that is all zeroes, or closed, is ignored. */
void distinct_close(distinct *d);

/* Goes on from `chain` (zeroes at the start) by a page's `row`. Returns 1 if that is new, 0 if not, or KVK_ENOMEM. */
int distinct_add(distinct *d, distinct_chain *chain, const void *row, size_t bytes);

#endif
