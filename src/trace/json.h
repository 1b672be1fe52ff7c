/* trace/json.h: one JSON object a line, read with jansson, and errors that name the field. */
#ifndef KVKEEP_TRACE_JSON_H
#define KVKEEP_TRACE_JSON_H

#include "trace/lines.h"

#include <jansson.h>

/* Parses the current line, which must be one object without duplicate names. Returns a new reference, or NULL with
 * `error` set (bad input). */
json_t *json_line(const line_reader *lines, trace_error *error);

/* Parses all that is left of `lines` as one object, likewise; at most JSON_DOCUMENT_MAX bytes. jansson takes some 20
 * times the text's size for it, and refuses what is nested deeper than 2,048. NULL with `error` and the code in *rc.
 * */
#define JSON_DOCUMENT_MAX ((size_t)256 << 20)
json_t *json_document(line_reader *lines, int *rc, trace_error *error);

/* Seconds of 0 .. 9e9 from `value`, a number, to the nearest microsecond; `place` as below. */
int json_seconds(const json_t *value, trace_place place, uint64_t *us, trace_error *error);

/* A whole number of 0 .. max from `value`, which is the field that `place` names; NULL stands for a missing one. */
int json_whole(const json_t *value, trace_place place, uint64_t max, uint64_t *out, trace_error *error);

#endif
