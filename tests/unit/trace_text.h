/* Traces out of strings, for the tests of their readers. */
#ifndef TESTS_UNIT_TRACE_TEXT_H
#define TESTS_UNIT_TRACE_TEXT_H

#include "trace/replay.h"

/* Reads a text called "t" to its end. Returns the number of requests, or a negative code; `last` gets the last request
 * (without its arrays) and `error` what was wrong. `format` NULL: found from the content. */
int text_read(const char *text, const char *format, trace_request *last, trace_error *error);

/* Asserts that the text is refused with exactly this line. */
void text_refused(const char *text, const char *format, const char *line);

/* Replays a text, which must succeed. */
replay_result text_replay(const char *text, const replay_options *options);

/* Asserts that the replay ends with this code and this line. */
void text_replay_fails(const char *text, const replay_options *options, int code, const char *line);

#endif
