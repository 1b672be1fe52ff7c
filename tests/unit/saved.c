#include "saved.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int saved_put(void *ctx, const char *from, size_t n)
{
    bytes *b = ctx;
    if (b->fails_at && b->n + n > b->fails_at)
        return -1;
    ck_assert_uint_le(b->n + n, SAVED_MOST);
    memcpy(b->data + b->n, from, n);
    b->n += n;
    return 0;
}

int64_t saved_get(void *ctx, char *to, size_t n)
{
    bytes *b = ctx;
    size_t step = b->n - b->at < n ? b->n - b->at : n;
    if (step > 37)
        step = 37;
    memcpy(to, b->data + b->at, step);
    b->at += step;
    return (int64_t)step;
}

int64_t saved_refuse(void *ctx, char *to, size_t n)
{
    (void)ctx, (void)to, (void)n;
    return -5;
}

bytes saved_state(kvk_cache *c)
{
    bytes b = {.data = malloc(SAVED_MOST)};
    ck_assert_int_eq(kvk_save(c, saved_put, &b), 0);
    return b;
}

int saved_load(kvk_cache *c, const bytes *b)
{
    bytes r = {.data = b->data, .n = b->n};
    return kvk_load(c, saved_get, &r);
}

void saved_seal(bytes *b)
{
    uint64_t sum = XXH3_64bits(b->data, b->n - 8);
    memcpy(b->data + b->n - 8, &sum, 8);
}

void saved_same(const bytes *a, const bytes *b)
{
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_int_eq(memcmp(a->data, b->data, a->n), 0);
}
