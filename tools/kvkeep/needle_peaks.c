#include "kvkeep/needle_peaks.h"

#include "policy/near.h"

#include <stdlib.h>
#include <string.h>

/* A game over the peaks. */
typedef struct game {
    const needle_peaks *p;
    const needle_reserve *reserve;
    float *layer;  /* [pages] importance by one layer */
    float *sums;   /* [layers + 1][pages] by the layers before, added up */
    uint8_t *held; /* [layers][layers][pages] by first and last layer */
} game;

/* The sums when the text has so many pages, by keep's own reckoning. */
static void weigh(const game *g, uint32_t pages)
{
    const needle_peaks *p = g->p;
    memset(g->sums, 0, p->pages * sizeof *g->sums);
    for (uint32_t l = 0; l < p->layers; l++) {
        kvk_near near = {p->peaks + l * p->heads, (uint64_t)p->layers * p->heads, pages, 1, p->heads};
        float *before = g->sums + (size_t)l * p->pages, *after = before + p->pages;
        near_importance(&near, 1, g->reserve->damping, &(near_pages){NULL, pages, g->layer});
        for (uint32_t i = 0; i < pages; i++)
            after[i] = before[i] + g->layer[i];
    }
}

/* A range of layers. */
typedef struct range {
    const float *before, *after; /* [pages] sums up to its first layer and its last */
    uint8_t *held;               /* [pages] */
} range;

static range range_of(const game *g, uint32_t first, uint32_t last)
{
    size_t pages = g->p->pages;
    return (range){g->sums + first * pages, g->sums + (last + 1) * pages,
                   g->held + ((size_t)first * g->p->layers + last) * pages};
}

/* Neighbours lend, as keep has it. */
static float worth(const range *r, uint32_t i, uint32_t pages, double spread)
{
    float lent = i > 1 && r->held[i - 1] ? r->after[i - 1] - r->before[i - 1] : 0;
    if (i + 1 < pages && r->held[i + 1])
        lent += r->after[i + 1] - r->before[i + 1];
    return r->after[i] - r->before[i] + (float)spread * lent;
}

/* Page 0 has the sinks; the last pages stay. */
static void evict(const game *g, uint32_t first, uint32_t last, uint32_t pages)
{
    range r = range_of(g, first, last);
    uint32_t n = 0, goes = 0;
    float least = 0;
    r.held[pages - 1] = 1;
    for (uint32_t i = 1; i + g->reserve->recent < pages; i++) {
        if (!r.held[i])
            continue;
        float value = worth(&r, i, pages, g->reserve->spread);
        if (n++ == 0 || value < least) {
            least = value;
            goes = i;
        }
    }
    if (n > g->reserve->holds)
        r.held[goes] = 0;
}

static int has_key(const game *g, uint32_t first, uint32_t last)
{
    range r = range_of(g, first, last);
    for (uint32_t i = g->p->key_first; i <= g->p->key_last; i++)
        if (!r.held[i])
            return 0;
    return 1;
}

static void play(const game *g, uint32_t *kept)
{
    uint32_t layers = g->p->layers;
    for (uint32_t pages = 1; pages <= g->p->pages; pages++) {
        weigh(g, pages);
        for (uint32_t first = 0; first < layers; first++)
            for (uint32_t last = first; last < layers; last++)
                evict(g, first, last, pages);
    }
    for (uint32_t first = 0; first < layers; first++)
        for (uint32_t last = first; last < layers; last++)
            kept[first * layers + last] += (uint32_t)has_key(g, first, last);
}

int needle_peaks_count(const needle_peaks *p, const needle_reserve *reserve, uint32_t *kept)
{
    game g = {.p = p, .reserve = reserve};
    g.layer = calloc(p->pages, sizeof *g.layer);
    g.sums = calloc((size_t)(p->layers + 1) * p->pages, sizeof *g.sums);
    g.held = calloc((size_t)p->layers * p->layers, p->pages);
    int rc = g.layer && g.sums && g.held ? 0 : -1;
    if (rc == 0)
        play(&g, kept);
    free(g.layer);
    free(g.sums);
    free(g.held);
    return rc;
}
