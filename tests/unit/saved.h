/* saved.h: states of caches in memory. */
#ifndef SAVED_H
#define SAVED_H

#include <check.h>

#include "kvkeep/kvkeep.h"

enum { SAVED_MOST = 1 << 20 };

typedef struct bytes {
    unsigned char *data;
    size_t n, at, fails_at; /* fails_at: 0 never */
} bytes;

int saved_put(void *ctx, const char *from, size_t n);

/* Gives less than it is asked for, as a reader may. */
int64_t saved_get(void *ctx, char *to, size_t n);
int64_t saved_refuse(void *ctx, char *to, size_t n);

/* `data` is the caller's to free. */
bytes saved_state(kvk_cache *c);
int saved_load(kvk_cache *c, const bytes *b);

/* Puts the checksum right. */
void saved_seal(bytes *b);

void saved_same(const bytes *a, const bytes *b);

#endif
