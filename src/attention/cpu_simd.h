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

/* Folding sums the lanes of vectors, many at a time: two become one of which each half, quarter, .. holds sums of one of
 * them. All shuffles have their pattern in the instruction. */
#define SHUFFLE(...) __builtin_shufflevector(__VA_ARGS__)

#if VECTOR_BYTES == 64

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

/* exp(x), relative error below 3e-7; 0 where it is below the smallest normal float, as for -inf. For x <= 88. */
INLINE floats exp_of(floats x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: the sum's unit is 1, its last bits the nearest integer */
    floats shifted = x * 1.44269504f + magic, n = shifted - magic;
    floats f = x - n * 0.693359375f + n * 2.12194440e-4f; /* log 2 in two parts, the first times n exact */
    floats y = all(1.9875691500e-4f);
    y = y * f + 1.3981999507e-3f;
    y = y * f + 8.3334519073e-3f;
    y = y * f + 4.1665795894e-2f;
    y = y * f + 1.6666665459e-1f;
    y = y * f + 5.0000001201e-1f;
    y = y * (f * f) + f + 1;
    ints scaled = (ints)y + ((ints)shifted << 23);
    return (floats)(scaled & (x > -87.0f));
}

/* tanh(x), absolute error below 2e-7. */
INLINE floats tanh_of(floats x)
{
    floats size = (floats)((ints)x & 0x7fffffff);
    floats e = exp_of(size * -2.0f);
    return (floats)((ints)((1 - e) / (1 + e)) | ((ints)x & INT32_MIN));
}

#endif
