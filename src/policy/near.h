/* policy/near.h: how important pages were to the queries right after them. */
#ifndef KVK_POLICY_NEAR_H
#define KVK_POLICY_NEAR_H

#include <kvkeep/policy.h>

/* Pages of a text, page i having the number index[i] (NULL: i), and a place for what is found out about each. */
typedef struct near_pages {
    const uint32_t *index;
    uint32_t n;
    float *importance;
} near_pages;

/* A head's peak on a page is divided by its mean over the text; the highest of a layer's heads is divided by its mean
 * over the text; importance is the mean of that over all layers of the groups. First each peak is multiplied by
 * b/(b + damping), b the pages of the text up to it: early peaks are high because few pages share the mass. Page 0 and
 * pages of which nothing is known are in none of the means. O(pages of the text * layers * heads). */
void near_importance(const kvk_near *groups, uint32_t n_groups, double damping, const near_pages *pages);

#endif
