/* What append writes, byte for byte. */
#include "attention/convert.h"
#include "run_tests.h"

#include <math.h>
#include <stdlib.h>

#define PAGES 6u
#define PAGE_TOKENS 4u
#define LAYERS 3u
#define HEADS 2u
#define SIZE 6u
#define TOKENS 5u

static const kvk_dtype stored[] = {KVK_F32, KVK_F16, KVK_BF16, KVK_F8_E4M3, KVK_I8, KVK_I4};
static const kvk_dtype sources[] = {KVK_F32, KVK_F16, KVK_BF16};
static const int64_t slots[TOKENS] = {17, -1, 0, 23, 10}; /* pages 4, none, 0, 5 and 2 */

typedef struct cache {
    kvk_kv kv;
    uint64_t bytes, n_scales;
} cache;

/* What no token has is 0xff. Tokens before heads, and gaps, if `odd`. */
static cache open_cache(kvk_dtype dtype, int odd)
{
    cache c;
    kvk_kv_init(&c.kv, dtype, PAGES, PAGE_TOKENS);
    ck_assert_int_eq(kvk_kv_shape(&c.kv, LAYERS, HEADS, SIZE), 0);
    if (odd) {
        c.kv.head_stride = c.kv.token_stride + 8;
        c.kv.token_stride = c.kv.head_stride * HEADS;
        c.kv.value_stride = c.kv.token_stride * PAGE_TOKENS;
        c.kv.layer_stride = c.kv.value_stride * 2;
        c.kv.page_stride = c.kv.layer_stride * LAYERS;
    }
    c.kv.k_scale = 0.5f;
    c.kv.v_scale = 2;
    ck_assert_int_eq(kvk_kv_bytes(&c.kv, &c.bytes, &c.n_scales), 0);
    c.kv.base = memset(malloc(c.bytes), 0xff, c.bytes);
    c.kv.scales = c.n_scales ? memset(malloc(c.n_scales * 4), 0xff, c.n_scales * 4) : NULL;
    return c;
}

static void close_cache(cache *c)
{
    free(c->kv.base);
    free(c->kv.scales);
}

/* The number of a dimension of a token's K or V: different everywhere, and exact in every type but the integers. */
static float number(uint32_t value, uint32_t token, uint32_t head, uint32_t d)
{
    return ((float)((value * 7 + token * 5 + head * 3 + d) % 15) - 7) * (value ? 0.5f : 0.25f);
}

/* Rows with gaps: tokens 20 elements apart, heads 9. */
static kvk_rows make_rows(kvk_dtype dtype, uint32_t value, void *memory)
{
    memset(memory, 0xff, TOKENS * 20 * 4);
    for (uint32_t i = 0; i < TOKENS * HEADS * SIZE; i++) {
        uint32_t token = i / (HEADS * SIZE), head = i / SIZE % HEADS, d = i % SIZE;
        store_element(memory, dtype, token * 20 + head * 9 + d, number(value, token, head, d));
    }
    return (kvk_rows){memory, dtype, 0, 20, 9};
}

static int append(const cache *c, uint32_t layer, kvk_dtype source, const int64_t *at)
{
    float k_memory[TOKENS * 20], v_memory[TOKENS * 20];
    kvk_rows k = make_rows(source, 0, k_memory), v = make_rows(source, 1, v_memory);
    return kvk_append(&c->kv, layer, at, TOKENS, &k, &v);
}

/* Where the row of token t of the batch begins: the default layout written out, or that with tokens before heads. */
static const void *row_of(const cache *c, int odd, uint32_t layer, uint32_t value, uint32_t head, uint32_t t)
{
    uint64_t page = (uint64_t)slots[t] / PAGE_TOKENS, token = (uint64_t)slots[t] % PAGE_TOKENS;
    uint64_t row = layout_row_bytes(c->kv.dtype, SIZE);
    uint64_t plane = (page * LAYERS + layer) * 2 + value; /* of [head][token][dim] */
    if (odd)
        return (char *)c->kv.base + ((plane * PAGE_TOKENS + token) * HEADS + head) * (row + 8);
    return (char *)c->kv.base + ((plane * HEADS + head) * PAGE_TOKENS + token) * row;
}

static float scale_of(const cache *c, uint32_t layer, uint32_t value, uint32_t head, uint32_t t)
{
    uint64_t page = (uint64_t)slots[t] / PAGE_TOKENS, token = (uint64_t)slots[t] % PAGE_TOKENS;
    if (c->kv.dtype == KVK_F8_E4M3)
        return value ? 2 : 0.5f;
    return c->n_scales ? c->kv.scales[(((page * LAYERS + layer) * 2 + value) * HEADS + head) * PAGE_TOKENS + token] : 1;
}

/* Half a step, the step of an integer type being the row's largest number over the type's. */
static float tolerance(const cache *c, uint32_t value, uint32_t head, uint32_t t)
{
    float largest = 0;
    for (uint32_t d = 0; d < SIZE; d++)
        largest = fmaxf(largest, fabsf(number(value, t, head, d)));
    return c->kv.dtype == KVK_I8 ? largest / 253 : c->kv.dtype == KVK_I4 ? largest / 13.9f : 0;
}

