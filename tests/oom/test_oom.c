/* test_oom.c: fails each allocation of a day in the life of a cache in turn.
 *
 * The day is a list of calls. It is lived again and again: in the k-th life the k-th allocation fails, until a life
 * needs fewer than k. The call that meets the failure must answer KVK_ENOMEM, change nothing, and work when made
 * again. */
#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "kvkeep/kvkeep.h"

enum { PAGE_TOKENS = 4, PAGES = 24, SEQS = 12, PROMPT = 30, BLOCK_HEAD = 16 };

/* ---- An allocator that counts, checks sizes, and fails once ---- */

typedef struct {
    uint64_t n_made, fails_at; /* 0: never */
    size_t n_held;             /* bytes */
} memory;

static void *take(void *ctx, size_t bytes)
{
    memory *m = ctx;
    if (m->fails_at && ++m->n_made >= m->fails_at && m->n_made < m->fails_at + 2)
        return NULL; /* twice, since the library asks again for less */
    char *block = malloc(BLOCK_HEAD + bytes);
    ck_assert_ptr_nonnull(block);
    memcpy(block, &bytes, sizeof bytes);
    m->n_held += bytes;
    return block + BLOCK_HEAD;
}

static void give(void *ctx, void *block, size_t bytes)
{
    memory *m = ctx;
    size_t taken;
    char *start = (char *)block - BLOCK_HEAD;
    memcpy(&taken, start, sizeof taken);
    ck_assert_msg(taken == bytes, "%zu bytes taken, %zu given back", taken, bytes);
    m->n_held -= bytes;
    free(start);
}

/* ---- The day ---- */

typedef struct {
    memory memory;
    kvk_config config;
    kvk_allocator allocator;
    bool recorded;
    kvk_cache *cache;
    kvk_seq seqs[SEQS];
    kvk_batch batches[2];
    uint32_t tokens[PROMPT];
    kvk_key keys[PROMPT / PAGE_TOKENS];
} day;

/* The first tokens of the prompt, or all those after the first `from`. */
static kvk_text prompt(const day *d, uint32_t from, uint32_t to)
{
    kvk_text text = {.n_tokens = to - from};
    if (d->config.content == KVK_CONTENT_TOKENS)
        text.tokens = d->tokens + from;
    if (d->config.content == KVK_CONTENT_KEYS) {
        text.keys = d->keys + from / PAGE_TOKENS;
        text.n_keys = to / PAGE_TOKENS - from / PAGE_TOKENS;
    }
    return text;
}

static int ignore_bytes(void *ctx, const char *bytes, size_t n)
{
    (void)ctx, (void)bytes, (void)n;
    return 0;
}

static int opens_the_cache(day *d)
{
    return kvk_cache_open(&d->config, &d->cache);
}

static int starts_recording(day *d)
{
    return d->recorded ? kvk_record_start(d->cache, ignore_bytes, NULL) : 0;
}

static int open_seq(day *d, int i)
{
    return kvk_seq_open(d->cache, NULL, &d->seqs[i]);
}

static int opens_the_first(day *d)
{
    return open_seq(d, 0);
}

static int attaches_nothing(day *d)
{
    kvk_text text = prompt(d, 0, PROMPT);
    return kvk_prefix_attach(d->cache, d->seqs[0], &text);
}

static int reserves_the_prompt(day *d)
{
    return kvk_reserve(d->cache, d->seqs[0], PROMPT, KVK_FREE_ONLY);
}

static int commits_the_prompt(day *d)
{
    kvk_text text = prompt(d, 0, PROMPT);
    return kvk_commit(d->cache, d->seqs[0], &text);
}

static int forks_it(day *d)
{
    return kvk_seq_fork(d->cache, d->seqs[0], &d->seqs[1]);
}

static int copies_on_write(day *d)
{
    return kvk_reserve(d->cache, d->seqs[1], 3, KVK_RECLAIM);
}

