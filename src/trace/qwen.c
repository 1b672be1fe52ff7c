/* Qwen-Bailian's JSON Lines: timestamp in s, lengths in tokens, one id per 16 prompt tokens begun. */
#include "trace/block_lines.h"

#include <string.h>

enum { BLOCK_TOKENS = 16 };

static bool detect(const char *line, size_t length)
{
    return block_lines_object(line, length) && strstr(line, "\"chat_id\"");
}

static int read_rest(trace_reader *r, const json_t *object, trace_request *out, trace_error *error)
{
    *out = (trace_request){.block_tokens = BLOCK_TOKENS};
    int rc = json_seconds(json_object_get(object, "timestamp"), lines_place(&r->lines, "timestamp"), &out->arrival_us,
                          error);
    return rc < 0 ? rc : block_lines_length(r, object, "output_length", &out->n_output, error);
}

static int next_qwen(trace_reader *r, trace_request *out, trace_error *error)
{
    return block_lines_next(r, read_rest, out, error);
}

const trace_format trace_qwen = {
    .name = "qwen",
    .content = TRACE_BLOCKS,
    .block_tokens = BLOCK_TOKENS,
    .arrival_field = "timestamp",
    .input_field = "input_length",
    .output_field = "output_length",
    .state_bytes = sizeof(block_lines),
    .detect = detect,
    .next = next_qwen,
    .close = block_lines_close,
};
