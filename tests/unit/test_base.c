/* The ground floor: memory, list, map, heap, errors. */
#include "base/checked.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "run_tests.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* ---- a small generator, so that every run is the same */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

START_TEST(every_error_has_a_name_and_a_text)
{
    for (int e = -1; e >= -11; e--) {
        ck_assert_ptr_nonnull(kvk_error_name(e));
        ck_assert_str_ne(kvk_strerror(e), "unknown error");
    }
    ck_assert_str_eq(kvk_error_name(KVK_ENOPAGE), "KVK_ENOPAGE");
    ck_assert_ptr_null(kvk_error_name(0));
    ck_assert_ptr_null(kvk_error_name(-99));
    ck_assert_str_eq(kvk_strerror(7), "ok");
    ck_assert_str_eq(kvk_strerror(-99), "unknown error");
}
END_TEST

START_TEST(sums_and_products_past_64_bits_are_refused)
{
    uint64_t out;
    ck_assert_int_eq(checked_add(UINT64_MAX - 1, 1, &out), 0);
    ck_assert_uint_eq(out, UINT64_MAX);
    ck_assert_int_eq(checked_add(UINT64_MAX, 1, &out), KVK_EINVAL);
    ck_assert_int_eq(checked_mul(UINT64_C(1) << 32, UINT64_C(1) << 31, &out), 0);
    ck_assert_int_eq(checked_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &out), KVK_EINVAL);
    ck_assert_uint_eq(ceil_div(0, 16), 0);
    ck_assert_uint_eq(ceil_div(16, 16), 1);
    ck_assert_uint_eq(ceil_div(17, 16), 2);
}
END_TEST

START_TEST(memory_counts_what_it_holds)
{
    memory m;
    uint64_t *array = NULL;
    uint32_t cap = 0;
    ck_assert_int_eq(memory_open(&m, NULL), 0);
    ck_assert_int_eq(memory_grow(&m, &array, &cap, 1, sizeof *array), 0);
    ck_assert_uint_eq(m.bytes, cap * sizeof *array);
    for (uint32_t i = 0; i < cap; i++)
        array[i] = i;
    uint32_t had = cap;
    ck_assert_int_eq(memory_grow(&m, &array, &cap, had + 1, sizeof *array), 0);
    ck_assert_uint_ge(cap, had + 1);
    for (uint32_t i = 0; i < had; i++)
        ck_assert_uint_eq(array[i], i);
    ck_assert_uint_eq(m.allocations, 2);
    ck_assert_uint_eq(m.peak_bytes, (had + cap) * sizeof *array);
    ck_assert_int_eq(memory_grow(&m, &array, &cap, UINT64_MAX, sizeof *array), KVK_ENOMEM);
    ck_assert_int_eq(memory_grow(&m, &array, &cap, UINT32_MAX, SIZE_MAX / 2), KVK_ENOMEM);
    memory_give(&m, array, cap * sizeof *array);
    ck_assert_uint_eq(m.bytes, 0);
    memory_close(&m);
}
END_TEST

START_TEST(memory_keeps_its_limit)
{
    memory m;
    ck_assert_int_eq(memory_open(&m, NULL), 0);
    m.limit = 100;
    void *block = memory_take(&m, 60);
    ck_assert_ptr_nonnull(block);
    ck_assert_ptr_null(memory_take(&m, 41));
    ck_assert_ptr_null(memory_take(&m, SIZE_MAX));
    void *rest = memory_take(&m, 40);
    ck_assert_ptr_nonnull(rest);
    memory_give(&m, block, 60);
    memory_give(&m, rest, 40);
    uint8_t *array = NULL;
    uint32_t cap = 0;
    ck_assert_int_eq(memory_grow(&m, &array, &cap, 40, 1), 0);
    ck_assert_int_eq(memory_grow(&m, &array, &cap, 60, 1), 0); /* no room to double, but for what is needed */
    ck_assert_uint_eq(cap, 60);
    ck_assert_int_eq(memory_grow(&m, &array, &cap, 61, 1), KVK_ENOMEM);
    memory_give(&m, array, cap);
    memory_close(&m);
}
END_TEST

