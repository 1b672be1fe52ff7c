/* trace/evict_optimum.h: the most mass that any choice of pages can keep, when the future is known.
 *
 * Time counts in pages: in interval j the queries stand in page j, which is held, and of the pages before it at most
 * keep - 1 are. What is dropped is gone for good. Masses are never negative, so nothing is dropped before it must: at
 * the beginning of each interval past the first `keep` one more page goes, out of those before it, and costs the mass
 * that it would still have got.
 *
 * The most that can be kept is a maximum-gain flow of `keep` units, each of which stays with a page or leaves it for
 * the page that begins. Seen from what is lost: each drop takes a page of its own, at the least sum of costs. That is
 * an assignment problem, and is solved as one.
 */
#ifndef KVKEEP_TRACE_EVICT_OPTIMUM_H
#define KVKEEP_TRACE_EVICT_OPTIMUM_H

#include <stdint.h>

/* The masses to come in one group. */
typedef struct mass_future {
    const double *costs; /* [pages - first][pages]: the mass that page p gets from interval first + i on */
    uint32_t first;      /* the first interval; all pages up to it are there */
    uint32_t pages;
} mass_future;

#define MASS_KEPT UINT32_MAX

/* Sets gone[pages]: the interval from which a page is dropped, or MASS_KEPT. The lost mass is the least there can be.
 * `keep` at least 1. By shortest augmenting paths (Jonker and Volgenant, 1987): O(drops^2 pages) at worst, and much
 * less in practice. 0 or KVK_ENOMEM. */
int evict_optimum(const mass_future *future, uint32_t keep, uint32_t *gone);

/* The same, but each drop takes the page that has the least mass to come: no optimum, but O(drops pages).
 * Returns 0. */
int evict_greedy(const mass_future *future, uint32_t keep, uint32_t *gone);

/* The mass that is lost. */
double evict_lost(const mass_future *future, const uint32_t *gone);

#endif
