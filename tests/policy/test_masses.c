/* test_masses.c: masses that can't be are refused, and then nothing has changed; what isn't used isn't looked at. */
#include "lab.h"
#include "run_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Two sequences with a policy that looks at all there is, a batch in flight, and what it looked like before. */
typedef struct trial {
    lab l;
    subject a, b;
    lab_batch batch;
    kvk_stats stats;
    kvk_page_score scores[2][2][64]; /* by sequence and group */
    uint32_t n_scores[2][2], table[2][2][64];
} trial;

static subject *of(trial *t, uint32_t i)
{
    return i ? &t->b : &t->a;
}

static void look(trial *t, kvk_stats *stats, kvk_page_score scores[2][2][64])
{
    *stats = (kvk_stats){.size = sizeof *stats};
    memset(scores, 0, sizeof t->scores);
    ck_assert_int_eq(kvk_stats_get(t->l.cache, stats), 0);
    stats->memory_bytes = stats->peak_memory_bytes = stats->memory_allocations = 0; /* the audit needs some */
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t g = 0; g < 2; g++)
            t->n_scores[i][g] = lab_scores(&t->l, of(t, i), g, scores[i][g]);
}

/* `a` computes 6 tokens at once, `b` 5 with a row each. Both have lost pages. */
static void start(trial *t, const char *policy, uint32_t near)
{
    const twin_setup setup = {.policy = policy, .budget = 40};
    memset(t, 0, sizeof *t);
    lab_open(&t->l, &(lab_setup){.page_tokens = 4, .n_groups = 2, .near = near});
    t->a = lab_driven(&t->l, setup, (masses){MASS_RANDOM, 1, 0});
    t->b = lab_driven(&t->l, setup, (masses){MASS_RANDOM, 2, 0});
    const lab_entry entries[] = {{&t->a, 6, 6, 0}, {&t->b, 5, 5, 1}};
    for (uint32_t i = 0; i < 70; i++) {
        lab_run(&t->l, &t->a, 1);
        lab_run(&t->l, &t->b, 1);
    }
    ck_assert_int_ge(kvk_reserve(t->l.cache, t->a.seq, 6, KVK_RECLAIM), 0);
    ck_assert_int_ge(kvk_reserve(t->l.cache, t->b.seq, 5, KVK_RECLAIM), 0);
    lab_plan(&t->l, entries, 2, &t->batch);
    look(t, &t->stats, t->scores);
}

static void end_trial(trial *t)
{
    lab_end_subject(&t->l, &t->a);
    lab_end_subject(&t->l, &t->b);
    lab_close(&t->l);
    free(t);
}

static void finish(trial *t)
{
    ck_assert_int_ge(kvk_batch_end(t->l.cache, t->batch.id, &t->batch.result), 0);
    end_trial(t);
}

static trial *trial_of(const char *policy, uint32_t near)
{
    trial *t = malloc(sizeof *t);
    ck_assert_ptr_nonnull(t);
    start(t, policy, near);
    return t;
}

static void check_refused(trial *t)
{
    kvk_stats stats;
    static kvk_page_score scores[2][2][64];
    ck_assert_int_eq(kvk_batch_end(t->l.cache, t->batch.id, &t->batch.result), KVK_EINVAL);
    look(t, &stats, scores);
    ck_assert_mem_eq(&stats, &t->stats, sizeof stats);
    ck_assert_mem_eq(scores, t->scores, sizeof scores);
    lab_audit(&t->l);
}

static void check_refused_at(trial *t, float *place, float value)
{
    float was = *place;
    *place = value;
    check_refused(t);
    *place = was;
}

/* Pages that group g lists for entry i. */
static uint32_t listed(const trial *t, uint32_t g, uint32_t i)
{
    return t->batch.indptr[g][i + 1] - t->batch.indptr[g][i];
}

/* The last number of a group: of the last row of the last entry. */
static uint32_t last_place(const trial *t, uint32_t g)
{
    return listed(t, g, 0) + 5 * listed(t, g, 1) - 1;
}

