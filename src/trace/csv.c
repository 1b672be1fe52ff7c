#include "trace/csv.h"

#include "trace/number.h"

#include <kvkeep/kvkeep.h>
#include <math.h>
#include <string.h>

/* Cuts the field at *rest off, or returns NULL when there is none left. */
static char *cut_field(char **rest)
{
    char *field = *rest;
    if (!field)
        return NULL;
    char *comma = strchr(field, ',');
    if (comma)
        *comma = '\0';
    *rest = comma ? comma + 1 : NULL;
    return field;
}

bool csv_is_header(csv_columns columns, const char *line)
{
    for (uint32_t i = 0; i < columns.n; i++) {
        size_t length = strlen(columns.names[i]);
        if (strncmp(line, columns.names[i], length) != 0 || line[length] != (i + 1 < columns.n ? ',' : '\0'))
            return false;
        line += length + 1;
    }
    return true;
}

int csv_header(line_reader *lines, csv_columns columns, trace_error *error)
{
    int rc;
    do
        rc = lines_next(lines, error);
    while (rc == 1 && lines->length == 0);
    if (rc < 0)
        return rc;
    char *rest = rc ? lines->text : NULL;
    for (uint32_t i = 0; i < columns.n; i++) {
        const char *name = cut_field(&rest);
        if (!name)
            return trace_bad_input(error, lines_place(lines, columns.names[i]), "missing from the header");
        if (strcmp(name, columns.names[i]) != 0)
            return trace_bad_input(error, lines_place(lines, columns.names[i]), "the header has '%.64s' in its place",
                                   name);
    }
    if (rest)
        return trace_bad_input(error, lines_place(lines, rest), "one column too many in the header");
    return 0;
}

int csv_row(line_reader *lines, csv_columns columns, char **fields, trace_error *error)
{
    int rc;
    do
        rc = lines_next(lines, error);
    while (rc == 1 && lines->length == 0);
    if (rc != 1)
        return rc;
    char *rest = lines->text;
    for (uint32_t i = 0; i < columns.n; i++) {
        fields[i] = cut_field(&rest);
        if (!fields[i])
            return trace_bad_input(error, lines_place(lines, columns.names[i]), "missing: the row has %u of %u columns",
                                   i, columns.n);
    }
    if (rest)
        return trace_bad_input(error, lines_place(lines, columns.names[columns.n - 1]),
                               "followed by '%.64s', one column too many", rest);
    return 1;
}

int csv_tokens(const line_reader *lines, const char *name, const char *text, uint32_t *out, trace_error *error)
{
    uint64_t value;
    const char *wrong = number_whole(text, KVK_MAX_TOKENS, &value);
    if (wrong)
        return trace_bad_input(error, lines_place(lines, name), "'%.64s' %s", text, wrong);
    *out = (uint32_t)value;
    return 0;
}

int csv_seconds(const line_reader *lines, const char *name, const char *text, uint64_t *us, trace_error *error)
{
    const double longest_s = 9e9; /* 285 years, so that the microseconds are exact to 2^53 */
    double seconds = 0;
    const char *wrong = number_decimal(text, &seconds);
    if (!wrong && seconds > longest_s)
        wrong = "is too large";
    if (wrong)
        return trace_bad_input(error, lines_place(lines, name), "'%.64s' %s", text, wrong);
    *us = (uint64_t)llround(seconds * 1e6);
    return 0;
}

int csv_sum(const line_reader *lines, const char *name, uint32_t total, const trace_request *request,
            trace_error *error)
{
    if ((uint64_t)request->n_input + request->n_output == total)
        return 0;
    return trace_bad_input(error, lines_place(lines, name), "%u is not the sum of %u and %u", total, request->n_input,
                           request->n_output);
}
