/* Append on the device against append on the host, byte for byte. */
#include "attention/convert.h"
#include "device/memory.h"
#include "device/tests.h"

#include <kvkeep/cuda.h>

#include <math.h>
#include <stdlib.h>

#define PAGES 5u
#define PAGE_TOKENS 4u
#define LAYERS 2u
#define HEADS 3u
#define SIZE 70u /* more than a warp's lanes, and no multiple of them */
#define TOKENS 6u
#define FIRST_FAR 70000u /* pages before it are not there: 4.6 GB of them */

static const int64_t slots[TOKENS] = {17, -1, 0, 19, 10, 11}; /* pages 4, none, 0, 4, 2 and 2 */
static const kvk_dtype stored[] = {KVK_F32, KVK_F16, KVK_BF16, KVK_F8_E4M3, KVK_I8, KVK_I4};
static const kvk_dtype sources[] = {KVK_F32, KVK_F16, KVK_BF16};

typedef struct cache {
    kvk_kv kv;
    uint64_t bytes, n_scales;
} cache;

/* What no token has is 0xff. */
static cache open_cache(kvk_dtype dtype)
{
    cache c;
    kvk_kv_init(&c.kv, dtype, PAGES, PAGE_TOKENS);
    ck_assert_int_eq(kvk_kv_shape(&c.kv, LAYERS, HEADS, SIZE), 0);
    c.kv.head_stride += 16;
    c.kv.value_stride += 64;
    c.kv.layer_stride = 2 * c.kv.value_stride;
    c.kv.page_stride = 65536;
    c.kv.k_scale = 0.5f;
    c.kv.v_scale = 3;
    ck_assert_int_eq(kvk_kv_bytes(&c.kv, &c.bytes, &c.n_scales), 0);
    c.kv.base = memset(malloc(c.bytes), 0xff, c.bytes);
    c.kv.scales = c.n_scales ? memset(malloc(c.n_scales * sizeof(float)), 0xff, c.n_scales * sizeof(float)) : NULL;
    return c;
}

static void close_cache(cache *c)
{
    free(c->kv.base);
    free(c->kv.scales);
}

/* Numbers of all sizes; a row of zeroes, one with an infinity, one with NaN. */
static float number(uint32_t token, uint32_t head, uint32_t d)
{
    static const float odd[] = {0, HUGE_VALF, NAN};
    uint32_t mixed = (token * HEADS + head) * SIZE + d + 1;
    mixed = (mixed ^ mixed >> 7) * 2654435761u;
    if (token == 4 && (head == 0 || d == 13))
        return odd[head];
    return ldexpf((float)(mixed >> 8) / 8388608.0f - 1, (int)(mixed % 20) - 10);
}

static kvk_rows make_rows(kvk_dtype dtype, float sign)
{
    uint64_t stride = SIZE + 3, bytes = (uint64_t)TOKENS * HEADS * stride * 4;
    void *memory = memset(malloc(bytes), 0, bytes);
    for (uint32_t i = 0; i < TOKENS * HEADS * SIZE; i++)
        store_element(memory, dtype, (uint32_t)(i / SIZE * stride) + i % SIZE,
                      sign * number(i / SIZE / HEADS, i / SIZE % HEADS, i % SIZE));
    return (kvk_rows){memory, dtype, 0, HEADS * stride, stride};
}

static void *rows_copy(const kvk_rows *rows)
{
    return device_copy_of(rows->data, (uint64_t)TOKENS * HEADS * (SIZE + 3) * 4);
}

