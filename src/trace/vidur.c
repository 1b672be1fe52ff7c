/* vidur's CSV: arrived_at in seconds, num_prefill_tokens, num_decode_tokens. */
#include "trace/format.h"
#include "trace/number.h"

#include <math.h>

static const char *const names[] = {"arrived_at", "num_prefill_tokens", "num_decode_tokens"};

/* To the nearest microsecond: the file's decimals carry the noise of a subtraction of doubles. */
static int read_arrival(trace_reader *r, const char *text, uint64_t *arrival_us, trace_error *error)
{
    const double longest_s = 9e9; /* 285 years, so that the microseconds are exact to 2^53 */
    double seconds = 0;
    const char *wrong = number_decimal(text, &seconds);
    if (!wrong && seconds > longest_s)
        wrong = "is too large";
    if (wrong)
        return trace_bad_input(error, lines_place(&r->lines, names[0]), "'%.64s' %s", text, wrong);
    *arrival_us = (uint64_t)llround(seconds * 1e6);
    return 0;
}

static int read_row(trace_reader *r, char *const *fields, trace_request *out, trace_error *error)
{
    int rc = read_arrival(r, fields[0], &out->arrival_us, error);
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
