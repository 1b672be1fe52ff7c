/* test_api_batches.c: batches in flight, what they accept, and limbo. */
#include "api.h"

START_TEST(planned_tokens_count_and_rejected_ones_are_taken_off)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 3);
    ck_assert_int_eq(kvk_reserve(cache, seq, 6, KVK_RECLAIM), 2);
    kvk_batch batch = api_plan(seq, 6);
    ck_assert_uint_eq(api_info(seq).n_tokens, 9);
    ck_assert_uint_eq(api_info(seq).n_in_flight, 1);
    ck_assert_int_eq(api_end(batch, 2), 0);
    ck_assert_uint_eq(api_info(seq).n_tokens, 5);
    ck_assert_uint_eq(api_info(seq).n_in_flight, 0);
    ck_assert_uint_eq(api_info(seq).n_pages, 3); /* they stay reserved */
    ck_assert_int_eq(api_end(batch, 2), KVK_ESTALE);
    api_close();
}
END_TEST

START_TEST(without_a_result_all_tokens_are_accepted)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 3);
    kvk_batch batch = api_plan(seq, 1);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 0);
    ck_assert_uint_eq(api_info(seq).n_tokens, 4);
    ck_assert_uint_eq(api_info(seq).n_committed, 3);
    api_close();
}
END_TEST

START_TEST(a_result_that_does_not_fit_the_plan_is_refused)
{
    const uint32_t accepted[2] = {0, 0};
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 2);
    kvk_batch batch = api_plan(seq, 2);
    ck_assert_int_eq(api_end(batch, 3), KVK_EINVAL);
    ck_assert_int_eq(kvk_batch_end(cache, batch, &(kvk_batch_result){sizeof(kvk_batch_result), 2, accepted, NULL}),
                     KVK_EINVAL);
    ck_assert_int_eq(kvk_batch_end(cache, batch, &(kvk_batch_result){0, 1, accepted, NULL}), KVK_EINVAL);
    ck_assert_int_eq(api_commit(seq, 102, 1), 0);
    ck_assert_int_eq(api_end(batch, 0), KVK_EINVAL); /* the one token is committed */
    ck_assert_uint_eq(api_info(seq).n_in_flight, 1);
    ck_assert_int_eq(api_end(batch, 1), 0);
    ck_assert_uint_eq(api_info(seq).n_tokens, 3);
    api_close();
}
END_TEST

START_TEST(tokens_that_a_later_batch_builds_on_cannot_be_rejected)
{
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 8, KVK_RECLAIM), 2);
    kvk_batch first = api_plan(seq, 3), second = api_plan(seq, 2);
    ck_assert_uint_eq(api_info(seq).n_in_flight, 2);
    ck_assert_int_eq(api_end(first, 2), KVK_EBUSY);
    ck_assert_int_eq(api_end(second, 1), 0);
    ck_assert_uint_eq(api_info(seq).n_tokens, 4);
    ck_assert_int_eq(api_end(first, 2), 0); /* the later one is no more in flight */
    ck_assert_uint_eq(api_info(seq).n_tokens, 2);
    api_close();
}
END_TEST

START_TEST(a_sequence_shortened_meanwhile_is_left_as_it_is)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 3);
    ck_assert_int_eq(kvk_reserve(cache, seq, 3, KVK_RECLAIM), 1);
    kvk_batch batch = api_plan(seq, 3);
    ck_assert_int_eq(kvk_truncate(cache, seq, 4), 1);
    ck_assert_int_eq(api_end(batch, 0), 1);
    ck_assert_uint_eq(api_info(seq).n_tokens, 4);
    api_close();
}
END_TEST

START_TEST(a_sequence_shortened_and_grown_again_is_left_as_it_is)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 3);
    ck_assert_int_eq(kvk_reserve(cache, seq, 3, KVK_RECLAIM), 1);
    kvk_batch batch = api_plan(seq, 3);
    ck_assert_int_eq(kvk_truncate(cache, seq, 2), 1);
    ck_assert_int_eq(kvk_reserve(cache, seq, 6, KVK_RECLAIM), 1);
    ck_assert_int_eq(api_commit(seq, 102, 6), 2);
    ck_assert_int_eq(api_end(batch, 0), 1);
    ck_assert_uint_eq(api_info(seq).n_tokens, 8);
    api_close();
}
END_TEST

