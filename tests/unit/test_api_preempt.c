/* test_api_preempt.c: giving up whole sequences, by recompute and by swap, and whom to choose. */
#include "api.h"

static void host_3(kvk_config *config)
{
    config->host_pages = 3;
}

static void check_move(uint32_t kind, uint32_t src, uint32_t dst)
{
    kvk_move move;
    ck_assert_int_eq(kvk_moves_take(cache, &move, 1), 1);
    ck_assert_uint_eq(move.kind, kind);
    ck_assert_uint_eq(move.group, 0);
    ck_assert_uint_eq(move.src, src);
    ck_assert_uint_eq(move.dst, dst);
    ck_assert_uint_eq(move.n_tokens, 4);
}

START_TEST(recompute_empties_a_sequence_whose_content_stays)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 10);
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_RECOMPUTE), 3);
    ck_assert_uint_eq(api_info(seq).n_tokens, 0);
    ck_assert_uint_eq(api_info(seq).n_pages, 0);
    ck_assert_uint_eq(api_stats().preemptions, 1);
    ck_assert_int_eq(api_attach(seq, 100, 10), 8);
    api_close();
}
END_TEST

START_TEST(swap_moves_out_and_in)
{
    api_open(8, host_3);
    kvk_seq seq = api_text(100, 10), other = api_seq();
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), 3);
    check_move(KVK_MOVE_SWAP_OUT, 2, 0); /* the tail first */
    check_move(KVK_MOVE_SWAP_OUT, 1, 1);
    check_move(KVK_MOVE_SWAP_OUT, 0, 2);
    ck_assert_uint_eq(api_info(seq).swapped, 1);
    ck_assert_uint_eq(api_info(seq).n_tokens, 10);
    ck_assert_uint_eq(api_stats().host_pages_used, 3);
    ck_assert_uint_eq(api_stats().pages_cached, 2);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_RECLAIM), 3);
    CHECK_TABLE(seq, 0, 2, 3, 4); /* the free one, then those never used */
    check_move(KVK_MOVE_SWAP_IN, 2, 2);
    check_move(KVK_MOVE_SWAP_IN, 1, 3);
    check_move(KVK_MOVE_SWAP_IN, 0, 4);
    kvk_stats stats = api_stats();
    ck_assert_uint_eq(stats.host_pages_used, 0);
    ck_assert_uint_eq(stats.swapped_out_pages, 3);
    ck_assert_uint_eq(stats.swapped_in_pages, 3);
    ck_assert_uint_eq(api_page(2).findable + api_page(3).findable, 2);
    ck_assert_uint_eq(api_page(4).findable, 0);
    ck_assert_uint_eq(api_page(4).n_tokens, 2);
    ck_assert_int_eq(api_attach(other, 100, 10), 8);
    CHECK_TABLE(other, 0, 0, 1); /* the older copies */
    api_close();
}
END_TEST

START_TEST(a_swapped_sequence_only_waits)
{
    kvk_seq child;
    kvk_batch batch;
    kvk_plan plan;
    api_open(8, host_3);
    kvk_seq seq = api_text(100, 10);
    kvk_preempt(cache, seq, KVK_PREEMPT_SWAP);
    const kvk_batch_entry entry = {.seq = seq};
    kvk_plan_init(&plan);
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), KVK_ESTATE);
    ck_assert_int_eq(kvk_reserve(cache, seq, 1, KVK_RECLAIM), KVK_ESTATE);
    ck_assert_int_eq(kvk_can_reserve(cache, seq, 1, KVK_RECLAIM), KVK_ESTATE);
    ck_assert_int_eq(api_commit(seq, 110, 1), KVK_ESTATE);
    ck_assert_int_eq(api_attach(seq, 100, 10), KVK_ESTATE);
    ck_assert_int_eq(kvk_truncate(cache, seq, 4), KVK_ESTATE);
    ck_assert_int_eq(kvk_seq_fork(cache, seq, &child), KVK_ESTATE);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, NULL, 0), KVK_ESTATE);
    ck_assert_int_eq(kvk_seq_first(cache, seq, 0), KVK_ESTATE);
    ck_assert_int_eq(kvk_pin(cache, seq, 4), KVK_ESTATE);
    ck_assert_int_eq(kvk_retain(cache, seq, NULL, 0), KVK_ESTATE);
    ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), KVK_ESTATE);
    ck_assert_int_eq(kvk_seq_set_priority(cache, seq, 5), 0);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_RECLAIM), 3);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_RECLAIM), KVK_ESTATE);
    api_close();
}
END_TEST

START_TEST(a_full_host_pool_changes_nothing)
{
    api_open(8, host_3);
    kvk_seq seq = api_text(100, 16);
    kvk_stats before = api_stats();
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), KVK_ENOPAGE);
    kvk_stats after = api_stats();
    ck_assert_mem_eq(&before, &after, sizeof before);
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 0), 0);
    CHECK_TABLE(seq, 0, 0, 1, 2, 3);
    api_close();
}
END_TEST

