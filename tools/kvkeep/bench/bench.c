#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "kvkeep/bench/bench.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct spread {
    double p10, median, p90;
} spread;

double bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static spread spread_of(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return (spread){values[n / 10], values[n / 2], values[n - 1 - n / 10]};
}

/* Work and baseline in turn, after one warm-up of each. */
static void measure(const bench_case *c, void *state, uint32_t repeats, double *values)
{
    c->run(state);
    c->baseline(state);
    for (uint32_t i = 0; i < repeats; i++) {
        values[i] = c->run(state);
        values[repeats + i] = c->baseline(state);
    }
}

static json_t *result_of(const bench_case *c, uint32_t repeats, spread work, spread baseline)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:I, s:s, s:f, s:f}", "name", c->name, "unit", c->unit, "median",
                     work.median, "p10", work.p10, "p90", work.p90, "repeats", (json_int_t)repeats, "baseline",
                     c->baseline_name, "baseline_median", baseline.median, "ratio", work.median / baseline.median);
}

/* NULL, and why in `failure`. */
static json_t *run_case(const bench_case *c, uint32_t repeats, const char **failure)
{
    double *values = calloc(2 * (size_t)repeats, sizeof *values);
    void *state = values ? c->open(c) : NULL;
    json_t *result = NULL;
    *failure = "out of memory";
    if (state) {
        measure(c, state, repeats, values);
        result = result_of(c, repeats, spread_of(values, repeats), spread_of(values + repeats, repeats));
        *failure = "a run failed"; /* NaN is no JSON */
        c->close(state);
    }
    free(values);
    return result;
}

static double number(const json_t *result, const char *key)
{
    return json_number_value(json_object_get(result, key));
}

static void print_row(const json_t *r)
{
    printf("%-22s %10.2f %10.2f %10.2f %-8s %8.3f of %s (%.2f)\n", json_string_value(json_object_get(r, "name")),
           number(r, "median"), number(r, "p10"), number(r, "p90"), json_string_value(json_object_get(r, "unit")),
           number(r, "ratio"), json_string_value(json_object_get(r, "baseline")), number(r, "baseline_median"));
    fflush(stdout); /* a case takes a moment: each shows as it is done */
}

static void print_json(json_t *results)
{
    json_t *all = json_pack("{s:O}", "results", results);
    json_dumpf(all, stdout, JSON_REAL_PRECISION(17) | JSON_COMPACT);
    putchar('\n');
    json_decref(all);
}

int bench_run(const bench_case *cases, uint32_t n, const bench_options *options, trace_error *error)
{
    json_t *results = json_array();
    if (!options->json)
        printf("%-22s %10s %10s %10s %-8s %8s\n", "name", "median", "p10", "p90", "unit", "ratio");
    for (uint32_t i = 0; i < n; i++) {
        const char *failure;
        json_t *result = run_case(&cases[i], options->repeats, &failure);
        if (!result) {
            json_decref(results);
            return trace_failed(error, (trace_place){cases[i].name, 0, NULL}, "%s", failure);
        }
        if (!options->json)
            print_row(result);
        json_array_append_new(results, result);
    }
    if (options->json)
        print_json(results);
    json_decref(results);
    return 0;
}
