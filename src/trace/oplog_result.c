#include "trace/oplog_run.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 160 }; /* bytes of a value in an error: two fit into its text */

const char *oplog_show(const json_t *value, char *out, size_t cap)
{
    size_t n = value ? json_dumpb(value, out, cap - 1, JSON_COMPACT | JSON_ENCODE_ANY) : 0;
    if (!value)
        n = (size_t)snprintf(out, cap, "nothing");
    if (n >= cap) {
        n = cap - 1;
        memcpy(out + cap - 4, "...", 3);
    }
    out[n] = '\0';
    return out;
}

void oplog_detail(oplog_run *run, const char *name, json_t *value)
{
    json_object_set_new(run->detail, name, value);
}

/* `result` alone is compared without an object: so a long recording replays at full speed. */
static bool names_only_result(const json_t *expect)
{
    return json_object_size(expect) == 1 && json_object_get(expect, "result");
}

bool oplog_wants_detail(const oplog_run *run)
{
    return run->options->print || (run->args.expect && !names_only_result(run->args.expect));
}

/* The result's lists are as deep as the op's fields are, whatever a line expects of them. */
static bool equal(const json_t *a, const json_t *b)
{
    if (json_is_array(a) && json_is_array(b)) {
        bool same = json_array_size(a) == json_array_size(b);
        for (size_t i = 0; same && i < json_array_size(a); i++)
            same = equal(json_array_get(a, i), json_array_get(b, i));
        return same;
    }
    if (json_is_number(a) && json_is_number(b) && (json_is_real(a) || json_is_real(b)))
        return json_number_value(a) == json_number_value(b);
    return json_equal(a, b);
}

static int check_expect(oplog_run *run, const json_t *object)
{
    const char *name;
    json_t *wanted;
    json_object_foreach(run->args.expect, name, wanted)
    {
        const json_t *got = json_object_get(object, name);
        if (got && equal(wanted, got))
            continue;
        char field[64], wanted_text[SHOWN], got_text[SHOWN];
        snprintf(field, sizeof field, "expect.%s", name);
        return trace_failed(run->error, lines_place(&run->lines, field), "%s: expected %s, got %s",
                            json_string_value(json_object_get(object, "op")),
                            oplog_show(wanted, wanted_text, sizeof wanted_text),
                            oplog_show(got, got_text, sizeof got_text));
    }
    return 0;
}

/* What a line says nothing about must have gone well. */
static int check_success(oplog_run *run, const oplog_op *op)
{
    const json_t *expect = run->args.expect;
    trace_place place = lines_place(&run->lines, "result");
    if (json_object_get(expect, "result"))
        return 0;
    if (run->result < 0 && !json_object_get(expect, "error"))
        return trace_failed(run->error, place, "%s: expected success, got %d %s (%s)", op->name, run->result,
                            kvk_error_name(run->result), kvk_strerror(run->result));
    if (run->result > 0 && op->finding && !json_object_get(expect, op->finding))
        return trace_failed(run->error, place, "%s: expected 0 %s, got %d", op->name, op->finding, run->result);
    return 0;
}

static json_t *result_object(const oplog_run *run, const oplog_op *op)
{
    json_t *object =
        json_pack("{s:I, s:s, s:i}", "line", (json_int_t)run->lines.line, "op", op->name, "result", run->result);
    if (object && run->result < 0)
        json_object_set_new(object, "error", json_string(kvk_error_name(run->result)));
    if (object && run->detail)
        json_object_update(object, run->detail);
    return object;
}

static int print_object(oplog_run *run, const json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);
    if (!text)
        return oplog_no_memory(run);
    int rc = run->options->print(run->options->print_ctx, text, strlen(text));
    free(text);
    return rc == 0 ? 0 : trace_failed(run->error, lines_place(&run->lines, NULL), "cannot print the result");
}

static int check_object(oplog_run *run, const oplog_op *op)
{
    json_t *object = result_object(run, op);
    if (!object)
        return oplog_no_memory(run);
    int rc = run->options->print ? print_object(run, object) : 0;
    if (rc == 0)
        rc = check_success(run, op);
    if (rc == 0 && run->args.expect)
        rc = check_expect(run, object);
    json_decref(object);
    return rc;
}

int oplog_check_result(oplog_run *run, const oplog_op *op)
{
    if (!run->detail && !run->args.expect)
        return check_success(run, op);
    const json_t *result = json_object_get(run->args.expect, "result");
    if (!run->detail && result && json_is_integer(result) && json_integer_value(result) == run->result)
        return 0;
    return check_object(run, op);
}
