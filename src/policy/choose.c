#include "policy/choose.h"

#include <math.h>
#include <string.h>

void policy_rank(const kvk_policy *policy, const kvk_policy_view *view, float *score, uint8_t *tier)
{
    if (view->n == 0) /* a policy need not think of it */
        return;
    memset(score, 0, view->n * sizeof *score);
    memset(tier, 0, view->n * sizeof *tier);
    if (!policy->rank)
        return;
    policy->rank(view, score, tier);
    for (uint32_t i = 0; i < view->n; i++)
        score[i] = isnan(score[i]) ? -INFINITY : score[i];
}

/* ---- The order in which pages go ----------------------------------------------------------------------------- */

static int goes_before(const policy_queue *q, uint32_t a, uint32_t b)
{
    if (q->tier[a] != q->tier[b])
        return q->tier[a] < q->tier[b];
    if (q->score[a] != q->score[b])
        return q->score[a] < q->score[b];
    return a < b;
}

static void sink(const policy_queue *q, uint32_t at)
{
    uint32_t *heap = q->pages, page = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < q->n; at = child) {
        if (child + 1 < q->n && goes_before(q, heap[child + 1], heap[child]))
            child++;
        if (!goes_before(q, heap[child], page))
            break;
        heap[at] = heap[child];
    }
    heap[at] = page;
}

policy_queue policy_queue_of(const policy_scratch *ranked, const uint8_t *eligible, uint32_t n, uint32_t *pages)
{
    policy_queue q = {ranked->score, ranked->tier, pages, 0};
    for (uint32_t i = 0; i < n; i++)
        if (eligible[i])
            pages[q.n++] = i;
    for (uint32_t at = q.n / 2; at-- > 0;)
        sink(&q, at);
    return q;
}

uint32_t policy_queue_next(policy_queue *q)
{
    if (q->n == 0)
        return UINT32_MAX;
    uint32_t next = q->pages[0];
    q->pages[0] = q->pages[--q->n];
    if (q->n)
        sink(q, 0);
    return next;
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

/* The usual decode step gives up one page: a heap is more than it needs. UINT32_MAX if none is left. */
static uint32_t lowest_one(const policy_queue *rank, const kvk_policy_view *view, const uint32_t *taken)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < view->n; i++)
        if (view->eligible[i] && !taken[i] && (best == UINT32_MAX || goes_before(rank, i, best)))
            best = i;
    return best;
}

/* Marks the `want` lowest of those that are not taken yet. */
static void take_lowest(const kvk_policy *policy, const kvk_policy_view *view, uint32_t want, const policy_scratch *s,
                        uint32_t *room)
{
    uint32_t *taken = s->order, page;
    policy_rank(policy, view, s->score, s->tier);
    if (want == 1) {
        policy_queue none = {s->score, s->tier, room, 0};
        page = lowest_one(&none, view, taken);
        if (page != UINT32_MAX)
            taken[page] = 1;
        return;
    }
    policy_queue q = policy_queue_of(s, view->eligible, view->n, room);
    while (want && (page = policy_queue_next(&q)) != UINT32_MAX) {
        want -= !taken[page];
        taken[page] = 1;
    }
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
