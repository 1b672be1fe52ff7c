/* kvkeep/profile.h: what serves a model best under the policy keep, found by `kvkeep eval calibrate`: the heads whose
 * near peaks are kept, and the policy's knobs. A small JSON file:
 *
 *     {"format": "kvkeep-profile", "version": 1, "model": "SmolLM2-135M-Instruct", "layers": 30, "heads": 9,
 *      "near_heads": [[5, 5], [7, 1]], "near_kind": "error", "policy": "keep:recent_share=0.25:reserve=0.5"}
 *
 * near_heads are pairs of layer and head, both counted from 0. Other fields are notes to readers. */
#ifndef KVKEEP_TOOLS_PROFILE_H
#define KVKEEP_TOOLS_PROFILE_H

#include "engine/near_heads.h"

#include <kvkeep/policy.h>

#include <jansson.h>

enum { PROFILE_MAX_NAME = 128 };

typedef struct profile {
    char model[PROFILE_MAX_NAME];
    uint32_t layers, heads; /* of the model: where the heads below are */
    near_heads near;
    kvk_policy_choice choice; /* keep */
} profile;

/* The n bytes of a file. Bad input: what is no profile, or contradicts itself. */
int profile_parse(const char *text, size_t n, const char *path, profile *out, trace_error *error);
int profile_read(const char *path, profile *out, trace_error *error);

/* Bad input: a profile of a model of another shape. */
int profile_fits(const profile *p, const char *path, const model_shape *shape, trace_error *error);

/* The profile of a file that must fit the model. `path` NULL: keep as it is, by near peaks of all heads. */
int profile_open(const char *path, const model_shape *shape, profile *out, trace_error *error);

/* As JSON, with `notes` (may be NULL; its reference is not taken) as further fields. NULL without memory. */
json_t *profile_json(const profile *p, json_t *notes);

/* The pairs of layer and head. NULL without memory. */
json_t *profile_heads_json(const near_heads *h);

/* What a choice comes to with a profile: keep as it stands, without knobs, is the profile's. */
kvk_policy_choice profile_choice(const profile *p, const kvk_policy_choice *choice);

#endif
