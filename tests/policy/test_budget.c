/* test_budget.c: a sequence never holds more than its budget and the pages of the batch that runs, and needs no larger
 * pool than that; budgets by share of the mass. */
#include "cases.h"
#include "run_tests.h"

enum { PT = 16, PAGES = 64 };

static uint32_t ceil_div(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static uint32_t longest_table(const lab *l, const subject *s)
{
    kvk_seq_info info = {.size = sizeof info};
    LAB_HOLDS(kvk_seq_info_get(l->cache, s->seq, &info) == 0);
    return info.n_pages;
}

static uint32_t pages_used(const lab *l)
{
    kvk_stats stats = {.size = sizeof stats};
    LAB_HOLDS(kvk_stats_get(l->cache, &stats) == 0);
    return stats.pages_used;
}

/* A chunk of a long prefill; what attention gave is cheap to make up, as it is not compared. */
static void run_chunk(lab *l, subject *s, uint32_t n_tokens, uint32_t n)
{
    static lab_batch b;
    const lab_entry entry = {s, n, n, 0};
    uint32_t most = PAGES + ceil_div(n_tokens + n, PT) - ceil_div(n_tokens, PT);
    LAB_HOLDS(kvk_can_reserve(l->cache, s->seq, n, KVK_RECLAIM) == KVK_OK);
    LAB_HOLDS(kvk_reserve(l->cache, s->seq, n, KVK_RECLAIM) >= 0);
    LAB_HOLDS(longest_table(l, s) <= most);
    lab_plan(l, &entry, 1, &b);
    LAB_HOLDS(longest_table(l, s) <= most);
    LAB_HOLDS(kvk_batch_end(l->cache, b.id, &b.result) >= 0);
    LAB_HOLDS(longest_table(l, s) <= most);
    LAB_HOLDS(pages_used(l) <= l->n_groups * most);
}

/* 100,000 tokens through a pool that holds the budget and one chunk, in each of two groups. */
static void prefill(const char *policy, uint32_t chunk)
{
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = PT, .n_groups = 2, .n_pages = 2 * (PAGES + ceil_div(chunk, PT))});
    subject s =
        lab_driven(&l, (twin_setup){.policy = policy, .budget = PAGES * PT, .slack = 2}, (masses){MASS_FEW, 1, 0});
    for (uint32_t n_tokens = 0, n; n_tokens < 100000; n_tokens += n) {
        n = 100000 - n_tokens < chunk ? 100000 - n_tokens : chunk;
        run_chunk(&l, &s, n_tokens, n);
    }
    kvk_eviction_info info = lab_info(&l, &s);
    ck_assert_uint_eq(info.pages_kept + info.pages_evicted, 2 * 6250);
    ck_assert_uint_eq(info.tokens_kept + info.tokens_evicted, 200000);
    lab_audit(&l);
    lab_end_subject(&l, &s);
    lab_close(&l);
}

START_TEST(a_long_prefill_stays_within_its_budget)
{
    static const char *const policies[] = {"h2o", "keep", "h2o:exit=1:recent=256", "scissorhands"};
    prefill(policies[_i], 512);
    prefill(policies[_i], 333);
}
END_TEST

/* A chunk shorter than a page trims as soon as the table is over its budget, though no page is needed. */
START_TEST(a_chunk_past_the_budget_is_trimmed_by_the_next_token)
{
    uint32_t numbers[TWIN_PAGES];
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 1});
    subject s = lab_driven(&l, (twin_setup){.policy = "window", .budget = 20}, (masses){MASS_ZERO, 0, 0});
    lab_run(&l, &s, 30);
    ck_assert_uint_eq(lab_table(&l, &s, 0, numbers), 8);
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 1, KVK_RECLAIM), 0); /* tokens 28 .. 31 have their page */
    ck_assert_uint_eq(lab_table(&l, &s, 0, numbers), 5);
    ck_assert_uint_eq(numbers[0], 3);
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 0, KVK_RECLAIM), 0);
    lab_run(&l, &s, 2);
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 1, KVK_RECLAIM), 1); /* the next token begins a page */
    ck_assert_uint_eq(lab_table(&l, &s, 0, numbers), 5);
    ck_assert_uint_eq(numbers[0], 4);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* A reservation that fails evicts nothing; what its own trimming frees counts as room. */
START_TEST(trimming_is_part_of_the_reservation)
{
    uint32_t numbers[TWIN_PAGES];
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 1, .n_pages = 6});
    subject s = lab_driven(&l, (twin_setup){.policy = "window", .budget = 20}, (masses){MASS_ZERO, 0, 0});
    lab_run(&l, &s, 24);
    ck_assert_int_eq(kvk_can_reserve(l.cache, s.seq, 9, KVK_RECLAIM), KVK_NEVER); /* 4 stay, 3 more don't fit in 6 */
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 9, KVK_RECLAIM), KVK_ENEVER);
    ck_assert_uint_eq(lab_table(&l, &s, 0, numbers), 6);
    ck_assert_int_eq(kvk_can_reserve(l.cache, s.seq, 8, KVK_RECLAIM), KVK_OK);
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 8, KVK_RECLAIM), 2);
    ck_assert_uint_eq(lab_table(&l, &s, 0, numbers), 6);
    ck_assert_uint_eq(numbers[0], 2);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* What a fork still holds does not come free: the pool of 6 has none for the page that is to come. */
