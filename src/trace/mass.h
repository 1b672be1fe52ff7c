/* trace/mass.h: what attention gave the pages of a text, query by query: from a file or made up.
 *
 * A step is one query: step s stands at position `first` + s of the text and attends to all tokens up to itself. Page p
 * is there from the step on whose query is its first token. docs/traces.md says what the files hold.
 */
#ifndef KVKEEP_TRACE_MASS_H
#define KVKEEP_TRACE_MASS_H

#include "trace/error.h"

#include <stdbool.h>

typedef struct mass_shape {
    uint32_t page_tokens;
    uint32_t groups;
    uint32_t heads;      /* query heads in a group's mean */
    uint32_t first;      /* the position of the first query */
    uint32_t steps;      /* at least 1 */
    uint32_t pages;      /* of the whole text: ceil((first + steps) / page_tokens) */
    uint32_t columns;    /* values from one group to the next in `mean` and `peak`, at least `pages` */
    uint32_t near_heads; /* values for each page in `near`; 0: peaks are not known */
    bool head_maximum;   /* `mean` holds maxima over heads, so that it adds up to more than 1 */
} mass_shape;

/* Valid until the next step. Of pages that are not there yet the values mean nothing. */
typedef struct mass_step {
    const float *mean; /* [groups][columns] */
    const float *peak; /* the same, largest over heads; NULL where peaks are not known */
    const float *near; /* [groups][2][near_heads] of the page before the query's and the query's own; the first page
                          comes first, alone */
} mass_step;

/* A stretch of text that a late query asks for. */
typedef struct mass_needle {
    uint32_t position, n_tokens;
    uint32_t asked; /* the step that asks first */
} mass_needle;

typedef struct mass_trace mass_trace;

typedef struct mass_ops {
    int (*rewind)(mass_trace *t, trace_error *error);
    int (*next)(mass_trace *t, mass_step *out, trace_error *error);
    void (*close)(mass_trace *t); /* frees the trace too */
} mass_ops;

/* What every source begins with. */
struct mass_trace {
    const mass_ops *ops;
    const char *format; /* "npy" or "generated" */
    const char *name;   /* of the file, for errors */
    mass_shape shape;
    const mass_needle *needles; /* [n_needles] */
    uint32_t n_needles;
    uint32_t step; /* how many were given since the last rewind */
};

/* The next step. Returns 1, 0 after the last, or an error. */
int mass_next(mass_trace *t, mass_step *out, trace_error *error);

/* Back to before the first step; every pass gives the same. */
int mass_rewind(mass_trace *t, trace_error *error);

/* NULL is ignored. */
void mass_close(mass_trace *t);

/* The position of the query of the step given last. */
static inline uint32_t mass_position(const mass_trace *t)
{
    return t->shape.first + t->step - 1;
}

#endif
