/* kvkeep bench: what the manager's own hot paths cost. */
#include "kvkeep/arguments.h"
#include "kvkeep/bench.h"
#include "kvkeep/commands.h"

#include <string.h>

enum { KEY_JSON = 1, KEY_REPEATS };

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "One JSON object instead of a table", 0},
    {"repeats", KEY_REPEATS, "N", 0, "Measure each case N times (odd; default 31)", 0},
    {0},
};

static error_t parse_repeats(const arguments *a, const char *text, uint32_t *out)
{
    uint64_t n = 0;
    error_t rc = arguments_whole(a, "repeats", text, (whole_range){1, 9999}, &n);
    if (rc == 0 && n % 2 == 0) {
        trace_bad_input(a->error, (trace_place){a->command, 0, "repeats"}, "%s is not odd", text);
        return EINVAL;
    }
    *out = (uint32_t)n;
    return rc;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const arguments *a = state->input;
    bench_options *o = a->options;
    switch (key) {
    case KEY_JSON:
        o->json = 1;
        return 0;
    case KEY_REPEATS:
        return parse_repeats(a, arg, &o->repeats);
    case ARGP_KEY_ARG:
        if (state->arg_num == 0 && strcmp(arg, "pool") == 0)
            return 0;
        trace_bad_input(a->error, (trace_place){a->command, 0, NULL}, "no suite '%.64s': there is 'pool'", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_bench(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[pool]",
        "Measures the page pool, a serving step and a prefix hit, each against a baseline in "
        "the same run: median, 10th and 90th percentile, and the ratio of the medians.",
        NULL,
        NULL,
        NULL};
    bench_options o = {.repeats = 31};
    trace_error error;
    arguments a = {"kvkeep bench", &o, &error};
    int rc = arguments_parse(&argp, argc, argv, &a);
    if (rc < 0)
        return arguments_report(&error, rc);
    if (rc > 0)
        return arguments_finish_stdout();
    if (bench_run(bench_pool_cases, bench_pool_count, &o, &error) < 0)
        return arguments_report(&error, TRACE_FAILED);
    return arguments_finish_stdout();
}
