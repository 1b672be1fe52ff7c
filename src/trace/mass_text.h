/* trace/mass_text.h: a text made up from a seed, as far as attention cares: what each token is about, how much it
 * weighs, and which stretches are read again.
 */
#ifndef KVKEEP_TRACE_MASS_TEXT_H
#define KVKEEP_TRACE_MASS_TEXT_H

#include "trace/mass.h"

enum {
    TEXT_TOPICS = 8,
    TEXT_CELL = 8 /* needles and bursts lie within such cells, so that pages of as many tokens hold them whole */
};

/* A stretch that queries begin .. end-1 read again, besides what they read anyway. */
typedef struct text_burst {
    uint32_t position, n_tokens;
    uint32_t begin, end;
    uint32_t heads; /* a bit for each head that does, the same in every group */
} text_burst;

typedef struct mass_text {
    uint32_t n;
    uint8_t *topic;       /* [n] */
    float *weight;        /* [n] of each token, heavy-tailed, with mean 1 or so */
    text_burst *bursts;   /* [n_bursts] by their beginning */
    mass_needle *needles; /* [n_needles] by position */
    uint32_t n_bursts, n_needles;
} mass_text;

/* 0 or KVK_ENOMEM, with the text to be closed in either case. */
int mass_text_make(mass_text *text, uint32_t n, uint64_t seed);

void mass_text_close(mass_text *text);

#endif
