/* cache/record_line.h: the pieces of a line of the op log. */
#ifndef KVK_CACHE_RECORD_LINE_H
#define KVK_CACHE_RECORD_LINE_H

#include "cache/cache.h"

#define RECORDER_BYTES 65536u

struct recorder {
    kvk_cache *cache; /* that it records */
    kvk_write_fn write;
    void *ctx;
    int failed;
    uint32_t n; /* bytes waiting */
    char bytes[RECORDER_BYTES];
};

/* Gives the bytes that wait to the writer; after a failure they are dropped. */
void line_flush(recorder *r);

/* Values. */
void line_text(recorder *r, const char *text);
void line_number(recorder *r, uint64_t value, unsigned base);
void line_signed(recorder *r, int64_t value);
void line_key(recorder *r, kvk_key key);

/* With as many digits as it takes to read the same float back; "nan", "inf" or "-inf" where JSON has no number. */
void line_float(recorder *r, float value);
void line_list(recorder *r, const uint32_t *values, uint32_t n);

/* `,"name":`, and with a number, a word, or a number of 64 bits: one that may not fit JSON's integers stands as
 * hexadecimal digits. */
void line_name(recorder *r, const char *name);
void line_field(recorder *r, const char *name, uint64_t value);
void line_word(recorder *r, const char *name, const char *word);
void line_wide(recorder *r, const char *name, uint64_t value);

/* A handle or batch; one that was never given out may not fit JSON's integers, and stands as 0. */
static inline uint64_t known_id(uint64_t id)
{
    return id <= INT64_MAX ? id : 0;
}

/* Begins the line of a call; 0 if the call leaves none. */
int line_begin(kvk_cache *c, const char *op, int rc);

/* The result up to its closing brackets, so that more fields can follow; the brackets; both. */
void line_result(kvk_cache *c, int rc);
void line_end(kvk_cache *c);
void line_finish(kvk_cache *c, int rc);

#endif
