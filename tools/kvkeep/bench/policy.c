/* What eviction costs: masses into scores, each step, and choosing what goes, once per filled page. */
#include "kvkeep/bench/cache.h"

#include <kvkeep/eviction.h>
#include <stdlib.h>

#define SCORED_PAGES 256u /* of each of the RUNNING sequences */
#define MOST_GROUPS 32u
#define WITHIN_A_PAGE (PAGE_TOKENS / 2)
#define NEAR_HEADS 9u
#define NEAR_STRIDE (RUNNING * 2u * NEAR_HEADS) /* of a step's near peaks: two pages of each sequence */

/* ---- scoring: a batch of one token a sequence ends with the masses of all its pages */

typedef struct scoring {
    kvk_cache *cache;
    uint32_t n_groups;
    uint32_t missing; /* tokens of each sequence's last page */
    kvk_batch_entry entries[RUNNING];
    float *mass;   /* [n_groups][stride] */
    float *near;   /* [n_groups][near_stride]; NULL: the cache keeps no near peaks */
    float *scores; /* the baseline's */
    uint64_t stride;
} scoring;

static void close_scoring(void *state)
{
    scoring *s = state;
    kvk_cache_close(s->cache);
    free(s->mass);
    free(s->near);
    free(s->scores);
    free(s);
}

static int set_policy(kvk_cache *cache, kvk_seq seq, const char *policy, uint32_t budget)
{
    char why[120];
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.budget = budget;
    int rc = kvk_policy_parse(policy, NULL, &settings.choice, why, sizeof why);
    return rc < 0 ? rc : kvk_seq_set_eviction(cache, seq, &settings);
}

/* Sequences of SCORED_PAGES pages, each within its budget, so many tokens short of the last page's end. */
static int open_scored(scoring *s, const char *policy)
{
    const uint32_t n_tokens = SCORED_PAGES * PAGE_TOKENS - s->missing;
    int rc = 0;
    for (uint32_t i = 0; i < RUNNING && rc >= 0; i++) {
        rc = kvk_seq_open(s->cache, NULL, &s->entries[i].seq);
        rc = rc < 0 ? rc : set_policy(s->cache, s->entries[i].seq, policy, 2 * n_tokens);
        rc = rc < 0 ? rc : kvk_reserve(s->cache, s->entries[i].seq, SCORED_PAGES * PAGE_TOKENS, KVK_RECLAIM);
        rc = rc < 0 ? rc : kvk_commit(s->cache, s->entries[i].seq, &(kvk_text){.n_tokens = n_tokens});
        s->entries[i].n_query = 1;
    }
    return rc;
}

/* What is scored. */
typedef struct scoring_kind {
    const char *policy;
    const kvk_group *groups; /* NULL: no near peaks */
    uint32_t missing;
} scoring_kind;

static scoring *open_scoring(uint32_t n_groups, const scoring_kind *kind)
{
    scoring *s = calloc(1, sizeof *s);
    kvk_config config = bench_cache_config(RUNNING * SCORED_PAGES * n_groups);
    config.n_groups = n_groups;
    config.groups = kind->groups;
    config.content = KVK_CONTENT_NONE;
    if (!s)
        return NULL;
    s->n_groups = n_groups;
    s->missing = kind->missing;
    s->stride = RUNNING * SCORED_PAGES;
    s->mass = calloc(n_groups * s->stride, sizeof *s->mass);
    s->near = kind->groups ? calloc(n_groups * NEAR_STRIDE, sizeof *s->near) : NULL;
    s->scores = calloc(n_groups * s->stride, sizeof *s->scores);
    for (uint64_t i = 0; s->mass && i < n_groups * s->stride; i++)
        s->mass[i] = 1.0f / SCORED_PAGES;
    for (uint64_t i = 0; s->near && i < n_groups * NEAR_STRIDE; i++)
        s->near[i] = 1.0f / (float)(1 + i % NEAR_HEADS);
    if (s->mass && s->scores && (s->near || !kind->groups) && kvk_cache_open(&config, &s->cache) == 0 &&
        open_scored(s, kind->policy) >= 0)
        return s;
    close_scoring(s);
    return NULL;
}

static void *open_h2o(const bench_case *me)
{
    return open_scoring(me->size, &(scoring_kind){"h2o", NULL, WITHIN_A_PAGE});
}

/* With the near peaks of nine heads, which a kernel reports of the two newest pages. */
static scoring *open_near(uint32_t n_groups, uint32_t missing)
{
    kvk_group groups[MOST_GROUPS];
    for (uint32_t g = 0; g < n_groups; g++)
        groups[g] = (kvk_group){.near_layers = 1, .near_heads = NEAR_HEADS};
    return open_scoring(n_groups, &(scoring_kind){"keep", groups, missing});
}

static void *open_keep(const bench_case *me)
{
    return open_near(me->size, WITHIN_A_PAGE);
}

/* The one step in PAGE_TOKENS that ends a page, when the importances of all pages are found anew. */
static void *open_keep_border(const bench_case *me)
{
    return open_near(me->size, 1);
}

/* Without near peaks it looks at the largest mass of every page. */
static void *open_keep_peak(const bench_case *me)
{
    return open_scoring(me->size, &(scoring_kind){"keep", NULL, WITHIN_A_PAGE});
}

