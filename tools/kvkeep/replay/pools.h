/* replay/pools.h: a trace on a clock in pools of many sizes. */
#ifndef KVKEEP_TOOLS_REPLAY_POOLS_H
#define KVKEEP_TOOLS_REPLAY_POOLS_H

#include "kvkeep/replay/options.h"

/* Reads the trace once, finds its peak, replays it in pools up to that and prints the results; draws onto `drawing`
 * unless it is NULL. 0 or an error. */
int replay_pools(trace *t, const replay_command *c, FILE *drawing, trace_error *error);

#endif
