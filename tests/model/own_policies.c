/* own_policies.c: two policies of the tests' own.
 *
 * `witness` takes all that it is shown into its scores, so that a view that differs in anything shows. `nonsense`
 * answers what no policy should: numbers that are none, pages that aren't there or may not go, the same one twice. */
#include "world.h"

#include <math.h>
#include <string.h>

static uint32_t mix(uint32_t hash, uint32_t x)
{
    hash = (hash ^ x) * 0x01000193u;
    return hash ^ (hash >> 15);
}

static uint32_t mix_floats(uint32_t hash, const float *x, uint32_t n)
{
    for (uint32_t i = 0; x && i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        hash = mix(hash, bits & 0x7fffffffu); /* -0 is as good as 0 */
    }
    return hash;
}

/* What isn't known is 0, whether there is a place for it or not. */
static uint32_t mix_near(uint32_t hash, const kvk_near *near)
{
    uint32_t channels = near->layers * near->heads;
    hash = mix(mix(hash, near->layers), near->heads);
    for (uint32_t i = 0; i < near->n_pages * channels; i++) {
        const float *peak = near->peaks + i / channels * near->stride + i % channels;
        if (*peak > 0)
            hash = mix_floats(mix(hash, i), peak, 1);
    }
    return hash;
}

static uint32_t mix_view(const kvk_policy_view *v)
{
    uint32_t hash = mix(mix(mix(1, v->group), v->n_groups), v->page_tokens);
    hash = mix(mix(mix(mix(hash, v->budget), v->n_tokens), v->n_prompt), v->n);
    for (uint32_t i = 0; i < v->n; i++)
        hash = mix(mix(hash, v->index[i]), v->eligible ? v->eligible[i] : 2);
    for (uint32_t g = 0; v->near && g < v->n_groups; g++)
        hash = mix_near(hash, &v->near[g]);
    return hash;
}

/* ---- witness ---- */

enum { NEEDS, SINKS, RECENT, BUDGET, CHOOSES };
enum { SUM, SIGN, TIMES, N_SCORES };

static const kvk_knob witness_knobs[] = {
    [NEEDS] = {"needs", 0, 15, 1, 1, "what it asks for"},
    [SINKS] = {"sinks", 0, 1e9, 0, 1, "tokens out of reach"},
    [RECENT] = {"recent", 0, 1e9, 0, 1, "tokens out of reach"},
    [BUDGET] = {"budget", 0, 1e9, 0, 1, "tokens"},
    [CHOOSES] = {"chooses", 0, 1, 0, 1, "1: it names pages itself"},
};

static uint32_t witness_needs(const double *knobs, int has_near)
{
    (void)has_near;
    return (uint32_t)knobs[NEEDS];
}

static uint32_t witness_budget(const double *knobs)
{
    return (uint32_t)knobs[BUDGET];
}

static kvk_protection witness_protect(const double *knobs, uint32_t budget, uint32_t page_tokens)
{
    (void)budget, (void)page_tokens;
    return (kvk_protection){(uint32_t)knobs[SINKS], (uint32_t)knobs[RECENT]};
}

/* The number of page i for all groups, once something is known of it in this one; else NULL. */
static float *witness_shared(const kvk_policy_view *v, uint32_t i)
{
    const kvk_near *near = v->near ? &v->near[v->group] : NULL;
    uint32_t channels = near ? near->layers * near->heads : 0;
    for (uint32_t k = 0; k < channels && v->index[i] < near->n_pages; k++) {
        if (near->peaks[v->index[i] * near->stride + k] > 0)
            return &v->shared[v->index[i]];
    }
    return NULL;
}

static void witness_observe(const kvk_policy_view *v, const kvk_observation *seen)
{
    uint32_t hash = mix(mix(mix_view(v), seen->first_query), seen->n_queries);
    hash = mix_floats(mix_floats(hash, seen->mean, v->n), seen->peak, v->n);
    for (uint32_t i = 0; i < v->n; i++) {
        v->scores[SUM][i] += seen->mean[i];
        v->scores[SIGN][i] = (float)(mix(hash, i) % 64) / 64;
        v->scores[TIMES][i] += 1;
        if (witness_shared(v, i))
            *witness_shared(v, i) += (float)(v->group + 1) / 64;
    }
}

