/* keep, the library's own: a decayed mean of attention ranks the pages, and a reserve holds those that mattered most to
 * the queries right after them, however little is made of them since: numbers, codes, what is asked for late.
 *
 * The decayed mean S: each query's mass m makes it S * d + m * (1 - d), d = 0.5^(1 / half_life); with half_life 0 it is
 * a plain sum. The importance that the reserve goes by is that of near.h, one for a page in all groups, as of the last
 * page of text that was seen in full: since each group asks for it, it stands in view->shared. Where a cache has no
 * near peaks the page's highest peak so far is its importance, in each group its own. What matters may lie on two
 * pages of which one shows it (a number with its last digit on the next page): with `spread` neighbours lend each other
 * importance. */
#include "policy/near.h"
#include "policy/policies.h"

#include <math.h>

enum { SINKS, RECENT_SHARE, HALF_LIFE, RESERVE, IMPORTANCE, LAYERS, DAMPING, SPREAD, LEAST };
enum { MASS, PEAK, N_SCORES };
enum { BY_EITHER, BY_NEAR, BY_PEAK }; /* values of IMPORTANCE */

#define RECENT_WITHOUT_BUDGET 512u /* tokens */

static const kvk_knob knobs[] = {
    [SINKS] = KNOB_SINKS(4),
    [RECENT_SHARE] = {"recent_share", 0, 1, 0.5, 0, "the pages with the last tokens stay, this share of the budget"},
    [HALF_LIFE] = {"half_life", 0, 1e9, 128, 0, "queries after which what a page got counts half; 0: it never fades"},
    [RESERVE] = {"reserve", 0, 1, 0.25, 0, "share of the budget for the pages of highest importance"},
    [IMPORTANCE] = {"importance", 0, 2, 0, 1,
                    "1: near peaks; 2: a page's highest peak so far; 0: near peaks if the cache has them"},
    [LAYERS] = {"layers", 0, 1, 1, 1, "near peaks: 1: one importance for a page, from all groups; 0: from its group"},
    [DAMPING] = {"damping", 0, 1e6, 4, 0, "near peaks: page b of the text counts b/(b + damping)"},
    [SPREAD] = {"spread", 0, 1, 0, 0, "share of its neighbours' importance that a page gets besides its own"},
    [LEAST] = {"least", 0, 1e6, 0, 0, "near peaks: only pages of so many times the mean importance are reserved"},
};

static uint32_t needs(const double *k, int has_near)
{
    if (k[RESERVE] == 0 || (k[IMPORTANCE] == BY_NEAR && !has_near))
        return KVK_NEED_MEAN;
    return KVK_NEED_MEAN | (k[IMPORTANCE] == BY_PEAK || !has_near ? KVK_NEED_PEAK : KVK_NEED_NEAR);
}

/* Whole pages in a share of n, also where the share is a decimal that binary fractions fall short of. */
static uint32_t pages_in(double share, uint32_t tokens, uint32_t page_tokens)
{
    return (uint32_t)(share * tokens / page_tokens + 1e-9);
}

static kvk_protection protect(const double *k, uint32_t tokens, uint32_t page_tokens)
{
    uint32_t recent = pages_in(k[RECENT_SHARE], tokens, page_tokens) * page_tokens;
    return (kvk_protection){.sinks = (uint32_t)k[SINKS], .recent = tokens ? recent : RECENT_WITHOUT_BUDGET};
}

/* ---- What is observed ---------------------------------------------------------------------------------------- */

static void fade(float *restrict mass, const float *restrict mean, uint32_t n, float before, float now)
{
    for (uint32_t i = 0; i < n; i++)
        mass[i] = mass[i] * before + mean[i] * now;
}

static void raise(float *restrict highest, const float *restrict peak, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        highest[i] = peak[i] > highest[i] ? peak[i] : highest[i];
}

/* One importance for a page in all groups, and a place to keep it. */
static int keeps_importance(const kvk_policy_view *view)
{
    return view->near && view->knobs[LAYERS] != 0 && view->shared;
}

/* Pages of the text of which something is known in some group; importances are kept of these. */
static uint32_t known_pages(const kvk_policy_view *view)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < view->n_groups; g++)
        n = view->near[g].n_pages > n ? view->near[g].n_pages : n;
    return n;
}

/* Once for all groups, when the last of them has been told of the last query of a page. */
static void renew_importance(const kvk_policy_view *view, const kvk_observation *seen)
{
    uint32_t tokens = view->page_tokens;
    uint64_t end = (uint64_t)seen->first_query + seen->n_queries;
    if (!keeps_importance(view) || view->group + 1 < view->n_groups || end / tokens == seen->first_query / tokens)
        return;
    near_pages text = {.n = known_pages(view), .importance = view->shared};
    near_importance(view->near, view->n_groups, view->knobs[DAMPING], &text);
}

static void observe(const kvk_policy_view *view, const kvk_observation *seen)
{
    double half_life = view->knobs[HALF_LIFE], n = seen->n_queries;
    double before = half_life > 0 ? exp2(-n / half_life) : 1;
    double now = half_life > 0 ? (1 - before) / n : 1;
    fade(view->scores[MASS], seen->mean, view->n, (float)before, (float)now);
    if (seen->peak)
        raise(view->scores[PEAK], seen->peak, view->n);
    renew_importance(view, seen);
}

