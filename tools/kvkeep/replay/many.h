/* replay/many.h: one trace in many pools: of every reclaim order, or of many sizes. */
#ifndef KVKEEP_TOOLS_REPLAY_MANY_H
#define KVKEEP_TOOLS_REPLAY_MANY_H

#include "kvkeep/replay/options.h"

/* Reads the trace once, replays what it kept and prints the results; draws onto `drawing` unless it is NULL. 0 or an
 * error. */
int replay_many(trace *t, const replay_command *c, FILE *drawing, trace_error *error);

#endif
