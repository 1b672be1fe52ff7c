#include "api.h"
#include "run_tests.h"

kvk_cache *cache;

void api_open(uint32_t n_pages, void (*change)(kvk_config *config))
{
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = 4;
    config.n_pages = n_pages;
    if (change)
        change(&config);
    ck_assert_int_eq(kvk_cache_open(&config, &cache), 0);
}

void api_close(void)
{
    ck_assert_int_eq(kvk_audit(cache, NULL, NULL), 0);
    kvk_cache_close(cache);
    cache = NULL;
}

kvk_seq api_seq(void)
{
    kvk_seq seq;
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &seq), 0);
    return seq;
}

static kvk_text text_of(uint32_t first, uint32_t n, uint32_t tokens[API_MAX])
{
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = first + i;
    return (kvk_text){.n_tokens = n, .tokens = tokens};
}

int api_commit(kvk_seq seq, uint32_t first, uint32_t n)
{
    uint32_t tokens[API_MAX];
    kvk_text text = text_of(first, n, tokens);
    return kvk_commit(cache, seq, &text);
}

int api_attach(kvk_seq seq, uint32_t first, uint32_t n)
{
    uint32_t tokens[API_MAX];
    kvk_text text = text_of(first, n, tokens);
    return kvk_prefix_attach(cache, seq, &text);
}

kvk_seq api_text(uint32_t first, uint32_t n)
{
    kvk_seq seq = api_seq();
    ck_assert_int_ge(kvk_reserve(cache, seq, n, KVK_RECLAIM), 0);
    ck_assert_int_ge(api_commit(seq, first, n), 0);
    return seq;
}

kvk_batch api_plan(kvk_seq seq, uint32_t n_query)
{
    const kvk_batch_entry entry = {.seq = seq, .n_query = n_query};
    kvk_batch batch = 0;
    kvk_plan plan;
    kvk_plan_init(&plan);
    ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), 0);
    return batch;
}

int api_end(kvk_batch batch, uint32_t accepted)
{
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .accepted = &accepted};
    return kvk_batch_end(cache, batch, &result);
}

kvk_stats api_stats(void)
{
    kvk_stats stats = {.size = sizeof stats};
    ck_assert_int_eq(kvk_stats_get(cache, &stats), 0);
    return stats;
}

kvk_seq_info api_info(kvk_seq seq)
{
    kvk_seq_info info = {.size = sizeof info};
    ck_assert_int_eq(kvk_seq_info_get(cache, seq, &info), 0);
    return info;
}

kvk_page_info api_page(uint32_t page)
{
    kvk_page_info info = {.size = sizeof info};
    ck_assert_int_eq(kvk_page_info_get(cache, page, &info), 0);
    return info;
}

void api_check_table(kvk_seq seq, uint32_t group, uint32_t n, const uint32_t *pages)
{
    uint32_t got[API_MAX];
    ck_assert_int_eq(kvk_seq_table(cache, seq, group, got, API_MAX), n);
    for (uint32_t i = 0; i < n; i++)
        ck_assert_msg(got[i] == pages[i], "table[%u] is page %u, not %u", i, got[i], pages[i]);
}

int api_run(const char *name, const TTest *const *tests, size_t n)
{
    TCase *all = tcase_create(name);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(all, tests[i]);
    return run_tests(name, all);
}
