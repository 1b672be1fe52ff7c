#define _POSIX_C_SOURCE 200809L /* fmemopen */
#include "unit/trace_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A text as a stream. A private copy, since fmemopen wants to be able to write. */
typedef struct text_stream {
    char *copy;
    FILE *in;
} text_stream;

static text_stream open_text(const char *text)
{
    size_t n = strlen(text);
    text_stream s = {.copy = malloc(n + 1)};
    ck_assert_ptr_nonnull(s.copy);
    memcpy(s.copy, text, n + 1);
    s.in = n ? fmemopen(s.copy, n, "r") : fopen("/dev/null", "r");
    ck_assert_ptr_nonnull(s.in);
    return s;
}

static void close_text(text_stream *s)
{
    fclose(s->in);
    free(s->copy);
}

int text_read(const char *text, const char *format, trace_request *last, trace_error *error)
{
    text_stream s = open_text(text);
    trace_options options = TRACE_OPTIONS_DEFAULT;
    options.format = format;
    trace *t = NULL;
    trace_request request;
    int n = 0, rc = trace_open(s.in, "t", &options, &t, error);
    while (rc >= 0 && (rc = trace_next(t, &request, error)) == 1) {
        *last = request;
        n++;
    }
    trace_close(t);
    close_text(&s);
    return rc < 0 ? rc : n;
}

void text_refused(const char *text, const char *format, const char *line)
{
    trace_request last;
    trace_error error = {""};
    ck_assert_int_eq(text_read(text, format, &last, &error), TRACE_BAD_INPUT);
    ck_assert_str_eq(error.text, line);
}

static int replay_text(const char *text, const replay_options *options, replay_result *result, trace_error *error)
{
    text_stream s = open_text(text);
    trace *t;
    int rc = trace_open(s.in, "t", &TRACE_OPTIONS_DEFAULT, &t, error);
    if (rc == 0)
        rc = replay_trace(t, options, result, error);
    trace_close(t);
    close_text(&s);
    return rc;
}

replay_result text_replay(const char *text, const replay_options *options)
{
    replay_result result;
    trace_error error;
    ck_assert_msg(replay_text(text, options, &result, &error) == 0, "%s", error.text);
    return result;
}

void text_replay_fails(const char *text, const replay_options *options, int code, const char *line)
{
    replay_result result;
    trace_error error;
    ck_assert_int_eq(replay_text(text, options, &result, &error), code);
    ck_assert_str_eq(error.text, line);
}
