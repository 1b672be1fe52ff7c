/* The last tokens and nothing else. Without the first ones most models break down (Xiao et al. 2023): a baseline. */
#include "policy/policies.h"

enum { TOKENS };

static const kvk_knob knobs[] = {
    [TOKENS] = {"tokens", 1, TOKENS_MAX, 1024, 1, "the last tokens that stay, where no budget is set"},
};

static uint32_t budget(const double *k)
{
    return (uint32_t)k[TOKENS];
}

const kvk_policy policy_window = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "window",
    .text = "keeps the last tokens (sliding window)",
    .knobs = knobs,
    .needs = policy_needs_nothing,
    .budget = budget,
    .rank = policy_rank_by_age,
};
