/* test_api_room.c: reserving, the efforts, copy-on-write and truncating. */
#include "api.h"

static void says_and_does(kvk_seq seq, uint32_t n_tokens, kvk_effort effort, int can, int result)
{
    ck_assert_int_eq(kvk_can_reserve(cache, seq, n_tokens, effort), can);
    kvk_stats before = api_stats();
    ck_assert_int_eq(kvk_reserve(cache, seq, n_tokens, effort), result);
    if (result < 0)
        ck_assert_uint_eq(api_stats().pages_free, before.pages_free);
}

START_TEST(tokens_take_whole_pages_and_fill_them_first)
{
    api_open(20, NULL);
    kvk_seq seq = api_seq();
    says_and_does(seq, 9, KVK_FREE_ONLY, KVK_OK, 3);
    says_and_does(seq, 12, KVK_FREE_ONLY, KVK_OK, 0); /* still none of them is used */
    ck_assert_int_eq(api_commit(seq, 100, 11), 2);
    says_and_does(seq, 1, KVK_FREE_ONLY, KVK_OK, 0);
    says_and_does(seq, 2, KVK_FREE_ONLY, KVK_OK, 1);
    says_and_does(seq, 0, KVK_FREE_ONLY, KVK_OK, 0);
    ck_assert_uint_eq(api_info(seq).n_pages, 4);
    ck_assert_uint_eq(api_info(seq).n_tokens, 11);
    api_close();
}
END_TEST

START_TEST(later_while_others_hold_pages_never_beyond_the_pool)
{
    api_open(4, NULL);
    kvk_seq first = api_text(100, 8), second = api_seq();
    says_and_does(second, 9, KVK_RECLAIM, KVK_LATER, KVK_ENOPAGE);
    says_and_does(second, 16, KVK_RECLAIM, KVK_LATER, KVK_ENOPAGE);
    says_and_does(second, 17, KVK_RECLAIM, KVK_NEVER, KVK_ENEVER);
    says_and_does(first, 9, KVK_RECLAIM, KVK_NEVER, KVK_ENEVER); /* what it holds counts */
    says_and_does(second, UINT32_MAX, KVK_EVICT, KVK_NEVER, KVK_ENEVER);
    kvk_seq_close(cache, first);
    says_and_does(second, 16, KVK_RECLAIM, KVK_OK, 4);
    api_close();
}
END_TEST

static void watermark_2(kvk_config *config)
{
    config->watermark = 2;
}

START_TEST(admission_leaves_the_watermark)
{
    api_open(5, watermark_2);
    kvk_seq first = api_seq(), second = api_seq();
    says_and_does(first, 13, KVK_FREE_ONLY, KVK_NEVER, KVK_ENEVER);
    says_and_does(first, 8, KVK_FREE_ONLY, KVK_OK, 2);
    says_and_does(second, 5, KVK_FREE_ONLY, KVK_LATER, KVK_ENOPAGE);
    says_and_does(second, 4, KVK_FREE_ONLY, KVK_OK, 1);
    says_and_does(second, 12, KVK_RECLAIM, KVK_OK, 2);
    says_and_does(second, 12, KVK_FREE_ONLY, KVK_OK, 0); /* room there is needs no page */
    api_close();
}
END_TEST

static void two_groups(kvk_config *config)
{
    config->n_groups = 2;
}

START_TEST(all_groups_get_their_pages_or_none_does)
{
    api_open(5, two_groups);
    kvk_seq seq = api_seq();
    says_and_does(seq, 12, KVK_RECLAIM, KVK_NEVER, KVK_ENEVER);
    says_and_does(seq, 8, KVK_RECLAIM, KVK_OK, 4);
    kvk_seq other = api_seq();
    says_and_does(other, 1, KVK_RECLAIM, KVK_LATER, KVK_ENOPAGE);
    ck_assert_uint_eq(api_stats().pages_free, 1);
    api_close();
}
END_TEST

START_TEST(cached_pages_are_room_and_free_ones_go_first)
{
    api_open(3, NULL);
    kvk_seq_close(cache, api_text(100, 8));
    ck_assert_uint_eq(api_stats().pages_cached, 2);
    kvk_seq seq = api_seq();
    says_and_does(seq, 8, KVK_FREE_ONLY, KVK_OK, 2);
    CHECK_TABLE(seq, 0, 2, 1);
    ck_assert_uint_eq(api_page(1).generation, 2);
    ck_assert_uint_eq(api_page(1).findable, 0);
    api_close();
}
END_TEST

