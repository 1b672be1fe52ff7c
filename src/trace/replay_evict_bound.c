#include "trace/replay_evict.h"

#include <math.h>
#include <stdlib.h>

/* Lists what is held while queries stand in page `own`. Returns how many pages that is. */
static uint32_t list_held(const uint32_t *gone, uint32_t own, uint32_t *held)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p <= own; p++)
        if (gone[p] > own)
            held[n++] = p;
    return n;
}

static int add_steps(mass_trace *t, const uint32_t *gone, evict_tally *tally, uint32_t *held, trace_error *error)
{
    mass_step step;
    int rc = mass_rewind(t, error);
    if (rc < 0)
        return rc;
    while ((rc = mass_next(t, &step, error)) > 0)
        for (uint32_t g = 0; g < t->shape.groups; g++) {
            uint32_t own = mass_position(t) / t->shape.page_tokens;
            uint32_t n = list_held(gone + (size_t)g * t->shape.pages, own, held);
            evict_tally_add(tally, &step, g, held, n);
        }
    return rc;
}

static int choose(const evict_futures *futures, evict_bound bound, uint32_t keep, uint32_t *gone)
{
    int rc = 0;
    for (uint32_t g = 0; g < futures->n_groups && rc == 0; g++)
        rc = bound(&futures->groups[g], keep, gone + (size_t)g * futures->groups[g].pages);
    return rc;
}

int replay_evict_bound(mass_trace *t, const evict_futures *futures, evict_bound bound, uint32_t budget,
                       evict_result *result, trace_error *error)
{
    uint32_t keep = budget / t->shape.page_tokens;
    uint32_t *gone = calloc((size_t)t->shape.groups * t->shape.pages, sizeof *gone);
    uint32_t *held = calloc(t->shape.pages, sizeof *held);
    evict_tally tally;
    int rc = evict_tally_open(&tally, t, keep, error);
    if (rc == 0 && (!gone || !held || choose(futures, bound, keep, gone) < 0))
        rc = trace_failed(error, (trace_place){t->name, 0, NULL}, "out of memory");
    if (rc == 0)
        rc = add_steps(t, gone, &tally, held, error);
    if (rc == 0) {
        evict_tally_result(&tally, result);
        result->budget = budget;
        result->ns_per_step = (double)NAN;
    }
    evict_tally_close(&tally);
    free(gone);
    free(held);
    return rc;
}
