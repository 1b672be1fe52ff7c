/* Faults that other KV managers had in the field and that an op log cannot show; the rest are in tests/oplog. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */
#include "api.h"
#include "cache/cache.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

/* ---- openvino.genai#3722, vllm#12621, vllm#15297: a hash collision must not give out another prompt's KV */

enum { PROMPTS = 12 };

static void check_every_prompt_finds_its_own(void)
{
    uint32_t ids[PROMPTS][2];
    for (uint32_t i = 0; i < PROMPTS; i++) {
        kvk_seq seq = api_text(100 * i, 8);
        ck_assert_int_eq(kvk_seq_table(cache, seq, 0, ids[i], 2), 2);
        ck_assert_int_eq(kvk_seq_close(cache, seq), 2);
    }
    for (uint32_t i = 0; i < PROMPTS; i++) {
        kvk_seq seq = api_seq();
        ck_assert_int_eq(api_attach(seq, 100 * i, 9), 8);
        api_check_table(seq, 0, 2, ids[i]);
        ck_assert_int_eq(api_attach(api_seq(), 100 * i + 1, 9), 0);
        ck_assert_int_eq(kvk_audit(cache, NULL, NULL), 0);
    }
}

START_TEST(a_collision_costs_time_and_nothing_else)
{
    static const uint64_t masks[] = {0, 1, 3};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        api_open(64, NULL);
        cache->store.prefix.hash_mask = masks[i];
        check_every_prompt_finds_its_own();
        api_close();
    }
}
END_TEST

START_TEST(a_collision_does_not_cross_tenants)
{
    const kvk_seq_params tenants[] = {{.size = sizeof tenants[0], .salt = {1, 0}},
                                      {.size = sizeof tenants[0], .salt = {0, 1}},
                                      {.size = sizeof tenants[0], .adapter = 1}};
    kvk_seq seq;
    api_open(64, NULL);
    cache->store.prefix.hash_mask = 0;
    ck_assert_uint_ne(api_text(0, 8), 0);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(kvk_seq_open(cache, &tenants[i], &seq), 0);
        ck_assert_int_eq(api_attach(seq, 0, 9), 0);
        ck_assert_int_eq(kvk_reserve(cache, seq, 8, KVK_RECLAIM), 2);
        ck_assert_int_eq(api_commit(seq, 0, 8), 2);
    }
    ck_assert_int_eq(api_attach(api_seq(), 0, 9), 8);
    api_close();
}
END_TEST

START_TEST(reclaiming_one_of_many_colliding_pages_loses_only_that)
{
    api_open(PROMPTS, NULL);
    cache->store.prefix.hash_mask = 0;
    for (uint32_t i = 0; i < PROMPTS; i++)
        ck_assert_int_eq(kvk_seq_close(cache, api_text(100 * i, 4)), 1);
    for (uint32_t lost = 1; lost <= PROMPTS; lost++) {
        ck_assert_int_eq(kvk_reserve(cache, api_seq(), 4, KVK_RECLAIM), 1);
        for (uint32_t i = 0; i < PROMPTS; i++) {
            uint32_t tokens[5] = {100 * i, 100 * i + 1, 100 * i + 2, 100 * i + 3, 0};
            const kvk_text prompt = {.n_tokens = 5, .tokens = tokens};
            ck_assert_int_eq(kvk_prefix_lookup(cache, NULL, &prompt), i < lost ? 0 : 4);
        }
    }
    api_close();
}
END_TEST

/* ---- vllm#50427, vllm#47671: bytes beyond 2^31 and 2^32 */

