/* kvkeep info: the version, the build, the libraries it runs on, what the processor offers, and the policies. */
#include "kvkeep/arguments.h"
#include "kvkeep/commands.h"
#include "kvkeep/report.h"

#include <kvkeep/kvkeep.h>
#include <kvkeep/policy.h>
#include <stdio.h>
#include <xxhash.h>

#if KVK_HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

#ifndef KVK_BUILD_TYPE
#define KVK_BUILD_TYPE "unknown"
#endif
#ifndef KVK_BUILD_COMPILER
#define KVK_BUILD_COMPILER "unknown"
#endif
#ifndef KVK_HAVE_CUDA
#define KVK_HAVE_CUDA 0
#endif

enum { KEY_JSON = 1 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const arguments *a = state->input;
    (void)arg;
    if (key != KEY_JSON)
        return ARGP_ERR_UNKNOWN;
    *(bool *)a->options = true;
    return 0;
}

static json_t *allocator(void)
{
#if KVK_HAVE_JEMALLOC
    const char *version;
    size_t size = sizeof version;
    return mallctl("version", &version, &size, NULL, 0) == 0 ? json_sprintf("jemalloc %s", version) : json_null();
#else
    return json_string("malloc");
#endif
}

static json_t *xxhash_version(void)
{
    unsigned v = XXH_VERSION_NUMBER;
    return json_sprintf("%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

static void add_processor(report *r)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    report_add(r, "cpu_avx2", json_boolean(__builtin_cpu_supports("avx2")));
    report_add(r, "cpu_avx512", json_boolean(__builtin_cpu_supports("avx512f")));
#else
    report_add(r, "cpu_avx2", json_false());
    report_add(r, "cpu_avx512", json_false());
#endif
}

/* ---- Policies */

/* A whole number stands as one. */
static json_t *number(double value)
{
    json_int_t whole = (json_int_t)value;
    return (double)whole == value ? json_integer(whole) : json_real(value);
}

static json_t *describe_knob(const kvk_knob *knob)
{
    return json_pack("{s:s, s:o, s:o, s:o, s:b, s:s}", "name", knob->name, "min", number(knob->min), "max",
                     number(knob->max), "default", number(knob->standard), "whole", knob->whole, "text", knob->text);
}

static json_t *describe_policies(void)
{
    json_t *policies = json_array();
    const kvk_policy *policy;
    for (uint32_t i = 0; (policy = kvk_policy_at(i)); i++) {
        json_t *knobs = json_array();
        for (uint32_t k = 0; k < policy->n_knobs; k++)
            report_add_row(&knobs, describe_knob(&policy->knobs[k]));
        report_add_row(&policies,
                       json_pack("{s:s, s:s, s:o}", "name", policy->name, "text", policy->text, "knobs", knobs));
    }
    return policies;
}

static json_t *describe_presets(void)
{
    json_t *presets = json_array();
    const kvk_preset *preset;
    for (uint32_t i = 0; (preset = kvk_preset_at(i)); i++)
        report_add_row(&presets, json_pack("{s:s, s:s}", "name", preset->name, "choice", preset->choice));
    return presets;
}

static void list_knobs(const kvk_policy *policy)
{
    for (uint32_t k = 0; k < policy->n_knobs; k++) {
        const kvk_knob *knob = &policy->knobs[k];
        printf("    %-13s %6.10g   %s\n", knob->name, knob->standard, knob->text);
        printf("    %20s   %.10g to %.10g%s\n", "", knob->min, knob->max, knob->whole ? ", whole" : "");
    }
}

static void list_policies(void)
{
    const kvk_policy *policy;
    const kvk_preset *preset;
    puts("\nPolicies, their knobs with defaults and ranges");
    for (uint32_t i = 0; (policy = kvk_policy_at(i)); i++) {
        printf("  %-15s %s\n", policy->name, policy->text);
        list_knobs(policy);
    }
    puts("\nPresets");
    for (uint32_t i = 0; (preset = kvk_preset_at(i)); i++)
        printf("  %-20s %s\n", preset->name, preset->choice);
}

static int show(bool as_json, trace_error *error)
{
    report r;
    report_open(&r);
    report_add(&r, "version", json_string(kvk_version()));
    report_add(&r, "build_type", json_string(KVK_BUILD_TYPE));
    report_add(&r, "compiler", json_string(KVK_BUILD_COMPILER));
    report_add(&r, "allocator", allocator());
    report_add(&r, "xxhash", xxhash_version());
    report_add(&r, "jansson", json_string(jansson_version_str()));
    add_processor(&r);
    report_add(&r, "cuda", json_boolean(KVK_HAVE_CUDA));
    if (as_json) {
        report_add(&r, "policies", describe_policies());
        report_add(&r, "presets", describe_presets());
    }
    int rc = report_print(&r, as_json, error);
    if (rc == 0 && !as_json)
        list_policies();
    return rc;
}

int cmd_info(int argc, char **argv)
{
    static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "One JSON object instead of a table", 0},
                                                 {0}};
    static const struct argp argp = {
        options, parse, NULL, "Shows the version, the build, what this machine offers, and the eviction policies.",
        NULL,    NULL,  NULL};
    bool as_json = false;
    trace_error error;
    arguments a = {"kvkeep info", &as_json, &error};
    int rc = arguments_parse(&argp, argc, argv, &a);
    if (rc == 0)
        rc = show(as_json, &error);
    return rc < 0 ? arguments_report(&error, rc) : arguments_finish_stdout();
}
