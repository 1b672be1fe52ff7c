/* Sessions whose requests wait for each other, with the prefix cache on.
 *
 * A request starts when its think time has passed since the end of the one that it comes after, or since its
 * session's start; in a pool of a size it may then have to wait for pages (trace/serve.h). Of its prompt it takes what
 * is cached. With n output tokens and a service time D its token k = 1 .. n-1 is there floor(k D / n) later, and all of
 * it is given back D later. At equal times requests end first, then grow, then start, among themselves in the trace's
 * order.
 *
 * Since requests of the last file may go before those of the first, the whole trace is read before the clock starts. */
#include "trace/serve.h"

#include "base/checked.h"
#include "trace/random.h"
#include "trace/repage.h"

#define NO_REQUEST UINT32_MAX

typedef struct waiting {
    trace_request request; /* `blocks` is not used: they are at blocks[first_block] of the state */
    uint64_t first_block, line;
    uint64_t start_us, service_us; /* start_us: of the session */
    uint32_t follower, next;       /* the last of those that wait for its end, and who waits for the same */
} waiting;

typedef struct turns_state {
    serve server; /* places are those in `all` */
    heap starts;  /* requests that are due to come, by their places */
    waiting *all;
    uint64_t *blocks;
    uint32_t n, cap, n_blocks, blocks_cap;
    repage_keys_buffer keys;
    random_state random;
    double session_us; /* when the session in hand starts */
    uint32_t session;
} turns_state;

