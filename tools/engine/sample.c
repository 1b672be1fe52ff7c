#include "engine/sample.h"

#include <math.h>
#include <stdlib.h>

/* A token that may be chosen. */
typedef struct candidate {
    float logit;
    uint32_t token;
    double weight; /* its probability, but for a factor */
} candidate;

struct sampler {
    sample_options options;
    uint64_t state; /* of the chance */
    uint32_t n;
    candidate *candidates; /* [n] */
};

/* ---- Opening ---------------------------------------------------------------------------------------------------- */

int sampler_open(const sample_options *options, uint32_t n, sampler **out, trace_error *error)
{
    trace_place place = {"sampling", 0, NULL};
    if (!(options->temperature >= 0 && options->temperature <= 1e6))
        return trace_bad_input(error, place, "a temperature of %g is not within 0 to 1000000", options->temperature);
    if (!(options->top_p > 0 && options->top_p <= 1))
        return trace_bad_input(error, place, "a top_p of %g is not above 0 and up to 1", options->top_p);
    if (n == 0)
        return trace_bad_input(error, place, "there are no tokens");
    sampler *s = calloc(1, sizeof *s);
    if (!s || !(s->candidates = malloc(n * sizeof *s->candidates))) {
        free(s);
        return trace_failed(error, place, "out of memory");
    }
    s->options = *options;
    s->state = options->seed;
    s->n = n;
    *out = s;
    return 0;
}

void sampler_close(sampler *s)
{
    if (!s)
        return;
    free(s->candidates);
    free(s);
}

/* ---- Who is likely ---------------------------------------------------------------------------------------------- */

uint32_t sample_greedy(const float *logits, uint32_t n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (logits[i] > logits[best] || (isnan(logits[best]) && !isnan(logits[i])))
            best = i;
    return best;
}

static int is_likelier(const candidate *a, const candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->token < b->token;
}

/* A heap with the least likely of its candidates at the root. */
static void sink(candidate *heap, uint32_t n, uint32_t at)
{
    candidate moved = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && is_likelier(&heap[child], &heap[child + 1]);
        if (!is_likelier(&moved, &heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

/* Puts the `most` likeliest of n candidates first, in no order. Returns how many there are. */
static uint32_t select_likeliest(candidate *c, uint32_t n, uint32_t most)
{
    if (most == 0 || most >= n)
        return n;
    for (uint32_t at = most / 2; at-- > 0;)
        sink(c, most, at);
    for (uint32_t i = most; i < n; i++)
        if (is_likelier(&c[i], &c[0])) {
            c[0] = c[i];
            sink(c, most, 0);
        }
    return most;
}

/* ---- Choosing --------------------------------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014), its upper 53 bits: 0 up to but not 1. */
static double chance(sampler *s)
{
    uint64_t z = s->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static uint32_t collect(const sampler *s, const float *logits)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (!isnan(logits[i]))
            s->candidates[n++] = (candidate){logits[i], i, 0};
    return n;
}

/* Returns the sum. */
static double weigh(const sampler *s, uint32_t n, float most)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        candidate *c = &s->candidates[i];
        c->weight = exp(((double)c->logit - (double)most) / s->options.temperature);
        sum += c->weight;
    }
    return sum;
}

static int by_likelihood(const void *a, const void *b)
{
    return is_likelier(a, b) ? -1 : 1;
}

/* The fewest likeliest candidates whose weights reach a share of *sum, which becomes theirs. All that are lighter than
 * an even part of the rest could not be among them together, so only the others are sorted. Returns how many. */
static uint32_t cut(candidate *c, uint32_t n, double share, double *sum)
{
    double least = (1 - share) * *sum / n, reached = 0, wanted = share * *sum;
    uint32_t left = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (c[i].weight >= least)
            c[left++] = c[i];
    qsort(c, left, sizeof *c, by_likelihood);
    while (kept < left && (kept == 0 || reached < wanted))
        reached += c[kept++].weight;
    *sum = reached;
    return kept;
}

static uint32_t draw(const candidate *c, uint32_t n, double at)
{
    uint32_t i = 0;
    for (; i + 1 < n && at >= c[i].weight; i++)
        at -= c[i].weight;
    while (i > 0 && c[i].weight <= 0) /* rounding may lead past the last one that has any */
        i--;
    return c[i].token;
}

uint32_t sampler_next(sampler *s, const float *logits)
{
    uint32_t best = sample_greedy(logits, s->n);
    if (s->options.temperature <= 0 || !isfinite(logits[best]))
        return best;
    uint32_t n = select_likeliest(s->candidates, collect(s, logits), s->options.top_k);
    double sum = weigh(s, n, logits[best]);
    if (s->options.top_p < 1)
        n = cut(s->candidates, n, s->options.top_p, &sum);
    return draw(s->candidates, n, chance(s) * sum);
}