START_TEST(a_list_keeps_order_and_forgets_from_the_middle)
{
    list_link links[4];
    list_items items = {links, sizeof *links};
    list l = LIST_EMPTY;
    for (uint32_t i = 0; i < 4; i++)
        list_push_tail(&l, items, i);
    list_remove(&l, items, 1);
    list_remove(&l, items, 3);
    ck_assert_uint_eq(l.head, 0);
    ck_assert_uint_eq(links[0].next, 2);
    ck_assert_uint_eq(l.tail, 2);
    ck_assert_uint_eq(links[2].prev, 0);
    list_remove(&l, items, 0);
    list_remove(&l, items, 2);
    ck_assert_uint_eq(l.count, 0);
    ck_assert_uint_eq(l.head, LIST_NONE);
    ck_assert_uint_eq(l.tail, LIST_NONE);
}
END_TEST

/* Keys that collide in their low bits, set and removed at random, against a plain array. */
START_TEST(a_map_agrees_with_an_array)
{
    enum { KEYS = 512 };
    uint64_t truth[KEYS], seed = 7;
    uint32_t known = 0;
    memory m;
    map x;
    memory_open(&m, NULL);
    map_open(&x, &m);
    memset(truth, 0xFF, sizeof truth);
    ck_assert_uint_eq(map_get(&x, 3), MAP_NONE);
    map_remove(&x, 3);
    for (uint32_t i = 0; i < 200000; i++) {
        uint64_t k = next_random(&seed) % KEYS, key = k << 40;
        ck_assert_uint_eq(map_get(&x, key), truth[k]);
        if (next_random(&seed) % 2) {
            ck_assert_int_eq(map_prepare(&x, 1), 0);
            known += truth[k] == MAP_NONE;
            map_set(&x, key, truth[k] = i);
        } else {
            known -= truth[k] != MAP_NONE;
            map_remove(&x, key);
            truth[k] = MAP_NONE;
        }
        ck_assert_uint_eq(x.count, known);
    }
    map_clear(&x);
    ck_assert_uint_eq(x.count, 0);
    map_close(&x);
    ck_assert_uint_eq(m.bytes, 0);
    memory_close(&m);
}
END_TEST

static uint32_t smallest(const uint64_t *keys, uint32_t n)
{
    uint32_t best = HEAP_NONE;
    for (uint32_t i = 0; i < n; i++)
        if (keys[i] != UINT64_MAX && (best == HEAP_NONE || keys[i] < keys[best]))
            best = i;
    return best;
}

/* Few distinct keys, so that the tie decides often. */
START_TEST(a_heap_agrees_with_a_scan)
{
    enum { IDS = 64 };
    uint64_t keys[IDS], seed = 3;
    memory m;
    heap h;
    memory_open(&m, NULL);
    heap_open(&h, &m);
    ck_assert_ptr_null(heap_top(&h));
    heap_remove(&h, 5);
    ck_assert_int_eq(heap_prepare(&h, IDS), 0);
    memset(keys, 0xFF, sizeof keys);
    for (uint32_t i = 0; i < 100000; i++) {
        uint32_t id = (uint32_t)(next_random(&seed) % IDS);
        if (next_random(&seed) % 3) {
            keys[id] = next_random(&seed) % 8;
            heap_push(&h, id, keys[id], id);
        } else {
            heap_remove(&h, id);
            keys[id] = UINT64_MAX;
        }
        uint32_t best = smallest(keys, IDS);
        if (best == HEAP_NONE)
            ck_assert_ptr_null(heap_top(&h));
        else
            ck_assert_uint_eq(heap_top(&h)->id, best);
    }
    heap_close(&h);
    ck_assert_uint_eq(m.bytes, 0);
    memory_close(&m);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("base");
    tcase_add_test(t, every_error_has_a_name_and_a_text);
    tcase_add_test(t, sums_and_products_past_64_bits_are_refused);
    tcase_add_test(t, memory_counts_what_it_holds);
    tcase_add_test(t, memory_keeps_its_limit);
    tcase_add_test(t, a_list_keeps_order_and_forgets_from_the_middle);
    tcase_add_test(t, a_map_agrees_with_an_array);
    tcase_add_test(t, a_heap_agrees_with_a_scan);
    return run_tests("base", t);
}
