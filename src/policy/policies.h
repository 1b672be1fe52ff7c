/* policy/policies.h: the policies of the library, a file each, and what several of them share. */
#ifndef KVK_POLICY_POLICIES_H
#define KVK_POLICY_POLICIES_H

#include <kvkeep/policy.h>

/* A new policy is its file and its name here; kvk_policy_at counts in this order. */
#define POLICIES(X) X(full) X(window) X(streaming) X(h2o)

#define POLICY_DECLARED(name) extern const kvk_policy policy_##name;
POLICIES(POLICY_DECLARED)
#undef POLICY_DECLARED

#define TOKENS_MAX 1e9 /* of a knob in tokens: three of them add up within 32 bits */

/* Knobs that mean the same wherever they stand. */
#define KNOB_SINKS(standard)                                                                                           \
    {                                                                                                                  \
        "sinks", 0, TOKENS_MAX, standard, 1, "the pages with the first so many tokens stay"                            \
    }
#define KNOB_RECENT(standard)                                                                                          \
    {                                                                                                                  \
        "recent", 0, TOKENS_MAX, standard, 1, "the pages with the last so many tokens stay; at most half the budget"   \
    }

#define N_KNOBS(knobs) ((uint32_t)(sizeof(knobs) / sizeof((knobs)[0])))

/* Recent tokens within a budget: at most the whole pages of its half. */
uint32_t policy_recent(double recent, uint32_t budget, uint32_t page_tokens);

/* Pages that hold this many tokens from a page border on, the last one perhaps partly. */
static inline uint32_t policy_pages(double tokens, uint32_t page_tokens)
{
    uint32_t n = (uint32_t)tokens;
    return n / page_tokens + (n % page_tokens != 0);
}

/* For policies that keep nothing or the mean mass only. */
uint32_t policy_needs_nothing(const double *knobs, int has_near);
uint32_t policy_needs_mean(const double *knobs, int has_near);

/* Ranks by position: the oldest goes. */
void policy_rank_by_age(const kvk_policy_view *view, float *score, uint8_t *tier);

#endif
