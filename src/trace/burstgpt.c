/* BurstGPT's CSV: times in s, lengths in tokens with their sum, model and kind of log. A request that got no response
 * failed: it is counted and passed over. */
#include "trace/format.h"

static const char *const names[] = {"Timestamp",       "Model",        "Request tokens",
                                    "Response tokens", "Total tokens", "Log Type"};

static int read_row(trace_reader *r, char *const *fields, trace_request *out, trace_error *error)
{
    uint32_t total = 0;
    int rc = csv_seconds(&r->lines, names[0], fields[0], &out->arrival_us, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[2], fields[2], &out->n_input, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[3], fields[3], &out->n_output, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[4], fields[4], &total, error);
    if (rc == 0 && out->n_output == 0)
        return TRACE_ROW_FAILED;
    return rc < 0 ? rc : csv_sum(&r->lines, names[4], total, out, error);
}

const trace_format trace_burstgpt = {
    .name = "burstgpt",
    .content = TRACE_LENGTHS,
    .arrival_field = "Timestamp",
    .input_field = "Request tokens",
    .output_field = "Response tokens",
    .columns = {names, 6},
    .row = read_row,
};
