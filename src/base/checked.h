/* base/checked.h: arithmetic on sizes that came from input. Each returns 0 and sets *out, or KVK_EINVAL on overflow. */
#ifndef KVK_BASE_CHECKED_H
#define KVK_BASE_CHECKED_H

#include <kvkeep/base.h>

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

#endif
