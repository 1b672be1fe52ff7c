#include "policy/knobs.h"

#include <math.h>
#include <string.h>

#define NAME_MAX_BYTES 32u

int knob_takes(const kvk_knob *knob, double value)
{
    return value >= knob->min && value <= knob->max && (!knob->whole || value == floor(value));
}

/* Letters, digits and '_': what can stand in a written choice. */
static int is_name(const char *name)
{
    if (!name)
        return 0;
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    return n > 0 && n <= NAME_MAX_BYTES && name[n] == 0;
}

static int knobs_are_complete(const kvk_policy *policy)
{
    if (policy->n_knobs > KVK_MAX_KNOBS || (policy->n_knobs && !policy->knobs))
        return 0;
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        const kvk_knob *knob = &policy->knobs[i];
        if (!is_name(knob->name) || !knob->text || !knob_takes(knob, knob->standard))
            return 0;
        if (!isfinite(knob->min) || !isfinite(knob->max))
            return 0;
    }
    return 1;
}

int policy_is_complete(const kvk_policy *policy)
{
    if (!policy || policy->size != sizeof *policy || !is_name(policy->name) || !policy->text || !policy->needs)
        return 0;
    if (policy->n_scores > KVK_MAX_SCORES || policy->n_shared > 1 || (policy->choose && !policy->rank))
        return 0;
    return knobs_are_complete(policy);
}

int kvk_policy_check(const kvk_policy_choice *choice)
{
    if (!choice || !policy_is_complete(choice->policy))
        return KVK_EINVAL;
    for (uint32_t i = 0; i < choice->policy->n_knobs; i++)
        if (!knob_takes(&choice->policy->knobs[i], choice->knobs[i]))
            return KVK_EINVAL;
    return 0;
}
