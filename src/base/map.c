#include "base/map.h"

/* The finaliser of MurmurHash3. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCDu;
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53u;
    return x ^ x >> 33;
}

void map_open(map *m, memory *from)
{
    *m = (map){.memory = from, .factor = mix((uint64_t)(uintptr_t)from) | 1};
}

void map_close(map *m)
{
    memory_give(m->memory, m->entries, m->cap * sizeof *m->entries);
    map_open(m, m->memory);
}

static uint32_t home(const map *m, uint64_t key)
{
    return (uint32_t)(key * m->factor >> m->shift);
}

/* The place of a key, or the empty place where it would go. */
static uint32_t place(const map *m, uint64_t key)
{
    uint32_t i = home(m, key);
    while (m->entries[i].value != MAP_NONE && m->entries[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void map_clear(map *m)
{
    for (uint32_t i = 0; i < m->cap; i++)
        m->entries[i].value = MAP_NONE;
    m->count = 0;
}

static int rehash(map *m, uint32_t cap)
{
    map old = *m;
    map_entry *entries = memory_take(m->memory, cap * sizeof *entries);
    if (!entries)
        return KVK_ENOMEM;
    m->entries = entries;
    m->cap = cap;
    m->shift = 64 - (uint32_t)__builtin_ctz(cap);
    map_clear(m);
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.entries[i].value != MAP_NONE)
            map_set(m, old.entries[i].key, old.entries[i].value);
    memory_give(m->memory, old.entries, old.cap * sizeof *old.entries);
    return 0;
}

int map_prepare(map *m, uint32_t more)
{
    uint64_t need = 2 * ((uint64_t)m->count + more), cap = m->cap ? m->cap : 16;
    while (cap < need)
        cap *= 2;
    if (cap > UINT32_MAX)
        return KVK_ENOMEM;
    return cap == m->cap ? 0 : rehash(m, (uint32_t)cap);
}

uint64_t map_get(const map *m, uint64_t key)
{
    return m->cap ? m->entries[place(m, key)].value : MAP_NONE;
}

void map_set(map *m, uint64_t key, uint64_t value)
{
    map_entry *e = &m->entries[place(m, key)];
    m->count += e->value == MAP_NONE;
    *e = (map_entry){.key = key, .value = value};
}

void map_remove(map *m, uint64_t key)
{
    uint32_t mask = m->cap - 1, hole = m->cap ? place(m, key) : 0;
    if (m->cap == 0 || m->entries[hole].value == MAP_NONE)
        return;
    /* Moves back each later entry of the run whose home is not between the hole and itself. */
    for (uint32_t i = (hole + 1) & mask; m->entries[i].value != MAP_NONE; i = (i + 1) & mask) {
        uint32_t from_home = (i - home(m, m->entries[i].key)) & mask;
        if (from_home < ((i - hole) & mask))
            continue;
        m->entries[hole] = m->entries[i];
        hole = i;
    }
    m->entries[hole].value = MAP_NONE;
    m->count--;
}
