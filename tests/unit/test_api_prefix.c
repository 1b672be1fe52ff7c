/* test_api_prefix.c: what can be found again, by whom, and how a text must be given. */
#include "api.h"

START_TEST(full_pages_are_found_and_the_last_token_is_left)
{
    api_open(8, NULL);
    kvk_seq_close(cache, api_text(100, 12));
    ck_assert_int_eq(api_attach(api_seq(), 100, 12), 8); /* not 12: one token is left to compute */
    ck_assert_int_eq(api_attach(api_seq(), 100, 13), 12);
    ck_assert_int_eq(api_attach(api_seq(), 100, 4), 0);
    ck_assert_int_eq(api_attach(api_seq(), 101, 12), 0);
    ck_assert_int_eq(api_attach(api_seq(), 100, 0), 0);
    api_close();
}
END_TEST

START_TEST(attached_pages_are_the_same_pages)
{
    api_open(8, NULL);
    kvk_seq first = api_text(100, 10), second = api_seq();
    ck_assert_int_eq(api_attach(second, 100, 10), 8);
    CHECK_TABLE(first, 0, 0, 1, 2);
    CHECK_TABLE(second, 0, 0, 1);
    ck_assert_uint_eq(api_page(0).refs, 2);
    ck_assert_uint_eq(api_page(2).findable, 0);
    ck_assert_uint_eq(api_info(second).n_committed, 8);
    api_close();
}
END_TEST

START_TEST(lookup_finds_what_attach_would_and_changes_nothing)
{
    const uint32_t tokens[] = {100, 101, 102, 103, 104};
    const kvk_text prompt = {.n_tokens = 5, .tokens = tokens};
    api_open(8, NULL);
    kvk_seq_close(cache, api_text(100, 4));
    kvk_stats before = api_stats();
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &prompt), 4);
    kvk_stats after = api_stats();
    ck_assert_mem_eq(&before, &after, sizeof before);
    api_close();
}
END_TEST

static kvk_seq open_as(kvk_key salt, uint64_t adapter)
{
    const kvk_seq_params params = {.size = sizeof params, .salt = salt, .adapter = adapter};
    kvk_seq seq;
    ck_assert_int_eq(kvk_seq_open(cache, &params, &seq), 0);
    return seq;
}

START_TEST(salt_and_adapter_keep_tenants_apart)
{
    api_open(8, NULL);
    kvk_seq owner = open_as((kvk_key){1, 2}, 3);
    ck_assert_int_eq(kvk_reserve(cache, owner, 4, KVK_RECLAIM), 1);
    ck_assert_int_eq(api_commit(owner, 100, 4), 1);
    ck_assert_int_eq(api_attach(open_as((kvk_key){1, 2}, 4), 100, 9), 0);
    ck_assert_int_eq(api_attach(open_as((kvk_key){1, 0}, 3), 100, 9), 0);
    ck_assert_int_eq(api_attach(open_as((kvk_key){0, 2}, 3), 100, 9), 0);
    ck_assert_int_eq(api_attach(api_seq(), 100, 9), 0);
    ck_assert_int_eq(api_attach(open_as((kvk_key){1, 2}, 3), 100, 9), 4);
    api_close();
}
END_TEST

START_TEST(only_an_empty_sequence_can_attach)
{
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 4);
    ck_assert_int_eq(api_attach(seq, 100, 9), KVK_ESTATE);
    ck_assert_int_eq(kvk_truncate(cache, seq, 0), 1);
    ck_assert_int_eq(api_attach(seq, 100, 9), 4);
    api_close();
}
END_TEST

START_TEST(a_page_is_found_only_after_the_same_pages)
{
    const uint32_t tokens[] = {1, 1, 1, 1, 104, 105, 106, 107, 0};
    const kvk_text prompt = {.n_tokens = 9, .tokens = tokens};
    api_open(8, NULL);
    kvk_seq_close(cache, api_text(100, 8));
    kvk_seq other = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, other, 4, KVK_RECLAIM), 1);
    ck_assert_int_eq(kvk_commit(cache, other, &(kvk_text){.n_tokens = 4, .tokens = tokens}), 1);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &prompt), 4);
    api_close();
}
END_TEST

