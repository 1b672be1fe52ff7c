#include "policy/near.h"

#include <string.h>

#define HEADS_MAX 4096u /* of all layers of a group */
#define MEAN_MIN 1e-9f  /* a head that never did anything does not divide by 0 */

/* What brings the peaks of a group to one scale. */
typedef struct scales {
    float head[HEADS_MAX];  /* [layers][heads] 1 / mean peak */
    float layer[HEADS_MAX]; /* [layers] 1 / mean of the highest scaled peak */
} scales;

static const float *peaks_of(const kvk_near *near, uint32_t page)
{
    return near->peaks + page * near->stride;
}

static float damped(uint32_t page, double damping)
{
    double pages = (double)page + 1;
    return (float)(pages / (pages + damping));
}

/* Adds values * by. Returns 1 if any value is above 0. */
static uint32_t add_to(float *restrict sums, const float *restrict values, uint32_t n, float by)
{
    uint32_t any = 0;
    for (uint32_t j = 0; j < n; j++) {
        sums[j] += values[j] * by;
        any |= values[j] > 0;
    }
    return any;
}

/* Returns how many pages beside page 0 are known. */
static uint32_t scale_heads(const kvk_near *near, double damping, float *head)
{
    uint32_t n = near->layers * near->heads, known = 0;
    memset(head, 0, n * sizeof *head);
    for (uint32_t page = 1; page < near->n_pages; page++)
        known += add_to(head, peaks_of(near, page), n, damped(page, damping));
    for (uint32_t j = 0; j < n; j++) {
        float mean = known ? head[j] / (float)known : 0;
        head[j] = 1 / (mean > MEAN_MIN ? mean : MEAN_MIN);
    }
    return known;
}

static float highest(const float *restrict peaks, const float *restrict scale, uint32_t n)
{
    float best = 0;
    for (uint32_t j = 0; j < n; j++) {
        float value = peaks[j] * scale[j];
        best = value > best ? value : best;
    }
    return best;
}

static void scale_layers(const kvk_near *near, double damping, uint32_t known, scales *s)
{
    memset(s->layer, 0, near->layers * sizeof *s->layer);
    for (uint32_t page = 1; page < near->n_pages; page++) {
        const float *peaks = peaks_of(near, page);
        float by = damped(page, damping);
        for (uint32_t l = 0; l < near->layers; l++)
            s->layer[l] += by * highest(peaks + l * near->heads, s->head + l * near->heads, near->heads);
    }
    for (uint32_t l = 0; l < near->layers; l++)
        s->layer[l] = s->layer[l] > 0 ? (float)known / s->layer[l] : 0;
}

/* The sum over layers. */
static float importance_of(const kvk_near *near, uint32_t page, double damping, const scales *s)
{
    const float *peaks = peaks_of(near, page);
    float sum = 0;
    for (uint32_t l = 0; l < near->layers; l++)
        sum += s->layer[l] * highest(peaks + l * near->heads, s->head + l * near->heads, near->heads);
    return sum * damped(page, damping);
}

static void add_group(const kvk_near *near, double damping, const near_pages *pages)
{
    scales s;
    if (near->heads > HEADS_MAX || near->layers > HEADS_MAX / (near->heads ? near->heads : 1))
        return;
    scale_layers(near, damping, scale_heads(near, damping, s.head), &s);
    for (uint32_t i = 0; i < pages->n; i++) {
        uint32_t page = pages->index ? pages->index[i] : i;
        if (page < near->n_pages)
            pages->importance[i] += importance_of(near, page, damping, &s);
    }
}

void near_importance(const kvk_near *groups, uint32_t n_groups, double damping, const near_pages *pages)
{
    uint32_t layers = 0;
    memset(pages->importance, 0, pages->n * sizeof *pages->importance);
    for (uint32_t g = 0; g < n_groups; g++) {
        add_group(&groups[g], damping, pages);
        layers += groups[g].layers;
    }
    for (uint32_t i = 0; i < pages->n && layers; i++)
        pages->importance[i] /= (float)layers;
}
