/* trace/evict_futures.h: the mass that each page of a trace has still to come, from each page border on. */
#ifndef KVKEEP_TRACE_EVICT_FUTURES_H
#define KVKEEP_TRACE_EVICT_FUTURES_H

#include "trace/evict_optimum.h"
#include "trace/mass.h"

typedef struct evict_futures {
    mass_future *groups; /* [n_groups]; costs in shares of all mass that a query gives */
    uint32_t n_groups;
    double *costs;
} evict_futures;

/* Reads the trace once. 8 bytes for each page, page border and group, which must be within `memory_limit` bytes (0:
 * none). 0 or an error, with nothing to close. */
int evict_futures_read(evict_futures *f, mass_trace *t, uint64_t memory_limit, trace_error *error);

void evict_futures_close(evict_futures *f);

#endif
