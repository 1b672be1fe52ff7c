/* Pools of many sizes: one pass over the prompts against replays, and when one pass will not do. */
#include "run_tests.h"
#include "trace/curve.h"

#include <check.h>
#include <stdlib.h>

enum { PAGE = 4 };

/* A prompt of pages a, b, c, ... that ends with `rest` further tokens. finds_last: attach may take its last page. */
static void add(prompt_list *list, const char *pages, uint32_t rest, int finds_last)
{
    uint32_t n = 0;
    for (; pages[n]; n++)
        ck_assert_int_eq(belady_add(&list->refs, (uint32_t)(pages[n] - 'a')), 0);
    uint32_t tokens = n * PAGE + rest;
    listed_prompt p = {tokens, tokens + (finds_last && rest == 0), tokens, n};
    ck_assert_int_eq(prompt_list_add(list, &p), 0);
}

static void open_list(prompt_list *list)
{
    ck_assert_int_eq(prompt_list_open(list), 0);
    list->page_tokens = PAGE;
}

/* Prompts of a tree of pages, since a page is its content and all before: a, ab, abc, d, de, ... */
static void check(prompt_list *list, int is_stack)
{
    prompt_list_run once[32], each[32];
    uint32_t n = curve_sizes(list, once, 32);
    ck_assert_int_eq(curve_is_stack(list, KVK_RECLAIM_LRU), is_stack);
    ck_assert_uint_gt(n, 2);
    for (uint32_t i = 0; i < n; i++)
        each[i] = once[i];
    ck_assert_int_eq(curve_run(list, once, n), 0);
    ck_assert_int_eq(curve_sweep(list, each, n), 0);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(once[i].page_hits, each[i].page_hits);
        ck_assert_uint_eq(once[i].token_hits, each[i].token_hits);
        ck_assert_uint_eq(once[i].reclaimed_pages, each[i].reclaimed_pages);
    }
}

/* In pools of 3, 4, 5 and 6 pages. d drives c out of 3, e also b. */
START_TEST(hits_by_hand)
{
    prompt_list list;
    open_list(&list);
    add(&list, "abc", 0, 1);
    add(&list, "d", 0, 1);
    add(&list, "abc", 0, 1);
    add(&list, "e", 0, 1);
    add(&list, "abc", 0, 1);
    prompt_list_run runs[3] = {{.n_pages = 3}, {.n_pages = 4}, {.n_pages = 5}};
    ck_assert_int_eq(curve_run(&list, runs, 3), 0);
    ck_assert_uint_eq(runs[0].page_hits, 2 + 2);
    ck_assert_uint_eq(runs[1].page_hits, 3 + 3);
    ck_assert_uint_eq(runs[2].page_hits, 3 + 3);
    ck_assert_uint_eq(runs[0].reclaimed_pages, 4);
    ck_assert_uint_eq(runs[1].reclaimed_pages, 1);
    ck_assert_uint_eq(runs[2].reclaimed_pages, 0);
    ck_assert_uint_eq(runs[0].token_hits, 4 * PAGE);
    runs[0].n_pages = 2;
    ck_assert_int_eq(curve_run(&list, runs, 1), KVK_ENEVER);
    prompt_list_close(&list);
}
END_TEST

/* Prompts along branches of random length, with and without a partial page, from a fixed seed. */
static void add_random(prompt_list *list, uint64_t *random, int finds_last)
{
    static const char *const branches[] = {"abcdef", "abcghi", "abjkl", "mnop", "mnqrst", "uv", "wxyz"};
    for (int i = 0; i < 400; i++) {
        char pages[8] = "";
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        const char *branch = branches[(*random >> 33) % 7];
        uint32_t n = 1 + (uint32_t)(*random >> 40) % 6;
        for (uint32_t k = 0; k < n && branch[k]; k++)
            pages[k] = branch[k];
        add(list, pages, (*random >> 50) % 3 == 0 ? (uint32_t)(*random >> 55) % PAGE : 0, finds_last);
    }
}

START_TEST(one_pass_is_a_replay_for_each)
{
    uint64_t random = 1;
    for (int i = 0; i < 20; i++) {
        prompt_list list;
        open_list(&list);
        add_random(&list, &random, 1);
        check(&list, 1);
        prompt_list_close(&list);
    }
}
END_TEST

/* The last page of a prompt is there twice. */
START_TEST(prompts_that_end_with_a_page_are_replayed)
{
    uint64_t random = 7;
    prompt_list list;
    open_list(&list);
    add_random(&list, &random, 0);
    check(&list, 0);
    ck_assert_int_eq(curve_is_stack(&list, KVK_RECLAIM_FIFO), 0);
    prompt_list_close(&list);
}
END_TEST

START_TEST(sizes_are_all_different)
{
    prompt_list list;
    prompt_list_run runs[100];
    open_list(&list);
    ck_assert_uint_eq(curve_sizes(&list, runs, 100), 0);
    ck_assert_int_eq(curve_run(&list, runs, 0), 0);
    add(&list, "abc", 1, 1);
    add(&list, "defg", 0, 1);
    uint32_t n = curve_sizes(&list, runs, 100);
    ck_assert_uint_eq(n, 5);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_uint_eq(runs[i].n_pages, 4 + i);
    prompt_list_close(&list);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("curve");
    tcase_add_test(t, hits_by_hand);
    tcase_add_test(t, one_pass_is_a_replay_for_each);
    tcase_add_test(t, prompts_that_end_with_a_page_are_replayed);
    tcase_add_test(t, sizes_are_all_different);
    return run_tests("trace_curve", t);
}
