#include "trace/input.h"
#include "trace/registry.h"
#include "trace/request_list.h"

#include <kvkeep/kvkeep.h>
#include <stdlib.h>

struct trace {
    const char *const *paths; /* still to read: paths[next .. n-1] */
    size_t next, n;
    FILE *owned; /* the file being read, if this opened it */
    const trace_format *format;
    trace_reader reader;
    uint64_t last_arrival_us;
    uint64_t failed_requests;
};

const char *trace_format_name(const trace *t)
{
    return t->format->name;
}

trace_content trace_content_of(const trace *t)
{
    return t->format->content;
}

uint32_t trace_block_tokens(const trace *t)
{
    return t->format->block_tokens;
}

bool trace_has_arrivals(const trace *t)
{
    return t->format->arrival_field != NULL;
}

bool trace_has_turns(const trace *t)
{
    return t->format->has_turns;
}

uint64_t trace_failed_requests(const trace *t)
{
    return t->failed_requests;
}

trace_place trace_where(const trace *t, const char *field)
{
    const trace_format *f = t->format;
    return lines_place(&t->reader.lines, f && f->field && t->reader.state ? f->field(&t->reader, field) : field);
}

static void close_input(trace *t)
{
    if (t->format && t->format->close && t->reader.state)
        t->format->close(&t->reader);
    free(t->reader.state);
    t->reader.state = NULL;
    lines_close(&t->reader.lines);
    if (t->owned && t->owned != stdin)
        fclose(t->owned);
    t->owned = NULL;
}

void trace_close(trace *t)
{
    if (!t)
        return;
    close_input(t);
    free(t);
}

/* Finds what the input is by its beginning, or else by its first line, which is then read again. */
static int detect_format(trace *t, const trace_format **out, trace_error *error)
{
    const char *head = NULL;
    int rc = lines_peek(&t->reader.lines, &head, error);
    if (rc < 0)
        return rc;
    *out = registry_detect_head(head);
    if (*out)
        return 0;
    do
        rc = lines_next(&t->reader.lines, error);
    while (rc == 1 && t->reader.lines.length == 0);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return trace_bad_input(error, trace_where(t, NULL), "is empty");
    lines_unread(&t->reader.lines);
    *out = registry_detect(t->reader.lines.text, t->reader.lines.length);
    if (!*out)
        return trace_bad_input(error, trace_where(t, NULL), "begins like none of %s", trace_format_names());
    return 0;
}

static int find_format(trace *t, const trace_format **out, trace_error *error)
{
    const char *forced = t->reader.options.format;
    if (!forced)
        return detect_format(t, out, error);
    *out = registry_named(forced);
    if (*out)
        return 0;
    return trace_bad_input(error, trace_where(t, "format"), "'%.32s' is none of %s", forced, trace_format_names());
}

static int start_format(trace *t, trace_error *error)
{
    const trace_format *f = t->format;
    t->last_arrival_us = 0;
    t->reader.state = calloc(1, f->state_bytes ? f->state_bytes : 1);
    if (!t->reader.state)
        return trace_failed(error, trace_where(t, NULL), "out of memory");
    int rc = f->columns.n ? csv_header(&t->reader.lines, f->columns, error) : 0;
    return rc < 0 || !f->open ? rc : f->open(&t->reader, error);
}

static int start_input(trace *t, FILE *in, const char *name, trace_error *error)
{
    lines_open(&t->reader.lines, in, name);
    const trace_format *format = NULL;
    int rc = find_format(t, &format, error);
    if (rc < 0)
        return rc;
    if (t->format && (format->content != t->format->content || format->block_tokens != t->format->block_tokens))
        return trace_bad_input(error, trace_where(t, NULL), "is %s and cannot follow %s", format->name,
                               t->format->name);
    t->format = format;
    return start_format(t, error);
}

static int start_next_file(trace *t, trace_error *error)
{
    close_input(t);
    const char *path = t->paths[t->next++];
    t->reader.file = (uint32_t)t->next - 1;
    int rc = input_open(path, &t->owned, error);
    return rc < 0 ? rc : start_input(t, t->owned, path, error);
}

static int new_trace(const trace_options *options, trace **out, trace_error *error)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return trace_failed(error, (trace_place){"trace", 0, NULL}, "out of memory");
    (*out)->reader.options = *options;
    return 0;
}

/* Hands a trace over, or takes it down after an error. */
static int opened(trace **out, int rc)
{
    if (rc < 0) {
        trace_close(*out);
        *out = NULL;
    }
    return rc;
}

int trace_open(FILE *in, const char *name, const trace_options *options, trace **out, trace_error *error)
{
    int rc = new_trace(options, out, error);
    return rc < 0 ? rc : opened(out, start_input(*out, in, name, error));
}

int trace_open_files(const char *const *paths, size_t n, const trace_options *options, trace **out, trace_error *error)
{
    int rc = new_trace(options, out, error);
    if (rc < 0)
        return rc;
    (*out)->paths = paths;
    (*out)->n = n;
    return opened(out, start_next_file(*out, error));
}

int trace_open_generated(const trace_options *options, trace **out, trace_error *error)
{
    int rc = new_trace(options, out, error);
    if (rc < 0)
        return rc;
    (*out)->format = &trace_generated;
    (*out)->reader.lines.name = trace_generated.name;
    return opened(out, start_format(*out, error));
}

int trace_open_listed(const request_list *list, trace **out, trace_error *error)
{
    int rc = new_trace(&TRACE_OPTIONS_DEFAULT, out, error);
    if (rc < 0)
        return rc;
    (*out)->format = &trace_listed;
    (*out)->reader.lines.name = list->name;
    (*out)->reader.listed = list;
    return opened(out, start_format(*out, error));
}

static int next_csv(trace *t, trace_request *out, trace_error *error)
{
    char *fields[CSV_MAX_COLUMNS];
    for (int rc;;) {
        rc = csv_row(&t->reader.lines, t->format->columns, fields, error);
        if (rc != 1)
            return rc;
        *out = (trace_request){0};
        rc = t->format->row(&t->reader, fields, out, error);
        if (rc != TRACE_ROW_FAILED)
            return rc < 0 ? rc : 1;
        t->failed_requests++;
    }
}

static int check_request(trace *t, const trace_request *request, trace_error *error)
{
    const trace_format *f = t->format;
    if (request->n_input == 0)
        return trace_bad_input(error, trace_where(t, f->input_field), "must be at least 1");
    if ((uint64_t)request->n_input + request->n_output > KVK_MAX_TOKENS)
        return trace_bad_input(error, trace_where(t, f->output_field), "input and output are over %u tokens together",
                               KVK_MAX_TOKENS);
    if (request->arrival_us < t->last_arrival_us)
        return trace_bad_input(error, trace_where(t, f->arrival_field), "is earlier than the request before");
    t->last_arrival_us = request->arrival_us;
    return 1;
}

int trace_next(trace *t, trace_request *out, trace_error *error)
{
    int rc;
    while ((rc = t->format->columns.n ? next_csv(t, out, error) : t->format->next(&t->reader, out, error)) == 0) {
        if (t->next >= t->n)
            return 0;
        rc = start_next_file(t, error);
        if (rc < 0)
            return rc;
    }
    return rc < 0 ? rc : check_request(t, out, error);
}
