/* Saving and loading a cache that evicts: the loaded one goes on as the saved one, whatever the policy keeps. */
#include <stdlib.h>
#include <string.h>

#include "kvkeep/eviction.h"
#include "run_tests.h"
#include "saved.h"

enum { PAGE = 4, PAGES = 40, HOST = 24, GROUPS = 3, SEQS = 4, MOST_TOKENS = 120, TABLE = 64, DRAFTS = 6 };
enum { LAYERS = 2, HEADS = 3, MASSES = TABLE * DRAFTS, NEAR = MASSES * LAYERS * HEADS };

static const char *const choices[] = {
    "h2o:sinks=4:recent=8",
    "h2o:sinks=4:recent=8:exit=1:threshold=0.3",
    "keep:half_life=16",
    "keep:importance=2:recent_share=0.25",
    "keep:layers=0:reserve=0.5",
    "scissorhands:history=37",
    "snapkv:window=8:kernel=9",
    "tova",
    "lru:sinks=4",
    "streaming:sinks=4:recent=16",
    "window:tokens=16",
    "random:recent=8:seed=3",
    "full",
};

enum { N_CHOICES = sizeof choices / sizeof *choices };

typedef struct life {
    kvk_cache *cache;
    const char *choice;
    kvk_seq seqs[SEQS];
    uint64_t random;
} life;

static uint32_t below(life *l, uint32_t n)
{
    l->random = l->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(l->random >> 33) % n;
}

static kvk_cache *new_cache(uint16_t near_layers)
{
    const kvk_group groups[GROUPS] = {
        {0, near_layers, near_layers ? HEADS : 0}, {.window = 30}, {0, near_layers, near_layers ? HEADS : 0}};
    kvk_config config;
    kvk_cache *c;
    kvk_config_init(&config);
    config.page_tokens = PAGE;
    config.n_pages = PAGES * GROUPS;
    config.host_pages = HOST * GROUPS;
    config.n_groups = GROUPS;
    config.groups = groups;
    ck_assert_int_eq(kvk_cache_open(&config, &c), 0);
    return c;
}

/* ---- one call of many; each returns what it gave */

static int set_policy(life *l, kvk_seq seq)
{
    const uint32_t budgets[GROUPS] = {24, 40, 0};
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    ck_assert_int_eq(kvk_policy_parse(l->choice, NULL, &settings.choice, NULL, 0), 0);
    settings.budget = 32 + 8 * below(l, 3);
    settings.slope = below(l, 2) ? 0.25f : 0;
    settings.budgets = below(l, 3) ? NULL : budgets;
    settings.slack = below(l, 2);
    settings.floor = 8 * below(l, 3);
    settings.n_prompt = below(l, 2) ? 24 : 0;
    settings.target = settings.choice.policy->score_is_mass && below(l, 3) == 0 ? 0.9f : 0;
    return kvk_seq_set_eviction(l->cache, seq, below(l, 9) ? &settings : NULL);
}

static int64_t open_and_fill(life *l, kvk_seq *seq)
{
    uint32_t tokens[40], n = 8 + below(l, 32);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = i < 16 ? below(l, 2) : i;
    kvk_text prompt = {.n_tokens = n, .tokens = tokens};
    kvk_seq_close(l->cache, *seq);
    ck_assert_int_eq(kvk_seq_open(l->cache, NULL, seq), 0);
    int set = set_policy(l, *seq), hit = kvk_prefix_attach(l->cache, *seq, &prompt);
    kvk_text rest = {.n_tokens = n - (uint32_t)hit, .tokens = tokens + hit};
    if (kvk_reserve(l->cache, *seq, rest.n_tokens, KVK_EVICT) < 0)
        return -1;
    return 1000 * set + 10 * hit + kvk_commit(l->cache, *seq, &rest);
}

/* Masses of whatever the batch lists: the same for lives that drew the same numbers. */
static int end(life *l, kvk_batch batch, uint32_t rows, uint32_t accepted)
{
    static float mean[GROUPS * MASSES], peak[GROUPS * MASSES], near[GROUPS * NEAR];
    for (uint32_t i = 0; i < GROUPS * MASSES; i++)
        mean[i] = peak[i] = (float)below(l, 100) / 400;
    for (uint32_t i = 0; i < GROUPS * NEAR; i++)
        near[i] = (float)below(l, 100) / 100;
    kvk_masses masses = {.size = sizeof masses, .stride = MASSES, .near_stride = NEAR, .rows = &rows};
    masses.mean = mean;
    masses.peak = peak;
    masses.near = near;
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .accepted = &accepted, .masses = &masses};
    return kvk_batch_end(l->cache, batch, &result);
}

