/* Conversions against their definition: a number is mantissa * 2^exponent, and the nearest one has the even mantissa
 * where two are as near. */
#include "attention/convert.h"
#include "run_tests.h"

#include <math.h>

/* A type of sign, exponent and mantissa. */
typedef struct narrow_type {
    const char *name;
    int exponent_bits, mantissa_bits, bias;
    int has_infinity; /* else only the mantissa of all ones is NaN in the largest exponent */
    double largest;
    uint32_t (*of_float)(float);
    float (*to_float)(uint32_t);
} narrow_type;

static uint32_t f16_of(float x)
{
    return f16_of_float(x);
}

static float f16_to(uint32_t bits)
{
    return float_of_f16((uint16_t)bits);
}

static uint32_t bf16_of(float x)
{
    return bf16_of_float(x);
}

static float bf16_to(uint32_t bits)
{
    return float_of_bf16((uint16_t)bits);
}

static uint32_t e4m3_of(float x)
{
    return e4m3_of_float(x);
}

static float e4m3_to(uint32_t bits)
{
    return float_of_e4m3((uint8_t)bits);
}

static const narrow_type types[] = {
    {"f16", 5, 10, 15, 1, 65504, f16_of, f16_to},
    {"bf16", 8, 7, 127, 1, 0x1.fep127, bf16_of, bf16_to},
    {"e4m3", 4, 3, 7, 0, 448, e4m3_of, e4m3_to},
};

static uint32_t sign_of(const narrow_type *t)
{
    return 1u << (t->exponent_bits + t->mantissa_bits);
}

/* The number that bits stand for, by the definition; NaN for no number. */
static double defined(const narrow_type *t, uint32_t bits)
{
    int exponent = (int)(bits >> t->mantissa_bits) & ((1 << t->exponent_bits) - 1);
    int mantissa = (int)(bits & ((1u << t->mantissa_bits) - 1)), highest = (1 << t->exponent_bits) - 1;
    double sign = bits & sign_of(t) ? -1 : 1;
    if (exponent == highest && t->has_infinity)
        return mantissa ? (double)NAN : sign * HUGE_VAL;
    if (exponent == highest && mantissa == (1 << t->mantissa_bits) - 1)
        return (double)NAN;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - t->bias - t->mantissa_bits);
    return sign * ldexp(mantissa + (1 << t->mantissa_bits), exponent - t->bias - t->mantissa_bits);
}

START_TEST(every_stored_number_is_what_its_bits_say)
{
    const narrow_type *t = &types[_i];
    for (uint32_t bits = 0; bits < 2 * sign_of(t); bits++) {
        double expected = defined(t, bits), found = (double)t->to_float(bits);
        if (isnan(expected))
            ck_assert_msg(isnan(found), "%s %#x is a number: %g", t->name, bits, found);
        else
            ck_assert_msg(found == expected && signbit(found) == signbit(expected), "%s %#x: %g, not %g", t->name, bits,
                          found, expected);
    }
}
END_TEST

START_TEST(every_stored_number_is_stored_as_itself)
{
    const narrow_type *t = &types[_i];
    for (uint32_t bits = 0; bits < 2 * sign_of(t); bits++) {
        uint32_t again = t->of_float(t->to_float(bits));
        if (isnan(defined(t, bits)))
            ck_assert_msg(isnan(defined(t, again)), "%s %#x becomes a number", t->name, bits);
        else
            ck_assert_msg(again == bits, "%s %#x becomes %#x", t->name, bits, again);
    }
}
END_TEST

/* The middle of two neighbours is a float exactly. */
START_TEST(the_middle_goes_to_the_even_neighbour_and_all_else_to_the_nearer)
{
    const narrow_type *t = &types[_i];
    for (uint32_t low = 0; defined(t, low) < t->largest; low++) {
        float middle = (float)((defined(t, low) + defined(t, low + 1)) / 2);
        uint32_t even = low & 1 ? low + 1 : low, sign = sign_of(t);
        ck_assert_double_eq((double)middle, (defined(t, low) + defined(t, low + 1)) / 2);
        ck_assert_msg(t->of_float(middle) == even, "%s: the middle above %#x", t->name, low);
        ck_assert_msg(t->of_float(-middle) == (even | sign), "%s: the middle below %#x", t->name, low | sign);
        ck_assert_msg(t->of_float(nextafterf(middle, 0)) == low, "%s: below the middle above %#x", t->name, low);
        ck_assert_msg(t->of_float(nextafterf(middle, HUGE_VALF)) == low + 1, "%s: above the middle above %#x", t->name,
                      low);
    }
}
END_TEST

