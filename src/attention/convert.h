/* attention/convert.h: numbers as a cache stores them, to and from float, on host and device alike.
 *
 * Every stored number is a float exactly, but for its scale. Rounding is to nearest, ties to even, whatever the
 * processor has instructions for. NaN stays NaN; what is too large becomes infinite in f16 and bf16, and 448 in e4m3.
 * A row of int8 or int4 that holds an infinity or NaN gets a scale that makes all of it NaN or infinite. */
#ifndef KVK_ATTENTION_CONVERT_H
#define KVK_ATTENTION_CONVERT_H

#include "attention/layout.h"

#include <string.h>

KVK_HD uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

KVK_HD float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- Types with fewer bits: sign, exponent, mantissa ------------------------------------------------------------ */

/* Rounds a finite magnitude (a float's bits without the sign) to `mantissa` bits below the leading one, and below the
 * smallest normal exponent, 1 - bias, to that exponent's unit. Returns the type's bits, or `most` if they are above. */
KVK_HD uint32_t narrow(uint32_t magnitude, uint32_t mantissa, uint32_t bias, uint32_t most)
{
    uint32_t shift = 23 - mantissa, rounded;
    if (magnitude < (128 - bias) << 23) { /* the sum with a float of the unit wanted is rounded as wanted */
        uint32_t anchor = (151 - bias - mantissa) << 23;
        return float_bits(bits_float(magnitude) + bits_float(anchor)) - anchor;
    }
    rounded = magnitude + ((1u << (shift - 1)) - 1) + (magnitude >> shift & 1); /* a carry ends in the exponent */
    rounded = (rounded - ((127 - bias) << 23)) >> shift;
    return rounded < most ? rounded : most;
}

/* The float of bits without the sign, which are neither infinite nor NaN. */
KVK_HD float widen(uint32_t magnitude, uint32_t mantissa, uint32_t bias)
{
    if (magnitude >> mantissa)
        return bits_float((magnitude << (23 - mantissa)) + ((127 - bias) << 23));
    return (float)magnitude * bits_float((128 - bias - mantissa) << 23);
}

KVK_HD uint16_t f16_of_float(float x)
{
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t half = magnitude > 0x7f800000u ? 0x7e00 : narrow(magnitude, 10, 15, 0x7c00);
    return (uint16_t)((bits >> 16 & 0x8000) | half);
}

KVK_HD float float_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00)
        return bits_float(sign | 0x7f800000u | (magnitude & 0x3ff) << 13);
    return bits_float(sign | float_bits(widen(magnitude, 10, 15)));
}

KVK_HD uint16_t bf16_of_float(float x)
{
    uint32_t bits = float_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

KVK_HD float float_of_bf16(uint16_t brain)
{
    return bits_float((uint32_t)brain << 16);
}

KVK_HD uint8_t e4m3_of_float(float x)
{
    uint32_t bits = float_bits(x), magnitude = bits & 0x7fffffffu;
    uint32_t code = magnitude > 0x7f800000u ? 0x7f : narrow(magnitude, 3, 7, 0x7e);
    return (uint8_t)((bits >> 24 & 0x80) | code);
}

KVK_HD float float_of_e4m3(uint8_t code)
{
    uint32_t sign = (uint32_t)(code & 0x80) << 24, magnitude = code & 0x7fu;
    if (magnitude == 0x7f)
        return bits_float(sign | 0x7fc00000u);
    return bits_float(sign | float_bits(widen(magnitude, 3, 7)));
}

/* ---- Integers times a scale ------------------------------------------------------------------------------------- */

/* x rounded to an integer from -most to most (most below 2^22); NaN becomes one of them. */
KVK_HD int32_t round_within(float x, float most)
{
    float low = x > -most ? x : -most;
    float within = low < most ? low : most;
    return (int32_t)(float_bits(within + 12582912.0f) - 0x4b400000u); /* 1.5 * 2^23: the sum's unit is 1 */
}

/* The scale with which `row` fills -most .. most; 0 if it is all zeroes. */
KVK_HD float row_scale(const float *row, uint32_t n, float most)
{
    uint32_t largest = 0; /* magnitudes compare like their bits, NaN above all */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t magnitude = float_bits(row[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return bits_float(largest) / most;
}

KVK_HD int dtype_has_scales(uint32_t dtype)
{
    return dtype == KVK_I8 || dtype == KVK_I4;
}

/* The largest integer of a type with scales. */
KVK_HD float dtype_most(uint32_t dtype)
{
    return dtype == KVK_I8 ? 127.0f : 7.0f;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------- */

/* Element i of a row as it is stored, its scale left out. */
KVK_HD float load_element(const void *row, uint32_t dtype, uint32_t i)
{
    if (dtype == KVK_F32)
        return ((const float *)row)[i];
    if (dtype == KVK_F16)
        return float_of_f16(((const uint16_t *)row)[i]);
    if (dtype == KVK_BF16)
        return float_of_bf16(((const uint16_t *)row)[i]);
    if (dtype == KVK_F8_E4M3)
        return float_of_e4m3(((const uint8_t *)row)[i]);
    if (dtype == KVK_I8)
        return (float)((const int8_t *)row)[i];
    return (float)((((const uint8_t *)row)[i / 2] >> (4 * (i & 1)) & 15) - 8);
}

KVK_HD void load_row_float(const void *row, uint32_t dtype, uint32_t n, float scale, float *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = load_element(row, dtype, i) * scale;
}

KVK_HD void load_row_double(const void *row, uint32_t dtype, uint32_t n, float scale, double *out)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = (double)load_element(row, dtype, i) * (double)scale;
}

/* Stores x as element i of a row of a type that is not an integer. */
KVK_HD void store_element(void *row, uint32_t dtype, uint32_t i, float x)
{
    if (dtype == KVK_F32)
        ((float *)row)[i] = x;
    else if (dtype == KVK_F16)
        ((uint16_t *)row)[i] = f16_of_float(x);
    else if (dtype == KVK_BF16)
        ((uint16_t *)row)[i] = bf16_of_float(x);
    else
        ((uint8_t *)row)[i] = e4m3_of_float(x);
}

/* x / scale as the nearest integer of the type; 0 without a scale. */
KVK_HD int32_t quantise(float x, float scale, uint32_t dtype)
{
    return scale != 0 ? round_within(x / scale, dtype_most(dtype)) : 0;
}

/* Stores n floats so that loading them with `scale` gives them back: for int8 and int4 what row_scale says, for e4m3
 * the cache's, for the others 1. */
KVK_HD void store_row(const float *in, uint32_t n, uint32_t dtype, float scale, void *row)
{
    if (dtype == KVK_I8) {
        for (uint32_t i = 0; i < n; i++)
            ((int8_t *)row)[i] = (int8_t)quantise(in[i], scale, dtype);
    } else if (dtype == KVK_I4) {
        for (uint32_t i = 0; i < n; i += 2)
            ((uint8_t *)row)[i / 2] =
                (uint8_t)((quantise(in[i], scale, dtype) + 8) | (quantise(in[i + 1], scale, dtype) + 8) << 4);
    } else {
        for (uint32_t i = 0; i < n; i++)
            store_element(row, dtype, i, dtype == KVK_F8_E4M3 ? in[i] / scale : in[i]);
    }
}

#endif
