/* near.c: near peaks, what a page did to the queries right after it. They depend on the text alone, so they stay with
 * the text: a sequence keeps those of all its pages, dropped ones too, and what can be found by others takes its own
 * along. */
#include "base/checked.h"
#include "cache/eviction.h"

#include <string.h>

/* ---- of a sequence */

void near_show(const kvk_cache *c, eviction *e)
{
    for (uint32_t g = 0; g < c->config.n_groups; g++)
        e->near[g] = (kvk_near){.peaks = e->peaks ? e->peaks + c->near_first[g] : NULL,
                                .stride = c->near_row,
                                .n_pages = near_channels(c, g) ? e->n_peaks : 0,
                                .layers = c->groups[g].near_layers,
                                .heads = c->groups[g].near_heads};
}

int near_prepare_all(kvk_cache *c, sequence *s, uint64_t n)
{
    eviction *e = s->eviction;
    int rc = memory_grow(c->memory, &e->shared, &e->shared_cap, n, sizeof *e->shared);
    if (rc == 0)
        rc = memory_grow(c->memory, &e->peaks, &e->peaks_cap, n, c->near_row * sizeof *e->peaks);
    near_show(c, e);
    return rc;
}

int near_prepare(kvk_cache *c, sequence *s, uint64_t n)
{
    return near_is_kept(s->eviction) && (n > s->eviction->peaks_cap || n > s->eviction->shared_cap)
               ? near_prepare_all(c, s, n)
               : 0;
}

/* The values of a page, those of new ones at least 0. */
static float *near_at(kvk_cache *c, sequence *s, uint32_t group, uint32_t number)
{
    eviction *e = s->eviction;
    if (number >= e->n_peaks) {
        uint32_t n = number + 1 - e->n_peaks;
        memset(e->peaks + (size_t)e->n_peaks * c->near_row, 0, (size_t)n * c->near_row * sizeof *e->peaks);
        memset(e->shared + e->n_peaks, 0, n * sizeof *e->shared);
        e->n_peaks = number + 1;
        near_show(c, e);
    }
    return e->peaks + (size_t)number * c->near_row + c->near_first[group];
}

void near_take(kvk_cache *c, sequence *s, uint32_t group, uint32_t number, const float *values)
{
    float *near = near_at(c, s, group, number);
    for (uint32_t i = 0; i < near_channels(c, group); i++)
        near[i] = near[i] < values[i] ? values[i] : near[i];
}

void near_cut(kvk_cache *c, sequence *s, uint32_t number)
{
    if (s->eviction->n_peaks <= number)
        return;
    s->eviction->n_peaks = number;
    near_show(c, s->eviction);
}

/* ---- of pages that can be found */

int near_prepare_pages(kvk_cache *c)
{
    if (memory_grow(c->memory, &c->page_near, &c->page_near_cap, c->store.pool.cap,
                    c->near_stride * sizeof *c->page_near) < 0)
        return KVK_ENOMEM;
    return memory_grow(c->memory, &c->near_sealed, &c->near_sealed_cap, c->store.pool.cap, sizeof *c->near_sealed);
}

static void copy_to_page(kvk_cache *c, const sequence *s, uint32_t group, uint32_t number, uint32_t page)
{
    const eviction *e = s->eviction;
    size_t channels = near_channels(c, group);
    if (near_is_kept(s->eviction) && number < e->n_peaks)
        memcpy(near_of_page(c, page), e->peaks + (size_t)number * c->near_row + c->near_first[group],
               channels * sizeof(float));
    else
        memset(near_of_page(c, page), 0, channels * sizeof(float));
}

void near_publish(kvk_cache *c, const sequence *s, uint32_t group, uint32_t number, uint32_t page)
{
    c->near_sealed[page] = 0;
    copy_to_page(c, s, group, number, page);
}

void near_settle(kvk_cache *c, const sequence *s, uint32_t group, uint32_t number, uint32_t end)
{
    if (c->config.content == KVK_CONTENT_NONE || ((uint64_t)number + 1) * page_tokens(c) > s->n_committed ||
        !table_holds(&s->tables[group], number))
        return; /* nobody can find it */
    uint32_t page = *table_at(&s->tables[group], number);
    if (c->store.pool.pages[page].content == CONTENT_NONE || c->near_sealed[page])
        return;
    copy_to_page(c, s, group, number, page);
    c->near_sealed[page] = end >= ((uint64_t)number + 2) * page_tokens(c);
}

void near_attach(kvk_cache *c, sequence *s, uint32_t group, uint32_t number, uint32_t page)
{
    if (!near_is_kept(s->eviction) || near_channels(c, group) == 0 || c->store.pool.pages[page].content == CONTENT_NONE)
        return;
    memcpy(near_at(c, s, group, number), near_of_page(c, page), near_channels(c, group) * sizeof(float));
}

void near_move(kvk_cache *c, uint32_t old, uint32_t page)
{
    memcpy(near_of_page(c, page), near_of_page(c, old), c->near_stride * sizeof(float));
    c->near_sealed[page] = c->near_sealed[old];
}
