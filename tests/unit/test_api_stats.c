/* test_api_stats.c: figures by hand, the caller's allocator, audit and recording. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

START_TEST(usage_is_told_by_page_and_by_token)
{
    api_open(10, NULL);
    api_text(100, 5);
    api_text(500, 5);
    api_text(900, 5);
    kvk_stats stats = api_stats(); /* 5 of 8 places in each two pages */
    ck_assert_uint_eq(stats.pages_used, 6);
    ck_assert_uint_eq(stats.live_tokens, 15);
    ck_assert_double_eq_tol(stats.usage_pages, 0.6, 1e-12);
    ck_assert_double_eq_tol(stats.usage_tokens, 0.375, 1e-12);
    api_close();
}
END_TEST

START_TEST(a_shared_page_counts_once)
{
    kvk_seq child;
    api_open(10, NULL);
    ck_assert_int_eq(kvk_seq_fork(cache, api_text(100, 6), &child), 0);
    ck_assert_uint_eq(api_stats().pages_used, 2);
    ck_assert_uint_eq(api_stats().live_tokens, 6);
    ck_assert_uint_eq(api_page(1).refs, 2);
    ck_assert_uint_eq(api_page(1).n_tokens, 2);
    api_close();
}
END_TEST

START_TEST(peaks_and_totals_stay)
{
    api_open(10, NULL);
    kvk_seq first = api_text(100, 8), second = api_text(500, 4);
    kvk_seq_close(cache, first);
    kvk_seq_close(cache, second);
    kvk_stats stats = api_stats();
    ck_assert_uint_eq(stats.sequences, 0);
    ck_assert_uint_eq(stats.peak_sequences, 2);
    ck_assert_uint_eq(stats.pages_used, 0);
    ck_assert_uint_eq(stats.peak_pages_used, 3);
    ck_assert_uint_eq(stats.pages_taken, 3);
    ck_assert_uint_eq(stats.pages_cached, 3);
    ck_assert_uint_eq(stats.pages_free, 7);
    ck_assert_uint_eq(stats.live_tokens, 0);
    api_close();
}
END_TEST

START_TEST(a_page_tells_its_owners_and_lives)
{
    api_open(2, NULL);
    ck_assert_uint_eq(api_page(0).generation, 0);
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_FREE);
    kvk_seq seq = api_text(100, 4);
    ck_assert_uint_eq(api_page(0).generation, 1);
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_USED);
    ck_assert_uint_eq(api_page(0).findable, 1);
    kvk_seq_close(cache, seq);
    ck_assert_uint_eq(api_page(0).state, KVK_PAGE_CACHED);
    ck_assert_uint_eq(api_page(0).n_tokens, 4);
    ck_assert_int_eq(kvk_reserve(cache, api_seq(), 8, KVK_RECLAIM), 2);
    ck_assert_uint_eq(api_page(0).generation, 2);
    ck_assert_uint_eq(api_page(0).n_tokens, 0);
    ck_assert_uint_eq(api_page(0).findable, 0);
    api_close();
}
END_TEST

/* ---- The caller's allocator ---- */

typedef struct {
    size_t n_held, n_blocks;
} counted;

static void *count_in(void *ctx, size_t bytes)
{
    counted *c = ctx;
    c->n_held += bytes;
    c->n_blocks++;
    return malloc(bytes);
}

static void count_out(void *ctx, void *memory, size_t bytes)
{
    counted *c = ctx;
    c->n_held -= bytes;
    c->n_blocks--;
    free(memory);
}

static counted held;
static const kvk_allocator counting = {count_in, count_out, &held};

static void use_counting(kvk_config *config)
{
    config->allocator = &counting;
}

START_TEST(the_callers_allocator_gets_every_byte_back)
{
    kvk_seq child;
    kvk_config config = {.size = sizeof config, .allocator = &counting};
    memset(&held, 0, sizeof held);
    api_open(16, use_counting);
    ck_assert_int_eq(kvk_cache_config(cache, &config), 0);
    ck_assert_ptr_null(config.allocator);
    kvk_seq seq = api_text(100, 10);
    ck_assert_int_eq(kvk_seq_fork(cache, seq, &child), 0);
    ck_assert_int_eq(kvk_reserve(cache, child, 4, KVK_RECLAIM), 2);
    api_plan(child, 4);
    ck_assert_uint_gt(held.n_held, 0);
    ck_assert_uint_eq(api_stats().memory_bytes, held.n_held);
    ck_assert_uint_ge(api_stats().memory_allocations, held.n_blocks);
    ck_assert_uint_ge(api_stats().peak_memory_bytes, held.n_held);
    api_close(); /* with a batch in flight and sequences open */
    ck_assert_uint_eq(held.n_held, 0);
    ck_assert_uint_eq(held.n_blocks, 0);
}
END_TEST

/* ---- Recording ---- */

typedef struct {
    size_t n_bytes;
    int fails;
} sink;

static int swallow(void *ctx, const char *bytes, size_t n)
{
    sink *s = ctx;
    ck_assert_ptr_nonnull(bytes);
    s->n_bytes += n;
    return s->fails;
}

START_TEST(only_an_untouched_cache_is_recorded)
{
    sink s = {0};
    api_open(8, NULL);
    ck_assert_int_eq(kvk_record_stop(cache), KVK_ESTATE);
    ck_assert_int_eq(kvk_record_start(cache, NULL, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_record_start(NULL, swallow, &s), KVK_EINVAL);
    api_stats(); /* changes nothing */
    ck_assert_int_eq(kvk_record_start(cache, swallow, &s), 0);
    ck_assert_int_eq(kvk_record_start(cache, swallow, &s), KVK_ESTATE);
    api_text(100, 6);
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    ck_assert_uint_gt(s.n_bytes, 0);
    ck_assert_int_eq(kvk_record_stop(cache), KVK_ESTATE);
    ck_assert_int_eq(kvk_record_start(cache, swallow, &s), KVK_ESTATE);
    api_close();
}
END_TEST

START_TEST(closing_writes_what_is_left)
{
    sink s = {0};
    api_open(8, NULL);
    ck_assert_int_eq(kvk_record_start(cache, swallow, &s), 0);
    api_text(100, 6);
    api_close();
    ck_assert_uint_gt(s.n_bytes, 100);
}
END_TEST

START_TEST(a_failed_write_fails_no_call_but_stop)
{
    sink s = {.fails = 1};
    api_open(8, NULL);
    int rc = kvk_record_start(cache, swallow, &s);
    ck_assert_int_eq(rc, 0);
    for (int i = 0; i < 3000; i++)
        ck_assert_int_ge(kvk_seq_close(cache, api_text(100, 6)), 0);
    ck_assert_int_eq(kvk_record_stop(cache), KVK_EIO);
    api_close();
}
END_TEST

START_TEST(a_healthy_cache_has_no_violations)
{
    api_open(8, NULL);
    api_text(100, 6);
    ck_assert_int_eq(kvk_audit(cache, NULL, NULL), 0);
    ck_assert_int_eq(kvk_audit(NULL, NULL, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_stats_get(cache, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_page_info_get(cache, 0, NULL), KVK_EINVAL);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_stats", usage_is_told_by_page_and_by_token, a_shared_page_counts_once, peaks_and_totals_stay,
                     a_page_tells_its_owners_and_lives, the_callers_allocator_gets_every_byte_back,
                     only_an_untouched_cache_is_recorded, closing_writes_what_is_left,
                     a_failed_write_fails_no_call_but_stop, a_healthy_cache_has_no_violations);
}
