/* Every number that an independent program counted in the real traces. */
#include "golden/golden.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Expected fractions have six decimals. */
static void assert_fraction(const json_t *row, const char *name, double got)
{
    double want = json_number_value(json_object_get(row, name));
    ck_assert_msg(fabs(got - want) <= 0.5000001e-6, "%s: %.9f instead of %.6f", name, got, want);
}

static replay_result prefix_hits(uint32_t n_pages, uint32_t page_tokens)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.n_pages = n_pages;
    options.page_tokens = page_tokens;
    options.belady = n_pages != REPLAY_UNLIMITED;
    return golden_replay(MOONCAKE, &options);
}

START_TEST(mooncake_in_an_unlimited_pool)
{
    json_t *all = golden_expected();
    const json_t *expected = json_object_get(all, MOONCAKE), *infinite = json_object_get(expected, "infinite");
    replay_result r = prefix_hits(REPLAY_UNLIMITED, 0);
    ck_assert_uint_eq(r.page_tokens, golden_count(expected, "block_tokens"));
    ck_assert_uint_eq(r.requests, golden_count(expected, "requests"));
    ck_assert_uint_eq(r.input_tokens, golden_count(expected, "input_tokens"));
    ck_assert_uint_eq(r.output_tokens, golden_count(expected, "output_tokens"));
    ck_assert_uint_eq(r.page_refs, golden_count(expected, "block_refs"));
    ck_assert_uint_eq(r.unique_pages, golden_count(expected, "unique_blocks"));
    ck_assert_uint_eq(r.page_hits, golden_count(infinite, "prefix_block_hits"));
    ck_assert_uint_eq(r.token_hits, golden_count(infinite, "prefix_token_hits"));
    json_decref(all);
}
END_TEST

START_TEST(mooncake_at_every_capacity)
{
    json_t *all = golden_expected(), *row, *expected = json_object_get(all, MOONCAKE);
    json_t *rows = json_object_get(expected, "by_capacity_blocks");
    const char *capacity;
    ck_assert_uint_ge(json_object_size(rows), 5);
    json_object_foreach(rows, capacity, row)
    {
        replay_result r = prefix_hits((uint32_t)strtoul(capacity, NULL, 10), 512);
        ck_assert_uint_eq(r.page_hits, golden_count(row, "prefix_lru_leaf_first"));
        ck_assert_uint_eq(r.token_hits, golden_count(row, "prefix_lru_leaf_first_token_hits"));
        ck_assert_uint_eq(r.belady_hits, golden_count(row, "flat_belady"));
        ck_assert_uint_le(r.page_hits, r.belady_hits);
        ck_assert_uint_eq(r.unique_pages, golden_count(expected, "unique_blocks"));
    }
    json_decref(all);
}
END_TEST

static void flat_hits(const char *capacity, kvk_reclaim reclaim, uint64_t hits, uint64_t optimum)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_FLAT;
    options.n_pages = (uint32_t)strtoul(capacity, NULL, 10);
    options.reclaim = reclaim;
    options.belady = reclaim == KVK_RECLAIM_LRU;
    replay_result r = golden_replay(MOONCAKE, &options);
    ck_assert_msg(r.page_hits == hits, "%s at %s: %lu instead of %lu", replay_reclaim_name(reclaim), capacity,
                  (unsigned long)r.page_hits, (unsigned long)hits);
    ck_assert_uint_eq(r.belady_hits, options.belady ? optimum : 0);
}

START_TEST(mooncake_pages_alone_at_every_capacity)
{
    json_t *all = golden_expected(), *row;
    const char *capacity;
    json_object_foreach(json_object_get(json_object_get(all, MOONCAKE), "by_capacity_blocks"), capacity, row)
    {
        uint64_t optimum = golden_count(row, "flat_belady");
        flat_hits(capacity, KVK_RECLAIM_FIFO, golden_count(row, "flat_fifo"), optimum);
        flat_hits(capacity, KVK_RECLAIM_LRU, golden_count(row, "flat_lru"), optimum);
        flat_hits(capacity, KVK_RECLAIM_LFU, golden_count(row, "flat_lfu_lru_tie"), optimum);
    }
    json_decref(all);
}
END_TEST

/* No outside figure is known of these: what must hold is that no order finds more than the optimum, or than an
 * unlimited cache. */
START_TEST(mooncake_in_every_order)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.belady = true;
    for (int order = 0; order < REPLAY_RECLAIMS; order++) {
        options.reclaim = (kvk_reclaim)order;
        options.n_pages = 10000;
        replay_result r = golden_replay(MOONCAKE, &options);
        ck_assert_uint_gt(r.page_hits, 0);
        ck_assert_uint_le(r.page_hits, r.belady_hits);
        options.n_pages = 200000;
        ck_assert_uint_eq(golden_replay(MOONCAKE, &options).page_hits, 105710);
    }
}
END_TEST

