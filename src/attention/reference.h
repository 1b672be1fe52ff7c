/* attention/reference.h: what a query's head gets, in double precision: the definition of attention.h, term by term,
 * from arguments that were checked. */
#ifndef KVK_ATTENTION_REFERENCE_H
#define KVK_ATTENTION_REFERENCE_H

#include "attention/check.h"
#include "attention/entry.h"

typedef struct reference_query {
    const kvk_attention *a;
    const entry *e;
    uint32_t query, head; /* query of the entry's, head of the queries' */
    double q[MAX_HEAD_SIZE], o[MAX_HEAD_SIZE];
    double lse;
} reference_query;

/* Loads q; computes lse and o. O(tokens * head_size), as are the others for the tokens of a page. */
void reference_attend(reference_query *r, const kvk_attention *a, const entry *e, uint32_t query, uint32_t head);

/* The share of a page of the entry's list. */
double reference_mass(const reference_query *r, uint32_t page);

/* How far o is from what it would be without the page, as KVK_NEAR_ERROR defines it. */
double reference_error(const reference_query *r, uint32_t page);

#endif
