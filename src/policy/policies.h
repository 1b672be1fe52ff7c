/* policy/policies.h: the policies of the library, a file each, and what several of them share. */
#ifndef KVK_POLICY_POLICIES_H
#define KVK_POLICY_POLICIES_H

#include <kvkeep/policy.h>
#include <string.h>

/* A new policy is its file and its name here; kvk_policy_at counts in this order. */
#define POLICIES(X) X(full) X(lru) X(window) X(streaming) X(h2o) X(scissorhands) X(snapkv) X(tova) X(random) X(keep)

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

/* Tokens in page i of the table: 0 if none has come yet. */
static inline uint32_t policy_tokens_in(const kvk_policy_view *view, uint32_t i)
{
    uint64_t first = (uint64_t)view->index[i] * view->page_tokens;
    uint64_t after = view->n_tokens > first ? view->n_tokens - first : 0;
    return after < view->page_tokens ? (uint32_t)after : view->page_tokens;
}

/* Tokens in the table. */
static inline uint32_t policy_tokens_held(const kvk_policy_view *view)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < view->n; i++)
        held += policy_tokens_in(view, i);
    return held;
}

/* 1 if the queries gave page i more than they would if they attended to all tokens alike. */
static inline int policy_above_share(const kvk_policy_view *view, const kvk_observation *seen, uint32_t i,
                                     uint32_t held)
{
    return seen->mean[i] / (float)seen->n_queries > (float)policy_tokens_in(view, i) / (float)held;
}

/* True if the numbers of n pages are such as scissorhands leaves: it counts by them. */
int scissorhands_is_sound(const double *knobs, float *const *scores, uint32_t n);

/* For policies that keep nothing or the mean mass only. */
uint32_t policy_needs_nothing(const double *knobs, int has_near);
uint32_t policy_needs_mean(const double *knobs, int has_near);

/* Ranks by position: the oldest goes. */
void policy_rank_by_age(const kvk_policy_view *view, float *score, uint8_t *tier);

#endif