START_TEST(a_chain_loses_its_tail_before_its_head)
{
    api_open(5, NULL);
    kvk_seq_close(cache, api_text(100, 12)); /* pages 0, 1, 2 cached */
    kvk_seq other = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, other, 12, KVK_RECLAIM), 3); /* the two free ones, then a cached one */
    CHECK_TABLE(other, 0, 3, 4, 2);
    ck_assert_uint_eq(api_stats().pages_reclaimed, 1);
    ck_assert_int_eq(api_attach(api_seq(), 100, 13), 8);
    api_close();
}
END_TEST

START_TEST(equal_content_in_two_pages_is_found_until_both_are_gone)
{
    api_open(2, NULL);
    kvk_seq first = api_text(100, 4), second = api_text(100, 4);
    ck_assert_uint_eq(api_page(0).findable + api_page(1).findable, 2);
    kvk_seq_close(cache, first);
    kvk_seq other = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, other, 4, KVK_RECLAIM), 1);
    CHECK_TABLE(other, 0, 0);
    kvk_seq third = api_seq();
    ck_assert_int_eq(api_attach(third, 100, 5), 4);
    CHECK_TABLE(third, 0, 1);
    kvk_seq_close(cache, second);
    kvk_seq_close(cache, third);
    ck_assert_int_eq(kvk_reserve(cache, other, 8, KVK_RECLAIM), 1);
    ck_assert_int_eq(api_attach(api_seq(), 100, 5), 0);
    api_close();
}
END_TEST

START_TEST(reset_is_refused_while_pages_are_used)
{
    uint32_t in_use = 99;
    api_open(8, NULL);
    kvk_seq seq = api_text(100, 10);
    ck_assert_int_eq(kvk_prefix_reset(cache, &in_use), KVK_EBUSY);
    ck_assert_uint_eq(in_use, 3);
    kvk_batch batch = api_plan(seq, 0);
    kvk_seq_close(cache, seq);
    ck_assert_int_eq(kvk_prefix_reset(cache, &in_use), KVK_EBUSY); /* in limbo */
    ck_assert_uint_eq(in_use, 3);
    ck_assert_int_eq(kvk_batch_end(cache, batch, NULL), 3);
    ck_assert_int_eq(kvk_prefix_reset(cache, &in_use), 2);
    ck_assert_uint_eq(in_use, 0);
    ck_assert_uint_eq(api_stats().pages_free, 8);
    ck_assert_int_eq(api_attach(api_seq(), 100, 10), 0);
    ck_assert_int_eq(kvk_prefix_reset(cache, NULL), 0);
    api_close();
}
END_TEST

START_TEST(commit_needs_room)
{
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(api_commit(seq, 100, 1), KVK_ESTATE);
    ck_assert_int_eq(kvk_reserve(cache, seq, 3, KVK_RECLAIM), 1);
    ck_assert_int_eq(api_commit(seq, 100, 5), KVK_ESTATE);
    ck_assert_int_eq(api_commit(seq, 100, 4), 1);
    ck_assert_int_eq(api_commit(seq, 100, 0), 0);
    ck_assert_uint_eq(api_info(seq).n_tokens, 4);
    api_close();
}
END_TEST

START_TEST(a_text_without_its_tokens_is_refused)
{
    const kvk_text bad = {.n_tokens = 1};
    api_open(8, NULL);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 1, KVK_RECLAIM), 1);
    ck_assert_int_eq(kvk_commit(cache, seq, &bad), KVK_EINVAL);
    ck_assert_int_eq(kvk_commit(cache, seq, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &bad), KVK_EINVAL);
    ck_assert_int_eq(kvk_prefix_attach(cache, api_seq(), &bad), KVK_EINVAL);
    api_close();
}
END_TEST

static void by_keys(kvk_config *config)
{
    config->content = KVK_CONTENT_KEYS;
}

