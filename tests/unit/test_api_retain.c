/* test_api_retain.c: pins, retention priorities and their durations. */
#include "api.h"

enum { PROMPT = 256 };

START_TEST(a_pin_survives_close_and_blocks_reclaim_and_reset)
{
    uint32_t in_use;
    api_open(3, NULL);
    kvk_seq seq = api_text(100, 8), other = api_seq();
    ck_assert_int_eq(kvk_pin(cache, seq, 8), 2);
    kvk_seq_close(cache, seq);
    ck_assert_uint_eq(api_stats().pages_cached, 2);
    ck_assert_uint_eq(api_stats().pages_pinned, 2);
    ck_assert_int_eq(kvk_can_reserve(cache, other, 8, KVK_RECLAIM), KVK_LATER);
    ck_assert_int_eq(kvk_reserve(cache, other, 8, KVK_RECLAIM), KVK_ENOPAGE);
    ck_assert_int_eq(kvk_prefix_reset(cache, &in_use), KVK_EBUSY);
    ck_assert_uint_eq(in_use, 2);
    ck_assert_int_eq(api_attach(other, 100, 9), 8);
    ck_assert_int_eq(kvk_unpin(cache, other, 8), 2);
    kvk_seq_close(cache, other);
    ck_assert_uint_eq(api_stats().pages_pinned, 0);
    ck_assert_int_eq(kvk_prefix_reset(cache, &in_use), 2);
    api_close();
}
END_TEST