static void witness_rank(const kvk_policy_view *v, float *score, uint8_t *tier)
{
    for (uint32_t i = 0; i < v->n; i++) {
        score[i] = v->scores[SUM][i] + v->scores[SIGN][i] + v->scores[TIMES][i] / 64;
        score[i] += witness_shared(v, i) ? *witness_shared(v, i) : 0;
        tier[i] = v->index[i] % 4 == 3;
    }
}

/* Takes notes of being asked, which count only if the pages go. */
static uint32_t witness_choose(const kvk_policy_view *v, uint32_t want, uint32_t *victims)
{
    uint32_t hash = mix(mix_view(v), want), n = 0;
    for (uint32_t i = v->n; v->knobs[CHOOSES] > 0 && i-- > 0;) {
        v->scores[TIMES][i] += 1;
        if (v->eligible[i] && mix(hash, i) % 4 == 0)
            victims[n++] = i;
    }
    return n;
}

const kvk_policy world_witness = {.size = sizeof(kvk_policy),
                                  .n_knobs = sizeof witness_knobs / sizeof witness_knobs[0],
                                  .name = "witness",
                                  .text = "keeps what the tests can foresee",
                                  .knobs = witness_knobs,
                                  .n_scores = N_SCORES,
                                  .n_shared = 1,
                                  .score_is_mass = 1,
                                  .needs = witness_needs,
                                  .budget = witness_budget,
                                  .protect = witness_protect,
                                  .observe = witness_observe,
                                  .rank = witness_rank,
                                  .choose = witness_choose};

/* ---- nonsense ---- */

static uint32_t nonsense_needs(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return UINT32_MAX;
}

/* More than there can be where there is no budget. */
static kvk_protection nonsense_protect(const double *knobs, uint32_t budget, uint32_t page_tokens)
{
    (void)knobs;
    if (budget == 0)
        return (kvk_protection){page_tokens, page_tokens % 2 ? UINT32_MAX : 1};
    return (kvk_protection){budget / 4, budget / 4};
}

static float nonsense_number(uint32_t hash)
{
    static const float numbers[] = {0, -0.0f, 1, -1, 1e30f, -1e30f, 1e-40f};
    hash = mix(hash, 7) % 10;
    return hash < 7 ? numbers[hash] : hash == 7 ? INFINITY : hash == 8 ? -INFINITY : NAN;
}

static void nonsense_observe(const kvk_policy_view *v, const kvk_observation *seen)
{
    uint32_t hash = mix(mix_view(v), seen->first_query);
    for (uint32_t i = 0; i < v->n; i++)
        v->scores[0][i] = nonsense_number(mix(hash, i));
}

static void nonsense_rank(const kvk_policy_view *v, float *score, uint8_t *tier)
{
    for (uint32_t i = 0; i < v->n; i++) {
        score[i] = v->index[i] % 2 ? v->scores[0][i] : nonsense_number(v->index[i]);
        tier[i] = (uint8_t)(v->index[i] * 77);
    }
}

static uint32_t nonsense_choose(const kvk_policy_view *v, uint32_t want, uint32_t *victims)
{
    uint32_t hash = mix(mix_view(v), want);
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t x = mix(hash, i);
        v->scores[0][i] = nonsense_number(x);
        victims[i] = x % 3 == 0 ? v->n + x % 2 : x % 3 == 1 ? UINT32_MAX - x % 5 : x % v->n;
    }
    return hash % 3 == 0 ? 0 : hash % 3 == 1 ? UINT32_MAX : v->n;
}

const kvk_policy world_nonsense = {.size = sizeof(kvk_policy),
                                   .name = "nonsense",
                                   .text = "answers what no policy should",
                                   .n_scores = 1,
                                   .needs = nonsense_needs,
                                   .protect = nonsense_protect,
                                   .observe = nonsense_observe,
                                   .rank = nonsense_rank,
                                   .choose = nonsense_choose};
