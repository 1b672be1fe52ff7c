/* test_prefill.c: prompts in chunks, observed as sums; then decoding, forks whose ways part, several sequences in a
 * batch. */
#include "cases.h"
#include "run_tests.h"

static const uint32_t page_sizes[] = {1, 4, 16};

/* Chunks of uneven sizes, some of which end inside a page. */
static void prefill(lab *l, subject *s, uint32_t n_tokens)
{
    for (uint32_t chunk = 0; s->twin->n_tokens < n_tokens; chunk++) {
        uint32_t n = 1 + mass_hash(chunk, l->page_tokens, 0, 0) % (3 * l->page_tokens),
                 left = n_tokens - s->twin->n_tokens;
        lab_run(l, s, n < left ? n : left);
    }
}

START_TEST(chunks_then_decode)
{
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t n_prompt = 0; n_prompt < 2; n_prompt++) {
            char text[CASE_TEXT];
            uint32_t prompt = 35 * page_sizes[i] + 1;
            twin_setup setup = case_setup(&policy_cases[_i], page_sizes[i], text);
            setup.max_tokens = 50 * page_sizes[i];
            setup.n_prompt = n_prompt ? prompt : 0;
            lab l;
            lab_open(&l, &(lab_setup){.page_tokens = page_sizes[i], .n_groups = 2, .near = policy_cases[_i].near});
            subject s = lab_subject(&l, setup, (masses){MASS_RANDOM, i, 0});
            prefill(&l, &s, prompt);
            lab_decode(&l, &s, setup.max_tokens);
            lab_end_subject(&l, &s);
            lab_close(&l);
        }
}
END_TEST

START_TEST(forks_go_their_own_ways)
{
    for (uint32_t i = 0; i < 3; i++) {
        char text[CASE_TEXT];
        uint32_t pt = page_sizes[i];
        twin_setup setup = case_setup(&policy_cases[_i], pt, text);
        setup.max_tokens = 60 * pt;
        lab l;
        lab_open(&l, &(lab_setup){.page_tokens = pt, .n_groups = 1, .near = policy_cases[_i].near});
        subject s = lab_subject(&l, setup, (masses){MASS_RANDOM, 1, 0});
        prefill(&l, &s, 30 * pt - 1);
        subject fork = lab_fork(&l, &s, (masses){MASS_RANDOM, 2, 0});
        lab_compare(&l, &fork);
        lab_decode(&l, &s, 45 * pt);
        lab_decode(&l, &fork, 40 * pt);
        subject third = lab_fork(&l, &fork, (masses){MASS_FEW, 3, 0});
        lab_end_subject(&l, &s);
        lab_decode(&l, &third, 60 * pt);
        lab_decode(&l, &fork, 60 * pt);
        lab_end_subject(&l, &third);
        lab_end_subject(&l, &fork);
        lab_close(&l);
    }
}
END_TEST

/* Entries of different lengths, one of them of a sequence without a policy: each finds its own masses. */
START_TEST(a_batch_of_several)
{
    char text[CASE_TEXT];
    twin_setup setup = case_setup(&policy_cases[_i], 4, text);
    setup.max_tokens = 300;
    lab l;
    lab_open(&l, &(lab_setup){.page_tokens = 4, .n_groups = 2, .near = policy_cases[_i].near});
    subject a = lab_subject(&l, setup, (masses){MASS_RANDOM, 1, 0}), plain = {.masses = {MASS_RANDOM, 2, 4}};
    subject b = lab_subject(&l, setup, (masses){MASS_FEW, 3, 0});
    ck_assert_int_eq(kvk_seq_open(l.cache, NULL, &plain.seq), 0);
    for (uint32_t i = 0; i < 90; i++) {
        uint32_t n = i % 7 == 0 ? 8 : 1;
        const lab_entry entries[] = {{&a, n, n, 0}, {&plain, 2, 2, 0}, {&b, 3, i % 5 ? 3 : 0, 0}};
        lab_step(&l, entries, 3);
    }
    lab_end_subject(&l, &a);
    lab_end_subject(&l, &b);
    lab_end_subject(&l, &plain);
    lab_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("prefill");
    tcase_add_loop_test(tests, chunks_then_decode, 0, (int)n_policy_cases);
    tcase_add_loop_test(tests, forks_go_their_own_ways, 0, (int)n_policy_cases);
    tcase_add_loop_test(tests, a_batch_of_several, 0, (int)n_policy_cases);
    return run_tests("prefill", tests);
}
