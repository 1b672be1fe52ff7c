/* eval/interval.h: how sure a share is that was counted. */
#ifndef KVKEEP_TOOLS_EVAL_INTERVAL_H
#define KVKEEP_TOOLS_EVAL_INTERVAL_H

#include <stdint.h>

typedef struct interval {
    double low, high;
} interval;

/* Wilson's 95 % interval of a share of which `right` of `n` were counted (Wilson, Probable Inference, 1927; without
 * correction for continuity). Of n 0: 0 to 1. */
interval interval_wilson(uint32_t right, uint32_t n);

#endif
