#include "trace/evict_futures.h"

#include "base/checked.h"
#include "trace/evict_tally.h"

#include <stdlib.h>

static int make_room(evict_futures *f, const mass_trace *t, uint64_t memory_limit, trace_error *error)
{
    const mass_shape *s = &t->shape;
    trace_place place = {t->name, 0, NULL};
    uint32_t first = s->first / s->page_tokens;
    uint64_t table = (uint64_t)(s->pages - first) * s->pages, bytes = 0;
    if (checked_mul(table, s->groups * sizeof(double), &bytes) < 0 || (memory_limit && bytes > memory_limit))
        return trace_failed(error, place, "its optimum needs %ju MiB, more than the memory allowed",
                            (uintmax_t)((double)table * s->groups * sizeof(double) / (1 << 20)));
    *f = (evict_futures){.n_groups = s->groups};
    f->groups = calloc(s->groups, sizeof *f->groups);
    f->costs = calloc(1, bytes);
    if (!f->groups || !f->costs) {
        evict_futures_close(f);
        return trace_failed(error, place, "out of memory");
    }
    for (uint32_t g = 0; g < s->groups; g++)
        f->groups[g] = (mass_future){f->costs + g * table, first, s->pages};
    return 0;
}

static void add_step(const evict_futures *f, const mass_trace *t, const mass_step *step)
{
    const mass_shape *s = &t->shape;
    uint32_t own = mass_position(t) / s->page_tokens, interval = own - f->groups[0].first;
    uint64_t row = (uint64_t)interval * s->pages, table = (uint64_t)(s->pages - f->groups[0].first) * s->pages;
    for (uint32_t g = 0; g < s->groups; g++) {
        const float *mean = step->mean + (size_t)g * s->columns;
        double whole = evict_whole_mass(mean, own + 1);
        double *shares = f->costs + g * table + row;
        for (uint32_t p = 0; p <= own && whole > 0; p++)
            shares[p] += (double)mean[p] / whole;
    }
}

/* From the mass in each interval to the mass from it on. */
static void sum_up(const evict_futures *f, const mass_shape *s)
{
    uint64_t rows = (uint64_t)(s->pages - f->groups[0].first), table = rows * s->pages;
    for (uint32_t g = 0; g < s->groups; g++) {
        double *costs = f->costs + g * table;
        for (uint64_t i = table - s->pages; i-- > 0;)
            costs[i] += costs[i + s->pages];
    }
}

int evict_futures_read(evict_futures *f, mass_trace *t, uint64_t memory_limit, trace_error *error)
{
    mass_step step;
    int rc = make_room(f, t, memory_limit, error);
    if (rc < 0)
        return rc;
    rc = mass_rewind(t, error);
    if (rc == 0)
        while ((rc = mass_next(t, &step, error)) > 0)
            add_step(f, t, &step);
    if (rc < 0)
        evict_futures_close(f);
    else
        sum_up(f, &t->shape);
    return rc;
}

void evict_futures_close(evict_futures *f)
{
    free(f->groups);
    free(f->costs);
    *f = (evict_futures){.n_groups = 0};
}