/* Any float, by rounding it to a whole number of units of its exponent. */
static double nearest(const narrow_type *t, double x)
{
    int exponent;
    frexp(x, &exponent);
    int smallest = 2 - t->bias; /* as frexp counts: of 0.5 .. 1 */
    int unit = (exponent > smallest ? exponent : smallest) - 1 - t->mantissa_bits;
    double rounded = ldexp(nearbyint(ldexp(x, -unit)), unit);
    if (fabs(rounded) > t->largest)
        return copysign(t->has_infinity ? HUGE_VAL : t->largest, x);
    return rounded;
}

START_TEST(floats_of_all_sizes_go_to_the_nearest)
{
    const narrow_type *t = &types[_i];
    for (uint64_t bits = 0; bits < 1ull << 32; bits += 4099) {
        float x = bits_float((uint32_t)bits);
        double found = (double)t->to_float(t->of_float(x));
        if (isnan(x))
            ck_assert(isnan(found));
        else
            ck_assert_msg(found == (isinf(x) && t->has_infinity ? (double)x : nearest(t, (double)x)),
                          "%s: %a becomes %a", t->name, (double)x, found);
    }
}
END_TEST

START_TEST(what_is_too_large_is_infinite_or_448)
{
    ck_assert_uint_eq(f16_of_float(65519.996f), 0x7bff);
    ck_assert_uint_eq(f16_of_float(65520), 0x7c00); /* the middle between 65504 and 65536 */
    ck_assert_uint_eq(f16_of_float(-1e30f), 0xfc00);
    ck_assert_uint_eq(f16_of_float(HUGE_VALF), 0x7c00);
    ck_assert_uint_eq(bf16_of_float(0x1.fffffep127f), 0x7f80);
    ck_assert_uint_eq(bf16_of_float(-HUGE_VALF), 0xff80);
    ck_assert_uint_eq(e4m3_of_float(465), 0x7e);
    ck_assert_uint_eq(e4m3_of_float(1e30f), 0x7e);
    ck_assert_uint_eq(e4m3_of_float(-HUGE_VALF), 0xfe);
}
END_TEST

/* ---- integers */

START_TEST(integers_round_to_even_and_stay_within)
{
    ck_assert_int_eq(round_within(0.5f, 127), 0);
    ck_assert_int_eq(round_within(1.5f, 127), 2);
    ck_assert_int_eq(round_within(2.5f, 127), 2);
    ck_assert_int_eq(round_within(-2.5f, 127), -2);
    ck_assert_int_eq(round_within(-3.5f, 127), -4);
    ck_assert_int_eq(round_within(126.6f, 127), 127);
    ck_assert_int_eq(round_within(1e9f, 127), 127);
    ck_assert_int_eq(round_within(-1e9f, 7), -7);
}
END_TEST

START_TEST(a_rows_scale_is_its_largest_over_the_types_largest)
{
    float row[4] = {1, -254, 3, 0}, zeroes[3] = {0, -0.0f, 0}, broken[3] = {1, NAN, 2}, endless[2] = {-HUGE_VALF, 1};
    ck_assert(row_scale(row, 4, 127) == 2);
    ck_assert(row_scale(zeroes, 3, 127) == 0);
    ck_assert(isnan(row_scale(broken, 3, 127)));
    ck_assert(isinf(row_scale(endless, 2, 7)));
}
END_TEST

/* The largest distance is half a step, the step being the scale. */
START_TEST(quantised_rows_are_within_half_a_step)
{
    float row[64], again[64];
    uint8_t stored[64];
    uint32_t dtype = _i ? KVK_I4 : KVK_I8;
    for (int i = 0; i < 64; i++)
        row[i] = sinf((float)(i * i + 1)) * (i == 20 ? 3 : 1);
    float scale = row_scale(row, 64, dtype_most(dtype));
    store_row(row, 64, dtype, scale, stored);
    load_row_float(stored, dtype, 64, scale, again);
    for (int i = 0; i < 64; i++)
        ck_assert(fabsf(again[i] - row[i]) <= scale / 2 * 1.00001f);
}
END_TEST

