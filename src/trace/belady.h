/* trace/belady.h: the most hits that any cache of single pages can have, when the future is known.
 *
 * Belady's algorithm: a page that is not there is always let in, and where room lacks, the page whose next use is
 * farthest goes. It needs all references beforehand, so they are kept: 8 to 12 bytes for each, and 32 to 60 for each
 * page.
 */
#ifndef KVKEEP_TRACE_BELADY_H
#define KVKEEP_TRACE_BELADY_H

#include "base/memory.h"

#define BELADY_MAX_REFS ((uint32_t)1 << 28)

typedef struct belady {
    memory memory;
    uint32_t *refs; /* [n] pages in the order they are asked for */
    uint32_t n, cap;
    uint32_t n_pages; /* they are numbered 0 .. n_pages-1 */
} belady;

/* KVK_ENOMEM. */
int belady_open(belady *b);

/* One that is all zeroes, or closed, is ignored. */
void belady_close(belady *b);

/* Adds a reference; pages are best numbered densely. KVK_ESPACE after BELADY_MAX_REFS, KVK_ENOMEM. */
int belady_add(belady *b, uint32_t page);

/* Counts the hits of all references in a cache of `capacity` pages, at least 1. O(n log capacity). KVK_ENOMEM. */
int belady_hits(belady *b, uint32_t capacity, uint64_t *hits);

#endif
