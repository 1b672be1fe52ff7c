#include "trace/pools.h"

#include "trace/cores.h"

#include <math.h>

/* ---- The unlimited pool ------------------------------------------------------------------------------------------ */

typedef struct keeper {
    const replay_options *options; /* whose on_request is called too */
    request_list *list;
    int rc;
} keeper;

static void keep(void *ctx, const replay_request *q)
{
    keeper *k = ctx;
    listed_request kept = {
        .line = q->line, .arrival_us = q->arrival_us, .n_input = q->n_input, .n_output = q->n_output};
    if (k->rc == 0)
        k->rc = request_list_add(k->list, &kept);
    if (k->options->on_request)
        k->options->on_request(k->options->ctx, q);
}

int pools_measure(trace *t, const replay_options *options, request_list *list, replay_result *unlimited,
                  trace_error *error)
{
    keeper k = {.options = options, .list = list};
    replay_options o = *options;
    o.mode = REPLAY_TIMED;
    o.n_pages = REPLAY_UNLIMITED;
    o.samples = NULL;
    o.on_request = keep;
    o.ctx = &k;
    list->name = trace_where(t, NULL).file;
    int rc = replay_trace(t, &o, unlimited, error);
    return rc == 0 && k.rc < 0 ? trace_failed(error, trace_where(t, NULL), "%s", kvk_strerror(k.rc)) : rc;
}

/* ---- Many sizes -------------------------------------------------------------------------------------------------- */

uint32_t pools_sizes(uint32_t peak, pool_run *runs, uint32_t n)
{
    const double first = 0.25;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n && peak > 0; i++) {
        double part = n > 1 ? (double)i / (n - 1) : 1;
        uint32_t size = (uint32_t)llround(peak * (first + (1 - first) * part));
        if (size > (kept ? runs[kept - 1].n_pages : 0))
            runs[kept++] = (pool_run){.n_pages = size};
    }
    return kept;
}

typedef struct sweep {
    const request_list *list;
    const replay_options *options;
    pool_run *runs;
} sweep;

static int run_pool(void *ctx, uint32_t i)
{
    const sweep *s = ctx;
    pool_run *run = &s->runs[i];
    replay_options o = *s->options;
    o.mode = REPLAY_TIMED;
    o.n_pages = run->n_pages;
    o.max_requests = 0;
    o.samples = NULL;
    o.on_request = NULL;
    trace *t = NULL;
    int rc = trace_open_listed(s->list, &t, &run->error);
    if (rc == 0)
        rc = replay_trace(t, &o, &run->result, &run->error);
    trace_close(t);
    return rc;
}

int pools_sweep(const request_list *list, const replay_options *options, pool_run *runs, uint32_t n, trace_error *error)
{
    sweep s = {list, options, runs};
    int rc = cores_run(run_pool, &s, n);
    for (uint32_t i = 0; i < n && rc < 0; i++)
        if (runs[i].error.text[0]) {
            *error = runs[i].error;
            break;
        }
    return rc;
}
