/* test_threads.c: caches of different threads never interfere. Run it under ThreadSanitizer. */
#include <check.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "kvkeep/eviction.h"
#include "run_tests.h"

enum { THREADS = 4, STEPS = 20000, SEQS = 6, PAGES = 48, PAGE_TOKENS = 4, PROMPT = 24, MASSES = 4 * PAGES };

typedef struct {
    kvk_content content;
    bool evicts; /* its sequences have policies */
    uint64_t random;
    kvk_cache *cache;
    kvk_seq seqs[SEQS];
    kvk_stats stats;   /* in the end */
    uint64_t checksum; /* of results: equal for equal seeds */
    int failed;        /* the first unexpected result; Check's assertions are for the main thread */
} worker;

static uint32_t draw(worker *w, uint32_t n)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w->random >> 33) % n;
}

static void note(worker *w, int rc)
{
    w->checksum = w->checksum * 31 + (uint64_t)(rc + 16);
}

static void must(worker *w, bool good, int rc)
{
    if (!good && !w->failed)
        w->failed = rc ? rc : 1;
    note(w, rc);
}

static kvk_text draw_text(worker *w, uint32_t n, uint32_t *tokens, kvk_key *keys)
{
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = draw(w, 2);
    for (uint32_t i = 0; i < n / PAGE_TOKENS; i++)
        keys[i] = (kvk_key){draw(w, 2), 0};
    kvk_text text = {.n_tokens = n, .tokens = tokens, .keys = keys};
    text.n_keys = w->content == KVK_CONTENT_KEYS ? n / PAGE_TOKENS : 0;
    return text;
}

static void set_policy(worker *w, kvk_seq seq)
{
    static const char *const choices[] = {"h2o:recent=8", "keep", "h2o:exit=1:recent=8", "scissorhands", "random"};
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.budget = 32;
    int rc = kvk_policy_parse(choices[draw(w, 5)], NULL, &settings.choice, NULL, 0);
    must(w, rc == 0, rc);
    rc = kvk_seq_set_eviction(w->cache, seq, &settings);
    must(w, rc == 0, rc);
}

static void restart(worker *w, kvk_seq *seq)
{
    uint32_t tokens[PROMPT];
    kvk_key keys[PROMPT];
    kvk_text text = draw_text(w, PROMPT, tokens, keys);
    if (*seq)
        must(w, kvk_seq_close(w->cache, *seq) >= 0, 0);
    must(w, kvk_seq_open(w->cache, NULL, seq) == 0, 0);
    if (w->evicts)
        set_policy(w, *seq);
    int hit = kvk_prefix_attach(w->cache, *seq, &text);
    must(w, hit >= 0, hit);
    uint32_t left = PROMPT - (uint32_t)hit;
    if (kvk_reserve(w->cache, *seq, left, KVK_FREE_ONLY) < 0)
        return;
    text.n_tokens = left;
    text.tokens += hit;
    text.keys += hit / PAGE_TOKENS;
    text.n_keys = w->content == KVK_CONTENT_KEYS ? left / PAGE_TOKENS : 0;
    int rc = kvk_commit(w->cache, *seq, &text);
    must(w, rc >= 0, rc);
}

/* A row for each of two drafts. */
static kvk_masses draw_masses(worker *w, float *values)
{
    static const uint32_t rows = 2;
    for (uint32_t i = 0; i < MASSES; i++)
        values[i] = (float)draw(w, 100) / 100;
    kvk_masses masses = {.size = sizeof masses, .stride = MASSES, .near_stride = MASSES, .rows = &rows};
    masses.mean = masses.peak = masses.near = values;
    return masses;
}

static void note_scores(worker *w, kvk_seq seq)
{
    kvk_page_score scores[PAGES];
    int n = kvk_seq_scores(w->cache, seq, 0, scores, PAGES);
    must(w, n >= 0, n);
    for (int i = 0; i < n; i++)
        note(w, (int)(1000 * scores[i].score) + (int)scores[i].page);
}

