/* Op logs out of strings, for the tests of their replay. */
#ifndef TESTS_UNIT_OPLOG_TEXT_H
#define TESTS_UNIT_OPLOG_TEXT_H

#include "trace/oplog.h"

/* Bytes that a recorder or a printer wrote, NUL at the end. */
typedef struct sink {
    char *bytes;
    size_t n;
} sink;

/* A kvk_write_fn; and one that adds a newline, for results. `ctx` is a sink. */
int sink_write(void *ctx, const char *bytes, size_t n);
int sink_print(void *ctx, const char *line, size_t n);
void sink_free(sink *s);

/* Replays a text called "t"; `options` may be NULL. */
int oplog_text_run(const char *text, const oplog_options *options, oplog_summary *summary, trace_error *error);

/* Asserts that the replay ends with this code and this line. */
void oplog_text_ends(const char *text, int code, const char *line);

/* A log that is wrong, and the line that says so. */
typedef struct refusal {
    const char *text, *line;
} refusal;

/* Asserts that each of these, after the lines `head`, is refused so. */
void oplog_text_refused(const char *head, const refusal *cases, size_t n);
#define CHECK_REFUSED(head, cases) oplog_text_refused(head, cases, sizeof(cases) / sizeof(cases)[0])

/* Asserts that a log is replayed well, with an audit after each call, and gives what was recorded meanwhile. */
sink oplog_text_record(const char *text);

#endif
