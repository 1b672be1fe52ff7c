/* ServeGen's offline traces, JSON Lines: input lengths in tokens and one id per 16 prompt tokens begun; neither times
 * nor outputs. Arrivals are a Poisson process of the rate asked for. */
#include "trace/block_lines.h"

#include <string.h>

enum { BLOCK_TOKENS = 16 };

static bool detect(const char *line, size_t length)
{
    return block_lines_object(line, length) && strstr(line, "\"request_id\"");
}

static int open_offline(trace_reader *r, trace_error *error)
{
    (void)error;
    block_lines *s = r->state;
    arrivals_start(&s->arrivals, r);
    return 0;
}

static int read_rest(trace_reader *r, const json_t *object, trace_request *out, trace_error *error)
{
    (void)object;
    block_lines *s = r->state;
    *out = (trace_request){.block_tokens = BLOCK_TOKENS};
    return arrivals_next(&s->arrivals, r, &out->arrival_us, error);
}

static int next_offline(trace_reader *r, trace_request *out, trace_error *error)
{
    return block_lines_next(r, read_rest, out, error);
}

const trace_format trace_servegen_offline = {
    .name = "servegen_offline",
    .content = TRACE_BLOCKS,
    .block_tokens = BLOCK_TOKENS,
    .input_field = "input_length",
    .output_field = "input_length",
    .state_bytes = sizeof(block_lines),
    .open = open_offline,
    .detect = detect,
    .next = next_offline,
    .close = block_lines_close,
};
