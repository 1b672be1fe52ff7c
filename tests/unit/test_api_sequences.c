/* test_api_sequences.c: handles, tables of all groups, forks, and structs that tell their own size. */
#include "api.h"

#include <string.h>

START_TEST(a_new_sequence_is_empty)
{
    const kvk_seq_params params = {.size = sizeof params, .priority = -7};
    kvk_seq seq = 0;
    api_open(8, NULL);
    ck_assert_int_eq(kvk_seq_open(cache, &params, &seq), 0);
    ck_assert_uint_ne(seq, 0);
    ck_assert_uint_lt(seq, UINT64_C(1) << 63);
    kvk_seq_info info = api_info(seq);
    ck_assert_int_eq(info.priority, -7);
    ck_assert_uint_eq(info.n_tokens + info.n_committed + info.n_pages + info.n_in_flight, 0);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, NULL, 0), 0);
    api_close();
}
END_TEST

START_TEST(a_closed_handle_is_stale_for_every_call)
{
    const kvk_text text = {0};
    kvk_seq_info info = {.size = sizeof info};
    kvk_seq out = 77;
    uint32_t page;
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_seq_close(cache, seq), 0);
    kvk_seq next = api_seq(); /* may use the same place */
    ck_assert_uint_ne(next, seq);
    ck_assert_int_eq(kvk_seq_close(cache, seq), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_fork(cache, seq, &out), KVK_ESTALE);
    ck_assert_uint_eq(out, 77);
    ck_assert_int_eq(kvk_seq_set_priority(cache, seq, 1), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_info_get(cache, seq, &info), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, &page, 1), KVK_ESTALE);
    ck_assert_int_eq(kvk_prefix_attach(cache, seq, &text), KVK_ESTALE);
    ck_assert_int_eq(kvk_can_reserve(cache, seq, 1, KVK_RECLAIM), KVK_ESTALE);
    ck_assert_int_eq(kvk_reserve(cache, seq, 1, KVK_RECLAIM), KVK_ESTALE);
    ck_assert_int_eq(kvk_commit(cache, seq, &text), KVK_ESTALE);
    ck_assert_int_eq(kvk_truncate(cache, seq, 0), KVK_ESTALE);
    api_close();
}
END_TEST

START_TEST(zero_and_invented_handles_are_stale)
{
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_seq_close(cache, 0), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_close(cache, seq + 1), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_close(cache, UINT64_MAX), KVK_ESTALE);
    ck_assert_int_eq(kvk_seq_close(cache, seq | UINT64_C(1) << 63), KVK_ESTALE);
    ck_assert_int_eq(kvk_batch_end(cache, 0, NULL), KVK_ESTALE);
    ck_assert_int_eq(kvk_batch_end(cache, 1, NULL), KVK_ESTALE);
    api_close();
}
END_TEST

START_TEST(a_thousand_lives_of_one_place_give_a_thousand_handles)
{
    kvk_seq last = 0;
    api_open(8, NULL);
    for (int i = 0; i < 1000; i++) {
        kvk_seq seq = api_seq();
        ck_assert_uint_ne(seq, last);
        ck_assert_int_eq(kvk_seq_close(cache, last), KVK_ESTALE);
        ck_assert_int_eq(kvk_seq_close(cache, seq), 0);
        last = seq;
    }
    api_close();
}
END_TEST

static void three_groups(kvk_config *config)
{
    config->n_groups = 3;
}

START_TEST(every_group_has_a_table_of_the_same_length)
{
    uint32_t pages[2] = {91, 92};
    api_open(9, three_groups);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 5, KVK_RECLAIM), 6);
    CHECK_TABLE(seq, 0, 0, 1);
    CHECK_TABLE(seq, 1, 2, 3);
    CHECK_TABLE(seq, 2, 4, 5);
    ck_assert_uint_eq(api_info(seq).n_pages, 2);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 3, pages, 2), KVK_EINVAL);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, pages, 1), KVK_ESPACE);
    ck_assert_uint_eq(pages[0], 91);
    ck_assert_int_eq(kvk_seq_table(cache, seq, 0, NULL, 0), 2);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 6);
    api_close();
}
END_TEST

START_TEST(a_closed_sequence_gives_its_pages_back_tail_first)
{
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 3);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 3);
    seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 16, KVK_RECLAIM), 4);
    CHECK_TABLE(seq, 0, 0, 1, 2, 3); /* the last one freed, page 0, is the first one taken */
    api_close();
}
END_TEST

START_TEST(a_fork_shares_pages_with_tokens_and_not_those_reserved_ahead)
{
    kvk_seq child;
    api_open(8, NULL);
    kvk_seq parent = api_text(100, 6);
    ck_assert_int_eq(kvk_reserve(cache, parent, 6, KVK_RECLAIM), 1);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
    CHECK_TABLE(parent, 0, 0, 1, 2);
    CHECK_TABLE(child, 0, 0, 1);
    ck_assert_uint_eq(api_info(child).n_tokens, 6);
    ck_assert_uint_eq(api_info(child).n_committed, 6);
    ck_assert_uint_eq(api_page(1).refs, 2);
    ck_assert_uint_eq(api_page(2).refs, 1);
    ck_assert_int_eq(kvk_seq_close(cache, parent), 1);
    ck_assert_int_eq(kvk_seq_close(cache, child), 2);
    api_close();
}
END_TEST

