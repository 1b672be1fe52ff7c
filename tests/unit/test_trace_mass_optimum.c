/* The offline optimum: equal to trying everything, and out of reach for every policy. */
#include "run_tests.h"
#include "trace/random.h"
#include "trace/replay_evict.h"
#include "unit/mass_memory.h"

#include <check.h>
#include <string.h>

enum { MOST_PAGES = 7 };

/* A small case: what page p gets in interval first + i. */
typedef struct small_case {
    uint32_t pages, first, keep;
    double gain[MOST_PAGES][MOST_PAGES];   /* [i][p] */
    double costs[MOST_PAGES * MOST_PAGES]; /* [i][p] from then on, rows of `pages` */
} small_case;

/* Small whole numbers, so that sums are exact and ties are common. */
static small_case draw_case(random_state *random)
{
    small_case c = {.pages = 1 + random_below(random, MOST_PAGES)};
    c.first = random_below(random, 3) ? 0 : random_below(random, c.pages);
    c.keep = 1 + random_below(random, c.pages);
    for (uint32_t i = 0; i < c.pages - c.first; i++)
        for (uint32_t p = 0; p <= c.first + i; p++)
            c.gain[i][p] = random_below(random, 2) * random_below(random, 10);
    for (uint32_t i = c.pages - c.first; i-- > 0;)
        for (uint32_t p = 0; p < c.pages; p++)
            c.costs[i * c.pages + p] = c.gain[i][p] + (i + 1 < c.pages - c.first ? c.costs[(i + 1) * c.pages + p] : 0);
    return c;
}

static double gain_of(const small_case *c, uint32_t i, uint32_t held)
{
    double sum = 0;
    for (uint32_t p = 0; p < MOST_PAGES; p++)
        sum += held >> p & 1 ? c->gain[i][p] : 0;
    return sum;
}

/* The most from interval first + i on for who held `before`: every set of old pages is tried, beside the new page. */
static double best(const small_case *c, uint32_t i, uint32_t before)
{
    if (i == MOST_PAGES || c->first + i >= c->pages)
        return 0;
    double most = -1;
    uint32_t own = 1u << (c->first + i);
    for (uint32_t old = before;; old = (old - 1) & before) {
        if (__builtin_popcount(old) < (int)c->keep) {
            double got = gain_of(c, i, old | own) + best(c, i + 1, old | own);
            most = got > most ? got : most;
        }
        if (old == 0)
            return most;
    }
}

static double all_of(const small_case *c)
{
    double sum = 0;
    for (uint32_t i = 0; i < c->pages - c->first; i++)
        sum += gain_of(c, i, UINT32_MAX >> (32 - c->pages));
    return sum;
}

/* A choice that nobody could make would prove nothing. */
static void check_choice(const small_case *c, const uint32_t *gone)
{
    for (uint32_t j = c->first; j < c->pages; j++) {
        uint32_t held = 0;
        for (uint32_t p = 0; p <= j; p++)
            held += gone[p] > j;
        ck_assert_uint_le(held, c->keep);
        ck_assert_uint_gt(gone[j], j);
    }
}

START_TEST(equals_trying_everything)
{
    random_state random;
    random_seed(&random, 1);
    for (int i = 0; i < 2000; i++) {
        small_case c = draw_case(&random);
        mass_future future = {c.costs, c.first, c.pages};
        uint32_t gone[MOST_PAGES];
        double most = best(&c, 0, (1u << c.first) - 1);
        ck_assert_int_eq(evict_optimum(&future, c.keep, gone), 0);
        check_choice(&c, gone);
        ck_assert_msg(all_of(&c) - evict_lost(&future, gone) == most, "case %d: %g instead of %g", i,
                      all_of(&c) - evict_lost(&future, gone), most);
        ck_assert_int_eq(evict_greedy(&future, c.keep, gone), 0);
        check_choice(&c, gone);
        ck_assert(all_of(&c) - evict_lost(&future, gone) <= most);
    }
}
END_TEST

/* Two pages may be held. Page 0 is worth 5 in interval 2 and nothing later, page 1 is worth 4 in each from 2 on:
 * greedy drops page 0 at interval 2 since 5 < 8, and then page 2 at 3. So does the optimum. With 9 instead of 5 page 1
 * goes first. */
START_TEST(counted_by_hand)
{
    double costs[] = {9, 8, 1, 0, 9, 8, 1, 0, 5, 8, 1, 0, 0, 4, 1, 1};
    uint32_t gone[4];
    mass_future future = {costs, 0, 4};
    ck_assert_int_eq(evict_optimum(&future, 2, gone), 0);
    ck_assert_uint_eq(gone[0], 2);
    ck_assert_uint_eq(gone[1], MASS_KEPT);
    ck_assert_uint_eq(gone[2], 3);
    ck_assert(evict_lost(&future, gone) == 6);
    costs[8] = 9;
    ck_assert_int_eq(evict_optimum(&future, 2, gone), 0);
    ck_assert_uint_eq(gone[1], 2);
    ck_assert(evict_lost(&future, gone) == 8);
}
END_TEST

/* ---- No policy beats it ------------------------------------------------------------------------------------------ */

static void check_policies(mass_trace *t, uint32_t budget)
{
    evict_futures futures;
    evict_result most, greedy, result;
    trace_error error = {""};
    ck_assert_msg(evict_futures_read(&futures, t, 0, &error) == 0, "%s", error.text);
    ck_assert_int_eq(replay_evict_bound(t, &futures, evict_optimum, budget, &most, &error), 0);
    ck_assert_int_eq(replay_evict_bound(t, &futures, evict_greedy, budget, &greedy, &error), 0);
    evict_futures_close(&futures);
    const double rounding = 1e-6;
    ck_assert(greedy.active.mean <= most.active.mean + rounding);
    for (uint32_t i = 1; kvk_policy_at(i); i++) { /* without full, which has no budget */
        evict_options options = {.budget = budget, .audit = true};
        kvk_policy_defaults(kvk_policy_at(i), &options.choice);
        ck_assert_msg(replay_evict(t, &options, &result, &error) == 0, "%s", error.text);
        ck_assert_msg(result.active.mean <= most.active.mean + rounding, "%s: %.9f, optimum %.9f",
                      kvk_policy_at(i)->name, result.active.mean, most.active.mean);
        ck_assert_uint_le(result.pages_max, most.budget_pages);
    }
}

static const mass_shape shapes[] = {
    {.page_tokens = 1, .groups = 1, .steps = 64},
    {.page_tokens = 4, .groups = 2, .steps = 150},
    {.page_tokens = 3, .groups = 1, .steps = 100, .first = 50},
    {.page_tokens = 16, .groups = 3, .steps = 500},
};

/* Budgets from the least that every policy takes up to most of the text. */
START_TEST(no_policy_beats_it)
{
    const mass_shape *s = &shapes[_i % 4];
    float *mean = random_masses(s, (uint64_t)_i), *peak = random_masses(s, (uint64_t)_i + 1000);
    mass_trace *t = memory_trace(*s, mean, peak);
    uint32_t pages = t->shape.pages, least = 4 + 4 + 10;
    check_policies(t, (least > pages / 3 ? least : pages / 3) * s->page_tokens);
    check_policies(t, 3 * pages / 4 * s->page_tokens);
    mass_close(t);
    free(mean);
    free(peak);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("optimum");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, equals_trying_everything);
    tcase_add_test(t, counted_by_hand);
    tcase_add_loop_test(t, no_policy_beats_it, 0, 40);
    return run_tests("trace_mass_optimum", t);
}
