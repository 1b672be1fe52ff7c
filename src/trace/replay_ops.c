#include "trace/replay_run.h"

#include "trace/repage.h"

typedef struct first_violation {
    replay_run *run;
    bool found;
} first_violation;

static void keep_first(void *ctx, const char *invariant, const char *text)
{
    first_violation *v = ctx;
    if (!v->found)
        trace_failed(v->run->error, trace_where(v->run->trace, NULL), "invariant %s violated: %s", invariant, text);
    v->found = true;
}

static int audit(replay_run *run)
{
    first_violation v = {run, false};
    int violations = kvk_audit(run->cache, keep_first, &v);
    if (violations < 0)
        return trace_failed(run->error, trace_where(run->trace, NULL), "kvk_audit: %s", kvk_strerror(violations));
    return violations == 0 ? 0 : TRACE_FAILED;
}

/* Passes a call's result on, or turns it into an error. */
static int checked(replay_run *run, const char *call, int rc)
{
    if (rc < 0)
        return trace_failed(run->error, trace_where(run->trace, NULL), "%s: %s", call, kvk_strerror(rc));
    if (run->options->audit && audit(run) < 0)
        return TRACE_FAILED;
    return rc;
}

int run_open(replay_run *run, kvk_seq *out)
{
    return checked(run, "kvk_seq_open", kvk_seq_open(run->cache, NULL, out));
}

int run_attach(replay_run *run, kvk_seq seq, const kvk_text *prompt)
{
    return checked(run, "kvk_prefix_attach", kvk_prefix_attach(run->cache, seq, prompt));
}

int run_close(replay_run *run, kvk_seq seq)
{
    return checked(run, "kvk_seq_close", kvk_seq_close(run->cache, seq));
}

int run_commit(replay_run *run, kvk_seq seq, const kvk_text *text)
{
    return checked(run, "kvk_commit", kvk_commit(run->cache, seq, text));
}

int run_truncate(replay_run *run, kvk_seq seq)
{
    return checked(run, "kvk_truncate", kvk_truncate(run->cache, seq, 0));
}

static int checked_but_for_pages(replay_run *run, const char *call, int rc)
{
    return rc == KVK_ENOPAGE ? rc : checked(run, call, rc);
}

int run_reserve(replay_run *run, kvk_seq seq, uint32_t n_tokens, kvk_effort effort)
{
    int rc = kvk_reserve(run->cache, seq, n_tokens, effort);
    return checked_but_for_pages(run, "kvk_reserve", rc);
}

int run_preempt(replay_run *run, kvk_seq seq, kvk_preempt_how how)
{
    return checked_but_for_pages(run, "kvk_preempt", kvk_preempt(run->cache, seq, how));
}

int run_swap_in(replay_run *run, kvk_seq seq)
{
    return checked_but_for_pages(run, "kvk_swap_in", kvk_swap_in(run->cache, seq, KVK_FREE_ONLY));
}

int run_extend(replay_run *run, kvk_seq seq, const kvk_text *text)
{
    if (text->n_tokens == 0)
        return 0;
    int pages = kvk_reserve(run->cache, seq, text->n_tokens, KVK_RECLAIM);
    if (pages == KVK_ENEVER || pages == KVK_ENOPAGE)
        return trace_failed(run->error, trace_where(run->trace, NULL),
                            "needs more pages than the pool's %u: %u tokens more", run->result->n_pages,
                            text->n_tokens);
    if (checked(run, "kvk_reserve", pages) < 0)
        return TRACE_FAILED;
    int rc = run_commit(run, seq, text);
    return rc < 0 ? rc : pages;
}

int run_stuck(replay_run *run)
{
    return trace_failed(run->error, trace_where(run->trace, NULL), "requests wait that nothing can let in");
}

int run_out_of_memory(replay_run *run)
{
    return trace_failed(run->error, trace_where(run->trace, NULL), "out of memory");
}

int run_clock_overflow(replay_run *run)
{
    return trace_bad_input(run->error, trace_where(run->trace, NULL), "the time passes 2^64 microseconds");
}

int run_needs_fitting_pages(replay_run *run)
{
    uint32_t block = trace_block_tokens(run->trace), page = run->result->page_tokens;
    if (!block || repage_fits(block, page))
        return 0;
    return trace_bad_input(run->error, (trace_place){trace_where(run->trace, NULL).file, 0, NULL},
                           "a page of %u tokens is no part and no multiple of the trace's %u", page, block);
}
