/* world_masses.c: what attention might have given the pages of a batch. */
#include "world.h"

#include <math.h>

enum { MOST = 1 << 16 }; /* floats of a group */

typedef struct {
    float mean[TWIN_GROUPS * MOST], peak[TWIN_GROUPS * MOST], near[TWIN_GROUPS * MOST];
    uint32_t rows[TWIN_SEQS], n_summed[TWIN_SEQS];
    kvk_masses masses;
} arrays;

static void draw_rows(world *w, const twin_batch *b, arrays *a)
{
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t n_query = b->entries[i].n_query;
        a->rows[i] = n_query > 1 && world_one_in(w, 2) ? n_query : 1;
        a->n_summed[i] = n_query > 1 ? world_random(w, n_query + 1) : n_query;
        if (world_one_in(w, 200))
            a->rows[i] = world_random(w, 4);
        if (world_one_in(w, 200))
            a->n_summed[i] = world_random(w, n_query + 3);
    }
}

/* An entry with one row is taken or rejected as a whole. */
static void fit_accepted(world *w, const twin_batch *b, const arrays *a, uint32_t *accepted)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (a->rows[i] == 1 && accepted[i] < b->entries[i].n_query && !world_one_in(w, 40))
            accepted[i] = 0;
    }
}

/* Values up to `most` that are multiples of 1/64, so that sums of them are exact. */
static uint32_t fill(world *w, float *values, uint32_t n, uint32_t most)
{
    uint32_t top = 1 + world_random(w, most * 64 + 1);
    for (uint32_t i = 0; i < n; i++)
        values[i] = (float)world_random(w, top) / 64;
    return n;
}

/* Now and then a value that can't be. */
static void spoil(world *w, float *values, uint32_t n)
{
    static const float bad[] = {-1, -0.0f, 1e9f, NAN, INFINITY, -INFINITY};
    if (n && world_one_in(w, 60))
        values[world_random(w, n)] = bad[world_random(w, 6)];
}

static void fill_group(world *w, const twin_batch *b, uint32_t group, arrays *a)
{
    float *mean = a->mean + group * a->masses.stride, *peak = a->peak + group * a->masses.stride;
    float *near = a->near + group * a->masses.near_stride;
    uint32_t at = 0, near_at = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const twin_entry *e = &b->entries[i];
        uint32_t n = a->rows[i] * twin_listed(&w->twin, e, group, false);
        uint32_t n_near = a->rows[i] * twin_listed(&w->twin, e, group, true) * w->twin.n_near[group];
        uint32_t n_queries = a->rows[i] > 1 ? 1 : a->masses.n_summed ? a->n_summed[i] : e->n_query;
        fill(w, peak + at, n, 1);
        at += fill(w, mean + at, n, n_queries);
        near_at += fill(w, near + near_at, n_near, 3);
    }
    spoil(w, mean, at);
    spoil(w, peak, at);
    spoil(w, near, near_at);
}

/* Without rows that are not as they must be each entry has one row: then `a` says so too. */
static void leave_out(world *w, const twin_batch *b, arrays *a)
{
    a->masses = (kvk_masses){.size = sizeof a->masses, .stride = MOST, .near_stride = MOST};
    if (world_one_in(w, 60))
        a->masses.stride = world_random(w, 40);
    if (world_one_in(w, 60))
        a->masses.near_stride = world_random(w, 40);
    a->masses.rows = world_one_in(w, 4) ? NULL : a->rows;
    a->masses.n_summed = world_one_in(w, 2) ? NULL : a->n_summed;
    a->masses.mean = world_one_in(w, 20) ? NULL : a->mean;
    a->masses.peak = world_one_in(w, 10) ? NULL : a->peak;
    a->masses.near = world_one_in(w, 10) ? NULL : a->near;
    for (uint32_t i = 0; !a->masses.rows && i < b->n; i++)
        a->rows[i] = 1;
}

const kvk_masses *world_draw_masses(world *w, const twin_batch *b, uint32_t *accepted)
{
    static arrays a;
    draw_rows(w, b, &a);
    leave_out(w, b, &a);
    fit_accepted(w, b, &a, accepted);
    for (uint32_t g = 0; g < w->twin.config.n_groups; g++)
        fill_group(w, b, g, &a);
    return &a.masses;
}