START_TEST(a_page_is_unpinned_as_often_as_pinned)
{
    api_open(1, NULL);
    kvk_seq seq = api_text(100, 4), other = api_seq();
    ck_assert_int_eq(kvk_pin(cache, seq, 4), 1);
    ck_assert_int_eq(kvk_pin(cache, seq, 4), 1);
    ck_assert_int_eq(kvk_unpin(cache, seq, 4), 1);
    kvk_seq_close(cache, seq);
    ck_assert_int_eq(kvk_reserve(cache, other, 1, KVK_RECLAIM), KVK_ENOPAGE);
    ck_assert_int_eq(api_attach(other, 100, 5), 4);
    ck_assert_int_eq(kvk_unpin(cache, other, 4), 1);
    ck_assert_int_eq(kvk_unpin(cache, other, 4), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(a_page_has_at_most_65535_pins)
{
    api_open(2, NULL);
    kvk_seq seq = api_text(100, 8);
    ck_assert_int_eq(kvk_pin(cache, seq, 8), 2);
    for (int i = 1; i < 65535; i++)
        ck_assert_int_eq(kvk_pin(cache, seq, 4), 1);
    ck_assert_int_eq(kvk_pin(cache, seq, 8), KVK_EINVAL);
    ck_assert_int_eq(kvk_unpin(cache, seq, 8), 2);
    ck_assert_int_eq(kvk_unpin(cache, seq, 8), KVK_EINVAL); /* page 1 had one pin: it did not get a second */
    ck_assert_int_eq(kvk_pin(cache, seq, 4), 1);
    api_close();
}
END_TEST

static void by_nothing(kvk_config *config)
{
    config->content = KVK_CONTENT_NONE;
}

START_TEST(only_full_findable_pages_are_pinned)
{
    api_open(4, NULL);
    kvk_seq seq = api_text(100, 6);
    ck_assert_int_eq(kvk_pin(cache, seq, 7), KVK_EINVAL); /* not committed */
    ck_assert_int_eq(kvk_pin(cache, seq, 6), 1);
    ck_assert_int_eq(kvk_pin(cache, seq, 3), 0);
    ck_assert_int_eq(kvk_pin(cache, 12345, 4), KVK_ESTALE);
    api_close();
    api_open(4, by_nothing);
    seq = api_text(100, 6);
    ck_assert_int_eq(kvk_pin(cache, seq, 4), KVK_ESTATE);
    ck_assert_int_eq(kvk_unpin(cache, seq, 4), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(a_pinned_page_is_copied_before_it_is_written)
{
    kvk_move move;
    api_open(4, NULL);
    kvk_seq seq = api_text(100, 4);
    ck_assert_int_eq(kvk_pin(cache, seq, 4), 1);
    ck_assert_int_eq(kvk_truncate(cache, seq, 3), 0);
    ck_assert_int_eq(api_commit(seq, 7, 1), KVK_ESTATE);
    ck_assert_int_eq(kvk_reserve(cache, seq, 1, KVK_RECLAIM), 1);
    CHECK_TABLE(seq, 0, 1);
    ck_assert_int_eq(kvk_moves_take(cache, &move, 1), 1);
    ck_assert(move.kind == KVK_MOVE_COPY && move.src == 0 && move.dst == 1 && move.n_tokens == 3);
    ck_assert_uint_eq(api_stats().pages_pinned, 1);
    ck_assert_int_eq(api_attach(api_seq(), 100, 5), 4);
    api_close();
}
END_TEST

/* ---- Retention ---- */

static void pages_of_64(kvk_config *config)
{
    config->page_tokens = 64;
}

/* A sequence of whole pages of 64 tokens. */
static kvk_seq long_text(uint32_t first, uint32_t n)
{
    uint32_t tokens[PROMPT];
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = first + i;
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, n, KVK_RECLAIM), n / 64);
    ck_assert_int_eq(kvk_commit(cache, seq, &(kvk_text){.n_tokens = n, .tokens = tokens}), n / 64);
    return seq;
}

/* TensorRT-LLM's example: {[0, 64): 80, [64, 128): 50} gives the blocks 80, 50, default, default. */
START_TEST(a_page_has_the_priority_of_its_range)
{
    const kvk_retention ranges[] = {{.begin = 0, .end = 64, .priority = 80}, {.begin = 64, .end = 128, .priority = 50}};
    api_open(5, pages_of_64);
    kvk_seq seq = long_text(1000, PROMPT), other = long_text(2000, 64), third = api_seq();
    ck_assert_int_eq(kvk_retain(cache, seq, ranges, 2), 0);
    kvk_seq_close(cache, seq);   /* 3, 2, 1, 0 */
    kvk_seq_close(cache, other); /* 4 */
    ck_assert_int_eq(kvk_reserve(cache, third, 5 * 64, KVK_RECLAIM), 5);
    CHECK_TABLE(third, 0, 3, 2, 4, 1, 0);
    api_close();
}
END_TEST

/* A range to the end of the sequence, and the first that holds a token decides. */
START_TEST(the_first_range_decides)
{
    const kvk_retention ranges[] = {{.begin = 64, .end = 65, .priority = 90},
                                    {.begin = 0, .end = UINT32_MAX, .priority = 10}};
    api_open(3, pages_of_64);
    kvk_seq seq = long_text(1000, 128), other = long_text(2000, 64), third = api_seq();
    kvk_seq_close(cache, other); /* 2 first, at the default */
    ck_assert_int_eq(kvk_retain(cache, seq, ranges, 2), 0);
    kvk_seq_close(cache, seq); /* 1 at 90, 0 at 10 */
    ck_assert_int_eq(kvk_reserve(cache, third, 3 * 64, KVK_RECLAIM), 3);
    CHECK_TABLE(third, 0, 1, 0, 2); /* page 0 is due first, and its leaf goes before it */
    api_close();
}
END_TEST

/* Which of two pages is reclaimed first: one retained for 1000 ms at 80, or one released after `now`. */
static void check_first(uint64_t now, uint32_t page)
{
    const kvk_retention range = {.begin = 0, .end = UINT32_MAX, .priority = 80, .duration_ms = 1000};
    uint32_t taken;
    api_open(2, NULL);
    kvk_seq kept = api_text(100, 4), other = api_text(200, 4), third = api_seq();
    ck_assert_int_eq(kvk_retain(cache, kept, &range, 1), 0);
    kvk_seq_close(cache, kept);
    ck_assert_int_eq(kvk_set_time(cache, now), 0);
    kvk_seq_close(cache, other);
    ck_assert_int_eq(kvk_reserve(cache, third, 1, KVK_RECLAIM), 1);
    ck_assert_int_eq(kvk_seq_table(cache, third, 0, &taken, 1), 1);
    ck_assert_uint_eq(taken, page);
    api_close();
}

START_TEST(after_its_duration_a_page_falls_back)
{
    check_first(999, 1);
    check_first(1000, 0);
}
END_TEST

START_TEST(time_does_not_go_back)
{
    api_open(2, NULL);
    ck_assert_int_eq(kvk_set_time(cache, 10), 0);
    ck_assert_int_eq(kvk_set_time(cache, 10), 0);
    ck_assert_int_eq(kvk_set_time(cache, 9), KVK_EINVAL);
    ck_assert_int_eq(kvk_set_time(NULL, 11), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(ranges_are_checked)
{
    kvk_retention ranges[KVK_MAX_RETENTIONS + 1];
    api_open(2, NULL);
    kvk_seq seq = api_seq();
    for (uint32_t i = 0; i <= KVK_MAX_RETENTIONS; i++)
        ranges[i] = (kvk_retention){.begin = i, .end = i + 1, .priority = 100};
    ck_assert_int_eq(kvk_retain(cache, seq, ranges, KVK_MAX_RETENTIONS + 1), KVK_EINVAL);
    ck_assert_int_eq(kvk_retain(cache, seq, ranges, KVK_MAX_RETENTIONS), 0);
    ck_assert_int_eq(kvk_retain(cache, seq, NULL, 1), KVK_EINVAL);
    ck_assert_int_eq(kvk_retain(cache, seq, NULL, 0), 0);
    ranges[0].priority = 101;
    ck_assert_int_eq(kvk_retain(cache, seq, ranges, 1), KVK_EINVAL);
    ranges[0] = (kvk_retention){.begin = 4, .end = 4};
    ck_assert_int_eq(kvk_retain(cache, seq, ranges, 1), KVK_EINVAL);
    ck_assert_int_eq(kvk_retain(cache, 12345, NULL, 0), KVK_ESTALE);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_retain", a_pin_survives_close_and_blocks_reclaim_and_reset,
                     a_page_is_unpinned_as_often_as_pinned, a_page_has_at_most_65535_pins,
                     only_full_findable_pages_are_pinned, a_pinned_page_is_copied_before_it_is_written,
                     a_page_has_the_priority_of_its_range, the_first_range_decides,
                     after_its_duration_a_page_falls_back, time_does_not_go_back, ranges_are_checked);
}
