/* trace/format.h: what a format gives to be readable as a trace. One file per format, one line in the registry. */
#ifndef KVKEEP_TRACE_FORMAT_H
#define KVKEEP_TRACE_FORMAT_H

#include "trace/csv.h"
#include "trace/request.h"

/* What a format's functions work on. */
typedef struct trace_reader {
    line_reader lines; /* the generated workload counts its requests here */
    trace_options options;
    uint32_t file;                     /* number of the file in the stream, from 0 */
    const struct request_list *listed; /* of trace_listed */
    void *state;                       /* `state_bytes` of zeroes at first */
} trace_reader;

enum { TRACE_ROW_FAILED = 1 }; /* the row is of a request that failed when the trace was taken */

typedef struct trace_format {
    const char *name;
    trace_content content;
    uint32_t block_tokens;
    const char *arrival_field; /* NULL: made arrivals */
    const char *input_field, *output_field;
    bool has_turns; /* requests say how they follow each other */
    size_t state_bytes;

    /* Reads what stands before the requests; may be NULL. The header of a CSV format is read already. */
    int (*open)(trace_reader *r, trace_error *error);

    /* A CSV format has these: its columns, and the request of one row. Returns 0, TRACE_ROW_FAILED or an error. */
    csv_columns columns;
    int (*row)(trace_reader *r, char *const *fields, trace_request *out, trace_error *error);

    /* Any other has one of these two: whether a file with this first line is of this format, or a file that begins like
     * this (which may be several lines, or part of one). With neither it is never found in files. */
    bool (*detect)(const char *line, size_t length);
    bool (*detect_head)(const char *head);

    /* And this: what trace_next does, without the checks that hold for all formats. */
    int (*next)(trace_reader *r, trace_request *out, trace_error *error);

    /* Where lines do not tell requests apart: what to call a field of the current request in errors, or, for NULL, the
     * request itself. Valid until the next call. */
    const char *(*field)(const trace_reader *r, const char *name);

    /* Frees what `state` points to; may be NULL. */
    void (*close)(trace_reader *r);
} trace_format;

extern const trace_format trace_servegen, trace_qwen, trace_servegen_offline, trace_burstgpt, trace_mooncake,
    trace_azure, trace_vidur, trace_etalon, trace_kv_cache_tester, trace_generated, trace_listed;

#endif