START_TEST(a_mass_that_cannot_be_is_refused)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, -0.001f, 1.01f};
    trial *t = trial_of("keep:importance=2", 0);
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        float too_much = bad[i] > 1 ? bad[i] * 6 : bad[i];
        check_refused_at(t, &t->batch.mean[0][0], too_much);
        check_refused_at(t, &t->batch.mean[1][listed(t, 1, 0) - 1], too_much); /* a sum over 6 */
        check_refused_at(t, &t->batch.mean[0][last_place(t, 0)], bad[i]);
        check_refused_at(t, &t->batch.mean[1][last_place(t, 1)], bad[i]);
        check_refused_at(t, &t->batch.peak[0][0], bad[i]);
        check_refused_at(t, &t->batch.peak[1][listed(t, 1, 0)], bad[i]);
        check_refused_at(t, &t->batch.peak[1][last_place(t, 1)], bad[i]);
    }
    finish(t);
}
END_TEST

START_TEST(a_near_peak_that_cannot_be_is_refused)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY, -0.001f};
    trial *t = trial_of("keep", 2);
    /* 70 tokens so far: pages 16, 17 and the new 18 are listed; 4 numbers each, 1 row and 5 */
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (uint32_t g = 0; g < 2; g++) {
            check_refused_at(t, &t->batch.near[g][0], bad[i]);
            check_refused_at(t, &t->batch.near[g][3 * 4 * 6 - 1], bad[i]);
        }
    t->batch.near[1][3 * 4 * 6] = NAN; /* past the last one */
    t->batch.near[1][3 * 4 * 6 - 1] = 1000;
    finish(t);
}
END_TEST

START_TEST(the_bounds_themselves_are_fine)
{
    trial *t = trial_of("keep:importance=2", 0);
    t->batch.mean[0][0] = 6.005f; /* rounding in a kernel */
    t->batch.mean[1][0] = -0.0f;
    t->batch.mean[1][last_place(t, 1)] = 1.0005f;
    t->batch.peak[0][0] = 1.0005f;
    finish(t);
}
END_TEST

START_TEST(what_is_not_needed_is_not_looked_at)
{
    trial *t = trial_of("h2o:recent=8", 0);
    t->batch.peak[0][0] = NAN;
    finish(t);
    t = trial_of("streaming", 0);
    t->batch.masses.mean = t->batch.masses.peak = NULL;
    finish(t);
    t = trial_of("h2o:recent=8", 0);
    t->batch.masses.peak = t->batch.masses.near = NULL;
    finish(t);
}
END_TEST

START_TEST(rows_of_rejected_tokens_are_not_looked_at)
{
    trial *t = trial_of("h2o:recent=8", 0);
    uint32_t first = listed(t, 1, 0), n = listed(t, 1, 1);
    t->batch.accepted[0] = 0;
    t->batch.accepted[1] = 2;
    t->batch.mean[1][0] = NAN;
    t->batch.mean[1][first + 2 * n] = NAN;
    check_refused_at(t, &t->batch.mean[1][first + 2 * n - 1], NAN);
    finish(t);
}
END_TEST

START_TEST(shapes_that_do_not_fit_are_refused)
{
    trial *t = trial_of("h2o:recent=8", 0);
    uint32_t summed[2] = {7, 1};
    t->batch.rows[0] = 5;
    check_refused(t);
    t->batch.rows[0] = 0;
    check_refused(t);
    t->batch.rows[0] = 1;
    t->batch.accepted[0] = 4; /* some but not all of one sum */
    check_refused(t);
    t->batch.accepted[0] = 6;
    t->batch.masses.n_summed = summed; /* 7 queries of 6 */
    check_refused(t);
    summed[0] = 5;
    t->batch.masses.size = 8;
    check_refused(t);
    t->batch.masses.size = sizeof t->batch.masses;
    finish(t);
}
END_TEST

/* 5 of the 6 queries are in the sum: it may be up to 5. */
START_TEST(a_sum_is_measured_by_its_queries)
{
    trial *t = trial_of("h2o:recent=8", 0);
    uint32_t summed[2] = {5, 1};
    t->batch.masses.n_summed = summed;
    check_refused_at(t, &t->batch.mean[0][0], 5.1f);
    t->batch.mean[0][0] = 5;
    finish(t);
}
END_TEST

