/* test_decode.c: token by token, every policy against its twin: after each step the library holds the pages that the
 * definition says. */
#include "cases.h"
#include "run_tests.h"

#include <stdio.h>

static const uint32_t page_sizes[] = {1, 4, 16};
static const uint32_t pages_of_text[] = {130, 60, 45};

/* Tables of three groups, of their own sizes or falling. */
static const uint32_t pages_by_group[TWIN_GROUPS] = {18, 24, 20};

typedef struct decode_case {
    uint32_t size, n_groups, slack; /* size: of page_sizes */
    masses masses;
    double slope;
    int by_group;
} decode_case;

static void decode(const policy_case *c, const decode_case *d)
{
    char text[CASE_TEXT];
    uint32_t page_tokens = page_sizes[d->size], budgets[TWIN_GROUPS];
    twin_setup setup = case_setup(c, page_tokens, text);
    setup.max_tokens = pages_of_text[d->size] * page_tokens;
    setup.slack = d->slack;
    setup.slope = d->slope;
    for (uint32_t g = 0; g < TWIN_GROUPS; g++)
        budgets[g] = pages_by_group[g] * page_tokens + g; /* not all are whole pages */
    setup.budgets = d->by_group ? budgets : NULL;
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = page_tokens, .n_groups = d->n_groups, .near = c->near});
    subject s = lab_subject(&l, setup, d->masses);
    lab_decode(&l, &s, setup.max_tokens);
    ck_assert_msg(l.near_ties * 50 <= l.evictions, "%s: %u near ties", text, (unsigned)l.near_ties);
    ck_assert(twin_is(s.twin, "full") ? s.twin->evicted == 0 : s.twin->evicted >= d->n_groups * 15);
    lab_end_subject(&l, &s);
    lab_close(&l);
}

START_TEST(one_group)
{
    for (uint32_t size = 0; size < 3; size++)
        for (uint32_t slack = 0; slack <= 2; slack += 2)
            for (uint32_t kind = 0; kind < MASS_KINDS; kind++)
                decode(&policy_cases[_i],
                       &(decode_case){.size = size, .n_groups = 1, .slack = slack, .masses = {kind, kind, 0}});
}
END_TEST

START_TEST(three_groups)
{
    for (uint32_t size = 0; size < 3; size++)
        for (uint32_t kind = 0; kind <= MASS_FEW; kind++)
            for (int by_group = 0; by_group < 2; by_group++)
                decode(&policy_cases[_i], &(decode_case){.size = size,
                                                         .n_groups = 3,
                                                         .slack = size,
                                                         .masses = {kind, 9, 0},
                                                         .slope = by_group ? 0 : 0.25,
                                                         .by_group = by_group});
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("decode");
    tcase_add_loop_test(tests, one_group, 0, (int)n_policy_cases);
    tcase_add_loop_test(tests, three_groups, 0, (int)n_policy_cases);
    return run_tests("decode", tests);
}
