#include "trace/json.h"

#include <math.h>
#include <string.h>

/* jansson says where it stopped, not in which field. The last name before that place is the field, so copy it. */
static const char *name_before(const char *text, size_t position, char *out, size_t cap)
{
    const char *found = NULL, *end = NULL;
    for (const char *c = text; c < text + position && *c; c++) {
        if (*c != ':' || c == text)
            continue;
        const char *close = c - 1;
        while (close > text && *close == ' ')
            close--;
        const char *open = close;
        while (*close == '"' && open > text && *--open != '"')
            ;
        if (open < close && *open == '"')
            found = open + 1, end = close;
    }
    size_t length = found ? (size_t)(end - found) : 0;
    if (length == 0 || length >= cap)
        return NULL;
    memcpy(out, found, length);
    out[length] = '\0';
    return out;
}

/* Parses the current text; `wrong` gets what is wrong with it. */
static json_t *parse(const line_reader *lines, json_error_t *wrong, trace_error *error)
{
    json_t *object = json_loadb(lines->text, lines->length, JSON_REJECT_DUPLICATES, wrong);
    if (!object || json_is_object(object))
        return object;
    json_decref(object);
    trace_bad_input(error, lines_place(lines, NULL), "is no JSON object");
    wrong->text[0] = '\0';
    return NULL;
}

static void not_json(const line_reader *lines, uint64_t line, const json_error_t *wrong, trace_error *error)
{
    char name[64];
    size_t at = wrong->position > 0 ? (size_t)wrong->position : 0;
    const char *field = name_before(lines->text, at, name, sizeof name);
    trace_bad_input(error, (trace_place){lines->name, line, field}, "not JSON at column %d: %s", wrong->column,
                    wrong->text);
}

json_t *json_line(const line_reader *lines, trace_error *error)
{
    json_error_t wrong;
    json_t *object = parse(lines, &wrong, error);
    if (!object && wrong.text[0])
        not_json(lines, lines->line, &wrong, error);
    return object;
}

json_t *json_document(line_reader *lines, int *rc, trace_error *error)
{
    json_error_t wrong;
    *rc = lines_all(lines, JSON_DOCUMENT_MAX, error);
    if (*rc < 0)
        return NULL;
    json_t *object = parse(lines, &wrong, error);
    if (!object && wrong.text[0])
        not_json(lines, wrong.line > 0 ? (uint64_t)wrong.line : 0, &wrong, error);
    *rc = object ? 0 : TRACE_BAD_INPUT;
    return object;
}

int json_seconds(const json_t *value, trace_place place, uint64_t *us, trace_error *error)
{
    const double longest_s = 9e9; /* 285 years, so that the microseconds are exact to 2^53 */
    if (!value)
        return trace_bad_input(error, place, "missing");
    if (!json_is_number(value))
        return trace_bad_input(error, place, "is not a number");
    double seconds = json_number_value(value);
    if (seconds < 0)
        return trace_bad_input(error, place, "%g is negative", seconds);
    if (seconds > longest_s)
        return trace_bad_input(error, place, "%g is too large", seconds);
    *us = (uint64_t)llround(seconds * 1e6);
    return 0;
}

int json_whole(const json_t *value, trace_place place, uint64_t max, uint64_t *out, trace_error *error)
{
    if (!value)
        return trace_bad_input(error, place, "missing");
    if (!json_is_integer(value))
        return trace_bad_input(error, place, "is not a whole number");
    json_int_t number = json_integer_value(value);
    if (number < 0)
        return trace_bad_input(error, place, "%" JSON_INTEGER_FORMAT " is negative", number);
    if ((uint64_t)number > max)
        return trace_bad_input(error, place, "%" JSON_INTEGER_FORMAT " is too large", number);
    *out = (uint64_t)number;
    return 0;
}
