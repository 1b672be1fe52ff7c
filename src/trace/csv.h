/* trace/csv.h: rows of plain comma-separated files with a fixed header, as the public traces are. Quotes mean
 * nothing. */
#ifndef KVKEEP_TRACE_CSV_H
#define KVKEEP_TRACE_CSV_H

#include "trace/lines.h"
#include "trace/request.h"

enum { CSV_MAX_COLUMNS = 8 };

/* The columns that a file must have, in this order; at most CSV_MAX_COLUMNS. */
typedef struct csv_columns {
    const char *const *names;
    uint32_t n;
} csv_columns;

/* Whether a line is exactly the header of these columns. */
bool csv_is_header(csv_columns columns, const char *line);

/* Reads the header. 0, or an error that names the first column that is not as it must be. */
int csv_header(line_reader *lines, csv_columns columns, trace_error *error);

/* Reads the next row and splits it in place into fields[n]; blank lines are skipped. Returns 1, 0 at the end, or an
 * error. */
int csv_row(line_reader *lines, csv_columns columns, char **fields, trace_error *error);

/* Reads the field `text` of column `name` as a length of 0 .. KVK_MAX_TOKENS. 0, or an error that names it. */
int csv_tokens(const line_reader *lines, const char *name, const char *text, uint32_t *out, trace_error *error);

/* Reads the field as seconds of 0 .. 9e9, to the nearest microsecond. 0, or an error that names it. */
int csv_seconds(const line_reader *lines, const char *name, const char *text, uint64_t *us, trace_error *error);

/* Checks that `total`, of column `name`, is the request's input and output together. 0, or an error that names it. */
int csv_sum(const line_reader *lines, const char *name, uint32_t total, const trace_request *request,
            trace_error *error);

#endif
