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
    memory_give(&d->memory, d->high, d->cap * sizeof *d->high);
    memory_close(&d->memory);
    d->seen.memory = NULL;
}

static void go_on(distinct_chain *chain, distinct_row row)
{
    uint64_t both[4] = {chain->lo, chain->hi};
    XXH128_hash_t own = XXH3_128bits(row.bytes, row.n);
    both[2] = own.low64;
    both[3] = own.high64;
    XXH128_hash_t next = XXH3_128bits(both, sizeof both);
    *chain = (distinct_chain){next.low64, next.high64};
}

int distinct_add(distinct *d, distinct_chain *chain, distinct_row row, uint32_t *number)
{
    go_on(chain, row);
    uint64_t key = chain->lo, known;
    while ((known = map_get(&d->seen, key)) != MAP_NONE && d->high[known] != chain->hi)
        key++;
    *number = known == MAP_NONE ? d->seen.count : (uint32_t)known;
    if (known != MAP_NONE)
        return 0;
    if (map_prepare(&d->seen, 1) < 0 ||
        memory_grow(&d->memory, &d->high, &d->cap, (uint64_t)d->seen.count + 1, sizeof *d->high) < 0)
        return KVK_ENOMEM;
    d->high[*number] = chain->hi;
    map_set(&d->seen, key, *number);
    return 1;
}
