#include "engine/numbers.h"

#include <math.h>
#include <string.h>

/* Sums in several lanes: the compiler may not reorder them by itself. SIDE numbers go side by side where it needs to be
 * told how. */
enum { LANES = 16, SIDE = 8 };

/* ---- Exponential ------------------------------------------------------------------------------------------------ */

#define EXP_MOST 88.0f /* above it floats end, below its negative they are no longer normal */
#define LOG2_E 1.44269504f
#define LN2_HIGH 0.693359375f /* few bits, so that a whole multiple is exact */
#define LN2_LOW -2.12194440e-4f
#define TO_WHOLE 12582912.0f /* 1.5 * 2^23: added, it leaves no bits behind the point */

/* The compiler's own vectors; processors with shorter ones take several of theirs. */
typedef float floats __attribute__((vector_size(4 * SIDE)));
typedef int32_t ints __attribute__((vector_size(4 * SIDE)));

#define INLINE static inline __attribute__((always_inline))

/* e^x in place, of SIDE numbers, within 2 units in the last place for |x| <= 88, beyond that as at 88. e^x = 2^k e^r
 * with |r| <= ln 2 / 2; the coefficients are those of the Taylor series, of which 7 terms are enough there. */
INLINE void exponentials(floats *x)
{
    floats least = {0}, most = {0}, y = *x;
    least -= EXP_MOST;
    most += EXP_MOST;
    ints over = y > most, under = y < least;
    y = (floats)(((ints)y & ~over) | ((ints)most & over));
    y = (floats)(((ints)y & ~under) | ((ints)least & under));
    floats k = y * LOG2_E + TO_WHOLE - TO_WHOLE;
    floats r = y - k * LN2_HIGH - k * LN2_LOW;
    floats p = r * (1.0f / 5040) + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.0f;
    *x = p * (floats)((__builtin_convertvector(k, ints) + 127) << 23);
}

/* ---- Vectors ---------------------------------------------------------------------------------------------------- */

static float sum_of_squares(const float *x, uint32_t n)
{
    float lanes[LANES] = {0}, sum = 0;
    uint32_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t k = 0; k < LANES; k++)
            lanes[k] += x[i + k] * x[i + k];
    for (; i < n; i++)
        sum += x[i] * x[i];
    for (uint32_t k = 0; k < LANES; k++)
        sum += lanes[k];
    return sum;
}

void rms_norm(const float *x, uint32_t n, uint32_t width, const float *weight, float epsilon, float *y)
{
#pragma omp parallel for if (n >= 16)
    for (uint32_t i = 0; i < n; i++) {
        const float *from = x + (size_t)i * width;
        float *to = y + (size_t)i * width;
        float scale = 1 / sqrtf(sum_of_squares(from, width) / (float)width + epsilon);
        for (uint32_t k = 0; k < width; k++)
            to[k] = from[k] * scale * weight[k];
    }
}

INLINE void gate_some(const float *gates, const float *ups, uint32_t n, float *out)
{
    floats g = {0}, up = {0}, e;
    memcpy(&g, gates, n * sizeof *gates);
    memcpy(&up, ups, n * sizeof *ups);
    e = -g;
    exponentials(&e);
    g = g / (1 + e) * up;
    memcpy(out, &g, n * sizeof *out);
}

INLINE void gate_row(const float *gates, const float *ups, uint32_t n, float *out)
{
    uint32_t i = 0;
    for (; i + SIDE <= n; i += SIDE)
        gate_some(gates + i, ups + i, SIDE, out + i);
    if (i < n)
        gate_some(gates + i, ups + i, n - i, out + i);
}

typedef void (*gate_kernel)(const float *gates, const float *ups, uint32_t n, float *out);

static void gate_row_base(const float *gates, const float *ups, uint32_t n, float *out)
{
    gate_row(gates, ups, n, out);
}

#ifdef __x86_64__
/* The same operations on more lanes at a time: the same results. */
__attribute__((target("avx2"))) static void gate_row_avx2(const float *gates, const float *ups, uint32_t n, float *out)
{
    gate_row(gates, ups, n, out);
}

static gate_kernel best_gate(void)
{
    return __builtin_cpu_supports("avx2") ? gate_row_avx2 : gate_row_base;
}
#else
static gate_kernel best_gate(void)
{
    return gate_row_base;
}
#endif

void gate(const float *gate_up, uint32_t n, uint32_t width, float *out)
{
    gate_kernel kernel = best_gate();
#pragma omp parallel for if (n >= 4)
    for (uint32_t i = 0; i < n; i++) {
        const float *gates = gate_up + (size_t)i * width * 2;
        kernel(gates, gates + width, width, out + (size_t)i * width);
    }
}

void add(float *to, const float *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* ---- Rotation --------------------------------------------------------------------------------------------------- */

void rotation_at(const model_shape *s, const float *factors, uint32_t position, float *out)
{
    double base = (double)s->rope_base, n = s->n_rotated;
    for (uint32_t i = 0; i < s->n_rotated / 2; i++) {
        double angle = position * pow(base, -2.0 * i / n) / (factors ? (double)factors[i] : 1);
        out[2 * i] = (float)cos(angle);
        out[2 * i + 1] = (float)sin(angle);
    }
}

void rotate(const model_shape *s, const float *rotation, float *heads, uint32_t n_heads)
{
    uint32_t half = s->n_rotated / 2;
    uint32_t step = s->pairs == MODEL_PAIRS_NEXT ? 2 : 1, apart = s->pairs == MODEL_PAIRS_NEXT ? 1 : half;
    for (uint32_t h = 0; h < n_heads; h++) {
        float *head = heads + (size_t)h * s->head_size;
        for (uint32_t i = 0; i < half; i++) {
            float *a = &head[i * step], *b = a + apart, cosine = rotation[2 * i], sine = rotation[2 * i + 1];
            float turned = *a * cosine - *b * sine;
            *b = *a * sine + *b * cosine;
            *a = turned;
        }
    }
}

/* ---- Probabilities ---------------------------------------------------------------------------------------------- */

static float highest(const float *x, uint32_t n)
{
    float most[LANES], best = -INFINITY;
    uint32_t i = 0;
    for (uint32_t k = 0; k < LANES; k++)
        most[k] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t k = 0; k < LANES; k++)
            most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    for (uint32_t k = 0; k < LANES; k++)
        best = most[k] > best ? most[k] : best;
    return best;
}

/* Adds e^(x - most) of n <= SIDE numbers, each to a sum of its own. */
INLINE void add_exponentials(const float *x, uint32_t n, float most, floats *sums)
{
    floats e = {0};
    e += most - EXP_MOST; /* where there is none: next to nothing */
    memcpy(&e, x, n * sizeof *x);
    e -= most;
    exponentials(&e);
    *sums += e;
}

/* Sums of e^(x - most), in single precision over a few at a time. */
static double sum_of_exponentials(const float *x, uint32_t n, float most)
{
    double sum = 0;
    for (uint32_t i = 0; i < n;) {
        floats sums = {0};
        for (uint32_t k = 0; k < 64 && i < n; k++, i += SIDE)
            add_exponentials(x + i, n - i < SIDE ? n - i : SIDE, most, &sums);
        for (uint32_t k = 0; k < SIDE; k++)
            sum += (double)sums[k];
    }
    return sum;
}

double negative_log_likelihood(const float *logits, uint32_t n, uint32_t token)
{
    float most = highest(logits, n);
    return log(sum_of_exponentials(logits, n, most)) + (double)most - (double)logits[token];
}
