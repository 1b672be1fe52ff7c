/* trace/request_list.h: requests of which only times and lengths matter, kept to be replayed many times, 24 bytes each.
 */
#ifndef KVKEEP_TRACE_REQUEST_LIST_H
#define KVKEEP_TRACE_REQUEST_LIST_H

#include "base/memory.h"
#include "trace/request.h"

typedef struct listed_request {
    uint64_t line, arrival_us;
    uint32_t n_input, n_output;
} listed_request;

typedef struct request_list {
    memory memory;
    listed_request *requests;
    uint32_t n, cap;
    const char *name; /* of the trace that they are from */
} request_list;

/* KVK_ENOMEM. */
int request_list_open(request_list *list);

/* One that is all zeroes, or closed, is ignored. */
void request_list_close(request_list *list);

/* KVK_ENOMEM. */
int request_list_add(request_list *list, const listed_request *request);

#endif
