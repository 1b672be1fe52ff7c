/* twin_policies.c: policies of the library, each written down again as it is defined. What is rounded is rounded in the
 * same places, so that scores that are nearly alike come in the same order. */
#include "twin_view.h"

#include <math.h>
#include <string.h>

#define N(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))

static uint32_t needs_mean(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return KVK_NEED_MEAN;
}

/* Half of a budget at most is recent, in whole pages. */
static uint32_t cap_recent(double recent, uint32_t budget, uint32_t page_tokens)
{
    double half = floor(budget / 2.0 / page_tokens) * page_tokens;
    return (uint32_t)(budget > 0 && half < recent ? half : recent);
}

static uint32_t filled(const kvk_policy_view *v, uint32_t i)
{
    uint32_t left = v->n_tokens - v->index[i] * v->page_tokens;
    return left < v->page_tokens ? left : v->page_tokens;
}

/* ---- By age ---- */

static const kvk_policy full = {.name = "full"};

static void rank_oldest(const kvk_policy_view *v, float *score, uint8_t *tier)
{
    (void)tier;
    for (uint32_t i = 0; i < v->n; i++)
        score[i] = (float)v->index[i];
}

static const kvk_knob window_knobs[] = {{.name = "tokens"}};

static uint32_t window_budget(const double *knobs)
{
    return (uint32_t)knobs[0];
}

static const kvk_policy window = {
    .name = "window", .n_knobs = N(window_knobs), .knobs = window_knobs, .budget = window_budget, .rank = rank_oldest};

static const kvk_knob streaming_knobs[] = {{.name = "sinks"}, {.name = "recent"}};

static uint32_t streaming_budget(const double *knobs)
{
    return (uint32_t)(knobs[0] + knobs[1]);
}

static kvk_protection protect_sinks(const double *knobs, uint32_t budget, uint32_t page_tokens)
{
    (void)budget, (void)page_tokens;
    return (kvk_protection){.sinks = (uint32_t)knobs[0]};
}

static const kvk_policy streaming = {.name = "streaming",
                                     .n_knobs = N(streaming_knobs),
                                     .knobs = streaming_knobs,
                                     .budget = streaming_budget,
                                     .protect = protect_sinks,
                                     .rank = rank_oldest};

/* ---- H2O ---- */

enum { SINKS, HEAVY, RECENT, EXIT, THRESHOLD };
enum { NO_POOL, RECENT_POOL, HEAVY_POOL, DROPPED };

static const kvk_knob h2o_knobs[] = {
    {.name = "sinks"}, {.name = "heavy"}, {.name = "recent"}, {.name = "exit"}, {.name = "threshold"}};

static uint32_t h2o_needs(const double *knobs, int has_near)
{
    (void)has_near;
    return knobs[EXIT] > 0 ? KVK_NEED_MEAN | KVK_NEED_ASK : KVK_NEED_MEAN;
}

static uint32_t h2o_budget(const double *knobs)
{
    return (uint32_t)(knobs[SINKS] + knobs[HEAVY] + knobs[RECENT]);
}

static kvk_protection h2o_protect(const double *knobs, uint32_t budget, uint32_t page_tokens)
{
    return (kvk_protection){.sinks = (uint32_t)knobs[SINKS],
                            .recent = knobs[EXIT] > 0 ? 0 : cap_recent(knobs[RECENT], budget, page_tokens)};
}

static void h2o_observe(const kvk_policy_view *v, const kvk_observation *seen)
{
    for (uint32_t i = 0; i < v->n; i++)
        v->scores[0][i] += seen->mean[i];
}

/* With pools, what is in the heavy one goes before the rest. */
static void h2o_rank(const kvk_policy_view *v, float *score, uint8_t *tier)
{
    for (uint32_t i = 0; i < v->n; i++) {
        score[i] = v->scores[0][i];
        tier[i] = v->knobs[EXIT] > 0 && (int)v->scores[1][i] != HEAVY_POOL;
    }
}

