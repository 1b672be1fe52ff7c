/* Arguments that are refused, one fault at a time, with nothing written; and shapes and sizes of caches. */
#include "attention/tiny.h"
#include "run_tests.h"

#include <math.h>
#include <string.h>

static tiny t;
static const uint32_t two[] = {2}, three[] = {3};
static const int32_t places[] = {1}; /* of one number */

/* Two tokens, both queries, on two layers of which the second is read. */
static void open_call(void)
{
    tiny_open(&t, 2, 2);
    t.kv.n_layers = 2;
    t.attention.layer = 1;
    t.out.rows = two;
    memset(t.o, 0xff, sizeof t.o);
    memset(t.lse, 0xff, sizeof t.lse);
}

static void is_refused(void)
{
    ck_assert_int_eq(kvk_attention_reference(&t.attention, &t.out), KVK_EINVAL);
    ck_assert(isnan(t.o[0]) && isnan(t.lse[0]));
    ck_assert(t.mean[0] == 0 && t.peak[0] == 0 && t.near[0] == 0);
}

/* clang-format off */
#define FAULTS(X) \
    X(another_size_of_the_call, t.attention.size--) \
    X(another_size_of_the_cache, t.kv.size = 0) \
    X(another_size_of_the_output, t.out.size++) \
    X(no_cache, t.attention.kv = NULL) \
    X(no_memory, t.kv.base = NULL) \
    X(memory_between_two_numbers, t.kv.base = (char *)t.cache + 2) \
    X(a_stride_of_half_a_number, t.kv.token_stride = 6) \
    X(no_scales, (t.kv.dtype = KVK_I8, t.kv.scales = NULL)) \
    X(an_unknown_type, t.kv.dtype = 6) \
    X(a_scale_of_nothing, (t.kv.dtype = KVK_F8_E4M3, t.kv.v_scale = 0)) \
    X(a_scale_that_is_no_number, (t.kv.dtype = KVK_F8_E4M3, t.kv.k_scale = NAN)) \
    X(a_layer_too_many, t.attention.layer = 2) \
    X(no_heads, t.attention.n_heads = 0) \
    X(heads_that_do_not_divide, (t.kv.n_heads = 2, t.attention.n_heads = 3)) \
    X(a_scale_without_end, t.attention.scale = HUGE_VALF) \
    X(a_negative_cap, t.attention.soft_cap = -1) \
    X(a_cap_that_is_no_number, t.attention.soft_cap = NAN) \
    X(no_indptr, t.attention.indptr = NULL) \
    X(no_query_indptr, t.attention.query_indptr = NULL) \
    X(no_lengths, t.attention.seq_lens = NULL) \
    X(no_pages, t.attention.pages = NULL) \
    X(lists_that_begin_later, t.indptr[0] = 1) \
    X(lists_that_end_before_they_begin, t.indptr[1] = -1) \
    X(queries_that_end_before_they_begin, t.query_indptr[1] = -1) \
    X(more_queries_than_tokens, t.seq_lens[0] = 1) \
    X(a_negative_length, (t.seq_lens[0] = -1, t.query_indptr[1] = 0, t.indptr[1] = 0)) \
    X(a_negative_page, t.pages[1] = -1) \
    X(a_page_past_the_last, t.pages[1] = TINY_TOKENS) \
    X(positions_that_do_not_ascend, t.positions[1] = 0) \
    X(a_negative_position, t.positions[0] = -1) \
    X(a_page_after_the_text, t.positions[1] = 2) \
    X(a_position_inside_a_page, (t.kv.page_tokens = 2, t.indptr[1] = 1, t.positions[0] = 1)) \
    X(a_missing_page_without_positions, (t.attention.positions = NULL, t.indptr[1] = 1)) \
    X(a_page_too_many_without_positions, (t.attention.positions = NULL, t.indptr[1] = 3)) \
    X(no_queries, t.attention.q.data = NULL) \
    X(queries_of_integers, t.attention.q.dtype = KVK_I8) \
    X(queries_without_end, t.attention.q.token_stride = UINT64_MAX / 2) \
    X(output_of_integers, t.out.o_dtype = KVK_F8_E4M3) \
    X(output_without_end, t.out.o_head_stride = t.out.o_token_stride = UINT64_MAX) \
    X(rows_for_some_queries, t.out.rows = three) \
    X(a_negative_weight, t.out.weight = -1) \
    X(a_weight_that_is_no_number, t.out.weight = NAN) \
    X(an_unknown_peak, t.out.near_kind = 2) \
    X(no_room_for_peaks, t.out.near_values = 0) \
    X(a_layer_of_peaks_too_many, t.out.near_first = 1) \
    X(peaks_past_all_numbers, (t.out.near_first = UINT32_MAX, t.out.near_values = INT32_MAX)) \
    X(more_peaks_than_places_can_say, t.out.near_values = 1u << 31) \
    X(a_place_past_the_peaks, t.out.near_places = places)
