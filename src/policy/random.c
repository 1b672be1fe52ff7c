/* Any page but the first and the last: what a policy has to be better than. */
#include "policy/policies.h"

enum { SINKS, RECENT, SEED };

static const kvk_knob knobs[] = {
    [SINKS] = KNOB_SINKS(4),
    [RECENT] = KNOB_RECENT(512),
    [SEED] = {"seed", 0, UINT32_MAX, 1, 1, "another seed evicts other pages"},
};

static kvk_protection protect(const double *k, uint32_t tokens, uint32_t page_tokens)
{
    return (kvk_protection){.sinks = (uint32_t)k[SINKS], .recent = policy_recent(k[RECENT], tokens, page_tokens)};
}

/* The finalizer of splitmix64 (Steele et al. 2014). */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* A float takes 24 bits exactly. */
static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    uint64_t now = mix(mix((uint64_t)view->knobs[SEED]) ^ ((uint64_t)view->group << 32 | view->n_tokens));
    for (uint32_t i = 0; i < view->n; i++)
        score[i] = (float)(mix(now ^ view->index[i]) >> 40) * 0x1p-24f;
}

const kvk_policy policy_random = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "random",
    .text = "keeps the first, the last and any others",
    .knobs = knobs,
    .needs = policy_needs_nothing,
    .protect = protect,
    .rank = rank,
};