/* Smaller pages find the same blocks, in more pieces; larger ones miss what they share only in part. */
START_TEST(mooncake_in_pages_of_other_sizes)
{
    replay_result whole = prefix_hits(REPLAY_UNLIMITED, 512), small = prefix_hits(REPLAY_UNLIMITED, 64),
                  large = prefix_hits(REPLAY_UNLIMITED, 1024);
    ck_assert_uint_eq(small.token_hits, whole.token_hits);
    ck_assert_uint_eq(small.page_refs - small.page_hits, small.unique_pages);
    ck_assert_uint_lt(large.token_hits, whole.token_hits);
    ck_assert_uint_eq(large.page_refs - large.page_hits, large.unique_pages);
}
END_TEST

/* `rows` of one file hold for another that says the same. */
static void check_timeline(const char *file, const json_t *rows)
{
    size_t i;
    json_t *row;
    ck_assert_uint_gt(json_array_size(rows), 0);
    json_array_foreach(rows, i, row)
    {
        replay_options options = REPLAY_OPTIONS_DEFAULT;
        options.mode = REPLAY_TIMED;
        options.page_tokens = (uint32_t)golden_count(row, "block_tokens");
        options.token_us = golden_count(row, "tau_us");
        replay_result r = golden_replay(file, &options);
        ck_assert_uint_eq(r.stats.peak_pages_used, golden_count(row, "peak_blocks"));
        ck_assert_uint_eq(r.stats.peak_sequences, golden_count(row, "peak_seqs"));
        ck_assert_uint_eq(r.stats.pages_taken, golden_count(row, "total_block_allocs"));
        ck_assert_uint_eq(r.page_us, golden_count(row, "block_us_integral"));
        ck_assert_uint_eq(r.token_us, golden_count(row, "token_us_integral"));
        assert_fraction(row, "mean_internal_utilisation", (double)r.token_us / ((double)r.page_us * r.page_tokens));
        ck_assert_uint_eq(r.stats.pages_used, 0);
    }
}

static void check_timeline_of(const char *file, const char *expected_file)
{
    json_t *all = golden_expected();
    check_timeline(file, json_object_get(json_object_get(all, expected_file), "timeline"));
    json_decref(all);
}

START_TEST(azure_over_time)
{
    check_timeline_of(AZURE, AZURE);
}
END_TEST

START_TEST(vidur_over_time_as_azure)
{
    check_timeline_of(VIDUR, AZURE);
}
END_TEST

START_TEST(mooncake_over_time)
{
    check_timeline_of(MOONCAKE, MOONCAKE);
}
END_TEST

static void check_final_lengths(const char *file)
{
    json_t *all = golden_expected(), *row;
    const json_t *expected = json_object_get(all, file);
    json_t *rows = json_object_get(expected, "final_length_internal_frag");
    const char *page_tokens;
    ck_assert_uint_gt(json_object_size(rows), 0);
    json_object_foreach(rows, page_tokens, row)
    {
        replay_options options = REPLAY_OPTIONS_DEFAULT;
        options.mode = REPLAY_LENGTHS;
        options.page_tokens = (uint32_t)strtoul(page_tokens, NULL, 10);
        replay_result r = golden_replay(file, &options);
        ck_assert_uint_eq(r.requests, golden_count(expected, "rows"));
        ck_assert_uint_eq(r.pages_total, golden_count(row, "blocks"));
        ck_assert_uint_eq(r.waste_tokens, golden_count(row, "waste_tokens"));
        assert_fraction(row, "waste_fraction", (double)r.waste_tokens / ((double)r.pages_total * r.page_tokens));
    }
    json_decref(all);
}

START_TEST(etalon_sharegpt_final_lengths)
{
    check_final_lengths(ETALON_SHAREGPT);
}
END_TEST

START_TEST(etalon_bwb_final_lengths)
{
    check_final_lengths(ETALON_BWB);
}
END_TEST

START_TEST(azure_lengths_and_times)
{
    json_t *all = golden_expected();
    const json_t *expected = json_object_get(all, AZURE);
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_LENGTHS;
    replay_result azure = golden_replay(AZURE, &options), vidur = golden_replay(VIDUR, &options);
    ck_assert_uint_eq(azure.requests, golden_count(expected, "requests"));
    ck_assert_uint_eq(azure.input_tokens, golden_count(json_object_get(expected, "input"), "sum"));
    ck_assert_uint_eq(azure.output_tokens, golden_count(json_object_get(expected, "output"), "sum"));
    ck_assert_uint_eq(vidur.requests, azure.requests);
    ck_assert_uint_eq(vidur.input_tokens, azure.input_tokens);
    ck_assert_uint_eq(vidur.output_tokens, azure.output_tokens);
    json_decref(all);
}
END_TEST

int main(void)
{
    if (!golden_is_here())
        return 77;
    TCase *t = tcase_create("traces");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, mooncake_in_an_unlimited_pool);
    tcase_add_test(t, mooncake_at_every_capacity);
    tcase_add_test(t, mooncake_pages_alone_at_every_capacity);
    tcase_add_test(t, mooncake_in_every_order);
    tcase_add_test(t, mooncake_in_pages_of_other_sizes);
    tcase_add_test(t, mooncake_over_time);
    tcase_add_test(t, azure_over_time);
    tcase_add_test(t, azure_lengths_and_times);
    tcase_add_test(t, vidur_over_time_as_azure);
    tcase_add_test(t, etalon_sharegpt_final_lengths);
    tcase_add_test(t, etalon_bwb_final_lengths);
    return run_tests("golden", t);
}
