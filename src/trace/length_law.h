/* trace/length_law.h: lengths drawn by the probabilities that a text lists, "{LENGTH: PROBABILITY, ...}". */
#ifndef KVKEEP_TRACE_LENGTH_LAW_H
#define KVKEEP_TRACE_LENGTH_LAW_H

#include "trace/error.h"
#include "trace/random.h"

/* All zeroes is empty: it has no length. */
typedef struct length_law {
    uint32_t *lengths;  /* [n] */
    double *cumulative; /* [n] the probability of this length or one listed before; ends with 1 */
    uint32_t n;
} length_law;

/* Reads an empty law from a text, as Python prints a dictionary; `{}` is empty. Probabilities must add up to 1 within
 * 0.001, and are scaled to do so. 0, or an error at `place`, with the law to be closed in either case. */
int length_law_read(length_law *law, const char *text, trace_place place, trace_error *error);

/* Draws a length of a law that is not empty. O(log n). */
uint32_t length_law_draw(const length_law *law, random_state *random);

void length_law_close(length_law *law);

#endif
