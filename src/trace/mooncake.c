/* Mooncake's JSON Lines (FAST '25 traces): timestamp in ms, lengths in tokens, one id per 512 prompt tokens begun. */
#include "trace/blocks.h"
#include "trace/format.h"

#include <kvkeep/kvkeep.h>
#include <string.h>

enum { BLOCK_TOKENS = 512 };

static bool detect(const char *line, size_t length)
{
    size_t blanks = strspn(line, " \t");
    return blanks < length && line[blanks] == '{';
}

static int read_whole(trace_reader *r, const json_t *object, const char *name, uint64_t max, uint64_t *out,
                      trace_error *error)
{
    return json_whole(json_object_get(object, name), lines_place(&r->lines, name), max, out, error);
}

static int read_object(trace_reader *r, json_t *object, trace_request *out, trace_error *error)
{
    uint64_t ms, input, output;
    int rc = read_whole(r, object, "timestamp", INT64_MAX / 1000, &ms, error);
    if (rc == 0)
        rc = read_whole(r, object, "input_length", KVK_MAX_TOKENS, &input, error);
    if (rc == 0)
        rc = read_whole(r, object, "output_length", KVK_MAX_TOKENS, &output, error);
    if (rc < 0)
        return rc;
    *out = (trace_request){.arrival_us = ms * 1000,
                           .n_input = (uint32_t)input,
                           .n_output = (uint32_t)output,
                           .block_tokens = BLOCK_TOKENS};
    const json_t *ids = json_object_get(object, "hash_ids");
    return blocks_read(r->state, ids, lines_place(&r->lines, "hash_ids"), "input_length", out, error);
}

static int next_mooncake(trace_reader *r, trace_request *out, trace_error *error)
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
    rc = read_object(r, object, out, error);
    json_decref(object);
    return rc < 0 ? rc : 1;
}

static void close_mooncake(trace_reader *r)
{
    blocks_close(r->state);
}

const trace_format trace_mooncake = {
    .name = "mooncake",
    .content = TRACE_BLOCKS,
    .block_tokens = BLOCK_TOKENS,
    .arrival_field = "timestamp",
    .input_field = "input_length",
    .output_field = "output_length",
    .state_bytes = sizeof(block_ids),
    .detect = detect,
    .next = next_mooncake,
    .close = close_mooncake,
};