/* The lowest page of a pool if there are more than `size` in it, else n. */
static uint32_t overflow(const kvk_policy_view *v, int pool, double size)
{
    uint32_t in = 0, best = v->n;
    for (uint32_t i = 0; i < v->n; i++) {
        if ((int)v->scores[1][i] != pool)
            continue;
        in++;
        if (v->eligible[i] && (best == v->n || v->scores[0][i] < v->scores[0][best]))
            best = i;
    }
    return in > size ? best : v->n;
}

static uint32_t h2o_enter(const kvk_policy_view *v, uint32_t page)
{
    uint32_t P = v->page_tokens, out;
    double recent = cap_recent(v->knobs[RECENT], v->budget, P) / P;
    double heavy = v->budget / P - recent - ceil(v->knobs[SINKS] / P) - 1;
    v->scores[1][page] = RECENT_POOL;
    out = overflow(v, RECENT_POOL, recent);
    if (out < v->n && (double)v->scores[0][out] > v->knobs[THRESHOLD]) {
        v->scores[1][out] = HEAVY_POOL;
        out = overflow(v, HEAVY_POOL, heavy);
    }
    if (out < v->n)
        v->scores[1][out] = DROPPED;
    return out;
}

static uint32_t h2o_choose(const kvk_policy_view *v, uint32_t want, uint32_t *victims)
{
    uint32_t n = 0;
    (void)want;
    for (uint32_t i = 0; v->knobs[EXIT] > 0 && v->budget && i < v->n; i++) {
        if (!v->eligible[i] || (int)v->scores[1][i] != NO_POOL)
            continue;
        victims[n] = h2o_enter(v, i);
        n += victims[n] < v->n;
    }
    return n;
}

static const kvk_policy h2o = {.name = "h2o",
                               .n_knobs = N(h2o_knobs),
                               .knobs = h2o_knobs,
                               .score_is_mass = 1,
                               .needs = h2o_needs,
                               .budget = h2o_budget,
                               .protect = h2o_protect,
                               .observe = h2o_observe,
                               .rank = h2o_rank,
                               .choose = h2o_choose};

/* ---- By the last observation ---- */

static void tova_observe(const kvk_policy_view *v, const kvk_observation *seen)
{
    for (uint32_t i = 0; i < v->n; i++)
        v->scores[0][i] = seen->mean[i] * (1 / (float)seen->n_queries);
}

static void rank_first_number(const kvk_policy_view *v, float *score, uint8_t *tier)
{
    (void)tier;
    for (uint32_t i = 0; i < v->n; i++)
        score[i] = v->scores[0][i];
}

static const kvk_policy tova = {
    .name = "tova", .needs = needs_mean, .observe = tova_observe, .rank = rank_first_number, .score_is_mass = 1};

static const kvk_knob lru_knobs[] = {{.name = "sinks"}};

/* A page is used if it gets more than its even share. */
static void lru_observe(const kvk_policy_view *v, const kvk_observation *seen)
{
    uint32_t held = 0;
    for (uint32_t i = 0; i < v->n; i++)
        held += filled(v, i);
    for (uint32_t i = 0; i < v->n; i++) {
        if ((double)seen->mean[i] * held > (double)filled(v, i) * seen->n_queries)
            v->scores[0][i] = (float)(seen->first_query + seen->n_queries);
    }
}

static const kvk_policy lru = {.name = "lru",
                               .n_knobs = N(lru_knobs),
                               .knobs = lru_knobs,
                               .needs = needs_mean,
                               .protect = protect_sinks,
                               .observe = lru_observe,
                               .rank = rank_first_number};

/* ---- keep; what it reserves by near peaks is tested elsewhere ---- */

enum { KEEP_SINKS, KEEP_RECENT, HALF_LIFE, RESERVE, IMPORTANCE, SPREAD };
enum { BY_EITHER, BY_NEAR, BY_PEAK };

static const kvk_knob keep_knobs[] = {{.name = "sinks"},   {.name = "recent_share"}, {.name = "half_life"},
                                      {.name = "reserve"}, {.name = "importance"},   {.name = "spread"}};