START_TEST(what_is_reserved_ahead_is_not_moved)
{
    api_open(8, host_3);
    kvk_seq seq = api_text(100, 4);
    ck_assert_int_eq(kvk_reserve(cache, seq, 16, KVK_RECLAIM), 4);
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), 5);
    ck_assert_uint_eq(api_stats().host_pages_used, 1);
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 0), 1);
    api_close();
}
END_TEST

START_TEST(a_cancelled_swap_leaks_nothing)
{
    api_open(8, host_3);
    for (int round = 0; round < 4; round++) {
        kvk_seq seq = api_text(100, 10);
        ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), 3);
        if (round % 2) /* given up for good, or computed again */
            ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_RECOMPUTE), 0);
        ck_assert_int_eq(kvk_seq_close(cache, seq), 0);
        ck_assert_uint_eq(api_stats().host_pages_used, 0);
    }
    ck_assert_uint_eq(api_stats().pages_used, 0);
    api_close();
}
END_TEST

START_TEST(swapping_in_needs_all_its_pages)
{
    api_open(3, host_3);
    kvk_seq seq = api_text(100, 12), other;
    kvk_preempt(cache, seq, KVK_PREEMPT_SWAP);
    other = api_text(200, 4);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_EVICT), KVK_ENOPAGE);
    ck_assert_uint_eq(api_info(seq).swapped, 1);
    ck_assert_int_eq(kvk_resize(cache, 2, 1), 0);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_EVICT), KVK_ENEVER);
    ck_assert_int_eq(kvk_resize(cache, 3, 0), 0);
    kvk_seq_close(cache, other);
    ck_assert_int_eq(kvk_swap_in(cache, seq, KVK_FREE_ONLY), 3);
    ck_assert_int_eq(kvk_swap_in(cache, 12345, KVK_FREE_ONLY), KVK_ESTALE);
    ck_assert_int_eq(kvk_swap_in(cache, seq, (kvk_effort)3), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(a_sequence_in_flight_can_be_recomputed_not_swapped)
{
    api_open(8, host_3);
    kvk_seq seq = api_text(100, 8);
    ck_assert_int_eq(kvk_reserve(cache, seq, 2, KVK_RECLAIM), 1);
    kvk_batch batch = api_plan(seq, 2);
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_SWAP), KVK_EBUSY);
    ck_assert_int_eq(kvk_preempt(cache, seq, KVK_PREEMPT_RECOMPUTE), 3);
    ck_assert_uint_eq(api_stats().pages_limbo, 3);
    ck_assert_int_eq(api_end(batch, 0), 3); /* it leaves the emptied sequence as it is */
    ck_assert_uint_eq(api_info(seq).n_tokens, 0);
    ck_assert_uint_eq(api_stats().pages_cached, 2);
    api_close();
}
END_TEST

START_TEST(the_victim_is_of_the_lowest_priority_and_the_youngest)
{
    kvk_seq victim = 0;
    api_open(8, host_3);
    ck_assert_int_eq(kvk_victim(cache, &victim), 0);
    kvk_seq empty = api_seq();
    ck_assert_int_eq(kvk_victim(cache, &victim), 0); /* it holds nothing */
    kvk_seq a = api_text(100, 4), b = api_text(200, 4), c = api_text(300, 4);
    ck_assert_int_eq(kvk_seq_set_priority(cache, c, 1), 0);
    ck_assert_int_eq(kvk_seq_set_priority(cache, empty, -9), 0);
    ck_assert_int_eq(kvk_victim(cache, &victim), 1);
    ck_assert_uint_eq(victim, b);
    kvk_batch batch = api_plan(b, 0);
    ck_assert_int_eq(kvk_victim(cache, &victim), 1);
    ck_assert_uint_eq(victim, a);
    kvk_preempt(cache, a, KVK_PREEMPT_SWAP);
    ck_assert_int_eq(kvk_victim(cache, &victim), 1);
    ck_assert_uint_eq(victim, c);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 0);
    ck_assert_int_eq(kvk_victim(cache, NULL), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(preempting_needs_a_handle_and_a_way)
{
    api_open(8, host_3);
    ck_assert_int_eq(kvk_preempt(cache, 12345, KVK_PREEMPT_SWAP), KVK_ESTALE);
    ck_assert_int_eq(kvk_preempt(cache, api_seq(), (kvk_preempt_how)2), KVK_EINVAL);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_preempt", recompute_empties_a_sequence_whose_content_stays, swap_moves_out_and_in,
                     a_swapped_sequence_only_waits, a_full_host_pool_changes_nothing,
                     what_is_reserved_ahead_is_not_moved, a_cancelled_swap_leaks_nothing,
                     swapping_in_needs_all_its_pages, a_sequence_in_flight_can_be_recomputed_not_swapped,
                     the_victim_is_of_the_lowest_priority_and_the_youngest, preempting_needs_a_handle_and_a_way);
}