/* clang-format on */

#define REFUSED(name, damage)                                                                                          \
    START_TEST(name)                                                                                                   \
    {                                                                                                                  \
        open_call();                                                                                                   \
        damage;                                                                                                        \
        is_refused();                                                                                                  \
    }                                                                                                                  \
    END_TEST
FAULTS(REFUSED)

START_TEST(without_a_fault_it_is_taken)
{
    open_call();
    ck_assert_int_eq(kvk_attention_reference(&t.attention, &t.out), 0);
    ck_assert_int_eq(kvk_attention_reference(&t.attention, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_attention_reference(NULL, &t.out), KVK_EINVAL);
}
END_TEST

/* ---- append */

START_TEST(append_refuses_what_it_cannot_write)
{
    float row[4] = {1, 2, 3, 4};
    int64_t slot = 1;
    kvk_rows good = {row, KVK_F32, 0, 1, 1}, none = good, integers = good, endless = good;
    none.data = NULL;
    integers.dtype = KVK_I4;
    endless.head_stride = UINT64_MAX;
    open_call();
    t.kv.n_heads = 2;
    ck_assert_int_eq(kvk_append(NULL, 0, &slot, 1, &good, &good), KVK_EINVAL);
    ck_assert_int_eq(kvk_append(&t.kv, 2, &slot, 1, &good, &good), KVK_EINVAL);
    ck_assert_int_eq(kvk_append(&t.kv, 0, NULL, 1, &good, &good), KVK_EINVAL);
    ck_assert_int_eq(kvk_append(&t.kv, 0, &slot, 1, NULL, &good), KVK_EINVAL);
    ck_assert_int_eq(kvk_append(&t.kv, 0, &slot, 1, &good, &none), KVK_EINVAL);
    ck_assert_int_eq(kvk_append(&t.kv, 0, &slot, 1, &integers, &good), KVK_EINVAL);
    ck_assert_int_eq(kvk_append(&t.kv, 0, &slot, 1, &endless, &good), KVK_EINVAL);
    for (uint32_t i = 0; i < TINY_TOKENS; i++)
        ck_assert(t.cache[i][0][0] == 0 && t.cache[i][1][0] == 0);
}
END_TEST

/* ---- shapes */

START_TEST(the_default_layout_has_no_gaps)
{
    kvk_kv kv;
    uint64_t bytes, n_scales;
    kvk_kv_init(&kv, KVK_I4, 1000, 16);
    ck_assert_int_eq(kvk_kv_shape(&kv, 32, 8, 128), 0);
    ck_assert_uint_eq(kv.token_stride, 64);
    ck_assert_uint_eq(kv.head_stride, 1024);
    ck_assert_uint_eq(kv.value_stride, 8192);
    ck_assert_uint_eq(kv.layer_stride, 16384);
    ck_assert_uint_eq(kv.page_stride, 524288);
    ck_assert(kv.k_scale == 1 && kv.v_scale == 1);
    ck_assert_int_eq(kvk_kv_bytes(&kv, &bytes, &n_scales), 0);
    ck_assert_uint_eq(bytes, 524288000);
    ck_assert_uint_eq(n_scales, 1000u * 32 * 2 * 8 * 16);
}
END_TEST

/* The last row, of 5 dimensions of 2 bytes, begins 3 pages, 1 layer, V, 2 heads and 7 tokens after the first. */
START_TEST(bytes_are_those_that_the_strides_span)
{
    kvk_kv kv;
    uint64_t bytes, n_scales;
    kvk_kv_init(&kv, KVK_BF16, 4, 8);
    ck_assert_int_eq(kvk_kv_shape(&kv, 2, 3, 5), 0);
    kv.page_stride = 100000;
    kv.layer_stride = 20000;
    kv.value_stride = 4000;
    kv.head_stride = 30;
    kv.token_stride = 200;
    ck_assert_int_eq(kvk_kv_bytes(&kv, &bytes, &n_scales), 0);
    ck_assert_uint_eq(bytes, 300000 + 20000 + 4000 + 60 + 1400 + 10);
    ck_assert_uint_eq(n_scales, 0);
}
END_TEST

static int shape(kvk_dtype dtype, uint32_t n_pages, uint32_t page_tokens, uint32_t n_layers, uint32_t head_size)
{
    kvk_kv kv, before;
    kvk_kv_init(&kv, dtype, n_pages, page_tokens);
    before = kv;
    int rc = kvk_kv_shape(&kv, n_layers, 8, head_size);
    if (rc < 0)
        ck_assert_mem_eq(&kv, &before, sizeof kv);
    return rc;
}

START_TEST(shapes_out_of_range_are_refused)
{
    ck_assert_int_eq(shape(KVK_F16, 1, 1, 1, 1), 0);
    ck_assert_int_eq(shape(KVK_F16, 1, 65536, 1, 1024), 0);
    ck_assert_int_eq(shape(KVK_F16, INT32_MAX, 1, 1, 1), 0);
    ck_assert_int_eq(shape(KVK_F16, 0, 1, 1, 1), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_F16, 1u << 31, 1, 1, 1), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_F16, 1, 0, 1, 1), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_F16, 1, 65537, 1, 1), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_F16, 1, 1, 0, 1), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_F16, 1, 1, 1, 0), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_F16, 1, 1, 1, 1025), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_I4, 1, 1, 1, 81), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_I4, 1, 1, 1, 80), 0);
    ck_assert_int_eq(kvk_kv_shape(NULL, 1, 1, 1), KVK_EINVAL);
}
END_TEST

