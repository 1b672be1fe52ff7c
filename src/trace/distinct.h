/* trace/distinct.h: numbers pages of distinct content, that is distinct in themselves and everything before.
 *
 * Contents are told apart by 128 bits of their chained hash, so numbers are exact but for chance (below 10^-18 at a
 * thousand million pages). Takes 40 to 80 bytes for each of them. */
#ifndef KVKEEP_TRACE_DISTINCT_H
#define KVKEEP_TRACE_DISTINCT_H

#include "base/map.h"

typedef struct distinct {
    memory memory;
    map seen;       /* low half of a chained hash -> its number; a taken place sends the next to the key after it */
    uint64_t *high; /* [seen.count] its high half, by number */
    uint32_t cap;
} distinct;

/* A place in a chain of pages. */
typedef struct distinct_chain {
    uint64_t lo, hi;
} distinct_chain;

/* What a page holds. */
typedef struct distinct_row {
    const void *bytes;
    size_t n;
} distinct_row;

/* KVK_ENOMEM. */
int distinct_open(distinct *d);

/* One that is all zeroes, or closed, is ignored. */
void distinct_close(distinct *d);

/* Goes on from `chain` (zeroes at the start) by a page's `row`, and sets *number to what it was or is now numbered,
 * from 0 on. Returns 1 if it is new, 0 if not, or KVK_ENOMEM. */
int distinct_add(distinct *d, distinct_chain *chain, distinct_row row, uint32_t *number);

#endif