START_TEST(moves_reach_beyond_four_gibibytes)
{
    const uint64_t stride = UINT64_C(1) << 31;
    char *base = mmap(NULL, 4 * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const kvk_host_pages pages = {base, stride, 0, 1, 8, 4, 4};
    const kvk_move moves[] = {{KVK_MOVE_COPY, 0, 0, 3, 4}, {KVK_MOVE_COPY, 0, 3, 2, 2}, {KVK_MOVE_ZERO, 0, 3, 3, 4}};
    ck_assert_ptr_ne(base, MAP_FAILED);
    memset(base, 'k', 32);
    ck_assert_int_eq(kvk_moves_run_host(moves, 2, &(kvk_host_memory){.groups = &pages, .n_groups = 1}), 2);
    ck_assert_mem_eq(base + 3 * stride, base, 32);
    ck_assert_mem_eq(base + 2 * stride, base, 16);
    ck_assert_int_eq(base[2 * stride + 16], 0);
    ck_assert_int_eq(kvk_moves_run_host(&moves[2], 1, &(kvk_host_memory){.groups = &pages, .n_groups = 1}), 1);
    for (size_t i = 0; i < 32; i++)
        ck_assert_int_eq(base[3 * stride + i], 0);
    munmap(base, 4 * stride);
}
END_TEST

/* ---- vllm#35219, flash-attention#1745: 0 x NaN */

static void with_zero_fill(kvk_config *config)
{
    config->zero_fill = 1;
}

static void run_moves(float kv[4][4])
{
    const kvk_host_pages pages = {kv, 4 * sizeof(float), 0, 1, sizeof(float), 4, 4};
    kvk_move moves[API_MAX];
    int n = kvk_moves_take(cache, moves, API_MAX);
    ck_assert_int_eq(kvk_moves_run_host(moves, (uint32_t)n, &(kvk_host_memory){.groups = &pages, .n_groups = 1}), n);
}

static int count_nan(float kv[4][4], kvk_seq seq)
{
    uint32_t ids[4];
    int n = kvk_seq_table(cache, seq, 0, ids, 4), found = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            found += isnan(kv[ids[i]][k]) != 0;
    return found;
}

START_TEST(no_stale_nan_is_read)
{
    float kv[4][4];
    kvk_seq child;
    for (int i = 0; i < 16; i++)
        kv[i / 4][i % 4] = NAN;
    api_open(4, with_zero_fill);
    kvk_seq seq = api_text(0, 6);
    run_moves(kv);
    ck_assert_int_eq(count_nan(kv, seq), 0);
    ck_assert_int_eq(kvk_seq_fork(cache, seq, &child), 0);
    kv[1][0] = 5, kv[1][1] = 6, kv[1][2] = NAN; /* a draft of the parent's, not the child's */
    ck_assert_int_eq(kvk_reserve(cache, child, 1, KVK_RECLAIM), 1);
    run_moves(kv);
    ck_assert_int_eq(count_nan(kv, child), 0);
    ck_assert_int_eq((int)kv[2][0], 5);
    ck_assert_int_eq((int)kv[2][1], 6);
    kv[2][3] = NAN;
    ck_assert_int_eq(kvk_seq_close(cache, child), 1);
    seq = api_text(50, 8); /* takes the child's page */
    run_moves(kv);
    ck_assert_int_eq(count_nan(kv, seq), 0);
    api_close();
}
END_TEST

/* ---- vllm#45462: a row too narrow; TensorRT-LLM#15546: a buffer of a batch in flight that changes under it */

typedef struct buffers {
    int32_t pages[2][2][3], seq_lens[2], last_page_len[2][2];
    int64_t slots[2][4];
} buffers;

static void two_groups(kvk_config *config)
{
    config->n_groups = 2;
}

static kvk_plan padded(buffers *b, uint64_t row)
{
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.form = KVK_PLAN_PADDED;
    plan.entries_cap = 2;
    plan.pages_cap = row;
    plan.slots_cap = 4;
    plan.pages = b->pages;
    plan.seq_lens = b->seq_lens;
    plan.last_page_len = b->last_page_len;
    plan.slots = b->slots[0];
    plan.pad = -1;
    return plan;
}

START_TEST(a_narrow_row_writes_nothing)
{
    buffers b, before;
    kvk_batch batch;
    api_open(16, two_groups);
    kvk_seq seq = api_text(0, 8);
    ck_assert_int_eq(kvk_reserve(cache, seq, 4, KVK_RECLAIM), 2);
    const kvk_batch_entry entry = {.seq = seq, .n_query = 3};
    memset(&b, 0x5a, sizeof b);
    before = b;
    kvk_plan plan = padded(&b, 2);
    ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), KVK_ESPACE);
    ck_assert_uint_eq(plan.n_pages, 3);
    ck_assert_uint_eq(plan.n_slots, 3);
    ck_assert_mem_eq(&b, &before, sizeof b);
    ck_assert_uint_eq(api_info(seq).n_tokens, 8);
    plan = padded(&b, 3);
    plan.slots_cap = 2;
    ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), KVK_ESPACE);
    plan = padded(&b, 3);
    plan.entries_cap = 0;
    ck_assert_int_eq(kvk_batch_plan(cache, &entry, 1, &plan, &batch), KVK_ESPACE);
    ck_assert_mem_eq(&b, &before, sizeof b);
    api_close();
}
END_TEST

