/* A steady state allocates nothing: counted at the library's door and, where the build has it, by jemalloc's arena. */
#include "cache/cache.h"
#include "run_tests.h"

#include <kvkeep/eviction.h>

#include <check.h>
#include <stdio.h>

#if KVK_HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>
#endif

enum { PAGE = 16, PAGES = 512, RUNNING = 24, PROMPT = 200 };

/* Under policies: pages that a sequence holds at most, and the masses of a batch of drafts. */
enum { GROUPS = 3, BUDGET = 96, DRAFTS = 4, HELD = 16, PLACES = RUNNING * DRAFTS * HELD, CHANNELS = 2 };

typedef struct server {
    kvk_cache *cache;
    kvk_seq seqs[RUNNING];
    uint64_t seed;
} server;

static uint32_t below(server *s, uint32_t n)
{
    s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->seed >> 33) % n;
}

/* The arena's own count of allocations; 0 in a build without jemalloc. */
static size_t arena_allocations(const kvk_cache *c)
{
#if KVK_HAVE_JEMALLOC
    static const char *const kinds[] = {"small", "large"};
    uint64_t epoch = 1, n, all = 0;
    size_t size = sizeof epoch;
    char name[64];
    mallctl("epoch", &epoch, &size, &epoch, size);
    for (int i = 0; i < 2; i++) {
        size = sizeof n;
        snprintf(name, sizeof name, "stats.arenas.%u.%s.nmalloc", c->memory->arena, kinds[i]);
        ck_assert_int_eq(mallctl(name, &n, &size, NULL, 0), 0);
        all += n;
    }
    return all;
#else
    (void)c;
    return 0;
#endif
}

/* A request with one of a few prompts, its prefix attached and the rest computed. */
static void admit(server *s, uint32_t i)
{
    uint32_t tokens[PROMPT], first = below(s, 8);
    for (uint32_t t = 0; t < PROMPT; t++)
        tokens[t] = t < PROMPT / 2 ? first + t : below(s, 1000);
    kvk_text prompt = {.n_tokens = PROMPT, .tokens = tokens};
    ck_assert_int_eq(kvk_seq_open(s->cache, NULL, &s->seqs[i]), 0);
    int hit = kvk_prefix_attach(s->cache, s->seqs[i], &prompt);
    kvk_text rest = {.n_tokens = PROMPT - (uint32_t)hit, .tokens = tokens + hit};
    ck_assert_int_ge(kvk_reserve(s->cache, s->seqs[i], rest.n_tokens, KVK_RECLAIM), 0);
    ck_assert_int_ge(kvk_commit(s->cache, s->seqs[i], &rest), 0);
}

/* One token for every sequence, three drafts for each of which one is accepted, and now and then a branch. */
static void step(server *s)
{
    kvk_batch_entry entries[RUNNING];
    uint32_t accepted[RUNNING], token = below(s, 1000);
    kvk_text text = {.n_tokens = 2, .tokens = (uint32_t[]){token, token}};
    kvk_batch batch;
    kvk_plan plan;
    kvk_plan_init(&plan);
    for (uint32_t i = 0; i < RUNNING; i++) {
        ck_assert_int_ge(kvk_reserve(s->cache, s->seqs[i], 4, KVK_RECLAIM), 0);
        entries[i] = (kvk_batch_entry){.seq = s->seqs[i], .n_query = 4};
        accepted[i] = 2;
    }
    ck_assert_int_eq(kvk_batch_plan(s->cache, entries, RUNNING, &plan, &batch), 0);
    kvk_batch_result result = {.size = sizeof result, .n = RUNNING, .accepted = accepted};
    ck_assert_int_ge(kvk_batch_end(s->cache, batch, &result), 0);
    for (uint32_t i = 0; i < RUNNING; i++)
        ck_assert_int_ge(kvk_commit(s->cache, s->seqs[i], &text), 0);
}

static void branch(server *s, uint32_t i)
{
    kvk_move moves[8];
    kvk_seq child;
    ck_assert_int_eq(kvk_seq_fork(s->cache, s->seqs[i], &child), 0);
    ck_assert_int_ge(kvk_reserve(s->cache, child, 1, KVK_RECLAIM), 0);
    ck_assert_int_ge(kvk_moves_take(s->cache, moves, 8), 0);
    ck_assert_int_ge(kvk_truncate(s->cache, child, 5), 0);
    ck_assert_int_ge(kvk_seq_close(s->cache, child), 0);
}

static void serve(server *s, uint32_t steps)
{
    for (uint32_t n = 0; n < steps; n++) {
        uint32_t i = n % RUNNING;
        step(s);
        branch(s, i);
        kvk_seq_close(s->cache, s->seqs[i]);
        admit(s, i);
    }
}

START_TEST(serving_allocates_nothing_once_warm)
{
    server s = {.seed = 5};
    kvk_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    kvk_config config;
    kvk_config_init(&config);
    config.n_pages = PAGES;
    config.page_tokens = PAGE;
    ck_assert_int_eq(kvk_cache_open(&config, &s.cache), 0);
    for (uint32_t i = 0; i < RUNNING; i++)
        admit(&s, i);
    serve(&s, 50 * RUNNING);
    kvk_stats_get(s.cache, &before);
    size_t arena = arena_allocations(s.cache);
    serve(&s, 200 * RUNNING);
    kvk_stats_get(s.cache, &after);
    ck_assert_uint_gt(after.pages_reclaimed, before.pages_reclaimed);
    ck_assert_uint_gt(after.prefix_hits, before.prefix_hits);
    ck_assert_uint_gt(after.cow_copies, before.cow_copies);
    ck_assert_uint_eq(after.memory_allocations, before.memory_allocations);
    ck_assert_uint_eq(after.memory_bytes, before.memory_bytes);
    ck_assert_uint_eq(arena_allocations(s.cache), arena);
    ck_assert_int_eq(kvk_audit(s.cache, NULL, NULL), 0);
    kvk_cache_close(s.cache);
}
END_TEST