START_TEST(a_row_of_zeroes_comes_back_as_zeroes)
{
    float row[4] = {0, -0.0f, 0, 0}, again[4] = {1, 1, 1, 1};
    uint8_t stored[4];
    uint32_t dtype = _i ? KVK_I4 : KVK_I8;
    store_row(row, 4, dtype, row_scale(row, 4, dtype_most(dtype)), stored);
    load_row_float(stored, dtype, 4, 0, again);
    for (int i = 0; i < 4; i++)
        ck_assert(again[i] == 0);
}
END_TEST

START_TEST(a_row_with_nan_or_infinity_does_not_look_like_numbers)
{
    float rows[2][4] = {{1, NAN, 2, 3}, {1, 2, -HUGE_VALF, 3}}, again[4];
    uint8_t stored[4];
    uint32_t dtype = _i ? KVK_I4 : KVK_I8;
    for (int row = 0; row < 2; row++) {
        float scale = row_scale(rows[row], 4, dtype_most(dtype));
        store_row(rows[row], 4, dtype, scale, stored);
        load_row_float(stored, dtype, 4, scale, again);
        for (int i = 0; i < 4; i++)
            ck_assert(!isfinite(again[i]));
    }
}
END_TEST

START_TEST(int4_has_the_even_dimension_in_the_low_half)
{
    float row[4] = {-7, 7, 0, 3};
    uint8_t stored[2];
    store_row(row, 4, KVK_I4, 1, stored);
    ck_assert_uint_eq(stored[0], 0xf1); /* 7 + 8, -7 + 8 */
    ck_assert_uint_eq(stored[1], 0xb8); /* 3 + 8, 0 + 8 */
}
END_TEST

/* ---- rows */

START_TEST(every_type_loads_alike_as_float_and_as_double)
{
    uint8_t stored[256];
    float floats[64];
    double doubles[64];
    for (uint32_t i = 0; i < 256; i++)
        stored[i] = (uint8_t)(i * 37 % 120); /* no NaN of any type */
    load_row_float(stored, (uint32_t)_i, 64, 0.375f, floats);
    load_row_double(stored, (uint32_t)_i, 64, 0.375f, doubles);
    for (uint32_t i = 0; i < 64; i++) {
        double element = (double)load_element(stored, (uint32_t)_i, i);
        ck_assert_double_eq(doubles[i], element * 0.375);
        ck_assert(floats[i] == (float)(element * 0.375));
    }
}
END_TEST

int main(void)
{
    int n = sizeof types / sizeof *types;
    TCase *tests = tcase_create("convert");
    tcase_add_loop_test(tests, every_stored_number_is_what_its_bits_say, 0, n);
    tcase_add_loop_test(tests, every_stored_number_is_stored_as_itself, 0, n);
    tcase_add_loop_test(tests, the_middle_goes_to_the_even_neighbour_and_all_else_to_the_nearer, 0, n);
    tcase_add_loop_test(tests, floats_of_all_sizes_go_to_the_nearest, 0, n);
    tcase_add_test(tests, what_is_too_large_is_infinite_or_448);
    tcase_add_test(tests, integers_round_to_even_and_stay_within);
    tcase_add_test(tests, a_rows_scale_is_its_largest_over_the_types_largest);
    tcase_add_loop_test(tests, quantised_rows_are_within_half_a_step, 0, 2);
    tcase_add_loop_test(tests, a_row_of_zeroes_comes_back_as_zeroes, 0, 2);
    tcase_add_loop_test(tests, a_row_with_nan_or_infinity_does_not_look_like_numbers, 0, 2);
    tcase_add_test(tests, int4_has_the_even_dimension_in_the_low_half);
    tcase_add_loop_test(tests, every_type_loads_alike_as_float_and_as_double, KVK_F32, KVK_I4 + 1);
    return run_tests("convert", tests);
}