/* The mean of a query is that of the queries that are in the sum. */
START_TEST(a_sum_is_divided_by_its_queries)
{
    static kvk_page_score after[64];
    trial *t = trial_of("tova", 0);
    uint32_t summed[2] = {4, 1};
    t->batch.masses.n_summed = summed;
    ck_assert_int_ge(kvk_batch_end(t->l.cache, t->batch.id, &t->batch.result), 0);
    uint32_t n = lab_scores(&t->l, &t->a, 1, after);
    ck_assert_uint_eq(n, listed(t, 1, 0));
    for (uint32_t i = 0; i < n; i++)
        ck_assert_double_eq((double)after[i].score, (double)t->batch.mean[1][i] / 4);
    end_trial(t);
}
END_TEST

/* A table as it was. */
typedef struct snapshot {
    uint32_t group, n;
    kvk_page_score pages[64];
} snapshot;

static snapshot snap(const trial *t, const subject *s, uint32_t group)
{
    snapshot was = {.group = group};
    was.n = lab_scores(&t->l, s, group, was.pages);
    return was;
}

/* Each page still there has what it had and what the queries first .. end-1 gave it. Returns how many there are. */
static uint32_t check_grown(const trial *t, const subject *s, const snapshot *was, uint32_t first, uint32_t end)
{
    snapshot now = snap(t, s, was->group);
    for (uint32_t i = 0, at = 0; i < now.n; i++, at++) {
        while (at < was->n && was->pages[at].position < now.pages[i].position)
            at++;
        ck_assert_uint_lt(at, was->n);
        ck_assert_uint_eq(was->pages[at].position, now.pages[i].position);
        double sum = (double)was->pages[at].score;
        for (uint32_t q = first; q < end; q++)
            sum += mass_mean(&s->masses, was->group, q, now.pages[i].position / 4);
        ck_assert_double_eq((double)now.pages[i].score, sum);
    }
    return now.n;
}

/* A sequence shortened since the plan: its places are skipped, the next one's are found. A row for token 72 trims its
 * table by a page. */
START_TEST(masses_of_shortened_sequences_are_dropped)
{
    trial *t = trial_of("h2o:recent=8:sinks=0", 0);
    ck_assert_int_ge(kvk_truncate(t->l.cache, t->a.seq, 69), 0);
    for (uint32_t i = 0; i < listed(t, 1, 0); i++)
        t->batch.mean[1][i] = NAN;
    snapshot a = snap(t, &t->a, 1), b = snap(t, &t->b, 1);
    ck_assert_int_ge(kvk_batch_end(t->l.cache, t->batch.id, &t->batch.result), 0);
    ck_assert_uint_eq(check_grown(t, &t->a, &a, 0, 0), a.n);
    ck_assert_uint_eq(check_grown(t, &t->b, &b, 70, 75), b.n - 1);
    end_trial(t);
}
END_TEST

START_TEST(masses_of_closed_sequences_are_dropped)
{
    trial *t = trial_of("h2o:recent=8:sinks=0", 0);
    lab_end_subject(&t->l, &t->a);
    for (uint32_t i = 0; i < listed(t, 1, 0); i++)
        t->batch.mean[1][i] = NAN;
    snapshot b = snap(t, &t->b, 1);
    ck_assert_int_ge(kvk_batch_end(t->l.cache, t->batch.id, &t->batch.result), 0);
    ck_assert_uint_eq(check_grown(t, &t->b, &b, 70, 75), b.n - 1);
    lab_end_subject(&t->l, &t->b);
    lab_close(&t->l);
    free(t);
}
END_TEST

/* A page that the sequence lost while the batch was in flight: its mass is dropped, its neighbours get theirs. */
START_TEST(masses_of_lost_pages_are_dropped)
{
    trial *t = trial_of("h2o:recent=8:sinks=0", 0);
    snapshot a = snap(t, &t->a, 0);
    ck_assert_int_ge(kvk_evict(t->l.cache, t->a.seq, 0, &a.pages[2].position, 1), 0);
    ck_assert_int_ge(kvk_batch_end(t->l.cache, t->batch.id, &t->batch.result), 0);
    ck_assert_uint_eq(check_grown(t, &t->a, &a, 70, 76), a.n - 1);
    end_trial(t);
}
END_TEST

