/* Requests at their times: how many pages are in use, and in a pool of a size who waits and gives way (trace/serve.h).
 *
 * In an unlimited pool a sequence holds its prompt from its arrival t0. Its token k = 1 .. n_output-1 is there from
 * t0 + k * token_us, and all of it goes at t0 + n_output * token_us.
 *
 * The integral of tokens is a sum known when a sequence ends or gives way; that of pages is taken from the manager's
 * own count, from event to event.
 */
#include "trace/serve.h"

#include "base/checked.h"

#include <math.h>

typedef struct timed_state {
    serve server;
    uint32_t *unused; /* places given back, a stack */
    uint32_t unused_cap, n_places, n_unused;
    uint64_t token_us; /* what the integral of tokens would be if nobody waited */
} timed_state;

static int content(replay_run *run, kvk_content *out)
{
    (void)run;
    *out = KVK_CONTENT_NONE;
    return 0;
}

static int gone(serve *server, uint32_t place)
{
    timed_state *s = server->run->state;
    s->unused[s->n_unused++] = place;
    return 0;
}

static int open_timed(replay_run *run)
{
    static const serve_ops ops = {.gone = gone};
    timed_state *s = run->state;
    int rc = serve_open(&s->server, run, &ops);
    s->server.integrates = true;
    return rc;
}

static void close_timed(replay_run *run)
{
    timed_state *s = run->state;
    if (s->server.next.memory)
        memory_give(&s->server.memory, s->unused, s->unused_cap * sizeof *s->unused);
    serve_close(&s->server);
}

/* Gets a place in the server, and room in `unused` for it. */
static int take_place(replay_run *run, uint32_t *out)
{
    timed_state *s = run->state;
    if (s->n_unused > 0) {
        *out = s->unused[--s->n_unused];
        return 0;
    }
    uint32_t need = s->n_places + 1;
    if (memory_grow(&s->server.memory, &s->unused, &s->unused_cap, need, sizeof *s->unused) < 0)
        return run_out_of_memory(run);
    *out = s->n_places++;
    return serve_prepare(&s->server, need);
}

/* Makes sure that the clock suffices for the request and for the integral of tokens, at least if nobody waits. */
static int check_clock(replay_run *run, const trace_request *request, uint64_t arrival_us)
{
    timed_state *s = run->state;
    uint64_t n = request->n_output, steps = request->n_input * n + (n ? n * (n - 1) / 2 : 0), area, span, end;
    if (checked_mul(steps, run->options->token_us, &area) < 0 || checked_add(s->token_us, area, &s->token_us) < 0 ||
        checked_mul(n, run->options->token_us, &span) < 0 || checked_add(arrival_us, span, &end) < 0)
        return run_clock_overflow(run);
    return 0;
}

static int arrival(replay_run *run, uint64_t arrival_us, uint64_t *out)
{
    const double latest = 9e18;
    double time = (double)arrival_us / run->options->speed;
    if (!(time < latest))
        return run_clock_overflow(run);
    *out = run->options->speed == 1 ? arrival_us : (uint64_t)llround(time);
    return 0;
}

static int events_until(serve *server, uint64_t time)
{
    int rc = 0;
    while (rc == 0 && serve_next(server) <= time && serve_next(server) != UINT64_MAX)
        rc = serve_step(server);
    return rc;
}

static int one_request(replay_run *run, const trace_request *request, replay_request *seen)
{
    timed_state *s = run->state;
    serve_job job = {.number = seen->number,
                     .n_input = request->n_input,
                     .n_output = request->n_output,
                     .service_us = request->n_output * run->options->token_us};
    uint64_t time = 0;
    uint32_t place = 0;
    int rc = arrival(run, request->arrival_us, &time);
    if (rc == 0)
        rc = events_until(&s->server, time);
    if (rc == 0)
        rc = serve_pass(&s->server, time);
    if (rc == 0)
        rc = check_clock(run, request, time);
    if (rc == 0)
        rc = take_place(run, &place);
    seen->pages = (uint32_t)ceil_div(request->n_input, run->result->page_tokens);
    return rc < 0 ? rc : serve_arrive(&s->server, place, &job);
}

static int finish(replay_run *run)
{
    timed_state *s = run->state;
    int rc = events_until(&s->server, UINT64_MAX);
    return rc < 0 ? rc : serve_finish(&s->server);
}

const replay_ops replay_timed = {
    .name = "timed",
    .state_bytes = sizeof(timed_state),
    .content = content,
    .open = open_timed,
    .request = one_request,
    .finish = finish,
    .close = close_timed,
};
