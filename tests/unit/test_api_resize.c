/* test_api_resize.c: a pool that grows and shrinks while it is in use. */
#include "api.h"

START_TEST(growing_takes_effect_at_once)
{
    api_open(2, NULL);
    kvk_seq seq = api_text(100, 8);
    ck_assert_int_eq(kvk_reserve(cache, seq, 1, KVK_RECLAIM), KVK_ENEVER);
    ck_assert_int_eq(kvk_resize(cache, 4, 0), 0);
    ck_assert_uint_eq(api_stats().n_pages, 4);
    ck_assert_int_eq(kvk_reserve(cache, seq, 5, KVK_RECLAIM), 2);
    CHECK_TABLE(seq, 0, 0, 1, 2, 3);
    api_close();
}
END_TEST

START_TEST(shrinking_drains_what_is_used)
{
    api_open(6, NULL);
    kvk_seq seq = api_text(100, 16);
    ck_assert_int_eq(kvk_resize(cache, 2, 0), 2); /* pages 4 and 5 go at once */
    kvk_stats stats = api_stats();
    ck_assert_uint_eq(stats.n_pages, 4);
    ck_assert_uint_eq(stats.pages_draining, 2);
    ck_assert_uint_eq(stats.pages_used, 4);
    CHECK_TABLE(seq, 0, 0, 1, 2, 3); /* its tables stay as they are */
    ck_assert_int_eq(api_attach(api_seq(), 100, 17), 8);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 2);
    stats = api_stats();
    ck_assert_uint_eq(stats.n_pages, 2);
    ck_assert_uint_eq(stats.pages_draining, 0);
    ck_assert_uint_eq(stats.pages_used, 2);
    api_close();
}
END_TEST

START_TEST(pages_that_went_come_back_the_lowest_first)
{
    api_open(4, NULL);
    kvk_seq_close(cache, api_text(100, 16));
    ck_assert_int_eq(kvk_resize(cache, 1, 0), 0);
    ck_assert_uint_eq(api_stats().pages_cached, 1);
    ck_assert_int_eq(kvk_resize(cache, 4, 0), 0);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 3);
    CHECK_TABLE(seq, 0, 1, 2, 3);
    ck_assert_int_eq(api_attach(api_seq(), 100, 17), 4);
    api_close();
}
END_TEST

START_TEST(used_pages_are_moved_into_what_is_left)
{
    kvk_move moves[2];
    kvk_seq child;
    api_open(6, NULL);
    kvk_seq first = api_text(100, 8), second = api_text(200, 8);
    ck_assert_int_eq(kvk_seq_fork(cache, second, &child), 0);
    kvk_seq_close(cache, first); /* cached: 1, then 0 */
    ck_assert_int_eq(kvk_resize(cache, 2, 1), 0);
    CHECK_TABLE(second, 0, 1, 0);
    CHECK_TABLE(child, 0, 1, 0);
    ck_assert_uint_eq(api_page(0).refs, 2);
    ck_assert_int_eq(kvk_moves_take(cache, moves, 2), 2);
    ck_assert(moves[0].kind == KVK_MOVE_COPY && moves[0].src == 2 && moves[0].dst == 1 && moves[0].n_tokens == 4);
    ck_assert(moves[1].kind == KVK_MOVE_COPY && moves[1].src == 3 && moves[1].dst == 0 && moves[1].n_tokens == 4);
    ck_assert_uint_eq(api_stats().n_pages, 2);
    ck_assert_int_eq(api_attach(api_seq(), 200, 9), 8);
    api_close();
}
END_TEST

START_TEST(without_other_pages_nothing_is_moved)
{
    api_open(4, NULL);
    kvk_seq seq = api_text(100, 16);
    ck_assert_int_eq(kvk_resize(cache, 2, 1), 2);
    CHECK_TABLE(seq, 0, 0, 1, 2, 3);
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 0), 0);
    api_close();
}
END_TEST

START_TEST(pages_in_flight_are_not_moved)
{
    api_open(4, NULL);
    kvk_seq first = api_text(100, 4), second = api_text(200, 4);
    kvk_batch batch = api_plan(second, 0);
    kvk_seq_close(cache, first);
    ck_assert_int_eq(kvk_resize(cache, 1, 1), 1);
    CHECK_TABLE(second, 0, 1);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 0);
    ck_assert_int_eq(kvk_resize(cache, 1, 1), 0);
    CHECK_TABLE(second, 0, 0);
    api_close();
}
END_TEST

START_TEST(a_pinned_page_stays_until_it_is_unpinned)
{
    api_open(2, NULL);
    kvk_seq first = api_text(100, 4), second = api_text(200, 4), again = api_seq();
    ck_assert_int_eq(kvk_pin(cache, second, 4), 1);
    kvk_seq_close(cache, second);
    ck_assert_int_eq(kvk_resize(cache, 1, 0), 1);
    ck_assert_uint_eq(api_page(1).state, KVK_PAGE_CACHED);
    ck_assert_int_eq(api_attach(again, 200, 5), 4);
    ck_assert_int_eq(kvk_unpin(cache, again, 4), 1);
    kvk_seq_close(cache, again);
    ck_assert_uint_eq(api_stats().n_pages, 1);
    kvk_seq_close(cache, first);
    api_close();
}
END_TEST

START_TEST(a_pin_moves_with_its_page)
{
    api_open(3, NULL);
    kvk_seq first = api_text(100, 4), second = api_text(200, 4);
    ck_assert_int_eq(kvk_pin(cache, second, 4), 1);
    kvk_seq_close(cache, first);
    ck_assert_int_eq(kvk_resize(cache, 1, 1), 0);
    CHECK_TABLE(second, 0, 0);
    kvk_seq_close(cache, second);
    ck_assert_uint_eq(api_stats().pages_pinned, 1);
    ck_assert_int_eq(kvk_reserve(cache, api_seq(), 1, KVK_RECLAIM), KVK_ENOPAGE);
    api_close();
}
END_TEST

static void watermark_3(kvk_config *config)
{
    config->watermark = 3;
}

START_TEST(the_watermark_is_no_larger_than_the_pool)
{
    kvk_config config = {.size = sizeof config};
    api_open(4, watermark_3);
    ck_assert_int_eq(kvk_resize(cache, 2, 0), 0);
    ck_assert_int_eq(kvk_cache_config(cache, &config), 0);
    ck_assert_uint_eq(config.n_pages, 2);
    ck_assert_uint_eq(config.watermark, 2);
    api_close();
}
END_TEST

START_TEST(a_pool_has_one_page_at_least)
{
    api_open(4, NULL);
    ck_assert_int_eq(kvk_resize(cache, 0, 0), KVK_EINVAL);
    ck_assert_int_eq(kvk_resize(cache, KVK_MAX_PAGES + 1, 0), KVK_EINVAL);
    ck_assert_int_eq(kvk_resize(NULL, 4, 0), KVK_EINVAL);
    ck_assert_int_eq(kvk_resize(cache, KVK_MAX_PAGES, 0), 0);
    ck_assert_int_eq(kvk_resize(cache, 1, 0), 0);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_resize", growing_takes_effect_at_once, shrinking_drains_what_is_used,
                     pages_that_went_come_back_the_lowest_first, used_pages_are_moved_into_what_is_left,
                     without_other_pages_nothing_is_moved, pages_in_flight_are_not_moved,
                     a_pinned_page_stays_until_it_is_unpinned, a_pin_moves_with_its_page,
                     the_watermark_is_no_larger_than_the_pool, a_pool_has_one_page_at_least);
}
