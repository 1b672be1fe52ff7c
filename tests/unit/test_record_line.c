/* Floats in a recording: as few digits as read back the same, whoever reads them. */
#define _POSIX_C_SOURCE 200809L
#include "api.h"
#include "cache/record_line.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *written(float value)
{
    static recorder r;
    r.n = 0;
    line_float(&r, value);
    r.bytes[r.n] = '\0';
    return r.bytes;
}

START_TEST(short_numbers_stay_short)
{
    static const struct {
        float value;
        const char *text;
    } cases[] = {
        {0, "0"},
        {-0.0f, "-0.0"},
        {1, "1"},
        {-2.5f, "-2.5"},
        {0.1f, "0.1"},
        {0.3f, "0.3"},
        {100, "100"},
        {1234567, "1234567"},
        {16777216, "16777216"},
        {0x1p24f * 100, "16777216e2"},
        {1e-9f, "0.000000001"},
        {1e-10f, "1e-10"},
        {1e10f, "1e10"},
        {1.0f / 3, "0.33333334"},          /* 0.333333343267..., between 0.3333333135 and 0.3333333731 */
        {0x1p-149f, "140129846e-53"},      /* 1.40129846432...e-45 */
        {0x1.fffffep127f, "340282347e30"}, /* 3.40282346638...e38 */
        {NAN, "\"nan\""},
        {INFINITY, "\"inf\""},
        {-INFINITY, "\"-inf\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_str_eq(written(cases[i].value), cases[i].text);
}
END_TEST

static void check_reads_back(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    const char *text = written(value);
    float again = strtof(text, NULL), as_json = (float)strtod(text, NULL);
    if (memcmp(&value, &again, sizeof value) || memcmp(&value, &as_json, sizeof value))
        ck_abort_msg("%a is written as %s", (double)value, text);
}

START_TEST(all_floats_read_back)
{
    for (uint32_t bits = 1; bits < 0x7f800000u; bits += 1009) {
        check_reads_back(bits);
        check_reads_back(bits | 0x80000000u);
    }
    for (uint32_t exponent = 0; exponent < 255; exponent++) /* around the powers of two */
        for (uint32_t k = 0; k < 8; k++)
            check_reads_back((exponent << 23) + k - (exponent ? 4 : 0));
    for (int ten = -45; ten <= 38; ten++) { /* and of ten */
        char text[16];
        snprintf(text, sizeof text, "1e%d", ten);
        float value = strtof(text, NULL);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        for (uint32_t k = 0; k < 8; k++)
            check_reads_back(bits + k > 4 ? bits + k - 4 : k);
    }
}
END_TEST

/* Digits of the shortest decimal of at least 6 that the C library finds. */
static int fewest_digits(float value)
{
    char text[32];
    int n = 6;
    while (snprintf(text, sizeof text, "%.*e", n - 1, (double)value) > 0 && strtof(text, NULL) != value)
        n++;
    return n;
}

static int digits_in(const char *text)
{
    int n = 0;
    for (text += strspn(text, "-0."); *text && *text != 'e'; text++)
        n += *text != '.';
    return n;
}

START_TEST(masses_have_no_needless_digits)
{
    for (uint32_t i = 1; i < 100000; i++) {
        float value = (float)i / 99991;
        if (digits_in(written(value)) > fewest_digits(value))
            ck_abort_msg("%.9g is written as %s", (double)value, written(value));
    }
}
END_TEST

int main(void)
{
    return RUN_TESTS("record_line", short_numbers_stay_short, all_floats_read_back, masses_have_no_needless_digits);
}
