/* Moves on the device against moves on the host, byte for byte. */
#include "device/memory.h"
#include "device/tests.h"

#include <kvkeep/cuda.h>

#include <stdlib.h>
#include <string.h>

#define GROUPS 2u
#define PAGES 6u
#define SWAP_PAGES 3u
#define MOVES 40u

/* Pages of two groups, and a host pool for each, laid out otherwise. */
typedef struct pools {
    kvk_host_pages pages[GROUPS], swap[GROUPS];
} pools;

static kvk_host_pages make_pages(uint32_t n, uint32_t token_bytes, uint32_t gap)
{
    kvk_host_pages p = {.rows = 5, .token_bytes = token_bytes, .page_tokens = 8, .n_pages = n};
    p.row_stride = (uint64_t)token_bytes * p.page_tokens + gap;
    p.page_stride = p.row_stride * p.rows + gap;
    return p;
}

static uint64_t bytes_of(const kvk_host_pages *p)
{
    return p->page_stride * p->n_pages;
}

static void fill(kvk_host_pages *p, uint32_t seed)
{
    uint8_t *at = p->base = malloc(bytes_of(p));
    for (uint64_t i = 0; i < bytes_of(p); i++)
        at[i] = (uint8_t)((seed + i) * 2654435761u >> 24);
}

static pools open_pools(uint32_t token_bytes, uint32_t gap)
{
    pools p;
    for (uint32_t g = 0; g < GROUPS; g++) {
        p.pages[g] = make_pages(PAGES, token_bytes * (g + 1), gap);
        p.swap[g] = make_pages(SWAP_PAGES, token_bytes * (g + 1), 2 * gap);
        fill(&p.pages[g], g);
        fill(&p.swap[g], 10 + g);
    }
    return p;
}

static void close_pools(pools *p)
{
    for (uint32_t g = 0; g < GROUPS; g++) {
        free(p->pages[g].base);
        free(p->swap[g].base);
    }
}

/* Moves of every kind, most of which read what an earlier one wrote. */
static void make_moves(kvk_move *moves)
{
    uint32_t state = 1;
    for (uint32_t i = 0; i < MOVES; i++) {
        state = state * 1664525u + 1013904223u;
        kvk_move *m = &moves[i];
        m->kind = state >> 28 & 3;
        m->group = state >> 27 & 1;
        m->src = (state >> 20 & 63) % (m->kind == KVK_MOVE_SWAP_IN ? SWAP_PAGES : PAGES);
        m->dst = (state >> 12 & 63) % (m->kind == KVK_MOVE_SWAP_OUT ? SWAP_PAGES : PAGES);
        m->n_tokens = 1 + (state >> 8 & 7);
    }
}

/* Runs moves on copies in device memory whose first `far` pages are not there, and copies what comes of it back. */
static void run_on_device(const kvk_move *moves, uint32_t n, pools *p, uint32_t far)
{
    pools d = *p;
    kvk_host_pages *from[] = {&p->pages[0], &p->pages[1], &p->swap[0], &p->swap[1]};
    kvk_host_pages *to[] = {&d.pages[0], &d.pages[1], &d.swap[0], &d.swap[1]};
    void *copies[4], *list = device_copy_of(moves, n * sizeof *moves);
    for (int i = 0; i < 4; i++) {
        copies[i] = device_copy_of(from[i]->base, bytes_of(from[i]));
        to[i]->base = (void *)((uintptr_t)copies[i] - far * to[i]->page_stride);
        to[i]->n_pages += far;
    }
    kvk_host_memory where = {.groups = d.pages, .swap = d.swap, .n_groups = GROUPS};
    ck_assert_int_eq(kvk_cuda_moves(list, n, &where, NULL), 0);
    for (int i = 0; i < 4; i++) {
        device_read(from[i]->base, copies[i], bytes_of(from[i]));
        device_free(copies[i]);
    }
    device_free(list);
}

static void are_equal(const pools *a, const pools *b)
{
    for (uint32_t g = 0; g < GROUPS; g++) {
        ck_assert(memcmp(a->pages[g].base, b->pages[g].base, bytes_of(&a->pages[g])) == 0);
        ck_assert(memcmp(a->swap[g].base, b->swap[g].base, bytes_of(&a->swap[g])) == 0);
    }
}

