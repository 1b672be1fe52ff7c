/* kvkeep bench: what the manager's own hot paths, attention and a model on them cost. */
#include "kvkeep/arguments.h"
#include "kvkeep/bench/bench.h"
#include "kvkeep/commands.h"

#include <string.h>

enum { KEY_JSON = 1, KEY_REPEATS };

#if KVK_HAVE_CUDA
#define GPU_SUITE                                                                                                      \
    {                                                                                                                  \
        "gpu", bench_gpu_cases, &bench_gpu_count, bench_gpu_ready                                                      \
    }
#else
static int no_kernels(trace_error *error)
{
    return trace_failed(error, (trace_place){"kvkeep bench", 0, "gpu"}, "built without CUDA (option KVKEEP_CUDA)");
}
static const uint32_t no_cases;
#define GPU_SUITE                                                                                                      \
    {                                                                                                                  \
        "gpu", NULL, &no_cases, no_kernels                                                                             \
    }
#endif

static const bench_suite suites[] = {{"pool", bench_pool_cases, &bench_pool_count, NULL},
                                     {"servers", bench_servers_cases, &bench_servers_count, NULL},
                                     {"policy", bench_policy_cases, &bench_policy_count, NULL},
                                     {"attention", bench_attention_cases, &bench_attention_count, NULL},
                                     {"model", bench_model_cases, &bench_model_count, bench_model_ready},
                                     GPU_SUITE};

typedef struct bench_command {
    bench_options options;
    const bench_suite *suite;
} bench_command;

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

static error_t parse_suite(const arguments *a, const char *name, const bench_suite **out)
{
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (strcmp(suites[i].name, name) == 0) {
            *out = &suites[i];
            return 0;
        }
    trace_bad_input(a->error, (trace_place){a->command, 0, NULL},
                    "no suite '%.64s': there are pool, servers, policy, attention, model and gpu", name);
    return EINVAL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const arguments *a = state->input;
    bench_command *c = a->options;
    switch (key) {
    case KEY_JSON:
        c->options.json = 1;
        return 0;
    case KEY_REPEATS:
        return parse_repeats(a, arg, &c->options.repeats);
    case ARGP_KEY_ARG:
        return state->arg_num == 0 ? parse_suite(a, arg, &c->suite) : ARGP_ERR_UNKNOWN;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int cmd_bench(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse,
        "[pool|servers|policy|attention|model|gpu]",
        "Measures what the manager, attention and a model on them cost, each case against a baseline in the same run: "
        "median, 10th and 90th percentile, and the ratio of the medians.",
        NULL,
        NULL,
        NULL};
    bench_command c = {.options = {.repeats = 31}, .suite = &suites[0]};
    trace_error error;
    arguments a = {"kvkeep bench", &c, &error};
    int rc = arguments_parse(&argp, argc, argv, &a);
    if (rc < 0)
        return arguments_report(&error, rc);
    if (rc > 0)
        return arguments_finish_stdout();
    rc = c.suite->ready ? c.suite->ready(&error) : 0;
    if (rc == 0 && bench_run(c.suite->cases, *c.suite->n, &c.options, &error) < 0)
        rc = TRACE_FAILED;
    return rc < 0 ? arguments_report(&error, rc) : arguments_finish_stdout();
}
