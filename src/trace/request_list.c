#include "trace/request_list.h"

#include "trace/format.h"

int request_list_open(request_list *list)
{
    *list = (request_list){.n = 0};
    return memory_open(&list->memory, NULL);
}

void request_list_close(request_list *list)
{
    if (list->memory.own_arena) {
        memory_give(&list->memory, list->requests, list->cap * sizeof *list->requests);
        memory_close(&list->memory);
    }
    *list = (request_list){.n = 0};
}

int request_list_add(request_list *list, const listed_request *request)
{
    int rc = memory_grow(&list->memory, &list->requests, &list->cap, (uint64_t)list->n + 1, sizeof *list->requests);
    if (rc == 0)
        list->requests[list->n++] = *request;
    return rc;
}

/* The list as a trace: the state is the place of the next request. */
static int next(trace_reader *r, trace_request *out, trace_error *error)
{
    (void)error;
    uint32_t *place = r->state;
    if (*place >= r->listed->n)
        return 0;
    const listed_request *q = &r->listed->requests[(*place)++];
    r->lines.line = q->line;
    *out = (trace_request){.arrival_us = q->arrival_us, .n_input = q->n_input, .n_output = q->n_output};
    return 1;
}

const trace_format trace_listed = {
    .name = "listed",
    .content = TRACE_LENGTHS,
    .arrival_field = "arrival",
    .input_field = "input",
    .output_field = "output",
    .state_bytes = sizeof(uint32_t),
    .next = next,
};
