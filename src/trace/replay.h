/* trace/replay.h: runs the requests of a trace through a cache, by its public calls only, and counts.
 *
 * docs/traces.md defines every number.
 */
#ifndef KVKEEP_TRACE_REPLAY_H
#define KVKEEP_TRACE_REPLAY_H

#include "trace/request.h"
#include "trace/samples.h"

#include <kvkeep/kvkeep.h>

struct prompt_list;

typedef enum replay_mode {
    REPLAY_PREFIX,  /* prompts one after the other: what the prefix cache finds */
    REPLAY_TIMED,   /* requests at their times, growing by a token every so often: how many pages are in use */
    REPLAY_LENGTHS, /* each request at its final length: what whole pages waste */
    REPLAY_TURNS,   /* sessions whose requests wait for each other: pages in use, and what the prefix cache finds */
    REPLAY_FLAT     /* as prefix, but each page by itself: what a cache without chains finds */
} replay_mode;

#define REPLAY_UNLIMITED KVK_MAX_PAGES

/* What became of one request. Counts that the mode does not have are 0. */
typedef struct replay_request {
    uint64_t number;     /* from 1 */
    uint64_t line;       /* of the file */
    uint64_t arrival_us; /* turns: when it started */
    uint32_t n_input, n_output;
    uint32_t pages, page_hits, token_hits; /* timed: the pages it takes on arrival */
    uint64_t waste_tokens;
} replay_request;

typedef struct replay_options {
    replay_mode mode;
    uint32_t page_tokens; /* 0: the trace's block, else 16 */
    uint32_t n_pages;     /* REPLAY_UNLIMITED or a size */
    kvk_reclaim reclaim;
    double watermark;        /* timed, turns: left free when a request is let in: pages, or a share of the pool */
    bool watermark_is_share; /* of a pool of a size; an unlimited one has none then */
    kvk_preempt_how preempt; /* timed, turns */
    uint32_t host_pages;     /* for swapping; 0: as many as the pool */
    uint32_t chunk;          /* timed, turns: prompt tokens per token_us; 0: the whole prompt at once */
    uint64_t max_requests;   /* 0: all */
    uint64_t memory_limit;   /* host memory of the cache, bytes; 0: no limit */
    double speed;            /* timed: arrivals come this many times faster */
    double session_rate;     /* turns: sessions that start per second; 0: all start at once */
    uint64_t seed;           /* turns: of their starts */
    uint64_t token_us;       /* a token takes this long, at least 1. timed; turns where the trace says no duration */
    bool belady;             /* prefix, flat: counts what the best cache of single pages would find in as many pages */
    struct prompt_list
        *prompts;        /* may be NULL. prefix, flat: an open list, prompts are put there instead of being run */
    bool audit;          /* checks every invariant after every call */
    kvk_write_fn record; /* NULL: no op log */
    void *record_ctx;
    kvk_event_fn on_event;                                          /* may be NULL. prefix, flat: the cache's events */
    void (*on_request)(void *ctx, const replay_request *request);   /* may be NULL; after each request */
    void (*on_page)(void *ctx, uint64_t arrival_us, uint64_t page); /* may be NULL. prefix, flat: after each page that
                                                                        prompts need; `page` numbers contents from 0 */
    void *ctx;
    samples *samples; /* may be NULL. prefix, flat: request, share of pages and of tokens hit. timed: seconds, room
                         in tokens of the pages in use, tokens held. lengths: request, wasted share */
} replay_options;

#define REPLAY_OPTIONS_DEFAULT                                                                                         \
    ((replay_options){.n_pages = REPLAY_UNLIMITED,                                                                     \
                      .speed = 1,                                                                                      \
                      .token_us = 25000,                                                                               \
                      .memory_limit = (uint64_t)8 << 30,                                                               \
                      .watermark = 0.01,                                                                               \
                      .watermark_is_share = true})

typedef struct replay_result {
    uint64_t requests, failed_requests; /* run; failed when the trace was taken, and passed over */
    uint32_t page_tokens, n_pages;
    uint64_t input_tokens, output_tokens;
    uint64_t page_refs, page_hits, token_hits; /* prefix, flat, turns */
    uint64_t unique_pages;                     /* prefix, flat */
    uint64_t belady_hits;                      /* prefix, flat, if asked for */
    uint64_t page_us, token_us;                /* timed: integrals over time */

    /* Timed and turns. */
    uint32_t watermark, peak_running; /* pages; sequences that held pages at a time */
    uint64_t rejected;                /* never fit */
    uint64_t served_output_tokens;    /* of all others */
    uint64_t recomputed_tokens;
    uint64_t makespan_us; /* the end of the last request */
    uint64_t wait_us_p50, wait_us_p99;
    double withheld_page_us;          /* free pages up to the watermark while requests wait, over time */
    double usage_when_reclaiming_p50; /* share of the pool's token places */

    uint64_t pages_total, waste_tokens; /* lengths */
    kvk_stats stats;                    /* at the end */
    double elapsed_s;                   /* reading included */
} replay_result;

/* The mode that says most about this trace. */
replay_mode replay_default_mode(const trace *t);

const char *replay_mode_name(replay_mode mode);

#define REPLAY_RECLAIMS 4 /* orders that there are: every kvk_reclaim below */

const char *replay_reclaim_name(kvk_reclaim reclaim);

/* 0, or bad input where there is no such order. */
int replay_reclaim_named(const char *name, kvk_reclaim *out, trace_error *error);

/* 0, or bad input where there is no such mode. */
int replay_mode_named(const char *name, replay_mode *out, trace_error *error);

/* Replays what is left of `t`. 0, or an error; `result` then says how far it came. */
int replay_trace(trace *t, const replay_options *options, replay_result *result, trace_error *error);

#endif
