/* test_api_windows.c: groups of layers that attend to a window only. */
#include "api.h"

/* Pages of 2 tokens and a window of 4, as in vLLM's tests of its sliding window manager. */
static void window_4(kvk_config *config)
{
    static const kvk_group groups[] = {{.window = 4}};
    config->page_tokens = 2;
    config->groups = groups;
}

static void with_a_full_group(kvk_config *config)
{
    static const kvk_group groups[] = {{.window = 0}, {.window = 4}};
    config->page_tokens = 2;
    config->n_groups = 2;
    config->groups = groups;
}

START_TEST(pages_go_that_no_later_token_attends_to)
{
    api_open(8, window_4);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 6);
    ck_assert_int_eq(api_commit(seq, 100, 4), 2);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 0); /* token 4 attends to tokens 1 .. 4 */
    ck_assert_int_eq(api_commit(seq, 104, 1), 0);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 2); /* token 5 to tokens 2 .. 5 */
    CHECK_TABLE(seq, 0, 1, 2, 3, 4, 5);
    ck_assert_int_eq(api_commit(seq, 105, 2), 1);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 4);
    ck_assert_int_eq(api_commit(seq, 107, 4), 2);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 8);
    CHECK_TABLE(seq, 0, 4, 5);
    ck_assert_uint_eq(api_info(seq).n_pages, 2);
    ck_assert_uint_eq(api_stats().pages_cached, 4);
    api_close();
}
END_TEST

START_TEST(a_sequence_may_be_longer_than_the_pool)
{
    api_open(4, window_4);
    kvk_seq seq = api_seq();
    for (uint32_t token = 0; token < 50; token++) {
        ck_assert_int_ge(kvk_reserve(cache, seq, 1, KVK_RECLAIM), 0);
        ck_assert_int_ge(api_commit(seq, token, 1), 0);
    }
    ck_assert_uint_eq(api_info(seq).n_tokens, 50);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 46);
    api_close();
}
END_TEST

START_TEST(a_full_group_keeps_what_a_window_lets_go)
{
    api_open(12, with_a_full_group);
    kvk_seq seq = api_text(100, 10);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 0);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 1), 6);
    ck_assert_uint_eq(api_info(seq).n_pages, 5); /* the longest table */
    ck_assert_int_eq(kvk_seq_table(cache, seq, 1, NULL, 0), 2);
    api_close();
}
END_TEST

START_TEST(a_hit_needs_only_the_window)
{
    api_open(6, window_4);
    kvk_seq_close(cache, api_text(100, 10)); /* released: 0, 1, 2 when they went, then 4, 3 */
    kvk_seq other = api_seq(), again = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, other, 6, KVK_RECLAIM), 3);
    CHECK_TABLE(other, 0, 5, 0, 1);
    ck_assert_int_eq(api_attach(again, 100, 11), 10);
    ck_assert_int_eq(kvk_seq_first(cache, again, 0), 6);
    CHECK_TABLE(again, 0, 3, 4);
    api_close();
}
END_TEST

START_TEST(a_hit_ends_before_a_gap_in_the_window)
{
    api_open(6, window_4);
    kvk_seq_close(cache, api_text(100, 10));
    kvk_seq other = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, other, 10, KVK_RECLAIM), 5);
    CHECK_TABLE(other, 0, 5, 0, 1, 2, 4);
    ck_assert_int_eq(api_attach(api_seq(), 100, 11), 0); /* page 3 alone is not a window */
    api_close();
}
END_TEST

START_TEST(truncate_does_not_go_behind_the_window)
{
    api_open(8, window_4);
    kvk_seq seq = api_text(100, 8);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 4);
    ck_assert_int_eq(kvk_truncate(cache, seq, 6), KVK_ESTATE); /* token 6 attends to token 3 */
    ck_assert_int_eq(kvk_truncate(cache, seq, 7), 0);          /* token 7 to token 4 */
    ck_assert_uint_eq(api_info(seq).n_tokens, 7);
    ck_assert_int_eq(kvk_truncate(cache, seq, 0), 2); /* all may always go */
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), 0);
    api_close();
}
END_TEST

START_TEST(a_plan_lists_the_window_and_where_it_stands)
{
    int32_t pages[4] = {-1, -1, -1, -1}, positions[4], last, indptr[2], seq_len;
    int64_t slot;
    kvk_plan plan;
    kvk_batch batch;
    api_open(8, window_4);
    kvk_seq seq = api_text(100, 5);
    ck_assert_int_eq(kvk_reserve(cache, seq, 1, KVK_RECLAIM), 0);
    const kvk_batch_entry entry = {.seq = seq, .n_query = 1};
    kvk_plan_init(&plan);
    plan.slots_cap = 1;
    plan.entries_cap = 1;
    plan.pages_cap = 4;
    plan.pages = pages;
    plan.positions = positions;
    plan.last_page_len = &last;
    plan.indptr = indptr;
    plan.seq_lens = &seq_len;
    plan.slots = &slot;
    ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), 0);
    ck_assert_uint_eq(plan.n_pages, 2);
    ck_assert_int_eq(indptr[1], 2);
    ck_assert(pages[0] == 1 && pages[1] == 2 && pages[2] == -1);
    ck_assert(positions[0] == 2 && positions[1] == 4);
    ck_assert_int_eq(last, 2);
    ck_assert_int_eq(seq_len, 6);
    ck_assert_int_eq(slot, 2 * 2 + 1);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 0);
    api_close();
}
END_TEST

START_TEST(first_knows_its_groups_and_handles)
{
    api_open(8, window_4);
    kvk_seq seq = api_text(100, 5);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 1), KVK_EINVAL);
    ck_assert_int_eq(kvk_seq_first(NULL, seq, 0), KVK_EINVAL);
    kvk_seq_close(cache, seq);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), KVK_ESTALE);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_windows", pages_go_that_no_later_token_attends_to, a_sequence_may_be_longer_than_the_pool,
                     a_full_group_keeps_what_a_window_lets_go, a_hit_needs_only_the_window,
                     a_hit_ends_before_a_gap_in_the_window, truncate_does_not_go_behind_the_window,
                     a_plan_lists_the_window_and_where_it_stands, first_knows_its_groups_and_handles);
}
