/* kvkeep/report.h: the results of a command, as one JSON object or as a table of the same names. */
#ifndef KVKEEP_TOOLS_REPORT_H
#define KVKEEP_TOOLS_REPORT_H

#include "trace/error.h"

#include <jansson.h>
#include <stdbool.h>

typedef struct report {
    json_t *fields; /* in the order added */
    bool complete;  /* no value was lost for want of memory */
} report;

void report_open(report *r);

/* Takes the reference to `value`; NULL means that there was no memory for it. */
void report_add(report *r, const char *name, json_t *value);

/* A count; JSON integers end at 2^63 - 1. */
void report_count(report *r, const char *name, uint64_t value);

/* Prints on stdout and closes the report. 0 or TRACE_FAILED; whether stdout could be written is seen when it is
 * flushed. */
int report_print(report *r, bool as_json, trace_error *error);

/* Appends to a list of objects and takes the reference to `row`. Where there is no memory the list becomes NULL. */
void report_add_row(json_t **rows, json_t *row);

/* Prints the list as {"results": [...]}. 0, or TRACE_FAILED, also of the list NULL. */
int report_print_rows(json_t *rows, trace_error *error);

#endif
