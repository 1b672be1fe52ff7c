/* masses.h: what attention might have given, made up.
 *
 * Each value depends only on who asks and whom, so two caches that hold different pages are still told the same. Values
 * are multiples of 2^-12 and small, so that sums over hundreds of queries are exact in single precision. */
#ifndef MASSES_H
#define MASSES_H

#include <stdint.h>

typedef enum mass_kind {
    MASS_RANDOM,
    MASS_FEW,         /* 0, 1/4 or 1/2: many ties */
    MASS_EQUAL,       /* the same everywhere */
    MASS_ZERO,        /* nothing at all */
    MASS_HOT,         /* one page gets nearly all, another one every 23 queries */
    MASS_ALTERNATING, /* every other page, the others at the next query */
    MASS_KINDS
} mass_kind;

typedef struct masses {
    mass_kind kind;
    uint32_t seed;
    uint32_t page_tokens;
} masses;

/* What the query at a position gave a page (by its number in the text), mean over heads; 0 for later pages. */
double mass_mean(const masses *m, uint32_t group, uint32_t query, uint32_t page);

/* Its largest over heads. */
double mass_peak(const masses *m, uint32_t group, uint32_t query, uint32_t page);

/* What it did to one head; 0 unless the query stands in the page or in the next one. */
double mass_near(const masses *m, uint32_t head, uint32_t query, uint32_t page);

/* A number from 0 to 2^32 - 1 that looks random. */
uint32_t mass_hash(uint32_t a, uint32_t b, uint32_t c, uint32_t d);

#endif