START_TEST(keys_come_one_per_page_made_full)
{
    const kvk_key keys[] = {{1, 1}, {2, 2}, {3, 3}};
    api_open(8, by_keys);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 3);
    ck_assert_int_eq(kvk_commit(cache, seq, &(kvk_text){.n_tokens = 6, .keys = keys}), KVK_EINVAL);
    ck_assert_int_eq(kvk_commit(cache, seq, &(kvk_text){.n_tokens = 6, .n_keys = 2, .keys = keys}), KVK_EINVAL);
    ck_assert_int_eq(kvk_commit(cache, seq, &(kvk_text){.n_tokens = 6, .n_keys = 1}), KVK_EINVAL);
    ck_assert_int_eq(kvk_commit(cache, seq, &(kvk_text){.n_tokens = 6, .n_keys = 1, .keys = keys}), 1);
    ck_assert_int_eq(kvk_commit(cache, seq, &(kvk_text){.n_tokens = 6, .n_keys = 2, .keys = keys + 1}), 2);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 3);
    ck_assert_uint_eq(api_stats().pages_cached, 3);
    api_close();
}
END_TEST

START_TEST(a_prompt_may_bring_fewer_keys_than_pages_but_not_more)
{
    const kvk_key keys[] = {{1, 1}, {2, 2}, {3, 3}};
    api_open(8, by_keys);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 3);
    ck_assert_int_eq(kvk_commit(cache, seq, &(kvk_text){.n_tokens = 12, .n_keys = 3, .keys = keys}), 3);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &(kvk_text){.n_tokens = 13, .n_keys = 3, .keys = keys}), 12);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &(kvk_text){.n_tokens = 12, .n_keys = 3, .keys = keys}), 8);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &(kvk_text){.n_tokens = 13, .n_keys = 1, .keys = keys}), 4);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &(kvk_text){.n_tokens = 11, .n_keys = 3, .keys = keys}),
                     KVK_EINVAL);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &(kvk_text){.n_tokens = 13, .n_keys = 2, .keys = keys + 1}), 0);
    api_close();
}
END_TEST

static void by_nothing(kvk_config *config)
{
    config->content = KVK_CONTENT_NONE;
}

START_TEST(without_content_only_lengths_count)
{
    const kvk_text nine = {.n_tokens = 9};
    api_open(8, by_nothing);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_prefix_attach(cache, seq, &nine), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 9, KVK_RECLAIM), 3);
    ck_assert_int_eq(kvk_commit(cache, seq, &nine), 2);
    ck_assert_uint_eq(api_info(seq).n_committed, 9);
    ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &nine), 0);
    ck_assert_int_eq(kvk_seq_close(cache, seq), 3);
    ck_assert_uint_eq(api_stats().pages_free, 8);
    api_close();
}
END_TEST

START_TEST(attach_counts_queries_and_hits)
{
    api_open(8, NULL);
    kvk_seq_close(cache, api_text(100, 8));
    ck_assert_int_eq(api_attach(api_seq(), 100, 14), 8);
    kvk_stats stats = api_stats();
    ck_assert_uint_eq(stats.prefix_queries, 14);
    ck_assert_uint_eq(stats.prefix_hits, 8);
    ck_assert_uint_eq(stats.prefix_page_queries, 3);
    ck_assert_uint_eq(stats.prefix_page_hits, 2);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_prefix", full_pages_are_found_and_the_last_token_is_left, attached_pages_are_the_same_pages,
                     lookup_finds_what_attach_would_and_changes_nothing, salt_and_adapter_keep_tenants_apart,
                     only_an_empty_sequence_can_attach, a_page_is_found_only_after_the_same_pages,
                     a_chain_loses_its_tail_before_its_head, equal_content_in_two_pages_is_found_until_both_are_gone,
                     reset_is_refused_while_pages_are_used, commit_needs_room, a_text_without_its_tokens_is_refused,
                     keys_come_one_per_page_made_full, a_prompt_may_bring_fewer_keys_than_pages_but_not_more,
                     without_content_only_lengths_count, attach_counts_queries_and_hits);
}