START_TEST(rows_lie_where_the_layout_says)
{
    cache c = open_cache(stored[_i % 6], 0);
    float row[SIZE];
    ck_assert_int_eq(append(&c, 1, sources[_i / 6], slots), 0);
    for (uint32_t i = 0; i < TOKENS * HEADS * 2; i++) {
        uint32_t t = i / 4, head = i / 2 % 2, value = i % 2;
        if (slots[t] < 0)
            continue;
        load_row_float(row_of(&c, 0, 1, value, head, t), c.kv.dtype, SIZE, scale_of(&c, 1, value, head, t), row);
        for (uint32_t d = 0; d < SIZE; d++)
            ck_assert_msg(fabsf(row[d] - number(value, t, head, d)) <= tolerance(&c, value, head, t), "token %u", t);
    }
    close_cache(&c);
}
END_TEST

/* Bytes that are not 0xff any more: those of the rows of four tokens, two heads, K and V, and no others. */
START_TEST(nothing_else_is_written)
{
    cache c = open_cache(KVK_F16, 0);
    uint64_t written = 0, in_rows = 0;
    ck_assert_int_eq(append(&c, 2, KVK_F32, slots), 0);
    for (uint64_t i = 0; i < c.bytes / 2; i++)
        written += ((uint16_t *)c.kv.base)[i] != 0xffff;
    for (uint32_t i = 0; i < TOKENS * HEADS * 2; i++)
        for (uint32_t d = 0; d < SIZE && slots[i / 4] >= 0; d++)
            in_rows += ((const uint16_t *)row_of(&c, 0, 2, i % 2, i / 2 % 2, i / 4))[d] != 0xffff;
    ck_assert_uint_eq(written, 4 * 2 * 2 * SIZE);
    ck_assert_uint_eq(in_rows, written);
    close_cache(&c);
}
END_TEST

START_TEST(strides_are_followed)
{
    cache c = open_cache(KVK_F32, 1);
    ck_assert_int_eq(append(&c, 0, KVK_F32, slots), 0);
    for (uint32_t d = 0; d < SIZE; d++) {
        ck_assert(((const float *)row_of(&c, 1, 0, 1, 1, 0))[d] == number(1, 0, 1, d));
        ck_assert(((const float *)row_of(&c, 1, 0, 0, 0, 3))[d] == number(0, 3, 0, d));
    }
    close_cache(&c);
}
END_TEST

START_TEST(a_slot_past_the_last_page_refuses_all)
{
    cache c = open_cache(KVK_I8, 0);
    int64_t bad[TOKENS] = {1, 2, 3, 4, PAGES * PAGE_TOKENS};
    ck_assert_int_eq(append(&c, 0, KVK_F32, bad), KVK_EINVAL);
    bad[4] = INT64_MAX;
    ck_assert_int_eq(append(&c, 0, KVK_F32, bad), KVK_EINVAL);
    for (uint64_t i = 0; i < c.bytes; i++)
        ck_assert_uint_eq(((uint8_t *)c.kv.base)[i], 0xff);
    for (uint64_t i = 0; i < c.n_scales; i++)
        ck_assert(isnan(c.kv.scales[i]));
    bad[4] = PAGES * PAGE_TOKENS - 1;
    ck_assert_int_eq(append(&c, 0, KVK_F32, bad), 0);
    close_cache(&c);
}
END_TEST

START_TEST(the_same_type_is_copied_bit_by_bit)
{
    cache c = open_cache(KVK_F16, 0);
    uint16_t row[SIZE] = {0x7c01, 0xfe55, 0x8000, 1, 0x7c00, 0x3c00}; /* NaNs with payloads, -0, the smallest, inf, 1 */
    int64_t slot = 0;
    kvk_rows rows = {row, KVK_F16, 0, 0, 0}; /* the same row for both heads */
    ck_assert_int_eq(kvk_append(&c.kv, 0, &slot, 1, &rows, &rows), 0);
    ck_assert_mem_eq(c.kv.base, row, sizeof row);
    close_cache(&c);
}
END_TEST

/* The largest is 127 of 2^-6, so that is the step. */
START_TEST(integers_are_the_nearest_steps)
{
    cache c = open_cache(KVK_I8, 0);
    float row[SIZE] = {127.0f / 64, 0.75f, -127.0f / 64, 0.0078125f, 0.0234375f, 0};
    const int8_t steps[SIZE] = {127, 48, -127, 0, 2, 0}; /* half a step goes to 0, one and a half go to 2 */
    int64_t slot = 5;
    kvk_rows rows = {row, KVK_F32, 0, 0, 0};
    ck_assert_int_eq(kvk_append(&c.kv, 2, &slot, 1, &rows, &rows), 0);
    ck_assert_mem_eq((char *)c.kv.base + (((1 * LAYERS + 2) * 2 + 1) * HEADS * PAGE_TOKENS + 1) * SIZE, steps, SIZE);
    ck_assert(c.kv.scales[((1 * LAYERS + 2) * 2 + 1) * HEADS * PAGE_TOKENS + 1] == 0.015625f);
    close_cache(&c);
}
END_TEST

START_TEST(no_tokens_are_no_work)
{
    cache c = open_cache(KVK_F32, 0);
    kvk_rows none = {0};
    ck_assert_int_eq(kvk_append(&c.kv, 0, NULL, 0, &none, &none), 0);
    close_cache(&c);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("append");
    tcase_add_loop_test(tests, rows_lie_where_the_layout_says, 0, 18);
    tcase_add_test(tests, nothing_else_is_written);
    tcase_add_test(tests, strides_are_followed);
    tcase_add_test(tests, a_slot_past_the_last_page_refuses_all);
    tcase_add_test(tests, the_same_type_is_copied_bit_by_bit);
    tcase_add_test(tests, integers_are_the_nearest_steps);
    tcase_add_test(tests, no_tokens_are_no_work);
    return run_tests("append", tests);
}