static int content(replay_run *run, kvk_content *out)
{
    trace_place place = {trace_where(run->trace, NULL).file, 0, NULL};
    if (!trace_has_turns(run->trace))
        return trace_bad_input(run->error, place, "%s traces do not say how requests follow each other",
                               trace_format_name(run->trace));
    *out = KVK_CONTENT_KEYS;
    return run_needs_fitting_pages(run);
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

/* Sessions start together, or as a Poisson process. */
static int start_session(replay_run *run, uint32_t session)
{
    const double longest_us = 9e15; /* 285 years; below 2^53 */
    turns_state *s = run->state;
    if (session == s->session)
        return 0;
    s->session = session;
    if (run->options->session_rate > 0)
        s->session_us += 1e6 * random_exponential(&s->random) / run->options->session_rate;
    return s->session_us < longest_us ? 0 : run_clock_overflow(run);
}

static int make_room(replay_run *run, uint32_t n_blocks)
{
    turns_state *s = run->state;
    memory *from = &s->server.memory;
    if (s->n == NO_REQUEST - 1 || memory_grow(from, &s->all, &s->cap, (uint64_t)s->n + 1, sizeof *s->all) < 0 ||
        memory_grow(from, &s->blocks, &s->blocks_cap, (uint64_t)s->n_blocks + n_blocks + 1, sizeof *s->blocks) < 0 ||
        heap_prepare(&s->starts, s->n + 1) < 0)
        return run_out_of_memory(run);
    return serve_prepare(&s->server, s->n + 1);
}

/* `when` past the clock's end is an error. */
static int schedule(replay_run *run, uint32_t place, uint64_t when)
{
    const uint64_t latest = (uint64_t)1 << 63;
    turns_state *s = run->state;
    if (when > latest)
        return run_clock_overflow(run);
    heap_push(&s->starts, place, when, place);
    return 0;
}

/* Puts a request behind the one that it waits for, or on the clock. */
static int line_up(replay_run *run, uint32_t place)
{
    turns_state *s = run->state;
    waiting *w = &s->all[place];
    const trace_turn *turn = &w->request.turn;
    if (turn->after == 0)
        return schedule(run, place, w->start_us + turn->think_us);
    waiting *before = &s->all[place - turn->after];
    w->next = before->follower;
    before->follower = place;
    return 0;
}

static int service_time(replay_run *run, const trace_request *request, uint64_t *out)
{
    const uint64_t longest = (uint64_t)1 << 62;
    *out = request->turn.service_us;
    if (*out == 0 && checked_mul(request->n_output, run->options->token_us, out) < 0)
        return run_clock_overflow(run);
    return *out < longest ? 0 : run_clock_overflow(run);
}

static int keep_request(replay_run *run, const trace_request *request, replay_request *seen)
{
    turns_state *s = run->state;
    waiting w = {.request = *request,
                 .first_block = s->n_blocks,
                 .line = seen->line,
                 .follower = NO_REQUEST,
                 .next = NO_REQUEST};
    int rc = start_session(run, request->turn.session);
    if (rc == 0)
        rc = service_time(run, request, &w.service_us);
    if (rc == 0)
        rc = make_room(run, request->n_blocks);
    if (rc < 0)
        return rc;
    w.start_us = (uint64_t)s->session_us;
    for (uint32_t i = 0; i < request->n_blocks; i++)
        s->blocks[s->n_blocks++] = request->blocks[i];
    s->all[s->n++] = w;
    return line_up(run, s->n - 1);
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

/* No trace says what the output is, so its pages have keys that nobody looks for. */
static int text_of(serve *server, uint32_t place, uint32_t from, uint32_t to, kvk_text *out)
{
    turns_state *s = server->run->state;
    trace_request request = s->all[place].request;
    uint32_t page = server->run->result->page_tokens, first = from / page, end = to / page;
    bool is_output = from >= request.n_input;
    request.blocks = &s->blocks[s->all[place].first_block];
    if (is_output) {
        end -= first;
        first = 0;
    }
    if (repage_keys_fill(&s->keys, is_output ? NULL : &request, page, end) < 0)
        return run_out_of_memory(server->run);
    *out = (kvk_text){.n_tokens = to - from, .n_keys = end - first, .keys = s->keys.keys + first};
    return 0;
}

static int started(serve *server, uint32_t place, uint32_t found)
{
    replay_run *run = server->run;
    const turns_state *s = run->state;
    const waiting *w = &s->all[place];
    uint32_t page = run->result->page_tokens,
             pages = min_u32(repage_count(&w->request, page), w->request.n_input / page);
    replay_request seen = {.number = place + 1,
                           .line = w->line,
                           .arrival_us = server->now,
                           .n_input = w->request.n_input,
                           .n_output = w->request.n_output,
                           .pages = pages,
                           .page_hits = found / page,
                           .token_hits = found};
    run->result->page_refs += pages;
    run->result->page_hits += seen.page_hits;
    run->result->token_hits += found;
    if (run->options->on_request)
        run->options->on_request(run->options->ctx, &seen);
    return 0;
}

static int gone(serve *server, uint32_t place)
{
    replay_run *run = server->run;
    const turns_state *s = run->state;
    int rc = 0;
    for (uint32_t i = s->all[place].follower; i != NO_REQUEST && rc == 0; i = s->all[i].next)
        rc = schedule(run, i, server->now + s->all[i].request.turn.think_us);
    return rc;
}

static int start(replay_run *run, uint32_t place, uint64_t now)
{
    turns_state *s = run->state;
    const waiting *w = &s->all[place];
    serve_job job = {
        .number = place, .n_input = w->request.n_input, .n_output = w->request.n_output, .service_us = w->service_us};
    heap_remove(&s->starts, place);
    int rc = serve_pass(&s->server, now);
    return rc < 0 ? rc : serve_arrive(&s->server, place, &job);
}

static int finish(replay_run *run)
{
    turns_state *s = run->state;
    int rc = 0;
    for (;;) {
        const heap_item *top = heap_top(&s->starts);
        uint64_t next = serve_next(&s->server);
        if (rc < 0 || (!top && next == UINT64_MAX))
            return rc < 0 ? rc : serve_finish(&s->server);
        rc = top && top->key < next ? start(run, top->id, top->key) : serve_step(&s->server);
    }
}

static int open_turns(replay_run *run)
{
    static const serve_ops ops = {.text = text_of, .started = started, .gone = gone};
    turns_state *s = run->state;
    int rc = serve_open(&s->server, run, &ops);
    if (rc < 0)
        return rc;
    heap_open(&s->starts, &s->server.memory);
    random_seed(&s->random, ~run->options->seed);
    s->session = NO_REQUEST;
    return 0;
}

static void close_turns(replay_run *run)
{
    turns_state *s = run->state;
    memory *from = &s->server.memory;
    repage_keys_close(&s->keys);
    if (s->starts.memory) {
        heap_close(&s->starts);
        memory_give(from, s->all, s->cap * sizeof *s->all);
        memory_give(from, s->blocks, s->blocks_cap * sizeof *s->blocks);
    }
    serve_close(&s->server);
}

const replay_ops replay_turns = {
    .name = "multi-turn",
    .state_bytes = sizeof(turns_state),
    .shows_requests = true,
    .content = content,
    .open = open_turns,
    .request = keep_request,
    .finish = finish,
    .close = close_turns,
};