static uint32_t keep_needs(const double *knobs, int has_near)
{
    int importance = (int)knobs[IMPORTANCE];
    if (knobs[RESERVE] <= 0 || (importance == BY_NEAR && !has_near))
        return KVK_NEED_MEAN;
    return KVK_NEED_MEAN | (importance == BY_PEAK || !has_near ? KVK_NEED_PEAK : KVK_NEED_NEAR);
}

static kvk_protection keep_protect(const double *knobs, uint32_t budget, uint32_t page_tokens)
{
    double share = floor(knobs[KEEP_RECENT] * budget / page_tokens) * page_tokens;
    return (kvk_protection){.sinks = (uint32_t)knobs[KEEP_SINKS], .recent = budget ? (uint32_t)share : 512};
}

static void keep_observe(const kvk_policy_view *v, const kvk_observation *seen)
{
    bool fades = v->knobs[HALF_LIFE] > 0;
    double d = fades ? exp2(-(double)seen->n_queries / v->knobs[HALF_LIFE]) : 1;
    float before = (float)d, now = fades ? (float)((1 - d) / seen->n_queries) : 1;
    for (uint32_t i = 0; i < v->n; i++)
        v->scores[0][i] = v->scores[0][i] * before + seen->mean[i] * now;
    for (uint32_t i = 0; seen->peak && i < v->n; i++)
        v->scores[1][i] = seen->peak[i] > v->scores[1][i] ? seen->peak[i] : v->scores[1][i];
}

/* The peak of the page of this number, if it is held and not the text's first. */
static float keep_peak(const kvk_policy_view *v, uint32_t number)
{
    for (uint32_t i = 0; i < v->n; i++)
        if (number > 0 && v->index[i] == number)
            return v->scores[1][i];
    return 0;
}

/* A page's peak, and a share of its neighbours' in the text. */
static float keep_importance(const kvk_policy_view *v, uint32_t i)
{
    uint32_t number = v->index[i];
    float beside = number > 0 ? keep_peak(v, number - 1) + keep_peak(v, number + 1) : 0;
    return v->scores[1][i] + (float)v->knobs[SPREAD] * beside;
}

/* Of the eligible pages that are not reserved yet the most important one. */
static uint32_t keep_highest(const kvk_policy_view *v, const uint8_t *tier)
{
    uint32_t best = v->n;
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->eligible[i] && !tier[i] && (best == v->n || keep_importance(v, i) > keep_importance(v, best)))
            best = i;
    }
    return best;
}

static void keep_rank(const kvk_policy_view *v, float *score, uint8_t *tier)
{
    uint32_t pages = v->budget ? v->budget / v->page_tokens : v->n, eligible = 0;
    for (uint32_t i = 0; i < v->n; i++) {
        score[i] = v->scores[0][i];
        eligible += v->eligible[i];
    }
    double reserve = floor(v->knobs[RESERVE] * pages + 0.5);
    for (uint32_t n = 0; n < reserve && n + 1 < eligible; n++)
        tier[keep_highest(v, tier)] = 1;
}

static const kvk_policy keep = {.name = "keep",
                                .n_knobs = N(keep_knobs),
                                .knobs = keep_knobs,
                                .score_is_mass = 1,
                                .needs = keep_needs,
                                .protect = keep_protect,
                                .observe = keep_observe,
                                .rank = keep_rank};

const kvk_policy *twin_policy(const kvk_policy_choice *choice, double knobs[KVK_MAX_KNOBS])
{
    static const kvk_policy *const known[] = {&full, &window, &streaming, &h2o, &tova, &lru, &keep};
    const kvk_policy *from = choice->policy, *policy = from;
    for (uint32_t i = 0; i < N(known); i++) {
        if (strcmp(known[i]->name, from->name) == 0)
            policy = known[i];
    }
    for (uint32_t i = 0; i < policy->n_knobs; i++) {
        for (uint32_t k = 0; k < from->n_knobs; k++) {
            if (strcmp(policy->knobs[i].name, from->knobs[k].name) == 0)
                knobs[i] = choice->knobs[k];
        }
    }
    return policy;
}
