/* Least recently used. A page is used by a query that gives it more than its even share of attention. */
#include "policy/policies.h"

enum { SINKS };
enum { LAST_USE, N_SCORES }; /* position of the last query that used it, + 1 */

static const kvk_knob knobs[] = {[SINKS] = KNOB_SINKS(0)};

static kvk_protection protect(const double *k, uint32_t tokens, uint32_t page_tokens)
{
    (void)tokens, (void)page_tokens;
    return (kvk_protection){.sinks = (uint32_t)k[SINKS]};
}

static void observe(const kvk_policy_view *view, const kvk_observation *seen)
{
    uint32_t held = policy_tokens_held(view);
    float now = (float)(seen->first_query + seen->n_queries);
    for (uint32_t i = 0; i < view->n; i++)
        if (policy_above_share(view, seen, i, held))
            view->scores[LAST_USE][i] = now;
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    memcpy(score, view->scores[LAST_USE], view->n * sizeof *score);
}

const kvk_policy policy_lru = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "lru",
    .text = "keeps the pages that got more than their even share of attention last",
    .knobs = knobs,
    .n_scores = N_SCORES,
    .needs = policy_needs_mean,
    .protect = protect,
    .observe = observe,
    .rank = rank,
};