/* ---- What goes ----------------------------------------------------------------------------------------------- */

static uint32_t reserved_pages(const kvk_policy_view *view)
{
    uint32_t pages = view->budget ? view->budget / view->page_tokens : view->n;
    uint32_t eligible = 0;
    for (uint32_t i = 0; i < view->n; i++)
        eligible += view->eligible[i];
    if (view->knobs[RESERVE] == 0 || (view->knobs[IMPORTANCE] == BY_NEAR && !view->near) || eligible == 0)
        return 0;
    uint32_t n = (uint32_t)(view->knobs[RESERVE] * pages + 0.5);
    return n < eligible ? n : eligible - 1;
}

/* Takes what stands in view->shared. Returns 0 if nothing does of the last page of the text, nor of the one before. */
static int recall_importance(const kvk_policy_view *view, float *importance)
{
    uint32_t n = keeps_importance(view) ? known_pages(view) : 0;
    if (n == 0 || !(view->shared[n - 1] > 0 || (n > 1 && view->shared[n - 2] > 0)))
        return 0;
    for (uint32_t i = 0; i < view->n; i++)
        importance[i] = view->index[i] < n ? view->shared[view->index[i]] : 0;
    return 1;
}

static void find_importance(const kvk_policy_view *view, float *importance)
{
    near_pages table = {view->index, view->n, importance};
    if (!view->near)
        memcpy(importance, view->scores[PEAK], view->n * sizeof *importance);
    else if (view->knobs[LAYERS] == 0)
        near_importance(&view->near[view->group], 1, view->knobs[DAMPING], &table);
    else if (!recall_importance(view, importance))
        near_importance(view->near, view->n_groups, view->knobs[DAMPING], &table);
}

/* Neighbours in the text that are both held. Page 0 has the sinks: what it does says nothing of the page after it. */
static int are_neighbours(const kvk_policy_view *view, uint32_t i, uint32_t next)
{
    return next < view->n && view->index[next] == view->index[i] + 1 && view->index[i] > 0;
}

static void spread_importance(const kvk_policy_view *view, float *importance)
{
    float share = (float)view->knobs[SPREAD], before = 0;
    for (uint32_t i = 0; share > 0 && i < view->n; i++) {
        float own = importance[i], after = are_neighbours(view, i, i + 1) ? importance[i + 1] : 0;
        importance[i] += share * (before + after);
        before = are_neighbours(view, i, i + 1) ? own : 0;
    }
}

/* Floats of at least 0 are in the order of their bits. What is no number is of no importance. */
static uint32_t bits_of(float x)
{
    uint32_t bits;
    float least = x > 0 ? x : 0;
    memcpy(&bits, &least, sizeof bits);
    return bits;
}

/* The bits of the n-th highest importance of the eligible pages, found byte by byte. *ties: how many of those with
 * these bits are among the n highest. */
static uint32_t nth_highest(const kvk_policy_view *view, const float *importance, uint32_t n, uint32_t *ties)
{
    uint32_t found = 0;
    for (uint32_t shift = 32; shift > 0;) {
        uint32_t counts[256] = {0}, byte = 255;
        uint64_t known = (uint64_t)found >> shift;
        shift -= 8;
        for (uint32_t i = 0; i < view->n; i++) {
            uint64_t bits = bits_of(importance[i]);
            counts[bits >> shift & 255] += view->eligible[i] && bits >> (shift + 8) == known;
        }
        for (; byte > 0 && counts[byte] < n; byte--)
            n -= counts[byte];
        found |= byte << shift;
    }
    *ties = n;
    return found;
}

static void reserve(const kvk_policy_view *view, const float *importance, uint32_t n, uint8_t *tier)
{
    uint32_t ties;
    uint32_t last = nth_highest(view, importance, n, &ties),
             least = view->near ? bits_of((float)view->knobs[LEAST]) : 0;
    for (uint32_t i = 0; i < view->n; i++) {
        uint32_t bits = bits_of(importance[i]);
        int is_among = view->eligible[i] && (bits > last || (bits == last && ties && ties--));
        tier[i] = is_among && bits >= least;
    }
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    uint32_t n = reserved_pages(view);
    if (n > 0) {
        find_importance(view, score); /* until the scores are put there */
        spread_importance(view, score);
        reserve(view, score, n, tier);
    }
    memcpy(score, view->scores[MASS], view->n * sizeof *score);
}

const kvk_policy policy_keep = {
    .size = sizeof(kvk_policy),
    .n_knobs = N_KNOBS(knobs),
    .name = "keep",
    .text = "keeps what gets most attention, fading, what mattered most to the queries after it, and the last tokens",
    .knobs = knobs,
    .n_scores = N_SCORES,
    .n_shared = 1,
    .score_is_mass = 1,
    .needs = needs,
    .protect = protect,
    .observe = observe,
    .rank = rank,
};
