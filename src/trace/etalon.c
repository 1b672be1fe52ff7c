/* etalon's CSV: lengths only, with their sum and ratio. Arrivals are a Poisson process of the rate asked for. */
#include "trace/arrivals.h"
#include "trace/number.h"

static const char *const names[] = {"num_prefill_tokens", "num_decode_tokens", "num_total_tokens", "pd_ratio"};

static int open_etalon(trace_reader *r, trace_error *error)
{
    (void)error;
    arrivals_start(r->state, r);
    return 0;
}

static int check_ratio(trace_reader *r, const char *text, trace_error *error)
{
    double ratio;
    const char *wrong = number_decimal(text, &ratio);
    return wrong ? trace_bad_input(error, lines_place(&r->lines, names[3]), "'%.64s' %s", text, wrong) : 0;
}

static int read_row(trace_reader *r, char *const *fields, trace_request *out, trace_error *error)
{
    uint32_t total = 0;
    int rc = arrivals_next(r->state, r, &out->arrival_us, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[0], fields[0], &out->n_input, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[1], fields[1], &out->n_output, error);
    if (rc == 0)
        rc = csv_tokens(&r->lines, names[2], fields[2], &total, error);
    if (rc == 0)
        rc = csv_sum(&r->lines, names[2], total, out, error);
    return rc < 0 ? rc : check_ratio(r, fields[3], error);
}

const trace_format trace_etalon = {
    .name = "etalon",
    .content = TRACE_LENGTHS,
    .input_field = "num_prefill_tokens",
    .output_field = "num_decode_tokens",
    .state_bytes = sizeof(arrivals),
    .open = open_etalon,
    .columns = {names, 4},
    .row = read_row,
};
