/* test_api_errors.c: error codes, the version, and which configurations a cache takes. */
#include "api.h"

#include <stdio.h>
#include <string.h>

START_TEST(every_code_has_a_name_and_a_text)
{
    static const struct {
        int code;
        const char *name;
    } codes[] = {{-1, "KVK_EINVAL"}, {-2, "KVK_ENOMEM"},    {-3, "KVK_ENOPAGE"},  {-4, "KVK_ENEVER"},
                 {-5, "KVK_ESTALE"}, {-6, "KVK_EBUSY"},     {-7, "KVK_ESPACE"},   {-8, "KVK_ESTATE"},
                 {-9, "KVK_EIO"},    {-10, "KVK_EREENTRY"}, {-11, "KVK_EFORMAT"}, {-12, "KVK_EDEVICE"}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        ck_assert_str_eq(kvk_error_name(codes[i].code), codes[i].name);
        ck_assert_str_ne(kvk_strerror(codes[i].code), "unknown error");
        ck_assert_str_ne(kvk_strerror(codes[i].code), "ok");
    }
    ck_assert_str_eq(kvk_strerror(KVK_ESTALE), "handle is not open");
}
END_TEST

START_TEST(other_numbers_have_none)
{
    ck_assert_str_eq(kvk_strerror(0), "ok");
    ck_assert_str_eq(kvk_strerror(17), "ok");
    ck_assert_str_eq(kvk_strerror(-99), "unknown error");
    ck_assert_str_eq(kvk_strerror(INT32_MIN), "unknown error");
    ck_assert_ptr_null(kvk_error_name(0));
    ck_assert_ptr_null(kvk_error_name(3));
    ck_assert_ptr_null(kvk_error_name(-99));
}
END_TEST

START_TEST(the_version_is_that_of_the_header)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", KVK_VERSION_MAJOR, KVK_VERSION_MINOR, KVK_VERSION_PATCH);
    ck_assert_str_eq(kvk_version(), text);
}
END_TEST

static kvk_config valid(void)
{
    kvk_config config;
    kvk_config_init(&config);
    config.n_pages = 10;
    return config;
}

START_TEST(defaults_are_those_of_the_header)
{
    kvk_config config = valid();
    ck_assert_uint_eq(config.size, sizeof config);
    ck_assert_uint_eq(config.page_tokens, 16);
    ck_assert_uint_eq(config.n_groups, 1);
    ck_assert_uint_eq(config.watermark, 0);
    ck_assert_uint_eq(config.content, KVK_CONTENT_TOKENS);
    ck_assert_uint_eq(config.zero_fill, 0);
    ck_assert_ptr_null(config.allocator);
}
END_TEST

static void refused(kvk_config config)
{
    kvk_cache *out = (kvk_cache *)&config;
    ck_assert_int_eq(kvk_cache_open(&config, &out), KVK_EINVAL);
    ck_assert_ptr_eq(out, &config);
}

static void *take_nothing(void *ctx, size_t bytes)
{
    (void)ctx, (void)bytes;
    return NULL;
}

START_TEST(a_config_out_of_range_is_refused)
{
    const kvk_config good = valid();
    static void *const nothing = NULL;
    const kvk_allocator none = {.ctx = nothing}, half = {.alloc = take_nothing};
#define REFUSED(field, value)                                                                                          \
    do {                                                                                                               \
        kvk_config bad = good;                                                                                         \
        bad.field = value;                                                                                             \
        refused(bad);                                                                                                  \
    } while (0)
    REFUSED(size, 0);
    REFUSED(size, 3);
    REFUSED(size, sizeof good + 8);
    REFUSED(page_tokens, 0);
    REFUSED(page_tokens, KVK_MAX_PAGE_TOKENS + 1);
    REFUSED(n_pages, 0);
    REFUSED(n_pages, KVK_MAX_PAGES + 1);
    REFUSED(n_groups, 0);
    REFUSED(n_groups, KVK_MAX_GROUPS + 1);
    REFUSED(watermark, 11);
    REFUSED(content, 3);
    REFUSED(zero_fill, 2);
    REFUSED(reserved, 1);
    REFUSED(allocator, &none);
    REFUSED(allocator, &half);
#undef REFUSED
}
END_TEST

