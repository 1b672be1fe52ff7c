/* replay/report.h: what a replay shows: its results, a line per request, its curves. */
#ifndef KVKEEP_TOOLS_REPLAY_REPORT_H
#define KVKEEP_TOOLS_REPLAY_REPORT_H

#include "kvkeep/plot.h"
#include "trace/oplog.h"
#include "trace/replay.h"

/* Prints the results on stdout. 0 or an error. */
int replay_report(const char *format, const replay_options *options, const replay_result *result, bool as_json,
                  trace_error *error);

/* The same for an op log. */
int oplog_report(const oplog_summary *summary, bool as_json, trace_error *error);

/* Prints one request as a JSON line on stdout. */
void replay_print_request(replay_mode mode, const replay_request *request);

/* Writes an event as a JSON line. */
void replay_write_event(FILE *out, const kvk_event *event);

/* What the samples of a mode show. */
const plot *replay_plot(replay_mode mode);

#endif