START_TEST(without_masses_nothing_is_learnt)
{
    trial *t = trial_of("h2o:recent=8", 0);
    snapshot a = snap(t, &t->a, 0), b = snap(t, &t->b, 0);
    t->batch.masses.mean = NULL;
    ck_assert_int_ge(kvk_batch_end(t->l.cache, t->batch.id, &t->batch.result), 0);
    ck_assert_uint_eq(check_grown(t, &t->a, &a, 0, 0), a.n);
    check_grown(t, &t->b, &b, 0, 0);
    end_trial(t);
}
END_TEST

/* ---- What a policy asks for ---------------------------------------------------------------------------------- */

static uint32_t asks(const double *knobs, int has_near)
{
    (void)has_near;
    return (uint32_t)knobs[0];
}

/* Peaks are all that it uses, and all that it asks for. */
static void take_peaks(const kvk_policy_view *view, const kvk_observation *seen)
{
    ck_assert(view->knobs[0] > 0 && seen->mean && seen->peak);
    memcpy(view->scores[0], seen->peak, view->n * sizeof(float));
}

static void rank_peaks(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    (void)tier;
    memcpy(score, view->scores[0], view->n * sizeof(float));
}

static const kvk_knob asked_knob = {"asks", 0, 15, 0, 1, "what it asks for"};
static const kvk_policy by_peak = {.size = sizeof by_peak,
                                   .name = "by_peak",
                                   .text = "keeps what once had a high peak",
                                   .n_knobs = 1,
                                   .knobs = &asked_knob,
                                   .n_scores = 1,
                                   .needs = asks,
                                   .observe = take_peaks,
                                   .rank = rank_peaks};

/* Since nothing is observed without the mass, a plan asks for it wherever it asks for anything. */
START_TEST(who_asks_for_peaks_is_told_them)
{
    static const uint32_t asked[] = {0, KVK_NEED_PEAK}, needed[] = {0, KVK_NEED_MEAN | KVK_NEED_PEAK};
    const float mean[] = {0.5f, 0.5f}, peak[] = {0.75f, 0.25f};
    const kvk_masses told = {.size = sizeof told, .stride = 2, .mean = mean, .peak = peak};
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .masses = &told};
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 1});
    kvk_eviction settings;
    kvk_eviction_init(&settings);
    settings.choice = (kvk_policy_choice){.policy = &by_peak, .knobs = {asked[_i]}};
    kvk_batch_entry entry = {.n_query = 8};
    kvk_page_score scores[2];
    kvk_plan plan;
    kvk_batch batch;
    kvk_plan_init(&plan);
    ck_assert_int_eq(kvk_seq_open(l.cache, NULL, &entry.seq), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(l.cache, entry.seq, &settings), 0);
    ck_assert_int_eq(kvk_reserve(l.cache, entry.seq, 8, KVK_RECLAIM), 2);
    ck_assert_int_eq(kvk_batch_plan(l.cache, &entry, 1, &plan, &batch), 0);
    ck_assert_uint_eq(plan.needs, needed[_i]);
    ck_assert_int_ge(kvk_batch_end(l.cache, batch, &result), 0);
    ck_assert_int_eq(kvk_seq_scores(l.cache, entry.seq, 0, scores, 2), 2);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert(scores[i].score == (_i ? peak[i] : 0));
    lab_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("masses");
    tcase_add_test(tests, a_mass_that_cannot_be_is_refused);
    tcase_add_test(tests, a_near_peak_that_cannot_be_is_refused);
    tcase_add_test(tests, the_bounds_themselves_are_fine);
    tcase_add_test(tests, what_is_not_needed_is_not_looked_at);
    tcase_add_test(tests, rows_of_rejected_tokens_are_not_looked_at);
    tcase_add_test(tests, shapes_that_do_not_fit_are_refused);
    tcase_add_test(tests, a_sum_is_measured_by_its_queries);
    tcase_add_test(tests, a_sum_is_divided_by_its_queries);
    tcase_add_test(tests, masses_of_shortened_sequences_are_dropped);
    tcase_add_test(tests, masses_of_closed_sequences_are_dropped);
    tcase_add_test(tests, masses_of_lost_pages_are_dropped);
    tcase_add_test(tests, without_masses_nothing_is_learnt);
    tcase_add_loop_test(tests, who_asks_for_peaks_is_told_them, 0, 2);
    return run_tests("masses", tests);
}