/* Past 2^63 bytes; past 2^64 in a stride or in the sum, which would look small if it wrapped around. */
START_TEST(sizes_past_63_bits_are_refused)
{
    kvk_kv kv;
    uint64_t bytes, n_scales;
    ck_assert_int_eq(shape(KVK_I8, INT32_MAX, 65536, 1u << 20, 1024), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_F32, 1u << 30, 65536, 1u << 9, 2), 0); /* 2^62 bytes */
    ck_assert_int_eq(shape(KVK_F32, 1u << 30, 65536, 1u << 10, 2), KVK_EINVAL);
    ck_assert_int_eq(shape(KVK_I8, 1u << 30, 65536, 1u << 10, 1), 0); /* 2^60 bytes and 2^62 of scales */
    ck_assert_int_eq(shape(KVK_I8, 1u << 30, 65536, 1u << 11, 1), KVK_EINVAL);
    kvk_kv_init(&kv, KVK_F32, 3, 1);
    ck_assert_int_eq(kvk_kv_shape(&kv, 2, 1, 4), 0);
    kv.page_stride = 1ull << 63;
    ck_assert_int_eq(kvk_kv_bytes(&kv, &bytes, &n_scales), KVK_EINVAL);
    kv.page_stride = 1ull << 61;
    kv.layer_stride = 3ull << 61;
    ck_assert_int_eq(kvk_kv_bytes(&kv, &bytes, &n_scales), KVK_EINVAL);
    kv.layer_stride = 1ull << 60;
    ck_assert_int_eq(kvk_kv_bytes(&kv, &bytes, &n_scales), 0);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("refusal");
#define ADD(name, damage) tcase_add_test(tests, name);
    FAULTS(ADD)
    tcase_add_test(tests, without_a_fault_it_is_taken);
    tcase_add_test(tests, append_refuses_what_it_cannot_write);
    tcase_add_test(tests, the_default_layout_has_no_gaps);
    tcase_add_test(tests, bytes_are_those_that_the_strides_span);
    tcase_add_test(tests, shapes_out_of_range_are_refused);
    tcase_add_test(tests, sizes_past_63_bits_are_refused);
    return run_tests("refusal", tests);
}
