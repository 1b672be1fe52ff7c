/* replay/evict.h: policies at budgets, side by side, over a trace of masses. */
#ifndef KVKEEP_TOOLS_REPLAY_EVICT_H
#define KVKEEP_TOOLS_REPLAY_EVICT_H

#include "kvkeep/replay/options.h"

#include <stdio.h>

/* Runs every policy at every budget, and the offline optimum, and prints the results; draws onto `drawing` unless it is
 * NULL. 0 or an error. */
int replay_evict_all(const replay_command *c, FILE *drawing, trace_error *error);

#endif