static void append_on_device(const cache *c, uint32_t layer, const kvk_cuda_tokens *tokens, uint32_t first_page)
{
    cache d = *c;
    kvk_cuda_tokens t = *tokens;
    int64_t at[TOKENS];
    unsigned char *base = device_copy_of(c->kv.base, c->bytes);
    float *scales = device_copy_of(c->kv.scales, c->n_scales * sizeof(float));
    for (uint32_t i = 0; i < TOKENS; i++)
        at[i] = slots[i] < 0 ? -1 : slots[i] + (int64_t)first_page * PAGE_TOKENS;
    d.kv.n_pages += first_page;
    d.kv.base = (void *)((uintptr_t)base - first_page * c->kv.page_stride);
    d.kv.scales =
        (float *)((uintptr_t)scales - (uint64_t)first_page * LAYERS * 2 * HEADS * PAGE_TOKENS * sizeof(float));
    t.slots = device_copy_of(at, sizeof at);
    t.k.data = rows_copy(&tokens->k);
    t.v.data = rows_copy(&tokens->v);
    ck_assert_int_eq(kvk_cuda_append(&d.kv, layer, &t, NULL), 0);
    device_read(c->kv.base, base, c->bytes);
    device_read(c->kv.scales, scales, c->n_scales * sizeof(float));
    void *arrays[] = {base, scales, (void *)(uintptr_t)t.slots, (void *)(uintptr_t)t.k.data,
                      (void *)(uintptr_t)t.v.data};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        device_free(arrays[i]);
}

static void agrees(kvk_dtype dtype, kvk_dtype source, uint32_t first_page)
{
    cache found = open_cache(dtype), exact = open_cache(dtype);
    kvk_cuda_tokens t = {
        .size = sizeof t, .n = TOKENS, .slots = slots, .k = make_rows(source, 1), .v = make_rows(source, -2)};
    append_on_device(&found, 1, &t, first_page);
    ck_assert_int_eq(kvk_append(&exact.kv, 1, slots, TOKENS, &t.k, &t.v), 0);
    ck_assert_msg(memcmp(found.kv.base, exact.kv.base, exact.bytes) == 0, "type %d from %d", dtype, source);
    ck_assert(exact.n_scales == 0 || memcmp(found.kv.scales, exact.kv.scales, exact.n_scales * sizeof(float)) == 0);
    close_cache(&found);
    close_cache(&exact);
    free((void *)(uintptr_t)t.k.data);
    free((void *)(uintptr_t)t.v.data);
}

START_TEST(every_type_is_written_as_on_the_host)
{
    agrees(stored[_i / 3], sources[_i % 3], 0);
}
END_TEST

START_TEST(pages_beyond_4_gb_are_reached)
{
    agrees(stored[_i], KVK_F32, FIRST_FAR);
}
END_TEST

START_TEST(a_slot_past_the_last_page_is_skipped)
{
    cache c = open_cache(KVK_F16);
    kvk_cuda_tokens t = {.size = sizeof t, .n = TOKENS, .k = make_rows(KVK_F32, 1), .v = make_rows(KVK_F32, 1)};
    c.kv.n_pages = 0; /* so that all are */
    append_on_device(&c, 0, &t, 0);
    for (uint64_t i = 0; i < c.bytes; i++)
        ck_assert_uint_eq(((uint8_t *)c.kv.base)[i], 0xff);
    close_cache(&c);
    free((void *)(uintptr_t)t.k.data);
    free((void *)(uintptr_t)t.v.data);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    cache c = open_cache(KVK_I8);
    kvk_rows rows = make_rows(KVK_F32, 1);
    kvk_cuda_tokens t = {.size = sizeof t, .n = 1, .slots = slots, .k = rows, .v = rows};
    ck_assert_int_eq(kvk_cuda_append(NULL, 0, &t, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_cuda_append(&c.kv, LAYERS, &t, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_cuda_append(&c.kv, 0, NULL, NULL), KVK_EINVAL);
    t.size--;
    ck_assert_int_eq(kvk_cuda_append(&c.kv, 0, &t, NULL), KVK_EINVAL);
    t.size++;
    t.v.dtype = KVK_I8;
    ck_assert_int_eq(kvk_cuda_append(&c.kv, 0, &t, NULL), KVK_EINVAL);
    t.n = 0;
    ck_assert_int_eq(kvk_cuda_append(&c.kv, 0, &t, NULL), 0);
    close_cache(&c);
    free((void *)(uintptr_t)rows.data);
}
END_TEST

void add_append_tests(TCase *tests)
{
    tcase_add_loop_test(tests, every_type_is_written_as_on_the_host, 0, 18);
    tcase_add_loop_test(tests, pages_beyond_4_gb_are_reached, 0, 6);
    tcase_add_test(tests, a_slot_past_the_last_page_is_skipped);
    tcase_add_test(tests, what_cannot_be_is_refused);
}