START_TEST(the_partial_page_of_a_fork_is_copied_before_it_is_written)
{
    kvk_move move;
    kvk_seq child;
    api_open(8, NULL);
    kvk_seq parent = api_text(100, 6);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
    ck_assert_int_eq(api_commit(child, 7, 1), KVK_ESTATE); /* it would write what the parent sees */
    says_and_does(child, 1, KVK_RECLAIM, KVK_OK, 1);
    CHECK_TABLE(parent, 0, 0, 1);
    CHECK_TABLE(child, 0, 0, 2);
    ck_assert_int_eq(kvk_moves_take(cache, &move, 1), 1);
    ck_assert_uint_eq(move.kind, KVK_MOVE_COPY);
    ck_assert_uint_eq(move.group, 0);
    ck_assert_uint_eq(move.src, 1);
    ck_assert_uint_eq(move.dst, 2);
    ck_assert_uint_eq(move.n_tokens, 2);
    ck_assert_uint_eq(api_stats().cow_copies, 1);
    says_and_does(parent, 1, KVK_RECLAIM, KVK_OK, 0); /* its page is its own again */
    api_close();
}
END_TEST

START_TEST(a_fork_at_a_page_border_copies_nothing)
{
    kvk_seq child;
    api_open(8, NULL);
    kvk_seq parent = api_text(100, 8);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
    says_and_does(child, 1, KVK_RECLAIM, KVK_OK, 1);
    CHECK_TABLE(child, 0, 0, 1, 2);
    ck_assert_uint_eq(api_stats().cow_copies, 0);
    api_close();
}
END_TEST

START_TEST(no_sequence_waits_for_a_copy_of_its_own_page)
{
    api_open(1, NULL);
    kvk_seq seq = api_text(100, 4);
    ck_assert_int_eq(kvk_truncate(cache, seq, 3), 0);
    ck_assert_uint_eq(api_page(0).findable, 1);
    says_and_does(seq, 1, KVK_RECLAIM, KVK_OK, 0); /* the only page of the pool: it is written in place */
    ck_assert_uint_eq(api_page(0).findable, 0);
    ck_assert_int_eq(api_commit(seq, 7, 1), 1);
    ck_assert_int_eq(api_attach(api_seq(), 100, 5), 0);
    api_close();
}
END_TEST

START_TEST(truncate_gives_back_all_pages_past_the_end)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 10);
    ck_assert_int_eq(kvk_reserve(cache, seq, 10, KVK_RECLAIM), 2);
    ck_assert_int_eq(kvk_truncate(cache, seq, 11), KVK_EINVAL);
    ck_assert_int_eq(kvk_truncate(cache, seq, 10), 2); /* those reserved ahead */
    ck_assert_int_eq(kvk_truncate(cache, seq, 6), 1);
    kvk_seq_info info = api_info(seq);
    ck_assert_uint_eq(info.n_tokens, 6);
    ck_assert_uint_eq(info.n_committed, 6);
    CHECK_TABLE(seq, 0, 0, 1);
    ck_assert_uint_eq(api_page(1).findable, 1); /* it still holds what it held */
    ck_assert_int_eq(kvk_truncate(cache, seq, 0), 2);
    ck_assert_uint_eq(api_stats().pages_cached, 2);
    api_close();
}
END_TEST

START_TEST(names_go_on_from_what_truncate_kept)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 8);
    ck_assert_int_eq(kvk_truncate(cache, seq, 6), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 2, KVK_RECLAIM), 0);
    ck_assert_int_eq(api_commit(seq, 106, 2), 1); /* 100 .. 107 again */
    ck_assert_int_eq(api_attach(api_seq(), 100, 9), 8);
    api_close();
}
END_TEST

START_TEST(an_unknown_effort_is_refused)
{
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_can_reserve(cache, seq, 1, (kvk_effort)3), KVK_EINVAL);
    ck_assert_int_eq(kvk_reserve(cache, seq, 1, (kvk_effort)3), KVK_EINVAL);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_room", tokens_take_whole_pages_and_fill_them_first,
                     later_while_others_hold_pages_never_beyond_the_pool, admission_leaves_the_watermark,
                     all_groups_get_their_pages_or_none_does, cached_pages_are_room_and_free_ones_go_first,
                     the_partial_page_of_a_fork_is_copied_before_it_is_written, a_fork_at_a_page_border_copies_nothing,
                     no_sequence_waits_for_a_copy_of_its_own_page, truncate_gives_back_all_pages_past_the_end,
                     names_go_on_from_what_truncate_kept, an_unknown_effort_is_refused);
}