static void accepted(kvk_config config)
{
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    api_close();
}

START_TEST(the_ends_of_each_range_are_taken)
{
    const kvk_config good = valid();
#define ACCEPTED(field, value)                                                                                         \
    do {                                                                                                               \
        kvk_config edge = good;                                                                                        \
        edge.field = value;                                                                                            \
        accepted(edge);                                                                                                \
    } while (0)
    ACCEPTED(page_tokens, 1);
    ACCEPTED(page_tokens, KVK_MAX_PAGE_TOKENS);
    ACCEPTED(n_pages, 1);
    ACCEPTED(n_groups, KVK_MAX_GROUPS);
    ACCEPTED(watermark, 10);
    ACCEPTED(content, KVK_CONTENT_KEYS);
    ACCEPTED(zero_fill, 1);
#undef ACCEPTED
}
END_TEST

START_TEST(memory_stays_within_its_limit)
{
    kvk_config config = valid();
    config.n_pages = 1 << 20;
    config.memory_limit = 1;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), KVK_ENOMEM);
    config.memory_limit = 1 << 18;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 1 << 23, KVK_RECLAIM), KVK_ENOMEM);
    ck_assert_uint_eq(api_info(seq).n_pages, 0);
    ck_assert_uint_eq(api_stats().pages_free, 1 << 20);
    ck_assert_int_eq(kvk_reserve(cache, seq, 160, KVK_RECLAIM), 10);
    ck_assert_uint_le(api_stats().peak_memory_bytes, 1 << 18);
    api_close();
}
END_TEST

START_TEST(nothing_is_opened_without_config_or_out)
{
    kvk_config config = valid();
    kvk_cache *out = NULL;
    ck_assert_int_eq(kvk_cache_open(NULL, &out), KVK_EINVAL);
    ck_assert_int_eq(kvk_cache_open(&config, NULL), KVK_EINVAL);
    kvk_cache_close(NULL);
}
END_TEST

START_TEST(the_config_in_use_can_be_read_back)
{
    kvk_config config = valid(), used = {.size = sizeof used};
    config.watermark = 10;
    config.hash_seed = 99;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    ck_assert_int_eq(kvk_cache_config(cache, &used), 0);
    ck_assert_mem_eq(&used, &config, sizeof config);
    ck_assert_int_eq(kvk_cache_config(cache, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_cache_config(NULL, &used), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(an_older_callers_config_gets_defaults_for_what_it_does_not_know)
{
    kvk_config config = valid(), used = {.size = sizeof used};
    config.size = offsetof(kvk_config, n_groups);
    config.n_groups = 5; /* beyond the size: not read */
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    ck_assert_int_eq(kvk_cache_config(cache, &used), 0);
    ck_assert_uint_eq(used.n_groups, 1);
    ck_assert_uint_eq(used.n_pages, 10);
    api_close();
}
END_TEST

START_TEST(the_largest_pool_costs_only_what_is_used)
{
    kvk_config config = valid();
    config.n_pages = KVK_MAX_PAGES;
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
    ck_assert_int_eq(kvk_reserve(cache, api_seq(), 16, KVK_FREE_ONLY), 1);
    ck_assert_uint_lt(api_stats().memory_bytes, 1 << 20);
    ck_assert_uint_eq(api_page(KVK_MAX_PAGES - 1).state, KVK_PAGE_FREE);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS(
        "api_errors", every_code_has_a_name_and_a_text, other_numbers_have_none, the_version_is_that_of_the_header,
        defaults_are_those_of_the_header, a_config_out_of_range_is_refused, the_ends_of_each_range_are_taken,
        memory_stays_within_its_limit, nothing_is_opened_without_config_or_out, the_config_in_use_can_be_read_back,
        an_older_callers_config_gets_defaults_for_what_it_does_not_know, the_largest_pool_costs_only_what_is_used);
}
