#include "trace/block_lines.h"

#include <kvkeep/kvkeep.h>
#include <string.h>

bool block_lines_object(const char *line, size_t length)
{
    size_t blanks = strspn(line, " \t");
    return blanks < length && line[blanks] == '{';
}

int block_lines_length(const trace_reader *r, const json_t *object, const char *name, uint32_t *out, trace_error *error)
{
    uint64_t tokens;
    int rc = json_whole(json_object_get(object, name), lines_place(&r->lines, name), KVK_MAX_TOKENS, &tokens, error);
    if (rc == 0)
        *out = (uint32_t)tokens;
    return rc;
}

static int read_object(trace_reader *r, const json_t *object, block_lines_rest rest, trace_request *out,
                       trace_error *error)
{
    block_lines *s = r->state;
    int rc = rest(r, object, out, error);
    if (rc == 0)
        rc = block_lines_length(r, object, "input_length", &out->n_input, error);
    if (rc < 0)
        return rc;
    const json_t *ids = json_object_get(object, "hash_ids");
    return blocks_read(&s->ids, ids, lines_place(&r->lines, "hash_ids"), "input_length", out, error);
}

int block_lines_next(trace_reader *r, block_lines_rest rest, trace_request *out, trace_error *error)
{
    int rc;
    do
        rc = lines_next(&r->lines, error);
    while (rc == 1 && r->lines.length == 0);
    if (rc != 1)
        return rc;
    json_t *object = json_line(&r->lines, error);
    if (!object)
        return TRACE_BAD_INPUT;
    rc = read_object(r, object, rest, out, error);
    json_decref(object);
    return rc < 0 ? rc : 1;
}

void block_lines_close(trace_reader *r)
{
    block_lines *s = r->state;
    blocks_close(&s->ids);
}
