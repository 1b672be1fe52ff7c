#include "trace/evict_tally.h"

#include "base/checked.h"

#include <math.h>
#include <stdlib.h>

double evict_whole_mass(const float *mean, uint32_t n)
{
    double sum = 0;
    for (uint32_t p = 0; p < n; p++)
        sum += (double)mean[p];
    return sum;
}

int evict_tally_open(evict_tally *a, const mass_trace *t, uint32_t keep, trace_error *error)
{
    *a = (evict_tally){.trace = t, .keep = keep};
    a->shares = calloc((size_t)t->shape.steps * t->shape.groups, sizeof *a->shares);
    return a->shares ? 0 : trace_failed(error, (trace_place){t->name, 0, NULL}, "out of memory");
}

/* A query that gives nothing loses nothing. */
static double share_of(const mass_trace *t, const float *mean, const uint32_t *pages, uint32_t n)
{
    double whole = evict_whole_mass(mean, mass_position(t) / t->shape.page_tokens + 1), held = 0;
    for (uint32_t i = 0; i < n; i++)
        held += (double)mean[pages[i]];
    return whole > 0 ? held / whole : 1;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool holds(const uint32_t *pages, uint32_t n, uint32_t page)
{
    return bsearch(&page, pages, n, sizeof *pages, by_number) != NULL;
}

static bool finds(const evict_tally *a, const mass_needle *needle, const uint32_t *pages, uint32_t n)
{
    uint32_t page_tokens = a->trace->shape.page_tokens;
    uint32_t last = (needle->position + needle->n_tokens - 1) / page_tokens;
    for (uint32_t p = needle->position / page_tokens; p <= last; p++)
        if (!holds(pages, n, p))
            return false;
    return true;
}

void evict_tally_add(evict_tally *a, const mass_step *step, uint32_t group, const uint32_t *pages, uint32_t n)
{
    const mass_trace *t = a->trace;
    uint32_t there = mass_position(t) / t->shape.page_tokens + 1;
    a->shares[a->n++] = (float)share_of(t, step->mean + (size_t)group * t->shape.columns, pages, n);
    a->n_before += there <= a->keep;
    a->held += n;
    a->held_most = max_u32(a->held_most, n);
    if (t->step == t->shape.steps)
        a->held_at_end += n;
    for (uint32_t i = 0; i < t->n_needles; i++)
        if (t->needles[i].asked == t->step - 1)
            a->needles_found += finds(a, &t->needles[i], pages, n);
}

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static evict_shares sum_up(float *shares, uint64_t n)
{
    double sum = 0;
    if (n == 0)
        return (evict_shares){(double)NAN, (double)NAN, (double)NAN};
    qsort(shares, n, sizeof *shares, by_value);
    for (uint64_t i = 0; i < n; i++)
        sum += (double)shares[i];
    return (evict_shares){sum / (double)n, (double)shares[ceil_div(n, 20) - 1], (double)shares[0]};
}

void evict_tally_result(evict_tally *a, evict_result *out)
{
    const mass_shape *s = &a->trace->shape;
    uint64_t pages = (uint64_t)s->pages * s->groups, asked = (uint64_t)a->trace->n_needles * s->groups;
    double tokens = ((double)s->first + s->steps) * s->groups;
    out->budget_pages = a->keep;
    out->active = sum_up(a->shares + a->n_before, a->n - a->n_before);
    out->all = sum_up(a->shares, a->n);
    out->kept_share = (double)a->held_at_end / (double)pages;
    out->pages_mean = (double)a->held / (double)a->n;
    out->pages_max = a->held_most;
    out->evicted = pages - a->held_at_end;
    out->churn_per_1k = 1000 * (double)out->evicted / tokens;
    out->needle_recall = asked ? (double)a->needles_found / (double)asked : (double)NAN;
}

void evict_tally_close(evict_tally *a)
{
    free(a->shares);
    a->shares = NULL;
}