/* A token, a chunk or drafts. */
static int64_t decode(life *l, kvk_seq seq)
{
    uint32_t tokens[DRAFTS], n = 1 + below(l, DRAFTS), rows = below(l, 2) ? 1 : n;
    uint32_t accepted = rows == 1 ? n : below(l, n + 1);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = below(l, 3);
    const kvk_batch_entry entry = {.seq = seq, .n_query = n};
    kvk_seq_info info = {.size = sizeof info};
    kvk_batch batch;
    kvk_plan plan;
    kvk_plan_init(&plan);
    if (kvk_seq_info_get(l->cache, seq, &info) < 0 || info.n_tokens + n > MOST_TOKENS)
        return -1;
    int64_t took = kvk_reserve(l->cache, seq, n, below(l, 2) ? KVK_EVICT : KVK_RECLAIM);
    if (took < 0 || kvk_batch_plan(l->cache, &entry, 1, &plan, &batch) < 0)
        return took;
    ck_assert_int_ge(end(l, batch, rows, accepted), 0);
    kvk_text text = {.n_tokens = accepted, .tokens = tokens};
    return 100 * took + kvk_commit(l->cache, seq, &text);
}

static int evict_one(life *l, kvk_seq seq)
{
    uint32_t positions[TABLE], group = below(l, GROUPS), pick = below(l, TABLE);
    int n = kvk_seq_positions(l->cache, seq, group, positions, TABLE);
    return n > 0 ? kvk_evict(l->cache, seq, group, &positions[pick % (uint32_t)n], 1) : n;
}

static int64_t fork_over(life *l, kvk_seq parent, kvk_seq *over)
{
    kvk_seq child;
    int rc = kvk_seq_fork(l->cache, parent, &child);
    if (rc < 0)
        return rc;
    kvk_seq_close(l->cache, *over);
    *over = child;
    return (int64_t)child;
}

static int64_t live_on(life *l)
{
    kvk_seq *seq = &l->seqs[below(l, SEQS)], *other = &l->seqs[below(l, SEQS)];
    kvk_move moves[TABLE];
    switch (below(l, 24)) {
    case 0:
        return open_and_fill(l, seq);
    case 1:
        return fork_over(l, *seq, other);
    case 2:
        return kvk_truncate(l->cache, *seq, below(l, 80));
    case 3:
        return kvk_preempt(l->cache, *seq, below(l, 4) ? KVK_PREEMPT_SWAP : KVK_PREEMPT_RECOMPUTE);
    case 4:
    case 5:
        return kvk_swap_in(l->cache, *seq, KVK_EVICT);
    case 6:
        return evict_one(l, *seq);
    case 7:
        return set_policy(l, *seq);
    case 8:
        return kvk_moves_take(l->cache, moves, TABLE);
    default:
        return decode(l, *seq);
    }
}

static life lived(const char *choice, uint32_t calls, uint64_t seed)
{
    kvk_move moves[TABLE];
    life l = {.cache = new_cache(LAYERS), .choice = choice, .random = seed};
    for (int i = 0; i < SEQS; i++)
        open_and_fill(&l, &l.seqs[i]);
    for (uint32_t i = 0; i < calls; i++)
        live_on(&l);
    while (kvk_moves_take(l.cache, moves, TABLE) > 0)
        ;
    return l;
}

/* ---- all that can be seen of a sequence */

typedef struct view {
    kvk_seq_info info;
    kvk_eviction_info eviction;
    int n[GROUPS];
    uint32_t pages[GROUPS][TABLE], positions[GROUPS][TABLE];
    kvk_page_score scores[GROUPS][TABLE];
} view;

static void look(const life *l, kvk_seq seq, view *v)
{
    memset(v, 0, sizeof *v);
    v->info.size = sizeof v->info;
    v->eviction.size = sizeof v->eviction;
    kvk_seq_info_get(l->cache, seq, &v->info);
    kvk_eviction_info_get(l->cache, seq, &v->eviction);
    for (uint32_t g = 0; g < GROUPS; g++) {
        v->n[g] = kvk_seq_table(l->cache, seq, g, v->pages[g], TABLE);
        kvk_seq_positions(l->cache, seq, g, v->positions[g], TABLE);
        kvk_seq_scores(l->cache, seq, g, v->scores[g], TABLE);
    }
}

static void must_look_alike(const life *a, const life *b)
{
    static view left, right;
    kvk_stats of_a = {.size = sizeof of_a}, of_b = {.size = sizeof of_b};
    for (int i = 0; i < SEQS; i++) {
        look(a, a->seqs[i], &left);
        look(b, b->seqs[i], &right);
        ck_assert_int_eq(memcmp(&left, &right, sizeof left), 0);
    }
    kvk_stats_get(a->cache, &of_a);
    kvk_stats_get(b->cache, &of_b);
    ck_assert_uint_eq(of_a.pages_evicted, of_b.pages_evicted);
    ck_assert_uint_eq(of_a.tokens_evicted, of_b.tokens_evicted);
}

