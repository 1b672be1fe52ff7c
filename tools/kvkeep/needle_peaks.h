/* kvkeep/needle_peaks.h: near peaks of a prompt, recorded once without eviction, and which layers' peaks would have
 * kept its key.
 *
 * Running a model for each set of layers would take days. What a page did to the queries after it hardly depends on
 * what was evicted by then, so a reserve is played over recorded peaks instead: page after page, the least important
 * one outside the last pages goes when there are more than it holds. What the decayed mean of keep holds beside the
 * reserve is left out, so real recall is rather better. */
#ifndef KVKEEP_TOOLS_NEEDLE_PEAKS_H
#define KVKEEP_TOOLS_NEEDLE_PEAKS_H

#include <stdint.h>

typedef struct needle_peaks {
    float *peaks; /* [pages][layers][heads] */
    uint32_t pages, layers, heads;
    uint32_t key_first, key_last; /* pages with the key where it is stated last */
} needle_peaks;

typedef struct needle_reserve {
    double damping, spread; /* as keep's knobs */
    uint32_t holds;         /* pages */
    uint32_t recent;        /* last pages that are kept anyway */
} needle_reserve;

/* kept[first * layers + last] grows by 1 if all pages with the key are there at the end when importance is the mean
 * over layers first .. last. 0, or -1 without memory. O(pages^2 * layers * (heads + layers)). */
int needle_peaks_count(const needle_peaks *p, const needle_reserve *reserve, uint32_t *kept);

#endif
