/* collide.c: the one place that reaches into the library, since no text that collides under XXH3-128 is known. */
#include "cache/cache.h"

#include "world.h"

void world_collide(kvk_cache *cache, uint64_t mask)
{
    cache->store.prefix.hash_mask = mask;
}