/* ---- */

START_TEST(a_loaded_cache_evicts_as_the_saved_one)
{
    uint64_t evicted = 0;
    for (uint32_t calls = 0; calls < 330; calls += 22) {
        life a = lived(choices[_i], calls, calls + 1), b = a;
        bytes state = saved_state(a.cache);
        b.cache = new_cache(LAYERS);
        ck_assert_int_eq(saved_load(b.cache, &state), 0);
        bytes again = saved_state(b.cache);
        saved_same(&state, &again);
        must_look_alike(&a, &b);
        for (int i = 0; i < 200; i++) {
            ck_assert_int_eq(live_on(&a), live_on(&b));
            must_look_alike(&a, &b);
            ck_assert_int_eq(kvk_audit(b.cache, NULL, NULL), 0);
        }
        kvk_stats stats = {.size = sizeof stats};
        kvk_stats_get(b.cache, &stats);
        evicted += stats.pages_evicted;
        free(state.data);
        free(again.data);
        kvk_cache_close(a.cache);
        kvk_cache_close(b.cache);
    }
    ck_assert_uint_gt(evicted, 100);
}
END_TEST

/* A forged state is consistent or refused, and what was taken of it can be lived with. */
START_TEST(forged_states_are_refused_or_harmless)
{
    static const unsigned char masks[] = {0x01, 0x80, 0xFF};
    life a = lived(choices[_i], 150, 5), b = a;
    bytes state = saved_state(a.cache), forged = {.data = malloc(state.n), .n = state.n};
    b.cache = new_cache(LAYERS);
    for (size_t i = 0; i < state.n - 8; i += 1 + below(&b, 2)) {
        memcpy(forged.data, state.data, state.n);
        forged.data[i] ^= masks[i % 3];
        saved_seal(&forged);
        int rc = saved_load(b.cache, &forged);
        ck_assert_msg(rc == 0 || rc == KVK_EFORMAT || rc == KVK_ENOMEM, "byte %zu gives %d", i, rc);
        for (int k = 0; k < 4 && rc == 0; k++)
            decode(&b, b.seqs[k]);
        kvk_move moves[TABLE];
        while (kvk_moves_take(b.cache, moves, TABLE) > 0)
            ;
        ck_assert_int_eq(kvk_audit(b.cache, NULL, NULL), 0);
    }
    free(forged.data);
    free(state.data);
    kvk_cache_close(a.cache);
    kvk_cache_close(b.cache);
}
END_TEST

START_TEST(near_peaks_of_another_shape_are_refused)
{
    life a = lived(choices[2], 50, 1);
    bytes state = saved_state(a.cache);
    kvk_cache *none = new_cache(0), *more = new_cache(LAYERS + 1);
    ck_assert_int_eq(saved_load(none, &state), KVK_EFORMAT);
    ck_assert_int_eq(saved_load(more, &state), KVK_EFORMAT);
    free(state.data);
    kvk_cache_close(a.cache);
    kvk_cache_close(none);
    kvk_cache_close(more);
}
END_TEST

static uint32_t needs_nothing(const double *knobs, int has_near)
{
    (void)knobs, (void)has_near;
    return 0;
}

static void oldest_first(const kvk_policy_view *table, float *score, uint8_t *tier)
{
    (void)tier;
    for (uint32_t i = 0; i < table->n; i++)
        score[i] = (float)table->index[i];
}

/* Nobody who loads the state could know what it does. */
START_TEST(a_policy_of_the_callers_is_not_saved)
{
    static const kvk_policy own = {
        .size = sizeof own, .name = "mine", .text = "the oldest", .needs = needs_nothing, .rank = oldest_first};
    life a = lived(choices[0], 20, 1);
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.choice = (kvk_policy_choice){.policy = &own};
    bytes state = {.data = malloc(SAVED_MOST)};
    ck_assert_int_eq(kvk_seq_open(a.cache, NULL, &a.seqs[0]), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(a.cache, a.seqs[0], &settings), 0);
    ck_assert_int_eq(kvk_save(a.cache, saved_put, &state), KVK_ESTATE);
    ck_assert_uint_eq(state.n, 0);
    ck_assert_int_eq(kvk_seq_set_eviction(a.cache, a.seqs[0], NULL), 0);
    ck_assert_int_eq(kvk_save(a.cache, saved_put, &state), 0);
    free(state.data);
    kvk_cache_close(a.cache);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("state_evict");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_loaded_cache_evicts_as_the_saved_one, 0, N_CHOICES);
    tcase_add_loop_test(t, forged_states_are_refused_or_harmless, 0, N_CHOICES);
    tcase_add_test(t, near_peaks_of_another_shape_are_refused);
    tcase_add_test(t, a_policy_of_the_callers_is_not_saved);
    return run_tests("state_evict", t);
}
