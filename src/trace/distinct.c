#include "trace/distinct.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int distinct_open(distinct *d)
{
    int rc = memory_open(&d->memory, NULL);
    if (rc == 0)
        map_open(&d->seen, &d->memory);
    return rc;
}

void distinct_close(distinct *d)
{
    if (!d->seen.memory)
        return;
    map_close(&d->seen);
    memory_close(&d->memory);
    d->seen.memory = NULL;
}

static void go_on(distinct_chain *chain, const void *row, size_t bytes)
{
    uint64_t both[4] = {chain->lo, chain->hi};
    XXH128_hash_t own = XXH3_128bits(row, bytes);
    both[2] = own.low64;
    both[3] = own.high64;
    XXH128_hash_t next = XXH3_128bits(both, sizeof both);
    *chain = (distinct_chain){next.low64, next.high64 == MAP_NONE ? 0 : next.high64};
}

int distinct_add(distinct *d, distinct_chain *chain, const void *row, size_t bytes)
{
    go_on(chain, row, bytes);
    uint64_t key = chain->lo, high;
    while ((high = map_get(&d->seen, key)) != MAP_NONE && high != chain->hi)
        key++;
    if (high == chain->hi)
        return 0;
    if (map_prepare(&d->seen, 1) < 0)
        return KVK_ENOMEM;
    map_set(&d->seen, key, chain->hi);
    return 1;
}
