/* StreamingLLM (Xiao et al. 2023): the first tokens, where attention goes that has nowhere else to go, and the last. */
#include "policy/policies.h"

enum { SINKS, RECENT };

static const kvk_knob knobs[] = {
    [SINKS] = KNOB_SINKS(4),
    [RECENT] = {"recent", 0, TOKENS_MAX, 1020, 1, "the last tokens that stay, where no budget is set"},
};

static uint32_t budget(const double *k)
{
    return (uint32_t)k[SINKS] + (uint32_t)k[RECENT];
}

/* The last tokens stay without protection, since the oldest go first. */
static kvk_protection protect(const double *k, uint32_t tokens, uint32_t page_tokens)
{
    (void)tokens, (void)page_tokens;
    return (kvk_protection){.sinks = (uint32_t)k[SINKS]};
}

const kvk_policy policy_streaming = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "streaming",
    .text = "keeps the first and the last tokens (StreamingLLM, Xiao et al. 2023)",
    .knobs = knobs,
    .needs = policy_needs_nothing,
    .budget = budget,
    .protect = protect,
    .rank = policy_rank_by_age,
};
