/* test_protection.c: what must stay stays, whatever was observed and whatever a policy answers; masses that can't be
 * are refused and change nothing. */
#include "cases.h"
#include "run_tests.h"

#include <math.h>
#include <string.h>

/* ---- The library's policies ---------------------------------------------------------------------------------- */

static int holds(const uint32_t *numbers, uint32_t n, uint32_t page)
{
    for (uint32_t i = 0; i < n; i++)
        if (numbers[i] == page)
            return 1;
    return 0;
}

/* Tokens at the front and at the end that a case's policy promises to keep, by the words of docs/policies.md. */
static uint32_t sinks_of(const twin *t)
{
    static const char *const with_sinks[] = {"streaming", "h2o", "random", "keep"};
    for (uint32_t i = 0; i < 4; i++)
        if (twin_is(t, with_sinks[i]))
            return (uint32_t)twin_knob(t, "sinks", 4);
    return twin_is(t, "window") ? 0 : (uint32_t)twin_knob(t, "sinks", 0);
}

static uint32_t recent_of(const twin *t, uint32_t pt)
{
    uint32_t half = twin_budget(t, 0) / 2 / pt * pt;
    double recent = twin_is(t, "scissorhands")                         ? twin_knob(t, "recent", 10)
                    : twin_is(t, "h2o") && twin_knob(t, "exit", 0) < 1 ? twin_knob(t, "recent", 512)
                    : twin_is(t, "snapkv")                             ? twin_knob(t, "window", 32)
                    : twin_is(t, "random")                             ? twin_knob(t, "recent", 512)
                    : twin_is(t, "keep") ? twin_knob(t, "recent_share", 0.5) * twin_budget(t, 0)
                                         : 0;
    return recent < half ? (uint32_t)recent : half;
}

/* Sinks, pins, the partial page and the full pages that the last tokens begin in. */
static void check_kept(const lab *l, const subject *s, uint32_t pinned)
{
    uint32_t pt = l->page_tokens, n_tokens = s->twin->n_tokens, sinks = sinks_of(s->twin);
    uint32_t recent = recent_of(s->twin, pt), numbers[TWIN_PAGES];
    for (uint32_t g = 0; g < l->n_groups; g++) {
        uint32_t n = lab_table(l, s, g, numbers);
        for (uint32_t q = 0; q < n_tokens; q++) {
            int at_the_end = q / pt == n_tokens / pt || (n_tokens / pt * pt > q && n_tokens / pt * pt - q <= recent);
            if (q < sinks || q < pinned || (at_the_end && (n_tokens % pt || q / pt < n_tokens / pt)))
                LAB_CHECK(holds(numbers, n, q / pt), "%s: token %u of %u is gone", s->twin->setup.policy, q, n_tokens);
        }
    }
}

START_TEST(sinks_recent_partial_and_pinned_pages_stay)
{
    for (uint32_t kind = 0; kind < MASS_KINDS; kind++) {
        char text[CASE_TEXT];
        twin_setup setup = case_setup(&policy_cases[_i], 4, text);
        setup.max_tokens = 240;
        lab l;
        lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 2, .near = policy_cases[_i].near, .has_text = 1});
        subject s = lab_subject(&l, setup, (masses){kind, kind, 0});
        lab_run(&l, &s, 26);
        ck_assert_int_eq(kvk_pin(l.cache, s.seq, 12), 6);
        s.twin->pinned[0] = s.twin->pinned[1] = s.twin->pinned[2] = 1;
        while (s.twin->n_tokens < setup.max_tokens) {
            lab_run(&l, &s, 1);
            lab_reserve(&l, &s, 1);
            check_kept(&l, &s, 12);
        }
        lab_end_subject(&l, &s);
        lab_close(&l);
    }
}
END_TEST

/* ---- A policy that means harm -------------------------------------------------------------------------------- */

enum hostile { RANKS_PROTECTED_LOWEST, RANKS_NAN, NAMES_TWICE, NAMES_FAR, NAMES_PROTECTED, NAMES_TOO_MANY, HOSTILES };

static uint32_t hostile_needs(const double *knobs, int has_near)
{
    (void)knobs;
    (void)has_near;
    return KVK_NEED_MEAN | KVK_NEED_ASK;
}

static kvk_protection hostile_protect(const double *knobs, uint32_t budget, uint32_t page_tokens)
{
    (void)knobs;
    (void)budget;
    (void)page_tokens;
    return (kvk_protection){.sinks = 6, .recent = 9};
}

static void hostile_rank(const kvk_policy_view *view, float *score, uint8_t *tier)
{
    for (uint32_t i = 0; i < view->n; i++) {
        int is_nan = view->knobs[0] > RANKS_PROTECTED_LOWEST && view->knobs[0] <= RANKS_NAN;
        score[i] = is_nan ? NAN : view->eligible && view->eligible[i] ? INFINITY : -INFINITY;
        tier[i] = view->eligible && view->eligible[i] ? 255 : 0;
    }
}

