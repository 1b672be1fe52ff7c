/* The real model under eviction, token by token: each golden configuration by a policy of the library. Its evictions
 * must be the golden ones but for near-ties, and its NLL within 2e-4. */
#include "engine/smollm.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LENGTH = 512, BUDGET = 128, PAGE = 16, LAYERS = 30, MOST_CASES = 8, EVICTIONS = (LENGTH - BUDGET) / PAGE };

typedef struct eviction_case {
    const char *name, *policy;
} eviction_case;

/* What one of them did. */
typedef struct outcome {
    kvk_seq seq;
    double nll[LENGTH];
    uint32_t evicted[LAYERS][EVICTIONS]; /* positions of first tokens, in order */
    uint32_t n_evicted[LAYERS];
} outcome;

static smollm s;
static outcome outcomes[MOST_CASES];

static void set_up(void)
{
    smollm_open(&s);
    memset(outcomes, 0, sizeof outcomes);
}

static void tear_down(void)
{
    smollm_close(&s);
}

static void note(void *ctx, const kvk_event *event)
{
    (void)ctx;
    for (int i = 0; i < MOST_CASES; i++) {
        outcome *o = &outcomes[i];
        if (event->kind != KVK_EVENT_EVICTED || o->seq != event->seq)
            continue;
        ck_assert_uint_lt(o->n_evicted[event->group], EVICTIONS);
        o->evicted[event->group][o->n_evicted[event->group]++] = event->position;
    }
}

/* ---- Comparing -------------------------------------------------------------------------------------------------- */

static const json_t *golden_case(const char *name)
{
    size_t i;
    json_t *found;
    json_array_foreach(json_object_get(json_object_get(s.golden, "eviction"), "configs"), i,
                       found) if (strcmp(json_string_value(json_object_get(found, "name")), name) == 0) return found;
    ck_abort_msg("%s is expected to be there", name);
    return NULL;
}

/* Returns in how many tables evictions differ. */
static uint32_t differences(const json_t *golden, const outcome *o, uint32_t groups)
{
    const json_t *all = json_object_get(golden, "evicted_page_start_per_layer");
    uint32_t n = 0;
    ck_assert_uint_eq(json_array_size(all), groups);
    for (uint32_t g = 0; g < groups; g++) {
        const json_t *of_group = json_array_get(all, g);
        int same = 1;
        ck_assert_uint_eq(o->n_evicted[g], json_array_size(of_group));
        for (uint32_t i = 0; i < o->n_evicted[g]; i++)
            same &= o->evicted[g][i] == (uint32_t)json_integer_value(json_array_get(of_group, i));
        n += !same;
    }
    return n;
}

/* Decisions so close that a processor's rounding may turn them. */
static uint32_t near_ties(const json_t *golden)
{
    const json_t *n = json_object_get(golden, "n_gap_below_1em3");
    return n ? (uint32_t)json_integer_value(n) : 0;
}

static void check_positions(runner *r, const json_t *golden, const outcome *o)
{
    const json_t *want = json_object_get(golden, "final_pos_layer0");
    uint32_t positions[BUDGET / PAGE + 1];
    int n = kvk_seq_positions(runner_cache(r), o->seq, 0, positions, BUDGET / PAGE + 1);
    ck_assert_int_eq(n, (int)json_array_size(want));
    for (int i = 0; i < n; i++)
        ck_assert_uint_eq(positions[i], (uint32_t)json_integer_value(json_array_get(want, (size_t)i)));
}

static void check_case(runner *r, const eviction_case *c, const outcome *o, uint32_t groups)
{
    const json_t *golden = golden_case(c->name);
    double all = mean_of(o->nll, 0, LENGTH - 1) - golden_number(golden, "mean_nll");
    double active = mean_of(o->nll, BUDGET - 1, LENGTH - 1) - golden_number(golden, "mean_nll_targets_ge_128");
    uint32_t n = differences(golden, o, groups);
    printf("%s as %s: %u of %u tables differ, NLL by %.1e, once evicting by %.1e\n", c->name, c->policy, n, groups, all,
           active);
    ck_assert_double_le(fabs(all), 2e-4);
    ck_assert_double_le(fabs(active), 2e-4);
    ck_assert_uint_le(n, near_ties(golden));
    if (n == 0)
        check_positions(r, golden, o);
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* All in one batch, token by token. */
static void run_cases(const eviction_case *cases, uint32_t n, uint32_t groups, kvk_near_kind kind)
{
    runner *r = smollm_runner(&s, groups, (BUDGET + PAGE) * (uint64_t)n, kind);
    ck_assert_int_eq(kvk_set_events(runner_cache(r), note, NULL), 0);
    for (uint32_t i = 0; i < n; i++)
        outcomes[i].seq = smollm_sequence(r, cases[i].policy, BUDGET);
    for (uint32_t t = 0; t < LENGTH; t++) {
        runner_entry entries[MOST_CASES];
        for (uint32_t i = 0; i < n; i++)
            entries[i] = (runner_entry){.sequence = outcomes[i].seq,
                                        .tokens = s.text + t,
                                        .n = 1,
                                        .want = RUNNER_SCORES,
                                        .next = s.text + t + 1,
                                        .nll = outcomes[i].nll + t};
        smollm_step(r, entries, n);
    }
    for (uint32_t i = 0; i < n; i++)
        check_case(r, &cases[i], &outcomes[i], groups);
    ck_assert_int_eq(kvk_audit(runner_cache(r), NULL, NULL), 0);
    runner_close(r);
}

START_TEST(a_table_per_layer)
{
    static const eviction_case cases[] = {
        {"window", "window"},
        {"streaming", "streaming:sinks=4"},
        {"h2o_sinks", "h2o:sinks=4:recent=64"},
        {"ema128", "keep:reserve=0"},
        {"resv_m", "keep:importance=2"},
        {"near_mass_layer", "keep:importance=1:layers=0:damping=0"},
        {"near_mass_all", "keep:importance=1:damping=0"},
    };
    run_cases(cases, sizeof cases / sizeof cases[0], LAYERS, KVK_NEAR_MASS);
}
END_TEST

START_TEST(by_removal_error)
{
    static const eviction_case cases[] = {{"near_error_all_8", "keep:importance=1:damping=0:reserve=0.125"}};
    run_cases(cases, 1, LAYERS, KVK_NEAR_ERROR);
}
END_TEST

START_TEST(one_table)
{
    static const eviction_case cases[] = {{"g1_h2o_sinks", "h2o:sinks=4:recent=64"}};
    run_cases(cases, 1, 1, KVK_NEAR_ERROR);
}
END_TEST

int main(void)
{
    if (!smollm_is_here())
        return 77;
    TCase *t = tcase_create("smollm eviction");
    tcase_set_timeout(t, 600);
    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_table_per_layer);
    tcase_add_test(t, by_removal_error);
    tcase_add_test(t, one_table);
    return run_tests("smollm eviction", t);
}
