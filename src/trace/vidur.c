/* vidur's CSV: arrived_at in seconds (with the noise of a subtraction of doubles), num_prefill_tokens,
 * num_decode_tokens. */
#include "trace/format.h"

static const char *const names[] = {"arrived_at", "num_prefill_tokens", "num_decode_tokens"};

static int read_row(trace_reader *r, char *const *fields, trace_request *out, trace_error *error)
{
    int rc = csv_seconds(&r->lines, names[0], fields[0], &out->arrival_us, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[1], fields[1], &out->n_input, error);
    return rc < 0 ? rc : csv_tokens(&r->lines, names[2], fields[2], &out->n_output, error);
}

const trace_format trace_vidur = {
    .name = "vidur",
    .content = TRACE_LENGTHS,
    .arrival_field = "arrived_at",
    .input_field = "num_prefill_tokens",
    .output_field = "num_decode_tokens",
    .columns = {names, 3},
    .row = read_row,
};