static int plan(day *d, kvk_batch_entry entry, kvk_batch *out)
{
    int32_t pages[PAGES];
    int64_t slots[PAGES];
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = plan.slots_cap = PAGES;
    plan.pages = d->config.n_groups == 1 ? pages : NULL;
    plan.slots = d->config.n_groups == 1 ? slots : NULL;
    return kvk_batch_plan(d->cache, &entry, 1, &plan, out);
}

static int plans_the_child(day *d)
{
    return plan(d, (kvk_batch_entry){.seq = d->seqs[1], .n_query = 3}, &d->batches[0]);
}

static int plans_the_parent(day *d)
{
    return plan(d, (kvk_batch_entry){.seq = d->seqs[0], .n_query = 0}, &d->batches[1]);
}

static int closes_the_parent(day *d)
{
    return kvk_seq_close(d->cache, d->seqs[0]);
}

static int ends_the_child(day *d)
{
    const uint32_t accepted = 1;
    const kvk_batch_result result = {sizeof result, 1, &accepted};
    return kvk_batch_end(d->cache, d->batches[0], &result);
}

static int ends_the_parent(day *d)
{
    return kvk_batch_end(d->cache, d->batches[1], NULL);
}

static int truncates_the_child(day *d)
{
    return kvk_truncate(d->cache, d->seqs[1], PROMPT - 5);
}

static int grows_the_child(day *d)
{
    return kvk_reserve(d->cache, d->seqs[1], 6, KVK_EVICT);
}

static int commits_the_child(day *d)
{
    kvk_text text = prompt(d, PROMPT - 5, PROMPT);
    return kvk_commit(d->cache, d->seqs[1], &text);
}

static int opens_another(day *d)
{
    int i = 2;
    while (d->seqs[i])
        i++;
    return open_seq(d, i);
}

static int attaches_what_is_there(day *d)
{
    kvk_text text = prompt(d, 0, PROMPT);
    return kvk_prefix_attach(d->cache, d->seqs[2], &text);
}

static int looks_up(day *d)
{
    kvk_text text = prompt(d, 0, PROMPT);
    return kvk_prefix_lookup(d->cache, NULL, &text);
}

static int takes_moves(day *d)
{
    kvk_move moves[4];
    return kvk_moves_take(d->cache, moves, 4);
}

static int sets_a_priority(day *d)
{
    return kvk_seq_set_priority(d->cache, d->seqs[2], 7);
}

static int can_reserve(day *d)
{
    return kvk_can_reserve(d->cache, d->seqs[2], 9, KVK_RECLAIM);
}

static int audits(day *d)
{
    return kvk_audit(d->cache, NULL, NULL);
}

static int stops_recording(day *d)
{
    return d->recorded ? kvk_record_stop(d->cache) : 0;
}

static int (*const calls[])(day *d) = {
    opens_the_cache,
    starts_recording,
    opens_the_first,
    attaches_nothing,
    reserves_the_prompt,
    commits_the_prompt,
    forks_it,
    copies_on_write,
    plans_the_child,
    plans_the_parent,
    closes_the_parent,
    ends_the_child,
    ends_the_parent,
    takes_moves,
    truncates_the_child,
    grows_the_child,
    commits_the_child,
    opens_another,
    attaches_what_is_there,
    looks_up,
    sets_a_priority,
    can_reserve,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    audits,
    stops_recording,
};

/* ---- All that can be seen of a cache ---- */

typedef struct {
    kvk_stats stats;
    kvk_page_info pages[PAGES];
    kvk_seq_info infos[SEQS];
    uint32_t tables[SEQS][2][PAGES];
} view;

