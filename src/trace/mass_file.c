#define _POSIX_C_SOURCE 200809L /* strdup */
#include "trace/mass_file.h"

#include "base/checked.h"
#include "trace/input.h"
#include "trace/npy.h"

#include <kvkeep/kvkeep.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One array: its file and the row read last. */
typedef struct array {
    char *name;
    FILE *in;
    npy_reader npy;
    float *row; /* [groups][columns] */
} array;

typedef struct file_trace {
    mass_trace trace;
    array masses, peaks; /* peaks.in NULL: none */
    float *near;         /* [groups][2] */
    float highest;       /* what the masses of a group may add up to */
} file_trace;

static const float largest_mass = 1.001F, largest_sum = 1.01F; /* what rounding to 16 bits may add */

static trace_place place_of(const array *a, const char *field)
{
    return (trace_place){a->name, 0, field};
}

/* ---- A step ------------------------------------------------------------------------------------------------------ */

static int bad_value(const file_trace *t, const array *a, uint32_t i, trace_error *error)
{
    const mass_shape *s = &t->trace.shape;
    uint32_t p = i % s->columns;
    bool is_there = (uint64_t)p * s->page_tokens <= mass_position(&t->trace);
    char field[64];
    snprintf(field, sizeof field, "[%u][%u][%u]", t->trace.step - 1, i / s->columns, p);
    return trace_bad_input(error, place_of(a, field), "is %g: %s", (double)a->row[i],
                           is_there ? "a mass is from 0 to 1" : "no page is there yet, so NaN is expected");
}

/* Masses of the pages that are there, NaN for the others. */
static int check_row(const file_trace *t, const array *a, trace_error *error)
{
    const mass_shape *s = &t->trace.shape;
    uint32_t there = mass_position(&t->trace) / s->page_tokens + 1;
    for (uint32_t i = 0; i < s->groups * s->columns; i++) {
        float value = a->row[i];
        bool is_mass = value >= 0 && value <= largest_mass;
        if (i % s->columns < there ? !is_mass : !isnan(value))
            return bad_value(t, a, i, error);
    }
    return 0;
}

static int check_sums(const file_trace *t, trace_error *error)
{
    const mass_shape *s = &t->trace.shape;
    uint32_t there = mass_position(&t->trace) / s->page_tokens + 1;
    for (uint32_t g = 0; g < s->groups; g++) {
        double sum = 0;
        for (uint32_t p = 0; p < there; p++)
            sum += (double)t->masses.row[(size_t)g * s->columns + p];
        if (sum > (double)t->highest) {
            char field[64];
            snprintf(field, sizeof field, "[%u][%u]", t->trace.step - 1, g);
            return trace_bad_input(error, place_of(&t->masses, field), "adds up to %g, more than %g", sum,
                                   t->trace.shape.head_maximum ? s->heads : 1.0);
        }
    }
    return 0;
}

static int read_row(file_trace *t, array *a, trace_error *error)
{
    int rc = npy_read(&a->npy, a->row, (uint64_t)t->trace.shape.groups * t->trace.shape.columns, error);
    return rc < 0 ? rc : check_row(t, a, error);
}

/* The peak of a page while the query stands in it or in the next one. */
static void set_near(file_trace *t)
{
    const mass_shape *s = &t->trace.shape;
    uint32_t own = mass_position(&t->trace) / s->page_tokens, first = own ? own - 1 : 0;
    for (uint32_t g = 0; g < s->groups; g++)
        for (uint32_t p = first; p <= own; p++)
            t->near[g * 2 + p - first] = t->peaks.row[(size_t)g * s->columns + p];
}

static int next_step(mass_trace *trace, mass_step *out, trace_error *error)
{
    file_trace *t = (file_trace *)trace;
    int rc = read_row(t, &t->masses, error);
    if (rc == 0)
        rc = check_sums(t, error);
    out->mean = t->masses.row;
    if (rc < 0 || !t->peaks.in)
        return rc;
    rc = read_row(t, &t->peaks, error);
    if (rc < 0)
        return rc;
    set_near(t);
    out->peak = t->peaks.row;
    out->near = t->near;
    return 0;
}

