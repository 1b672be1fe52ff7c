/* test_api_moves.c: the queue of moves, and running them on host memory. */
#include "api.h"

#include <string.h>

static void zero_fill(kvk_config *config)
{
    config->zero_fill = 1;
}

START_TEST(moves_come_oldest_first_and_once)
{
    kvk_move moves[4];
    api_open(8, zero_fill);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 12, KVK_RECLAIM), 3);
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 0), 3);
    ck_assert_int_eq(kvk_moves_take(cache, moves, 2), 2);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(moves[i].kind, KVK_MOVE_ZERO);
        ck_assert_uint_eq(moves[i].src, i);
        ck_assert_uint_eq(moves[i].dst, i);
        ck_assert_uint_eq(moves[i].n_tokens, 4);
    }
    ck_assert_int_eq(kvk_moves_take(cache, moves, 4), 1);
    ck_assert_uint_eq(moves[0].dst, 2);
    ck_assert_int_eq(kvk_moves_take(cache, moves, 4), 0);
    ck_assert_int_eq(kvk_moves_take(cache, NULL, 1), KVK_EINVAL);
    ck_assert_int_eq(kvk_moves_take(NULL, moves, 1), KVK_EINVAL);
    api_close();
}
END_TEST

START_TEST(a_copy_is_zeroed_before_it_is_filled)
{
    kvk_move moves[8];
    kvk_seq child;
    api_open(8, zero_fill);
    kvk_seq parent = api_text(100, 2);
    ck_assert_int_eq(kvk_seq_fork(cache, parent, &child), 0);
    ck_assert_int_eq(kvk_moves_take(cache, moves, 8), 1);
    ck_assert_int_eq(kvk_reserve(cache, child, 1, KVK_RECLAIM), 1);
    ck_assert_int_eq(kvk_moves_take(cache, moves, 8), 2);
    ck_assert_uint_eq(moves[0].kind, KVK_MOVE_ZERO);
    ck_assert_uint_eq(moves[1].kind, KVK_MOVE_COPY);
    ck_assert_uint_eq(moves[1].dst, moves[0].dst);
    api_close();
}
END_TEST

START_TEST(a_queue_that_is_never_quite_empty_does_not_grow)
{
    kvk_move move;
    api_open(8, zero_fill);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_reserve(cache, seq, 4, KVK_RECLAIM), 1);
    uint64_t bytes = 0;
    for (int i = 0; i < 10000; i++) {
        ck_assert_int_eq(kvk_truncate(cache, seq, 0), 1);
        ck_assert_int_eq(kvk_reserve(cache, seq, 4, KVK_RECLAIM), 1);
        ck_assert_int_eq(kvk_moves_take(cache, &move, 1), 1);
        if (i == 100)
            bytes = api_stats().memory_bytes;
    }
    ck_assert_uint_eq(api_stats().moves_waiting, 1);
    ck_assert_uint_eq(api_stats().memory_bytes, bytes);
    api_close();
}
END_TEST

/* 3 pages of 2 rows, 2 tokens of 3 bytes each; rows are 8 and pages 20 bytes apart. */
enum { PAGES = 3, PAGE_STRIDE = 20, ROW_STRIDE = 8 };

static char memory[PAGES * PAGE_STRIDE];

static const kvk_host_pages host = {.base = memory,
                                    .page_stride = PAGE_STRIDE,
                                    .row_stride = ROW_STRIDE,
                                    .rows = 2,
                                    .token_bytes = 3,
                                    .page_tokens = 2,
                                    .n_pages = PAGES};

/* Page 0 holds abcdef and uvwxyz in its rows; all else is dots. */
static void fill_memory(void)
{
    memset(memory, '.', sizeof memory);
    memcpy(memory, "abcdef..uvwxyz", 14);
}

static const char first_page[] = "abcdef..uvwxyz......";

START_TEST(moves_touch_only_the_tokens_they_name)
{
    static const kvk_move moves[] = {
        {KVK_MOVE_COPY, 0, 0, 2, 1}, {KVK_MOVE_COPY, 0, 0, 1, 2}, {KVK_MOVE_ZERO, 0, 1, 1, 1}};
    fill_memory();
    ck_assert_int_eq(kvk_moves_run_host(moves, 3, &(kvk_host_memory){.groups = &host, .n_groups = 1}), 3);
    ck_assert_mem_eq(memory, first_page, PAGE_STRIDE);
    ck_assert_mem_eq(memory + PAGE_STRIDE, "\0\0\0def..\0\0\0xyz......", PAGE_STRIDE);
    ck_assert_mem_eq(memory + 2UL * PAGE_STRIDE, "abc.....uvw.........", PAGE_STRIDE);
}
END_TEST

