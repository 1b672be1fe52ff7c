#include "trace/evict_optimum.h"

#include <kvkeep/base.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define NOBODY UINT32_MAX

/* Drop d (0 .. n-1) is due at interval max(first, keep + d). */
static uint32_t due(const mass_future *f, uint32_t keep, uint32_t d)
{
    uint32_t interval = keep + d;
    return interval < f->first ? f->first : interval;
}

static uint32_t count_drops(const mass_future *f, uint32_t keep)
{
    return f->pages > keep ? f->pages - keep : 0;
}

static double cost(const mass_future *f, uint32_t interval, uint32_t page)
{
    return f->costs[(uint64_t)(interval - f->first) * f->pages + page];
}

/* An assignment of drops to pages with a proof that it is the cheapest: prices such that
 * cost - of_drop - of_page is never negative, and 0 where a drop has a page. */
typedef struct assignment {
    const mass_future *future;
    uint32_t keep;
    double *of_drop, *of_page;
    uint32_t *drop; /* [pages] which drop a page has, or NOBODY */

    /* The search for a page for one more drop, all [pages]. */
    double *distance;
    uint32_t *from; /* the page before on the way here, or NOBODY */
    bool *done;
} assignment;

static void close_assignment(assignment *a)
{
    free(a->of_drop);
    free(a->of_page);
    free(a->drop);
    free(a->distance);
    free(a->from);
    free(a->done);
}

static int open_assignment(assignment *a, const mass_future *f, uint32_t keep)
{
    size_t n = f->pages;
    *a = (assignment){.future = f, .keep = keep};
    a->of_drop = calloc(n, sizeof *a->of_drop);
    a->of_page = calloc(n, sizeof *a->of_page);
    a->drop = malloc(n * sizeof *a->drop);
    a->distance = malloc(n * sizeof *a->distance);
    a->from = malloc(n * sizeof *a->from);
    a->done = malloc(n * sizeof *a->done);
    if (a->of_drop && a->of_page && a->drop && a->distance && a->from && a->done)
        return 0;
    close_assignment(a);
    return KVK_ENOMEM;
}

/* Looks from a drop, reached by way of page `by` at distance `so_far`, at all pages that it may take. */
static void relax(assignment *a, uint32_t d, uint32_t by, double so_far)
{
    uint32_t interval = due(a->future, a->keep, d);
    for (uint32_t p = 0; p < interval; p++) {
        if (a->done[p])
            continue;
        double there = so_far + cost(a->future, interval, p) - a->of_drop[d] - a->of_page[p];
        if (there < a->distance[p]) {
            a->distance[p] = there;
            a->from[p] = by;
        }
    }
}

static uint32_t nearest(const assignment *a, uint32_t n)
{
    uint32_t best = NOBODY;
    for (uint32_t p = 0; p < n; p++)
        if (!a->done[p] && (best == NOBODY || a->distance[p] < a->distance[best]))
            best = p;
    return best;
}

/* The nearest page that no drop has. Drops come by time, so those that hold pages may take no later pages than d. */
static uint32_t search(assignment *a, uint32_t d, uint32_t n)
{
    for (uint32_t p = 0; p < n; p++) {
        a->distance[p] = (double)INFINITY;
        a->done[p] = false;
    }
    relax(a, d, NOBODY, 0);
    for (;;) {
        uint32_t p = nearest(a, n);
        if (a->drop[p] == NOBODY)
            return p;
        a->done[p] = true;
        relax(a, a->drop[p], p, a->distance[p]);
    }
}

/* Prices follow the search, so that the way found costs nothing beyond them. */
static void reprice(assignment *a, uint32_t d, uint32_t n, double length)
{
    a->of_drop[d] += length;
    for (uint32_t p = 0; p < n; p++)
        if (a->done[p]) {
            a->of_drop[a->drop[p]] += length - a->distance[p];
            a->of_page[p] -= length - a->distance[p];
        }
}

/* Each drop on the way takes the next page of it. */
static void augment(assignment *a, uint32_t d, uint32_t end)
{
    uint32_t p = end;
    while (a->from[p] != NOBODY) {
        a->drop[p] = a->drop[a->from[p]];
        p = a->from[p];
    }
    a->drop[p] = d;
}

int evict_optimum(const mass_future *f, uint32_t keep, uint32_t *gone)
{
    assignment a;
    if (open_assignment(&a, f, keep) < 0)
        return KVK_ENOMEM;
    for (uint32_t p = 0; p < f->pages; p++)
        a.drop[p] = NOBODY;
    for (uint32_t d = 0; d < count_drops(f, keep); d++) {
        uint32_t n = due(f, keep, d), end = search(&a, d, n);
        reprice(&a, d, n, a.distance[end]);
        augment(&a, d, end);
    }
    for (uint32_t p = 0; p < f->pages; p++)
        gone[p] = a.drop[p] == NOBODY ? MASS_KEPT : due(f, keep, a.drop[p]);
    close_assignment(&a);
    return 0;
}

int evict_greedy(const mass_future *f, uint32_t keep, uint32_t *gone)
{
    for (uint32_t p = 0; p < f->pages; p++)
        gone[p] = MASS_KEPT;
    for (uint32_t d = 0; d < count_drops(f, keep); d++) {
        uint32_t interval = due(f, keep, d), least = NOBODY;
        for (uint32_t p = 0; p < interval; p++)
            if (gone[p] == MASS_KEPT && (least == NOBODY || cost(f, interval, p) < cost(f, interval, least)))
                least = p;
        gone[least] = interval;
    }
    return 0;
}

double evict_lost(const mass_future *f, const uint32_t *gone)
{
    double lost = 0;
    for (uint32_t p = 0; p < f->pages; p++)
        if (gone[p] != MASS_KEPT)
            lost += cost(f, gone[p], p);
    return lost;
}