static int rewind_files(mass_trace *trace, trace_error *error)
{
    file_trace *t = (file_trace *)trace;
    int rc = npy_rewind(&t->masses.npy, error);
    return rc < 0 || !t->peaks.in ? rc : npy_rewind(&t->peaks.npy, error);
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static void close_array(array *a)
{
    if (a->in)
        fclose(a->in);
    free(a->row);
    free(a->name);
}

static void close_files(mass_trace *trace)
{
    file_trace *t = (file_trace *)trace;
    close_array(&t->masses);
    close_array(&t->peaks);
    free(t->near);
    free(t);
}

static const mass_ops file_ops = {rewind_files, next_step, close_files};

static int check_shape(const mass_about *about, const npy_reader *npy, trace_error *error)
{
    trace_place place = {npy->name, 0, "shape"};
    const uint64_t *shape = npy->shape;
    if (npy->n_axes != 3)
        return trace_bad_input(error, place, "has %u axes: [steps][groups][pages] is expected", npy->n_axes);
    if (shape[0] == 0 || shape[2] == 0)
        return trace_bad_input(error, place, "has no steps or no pages");
    if (shape[1] != about->groups)
        return trace_bad_input(error, place, "has %ju groups, the JSON file beside it says %u", (uintmax_t)shape[1],
                               about->groups);
    if (shape[0] > KVK_MAX_TOKENS - about->first)
        return trace_bad_input(error, place, "has more than %u tokens", KVK_MAX_TOKENS);
    uint64_t pages = ceil_div(about->first + shape[0], about->page_tokens);
    if (shape[2] < pages || shape[2] > KVK_MAX_PAGES)
        return trace_bad_input(error, place, "has %ju pages: %ju tokens have %ju of %u", (uintmax_t)shape[2],
                               (uintmax_t)(about->first + shape[0]), (uintmax_t)pages, about->page_tokens);
    return 0;
}

/* `as`: the array whose shape it must have; NULL for the first. */
static int open_array(array *a, const mass_about *about, const array *as, trace_error *error)
{
    int rc = npy_open(&a->npy, a->in, a->name, error);
    if (rc == 0)
        rc = check_shape(about, &a->npy, error);
    if (rc == 0 && as && memcmp(a->npy.shape, as->npy.shape, sizeof a->npy.shape) != 0)
        rc = trace_bad_input(error, place_of(a, "shape"), "is not that of the masses");
    return rc;
}

static void set_shape(file_trace *t, const mass_about *about)
{
    const uint64_t *axes = t->masses.npy.shape;
    t->trace.shape = (mass_shape){.page_tokens = about->page_tokens,
                                  .groups = about->groups,
                                  .heads = about->heads,
                                  .first = about->first,
                                  .steps = (uint32_t)axes[0],
                                  .pages = (uint32_t)ceil_div(about->first + axes[0], about->page_tokens),
                                  .columns = (uint32_t)axes[2],
                                  .near_heads = t->peaks.in ? 1 : 0,
                                  .head_maximum = about->head_maximum};
    t->highest = largest_sum * (about->head_maximum ? (float)about->heads : 1.0F);
}

/* Rows are no longer than the file, which is as long as its shape says. */
static int make_rows(file_trace *t, uint64_t memory_limit, trace_error *error)
{
    const mass_shape *s = &t->trace.shape;
    uint64_t values = (uint64_t)s->groups * s->columns, bytes = values * sizeof(float) * (t->peaks.in ? 2 : 1);
    if (values > UINT32_MAX || (memory_limit && bytes > memory_limit))
        return trace_failed(error, place_of(&t->masses, "shape"), "a step of it is more than the memory allowed");
    t->masses.row = malloc(values * sizeof(float));
    t->peaks.row = t->peaks.in ? malloc(values * sizeof(float)) : NULL;
    t->near = calloc(s->groups, 2 * sizeof(float));
    if (!t->masses.row || !t->near || (t->peaks.in && !t->peaks.row))
        return trace_failed(error, place_of(&t->masses, NULL), "out of memory");
    return 0;
}

static int open_arrays(file_trace *t, const mass_about *about, uint64_t memory_limit, trace_error *error)
{
    int rc = open_array(&t->masses, about, NULL, error);
    if (rc == 0 && t->peaks.in)
        rc = open_array(&t->peaks, about, &t->masses, error);
    if (rc < 0)
        return rc;
    set_shape(t, about);
    return make_rows(t, memory_limit, error);
}

static int no_memory(const mass_files *files, trace_error *error)
{
    fclose(files->masses);
    if (files->peaks)
        fclose(files->peaks);
    return trace_failed(error, (trace_place){files->name, 0, NULL}, "out of memory");
}

int mass_files_open(const mass_files *files, const mass_about *about, uint64_t memory_limit, mass_trace **out,
                    trace_error *error)
{
    file_trace *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return no_memory(files, error);
    t->masses.in = files->masses;
    t->peaks.in = files->peaks;
    t->masses.name = strdup(files->name);
    t->peaks.name = files->peaks ? strdup(files->peaks_name) : NULL;
    int rc = t->masses.name && (!files->peaks || t->peaks.name)
                 ? open_arrays(t, about, memory_limit, error)
                 : trace_failed(error, (trace_place){files->name, 0, NULL}, "out of memory");
    if (rc < 0) {
        close_files(&t->trace);
        return rc;
    }
    t->trace.ops = &file_ops;
    t->trace.format = "npy";
    t->trace.name = t->masses.name;
    *out = &t->trace;
    return 0;
}
