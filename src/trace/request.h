/* trace/request.h: the requests of a trace, whatever its format.
 *
 * A trace is read as a stream: memory is bounded by the longest line (or, for the generated workload, by the live
 * conversations; for a format that is one JSON document, by the file). The format is found from the first line or
 * forced by name.
 */
#ifndef KVKEEP_TRACE_REQUEST_H
#define KVKEEP_TRACE_REQUEST_H

#include "trace/lines.h"

/* What a trace says about the text of its prompts. */
typedef enum trace_content {
    TRACE_LENGTHS, /* nothing but lengths */
    TRACE_BLOCKS,  /* ids of blocks; an id stands for a block together with everything before it */
    TRACE_TOKENS   /* the tokens */
} trace_content;

/* How a request follows others of its session. */
typedef struct trace_turn {
    uint32_t session;    /* sessions are numbered from 0 on and stand one after the other */
    uint32_t after;      /* it comes after the end of the request so many before this one; 0: it is among the first */
    uint64_t think_us;   /* from that end, or (first ones) from the session's beginning */
    uint64_t service_us; /* how long it took; 0: unknown */
} trace_turn;

typedef struct trace_request {
    uint64_t arrival_us; /* never less than the previous request's */
    uint32_t n_input;    /* prompt tokens, at least 1 */
    uint32_t n_output;   /* generated tokens; n_input + n_output <= KVK_MAX_TOKENS */
    uint32_t block_tokens, n_blocks;
    bool full_blocks;       /* only full blocks have ids: n_blocks is rounded down, else up */
    uint32_t scope;         /* blocks are comparable within the same scope only */
    const uint64_t *blocks; /* TRACE_BLOCKS: [n_blocks], n_blocks = n_input / block_tokens, rounded; else NULL */
    const uint32_t *tokens; /* TRACE_TOKENS: [n_input + n_output]; else NULL */
    trace_turn turn;        /* where trace_has_turns; else zeroes */
} trace_request;

typedef struct trace_options {
    const char *format; /* its name; NULL: found from the content */
    double rate;        /* requests per second, where the trace itself has no arrival times */
    uint64_t seed;      /* of made arrivals and of the generated workload */
    uint64_t requests;  /* how many the generated workload has */
} trace_options;

typedef struct trace trace;

struct request_list;

/* 10 requests/s, seed 1, 2,000 requests. */
#define TRACE_OPTIONS_DEFAULT ((trace_options){.rate = 10, .seed = 1, .requests = 2000})

/* Opens the trace that `in` holds; `in` and `name` stay the caller's and must outlive it. */
int trace_open(FILE *in, const char *name, const trace_options *options, trace **out, trace_error *error);

/* Opens files as one stream, one after the other. All must say equally much about their prompts (content, block
 * size). */
int trace_open_files(const char *const *paths, size_t n, const trace_options *options, trace **out, trace_error *error);

/* Opens the built-in workload (trace/generate.h). */
int trace_open_generated(const trace_options *options, trace **out, trace_error *error);

/* Opens a list of requests (trace/request_list.h), which must outlive it. */
int trace_open_listed(const struct request_list *list, trace **out, trace_error *error);

/* Gives the next request, valid until the next call. Returns 1, 0 at the end, or an error. */
int trace_next(trace *t, trace_request *out, trace_error *error);

/* NULL does nothing. */
void trace_close(trace *t);

const char *trace_format_name(const trace *t);
trace_content trace_content_of(const trace *t);

/* Tokens of a block; 0 where the trace has none. */
uint32_t trace_block_tokens(const trace *t);

/* Whether the trace's own arrival times are known (else they are made by `rate`). */
bool trace_has_arrivals(const trace *t);

/* Whether requests say how they follow each other. */
bool trace_has_turns(const trace *t);

/* How many requests were passed over so far, since they failed when the trace was taken. */
uint64_t trace_failed_requests(const trace *t);

/* Where the current request stands. */
trace_place trace_where(const trace *t, const char *field);

/* All format names, separated by ", ". */
const char *trace_format_names(void);

#endif
