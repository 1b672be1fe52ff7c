/* trace/block_lines.h: formats of one JSON object a line with `input_length` and `hash_ids`. */
#ifndef KVKEEP_TRACE_BLOCK_LINES_H
#define KVKEEP_TRACE_BLOCK_LINES_H

#include "trace/arrivals.h"
#include "trace/blocks.h"
#include "trace/format.h"

/* The state of such a reader. */
typedef struct block_lines {
    block_ids ids;
    arrivals arrivals; /* where the format has no times */
} block_lines;

/* Reads what else an object says, its time and its output, into `out`. 0 or an error. */
typedef int (*block_lines_rest)(trace_reader *r, const json_t *object, trace_request *out, trace_error *error);

/* What trace_next does: the next line's object. */
int block_lines_next(trace_reader *r, block_lines_rest rest, trace_request *out, trace_error *error);

/* Reads the length `name` of an object. 0 or an error. */
int block_lines_length(const trace_reader *r, const json_t *object, const char *name, uint32_t *out,
                       trace_error *error);

/* Whether a line begins an object. */
bool block_lines_object(const char *line, size_t length);

void block_lines_close(trace_reader *r);

#endif