START_TEST(a_fork_is_refused_while_a_batch_holds_the_parent)
{
    kvk_seq child = 5;
    api_open(8, NULL);
    kvk_seq parent = api_text(100, 6);
    kvk_batch batch = api_plan(parent, 0);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), KVK_EBUSY);
    ck_assert_uint_eq(child, 5);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 0);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
    api_close();
}
END_TEST

START_TEST(a_smaller_struct_gets_only_its_own_bytes)
{
    kvk_seq_info info = {.size = offsetof(kvk_seq_info, n_committed), .n_committed = 0xabcd, .n_in_flight = 0xabcd};
    kvk_stats stats = {.size = offsetof(kvk_stats, pages_free), .pages_free = 0xabcd, .usage_tokens = 7.5};
    kvk_page_info page = {.size = offsetof(kvk_page_info, generation), .generation = 0xabcd, .findable = 0xabcd};
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 6);
    ck_assert_int_eq(kvk_seq_info_get(cache, seq, &info), 0);
    ck_assert_uint_eq(info.n_tokens, 6);
    ck_assert_uint_eq(info.n_committed, 0xabcd);
    ck_assert_uint_eq(info.n_in_flight, 0xabcd);
    ck_assert_int_eq(kvk_stats_get(cache, &stats), 0);
    ck_assert_uint_eq(stats.page_tokens, 4);
    ck_assert_uint_eq(stats.pages_free, 0xabcd);
    ck_assert_double_eq(stats.usage_tokens, 7.5);
    ck_assert_int_eq(kvk_page_info_get(cache, 0, &page), 0);
    ck_assert_uint_eq(page.refs, 1);
    ck_assert_uint_eq(page.generation, 0xabcd);
    ck_assert_uint_eq(page.findable, 0xabcd);
    ck_assert_uint_eq(info.size, offsetof(kvk_seq_info, n_committed));
    api_close();
}
END_TEST

START_TEST(a_struct_of_its_size_alone_gets_nothing)
{
    kvk_seq_info info = {.size = sizeof info.size, .n_tokens = 0xabcd};
    const kvk_seq_params params = {.size = sizeof params.size, .priority = 5};
    kvk_seq seq;
    api_open(8, NULL);
    ck_assert_int_eq(kvk_seq_open(cache, &params, &seq), 0);
    ck_assert_int_eq(kvk_seq_info_get(cache, seq, &info), 0);
    ck_assert_uint_eq(info.n_tokens, 0xabcd);
    ck_assert_int_eq(api_info(seq).priority, 0);
    api_close();
}
END_TEST

START_TEST(a_larger_struct_keeps_the_bytes_beyond)
{
    struct {
        kvk_seq_info known;
        uint32_t beyond;
    } info = {.known.size = sizeof info, .beyond = 0xabcd};
    api_open(8, NULL);
    ck_assert_int_eq(kvk_seq_info_get(cache, api_text(1, 3), &info.known), 0);
    ck_assert_uint_eq(info.known.n_committed, 3);
    ck_assert_uint_eq(info.beyond, 0xabcd);
    api_close();
}
END_TEST

START_TEST(a_struct_of_size_0_is_refused)
{
    kvk_seq_info info = {.size = 0};
    kvk_stats stats = {.size = 0};
    kvk_page_info page = {.size = 0};
    kvk_config config = {.size = 0};
    const kvk_seq_params params = {.size = 0};
    kvk_seq seq = 0;
    api_open(8, NULL);
    ck_assert_int_eq(kvk_seq_open(cache, &params, &seq), KVK_EINVAL);
    ck_assert_uint_eq(seq, 0);
    ck_assert_int_eq(kvk_seq_info_get(cache, api_seq(), &info), KVK_EINVAL);
    ck_assert_int_eq(kvk_stats_get(cache, &stats), KVK_EINVAL);
    ck_assert_int_eq(kvk_page_info_get(cache, 0, &page), KVK_EINVAL);
    ck_assert_int_eq(kvk_cache_config(cache, &config), KVK_EINVAL);
    ck_assert_int_eq(kvk_page_info_get(cache, 8, &(kvk_page_info){.size = sizeof page}), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(an_older_callers_params_get_defaults)
{
    kvk_seq_params params = {.size = offsetof(kvk_seq_params, salt), .priority = 3, .salt = {1, 2}, .adapter = 9};
    kvk_seq seq;
    api_open(8, NULL);
    kvk_seq_close(cache, api_text(100, 8)); /* salt 0, adapter 0 */
    ck_assert_int_eq(kvk_seq_open(cache, &params, &seq), 0);
    ck_assert_int_eq(api_info(seq).priority, 3);
    ck_assert_int_eq(api_attach(seq, 100, 9), 8);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_sequences", a_new_sequence_is_empty, a_closed_handle_is_stale_for_every_call,
                     zero_and_invented_handles_are_stale, a_thousand_lives_of_one_place_give_a_thousand_handles,
                     every_group_has_a_table_of_the_same_length, a_closed_sequence_gives_its_pages_back_tail_first,
                     a_fork_shares_pages_with_tokens_and_not_those_reserved_ahead,
                     a_fork_is_refused_while_a_batch_holds_the_parent, a_smaller_struct_gets_only_its_own_bytes,
                     a_larger_struct_keeps_the_bytes_beyond, a_struct_of_its_size_alone_gets_nothing,
                     a_struct_of_size_0_is_refused, an_older_callers_params_get_defaults);
}
