/* trace/serve.h: a server on a clock: who runs, who waits, and who has to give way where pages lack.
 *
 * A request is a job. It waits until its whole prompt finds room beside the watermark and what the prompts of those
 * that run still need; jobs are let in in the order in which they came. A prompt is held at once, or chunk after
 * chunk, one every token_us. Once it is whole, at a time r, output token k of n is there from r + floor(k D / n),
 * where D is how long the output takes, and all goes at r + D. At equal times jobs end, then grow, then those that
 * wait are let in, then new ones come.
 *
 * A job that runs and finds no page makes others give way: kvk_victim says whom, perhaps itself. Whoever gave way waits
 * until a job has ended and there is room for it, and then goes on with its next token. The oldest of those that
 * run never gives way to others, and each fits alone (else it is refused): so all come to their ends.
 *
 * Tokens within a page change nothing that the manager sees, so only those that need a new page are events; what came
 * since the last one is committed with them.
 */
#ifndef KVKEEP_TRACE_SERVE_H
#define KVKEEP_TRACE_SERVE_H

#include "base/heap.h"
#include "trace/quantile.h"
#include "trace/replay_run.h"

typedef struct serve_job {
    uint64_t number;     /* order of equal times; below 2^62 */
    uint64_t service_us; /* D; 0 only without output */
    uint32_t n_input, n_output;

    /* The server's own. */
    kvk_seq seq;         /* 0: not open */
    uint64_t arrival_us; /* when it began to wait */
    uint64_t origin_us;  /* r, modulo 2^64: one that gave way has a later one, as if it had never stood still */
    uint64_t since_us;   /* since when it has its whole prompt, or else its last chunk */
    uint32_t made;       /* output tokens that it had when it was last let in: they are of its prompt then */
    uint32_t held;       /* tokens that the cache knows of */
    uint32_t lost;       /* tokens to compute again */
    uint32_t runs_at;    /* its place in `running` */
    bool started, is_swapped, is_filling; /* is_filling: its prompt is not whole */
} serve_job;

struct serve;

typedef struct serve_ops {
    /* What names tokens from .. to-1 of a job; valid until the next call. NULL: nothing does, and nothing is shared. */
    int (*text)(struct serve *s, uint32_t place, uint32_t from, uint32_t to, kvk_text *out);

    /* A job is let in for the first time; `found` of its tokens were cached. May be NULL. */
    int (*started)(struct serve *s, uint32_t place, uint32_t found);

    /* It ended, or is refused: its place may be used again. */
    int (*gone)(struct serve *s, uint32_t place);
} serve_ops;

typedef struct serve {
    replay_run *run;
    const serve_ops *ops;
    memory memory;
    heap next;       /* the next event of each job that runs, by its place */
    heap queue;      /* jobs that wait, in the order in which they came */
    serve_job *jobs; /* by place */
    uint32_t *running;
    uint32_t jobs_cap, running_cap, n_running;
    uint64_t now;
    uint64_t reclaimed;     /* pages, when it was last looked at */
    bool freed;             /* a job has ended since the queue was last looked at */
    bool integrates;        /* page_us and token_us are wanted: tokens come every token_us */
    quantile waits, usages; /* microseconds; shares of all token places, in 2^-32 */
} serve;

/* 0 or an error; serve_close is due after either. */
int serve_open(serve *s, replay_run *run, const serve_ops *ops);
void serve_close(serve *s);

/* Makes sure that places below n_places can be used. */
int serve_prepare(serve *s, uint32_t n_places);

/* Lets the time pass, up to the next event at most. */
int serve_pass(serve *s, uint64_t time);

/* A job comes now, at a place not in use. */
int serve_arrive(serve *s, uint32_t place, const serve_job *job);

/* The time of the next event, or UINT64_MAX if nobody runs. */
uint64_t serve_next(const serve *s);

/* Runs the next event, and lets in who waits for what it freed. */
int serve_step(serve *s);

/* Tokens that all jobs that run hold now; a shared one counts as often as it is shared. */
uint64_t serve_tokens(const serve *s);

/* When all have ended: fills in the run's results. */
int serve_finish(serve *s);

#endif