static void decode(worker *w, kvk_seq seq)
{
    int32_t pages[PAGES];
    const kvk_batch_entry entry = {.seq = seq, .n_query = 2};
    const uint32_t accepted = draw(w, 3);
    float values[MASSES];
    const kvk_masses masses = draw_masses(w, values);
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .accepted = &accepted, .masses = &masses};
    const kvk_effort effort = w->evicts ? KVK_EVICT : KVK_RECLAIM;
    kvk_batch batch;
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = PAGES;
    plan.slots_cap = 2;
    plan.pages = pages;
    note(w, kvk_can_reserve(w->cache, seq, 2, effort));
    if (kvk_reserve(w->cache, seq, 2, effort) < 0)
        return;
    int rc = kvk_batch_plan(w->cache, &entry, 1, &plan, &batch);
    must(w, rc == 0, rc);
    rc = kvk_batch_end(w->cache, batch, &result);
    must(w, rc >= 0, rc);
    note_scores(w, seq);
}

static void fork_over(worker *w, kvk_seq parent, kvk_seq *child)
{
    if (*child == parent)
        return;
    must(w, kvk_seq_close(w->cache, *child) >= 0, 0);
    int rc = kvk_seq_fork(w->cache, parent, child);
    must(w, rc == 0, rc);
}

static void shorten(worker *w, kvk_seq seq)
{
    kvk_seq_info info = {.size = sizeof info};
    kvk_move moves[8];
    must(w, kvk_seq_info_get(w->cache, seq, &info) == 0, 0);
    int rc = kvk_truncate(w->cache, seq, draw(w, info.n_tokens + 1));
    must(w, rc >= 0 || (w->evicts && rc == KVK_ESTATE), rc); /* the page that it would end in was evicted */
    must(w, kvk_moves_take(w->cache, moves, 8) >= 0, 0);
}

static void step(worker *w)
{
    kvk_seq *seq = &w->seqs[draw(w, SEQS)];
    switch (draw(w, 8)) {
    case 0:
        restart(w, seq);
        break;
    case 1:
        fork_over(w, *seq, &w->seqs[draw(w, SEQS)]);
        break;
    case 2:
        shorten(w, *seq);
        break;
    default:
        decode(w, *seq);
    }
}

static void *work(void *arg)
{
    static const kvk_group group = {.near_layers = 1, .near_heads = 2};
    worker *w = arg;
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = PAGE_TOKENS;
    config.n_pages = PAGES;
    config.content = w->content;
    config.zero_fill = 1;
    config.groups = w->evicts ? &group : NULL;
    must(w, kvk_cache_open(&config, &w->cache) == 0, 0);
    for (int i = 0; i < SEQS && !w->failed; i++)
        restart(w, &w->seqs[i]);
    for (int i = 0; i < STEPS && !w->failed; i++)
        step(w);
    int rc = kvk_audit(w->cache, NULL, NULL);
    must(w, rc == 0, rc);
    kvk_stats_get(w->cache, &w->stats);
    kvk_cache_close(w->cache);
    return NULL;
}

START_TEST(caches_of_different_threads_never_interfere)
{
    static const kvk_content contents[] = {KVK_CONTENT_TOKENS, KVK_CONTENT_KEYS, KVK_CONTENT_NONE};
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){
            .content = contents[_i], .evicts = i >= 2, .random = 1 + (uint64_t)i / 2, .stats.size = sizeof(kvk_stats)};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
        ck_assert_int_eq(workers[i].failed, 0);
        ck_assert_int_eq(workers[i].stats.pages_evicted > 1000, i >= 2);
    }
    for (int i = 0; i < THREADS; i += 2)
        ck_assert_uint_eq(workers[i].checksum, workers[i + 1].checksum);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, caches_of_different_threads_never_interfere, 0, 3);
    return run_tests("threads", tests);
}
