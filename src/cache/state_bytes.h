/* cache/state_bytes.h: the bytes of a state, written and read number by number, with their checksum. */
#ifndef KVK_CACHE_STATE_BYTES_H
#define KVK_CACHE_STATE_BYTES_H

#include <kvkeep/kvkeep.h>

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct state_writer {
    kvk_write_fn write;
    void *ctx;
    int failed;
    XXH3_state_t sum;
    uint32_t n;
    char bytes[4096];
} state_writer;

typedef struct state_reader {
    kvk_read_fn read;
    void *ctx;
    int failed; /* 0, or why reading stopped; everything read after that is 0 */
    XXH3_state_t sum;
    uint32_t at, n;
    char bytes[4096];
} state_reader;

/* What counts events in a cache's life: no life is so long, and no count can be driven over. */
#define MOST_EVENTS ((uint64_t)1 << 62)

/* ---- writing */

void state_put(state_writer *w, const void *from, size_t n);
void state_flush(state_writer *w);

void state_put_floats(state_writer *w, const float *values, size_t n);

static inline void put32(state_writer *w, uint32_t value)
{
    const unsigned char b[4] = {(unsigned char)value, (unsigned char)(value >> 8), (unsigned char)(value >> 16),
                                (unsigned char)(value >> 24)};
    state_put(w, b, sizeof b);
}

static inline void put64(state_writer *w, uint64_t value)
{
    put32(w, (uint32_t)value);
    put32(w, (uint32_t)(value >> 32));
}

static inline void put_double(state_writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put64(w, bits);
}

static inline void put_list(state_writer *w, const uint32_t *values, uint32_t n)
{
    put32(w, n);
    for (uint32_t i = 0; i < n; i++)
        put32(w, values[i]);
}

/* ---- reading */

void state_get(state_reader *r, void *to, size_t n);

void state_get_floats(state_reader *r, float *values, size_t n);

static inline void require(state_reader *r, int condition)
{
    if (!condition && !r->failed)
        r->failed = KVK_EFORMAT;
}

static inline void require_memory(state_reader *r, int rc)
{
    if (rc < 0 && !r->failed)
        r->failed = rc;
}

static inline uint32_t get32(state_reader *r)
{
    unsigned char b[4];
    state_get(r, b, sizeof b);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t get64(state_reader *r)
{
    uint64_t low = get32(r);
    return low | (uint64_t)get32(r) << 32;
}

static inline double get_double(state_reader *r)
{
    uint64_t bits = get64(r);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A number up to `most`. */
static inline uint32_t get_most(state_reader *r, uint32_t most)
{
    uint32_t value = get32(r);
    require(r, value <= most);
    return r->failed ? 0 : value;
}

/* A number below `end`. */
static inline uint32_t get_below(state_reader *r, uint32_t end)
{
    require(r, end > 0);
    return r->failed ? 0 : get_most(r, end - 1);
}

static inline void get_equal(state_reader *r, uint32_t wanted)
{
    require(r, get32(r) == wanted);
}

static inline uint64_t get_events(state_reader *r)
{
    uint64_t n = get64(r);
    require(r, n <= MOST_EVENTS);
    return r->failed ? 0 : n;
}

#endif
