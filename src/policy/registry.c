/* The policies of the library and the presets. */
#include "policy/choose.h"
#include "policy/policies.h"

#define POLICY_ADDRESS(name) &policy_##name,
static const kvk_policy *const policies[] = {POLICIES(POLICY_ADDRESS)};
#undef POLICY_ADDRESS

enum { N_POLICIES = sizeof policies / sizeof policies[0] };

static const kvk_preset presets[] = {
    {"h2o-4-512-512", "h2o:sinks=4:heavy=512:recent=512"},
    {"streaming-4-1020", "streaming:sinks=4:recent=1020"},
    {"window-1024", "window:tokens=1024"},
    {"h2o-lowest", "h2o:exit=1"},
    /* What each part of keep is worth, left out or changed. */
    {"keep-ema", "keep:reserve=0"},
    {"keep-sum", "keep:half_life=0:reserve=0"},
    {"keep-peak", "keep:importance=2"},
    {"keep-near", "keep:importance=1"},
    {"keep-8", "keep:reserve=0.125"},
};

enum { N_PRESETS = sizeof presets / sizeof presets[0] };

const kvk_policy *kvk_policy_at(uint32_t i)
{
    return i < N_POLICIES ? policies[i] : NULL;
}

const kvk_preset *kvk_preset_at(uint32_t i)
{
    return i < N_PRESETS ? &presets[i] : NULL;
}

int policy_is_own(const kvk_policy *policy)
{
    for (uint32_t i = 0; i < N_POLICIES; i++)
        if (policies[i] == policy)
            return 1;
    return 0;
}

void kvk_policy_defaults(const kvk_policy *policy, kvk_policy_choice *out)
{
    *out = (kvk_policy_choice){.policy = policy};
    for (uint32_t i = 0; i < policy->n_knobs && i < KVK_MAX_KNOBS; i++)
        out->knobs[i] = policy->knobs[i].standard;
}
