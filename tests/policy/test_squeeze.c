/* test_squeeze.c: whose pages a reservation with KVK_EVICT takes, by hand. Pages of 4 tokens, one group. */
#include "lab.h"
#include "run_tests.h"

#include <string.h>

/* Three sequences of 4 full pages and a pool of 12; the pages have the sums of attention that are told. */
typedef struct trio {
    lab l;
    kvk_seq seq[3];
} trio;

static kvk_eviction without_budget(const char *policy)
{
    static const uint32_t no_limit[] = {0};
    kvk_eviction e;
    kvk_eviction_init(&e);
    ck_assert_int_eq(kvk_policy_parse(policy, NULL, &e.choice, NULL, 0), 0);
    e.budgets = no_limit;
    return e;
}

static void compute(kvk_cache *cache, kvk_seq seq, const float *mass)
{
    const kvk_batch_entry entry = {seq, 16, 0};
    const kvk_masses told = {.size = sizeof told, .stride = 4, .mean = mass};
    const kvk_batch_result result = {sizeof result, 1, NULL, &told};
    kvk_batch batch;
    kvk_plan plan;
    kvk_plan_init(&plan);
    ck_assert_int_eq(kvk_reserve(cache, seq, 16, KVK_RECLAIM), 4);
    ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), 0);
    ck_assert_int_ge(kvk_batch_end(cache, batch, &result), 0);
}

static void open_trio(trio *t, const kvk_eviction *how)
{
    static const float mass[3][4] = {{4, 2, 1, 1}, {8, 0.5f, 1, 0.5f}, {1, 1, 1, 1}};
    lab_open(&t->l, &(lab_setup){.page_tokens = 4, .n_groups = 1, .n_pages = 12});
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_int_eq(kvk_seq_open(t->l.cache, NULL, &t->seq[i]), 0);
        ck_assert_int_eq(kvk_seq_set_eviction(t->l.cache, t->seq[i], how), 0);
        compute(t->l.cache, t->seq[i], mass[i]);
    }
}

/* Which pages of the text a sequence holds, as bits. */
static uint32_t pages_of(const trio *t, uint32_t i)
{
    uint32_t numbers[TWIN_PAGES], bits = 0;
    const subject s = {.seq = t->seq[i]};
    uint32_t n = lab_table(&t->l, &s, 0, numbers);
    for (uint32_t k = 0; k < n; k++)
        bits |= 1u << numbers[k];
    return bits;
}

static void close_trio(trio *t)
{
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_ge(kvk_seq_close(t->l.cache, t->seq[i]), 0);
    lab_close(&t->l);
}

/* Shares: 1/2 1/4 1/8 1/8; 4/5 1/20 1/10 1/20; 1/4 each. Without sinks and recent pages all may go. */
START_TEST(the_smallest_share_goes_first)
{
    kvk_eviction how = without_budget("h2o:sinks=0:recent=0");
    trio t;
    open_trio(&t, &how);
    ck_assert_int_eq(kvk_can_reserve(t.l.cache, t.seq[2], 4, KVK_RECLAIM), KVK_LATER);
    ck_assert_int_eq(kvk_can_reserve(t.l.cache, t.seq[2], 4, KVK_EVICT), KVK_OK);
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[2], 4, KVK_EVICT), 1);
    ck_assert_uint_eq(pages_of(&t, 0), 15);
    ck_assert_uint_eq(pages_of(&t, 1), 13); /* 1/20, of two alike the lower position */
    ck_assert_uint_eq(pages_of(&t, 2), 16 + 15);
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[2], 16, KVK_EVICT), 3);
    ck_assert_uint_eq(pages_of(&t, 1), 1); /* of 9 1/2 left 1/19 and 2/19 go */
    ck_assert_uint_eq(pages_of(&t, 0), 11);
    close_trio(&t);
}
END_TEST

/* Equal shares: the youngest gives first. */
START_TEST(of_equal_shares_the_youngest_gives)
{
    kvk_eviction how = without_budget("window");
    trio t;
    open_trio(&t, &how);
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[0], 4, KVK_EVICT), 1);
    ck_assert_uint_eq(pages_of(&t, 2), 14);
    close_trio(&t);
}
END_TEST

START_TEST(lower_priorities_give_first_and_higher_ones_never)
{
    kvk_eviction how = without_budget("h2o:sinks=0:recent=0");
    trio t;
    open_trio(&t, &how);
    ck_assert_int_eq(kvk_seq_set_priority(t.l.cache, t.seq[1], 5), 0);
    ck_assert_int_eq(kvk_seq_set_priority(t.l.cache, t.seq[0], 1), 0);
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[0], 4, KVK_EVICT), 1);
    ck_assert_uint_eq(pages_of(&t, 2), 14); /* priority 0, though 1/4 is dearer than others' 1/20 */
    ck_assert_int_eq(kvk_can_reserve(t.l.cache, t.seq[2], 16, KVK_EVICT), KVK_LATER); /* only its own 3 pages may go */
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[2], 16, KVK_EVICT), KVK_ENOPAGE);
    ck_assert_uint_eq(pages_of(&t, 2), 14);
    ck_assert_uint_eq(pages_of(&t, 1), 15);
    close_trio(&t);
}
END_TEST

START_TEST(who_does_not_yield_keeps_all)
{
    kvk_eviction how = without_budget("h2o:sinks=0:recent=0");
    how.yields = 0;
    trio t;
    open_trio(&t, &how);
    ck_assert_int_eq(kvk_can_reserve(t.l.cache, t.seq[0], 4, KVK_EVICT), KVK_LATER);
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[0], 4, KVK_EVICT), KVK_ENOPAGE);
    ck_assert_int_eq(kvk_seq_set_eviction(t.l.cache, t.seq[1], NULL), 0); /* no policy: the same */
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[0], 4, KVK_EVICT), KVK_ENOPAGE);
    close_trio(&t);
}
END_TEST

/* 9 tokens need 3 pages: each table gives one. */
START_TEST(the_floor_stays)
{
    kvk_eviction how = without_budget("h2o:sinks=0:recent=0");
    how.floor = 9;
    trio t;
    open_trio(&t, &how);
    ck_assert_int_eq(kvk_can_reserve(t.l.cache, t.seq[0], 16, KVK_EVICT), KVK_LATER);
    ck_assert_int_eq(kvk_reserve(t.l.cache, t.seq[0], 12, KVK_EVICT), 3);
    ck_assert_uint_eq(pages_of(&t, 0), 11 + 16 + 32 + 64); /* 1/8, of two alike the lower position */
    ck_assert_uint_eq(pages_of(&t, 1), 13);
    ck_assert_uint_eq(pages_of(&t, 2), 14);
    close_trio(&t);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("squeeze");
    tcase_add_test(tests, the_smallest_share_goes_first);
    tcase_add_test(tests, of_equal_shares_the_youngest_gives);
    tcase_add_test(tests, lower_priorities_give_first_and_higher_ones_never);
    tcase_add_test(tests, who_does_not_yield_keeps_all);
    tcase_add_test(tests, the_floor_stays);
    return run_tests("squeeze", tests);
}
