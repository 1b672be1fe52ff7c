/* test_oom.c: fails each allocation of a day in the life of a cache in turn.
 *
 * A day is a list of calls. It is lived again and again: in the k-th life the k-th allocation fails, until a life
 * needs fewer than k. The call that meets the failure must answer KVK_ENOMEM, change nothing, and work when made
 * again. */
#include "day.h"
#include "run_tests.h"

/* ---- All that can be seen of a cache ---- */

typedef struct {
    kvk_stats stats;
    kvk_page_info pages[PAGES];
    kvk_seq_info infos[SEQS];
    uint32_t tables[SEQS][2][PAGES];
    int firsts[SEQS][2];
    kvk_eviction_info evictions[SEQS];
    uint32_t positions[SEQS][2][PAGES];
    kvk_page_score scores[SEQS][2][PAGES];
    uint32_t n_events;
} view;

static void look_at_table(const day *d, view *v, int i, uint32_t g)
{
    kvk_seq seq = d->seqs[i];
    ck_assert_int_ge(kvk_seq_table(d->cache, seq, g, v->tables[i][g], PAGES), 0);
    ck_assert_int_ge(kvk_seq_positions(d->cache, seq, g, v->positions[i][g], PAGES), 0);
    ck_assert_int_ge(kvk_seq_scores(d->cache, seq, g, v->scores[i][g], PAGES), 0);
    v->firsts[i][g] = kvk_seq_first(d->cache, seq, g);
}

static void look(const day *d, view *v)
{
    memset(v, 0, sizeof *v);
    v->n_events = d->n_events;
    if (!d->cache)
        return;
    v->stats.size = sizeof v->stats;
    ck_assert_int_eq(kvk_stats_get(d->cache, &v->stats), 0);
    v->stats.memory_bytes = v->stats.peak_memory_bytes = v->stats.memory_allocations = 0;
    for (uint32_t i = 0; i < PAGES; i++) {
        v->pages[i].size = sizeof v->pages[i];
        if (kvk_page_info_get(d->cache, i, &v->pages[i]) < 0)
            v->pages[i].size = 0; /* beyond the end of a pool that shrank */
    }
    for (int i = 0; i < SEQS; i++) {
        v->infos[i].size = sizeof v->infos[i];
        if (kvk_seq_info_get(d->cache, d->seqs[i], &v->infos[i]) == KVK_ESTALE)
            continue;
        v->evictions[i].size = sizeof v->evictions[i];
        ck_assert_int_eq(kvk_eviction_info_get(d->cache, d->seqs[i], &v->evictions[i]), 0);
        for (uint32_t g = 0; g < d->config.n_groups && !v->infos[i].swapped; g++)
            look_at_table(d, v, i, g);
    }
}

/* ---- Living it ---- */

static void fails_cleanly(day *d, const schedule *plan, size_t i, const view *before)
{
    static view after;
    uint64_t fails_at = d->memory.fails_at;
    d->memory.fails_at = 0;
    look(d, &after);
    ck_assert_msg(memcmp(before, &after, sizeof after) == 0, "call %zu failed and changed something", i);
    if (d->cache)
        ck_assert_int_eq(kvk_audit(d->cache, NULL, NULL), 0);
    else
        ck_assert_uint_eq(d->memory.n_held, 0);
    int rc = plan->calls[i](d);
    ck_assert_msg(rc >= 0, "call %zu, made again, gives %d", i, rc);
    d->memory.fails_at = fails_at;
}

/* What kind of day: its calls, whether it is recorded, and whether it ends at the first failure. */
typedef struct {
    const schedule *plan;
    bool recorded, quits;
} manner;

/* Returns the allocations that it wanted. */
static uint64_t live(const kvk_config *config, manner how, uint64_t fails_at)
{
    static view before;
    static day d;
    d = (day){.memory.fails_at = fails_at, .config = *config, .recorded = how.recorded};
    d.allocator = (kvk_allocator){memory_take_block, memory_give_block, &d.memory};
    d.config.allocator = &d.allocator;
    for (uint32_t i = 0; i < PROMPT; i++)
        d.tokens[i] = i % 7;
    for (uint32_t i = 0; i < PROMPT / PAGE_TOKENS; i++)
        d.keys[i] = (kvk_key){i, i + 1};
    for (size_t i = 0; i < how.plan->n; i++) {
        look(&d, &before);
        int rc = how.plan->calls[i](&d);
        ck_assert_msg(rc >= 0 || (rc == KVK_ENOMEM && d.memory.n_made >= fails_at), "call %zu gives %d", i, rc);
        if (rc < 0 && how.quits)
            break;
        if (rc < 0)
            fails_cleanly(&d, how.plan, i, &before);
    }
    kvk_cache_close(d.cache);
    ck_assert_uint_eq(d.memory.n_held, 0);
    return d.memory.n_made;
}

static void live_all_days(const kvk_config *config, const schedule *plan, bool recorded)
{
    uint64_t n_lives = 0;
    for (uint64_t k = 1; live(config, (manner){plan, recorded, false}, k) >= k; k++) {
        live(config, (manner){plan, recorded, true}, k);
        n_lives++;
    }
    ck_assert_uint_gt(n_lives, 10);
}

