/* trace/json.h: one JSON object a line, read with jansson, and errors that name the field. */
#ifndef KVKEEP_TRACE_JSON_H
#define KVKEEP_TRACE_JSON_H

#include "trace/lines.h"

#include <jansson.h>

/* Parses the current line, which must be one object without duplicate names. Returns a new reference, or NULL with
 * `error` set (bad input). */
json_t *json_line(const line_reader *lines, trace_error *error);

/* A whole number of 0 .. max from `value`, which is the field that `place` names; NULL stands for a missing one. */
int json_whole(const json_t *value, trace_place place, uint64_t max, uint64_t *out, trace_error *error);

#endif
