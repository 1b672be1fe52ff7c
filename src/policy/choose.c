#include "policy/choose.h"

#include <math.h>
#include <string.h>

void policy_rank(const kvk_policy *policy, const kvk_policy_view *view, float *score, uint8_t *tier)
{
    if (view->n == 0) /* a policy need not think of it */
        return;
    memset(score, 0, view->n * sizeof *score);
    memset(tier, 0, view->n * sizeof *tier);
    if (!policy->rank || view->n == 0)
        return;
    policy->rank(view, score, tier);
    for (uint32_t i = 0; i < view->n; i++)
        score[i] = isnan(score[i]) ? -INFINITY : score[i];
}

/* ---- The lowest pages ---------------------------------------------------------------------------------------- */

/* Pages among which some are sought. */
typedef struct field {
    const float *score;
    const uint8_t *tier;
    const uint8_t *eligible;
    const uint32_t *taken; /* 1: it goes already */
    uint32_t n;
} field;

static int goes_before(const field *f, uint32_t a, uint32_t b)
{
    if (f->tier[a] != f->tier[b])
        return f->tier[a] < f->tier[b];
    if (f->score[a] != f->score[b])
        return f->score[a] < f->score[b];
    return a < b;
}

static int open_to(const field *f, uint32_t page)
{
    return f->eligible[page] && !f->taken[page];
}

static uint32_t lowest_one(const field *f, uint32_t *out)
{
    uint32_t best = f->n;
    for (uint32_t i = 0; i < f->n; i++)
        if (open_to(f, i) && (best == f->n || goes_before(f, i, best)))
            best = i;
    if (best == f->n)
        return 0;
    *out = best;
    return 1;
}

/* A heap of the lowest pages so far, the last of them to go at its root. */
static void sink_root(const field *f, uint32_t *heap, uint32_t n, uint32_t at)
{
    uint32_t page = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && goes_before(f, heap[child], heap[child + 1]))
            child++;
        if (!goes_before(f, page, heap[child]))
            break;
        heap[at] = heap[child];
    }
    heap[at] = page;
}

static void make_heap(const field *f, uint32_t *heap, uint32_t n)
{
    for (uint32_t at = n / 2; at-- > 0;)
        sink_root(f, heap, n, at);
}

/* The `want` lowest into heap[want], in any order. Returns how many there are. */
static uint32_t lowest(const field *f, uint32_t want, uint32_t *heap)
{
    uint32_t n = 0;
    if (want == 1)
        return lowest_one(f, heap);
    for (uint32_t i = 0; i < f->n && want; i++) {
        if (!open_to(f, i))
            continue;
        if (n < want) {
            heap[n++] = i;
            if (n == want)
                make_heap(f, heap, n);
        } else if (goes_before(f, i, heap[0])) {
            heap[0] = i;
            sink_root(f, heap, n, 0);
        }
    }
    return n;
}

/* ---- What the policy says, made safe ------------------------------------------------------------------------- */

/* Marks those of the answer that may go. Returns how many. */
static uint32_t take_answer(const kvk_policy_view *view, const uint32_t *answer, uint32_t n, uint32_t *taken)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n && i < view->n; i++) {
        uint32_t page = answer[i];
        if (page >= view->n || !view->eligible[page] || taken[page])
            continue;
        taken[page] = 1;
        found++;
    }
    return found;
}

static void take_lowest(const kvk_policy *policy, const kvk_policy_view *view, uint32_t want, const policy_scratch *s,
                        uint32_t *room)
{
    policy_rank(policy, view, s->score, s->tier);
    field f = {s->score, s->tier, view->eligible, s->order, view->n};
    uint32_t n = lowest(&f, want, room);
    for (uint32_t i = 0; i < n; i++)
        s->order[room[i]] = 1;
}

uint32_t policy_choose(const kvk_policy *policy, const kvk_policy_view *view, uint32_t want,
                       const policy_scratch *scratch, uint32_t *victims)
{
    if (!policy->rank || view->n == 0)
        return 0;
    uint32_t *taken = scratch->order;
    memset(taken, 0, view->n * sizeof *taken);
    uint32_t found = 0;
    if (policy->choose)
        found = take_answer(view, victims, policy->choose(view, want, victims), taken);
    if (found < want)
        take_lowest(policy, view, want - found, scratch, victims);
    uint32_t n = 0;
    for (uint32_t i = 0; i < view->n; i++)
        if (taken[i])
            victims[n++] = i;
    return n;
}
