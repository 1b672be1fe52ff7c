/* runner_arrays.c: memory that a runner's steps use again and again. */
#include "engine/runner_state.h"

#include <stdlib.h>

enum { FIRST_ENTRIES = 8, FIRST_PAGES = 256, FIRST_SLOTS = 256 };

void runner_free_arrays(runner_arrays *a)
{
    void *const all[] = {a->entries,  a->none,         a->rows,  a->indptr,    a->last_page_len,
                         a->seq_lens, a->query_indptr, a->pages, a->positions, a->slots,
                         a->tokens,   a->which,        a->mean,  a->peak,      a->near};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    *a = (runner_arrays){0};
}

/* The next power of two from `first` on, so that a growing text is not copied at every page. */
static uint64_t round_up(uint64_t n, uint64_t first)
{
    uint64_t cap = first;
    while (cap < n)
        cap *= 2;
    return cap;
}

/* In place of what is there, which is lost. */
static int make(void *place, uint64_t n, uint64_t bytes_each)
{
    void **at = place, *fresh = calloc(n, bytes_each);
    if (!fresh)
        return -1;
    free(*at);
    *at = fresh;
    return 0;
}

static int grow_entries(runner_arrays *a, uint64_t groups, uint32_t n)
{
    uint64_t cap = round_up(n, FIRST_ENTRIES);
    if (n <= a->entries_cap)
        return 0;
    a->entries_cap = 0;
    if (make(&a->entries, cap, sizeof *a->entries) < 0 || make(&a->none, cap, sizeof *a->none) < 0 ||
        make(&a->rows, cap, sizeof *a->rows) < 0 || make(&a->indptr, groups * (cap + 1), sizeof(int32_t)) < 0 ||
        make(&a->last_page_len, groups * cap, sizeof(int32_t)) < 0 || make(&a->seq_lens, cap, sizeof(int32_t)) < 0 ||
        make(&a->query_indptr, cap + 1, sizeof(int32_t)) < 0)
        return -1;
    a->entries_cap = (uint32_t)cap;
    return 0;
}

static int grow_pages(runner_arrays *a, uint64_t groups, uint64_t n)
{
    uint64_t cap = round_up(n, FIRST_PAGES);
    if (n <= a->pages_cap)
        return 0;
    a->pages_cap = 0;
    if (make(&a->pages, groups * cap, sizeof(int32_t)) < 0 || make(&a->positions, groups * cap, sizeof(int32_t)) < 0)
        return -1;
    a->pages_cap = cap;
    return 0;
}

int runner_grow_masses(runner_arrays *a, uint64_t masses, uint64_t near)
{
    uint64_t cap = round_up(masses, FIRST_PAGES), near_cap = round_up(near, FIRST_PAGES);
    if (masses > a->masses_cap) {
        a->masses_cap = 0;
        if (make(&a->mean, cap, sizeof *a->mean) < 0 || make(&a->peak, cap, sizeof *a->peak) < 0)
            return -1;
        a->masses_cap = cap;
    }
    if (near > a->near_cap) {
        a->near_cap = 0;
        if (make(&a->near, near_cap, sizeof *a->near) < 0)
            return -1;
        a->near_cap = near_cap;
    }
    return 0;
}

static int grow_slots(runner_arrays *a, uint64_t groups, uint64_t n)
{
    uint64_t cap = round_up(n, FIRST_SLOTS);
    if (n <= a->slots_cap)
        return 0;
    a->slots_cap = 0;
    if (make(&a->slots, groups * cap, sizeof(int64_t)) < 0 || make(&a->tokens, cap, sizeof(uint32_t)) < 0 ||
        make(&a->which, cap, sizeof(uint32_t)) < 0)
        return -1;
    a->slots_cap = cap;
    return 0;
}

int runner_grow(runner *r, uint32_t n, uint64_t pages, uint64_t slots)
{
    uint64_t groups = r->config.n_groups;
    if (grow_entries(&r->arrays, groups, n) < 0 || grow_pages(&r->arrays, groups, pages) < 0)
        return -1;
    return grow_slots(&r->arrays, groups, slots);
}
