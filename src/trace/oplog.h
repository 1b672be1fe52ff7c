/* trace/oplog.h: runs an op log (docs/oplog.md) on a fresh cache. */
#ifndef KVKEEP_TRACE_OPLOG_H
#define KVKEEP_TRACE_OPLOG_H

#include "trace/error.h"

#include <kvkeep/kvkeep.h>
#include <stdio.h>

typedef struct oplog_options {
    int audit; /* 1: kvk_audit after every op; a violation fails the run */
    /* NULL: nothing is recorded; else it gets the recording of the replay, as kvk_record_start says. */
    kvk_write_fn record;
    void *record_ctx;
    /* NULL: nothing is printed; else it gets each result as one JSON object, without a newline, valid during the call.
     * Returns 0, or anything else to end the run. */
    int (*print)(void *ctx, const char *json_line, size_t n);
    void *print_ctx;
    uint64_t max_ops;               /* 0: all */
    uint64_t memory_limit;          /* host memory of the cache, bytes; 0: no limit */
    const kvk_allocator *allocator; /* of the cache and of the replay's own tables; NULL: the library's */
} oplog_options;

typedef struct oplog_summary {
    uint64_t ops;
    uint64_t failed_ops; /* of these, calls that returned an error code, expected or not */
    kvk_config config;
    kvk_stats stats; /* when the run ended, whatever ended it */
} oplog_summary;

/* Runs the log `in`, called `name` in errors. Memory grows with the live state and the longest line, not with the file.
 * `options` NULL: none. Returns 0, TRACE_FAILED (an expectation that is not met, an unexpected failure, a violated
 * invariant, no memory) or TRACE_BAD_INPUT (the log is wrong). */
int oplog_replay(FILE *in, const char *name, const oplog_options *options, oplog_summary *summary, trace_error *error);

#endif
