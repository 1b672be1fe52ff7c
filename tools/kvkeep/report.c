#include "kvkeep/report.h"

#include <stdio.h>

enum { NAME_WIDTH = 18 };

void report_open(report *r)
{
    r->fields = json_object();
    r->complete = r->fields != NULL;
}

void report_add(report *r, const char *name, json_t *value)
{
    if (json_object_set_new(r->fields, name, value) < 0)
        r->complete = false;
}

void report_count(report *r, const char *name, uint64_t value)
{
    report_add(r, name, json_integer((json_int_t)value));
}

/* One row of the table: the name in words, the value as people write it. */
static void print_row(const char *name, const json_t *value)
{
    char label[64];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof label; n++)
        label[n] = (char)(name[n] == '_' ? ' ' : name[n]);
    label[n] = '\0';
    printf("%-*s ", NAME_WIDTH, label);
    if (json_is_integer(value))
        printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
    else if (json_is_real(value))
        printf("%.6g\n", json_real_value(value));
    else if (json_is_string(value))
        printf("%s\n", json_string_value(value));
    else
        puts(json_is_null(value) ? "unknown" : json_is_true(value) ? "yes" : "no");
}

int report_print(report *r, bool as_json, trace_error *error)
{
    const char *name;
    json_t *value;
    bool complete = r->complete;
    if (complete && as_json) {
        json_dumpf(r->fields, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
        putchar('\n');
    } else if (complete) {
        json_object_foreach(r->fields, name, value) print_row(name, value);
    }
    json_decref(r->fields);
    return complete ? 0 : trace_failed(error, (trace_place){"kvkeep", 0, NULL}, "out of memory");
}

void report_add_row(json_t **rows, json_t *row)
{
    if (json_array_append_new(*rows, row) < 0) {
        json_decref(*rows);
        *rows = NULL;
    }
}

int report_print_rows(json_t *rows, trace_error *error)
{
    json_t *all = rows ? json_pack("{s:O}", "results", rows) : NULL;
    if (!all)
        return trace_failed(error, (trace_place){"kvkeep", 0, NULL}, "out of memory");
    json_dumpf(all, stdout, JSON_REAL_PRECISION(17) | JSON_COMPACT);
    putchar('\n');
    json_decref(all);
    return 0;
}
