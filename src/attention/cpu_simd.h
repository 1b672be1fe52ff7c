/* attention/cpu_simd.h: vectors of floats, as wide as VECTOR_BYTES says: 64 (AVX-512), 32 (AVX2) or 16. They are the
 * compiler's own vectors, so all but a few conversions and shuffles reads as arithmetic.
 *
 * Included once by each file that is compiled for an instruction set. */
#ifndef KVK_ATTENTION_CPU_SIMD_H
#define KVK_ATTENTION_CPU_SIMD_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined __AVX__ || defined __SSE2__
#include <immintrin.h>
#endif

#define WIDTH (VECTOR_BYTES / 4)
#define INLINE static inline __attribute__((always_inline))

typedef float floats __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t ints __attribute__((vector_size(VECTOR_BYTES)));

INLINE floats floats_at(const void *from)
{
    floats x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE void put_floats(void *to, floats x)
{
    memcpy(to, &x, sizeof x);
}

INLINE ints ints_at(const void *from)
{
    ints x;
    memcpy(&x, from, sizeof x);
    return x;
}

INLINE floats all(float x)
{
    return x - (floats){0}; /* not +: -0 stays -0 */
}

INLINE floats choose(ints which, floats a, floats b)
{
    return (floats)(((ints)a & which) | ((ints)b & ~which));
}

/* 0, 1, 2, ... */
INLINE ints lanes(void)
{
    const int32_t counted[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return ints_at(counted);
}

/* ---- what differs with the width: loading numbers of fewer bits (e4m3 as 1/E4M3_UNIT of what it stands for: its bits
 * are, shifted, those of a half), the larger of two, and folding, which sums the lanes of many vectors at a time: two
 * become one of which each half, quarter, .. holds sums of one of them. All shuffles have their pattern in the
 * instruction. */
#define E4M3_UNIT 256.0f
#define SHUFFLE(...) __builtin_shufflevector(__VA_ARGS__)

#if VECTOR_BYTES == 64

INLINE ints ints_of_u16(const char *from)
{
    return (ints)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from));
}

INLINE ints ints_of_i8(const char *from)
{
    return (ints)_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)from));
}

/* Of each byte first the low half, then the high one, less 8. */
INLINE ints ints_of_i4(const char *from)
{
    __m128i pairs = _mm_loadl_epi64((const void *)from), mask = _mm_set1_epi8(15);
    __m128i low = _mm_and_si128(pairs, mask), high = _mm_and_si128(_mm_srli_epi16(pairs, 4), mask);
    return (ints)_mm512_cvtepi8_epi32(_mm_sub_epi8(_mm_unpacklo_epi8(low, high), _mm_set1_epi8(8)));
}

INLINE floats floats_of_f16(const char *from)
{
    return (floats)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)from));
}

INLINE floats floats_of_e4m3(const char *from)
{
    __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)from)), rest = _mm256_set1_epi16(0x7f);
    __m256i magnitude = _mm256_and_si256(x, rest),
            sign = _mm256_and_si256(_mm256_slli_epi16(x, 8), _mm256_set1_epi16(INT16_MIN));
    __m256i nan = _mm256_and_si256(_mm256_cmpeq_epi16(magnitude, rest), _mm256_set1_epi16(0x7c00));
    __m256i half = _mm256_or_si256(_mm256_or_si256(_mm256_slli_epi16(magnitude, 7), sign), nan);
    return (floats)_mm512_cvtph_ps(half);
}

INLINE floats larger(floats a, floats b)
{
    return (floats)_mm512_max_ps((__m512)a, (__m512)b);
}

INLINE floats fold_halves(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
           SHUFFLE(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}

INLINE floats fold_quarters(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27) +
           SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

INLINE floats fold_pairs(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
           SHUFFLE(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}

INLINE floats fold_lanes(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30) +
           SHUFFLE(a, b, 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31);
}

INLINE floats fold_column(floats x[4][4], uint32_t column)
{
    return fold_quarters(fold_halves(x[0][column], x[1][column]), fold_halves(x[2][column], x[3][column]));
}

/* Lane 4 * i + k: the sum of x[i][k]. */
INLINE floats fold(floats x[4][4])
{
    return fold_lanes(fold_pairs(fold_column(x, 0), fold_column(x, 1)),
                      fold_pairs(fold_column(x, 2), fold_column(x, 3)));
}

INLINE float largest(floats x)
{
    return _mm512_reduce_max_ps((__m512)x);
}

#elif VECTOR_BYTES == 32

INLINE ints ints_of_u16(const char *from)
{
    return (ints)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)from));
}

INLINE ints ints_of_i8(const char *from)
{
    return (ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)from));
}

/* Of each byte first the low half, then the high one, less 8. */
INLINE ints ints_of_i4(const char *from)
{
    __m128i pairs = _mm_loadu_si32(from), mask = _mm_set1_epi8(15);
    __m128i low = _mm_and_si128(pairs, mask), high = _mm_and_si128(_mm_srli_epi16(pairs, 4), mask);
    return (ints)_mm256_cvtepi8_epi32(_mm_sub_epi8(_mm_unpacklo_epi8(low, high), _mm_set1_epi8(8)));
}

INLINE floats floats_of_f16(const char *from)
{
    return (floats)_mm256_cvtph_ps(_mm_loadu_si128((const void *)from));
}

