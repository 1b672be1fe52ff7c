/* Mooncake's JSON Lines (FAST '25 traces): timestamp in ms, lengths in tokens, one id per 512 prompt tokens begun. */
#include "trace/block_lines.h"

enum { BLOCK_TOKENS = 512 };

static int read_rest(trace_reader *r, const json_t *object, trace_request *out, trace_error *error)
{
    uint64_t ms;
    *out = (trace_request){.block_tokens = BLOCK_TOKENS};
    int rc = json_whole(json_object_get(object, "timestamp"), lines_place(&r->lines, "timestamp"), INT64_MAX / 1000,
                        &ms, error);
    if (rc < 0)
        return rc;
    out->arrival_us = ms * 1000;
    return block_lines_length(r, object, "output_length", &out->n_output, error);
}

static int next_mooncake(trace_reader *r, trace_request *out, trace_error *error)
{
    return block_lines_next(r, read_rest, out, error);
}

const trace_format trace_mooncake = {
    .name = "mooncake",
    .content = TRACE_BLOCKS,
    .block_tokens = BLOCK_TOKENS,
    .arrival_field = "timestamp",
    .input_field = "input_length",
    .output_field = "output_length",
    .state_bytes = sizeof(block_lines),
    .detect = block_lines_object,
    .next = next_mooncake,
    .close = block_lines_close,
};
