/* eval/needle_peaks.h: near peaks of a prompt, recorded once without eviction, and whether heads would have kept its
 * key.
 *
 * Running a model for each choice of heads would take days. What a page did to the queries after it hardly depends on
 * what was evicted by then, so a reserve is played over recorded peaks instead: page after page, the least important
 * one outside the last pages goes when there are more than it holds. What the decayed mean of keep holds beside the
 * reserve is left out, so real recall is rather better. */
#ifndef KVKEEP_TOOLS_EVAL_NEEDLE_PEAKS_H
#define KVKEEP_TOOLS_EVAL_NEEDLE_PEAKS_H

#include <stdint.h>

typedef struct needle_peaks {
    float *peaks;                 /* [pages][heads] of all layers */
    uint32_t pages, heads;        /* heads: of all layers together */
    uint32_t key_first, key_last; /* pages with the key where it is stated last */
} needle_peaks;

typedef struct needle_reserve {
    double damping, spread; /* as keep's knobs */
    uint32_t holds;         /* pages */
    uint32_t recent;        /* last pages that are kept anyway */
} needle_reserve;

/* How important pages are at the text's end by each head alone, by keep's own reckoning, in importance[heads][pages].
 * What several heads make of a page is the mean of theirs. */
void needle_peaks_weigh(const needle_peaks *p, double damping, float *importance);

/* How safe the key is at the text's end if pages are of this importance [pages], times any number: 0 .. 1, with r how
 * many times as important the key is as it has to be to stay, r^4 / (r^4 + 1). A half: it just stays. A smooth stand-in
 * for "kept", which changes too seldom to be followed. */
double needle_peaks_safety(const needle_peaks *p, const needle_reserve *reserve, const float *importance);

/* 1 if all pages with the key are there at the end when these `n` heads, by number, decide; 0 if not, -1 without
 * memory. O(pages^2 * n). */
int needle_peaks_kept(const needle_peaks *p, const needle_reserve *reserve, const uint32_t *heads, uint32_t n);

#endif
