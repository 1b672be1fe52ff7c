#define _POSIX_C_SOURCE 200809L /* fmemopen */
#include "oplog_text.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

int sink_write(void *ctx, const char *bytes, size_t n)
{
    sink *s = ctx;
    s->bytes = realloc(s->bytes, s->n + n + 1);
    ck_assert_ptr_nonnull(s->bytes);
    memcpy(s->bytes + s->n, bytes, n);
    s->n += n;
    s->bytes[s->n] = '\0';
    return 0;
}

int sink_print(void *ctx, const char *line, size_t n)
{
    return sink_write(ctx, line, n) || sink_write(ctx, "\n", 1);
}

void sink_free(sink *s)
{
    free(s->bytes);
    *s = (sink){0};
}

int oplog_text_run(const char *text, const oplog_options *options, oplog_summary *summary, trace_error *error)
{
    size_t n = strlen(text);
    sink copy = {0}; /* fmemopen wants to be able to write */
    sink_write(&copy, text, n);
    FILE *in = n ? fmemopen(copy.bytes, n, "r") : fopen("/dev/null", "r");
    ck_assert_ptr_nonnull(in);
    int rc = oplog_replay(in, "t", options, summary, error);
    fclose(in);
    sink_free(&copy);
    return rc;
}

void oplog_text_ends(const char *text, int code, const char *line)
{
    oplog_summary summary;
    trace_error error = {""};
    int rc = oplog_text_run(text, NULL, &summary, &error);
    ck_assert_msg(rc == code, "%s\nended with %d: %s", text, rc, error.text);
    ck_assert_str_eq(error.text, line);
}

void oplog_text_refused(const char *head, const refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", head, cases[i].text);
        oplog_text_ends(text, TRACE_BAD_INPUT, cases[i].line);
    }
}

sink oplog_text_record(const char *text)
{
    sink recorded = {0};
    oplog_summary summary;
    trace_error error = {""};
    oplog_options options = {.audit = 1, .record = sink_write, .record_ctx = &recorded};
    int rc = oplog_text_run(text, &options, &summary, &error);
    ck_assert_msg(rc == 0, "%s\nended with %d: %s", text, rc, error.text);
    return recorded;
}