/* ---- under policies */

static void set_policy(const server *s, uint32_t i)
{
    static const char *const choices[] = {"h2o:recent=32", "keep", "h2o:recent=32:exit=1", "keep:layers=0"};
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.budget = BUDGET;
    ck_assert_int_eq(kvk_policy_parse(choices[i % 4], NULL, &settings.choice, NULL, 0), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(s->cache, s->seqs[i], &settings), 0);
}

/* A sequence that goes on from a prompt of one of a few, under its policy. */
static void admit_evicting(server *s, uint32_t i)
{
    uint32_t tokens[BUDGET], first = below(s, 8);
    for (uint32_t t = 0; t < BUDGET; t++)
        tokens[t] = t < BUDGET / 2 ? first + t : below(s, 1000);
    kvk_text prompt = {.n_tokens = BUDGET, .tokens = tokens};
    ck_assert_int_eq(kvk_seq_open(s->cache, NULL, &s->seqs[i]), 0);
    set_policy(s, i);
    int hit = kvk_prefix_attach(s->cache, s->seqs[i], &prompt);
    kvk_text rest = {.n_tokens = BUDGET - (uint32_t)hit, .tokens = tokens + hit};
    ck_assert_int_ge(kvk_reserve(s->cache, s->seqs[i], rest.n_tokens, KVK_EVICT), 0);
    ck_assert_int_ge(kvk_commit(s->cache, s->seqs[i], &rest), 0);
}

/* Drafts of every sequence with a row of masses each, of which two are accepted. */
static void step_evicting(server *s)
{
    static float mean[GROUPS * PLACES], near[GROUPS * PLACES * CHANNELS];
    kvk_batch_entry entries[RUNNING];
    uint32_t accepted[RUNNING], rows[RUNNING], tokens[] = {below(s, 1000), 1};
    kvk_masses masses = {.size = sizeof masses, .stride = PLACES, .near_stride = PLACES * CHANNELS, .rows = rows};
    kvk_batch_result result = {.size = sizeof result, .n = RUNNING, .accepted = accepted, .masses = &masses};
    const kvk_text text = {.n_tokens = 2, .tokens = tokens};
    kvk_batch batch;
    kvk_plan plan;
    masses.mean = mean;
    masses.near = near;
    mean[below(s, GROUPS * PLACES)] = near[below(s, GROUPS * PLACES * CHANNELS)] = (float)below(s, 100) / 100;
    kvk_plan_init(&plan);
    for (uint32_t i = 0; i < RUNNING; i++) {
        ck_assert_int_ge(kvk_reserve(s->cache, s->seqs[i], DRAFTS, KVK_EVICT), 0);
        entries[i] = (kvk_batch_entry){.seq = s->seqs[i], .n_query = DRAFTS};
        rows[i] = DRAFTS;
        accepted[i] = 2;
    }
    ck_assert_int_eq(kvk_batch_plan(s->cache, entries, RUNNING, &plan, &batch), 0);
    ck_assert_int_ge(kvk_batch_end(s->cache, batch, &result), 0);
    for (uint32_t i = 0; i < RUNNING; i++)
        ck_assert_int_ge(kvk_commit(s->cache, s->seqs[i], &text), 0);
}

/* Each sequence lives for 96 steps: 192 tokens past its prompt, three times its budget in all. */
static void serve_evicting(server *s, uint32_t steps)
{
    for (uint32_t n = 0; n < steps; n++) {
        step_evicting(s);
        if (n % 4)
            continue;
        uint32_t i = n / 4 % RUNNING;
        branch(s, i);
        ck_assert_int_ge(kvk_seq_close(s->cache, s->seqs[i]), 0);
        admit_evicting(s, i);
    }
}

START_TEST(evicting_allocates_nothing_once_warm)
{
    static const kvk_group groups[GROUPS] = {{0, 1, CHANNELS}, {0, CHANNELS, 1}, {0, 0, 0}};
    server s = {.seed = 7};
    kvk_stats before = {.size = sizeof before}, after = {.size = sizeof after};
    kvk_config config;
    kvk_config_init(&config);
    config.n_groups = (uint32_t)_i;
    config.groups = groups;
    config.n_pages = PAGES * config.n_groups;
    config.page_tokens = PAGE;
    ck_assert_int_eq(kvk_cache_open(&config, &s.cache), 0);
    for (uint32_t i = 0; i < RUNNING; i++)
        admit_evicting(&s, i);
    serve_evicting(&s, 40 * RUNNING);
    kvk_stats_get(s.cache, &before);
    size_t arena = arena_allocations(s.cache);
    serve_evicting(&s, 80 * RUNNING);
    kvk_stats_get(s.cache, &after);
    ck_assert_uint_gt(after.pages_evicted, before.pages_evicted + 1000);
    ck_assert_uint_gt(after.prefix_hits, before.prefix_hits);
    ck_assert_uint_eq(after.memory_allocations, before.memory_allocations);
    ck_assert_uint_eq(after.memory_bytes, before.memory_bytes);
    ck_assert_uint_eq(arena_allocations(s.cache), arena);
    ck_assert_int_eq(kvk_audit(s.cache, NULL, NULL), 0);
    kvk_cache_close(s.cache);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("steady");
    tcase_add_test(t, serving_allocates_nothing_once_warm);
    tcase_add_loop_test(t, evicting_allocates_nothing_once_warm, 1, GROUPS + 1);
    return run_tests("steady", t);
}
