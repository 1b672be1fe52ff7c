/* Masses: lists of numbers become the arrays that the library takes. */
#include "base/checked.h"
#include "trace/oplog_read.h"

#include <math.h>

int oplog_read_masses(oplog_run *run, const oplog_rule *arg, json_t *value, void *out)
{
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return oplog_wrong(run, arg->name, value, "a list per group");
    if (n != run->config.n_groups)
        return trace_bad_input(run->error, lines_place(&run->lines, arg->name), "%zu lists for %u groups", n,
                               run->config.n_groups);
    for (size_t i = 0; i < n; i++)
        if (!json_is_array(json_array_get(value, i)))
            return oplog_wrong_item(run, arg, value, i, "a list of numbers");
    *(json_t **)out = value;
    return 0;
}

static uint64_t longest_of(const json_t *lists)
{
    uint64_t longest = 0;
    for (size_t g = 0; g < json_array_size(lists); g++) {
        uint64_t n = json_array_size(json_array_get(lists, g));
        longest = n > longest ? n : longest;
    }
    return longest;
}

static int wrong_number(oplog_run *run, const char *name, size_t group, const json_t *list, size_t i)
{
    char field[64];
    snprintf(field, sizeof field, "%s[%zu][%zu]", name, group, i);
    return oplog_wrong(run, field, json_array_get(list, i), "a number");
}

/* What a list lacks of the longest is no number, so that the library refuses it where it would read it. */
static int read_group(oplog_run *run, const char *name, const json_t *lists, size_t group, float *out, uint64_t stride)
{
    const json_t *list = json_array_get(lists, group);
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++)
        if (!oplog_parse_float(json_array_get(list, i), &out[i]))
            return wrong_number(run, name, group, list, i);
    for (uint64_t i = n; i < stride; i++)
        out[i] = NAN;
    return 0;
}

static int read_lists(oplog_run *run, int buffer, const char *name, const json_t *lists, uint64_t stride)
{
    if (stride * run->config.n_groups > OPLOG_MAX_MASSES)
        return trace_bad_input(run->error, lines_place(&run->lines, name), "its lists take more than %llu places",
                               (unsigned long long)OPLOG_MAX_MASSES);
    float *out = oplog_buffer(run, buffer, stride * run->config.n_groups);
    if (!out)
        return TRACE_FAILED;
    for (size_t g = 0; g < run->config.n_groups; g++) {
        int rc = read_group(run, name, lists, g, out + g * stride, stride);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int oplog_masses(oplog_run *run, kvk_masses *out)
{
    const oplog_args *a = &run->args;
    uint64_t mean = longest_of(a->mean), peak = longest_of(a->peak);
    *out = (kvk_masses){.size = sizeof *out, .rows = a->rows.items, .n_summed = a->n_summed.items};
    out->stride = mean > peak ? mean : peak;
    out->near_stride = longest_of(a->near);
    int rc = a->mean ? read_lists(run, BUFFER_MEAN, "mean", a->mean, out->stride) : 0;
    if (rc == 0 && a->peak)
        rc = read_lists(run, BUFFER_PEAK, "peak", a->peak, out->stride);
    if (rc == 0 && a->near)
        rc = read_lists(run, BUFFER_NEAR, "near", a->near, out->near_stride);
    out->mean = a->mean ? run->buffers[BUFFER_MEAN].items : NULL;
    out->peak = a->peak ? run->buffers[BUFFER_PEAK].items : NULL;
    out->near = a->near ? run->buffers[BUFFER_NEAR].items : NULL;
    return rc;
}
