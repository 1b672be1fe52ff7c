#include "masses.h"

static uint32_t mix(uint32_t h)
{
    h = (h ^ (h >> 16)) * 0x7feb352du;
    h = (h ^ (h >> 15)) * 0x846ca68bu;
    return h ^ (h >> 16);
}

uint32_t mass_hash(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return mix(mix(mix(mix(a + 0x9e3779b9u) + b) + c) + d);
}

double mass_mean(const masses *m, uint32_t group, uint32_t query, uint32_t page)
{
    static const double few[4] = {0, 0, 0.25, 0.5};
    uint32_t h = mass_hash(m->seed, group, query, page), last = query / m->page_tokens;
    if (page > last)
        return 0;
    switch (m->kind) {
    case MASS_RANDOM:
        return (h & 255) / 4096.0;
    case MASS_FEW:
        return few[h & 3];
    case MASS_EQUAL:
        return 1 / 16.0;
    case MASS_HOT:
        return page == query / 23 * 7 % (last + 1) ? 0.75 : 1 / 4096.0;
    case MASS_ALTERNATING:
        return (page + query + group) % 2 ? 0.125 : 0;
    case MASS_ZERO:
    case MASS_KINDS:
        break;
    }
    return 0;
}

double mass_peak(const masses *m, uint32_t group, uint32_t query, uint32_t page)
{
    double least = mass_mean(m, group, query, page);
    uint32_t h = mass_hash(m->seed + 1, group, query, page);
    return m->kind == MASS_RANDOM && page <= query / m->page_tokens ? least + (h & 2047) / 4096.0 : least;
}

double mass_near(const masses *m, uint32_t head, uint32_t query, uint32_t page)
{
    uint32_t h = mass_hash(m->seed + 2, head, query, page), last = query / m->page_tokens;
    if (page != last && page + 1 != last)
        return 0;
    return m->kind == MASS_RANDOM ? (1 + (h & 4095)) / 4096.0 : mass_mean(m, head, query, page);
}
