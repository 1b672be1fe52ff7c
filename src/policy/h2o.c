/* H2O (Zhang et al. 2023): what got most attention so far, and the last tokens.
 *
 * exit=0, the paper's: of the pages out of the recent window the one with the lowest sum goes.
 *
 * exit=1, two pools: a full page enters the recent pool. When that is over its size its lowest page leaves it,
 * and enters the heavy pool if its sum is above the threshold; when the heavy pool is over its size its lowest goes.
 * Sums go on growing in both. Pages that may not go now are in neither or stay where they are. */
#include "policy/policies.h"

enum { SINKS, HEAVY, RECENT, EXIT, THRESHOLD };
enum { SUM, POOL, N_SCORES };

static const float outside = 0, recent_pool = 1, heavy_pool = 2, dropped = 3; /* values of scores[POOL] */

static const kvk_knob knobs[] = {
    [SINKS] = KNOB_SINKS(4),
    [HEAVY] = {"heavy", 0, TOKENS_MAX, 512, 1, "tokens that stay for their sum of attention, where no budget is set"},
    [RECENT] = KNOB_RECENT(512),
    [EXIT] = {"exit", 0, 1, 0, 1, "which page leaves the recent window: 0 the oldest, 1 the one with the lowest sum"},
    [THRESHOLD] = {"threshold", 0, 1e9, 0, 0, "exit=1: a page stays beyond the recent window if its sum is above it"},
};

static uint32_t needs(const double *k, int has_near)
{
    (void)has_near;
    return k[EXIT] != 0 ? KVK_NEED_MEAN | KVK_NEED_ASK : KVK_NEED_MEAN;
}

static uint32_t budget(const double *k)
{
    return (uint32_t)k[SINKS] + (uint32_t)k[HEAVY] + (uint32_t)k[RECENT];
}

static kvk_protection protect(const double *k, uint32_t tokens, uint32_t page_tokens)
{
    uint32_t recent = k[EXIT] != 0 ? 0 : policy_recent(k[RECENT], tokens, page_tokens);
    return (kvk_protection){.sinks = (uint32_t)k[SINKS], .recent = recent};
}

static void observe(const kvk_policy_view *view, const kvk_observation *seen)
{
    float *restrict sum = view->scores[SUM];
    const float *restrict mean = seen->mean;
    for (uint32_t i = 0; i < view->n; i++)
        sum[i] += mean[i];
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    const float *pool = view->scores[POOL];
    uint8_t apart = view->knobs[EXIT] != 0;
    for (uint32_t i = 0; i < view->n; i++) {
        score[i] = view->scores[SUM][i];
        tier[i] = apart & (pool[i] != heavy_pool);
    }
}

typedef struct pool_sizes {
    uint32_t recent, heavy; /* pages */
} pool_sizes;

/* Besides the pools the budget holds the sinks and the page that is being written. */
static pool_sizes sizes_of(const kvk_policy_view *view)
{
    uint32_t tokens = view->page_tokens;
    uint32_t pages = view->budget / tokens;
    uint32_t recent = policy_recent(view->knobs[RECENT], view->budget, tokens) / tokens;
    uint32_t others = recent + policy_pages(view->knobs[SINKS], tokens) + 1;
    return (pool_sizes){.recent = recent, .heavy = pages > others ? pages - others : 0};
}

static uint32_t count(const kvk_policy_view *view, float pool)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < view->n; i++)
        n += view->scores[POOL][i] == pool;
    return n;
}

static int goes_after(const float *sum, uint32_t a, uint32_t b)
{
    return sum[a] != sum[b] ? sum[a] > sum[b] : a > b;
}

/* A heap of pages, the last of them to go at its root. */
static void sink(const float *sum, uint32_t *heap, uint32_t n, uint32_t at)
{
    uint32_t page = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && goes_after(sum, heap[child + 1], heap[child]);
        if (!goes_after(sum, heap[child], page))
            break;
        heap[at] = heap[child];
    }
    heap[at] = page;
}

/* What a pool has too much: its lowest pages that may go, into out[]. Returns how many. O(n log excess). */
static uint32_t excess_of(const kvk_policy_view *view, float pool, uint32_t size, uint32_t *out)
{
    const float *sum = view->scores[SUM];
    uint32_t held = count(view, pool), excess = held > size ? held - size : 0, n = 0;
    for (uint32_t i = 0; i < view->n && excess; i++) {
        if (!view->eligible[i] || view->scores[POOL][i] != pool)
            continue;
        if (n < excess) {
            out[n++] = i;
            for (uint32_t at = n == excess ? n / 2 : 0; at-- > 0;)
                sink(sum, out, n, at);
        } else if (goes_after(sum, out[0], i)) {
            out[0] = i;
            sink(sum, out, n, 0);
        }
    }
    return n;
}

/* Pages enter the recent pool by position, and each time the lowest of a pool that is too long leaves it. What leaves
 * in the end are the lowest of all that were in it, whatever the order, so each pool is looked through once. */
static uint32_t choose(const kvk_policy_view *view, uint32_t want, uint32_t *victims)
{
    (void)want; /* what is wanted beyond what leaves the pools goes by rank */
    float *pool = view->scores[POOL];
    if (view->knobs[EXIT] == 0 || view->budget == 0)
        return 0;
    pool_sizes sizes = sizes_of(view);
    for (uint32_t i = 0; i < view->n; i++)
        if (view->eligible[i] && pool[i] == outside)
            pool[i] = recent_pool;
    uint32_t leaving = excess_of(view, recent_pool, sizes.recent, victims), n = 0;
    for (uint32_t k = 0; k < leaving; k++) {
        int enters = (double)view->scores[SUM][victims[k]] > view->knobs[THRESHOLD];
        pool[victims[k]] = enters ? heavy_pool : dropped;
        victims[n] = victims[k];
        n += !enters;
    }
    leaving = excess_of(view, heavy_pool, sizes.heavy, victims + n);
    for (uint32_t k = 0; k < leaving; k++)
        pool[victims[n++]] = dropped;
    return n;
}

const kvk_policy policy_h2o = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "h2o",
    .text = "keeps what got most attention so far, summed up, and the last tokens (H2O, Zhang et al. 2023)",
    .knobs = knobs,
    .n_scores = N_SCORES,
    .score_is_mass = 1,
    .needs = needs,
    .budget = budget,
    .protect = protect,
    .observe = observe,
    .rank = rank,
    .choose = choose,
};
