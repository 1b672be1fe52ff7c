/* policy/knobs.h: names and values of knobs, checked. */
#ifndef KVK_POLICY_KNOBS_H
#define KVK_POLICY_KNOBS_H

#include <kvkeep/policy.h>

/* True if a knob may have this value. */
int knob_takes(const kvk_knob *knob, double value);

/* True if a policy has all that it must have, its knobs included. */
int policy_is_complete(const kvk_policy *policy);

#endif
