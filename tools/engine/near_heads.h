/* engine/near_heads.h: of which heads a model's near peaks are kept (kvk_group.near_layers, near_heads). */
#ifndef KVKEEP_ENGINE_NEAR_HEADS_H
#define KVKEEP_ENGINE_NEAR_HEADS_H

#include "engine/model.h"

#include <kvkeep/attention.h>
#include <kvkeep/kvkeep.h>

enum { NEAR_MAX_CHOSEN = 64, NEAR_MAX_VALUES = 4096 /* of a page in one group: as kvk_group allows */ };

typedef struct near_head {
    uint16_t layer, head;
} near_head;

/* Chosen heads, each of which counts by itself (a "layer" of one head); or, with n 0, all heads, of which in each layer
 * the highest counts. */
typedef struct near_heads {
    kvk_near_kind kind;
    uint32_t n;
    near_head chosen[NEAR_MAX_CHOSEN];
} near_heads;

/* Whether a head is among those chosen. */
int near_heads_has(const near_heads *h, near_head x);

/* Bad input: heads that the model does not have, one that is chosen twice, or more numbers than a group can keep with
 * so many layers to a group. */
int near_heads_check(const near_heads *h, const model_shape *s, uint32_t group_layers, trace_error *error);

/* Says in groups[n_layers / group_layers] how much they keep. */
void near_heads_describe(const near_heads *h, const model_shape *s, uint32_t group_layers, kvk_group *groups);

/* Which of its group's numbers each head has, -1: none, in places[n_layers][n_heads]. */
void near_heads_place(const near_heads *h, const model_shape *s, uint32_t group_layers, int32_t *places);

#endif
