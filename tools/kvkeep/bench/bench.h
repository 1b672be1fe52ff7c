/* bench/bench.h: measures cases and reports them all in one shape.
 *
 * A case runs its work and a baseline in turn, in the same process, so that a noisy machine disturbs both alike; the
 * ratio of the medians is what may be compared between machines. */
#ifndef KVKEEP_TOOLS_BENCH_BENCH_H
#define KVKEEP_TOOLS_BENCH_BENCH_H

#include "trace/error.h"

#include <stdint.h>

typedef struct bench_case {
    const char *name, *unit; /* unit of what run and baseline return: "ns/page", "us" */
    const char *baseline_name;
    uint32_t size;                              /* the case's own parameter */
    void *(*open)(const struct bench_case *me); /* the case's state, or NULL without memory */
    double (*run)(void *state);
    double (*baseline)(void *state);
    void (*close)(void *state);
} bench_case;

typedef struct bench_options {
    uint32_t repeats; /* odd, so that the median is a measured value */
    int json;
} bench_options;

/* Nanoseconds of a clock that only goes forward. */
double bench_now_ns(void);

/* Runs `n` cases and prints a table, or one JSON object, on stdout. 0, or an error: no memory for a case, or a run that
 * did not return a number. */
int bench_run(const bench_case *cases, uint32_t n, const bench_options *options, trace_error *error);

/* A named set of cases. */
typedef struct bench_suite {
    const char *name;
    const bench_case *cases;
    const uint32_t *n;
    int (*ready)(trace_error *error); /* NULL, or whether it can run here: 0 or an error */
} bench_suite;

extern const bench_case bench_pool_cases[], bench_servers_cases[], bench_policy_cases[], bench_attention_cases[],
    bench_model_cases[];
extern const uint32_t bench_pool_count, bench_servers_count, bench_policy_count, bench_attention_count,
    bench_model_count;

/* Whether there is a model: $KVKEEP_MODEL, or where tools/model-fetch puts it. */
int bench_model_ready(trace_error *error);

/* Only where KVKEEP_CUDA is on. */
extern const bench_case bench_gpu_cases[];
extern const uint32_t bench_gpu_count;
int bench_gpu_ready(trace_error *error);

#endif
