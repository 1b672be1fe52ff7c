#include "unit/mass_memory.h"

#include "base/checked.h"
#include "trace/random.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct memory_masses {
    mass_trace trace;
    const float *mean, *peak;
    float *near; /* [groups][2] */
} memory_masses;

static int rewind_memory(mass_trace *t, trace_error *error)
{
    (void)t;
    (void)error;
    return 0;
}

static int next_memory(mass_trace *trace, mass_step *out, trace_error *error)
{
    memory_masses *m = (memory_masses *)trace;
    const mass_shape *s = &trace->shape;
    (void)error;
    size_t row = (size_t)(trace->step - 1) * s->groups * s->columns;
    out->mean = m->mean + row;
    if (!m->peak)
        return 0;
    out->peak = m->peak + row;
    out->near = m->near;
    uint32_t own = mass_position(trace) / s->page_tokens, first = own ? own - 1 : 0;
    for (uint32_t g = 0; g < s->groups; g++)
        for (uint32_t p = first; p <= own; p++)
            m->near[2 * g + p - first] = out->peak[(size_t)g * s->columns + p];
    return 0;
}

static void close_memory(mass_trace *trace)
{
    memory_masses *m = (memory_masses *)trace;
    free(m->near);
    free(m);
}

mass_trace *memory_trace(mass_shape shape, const float *mean, const float *peak)
{
    static const mass_ops ops = {rewind_memory, next_memory, close_memory};
    memory_masses *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    shape.pages = shape.columns = (uint32_t)ceil_div(shape.first + shape.steps, shape.page_tokens);
    shape.near_heads = peak ? 1 : 0;
    *m = (memory_masses){.mean = mean, .peak = peak, .near = calloc(shape.groups, 2 * sizeof(float))};
    ck_assert_ptr_nonnull(m->near);
    m->trace = (mass_trace){.ops = &ops, .format = "memory", .name = "memory", .shape = shape};
    return &m->trace;
}

void memory_needles(mass_trace *t, const mass_needle *needles, uint32_t n)
{
    t->needles = needles;
    t->n_needles = n;
}

static void random_row(random_state *random, float *row, uint32_t there, uint32_t pages)
{
    double sum = 0;
    for (uint32_t p = 0; p < pages; p++) {
        double heavy = random_below(random, 8) ? 1 : 20;
        double value = random_below(random, 4) ? heavy * random_exponential(random) : 0;
        if (p == there - 1) /* so that there is something to share out */
            value += 0.1;
        row[p] = p < there ? (float)value : NAN;
        sum += p < there ? value : 0;
    }
    for (uint32_t p = 0; p < there; p++)
        row[p] = (float)((double)row[p] / sum);
}

float *random_masses(const mass_shape *s, uint64_t seed)
{
    uint32_t pages = (uint32_t)ceil_div(s->first + s->steps, s->page_tokens);
    float *masses = calloc((size_t)s->steps * s->groups, pages * sizeof *masses);
    random_state random;
    ck_assert_ptr_nonnull(masses);
    random_seed(&random, seed);
    for (uint32_t i = 0; i < s->steps * s->groups; i++)
        random_row(&random, masses + (size_t)i * pages, (s->first + i / s->groups) / s->page_tokens + 1, pages);
    return masses;
}

void write_npy_header(FILE *out, const char *dictionary)
{
    size_t n = strlen(dictionary);
    ck_assert_uint_lt(n, 65536);
    fputs("\x93NUMPY\x01", out);
    fputc(0, out);
    fputc((int)(n & 255), out);
    fputc((int)(n >> 8), out);
    fputs(dictionary, out);
}

void write_npy(FILE *out, const uint64_t shape[3], const float *values)
{
    char dictionary[128];
    size_t n = (size_t)(shape[0] * shape[1] * shape[2]);
    snprintf(dictionary, sizeof dictionary, "{'descr': '<f4', 'fortran_order': False, 'shape': (%ju, %ju, %ju), }\n",
             (uintmax_t)shape[0], (uintmax_t)shape[1], (uintmax_t)shape[2]);
    write_npy_header(out, dictionary);
    ck_assert_uint_eq(fwrite(values, sizeof *values, n, out), n); /* this machine's floats are '<f4' */
}