START_TEST(a_batch_keeps_its_buffers_and_each_group_its_place)
{
    buffers first, second, kept;
    kvk_batch batches[2];
    api_open(16, two_groups);
    kvk_seq a = api_text(0, 8), b = api_text(50, 2);
    ck_assert_int_ge(kvk_reserve(cache, a, 4, KVK_RECLAIM), 0);
    const kvk_batch_entry entries[2] = {{.seq = a, .n_query = 2}, {.seq = b, .n_query = 1}};
    memset(&first, 0, sizeof first);
    kvk_plan plan = padded(&first, 3);
    ck_assert_int_eq(kvk_batch_plan(cache, entries, 2, &plan, &batches[0]), 0);
    for (uint32_t g = 0; g < 2; g++) {
        uint32_t ids[3];
        ck_assert_int_eq(kvk_seq_table(cache, a, g, ids, 3), 3);
        for (uint32_t i = 0; i < 3; i++)
            ck_assert_int_eq(first.pages[g][0][i], (int)ids[i]);
        ck_assert_int_eq(first.pages[g][1][1], -1);
        ck_assert_int_eq(first.pages[g][1][2], -1);
        ck_assert_int_eq(first.slots[g][1], 4 * (int)ids[2] + 1);
        ck_assert_int_eq(first.last_page_len[g][0], 2);
        ck_assert_int_eq(first.last_page_len[g][1], 3);
    }
    kept = first;
    plan = padded(&second, 3);
    ck_assert_int_eq(kvk_batch_plan(cache, entries, 1, &plan, &batches[1]), 0);
    ck_assert_int_ge(kvk_seq_close(cache, a), 0);
    ck_assert_int_ge(kvk_batch_end(cache, batches[1], NULL), 0);
    ck_assert_int_ge(kvk_batch_end(cache, batches[0], NULL), 0);
    ck_assert_mem_eq(&first, &kept, sizeof first);
    api_close();
}
END_TEST

/* ---- openvino.genai#4481, model_server#4428: clients that leave in the middle of anything */

/* One client; `at` says when it leaves. Its forks leave later than it does. */
static void visit(uint32_t client, uint32_t at)
{
    kvk_batch batch = 0;
    kvk_seq child = 0, seq = api_seq();
    int attached = api_attach(seq, 7 * (client % 5), 9);
    if (at > 0 && kvk_reserve(cache, seq, 13 - (uint32_t)attached, KVK_RECLAIM) >= 0 && at > 1) {
        batch = api_plan(seq, 9 - (uint32_t)attached);
        if (at > 2)
            ck_assert_int_ge(api_commit(seq, 7 * (client % 5) + (uint32_t)attached, 9 - (uint32_t)attached), 0);
        if (at > 3) {
            ck_assert_int_ge(kvk_batch_end(cache, batch, NULL), 0);
            ck_assert_int_eq(kvk_seq_fork(cache, seq, &child), 0);
        }
        if (at > 4)
            ck_assert_int_ge(kvk_reserve(cache, child, 5, KVK_RECLAIM), 0);
    }
    ck_assert_int_ge(kvk_seq_close(cache, seq), 0);
    if (child)
        ck_assert_int_ge(kvk_seq_close(cache, child), 0);
    if (batch && at <= 3)
        ck_assert_int_ge(kvk_batch_end(cache, batch, NULL), 0);
    kvk_move moves[API_MAX];
    ck_assert_int_ge(kvk_moves_take(cache, moves, API_MAX), 0);
}

START_TEST(clients_that_leave_take_nothing_with_them)
{
    uint64_t warm = 0;
    api_open(12, NULL);
    for (uint32_t client = 0; client < 3000; client++) {
        visit(client, client % 6);
        kvk_stats stats = api_stats();
        ck_assert_uint_eq(stats.pages_free + stats.pages_cached, 12);
        ck_assert_uint_eq(stats.sequences + stats.batches_in_flight + stats.live_tokens, 0);
        if (client == 299)
            warm = stats.memory_bytes;
    }
    ck_assert_uint_eq(api_stats().memory_bytes, warm);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("field_faults", a_collision_costs_time_and_nothing_else, a_collision_does_not_cross_tenants,
                     reclaiming_one_of_many_colliding_pages_loses_only_that, moves_reach_beyond_four_gibibytes,
                     no_stale_nan_is_read, a_narrow_row_writes_nothing,
                     a_batch_keeps_its_buffers_and_each_group_its_place, clients_that_leave_take_nothing_with_them);
}
