/* base/map.h: a hash map from 64-bit keys to 64-bit values.
 *
 * Open addressing with linear probing and backward-shift deletion: no tombstones, so no slow decay. Kept at most half
 * full. Any key is allowed. Places are multiply-shift hashes (Dietzfelbinger et al., 1997) by an odd factor made of
 * where the map's memory lies, so that a file cannot be made of keys that collide. */
#ifndef KVK_BASE_MAP_H
#define KVK_BASE_MAP_H

#include "base/memory.h"

typedef struct map_entry {
    uint64_t key, value;
} map_entry;

typedef struct map {
    memory *memory;
    uint64_t factor;    /* odd */
    uint32_t shift;     /* 64 - log2(cap) */
    map_entry *entries; /* value MAP_NONE: an empty place */
    uint32_t cap;       /* 0 or a power of two */
    uint32_t count;
} map;

#define MAP_NONE UINT64_MAX /* never a value */

void map_open(map *m, memory *from);
void map_close(map *m);

/* Makes sure that `more` further keys fit without allocating. KVK_ENOMEM. */
int map_prepare(map *m, uint32_t more);

/* The value of a key, or MAP_NONE. */
uint64_t map_get(const map *m, uint64_t key);

/* Sets a key's value. Room must have been prepared for a new key. */
void map_set(map *m, uint64_t key, uint64_t value);

/* Forgets a key; an unknown one is ignored. */
void map_remove(map *m, uint64_t key);

/* Forgets all keys, keeps the memory. O(cap). */
void map_clear(map *m);

#endif
