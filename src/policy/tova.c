/* TOVA (Oren et al. 2024): what the last query attended to. */
#include "policy/policies.h"

enum { LAST, N_SCORES };

static void observe(const kvk_policy_view *view, const kvk_observation *seen)
{
    float *restrict last = view->scores[LAST];
    const float *restrict mean = seen->mean;
    float share = 1.0f / (float)seen->n_queries;
    for (uint32_t i = 0; i < view->n; i++)
        last[i] = mean[i] * share;
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    memcpy(score, view->scores[LAST], view->n * sizeof *score);
}

const kvk_policy policy_tova = {
    .size = sizeof(kvk_policy),
    .name = "tova",
    .text = "keeps what the last query attended to (TOVA, Oren et al. 2024)",
    .n_scores = N_SCORES,
    .score_is_mass = 1,
    .needs = policy_needs_mean,
    .observe = observe,
    .rank = rank,
};
