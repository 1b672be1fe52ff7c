/* trace/oplog_run.h: the state of one replay, shared by the files of the op log's driver.
 *
 * oplog.c       reads lines, runs ops, keeps the summary
 * oplog_args.c  the arguments of a line, by a table, into oplog_args; their readers are in oplog_read.h
 * oplog_ops.c   the table of ops; each calls the library once
 * oplog_evict.c the ops of eviction
 * oplog_masses.c  what attention gave the pages, from lists to the library's arrays
 * oplog_tables.c  what a call did to the block tables of its sequence
 * oplog_look.c  the ops that only look
 * oplog_events.c  the op that collects events, and what was evicted
 * oplog_plan.c  the ops of batches
 * oplog_result.c  the result object and what a line expects of it
 */
#ifndef KVKEEP_TRACE_OPLOG_RUN_H
#define KVKEEP_TRACE_OPLOG_RUN_H

#include "trace/lines.h"
#include "trace/oplog.h"
#include "trace/oplog_ids.h"

#include <jansson.h>
#include <kvkeep/eviction.h>

#define OPLOG_VERSION 1
#define OPLOG_MAX_TEXT ((uint64_t)1 << 26)        /* tokens of one line's text */
#define OPLOG_MAX_ENTRIES 65536u                  /* of one batch */
#define OPLOG_MAX_PLAN_PLACES ((uint64_t)1 << 24) /* of each list of a plan that somebody reads */
#define OPLOG_MAX_MASSES ((uint64_t)1 << 24)      /* of each list of masses: groups times the longest list of one */
#define OPLOG_MAX_EVENTS 65536u                   /* listed by one op of those that came since the last */
#define OPLOG_MAX_EVENT_TOKENS 1048576u           /* of all of these */

/* A growing array of the replay's own, never shrunk. */
typedef struct oplog_array {
    void *items;
    uint32_t cap;
} oplog_array;

/* A list of numbers, in a buffer. */
typedef struct oplog_numbers {
    const uint32_t *items; /* NULL: not given */
    uint32_t n;
} oplog_numbers;

/* The arguments of one call. Ids are the log's own. */
typedef struct oplog_args {
    uint64_t seq, child, batch;
    kvk_seq_params params;
    kvk_text text;
    uint32_t group, page, n_tokens, effort;
    uint32_t cap; /* 0: all */
    uint32_t form, index_bits, row_pages;
    uint32_t n_entries, n_ranges, how, n_pages, move;
    uint64_t now_ms;
    oplog_numbers accepted, rows, n_summed, budgets, positions;
    kvk_eviction eviction;
    bool has_policy;
    json_t *mean, *peak, *near; /* borrowed from the line, or NULL: a list per group */
    json_t *expect;             /* the same */
} oplog_args;

enum {
    BUFFER_TOKENS,
    BUFFER_KEYS,
    BUFFER_ENTRIES,
    BUFFER_ACCEPTED,
    BUFFER_MOVES,
    BUFFER_GROUPS,
    BUFFER_RANGES,
    BUFFER_EXTRAS,
    BUFFER_ROWS,
    BUFFER_SUMMED,
    BUFFER_BUDGETS,
    BUFFER_POSITIONS,
    BUFFER_MEAN,
    BUFFER_PEAK,
    BUFFER_NEAR,
    BUFFER_SCORES,
    BUFFER_BEFORE, /* the tables of a sequence before a call */
    BUFFER_AFTER,
    BUFFER_PLAN,
    N_BUFFERS
};

/* What came since the last op that asked. */
typedef struct oplog_events {
    json_t *list;    /* NULL: nobody has asked yet */
    uint32_t n;      /* events that came; the list holds the first of them */
    uint32_t tokens; /* in the list */
    bool full;
    json_t *evicted; /* gets the pages that sequences lose by the call in hand; NULL if nobody reads them */
} oplog_events;

typedef struct oplog_run {
    const oplog_options *options;
    oplog_summary *summary;
    trace_error *error;
    line_reader lines;
    memory memory;
    oplog_array buffers[N_BUFFERS];
    oplog_ids seqs, batches;
    map n_entries; /* of the open batches, by id */
    kvk_cache *cache;
    kvk_config config;
    size_t n_windows, n_near; /* items that the first line gives */
    oplog_events events;

    oplog_args args; /* of the call in hand */
    int result;
    json_t *detail; /* gets the fields besides `result`; NULL if nobody reads them */
} oplog_run;

typedef struct oplog_op {
    const char *name;
    /* Calls the library and sets run->result. Returns 0, TRACE_FAILED or TRACE_BAD_INPUT. */
    int (*call)(oplog_run *run);
    uint64_t args;       /* the set (ARG_BITs) of arguments that it takes */
    const char *finding; /* a result above 0 fails the run, unless `expect` names `result` or this field */
} oplog_op;

/* ---- oplog.c */

/* Errors at the current line. Each returns its code. */
int oplog_no_memory(oplog_run *run);

/* Room for `n` items in a buffer. Returns the array, or NULL with the error set; n 0 gives an array too. */
void *oplog_buffer(oplog_run *run, int buffer, uint64_t n);

/* ---- oplog_args.c */