INLINE floats floats_of_e4m3(const char *from)
{
    __m128i x = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)from)), rest = _mm_set1_epi16(0x7f);
    __m128i magnitude = _mm_and_si128(x, rest), sign = _mm_and_si128(_mm_slli_epi16(x, 8), _mm_set1_epi16(INT16_MIN));
    __m128i nan = _mm_and_si128(_mm_cmpeq_epi16(magnitude, rest), _mm_set1_epi16(0x7c00));
    return (floats)_mm256_cvtph_ps(_mm_or_si128(_mm_or_si128(_mm_slli_epi16(magnitude, 7), sign), nan));
}

INLINE floats larger(floats a, floats b)
{
    return (floats)_mm256_max_ps((__m256)a, (__m256)b);
}

INLINE floats fold_halves(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + SHUFFLE(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
}

INLINE floats fold_pairs(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 1, 8, 9, 4, 5, 12, 13) + SHUFFLE(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}

INLINE floats fold_lanes(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 2, 8, 10, 4, 6, 12, 14) + SHUFFLE(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
}

/* Lane 2 * i + k: the sum of x[i][k]. */
INLINE floats fold(floats x[4][2])
{
    return fold_lanes(fold_pairs(fold_halves(x[0][0], x[2][0]), fold_halves(x[0][1], x[2][1])),
                      fold_pairs(fold_halves(x[1][0], x[3][0]), fold_halves(x[1][1], x[3][1])));
}

INLINE float largest(floats x)
{
    x = larger(x, SHUFFLE(x, x, 4, 5, 6, 7, 0, 1, 2, 3));
    x = larger(x, SHUFFLE(x, x, 2, 3, 0, 1, 6, 7, 4, 5));
    return larger(x, SHUFFLE(x, x, 1, 0, 3, 2, 5, 4, 7, 6))[0];
}

#else

INLINE ints ints_of_u16(const char *from)
{
    uint16_t x[4];
    memcpy(x, from, sizeof x);
    return (ints){x[0], x[1], x[2], x[3]};
}

INLINE ints ints_of_i8(const char *from)
{
    int8_t x[4];
    memcpy(x, from, sizeof x);
    return (ints){x[0], x[1], x[2], x[3]};
}

/* Of each byte first the low half, then the high one, less 8. */
INLINE ints ints_of_i4(const char *from)
{
    uint8_t x[2];
    memcpy(x, from, sizeof x);
    return (ints){x[0] & 15, x[0] >> 4, x[1] & 15, x[1] >> 4} - 8;
}

/* Of the bits of halves. The exponent of their magnitudes as floats is 112 too low, that of subnormal ones too. */
INLINE floats floats_of_halves(ints bits)
{
    ints magnitude = bits & 0x7fff;
    floats finite = (floats)(magnitude << 13) * 0x1p112f, special = (floats)((magnitude << 13) | 0x7f800000);
    return (floats)((ints)choose(magnitude >= 0x7c00, special, finite) | (bits & 0x8000) << 16);
}

INLINE floats floats_of_f16(const char *from)
{
    return floats_of_halves(ints_of_u16(from));
}

INLINE floats floats_of_e4m3(const char *from)
{
    uint8_t x[4];
    memcpy(x, from, sizeof x);
    ints bits = {x[0], x[1], x[2], x[3]}, magnitude = bits & 0x7f;
    return floats_of_halves(magnitude << 7 | (bits & 0x80) << 8 | ((magnitude == 0x7f) & 0x7c00));
}

INLINE floats larger(floats a, floats b)
{
#ifdef __SSE2__
    return (floats)_mm_max_ps((__m128)a, (__m128)b);
#else
    return choose(a > b, a, b);
#endif
}

INLINE floats fold_pairs(floats a, floats b)
{
    return SHUFFLE(a, b, 0, 1, 4, 5) + SHUFFLE(a, b, 2, 3, 6, 7);
}

/* Lane i: the sum of x[i][0]. */
INLINE floats fold(floats x[4][1])
{
    floats a = fold_pairs(x[0][0], x[1][0]), b = fold_pairs(x[2][0], x[3][0]);
    return SHUFFLE(a, b, 0, 2, 4, 6) + SHUFFLE(a, b, 1, 3, 5, 7);
}

INLINE float largest(floats x)
{
    x = larger(x, SHUFFLE(x, x, 2, 3, 0, 1));
    return larger(x, SHUFFLE(x, x, 1, 0, 3, 2))[0];
}

#endif

INLINE float sum_of(floats x)
{
    float sum = 0;
    for (uint32_t i = 0; i < WIDTH; i++)
        sum += x[i];
    return sum;
}

/* ---- functions */

/* 2^x, relative error below 2e-7; 0 where it is below the smallest normal float, and for NaN. For x below 128. */
INLINE floats exp2_of(floats x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: the sum's unit is 1, its last bits the nearest integer */
    floats shifted = x + magic, f = x - (shifted - magic);
    floats y = f * 1.32647273e-3f + 9.67151299e-3f; /* minimax for -1/2 .. 1/2 */
    y = y * f + 5.55073358e-2f;
    y = y * f + 2.40222424e-1f;
    y = y * f + 6.93147004e-1f;
    y = y * f + 1;
    ints scaled = (ints)y + ((ints)shifted << 23);
    return (floats)(scaled & (x > -125.5f));
}

INLINE floats exp_of(floats x)
{
    return exp2_of(x * 1.44269504f);
}

/* tanh(x), absolute error below 2e-7. */
INLINE floats tanh_of(floats x)
{
    floats size = (floats)((ints)x & INT32_MAX);
    floats e = exp_of(size * -2.0f);
    return (floats)((ints)((1 - e) / (1 + e)) | ((ints)x & INT32_MIN));
}

#endif