static void look(const day *d, view *v)
{
    memset(v, 0, sizeof *v);
    if (!d->cache)
        return;
    v->stats.size = sizeof v->stats;
    ck_assert_int_eq(kvk_stats_get(d->cache, &v->stats), 0);
    v->stats.memory_bytes = v->stats.peak_memory_bytes = v->stats.memory_allocations = 0;
    for (uint32_t i = 0; i < PAGES; i++) {
        v->pages[i].size = sizeof v->pages[i];
        ck_assert_int_eq(kvk_page_info_get(d->cache, i, &v->pages[i]), 0);
    }
    for (int i = 0; i < SEQS; i++) {
        v->infos[i].size = sizeof v->infos[i];
        if (kvk_seq_info_get(d->cache, d->seqs[i], &v->infos[i]) == KVK_ESTALE)
            continue;
        for (uint32_t g = 0; g < d->config.n_groups; g++)
            ck_assert_int_ge(kvk_seq_table(d->cache, d->seqs[i], g, v->tables[i][g], PAGES), 0);
    }
}

/* ---- Living it ---- */

static void fails_cleanly(day *d, size_t i, const view *before)
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
    int rc = calls[i](d);
    ck_assert_msg(rc >= 0, "call %zu, made again, gives %d", i, rc);
    d->memory.fails_at = fails_at;
}

/* What kind of day: whether it is recorded, and whether it ends at the first failure. */
typedef struct {
    bool recorded, quits;
} manner;

/* Returns the allocations that it wanted. */
static uint64_t live(const kvk_config *config, manner how, uint64_t fails_at)
{
    static view before;
    day d = {.memory.fails_at = fails_at, .config = *config, .recorded = how.recorded};
    d.allocator = (kvk_allocator){take, give, &d.memory};
    d.config.allocator = &d.allocator;
    for (uint32_t i = 0; i < PROMPT; i++)
        d.tokens[i] = i % 7;
    for (uint32_t i = 0; i < PROMPT / PAGE_TOKENS; i++)
        d.keys[i] = (kvk_key){i, i + 1};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        look(&d, &before);
        int rc = calls[i](&d);
        ck_assert_msg(rc >= 0 || (rc == KVK_ENOMEM && d.memory.n_made >= fails_at), "call %zu gives %d", i, rc);
        if (rc < 0 && how.quits)
            break;
        if (rc < 0)
            fails_cleanly(&d, i, &before);
    }
    kvk_cache_close(d.cache);
    ck_assert_uint_eq(d.memory.n_held, 0);
    return d.memory.n_made;
}

static void live_all_days(const kvk_config *config, bool recorded)
{
    uint64_t n_lives = 0;
    for (uint64_t k = 1; live(config, (manner){recorded, false}, k) >= k; k++) {
        live(config, (manner){recorded, true}, k);
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
    return config;
}

START_TEST(each_allocation_may_fail_with_tokens)
{
    kvk_config config = small_cache(KVK_CONTENT_TOKENS);
    live_all_days(&config, false);
}
END_TEST

START_TEST(each_allocation_may_fail_with_keys_and_two_groups)
{
    kvk_config config = small_cache(KVK_CONTENT_KEYS);
    config.n_groups = 2;
    config.zero_fill = 1;
    live_all_days(&config, false);
}
END_TEST

START_TEST(each_allocation_may_fail_without_content)
{
    kvk_config config = small_cache(KVK_CONTENT_NONE);
    live_all_days(&config, false);
}
END_TEST

START_TEST(each_allocation_may_fail_while_recording)
{
    kvk_config config = small_cache(KVK_CONTENT_TOKENS);
    live_all_days(&config, true);
}
END_TEST

/* The pool's arrays grow one after the other: one that grew before a failure must not lead the others to be left
 * behind.
 */
START_TEST(a_pool_that_grew_in_part_still_takes_every_page_back)
{
    static const uint32_t growth[] = {1976, 1, 1999};
    memory m = {0};
    const kvk_allocator allocator = {take, give, &m};
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
    Suite *suite = suite_create("oom");
    TCase *tests = tcase_create("each allocation in turn");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, each_allocation_may_fail_with_tokens);
    tcase_add_test(tests, each_allocation_may_fail_with_keys_and_two_groups);
    tcase_add_test(tests, each_allocation_may_fail_without_content);
    tcase_add_test(tests, each_allocation_may_fail_while_recording);
    tcase_add_loop_test(tests, a_pool_that_grew_in_part_still_takes_every_page_back, 1, 5);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