enum {
    ARG_NOTE,
    ARG_OP,
    ARG_EXPECT,
    ARG_VERSION,
    ARG_PAGES,
    ARG_PAGE_TOKENS,
    ARG_GROUPS,
    ARG_WATERMARK,
    ARG_CONTENT,
    ARG_ZERO_FILL,
    ARG_WINDOWS,
    ARG_NEAR_SIZES,
    ARG_HOST_PAGES,
    ARG_RECLAIM,
    ARG_PARTIAL_REUSE,
    ARG_EXTRA_KEYS,
    ARG_SEQ,
    ARG_NEW_SEQ,
    ARG_CHILD,
    ARG_PRIORITY,
    ARG_NEW_PRIORITY,
    ARG_SALT,
    ARG_ADAPTER,
    ARG_GROUP,
    ARG_PAGE,
    ARG_N_TOKENS,
    ARG_EFFORT,
    ARG_TEXT_TOKENS,
    ARG_TEXT_N,
    ARG_TEXT_KEYS,
    ARG_TEXT_EXTRAS,
    ARG_BATCH,
    ARG_NEW_BATCH,
    ARG_ENTRIES,
    ARG_FORM,
    ARG_INDEX_BITS,
    ARG_ROW_PAGES,
    ARG_ACCEPTED,
    ARG_CAP,
    ARG_RANGES,
    ARG_NOW_MS,
    ARG_HOW,
    ARG_NEW_PAGES,
    ARG_MOVE,
    ARG_MEAN,
    ARG_PEAK,
    ARG_NEAR,
    ARG_ROWS,
    ARG_N_SUMMED,
    ARG_POLICY,
    ARG_BUDGET,
    ARG_BUDGETS,
    ARG_SLACK,
    ARG_FLOOR,
    ARG_YIELDS,
    ARG_N_PROMPT,
    ARG_SLOPE,
    ARG_TARGET,
    ARG_POSITIONS,
    N_ARGS
};

#define ARG_BIT(arg) ((uint64_t)1 << (arg))
_Static_assert(N_ARGS <= 64, "a set of arguments is a uint64_t");
#define ARGS_HEADER                                                                                                    \
    (ARG_BIT(ARG_NOTE) | ARG_BIT(ARG_VERSION) | ARG_BIT(ARG_PAGES) | ARG_BIT(ARG_PAGE_TOKENS) | ARG_BIT(ARG_GROUPS) |  \
     ARG_BIT(ARG_WATERMARK) | ARG_BIT(ARG_CONTENT) | ARG_BIT(ARG_ZERO_FILL) | ARG_BIT(ARG_WINDOWS) |                   \
     ARG_BIT(ARG_HOST_PAGES) | ARG_BIT(ARG_RECLAIM) | ARG_BIT(ARG_PARTIAL_REUSE) | ARG_BIT(ARG_EXTRA_KEYS) |           \
     ARG_BIT(ARG_NEAR_SIZES))
#define ARGS_CALL (ARG_BIT(ARG_NOTE) | ARG_BIT(ARG_OP) | ARG_BIT(ARG_EXPECT)) /* of every call */
#define ARGS_TEXT (ARG_BIT(ARG_TEXT_TOKENS) | ARG_BIT(ARG_TEXT_N) | ARG_BIT(ARG_TEXT_KEYS) | ARG_BIT(ARG_TEXT_EXTRAS))

/* Reads the first line into run->config. */
int oplog_read_header(oplog_run *run, json_t *line);

/* Reads the arguments in the set `set` (ARG_BITs), and what every call may carry, into run->args. */
int oplog_read_call(oplog_run *run, json_t *line, uint64_t set);

/* ---- oplog_ops.c and the files of its ops */

/* NULL if there is no such op. */
const oplog_op *oplog_find_op(const char *name);

static inline kvk_seq oplog_seq(const oplog_run *run)
{
    return oplog_ids_handle(&run->seqs, run->args.seq);
}

int oplog_call_set_eviction(oplog_run *run);
int oplog_call_evict(oplog_run *run);
int oplog_call_scores(oplog_run *run);
int oplog_call_eviction(oplog_run *run);
int oplog_call_positions(oplog_run *run);
int oplog_call_plan(oplog_run *run);
int oplog_call_end(oplog_run *run);
int oplog_call_table(oplog_run *run);
int oplog_call_info(oplog_run *run);
int oplog_call_page(oplog_run *run);
int oplog_call_stats(oplog_run *run);
int oplog_call_audit(oplog_run *run);
int oplog_call_victim(oplog_run *run);
int oplog_call_events(oplog_run *run);

/* Makes a call that may change the tables of its sequence: the entries that it added or replaced are its `pages`. */
int oplog_call_and_compare(oplog_run *run, int (*call)(oplog_run *run));

/* Makes a call by which sequences may lose pages: they are its `evicted`. */
int oplog_call_and_watch(oplog_run *run, int (*call)(oplog_run *run));

/* ---- oplog_masses.c */

/* The masses of a call, into arrays that are valid until the next one. */
int oplog_masses(oplog_run *run, kvk_masses *out);

/* ---- oplog_result.c */

/* Whether the call's details will be read. */
bool oplog_wants_detail(const oplog_run *run);

/* Prints the result and compares it with what the line expects. */
int oplog_check_result(oplog_run *run, const oplog_op *op);

/* Puts a value, whose reference it takes, into the result. A missing one (no memory) is left out. */
void oplog_detail(oplog_run *run, const char *name, json_t *value);

/* One JSON value on one line, cut to fit. Returns `out`. */
const char *oplog_show(const json_t *value, char *out, size_t cap);

#endif
