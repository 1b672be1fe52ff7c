/* trace/cores.h: work that falls into independent pieces, on all cores. */
#ifndef KVKEEP_TRACE_CORES_H
#define KVKEEP_TRACE_CORES_H

#include <stdint.h>

/* Calls work(ctx, i) for i = 0 .. n-1, in this order but several at a time, until one returns a negative number.
 * Returns that of the smallest i that did, the same whatever the number of cores; else 0. */
int cores_run(int (*work)(void *ctx, uint32_t i), void *ctx, uint32_t n);

#endif
