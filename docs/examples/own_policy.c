/* own_policy.c: an eviction policy of your own. This one keeps the pages with the most attention per query since they
 * were written, so that age alone earns nothing. Compiled and run in CI.
 *
 *     cc own_policy.c $(pkg-config --cflags --libs kvkeep) && ./a.out
 */
#include <kvkeep/eviction.h>

#include <stdio.h>
#include <stdlib.h>

/* ---- the policy */

enum { MASS, QUERIES, N_SCORES }; /* what it remembers of each page */
enum { SINKS, RECENT, N_KNOBS };

static const kvk_knob knobs[N_KNOBS] = {
    [SINKS] = {"sinks", 0, 1024, 4, 1, "first tokens that always stay"},
    [RECENT] = {"recent", 0, 1048576, 16, 1, "last tokens that always stay"},
};

static uint32_t needs(const double *k, int has_near)
{
    (void)k, (void)has_near;
    return KVK_NEED_MEAN;
}

static kvk_protection protect(const double *k, uint32_t budget, uint32_t page_tokens)
{
    (void)budget, (void)page_tokens;
    return (kvk_protection){(uint32_t)k[SINKS], (uint32_t)k[RECENT]};
}

static void observe(const kvk_policy_view *view, const kvk_observation *seen)
{
    for (uint32_t i = 0; i < view->n; i++) {
        view->scores[MASS][i] += seen->mean[i];
        view->scores[QUERIES][i] += (float)seen->n_queries;
    }
}

static void rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier; /* all pages alike */
    for (uint32_t i = 0; i < view->n; i++)
        score[i] = view->scores[QUERIES][i] > 0 ? view->scores[MASS][i] / view->scores[QUERIES][i] : 0;
}

static const kvk_policy per_query = {
    .size = sizeof(kvk_policy),
    .name = "per_query",
    .text = "keeps the pages with the most attention per query",
    .n_knobs = N_KNOBS,
    .knobs = knobs,
    .n_scores = N_SCORES,
    .score_is_mass = 1,
    .needs = needs,
    .protect = protect,
    .observe = observe,
    .rank = rank,
};

/* ---- a sequence under it */

enum { PAGE_TOKENS = 4, BUDGET = 32, N_TOKENS = 200, HOT_PAGE = 5, MAX_PAGES = BUDGET / PAGE_TOKENS + 1 };

static int must(int result, const char *call)
{
    if (result >= 0)
        return result;
    fprintf(stderr, "%s: %s\n", call, kvk_strerror(result));
    exit(1);
}

/* Stands for attention: one page of the text gets half of it, the others share the rest. */
static void attend(const int32_t *positions, int n, float *mass)
{
    for (int i = 0; i < n; i++)
        mass[i] = positions[i] == HOT_PAGE * PAGE_TOKENS ? 0.5f : 0.5f / (float)n;
}

/* One token: room (which may evict), plan, attention, masses back. */
static void decode(kvk_cache *cache, kvk_seq seq)
{
    int32_t indptr[2], pages[MAX_PAGES], positions[MAX_PAGES];
    float mass[MAX_PAGES];
    kvk_plan plan;
    kvk_batch batch;
    kvk_batch_entry entry = {.seq = seq, .n_query = 1};
    must(kvk_reserve(cache, seq, 1, KVK_RECLAIM), "kvk_reserve");
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = MAX_PAGES;
    plan.indptr = indptr;
    plan.pages = pages;
    plan.positions = positions;
    must(kvk_batch_plan(cache, &entry, 1, &plan, &batch), "kvk_batch_plan");
    attend(positions, indptr[1], mass);
    kvk_masses masses = {.size = sizeof masses, .stride = MAX_PAGES, .mean = mass};
    kvk_batch_result result = {.size = sizeof result, .n = 1, .masses = &masses};
    must(kvk_batch_end(cache, batch, &result), "kvk_batch_end");
}

int main(void)
{
    kvk_config config;
    kvk_eviction eviction;
    kvk_cache *cache;
    kvk_seq seq;
    char why[100];
    kvk_config_init(&config);
    config.page_tokens = PAGE_TOKENS;
    config.n_pages = 64;
    config.content = KVK_CONTENT_NONE;
    must(kvk_cache_open(&config, &cache), "kvk_cache_open");
    must(kvk_seq_open(cache, NULL, &seq), "kvk_seq_open");
    kvk_eviction_init(&eviction);
    eviction.budget = BUDGET;
    must(kvk_policy_parse("per_query:recent=8", &per_query, &eviction.choice, why, sizeof why), why);
    must(kvk_seq_set_eviction(cache, seq, &eviction), "kvk_seq_set_eviction");
    for (int i = 0; i < N_TOKENS; i++)
        decode(cache, seq);

    uint32_t positions[MAX_PAGES];
    int n = must(kvk_seq_positions(cache, seq, 0, positions, MAX_PAGES), "kvk_seq_positions"), hot = 0;
    for (int i = 0; i < n; i++) {
        printf("%u ", positions[i]);
        hot |= positions[i] == HOT_PAGE * PAGE_TOKENS;
    }
    puts(hot ? "kept, the hot page too" : "kept, but not the hot page");
    kvk_cache_close(cache);
    return !(hot && n == BUDGET / PAGE_TOKENS && positions[0] == 0);
}
