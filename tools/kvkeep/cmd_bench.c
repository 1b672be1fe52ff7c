/* cmd_bench.c: `kvkeep bench`. */
#include "bench.h"
#include "commands.h"

#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_JSON = 256, KEY_REPEATS };

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "One JSON object on stdout", 0},
    {"repeats", KEY_REPEATS, "N", 0, "Measure each case N times (odd, 1 to 9999; default 31)", 0},
    {0},
};

static uint32_t parse_repeats(const char *text, struct argp_state *state)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9' || n < 1 || n > 9999 || n % 2 == 0)
        argp_error(state, "--repeats: '%s' is not an odd number from 1 to 9999", text);
    return (uint32_t)n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    bench_options *o = state->input;
    switch (key) {
    case KEY_JSON:
        o->json = 1;
        return 0;
    case KEY_REPEATS:
        o->repeats = parse_repeats(arg, state);
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0 || strcmp(arg, "pool") != 0)
            argp_error(state, "'%s': the suite is 'pool'", arg);
        return 0;
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
        "the same run: median, 10th and 90th percentile, ratio of the medians.",
        NULL,
        NULL,
        NULL};
    bench_options o = {.repeats = 31};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0)
        return 2;
    return bench_run(bench_pool_cases, bench_pool_count, &o, stdout) < 0 ? 1 : 0;
}