static void agrees(uint32_t token_bytes, uint32_t gap)
{
    kvk_move moves[MOVES];
    pools found = open_pools(token_bytes, gap), exact = open_pools(token_bytes, gap);
    kvk_host_memory where = {.groups = exact.pages, .swap = exact.swap, .n_groups = GROUPS};
    make_moves(moves);
    run_on_device(moves, MOVES, &found, 0);
    ck_assert_int_eq(kvk_moves_run_host(moves, MOVES, &where), MOVES);
    are_equal(&found, &exact);
    close_pools(&found);
    close_pools(&exact);
}

START_TEST(moves_run_in_order_as_on_the_host)
{
    static const uint32_t token_bytes[] = {32, 32, 12, 5}, gaps[] = {0, 16, 8, 3}; /* in units of 16, 16, 4, 1 bytes */
    agrees(token_bytes[_i], gaps[_i]);
}
END_TEST

/* The second page of two ends 4.3 GB after the first of all. */
START_TEST(pages_beyond_4_gb_are_reached)
{
    const uint32_t far = 3000000;
    kvk_move near_by = {.kind = KVK_MOVE_COPY, .src = 1, .dst = 3, .n_tokens = 8}, far_off = near_by;
    far_off.src += far;
    far_off.dst += far;
    pools found = open_pools(32, 16), exact = open_pools(32, 16);
    kvk_host_memory where = {.groups = exact.pages, .swap = exact.swap, .n_groups = GROUPS};
    run_on_device(&far_off, 1, &found, far);
    ck_assert_int_eq(kvk_moves_run_host(&near_by, 1, &where), 1);
    are_equal(&found, &exact);
    close_pools(&found);
    close_pools(&exact);
}
END_TEST

START_TEST(moves_that_are_not_valid_are_skipped)
{
    static const kvk_move bad[] = {{KVK_MOVE_COPY, 0, 0, PAGES, 1},          {KVK_MOVE_COPY, 0, PAGES, 0, 1},
                                   {KVK_MOVE_COPY, GROUPS, 0, 1, 1},         {KVK_MOVE_ZERO, 1, 0, 0, 9},
                                   {KVK_MOVE_SWAP_OUT, 0, 0, SWAP_PAGES, 1}, {KVK_MOVE_SWAP_IN, 0, SWAP_PAGES, 0, 1},
                                   {KVK_MOVE_SWAP_IN + 1, 0, 0, 1, 1},       {KVK_MOVE_COPY, 0, 0, 1, 0}};
    pools found = open_pools(32, 0), exact = open_pools(32, 0);
    run_on_device(bad, sizeof bad / sizeof *bad, &found, 0);
    are_equal(&found, &exact);
    close_pools(&found);
    close_pools(&exact);
}
END_TEST

START_TEST(memory_that_cannot_be_is_refused)
{
    kvk_move m = {.n_tokens = 1};
    pools p = open_pools(32, 0);
    kvk_host_memory where = {.groups = p.pages, .swap = p.swap, .n_groups = GROUPS};
    ck_assert_int_eq(kvk_cuda_moves(&m, 1, NULL, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_cuda_moves(NULL, 1, &where, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_cuda_moves(NULL, 0, &where, NULL), 0);
    p.swap[1].rows++;
    ck_assert_int_eq(kvk_cuda_moves(&m, 1, &where, NULL), KVK_EINVAL);
    p.swap[1].rows--;
    p.pages[0].token_bytes = 0;
    ck_assert_int_eq(kvk_cuda_moves(&m, 1, &where, NULL), KVK_EINVAL);
    close_pools(&p);
}
END_TEST

void add_moves_tests(TCase *tests)
{
    tcase_add_loop_test(tests, moves_run_in_order_as_on_the_host, 0, 4);
    tcase_add_test(tests, pages_beyond_4_gb_are_reached);
    tcase_add_test(tests, moves_that_are_not_valid_are_skipped);
    tcase_add_test(tests, memory_that_cannot_be_is_refused);
}