static double run_scoring(void *state)
{
    scoring *s = state;
    kvk_plan plan;
    kvk_batch batch = 0;
    kvk_masses masses = {.size = sizeof masses,
                         .stride = s->stride,
                         .mean = s->mass,
                         .peak = s->mass,
                         .near = s->near,
                         .near_stride = NEAR_STRIDE};
    kvk_batch_result result = {.size = sizeof result, .n = RUNNING, .masses = &masses};
    kvk_plan_init(&plan);
    kvk_batch_plan(s->cache, s->entries, RUNNING, &plan, &batch);
    double start = bench_now_ns();
    kvk_batch_end(s->cache, batch, &result);
    double ns = bench_now_ns() - start;
    for (uint32_t i = 0; i < RUNNING; i++)
        kvk_truncate(s->cache, s->entries[i].seq, SCORED_PAGES * PAGE_TOKENS - s->missing);
    return ns / (double)(s->stride * s->n_groups);
}

/* The least that any sum of masses has to do. */
static double run_adding(void *state)
{
    scoring *s = state;
    const float *restrict mass = s->mass;
    float *restrict scores = s->scores;
    uint64_t n = s->stride * s->n_groups;
    double start = bench_now_ns();
    for (uint64_t i = 0; i < n; i++)
        scores[i] += mass[i];
    __asm__ volatile("" : : "r"(scores) : "memory");
    return (bench_now_ns() - start) / (double)n;
}

/* ---- choosing: a sequence at its budget needs one page more, and one of N goes */

#define CHOICES 8u

typedef struct choosing {
    kvk_cache *cache;
    kvk_seq seq;
    uint32_t n_pages;
    float *scores; /* the baseline's */
} choosing;

static void close_choosing(void *state)
{
    choosing *s = state;
    kvk_cache_close(s->cache);
    free(s->scores);
    free(s);
}

/* One token more, in a page of its own. */
static int decode(choosing *s, double *ns)
{
    kvk_plan plan;
    kvk_batch batch = 0;
    kvk_batch_entry entry = {.seq = s->seq, .n_query = 1};
    kvk_plan_init(&plan);
    double start = bench_now_ns();
    int rc = kvk_reserve(s->cache, s->seq, 1, KVK_RECLAIM);
    *ns += bench_now_ns() - start;
    rc = rc < 0 ? rc : kvk_batch_plan(s->cache, &entry, 1, &plan, &batch);
    return rc < 0 ? rc : kvk_batch_end(s->cache, batch, NULL);
}

static choosing *open_choosing(uint32_t n_pages, const char *policy)
{
    choosing *s = calloc(1, sizeof *s);
    kvk_config config = bench_cache_config(n_pages + 1);
    config.page_tokens = 1;
    config.content = KVK_CONTENT_NONE;
    if (!s)
        return NULL;
    s->n_pages = n_pages;
    s->scores = calloc(n_pages, sizeof *s->scores);
    if (s->scores && kvk_cache_open(&config, &s->cache) == 0 && kvk_seq_open(s->cache, NULL, &s->seq) == 0 &&
        set_policy(s->cache, s->seq, policy, n_pages) == 0 &&
        kvk_reserve(s->cache, s->seq, n_pages, KVK_RECLAIM) >= 0 &&
        kvk_commit(s->cache, s->seq, &(kvk_text){.n_tokens = n_pages}) >= 0)
        return s;
    close_choosing(s);
    return NULL;
}

static void *open_choosing_h2o(const bench_case *me)
{
    return open_choosing(me->size, "h2o:recent=16");
}

static void *open_choosing_keep(const bench_case *me)
{
    return open_choosing(me->size, "keep");
}

static double run_choosing(void *state)
{
    choosing *s = state;
    double ns = 0;
    for (uint32_t i = 0; i < CHOICES; i++)
        decode(s, &ns);
    return ns / CHOICES / s->n_pages;
}

/* A plain search for the least of as many numbers. */
static double run_searching(void *state)
{
    const choosing *s = state;
    uint32_t best = 0;
    double start = bench_now_ns();
    for (uint32_t i = 0; i < CHOICES; i++) {
        best = 0;
        for (uint32_t k = 1; k < s->n_pages; k++)
            best = s->scores[k] < s->scores[best] ? k : best;
        __asm__ volatile("" : : "r"(best) : "memory");
    }
    return (bench_now_ns() - start) / CHOICES / s->n_pages;
}

#define SCORING_CASE(name, n_groups, open)                                                                             \
    {                                                                                                                  \
        name, "ns/page", "adding as many floats", n_groups, open, run_scoring, run_adding, close_scoring               \
    }
#define CHOOSING_CASE(name, n_pages, open)                                                                             \
    {                                                                                                                  \
        name, "ns/page", "finding the least float", n_pages, open, run_choosing, run_searching, close_choosing         \
    }

const bench_case bench_policy_cases[] = {
    SCORING_CASE("score.h2o.256x256x1", 1, open_h2o),
    SCORING_CASE("score.h2o.256x256x32", MOST_GROUPS, open_h2o),
    SCORING_CASE("score.keep.256x256x1", 1, open_keep),
    SCORING_CASE("score.keep.256x256x32", MOST_GROUPS, open_keep),
    SCORING_CASE("score.keep_peak.256x256x32", MOST_GROUPS, open_keep_peak),
    SCORING_CASE("border.keep.256x256x1", 1, open_keep_border),
    CHOOSING_CASE("choose.h2o.100", 100, open_choosing_h2o),
    CHOOSING_CASE("choose.h2o.1000", 1000, open_choosing_h2o),
    CHOOSING_CASE("choose.h2o.10000", 10000, open_choosing_h2o),
    CHOOSING_CASE("choose.h2o.100000", 100000, open_choosing_h2o),
    CHOOSING_CASE("choose.keep.100", 100, open_choosing_keep),
    CHOOSING_CASE("choose.keep.1000", 1000, open_choosing_keep),
    CHOOSING_CASE("choose.keep.10000", 10000, open_choosing_keep),
    CHOOSING_CASE("choose.keep.100000", 100000, open_choosing_keep),
};
const uint32_t bench_policy_count = sizeof bench_policy_cases / sizeof *bench_policy_cases;
