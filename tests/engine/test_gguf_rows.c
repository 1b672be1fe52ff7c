/* Stored numbers as floats: against another implementation, and half by half against the definition. Each is exact: no
 * product of a scale and a small whole number needs more bits than a float has, so only one sum is rounded. */
#include "engine/blocks.h"
#include "engine/gguf.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <string.h>

typedef struct stored {
    const char *name;
    uint32_t type;
    const unsigned char *bytes;
    size_t n_bytes;
    const float *want;
    size_t n;
} stored;

#define STORED(type, name)                                                                                             \
    {                                                                                                                  \
#type, type, name##_bytes, sizeof name##_bytes, name##_want, sizeof name##_want / sizeof(float)                \
    }

static const stored cases[] = {
    STORED(GGUF_Q8_0, q8_0), STORED(GGUF_Q4_0, q4_0), STORED(GGUF_Q4_1, q4_1), STORED(GGUF_Q5_0, q5_0),
    STORED(GGUF_Q5_1, q5_1), STORED(GGUF_Q4_K, q4_k), STORED(GGUF_Q5_K, q5_k), STORED(GGUF_Q6_K, q6_k),
};

/* The blocks twice, as two rows, the first of other bytes; at an odd address, since nothing in a file promises more. */
START_TEST(blocks_are_what_another_implementation_says)
{
    const stored *s = &cases[_i];
    unsigned char rows[1024];
    float got[256];
    memset(rows, 0x55, sizeof rows);
    memcpy(rows + 1 + s->n_bytes, s->bytes, s->n_bytes);
    gguf_tensor t = {.type = s->type, .n_dims = 2, .dims = {s->n, 2, 1, 1}, .data = rows + 1, .bytes = 2 * s->n_bytes};
    ck_assert_int_eq(gguf_row(&t, 1, got), 0);
    for (size_t i = 0; i < s->n; i++)
        ck_assert_msg(got[i] == s->want[i], "%s: number %zu is %.9g, not %.9g", s->name, i, (double)got[i],
                      (double)s->want[i]);
}
END_TEST

static float one(uint32_t type, const void *data)
{
    float value = 77;
    ck_assert_int_eq(gguf_row(&(gguf_tensor){.type = type, .dims = {1, 1, 1, 1}, .data = data}, 0, &value), 0);
    return value;
}

/* IEEE 754 binary16: a sign, five bits of exponent, ten of the fraction. */
static double half_by_definition(uint32_t half)
{
    double sign = half & 0x8000 ? -1 : 1, fraction = half & 1023;
    int exponent = (int)(half >> 10 & 31);
    if (exponent == 31)
        return fraction > 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent ? ldexp(1 + fraction / 1024, exponent - 15) : ldexp(fraction / 1024, -14));
}

START_TEST(every_half)
{
    for (uint32_t half = 0; half <= 0xFFFF; half++) {
        float got = one(GGUF_F16, (const unsigned char[]){half & 255, (unsigned char)(half >> 8)});
        double want = half_by_definition(half);
        ck_assert_msg(isnan(want) ? isnan(got) : (double)got == want, "%04x: %.9g, not %.9g", half, (double)got, want);
        ck_assert_int_eq(signbit(got) != 0, half >> 15 != 0);
    }
}
END_TEST

START_TEST(plain_floats)
{
    ck_assert(one(GGUF_F32, "\0\0\x20\xC0") == -2.5F);
    ck_assert(one(GGUF_BF16, "\x20\xC0") == -2.5F);
    ck_assert(one(GGUF_BF16, "\x01\0") == 0x1p-133F);
    ck_assert(isinf(one(GGUF_F32, "\0\0\x80\x7F")));
    ck_assert(isnan(one(GGUF_BF16, "\xC0\x7F")));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gguf_rows");
    tcase_add_loop_test(t, blocks_are_what_another_implementation_says, 0, (int)(sizeof cases / sizeof cases[0]));
    tcase_add_test(t, every_half);
    tcase_add_test(t, plain_floats);
    return run_tests("gguf_rows", t);
}
