/* Nothing is ever evicted. */
#include "policy/policies.h"

const kvk_policy policy_full = {
    .size = sizeof(kvk_policy),
    .name = "full",
    .text = "keeps every page",
    .needs = policy_needs_nothing,
};
