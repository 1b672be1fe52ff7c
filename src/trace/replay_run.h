/* trace/replay_run.h: what the modes of a replay share. One file per mode. */
#ifndef KVKEEP_TRACE_REPLAY_RUN_H
#define KVKEEP_TRACE_REPLAY_RUN_H

#include "trace/replay.h"

typedef struct replay_run {
    const replay_options *options;
    trace *trace;
    kvk_cache *cache;
    replay_result *result;
    trace_error *error;
    void *state; /* the mode's own: `state_bytes` of zeroes at first */
} replay_run;

typedef struct replay_ops {
    const char *name;
    size_t state_bytes;
    bool shows_requests; /* calls on_request itself, when it knows what became of them */

    /* Says what the cache must know of the content, or refuses the trace or the options. */
    int (*content)(replay_run *run, kvk_content *out);

    int (*open)(replay_run *run); /* may be NULL */

    /* Runs one request and fills in what is left of `seen`. */
    int (*request)(replay_run *run, const trace_request *request, replay_request *seen);

    /* Runs what is still to come after the last request; may be NULL. */
    int (*finish)(replay_run *run);

    void (*close)(replay_run *run); /* may be NULL; after a failed open as well */
} replay_ops;

extern const replay_ops replay_prefix, replay_timed, replay_lengths, replay_turns, replay_flat;

/* The calls of kvkeep.h, with the audit after each if that was asked for, and an error that names the request. */
int run_open(replay_run *run, kvk_seq *out);
int run_attach(replay_run *run, kvk_seq seq, const kvk_text *prompt);
int run_close(replay_run *run, kvk_seq seq);

/* kvk_reserve (without eviction) and kvk_commit of text->n_tokens tokens; none is fine. Returns the pages taken. */
int run_extend(replay_run *run, kvk_seq seq, const kvk_text *text);

int run_commit(replay_run *run, kvk_seq seq, const kvk_text *text);
int run_truncate(replay_run *run, kvk_seq seq); /* to nothing */

/* These three may also return KVK_ENOPAGE, which is no error yet. */
int run_reserve(replay_run *run, kvk_seq seq, uint32_t n_tokens, kvk_effort effort);
int run_preempt(replay_run *run, kvk_seq seq, kvk_preempt_how how);
int run_swap_in(replay_run *run, kvk_seq seq); /* leaving the watermark */

/* What must never be: nobody runs, and nobody can. */
int run_stuck(replay_run *run);

int run_out_of_memory(replay_run *run);
int run_clock_overflow(replay_run *run);

/* 0, or bad input where pages cannot be made of the trace's blocks. */
int run_needs_fitting_pages(replay_run *run);

#endif