START_TEST(shared_victims_make_no_room)
{
    uint32_t numbers[TWIN_PAGES];
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 1, .n_pages = 6});
    subject s = lab_driven(&l, (twin_setup){.policy = "window", .budget = 20}, (masses){MASS_ZERO, 0, 0});
    lab_run(&l, &s, 24);
    subject fork = lab_fork(&l, &s, (masses){MASS_ZERO, 0, 0});
    ck_assert_int_eq(kvk_can_reserve(l.cache, s.seq, 1, KVK_RECLAIM), KVK_LATER);
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 1, KVK_RECLAIM), KVK_ENOPAGE);
    ck_assert_uint_eq(lab_table(&l, &s, 0, numbers), 6);
    lab_end_subject(&l, &fork);
    ck_assert_int_eq(kvk_can_reserve(l.cache, s.seq, 1, KVK_RECLAIM), KVK_OK);
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 1, KVK_RECLAIM), 1);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* ---- What is refused ----------------------------------------------------------------------------------------- */

typedef struct refusal {
    const char *policy;
    uint32_t slack, least; /* least: tokens that are enough */
} refusal;

static int set(kvk_cache *cache, const refusal *r, uint32_t budget)
{
    kvk_seq seq;
    kvk_eviction e;
    kvk_eviction_init(&e);
    ck_assert_int_eq(kvk_policy_parse(r->policy, NULL, &e.choice, NULL, 0), 0);
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &seq), 0);
    e.budget = budget;
    e.slack = r->slack;
    return kvk_seq_set_eviction(cache, seq, &e);
}

/* One page must be left besides slack, sinks and recent pages. */
START_TEST(budgets_that_leave_nothing_are_refused)
{
    static const refusal cases[] = {
        {"tova", 0, 4},                  /* a page of 4 */
        {"tova", 2, 12},                 /* and slack */
        {"streaming:sinks=5", 0, 12},    /* 2 pages of sinks */
        {"h2o:sinks=4:recent=8", 0, 16}, /* a page of sinks, 2 recent ones */
        {"keep:recent_share=0:sinks=0", 0, 4},
    };
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 1});
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_msg(set(l.cache, &cases[i], cases[i].least) == 0, "%s with %u", cases[i].policy, cases[i].least);
    ck_assert_int_eq(set(l.cache, &cases[0], 3), KVK_EINVAL);
    ck_assert_int_eq(set(l.cache, &cases[1], 11), KVK_EINVAL);
    ck_assert_int_eq(set(l.cache, &cases[2], 11), KVK_EINVAL);
    ck_assert_int_eq(set(l.cache, &cases[3], 12), 0); /* half of the budget is one recent page */
    ck_assert_int_eq(set(l.cache, &cases[3], 11), KVK_EINVAL);
    ck_assert_int_eq(set(l.cache, &cases[4], 3), KVK_EINVAL);
    ck_assert_int_eq(set(l.cache, &(refusal){.policy = "full"}, 1), 0); /* never evicts, so it needs no room */
    lab_close(&l);
}
END_TEST

/* ---- A share of the mass ------------------------------------------------------------------------------------- */

START_TEST(a_target_keeps_its_share)
{
    static const char *const policies[] = {"h2o:sinks=4:recent=16", "keep:reserve=0", "keep:importance=2"};
    for (uint32_t slack = 0; slack < 2; slack++)
        for (uint32_t kind = 0; kind < 2; kind++) {
            lab l;
            lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 2});
            twin_setup setup = {.policy = policies[_i], .budget = kind ? 160 : 400, .slack = slack, .max_tokens = 400};
            setup.target = 0.9;
            setup.floor = 50;
            subject s = lab_subject(&l, setup, (masses){MASS_RANDOM, kind, 0});
            lab_decode(&l, &s, 400);
            ck_assert_uint_gt(s.twin->evicted, 20);
            lab_end_subject(&l, &s);
            lab_close(&l);
        }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("budget");
    tcase_add_loop_test(tests, a_long_prefill_stays_within_its_budget, 0, 4);
    tcase_add_test(tests, a_chunk_past_the_budget_is_trimmed_by_the_next_token);
    tcase_add_test(tests, trimming_is_part_of_the_reservation);
    tcase_add_test(tests, shared_victims_make_no_room);
    tcase_add_test(tests, budgets_that_leave_nothing_are_refused);
    tcase_add_loop_test(tests, a_target_keeps_its_share, 0, 3);
    return run_tests("budget", tests);
}
