/* Saving and loading a state: what comes back is what was, and nothing that was made up gets in. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "kvkeep/kvkeep.h"
#include "run_tests.h"
#include "saved.h"

enum { PAGE = 4, PAGES = 24, SEQS = 6, HOST = 12 };

/* ---- a cache that has lived */

typedef struct life {
    kvk_cache *cache;
    kvk_seq seqs[SEQS];
    uint64_t random;
} life;

static uint32_t below(life *l, uint32_t n)
{
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(l->random >> 33) % n;
}

static kvk_cache *new_cache(int kind)
{
    static const kvk_group windows[] = {{.window = 0}, {.window = 6}};
    kvk_config config;
    kvk_cache *c;
    kvk_config_init(&config);
    config.page_tokens = PAGE;
    config.n_pages = PAGES;
    config.host_pages = HOST;
    config.reclaim = (uint32_t)kind % 3;
    config.n_groups = kind % 2 ? 2 : 1;
    config.groups = kind % 2 ? windows : NULL;
    config.content = kind == 5 ? KVK_CONTENT_NONE : KVK_CONTENT_TOKENS;
    ck_assert_int_eq(kvk_cache_open(&config, &c), 0);
    return c;
}

static int open_and_fill(life *l, kvk_seq *seq)
{
    uint32_t tokens[20], n = 1 + below(l, 20);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = below(l, 2);
    kvk_text prompt = {.n_tokens = n, .tokens = tokens};
    kvk_retention range = {.begin = 0, .end = 1 + below(l, 8), .priority = below(l, 101), .duration_ms = below(l, 50)};
    kvk_seq_open(l->cache, NULL, seq);
    kvk_retain(l->cache, *seq, &range, below(l, 2));
    int hit = kvk_prefix_attach(l->cache, *seq, &prompt);
    kvk_text rest = {.n_tokens = n - (uint32_t)hit, .tokens = tokens + hit};
    return kvk_reserve(l->cache, *seq, rest.n_tokens, KVK_RECLAIM) < 0 ? -1 : kvk_commit(l->cache, *seq, &rest);
}

/* One call of many; returns what it gave, so that two lives can be compared. */
static int64_t live_on(life *l)
{
    kvk_seq *seq = &l->seqs[below(l, SEQS)], child = 0;
    kvk_move moves[64];
    switch (below(l, 9)) {
    case 0:
        return kvk_seq_close(l->cache, *seq);
    case 1:
        return kvk_truncate(l->cache, *seq, below(l, 12));
    case 2:
        return kvk_preempt(l->cache, *seq, below(l, 2) ? KVK_PREEMPT_SWAP : KVK_PREEMPT_RECOMPUTE);
    case 3:
        return kvk_swap_in(l->cache, *seq, KVK_RECLAIM);
    case 4:
        return below(l, 2) ? kvk_pin(l->cache, *seq, 4 * below(l, 3)) : kvk_unpin(l->cache, *seq, 4 * below(l, 3));
    case 5:
        if (kvk_seq_fork(l->cache, *seq, &child) < 0)
            return -1;
        return kvk_seq_close(l->cache, child) + kvk_reserve(l->cache, *seq, 1, KVK_RECLAIM);
    case 6:
        return kvk_moves_take(l->cache, moves, 64);
    default:
        kvk_seq_close(l->cache, *seq);
        return open_and_fill(l, seq);
    }
}

static life lived(int kind, uint32_t calls, uint64_t seed)
{
    kvk_move moves[64];
    life l = {.cache = new_cache(kind), .random = seed};
    for (uint32_t i = 0; i < calls; i++)
        live_on(&l);
    kvk_set_time(l.cache, 10);
    while (kvk_moves_take(l.cache, moves, 64) > 0)
        ;
    return l;
}

/* ---- */

START_TEST(a_loaded_cache_lives_on_as_the_saved_one)
{
    for (uint32_t calls = 0; calls < 200; calls += 7) {
        life a = lived(_i, calls, calls + 1), b = a;
        bytes state = saved_state(a.cache);
        b.cache = new_cache(_i);
        ck_assert_int_eq(saved_load(b.cache, &state), 0);
        bytes again = saved_state(b.cache);
        if (_i % 3 != KVK_RECLAIM_LFU) /* which numbers its releases anew */
            saved_same(&state, &again);
        for (int i = 0; i < 300; i++) {
            ck_assert_int_eq(live_on(&a), live_on(&b));
            ck_assert_int_eq(kvk_audit(b.cache, NULL, NULL), 0);
        }
        free(state.data);
        free(again.data);
        kvk_cache_close(a.cache);
        kvk_cache_close(b.cache);
    }
}
END_TEST