START_TEST(pages_of_a_closed_sequence_wait_for_its_batch)
{
    api_open(4, NULL);
    kvk_seq seq = api_text(100, 6), other = api_seq();
    kvk_batch batch = api_plan(seq, 0);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 2);
    kvk_stats stats = api_stats();
    ck_assert_uint_eq(stats.pages_limbo, 2);
    ck_assert_uint_eq(stats.pages_free, 2);
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_LIMBO);
    ck_assert_int_eq(kvk_can_reserve(cache, other, 12, KVK_RECLAIM), KVK_LATER);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 2);
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_CACHED);
    ck_assert_uint_eq(api_page(1).state, KVK_PAGE_FREE);
    ck_assert_int_eq(kvk_can_reserve(cache, other, 12, KVK_RECLAIM), KVK_OK);
    api_close();
}
END_TEST

START_TEST(a_batch_of_others_holds_nothing_back)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 6);
    api_plan(api_text(500, 3), 0);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 2);
    ck_assert_uint_eq(api_stats().pages_limbo, 0);
    api_close();
}
END_TEST

START_TEST(a_page_shared_with_a_batch_waits_whoever_lets_it_go_last)
{
    kvk_seq child;
    api_open(8, NULL);
    kvk_seq parent = api_text(100, 4);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
    kvk_batch batch = api_plan(child, 0);
    ck_assert_int_eq(kvk_seq_close(cache, child), 0);
    ck_assert_int_eq(kvk_seq_close(cache, parent), 1); /* itself in no batch */
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_LIMBO);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 1);
    api_close();
}
END_TEST

START_TEST(pages_wait_for_every_batch_that_may_read_them)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 4);
    kvk_batch first = api_plan(seq, 0), second = api_plan(seq, 0);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 1);
    ck_assert_int_eq(kvk_batch_end(cache, second, NULL), 0);
    ck_assert_uint_eq(api_stats().pages_limbo, 1);
    ck_assert_int_eq(kvk_batch_end(cache, first, NULL), 1);
    api_close();
}
END_TEST

START_TEST(a_page_in_limbo_can_be_found_and_used_again)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 4), next = api_seq();
    kvk_batch batch = api_plan(seq, 0);
    kvk_seq_close(cache, seq);
    ck_assert_int_eq(api_attach(next, 100, 5), 4);
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_USED);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 0);
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_USED);
    ck_assert_int_eq(kvk_seq_close(cache, next), 1);
    api_close();
}
END_TEST

START_TEST(a_batch_handle_is_never_used_again)
{
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    kvk_batch first = api_plan(seq, 0);
    ck_assert_uint_ne(first, 0);
    ck_assert_int_eq(kvk_batch_end(cache, first, NULL), 0);
    kvk_batch second = api_plan(seq, 0);
    ck_assert_uint_ne(first, second);
    ck_assert_int_eq(kvk_batch_end(cache, first, NULL), KVK_ESTALE);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS(
        "api_batches", planned_tokens_count_and_rejected_ones_are_taken_off, without_a_result_all_tokens_are_accepted,
        a_result_that_does_not_fit_the_plan_is_refused, tokens_that_a_later_batch_builds_on_cannot_be_rejected,
        a_sequence_shortened_meanwhile_is_left_as_it_is, a_sequence_shortened_and_grown_again_is_left_as_it_is,
        pages_of_a_closed_sequence_wait_for_its_batch, a_batch_of_others_holds_nothing_back,
        a_page_shared_with_a_batch_waits_whoever_lets_it_go_last, pages_wait_for_every_batch_that_may_read_them,
        a_page_in_limbo_can_be_found_and_used_again, a_batch_handle_is_never_used_again);
}
