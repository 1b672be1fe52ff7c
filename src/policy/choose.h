/* policy/choose.h: how the cache asks a policy which pages are to go. */
#ifndef KVK_POLICY_CHOOSE_H
#define KVK_POLICY_CHOOSE_H

#include <kvkeep/policy.h>

/* Room for the answers about one table, all [n]. */
typedef struct policy_scratch {
    float *score;
    uint8_t *tier;
    uint32_t *order;
} policy_scratch;

/* Ranks all pages of the view: a score that is no number counts as the lowest. Without `rank` all are alike. */
void policy_rank(const kvk_policy *policy, const kvk_policy_view *view, float *score, uint8_t *tier);

/* Pages of a table that were ranked, in a heap, the next one to go at its root. */
typedef struct policy_queue {
    const float *score;
    const uint8_t *tier;
    uint32_t *pages; /* [n] */
    uint32_t n;
} policy_queue;

/* The eligible ones of a table of n pages; `pages` has room for all. O(n). */
policy_queue policy_queue_of(const policy_scratch *ranked, const uint8_t *eligible, uint32_t n, uint32_t *pages);

/* Takes out the page that goes next; UINT32_MAX if none is left. O(log n). */
uint32_t policy_queue_next(policy_queue *q);

/* The pages to go, ascending, in victims[n]: at most those that are eligible, each once, whatever the policy answers.
 * At least `want` if that many are eligible and the policy evicts at all. O(n + want log n). Returns how many. */
uint32_t policy_choose(const kvk_policy *policy, const kvk_policy_view *view, uint32_t want,
                       const policy_scratch *scratch, uint32_t *victims);

/* True if a policy of the library's own can go on with these numbers of n pages, wherever they come from. */
int policy_scores_are_sound(const kvk_policy_choice *choice, float *const *scores, uint32_t n);

/* True for a policy of the library's own. */
int policy_is_own(const kvk_policy *policy);

#endif
