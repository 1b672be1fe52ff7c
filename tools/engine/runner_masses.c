/* runner_masses.c: what attention gives the pages, in the form of kvk_masses. */
#include "engine/runner_state.h"

#include <string.h>

/* Rows times pages of all entries, in the group that has most. */
static uint64_t most_masses(const runner *r, uint32_t n)
{
    const runner_arrays *a = &r->arrays;
    uint64_t most = 0;
    for (uint32_t g = 0; g < r->config.n_groups; g++) {
        const int32_t *indptr = a->indptr + (size_t)g * (a->entries_cap + 1);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < n; i++)
            sum += a->rows[i] * (uint64_t)(indptr[i + 1] - indptr[i]);
        most = sum > most ? sum : most;
    }
    return most;
}

/* Each row has the pages from the one before the first new token's on. */
static uint64_t most_near(const runner *r, const runner_entry *entries, uint32_t n)
{
    uint64_t pages = 0;
    for (uint32_t i = 0; i < n; i++)
        pages += r->arrays.rows[i] * ((uint64_t)entries[i].n / r->config.page_tokens + 3);
    return pages * r->group_near;
}

static float *zeroed(float *at, uint64_t n)
{
    return memset(at, 0, n * sizeof *at);
}

int runner_make_masses(runner *r, const runner_entry *entries, uint32_t n, uint32_t needs)
{
    runner_arrays *a = &r->arrays;
    uint64_t groups = r->config.n_groups;
    for (uint32_t i = 0; i < n; i++)
        a->rows[i] = entries[i].each ? entries[i].n : 1;
    r->seen = (forward_masses){.rows = a->rows, .stride = most_masses(r, n), .near_stride = most_near(r, entries, n)};
    if (!needs)
        return 0;
    if (runner_grow_masses(a, groups * r->seen.stride, needs & KVK_NEED_NEAR ? groups * r->seen.near_stride : 0) < 0)
        return -1;
    r->seen.mean = zeroed(a->mean, groups * r->seen.stride);
    if (needs & KVK_NEED_PEAK)
        r->seen.peak = zeroed(a->peak, groups * r->seen.stride);
    if (needs & KVK_NEED_NEAR)
        r->seen.near = zeroed(a->near, groups * r->seen.near_stride);
    return 0;
}

void runner_seen(const runner *r, uint32_t entry, uint32_t group, runner_masses *out)
{
    const runner_arrays *a = &r->arrays;
    const int32_t *indptr = a->indptr + (size_t)group * (a->entries_cap + 1);
    uint64_t at = group * r->seen.stride;
    for (uint32_t i = 0; i < entry; i++)
        at += a->rows[i] * (uint64_t)(indptr[i + 1] - indptr[i]);
    *out = (runner_masses){.n_pages = (uint32_t)(indptr[entry + 1] - indptr[entry]),
                           .n_rows = a->rows[entry],
                           .positions = a->positions + group * a->pages_cap + indptr[entry],
                           .mean = r->seen.mean ? r->seen.mean + at : NULL,
                           .peak = r->seen.peak ? r->seen.peak + at : NULL};
}