/* Damage is seen by the checksum, wherever it is, and the old state stays. */
START_TEST(damaged_bytes_are_refused_and_change_nothing)
{
    life a = lived(_i, 60, 3), b = lived(_i, 45, 8);
    bytes state = saved_state(a.cache), before = saved_state(b.cache);
    for (size_t i = 0; i < state.n; i++) {
        bytes cut = {.data = state.data, .n = i};
        ck_assert_int_eq(saved_load(b.cache, &cut), KVK_EFORMAT);
        state.data[i] ^= 0x10;
        ck_assert_int_eq(saved_load(b.cache, &state), KVK_EFORMAT);
        state.data[i] ^= 0x10;
    }
    bytes after = saved_state(b.cache);
    saved_same(&before, &after);
    ck_assert_int_eq(saved_load(b.cache, &state), 0);
    free(state.data);
    free(before.data);
    free(after.data);
    kvk_cache_close(a.cache);
    kvk_cache_close(b.cache);
}
END_TEST

/* With its checksum put right a forged state is either consistent or refused; neither harms. */
START_TEST(forged_states_are_consistent_or_refused)
{
    life a = lived(_i, 60, 5);
    kvk_cache *b = new_cache(_i);
    bytes state = saved_state(a.cache);
    unsigned char *forged = malloc(state.n);
    static const unsigned char masks[] = {0x01, 0x80, 0xFF};
    for (size_t i = 0; i < 3 * (state.n - 8); i++) {
        memcpy(forged, state.data, state.n);
        forged[i / 3] ^= masks[i % 3];
        bytes f = {.data = forged, .n = state.n};
        saved_seal(&f);
        int rc = saved_load(b, &f);
        ck_assert_msg(rc == 0 || rc == KVK_EFORMAT || rc == KVK_ENOMEM, "byte %zu gives %d", i / 3, rc);
        ck_assert_int_eq(kvk_audit(b, NULL, NULL), 0);
    }
    free(forged);
    free(state.data);
    kvk_cache_close(a.cache);
    kvk_cache_close(b);
}
END_TEST

START_TEST(a_state_of_another_shape_is_refused)
{
    life a = lived(0, 30, 1);
    bytes state = saved_state(a.cache);
    for (int kind = 1; kind < 6; kind += 2) {
        kvk_cache *b = new_cache(kind);
        ck_assert_int_eq(saved_load(b, &state), KVK_EFORMAT);
        kvk_cache_close(b);
    }
    free(state.data);
    kvk_cache_close(a.cache);
}
END_TEST

START_TEST(only_a_quiet_cache_is_saved_or_loaded)
{
    life a = lived(0, 30, 1);
    bytes state = saved_state(a.cache), none = {.data = malloc(SAVED_MOST), .fails_at = 100};
    ck_assert_int_eq(kvk_save(a.cache, saved_put, &none), KVK_EIO);
    ck_assert_int_eq(kvk_load(a.cache, saved_refuse, NULL), KVK_EIO);
    ck_assert_int_eq(kvk_save(a.cache, NULL, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_load(NULL, saved_get, &state), KVK_EINVAL);
    kvk_plan plan;
    kvk_batch batch;
    kvk_plan_init(&plan);
    ck_assert_int_eq(kvk_batch_plan(a.cache, NULL, 0, &plan, &batch), 0);
    ck_assert_int_eq(kvk_save(a.cache, saved_put, &state), KVK_EBUSY);
    ck_assert_int_eq(saved_load(a.cache, &state), KVK_EBUSY);
    ck_assert_int_eq(kvk_batch_end(a.cache, batch, NULL), 0);
    ck_assert_int_eq(saved_load(a.cache, &state), 0);
    free(state.data);
    free(none.data);
    kvk_cache_close(a.cache);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("state");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_loaded_cache_lives_on_as_the_saved_one, 0, 6);
    tcase_add_loop_test(t, damaged_bytes_are_refused_and_change_nothing, 0, 6);
    tcase_add_loop_test(t, forged_states_are_consistent_or_refused, 0, 6);
    tcase_add_test(t, a_state_of_another_shape_is_refused);
    tcase_add_test(t, only_a_quiet_cache_is_saved_or_loaded);
    return run_tests("state", t);
}
