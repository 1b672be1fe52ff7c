#include "kvkeep/eval/needle_peaks.h"

#include "policy/near.h"

#include <stdlib.h>
#include <string.h>

/* ---- At the text's end ------------------------------------------------------------------------------------------ */

void needle_peaks_weigh(const needle_peaks *p, double damping, float *importance)
{
    for (uint32_t h = 0; h < p->heads; h++) {
        kvk_near near = {p->peaks + h, p->heads, p->pages, 1, 1};
        near_importance(&near, 1, damping, &(near_pages){NULL, p->pages, importance + (size_t)h * p->pages});
    }
}

/* Neighbours lend, as keep has it. Page 0 has the sinks. `held` NULL: all are. */
static float worth(const float *importance, const uint8_t *held, uint32_t i, uint32_t pages, double spread)
{
    float lent = i > 1 && (!held || held[i - 1]) ? importance[i - 1] : 0;
    if (i + 1 < pages && (!held || held[i + 1]))
        lent += importance[i + 1];
    return importance[i] + (float)spread * lent;
}

enum { MOST_HELD = 1024 };

/* Puts a value into the highest[n], descending, of `most` that are kept. Returns the new n. */
static uint32_t rank(float *highest, uint32_t n, uint32_t most, float value)
{
    uint32_t at = n < most ? n : most - 1;
    if (n == most && value <= highest[at])
        return n;
    for (; at > 0 && highest[at - 1] < value; at--)
        highest[at] = highest[at - 1];
    highest[at] = value;
    return n < most ? n + 1 : n;
}

/* The importance of the most important page that has to go, other than the key's; 0 if none has to. */
static float bar(const needle_peaks *p, const needle_reserve *r, const float *importance)
{
    uint32_t key = p->key_last - p->key_first + 1, n = 0;
    uint32_t most = r->holds < key ? 1 : r->holds - key + 1; /* others that stay, and the first that goes */
    float highest[MOST_HELD];
    most = most < MOST_HELD ? most : MOST_HELD;
    for (uint32_t i = 1; i + r->recent < p->pages; i++)
        if (i < p->key_first || i > p->key_last)
            n = rank(highest, n, most, worth(importance, NULL, i, p->pages, r->spread));
    return n == most ? highest[most - 1] : 0;
}

double needle_peaks_safety(const needle_peaks *p, const needle_reserve *reserve, const float *importance)
{
    double least = 1e30, against = (double)bar(p, reserve, importance);
    for (uint32_t i = p->key_first; i <= p->key_last; i++) {
        double value = (double)worth(importance, NULL, i, p->pages, reserve->spread);
        least = i > 0 && i + reserve->recent < p->pages && value < least ? value : least;
    }
    if (least >= 1e30)
        return 1;
    double a = least * least * least * least, b = against * against * against * against;
    return a + b > 0 ? a / (a + b) : 0;
}

/* ---- Page after page -------------------------------------------------------------------------------------------- */

/* A game over the peaks. */
typedef struct game {
    const needle_peaks *p;
    const needle_reserve *reserve;
    uint32_t n;        /* heads */
    float *peaks;      /* [pages][n] theirs */
    float *importance; /* [pages] */
    uint8_t *held;     /* [pages] */
} game;

/* When the text has so many pages. */
static void evict(const game *g, uint32_t pages)
{
    const needle_reserve *r = g->reserve;
    uint32_t n = 0, goes = 0;
    float least = 0;
    g->held[pages - 1] = 1;
    for (uint32_t i = 1; i + r->recent < pages; i++) {
        if (!g->held[i])
            continue;
        float value = worth(g->importance, g->held, i, pages, r->spread);
        if (n++ == 0 || value < least) {
            least = value;
            goes = i;
        }
    }
    if (n > r->holds)
        g->held[goes] = 0;
}

static int play(const game *g)
{
    int kept = 1;
    for (uint32_t pages = 1; pages <= g->p->pages; pages++) {
        kvk_near near = {g->peaks, g->n, pages, g->n, 1};
        near_importance(&near, 1, g->reserve->damping, &(near_pages){NULL, pages, g->importance});
        evict(g, pages);
    }
    for (uint32_t i = g->p->key_first; i <= g->p->key_last; i++)
        kept &= g->held[i];
    return kept;
}

int needle_peaks_kept(const needle_peaks *p, const needle_reserve *reserve, const uint32_t *heads, uint32_t n)
{
    game g = {.p = p, .reserve = reserve, .n = n};
    g.peaks = calloc(p->pages, n * sizeof *g.peaks);
    g.importance = calloc(p->pages, sizeof *g.importance);
    g.held = calloc(p->pages, 1);
    int rc = g.peaks && g.importance && g.held ? 0 : -1;
    for (uint32_t i = 0; rc == 0 && i < p->pages * n; i++)
        g.peaks[i] = p->peaks[(size_t)(i / n) * p->heads + heads[i % n]];
    if (rc == 0)
        rc = play(&g);
    free(g.peaks);
    free(g.importance);
    free(g.held);
    return rc;
}
