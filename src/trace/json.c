#include "trace/json.h"

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

json_t *json_line(const line_reader *lines, trace_error *error)
{
    json_error_t wrong;
    json_t *object = json_loadb(lines->text, lines->length, JSON_REJECT_DUPLICATES, &wrong);
    if (json_is_object(object))
        return object;
    if (object) {
        json_decref(object);
        trace_bad_input(error, lines_place(lines, NULL), "is no JSON object");
        return NULL;
    }
    char name[64];
    size_t at = wrong.position > 0 ? (size_t)wrong.position : 0;
    trace_place place = lines_place(lines, name_before(lines->text, at, name, sizeof name));
    trace_bad_input(error, place, "not JSON at column %d: %s", wrong.column, wrong.text);
    return NULL;
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