START_TEST(moves_run_in_order)
{
    static const kvk_move moves[] = {
        {KVK_MOVE_COPY, 0, 0, 1, 2}, {KVK_MOVE_ZERO, 0, 0, 0, 2}, {KVK_MOVE_COPY, 0, 1, 2, 2}};
    fill_memory();
    ck_assert_int_eq(kvk_moves_run_host(moves, 3, &(kvk_host_memory){.groups = &host, .n_groups = 1}), 3);
    ck_assert_mem_eq(memory + 2UL * PAGE_STRIDE, first_page, PAGE_STRIDE);
}
END_TEST

/* The first move is good: it must not be run either. */
static void refused(kvk_move bad, const kvk_host_pages *groups, uint32_t n_groups)
{
    const kvk_move moves[] = {{KVK_MOVE_ZERO, 0, 0, 0, 2}, bad};
    fill_memory();
    ck_assert_int_eq(kvk_moves_run_host(moves, 2, &(kvk_host_memory){.groups = groups, .n_groups = n_groups}),
                     KVK_EINVAL);
    ck_assert_mem_eq(memory, first_page, PAGE_STRIDE);
}

START_TEST(a_move_out_of_range_is_refused_and_none_is_run)
{
    refused((kvk_move){KVK_MOVE_COPY, 0, PAGES, 1, 1}, &host, 1);
    refused((kvk_move){KVK_MOVE_COPY, 0, 1, PAGES, 1}, &host, 1);
    refused((kvk_move){KVK_MOVE_ZERO, 0, PAGES, PAGES, 1}, &host, 1);
    refused((kvk_move){KVK_MOVE_COPY, 0, 0, 1, 0}, &host, 1);
    refused((kvk_move){KVK_MOVE_COPY, 0, 0, 1, 3}, &host, 1);
    refused((kvk_move){KVK_MOVE_COPY, 1, 0, 1, 1}, &host, 1);
    refused((kvk_move){2, 0, 0, 1, 1}, &host, 1);
}
END_TEST

START_TEST(pages_that_cannot_be_are_refused)
{
    const kvk_move good = {KVK_MOVE_ZERO, 0, 1, 1, 1};
    kvk_host_pages bad = host;
    bad.base = NULL;
    refused(good, &bad, 1);
    bad = host;
    bad.row_stride = 5; /* rows overlap */
    refused(good, &bad, 1);
    bad = host;
    bad.page_stride = 13; /* pages overlap */
    refused(good, &bad, 1);
    bad = host;
    bad.page_stride = UINT64_MAX / 2; /* beyond what can be addressed */
    refused(good, &bad, 1);
    refused(good, NULL, 1);
    refused(good, &host, 0);
}
END_TEST

START_TEST(rows_and_pages_may_touch)
{
    const kvk_move move = {KVK_MOVE_COPY, 0, 0, 1, 2};
    kvk_host_pages dense = host;
    dense.row_stride = 6;
    dense.page_stride = 12;
    memcpy(memory, "abcdefuvwxyz............", 24);
    ck_assert_int_eq(kvk_moves_run_host(&move, 1, &(kvk_host_memory){.groups = &dense, .n_groups = 1}), 1);
    ck_assert_mem_eq(memory, "abcdefuvwxyzabcdefuvwxyz", 24);
}
END_TEST

START_TEST(no_moves_are_fine)
{
    ck_assert_int_eq(kvk_moves_run_host(NULL, 0, &(kvk_host_memory){.groups = &host, .n_groups = 1}), 0);
    ck_assert_int_eq(kvk_moves_run_host(NULL, 1, &(kvk_host_memory){.groups = &host, .n_groups = 1}), KVK_EINVAL);
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_moves", moves_come_oldest_first_and_once, a_copy_is_zeroed_before_it_is_filled,
                     a_queue_that_is_never_quite_empty_does_not_grow, moves_touch_only_the_tokens_they_name,
                     moves_run_in_order, a_move_out_of_range_is_refused_and_none_is_run,
                     pages_that_cannot_be_are_refused, rows_and_pages_may_touch, no_moves_are_fine);
}
