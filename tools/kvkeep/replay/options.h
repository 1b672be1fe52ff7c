/* replay/options.h: the command line of `kvkeep replay`. */
#ifndef KVKEEP_TOOLS_REPLAY_OPTIONS_H
#define KVKEEP_TOOLS_REPLAY_OPTIONS_H

#include "kvkeep/replay/evict_options.h"
#include "trace/replay.h"

/* Files that the command writes. */
typedef enum replay_file { REPLAY_RECORD, REPLAY_PLOT, REPLAY_LIBCACHESIM, REPLAY_EVENTS, REPLAY_FILES } replay_file;

typedef struct replay_command {
    trace_options trace;
    replay_options replay;
    bool mode_given;         /* else the trace decides */
    evict_command evict;     /* mode evict */
    const char *traces_only; /* an option given that means nothing for an op log; NULL: none */
    const char *not_evict;   /* likewise, for mode evict */
    bool json, print;
    bool seed_given;
    bool all_reclaims;               /* every reclaim order, compared */
    bool curve;                      /* pools of many sizes */
    uint32_t curve_points;           /* how many; 0: as the mode has it */
    const char *paths[REPLAY_FILES]; /* NULL: not wanted */
    char *const *files;
    size_t n_files;
} replay_command;

/* Returns 0, 1 where help was shown, or TRACE_BAD_INPUT. */
int replay_command_parse(replay_command *c, int argc, char **argv, trace_error *error);

#endif
