/* base/checked.h: arithmetic on sizes that came from input, which returns 0 and sets *out, or KVK_EINVAL on overflow;
 * and checks of numbers that did. */
#ifndef KVK_BASE_CHECKED_H
#define KVK_BASE_CHECKED_H

#include <kvkeep/base.h>

#include <string.h>

static inline int checked_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return __builtin_add_overflow(a, b, out) ? KVK_EINVAL : 0;
}

static inline int checked_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    return __builtin_mul_overflow(a, b, out) ? KVK_EINVAL : 0;
}

static inline uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0);
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* True if all values are from 0 to `most`. Seen as integers, floats from 0 up are in order, and what is infinite or no
 * number is above them all; what is negative has the highest bit. -0 is as good as 0. */
static inline int floats_are_within(const float *values, uint64_t n, float most)
{
    int32_t limit, above = 0, negative = 0;
    memcpy(&limit, &most, sizeof limit);
    for (uint64_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        above |= bits > limit;
        negative |= bits;
    }
    for (uint64_t i = 0; negative < 0 && i < n; i++)
        above |= !(values[i] >= 0);
    return !above;
}

#endif
