/* What was read back of a policy's numbers may be made up. */
#include "base/checked.h"
#include "policy/choose.h"
#include "policy/policies.h"

#include <float.h>

/* All policies but one keep sums and shares of masses. */
int policy_scores_are_sound(const kvk_policy_choice *choice, float *const *scores, uint32_t n)
{
    if (choice->policy == &policy_scissorhands)
        return scissorhands_is_sound(choice->knobs, scores, n);
    for (uint32_t k = 0; k < choice->policy->n_scores; k++)
        if (!floats_are_within(scores[k], n, FLT_MAX))
            return 0;
    return 1;
}
