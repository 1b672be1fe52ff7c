/* test_drafts.c: draft tokens with a row of masses for each query. What is accepted counts as if it had been decoded
 * token by token; what is rejected never was. */
#include "cases.h"
#include "run_tests.h"

static const uint32_t page_sizes[] = {1, 4, 16};

/* A sequence that decodes plainly and its peer that is given drafts, in a cache each. */
typedef struct race {
    lab plain, drafting;
    subject a, b;
    char text[CASE_TEXT];
} race;

static void start_with(race *r, twin_setup setup, lab_setup caches, mass_kind kind)
{
    setup.max_tokens = 52 * caches.page_tokens + 60;
    lab_open(&r->plain, &caches);
    lab_open(&r->drafting, &caches);
    r->a = lab_subject(&r->plain, setup, (masses){kind, 5, 0});
    r->b = lab_driven(&r->drafting, setup, (masses){kind, 5, 0});
}

static void start(race *r, const policy_case *c, uint32_t page_tokens, mass_kind kind)
{
    twin_setup setup = case_setup(c, page_tokens, r->text);
    setup.slack = page_tokens == 4 ? 2 : 0;
    start_with(r, setup, (lab_setup){.page_tokens = page_tokens, .n_groups = 2, .near = c->near}, kind);
}

static void finish(race *r)
{
    kvk_eviction_info a = lab_info(&r->plain, &r->a), b = lab_info(&r->drafting, &r->b);
    ck_assert_uint_eq(a.pages_evicted, b.pages_evicted);
    ck_assert_uint_eq(a.tokens_evicted, b.tokens_evicted);
    ck_assert_uint_eq(a.queries, b.queries);
    ck_assert_uint_le(a.first_taint, b.first_taint); /* drafts saw what was evicted between them */
    lab_end_subject(&r->plain, &r->a);
    lab_end_subject(&r->drafting, &r->b);
    lab_close(&r->plain);
    lab_close(&r->drafting);
}

static void draft(race *r, uint32_t n_query, uint32_t accepted)
{
    const lab_entry entry = {&r->b, n_query, accepted, 1};
    lab_step(&r->drafting, &entry, 1);
    lab_reserve(&r->plain, &r->a, 1); /* trims, even if nothing is accepted */
    lab_decode(&r->plain, &r->a, r->a.twin->n_tokens + accepted);
    lab_same(&r->plain, &r->a, &r->drafting, &r->b);
}

/* `random` ranks by the number of tokens, so it too decides alike. */
START_TEST(accept_all_is_plain_decoding)
{
    for (uint32_t i = 0; i < 3; i++)
        for (mass_kind kind = MASS_RANDOM; kind <= MASS_FEW; kind++) {
            race r;
            start(&r, &policy_cases[_i], page_sizes[i], kind);
            for (uint32_t step = 0; r.a.twin->n_tokens < 50 * page_sizes[i]; step++) {
                uint32_t n = 1 + mass_hash(step, i, 0, 0) % (page_sizes[i] + 3);
                draft(&r, n, n);
            }
            finish(&r);
        }
}
END_TEST

START_TEST(what_is_rejected_never_was)
{
    for (uint32_t i = 0; i < 3; i++) {
        race r;
        start(&r, &policy_cases[_i], page_sizes[i], MASS_RANDOM);
        for (uint32_t step = 0; r.a.twin->n_tokens < 50 * page_sizes[i]; step++) {
            uint32_t n = 1 + mass_hash(step, i, 1, 0) % (page_sizes[i] + 4);
            draft(&r, n, mass_hash(step, i, 2, 0) % (n + 1));
        }
        finish(&r);
    }
}
END_TEST

/* A budget by share of the mass is looked at once per page. */
START_TEST(targets_are_met_alike)
{
    const twin_setup setup = {.policy = "h2o:recent=16", .budget = 400, .target = 0.9, .floor = 40};
    race r;
    start_with(&r, setup, (lab_setup){.page_tokens = 4, .n_groups = 2}, MASS_RANDOM);
    for (uint32_t step = 0; r.a.twin->n_tokens < 200; step++)
        draft(&r, 1 + step % 7, step % 5 ? 1 + step % 7 : 0);
    finish(&r);
}
END_TEST

/* Three rejections in a row leave tables, scores and counters as they were. */
START_TEST(reject_all_changes_nothing)
{
    race r;
    start(&r, &policy_cases[_i], 4, MASS_RANDOM);
    for (uint32_t step = 0; r.a.twin->n_tokens < 200; step++) {
        draft(&r, 3, 3);
        for (uint32_t i = 0; i < 3; i++)
            draft(&r, 2 + i * 3, 0);
    }
    finish(&r);
}
END_TEST

/* The twin does the same with drafts, where sums leave no near ties. */
START_TEST(the_twin_drafts_too)
{
    static const char *const exact[] = {"h2o:recent=20",
                                        "lru",
                                        "scissorhands:history=30",
                                        "snapkv",
                                        "streaming",
                                        "h2o:exit=1:recent=24",
                                        "keep:half_life=0:reserve=0"};
    twin_setup setup = {.policy = exact[_i], .budget = 80, .max_tokens = 300};
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 2});
    subject s = lab_subject(&l, setup, (masses){MASS_RANDOM, 11, 0});
    for (uint32_t step = 0; s.twin->n_tokens < 250; step++) {
        uint32_t n = 1 + mass_hash(step, 3, 3, 3) % 11;
        const lab_entry entry = {&s, n, mass_hash(step, 4, 4, 4) % (n + 1), 1};
        lab_step(&l, &entry, 1);
    }
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("drafts");
    tcase_add_loop_test(tests, accept_all_is_plain_decoding, 0, (int)n_policy_cases);
    tcase_add_loop_test(tests, what_is_rejected_never_was, 0, (int)n_policy_cases);
    tcase_add_test(tests, targets_are_met_alike);
    tcase_add_loop_test(tests, reject_all_changes_nothing, 0, (int)n_policy_cases);
    tcase_add_loop_test(tests, the_twin_drafts_too, 0, 7);
    return run_tests("drafts", tests);
}