static uint32_t hostile_choose(const kvk_policy_view *view, uint32_t want, uint32_t *victims)
{
    enum hostile how = (enum hostile)view->knobs[0];
    (void)want;
    for (uint32_t i = 0; i < view->n; i++)
        victims[i] = how == NAMES_TWICE ? view->n / 2 : how == NAMES_FAR ? UINT32_MAX - i : i;
    switch (how) {
    case NAMES_TWICE:
    case NAMES_FAR:
        return view->n;
    case NAMES_PROTECTED:
        return view->n < 2 ? view->n : 2;
    case NAMES_TOO_MANY:
        return UINT32_MAX;
    case RANKS_PROTECTED_LOWEST:
    case RANKS_NAN:
    case HOSTILES:
        break;
    }
    return 0;
}

static const kvk_knob hostile_knobs[] = {{"how", 0, HOSTILES, 0, 1, "how it does harm"}};

static const kvk_policy hostile_policy = {
    .size = sizeof(kvk_policy),
    .n_knobs = 1,
    .name = "hostile",
    .text = "evicts what must stay",
    .knobs = hostile_knobs,
    .n_scores = 1,
    .needs = hostile_needs,
    .protect = hostile_protect,
    .rank = hostile_rank,
    .choose = hostile_choose,
};

/* Tokens 0 .. 7 are in sink pages, 12 .. 19 pinned; budget 15 pages of 4. NAMES_TOO_MANY names all pages, so all that
 * may go does, again and again. */
static void check_hostile_table(const lab *l, const subject *s, uint32_t n_tokens, enum hostile how)
{
    uint32_t numbers[TWIN_PAGES], n = lab_table(l, s, 0, numbers), full = n_tokens / 4;
    ck_assert(holds(numbers, n, 0) && holds(numbers, n, 1) && holds(numbers, n, 3) && holds(numbers, n, 4));
    for (uint32_t p = full > 3 ? full - 3 : 0; p < (n_tokens + 3) / 4; p++)
        LAB_CHECK(holds(numbers, n, p), "recent page %u of %u tokens is gone", p, n_tokens);
    ck_assert_uint_le(n, 15);
    if (n_tokens >= 60 && how != NAMES_TOO_MANY && how != NAMES_TWICE)
        ck_assert_uint_eq(n, n_tokens % 4 ? 15 : n); /* and no fewer than the budget asks for */
}

START_TEST(a_hostile_policy_gets_only_what_may_go)
{
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 1, .has_text = 1});
    subject s = {.masses = {MASS_RANDOM, 1, 4}};
    kvk_eviction e;
    kvk_eviction_init(&e);
    kvk_policy_defaults(&hostile_policy, &e.choice);
    e.choice.knobs[0] = _i;
    e.budget = 60;
    ck_assert_int_eq(kvk_seq_open(l.cache, NULL, &s.seq), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(l.cache, s.seq, &e), 0);
    lab_run(&l, &s, 24);
    ck_assert_int_eq(kvk_pin(l.cache, s.seq, 20), 5);
    ck_assert_int_eq(kvk_unpin(l.cache, s.seq, 12), 3);
    for (uint32_t n_tokens = 24; n_tokens < 400; n_tokens++) {
        lab_run(&l, &s, 1);
        check_hostile_table(&l, &s, n_tokens + 1, (enum hostile)_i);
    }
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* ---- Tokens whose batch has not ended ------------------------------------------------------------------------ */

/* Over its budget with a batch in flight: only what is computed may go. */
START_TEST(draft_pages_stay)
{
    static lab_batch drafts, more;
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 1});
    subject s = lab_driven(&l, (twin_setup){.policy = "tova", .budget = 32}, (masses){MASS_ZERO, 0, 0});
    const lab_entry entry = {&s, 30, 30, 0};
    uint32_t numbers[TWIN_PAGES];
    lab_run(&l, &s, 10);
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 30, KVK_RECLAIM), 7);
    lab_plan(&l, &entry, 1, &drafts); /* tokens 10 .. 39 */
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 30, KVK_RECLAIM), 8);
    ck_assert_uint_eq(lab_table(&l, &s, 0, numbers), 16); /* of 10 pages and a next one 3 should go, 2 may */
    ck_assert_uint_eq(numbers[0], 2);
    ck_assert_int_eq(kvk_evict(l.cache, s.seq, 0, (const uint32_t[]){8}, 1), KVK_EBUSY);
    ck_assert_int_eq(kvk_evict(l.cache, s.seq, 0, (const uint32_t[]){36}, 1), KVK_EBUSY);
    lab_plan(&l, &entry, 1, &more); /* tokens 40 .. 69 */
    ck_assert_int_ge(kvk_batch_end(l.cache, drafts.id, &drafts.result), 0);
    ck_assert_int_eq(kvk_evict(l.cache, s.seq, 0, (const uint32_t[]){40}, 1), KVK_EBUSY);
    ck_assert_int_ge(kvk_evict(l.cache, s.seq, 0, (const uint32_t[]){36}, 1), 0);
    ck_assert_int_ge(kvk_batch_end(l.cache, more.id, &more.result), 0);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("protection");
    tcase_add_loop_test(tests, sinks_recent_partial_and_pinned_pages_stay, 0, (int)n_policy_cases);
    tcase_add_loop_test(tests, a_hostile_policy_gets_only_what_may_go, 0, HOSTILES);
    tcase_add_test(tests, draft_pages_stay);
    return run_tests("protection", tests);
}