static kvk_config small_cache(kvk_content content)
{
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = PAGE_TOKENS;
    config.n_pages = PAGES;
    config.content = content;
    config.host_pages = PAGES;
    return config;
}

START_TEST(each_allocation_may_fail_with_tokens)
{
    kvk_config config = small_cache(KVK_CONTENT_TOKENS);
    live_all_days(&config, &usual_day, false);
}
END_TEST

START_TEST(each_allocation_may_fail_with_keys_and_two_groups)
{
    kvk_config config = small_cache(KVK_CONTENT_KEYS);
    config.n_groups = 2;
    config.zero_fill = 1;
    live_all_days(&config, &usual_day, false);
}
END_TEST

START_TEST(each_allocation_may_fail_without_content)
{
    kvk_config config = small_cache(KVK_CONTENT_NONE);
    live_all_days(&config, &usual_day, false);
}
END_TEST

START_TEST(each_allocation_may_fail_with_a_window_and_copied_heads)
{
    static const kvk_group groups[] = {{.window = 20}, {.window = 0}};
    kvk_config config = small_cache(KVK_CONTENT_TOKENS);
    config.n_groups = 2;
    config.groups = groups;
    config.partial_reuse = 1;
    config.extra_keys = 1;
    config.reclaim = KVK_RECLAIM_S3FIFO;
    live_all_days(&config, &usual_day, false);
}
END_TEST

START_TEST(each_allocation_may_fail_while_pages_are_evicted)
{
    static const kvk_group groups[] = {{.near_layers = 1, .near_heads = 2}, {20, 2, 1}};
    kvk_config config = small_cache(KVK_CONTENT_TOKENS);
    config.n_groups = 2;
    config.groups = groups;
    live_all_days(&config, &evicting_day, false);
}
END_TEST

START_TEST(each_allocation_may_fail_while_pages_are_evicted_in_one_group)
{
    kvk_config config = small_cache((kvk_content)_i);
    live_all_days(&config, &evicting_day, false);
}
END_TEST

START_TEST(each_allocation_may_fail_while_eviction_is_recorded)
{
    static const kvk_group group = {.near_layers = 2, .near_heads = 1};
    kvk_config config = small_cache(KVK_CONTENT_TOKENS);
    config.groups = &group;
    live_all_days(&config, &evicting_day, true);
}
END_TEST

START_TEST(each_allocation_may_fail_while_recording)
{
    kvk_config config = small_cache(KVK_CONTENT_TOKENS);
    live_all_days(&config, &usual_day, true);
}
END_TEST

/* The pool's arrays grow one after the other: one that grew before a failure must not lead the others to be left
 * behind.
 */
START_TEST(a_pool_that_grew_in_part_still_takes_every_page_back)
{
    static const uint32_t growth[] = {1976, 1, 1999};
    memory m = {0};
    const kvk_allocator allocator = {memory_take_block, memory_give_block, &m};
    kvk_cache *cache;
    kvk_seq seq;
    kvk_config config = small_cache(KVK_CONTENT_NONE);
    config.n_pages = 10000;
    config.page_tokens = 1;
    config.allocator = &allocator;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &seq), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 1024, KVK_RECLAIM), 1024);
    uint32_t held = 1024;
    m.fails_at = (uint64_t)_i;
    int rc = kvk_reserve(cache, seq, held + 1, KVK_RECLAIM);
    m.fails_at = 0;
    ck_assert_msg(rc == 1 || rc == KVK_ENOMEM, "reserve gives %d", rc);
    held += rc == 1;
    for (size_t i = 0; i < sizeof growth / sizeof growth[0]; i++) {
        ck_assert_int_eq(kvk_reserve(cache, seq, held + growth[i], KVK_RECLAIM), growth[i]);
        held += growth[i];
    }
    ck_assert_int_eq(kvk_seq_close(cache, seq), held);
    ck_assert_int_eq(kvk_audit(cache, NULL, NULL), 0);
    kvk_cache_close(cache);
    ck_assert_uint_eq(m.n_held, 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("each allocation in turn");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, each_allocation_may_fail_with_tokens);
    tcase_add_test(tests, each_allocation_may_fail_with_keys_and_two_groups);
    tcase_add_test(tests, each_allocation_may_fail_without_content);
    tcase_add_test(tests, each_allocation_may_fail_with_a_window_and_copied_heads);
    tcase_add_test(tests, each_allocation_may_fail_while_recording);
    tcase_add_test(tests, each_allocation_may_fail_while_pages_are_evicted);
    tcase_add_loop_test(tests, each_allocation_may_fail_while_pages_are_evicted_in_one_group, 0, 3);
    tcase_add_test(tests, each_allocation_may_fail_while_eviction_is_recorded);
    tcase_add_loop_test(tests, a_pool_that_grew_in_part_still_takes_every_page_back, 1, 5);
    return run_tests("oom", tests);
}
