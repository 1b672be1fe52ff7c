/* Sessions whose requests wait for each other, in an unlimited pool with the prefix cache on.
 *
 * A request starts when its think time has passed since the end of the one that it comes after, or since its
 * session's start. It then holds its prompt, of which it takes what is cached; with n output tokens and a service
 * time D its token k = 1 .. n-1 is there from start + floor(k D / n), and all of it is given back at start + D. At
 * equal times requests end first, then grow, then start, among themselves in the trace's order.
 *
 * Since requests of the last file may go before those of the first, the whole trace is read before the clock starts. */
#include "trace/replay_run.h"

#include "base/checked.h"
#include "base/heap.h"
#include "trace/random.h"
#include "trace/repage.h"

#define NO_REQUEST UINT32_MAX

/* What comes next of a request, in the order of equal times. */
typedef enum step { STEP_END, STEP_GROW, STEP_START } step;

typedef struct waiting {
    trace_request request; /* `blocks` is not used: they are at blocks[first_block] of the state */
    uint64_t first_block, line;
    uint64_t start_us, service_us; /* start_us: of the session until the request starts, then its own */
    uint32_t follower, next;       /* the last of those that wait for its end, and who waits for the same */
    uint32_t held;                 /* tokens */
    kvk_seq seq;
} waiting;

typedef struct turns_state {
    memory memory;
    heap next; /* the next step of each request, by its place in `all` */
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
    int rc = run_needs_unlimited(run);
    return rc < 0 ? rc : run_needs_fitting_pages(run);
}

static int open_turns(replay_run *run)
{
    turns_state *s = run->state;
    if (memory_open(&s->memory, NULL) < 0)
        return run_out_of_memory(run);
    heap_open(&s->next, &s->memory);
    random_seed(&s->random, ~run->options->seed);
    s->session = NO_REQUEST;
    return 0;
}

static void close_turns(replay_run *run)
{
    turns_state *s = run->state;
    repage_keys_close(&s->keys);
    if (!s->next.memory)
        return;
    heap_close(&s->next);
    memory_give(&s->memory, s->all, s->cap * sizeof *s->all);
    memory_give(&s->memory, s->blocks, s->blocks_cap * sizeof *s->blocks);
    memory_close(&s->memory);
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
    if (s->n == NO_REQUEST - 1 || memory_grow(&s->memory, &s->all, &s->cap, (uint64_t)s->n + 1, sizeof *s->all) < 0 ||
        memory_grow(&s->memory, &s->blocks, &s->blocks_cap, (uint64_t)s->n_blocks + n_blocks + 1, sizeof *s->blocks) <
            0)
        return run_out_of_memory(run);
    return heap_prepare(&s->next, s->n + 1) < 0 ? run_out_of_memory(run) : 0;
}

/* `when` past the clock's end is an error. */
static int schedule(replay_run *run, uint32_t place, step what, uint64_t when)
{
    const uint64_t latest = (uint64_t)1 << 63;
    turns_state *s = run->state;
    if (when > latest)
        return run_clock_overflow(run);
    heap_push(&s->next, place, when, (uint64_t)what << 32 | place);
    return 0;
}

/* Puts a request behind the one that it waits for, or on the clock. */
static int line_up(replay_run *run, uint32_t place)
{
    turns_state *s = run->state;
    waiting *w = &s->all[place];
    const trace_turn *turn = &w->request.turn;
    if (turn->after == 0)
        return schedule(run, place, STEP_START, w->start_us + turn->think_us);
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

static void add_sample(replay_run *run, uint64_t now)
{
    if (!samples_due(run->options->samples))
        return;
    kvk_stats stats = {.size = sizeof stats};
    kvk_stats_get(run->cache, &stats);
    double room = (double)stats.pages_used * run->result->page_tokens;
    samples_add(run->options->samples, (sample){.x = (double)now * 1e-6, .a = room});
}

/* The next step of a request that has started: its first token past the pages that it has, or its end. */
static int schedule_next(replay_run *run, uint32_t place)
{
    const turns_state *s = run->state;
    const waiting *w = &s->all[place];
    uint64_t page = run->result->page_tokens, n = w->request.n_output;
    uint64_t k = ceil_div(w->held, page) * page - w->request.n_input + 1;
    if (k >= n)
        return schedule(run, place, STEP_END, w->start_us + w->service_us);
    uint64_t each = w->service_us / n, rest = w->service_us % n; /* rest * k / n is below n */
    return schedule(run, place, STEP_GROW, w->start_us + each * k + rest * k / n);
}

static void show(const replay_run *run, uint32_t place, uint32_t pages, uint32_t page_hits)
{
    const turns_state *s = run->state;
    const waiting *w = &s->all[place];
    replay_request seen = {.number = place + 1,
                           .line = w->line,
                           .arrival_us = w->start_us,
                           .n_input = w->request.n_input,
                           .n_output = w->request.n_output,
                           .pages = pages,
                           .page_hits = page_hits,
                           .token_hits = page_hits * run->result->page_tokens};
    if (run->options->on_request)
        run->options->on_request(run->options->ctx, &seen);
}

/* Takes what is cached of the prompt, and room for the rest. Returns the pages found. */
static int hold_prompt(replay_run *run, waiting *w)
{
    turns_state *s = run->state;
    uint32_t page = run->result->page_tokens, n_input = w->request.n_input, full = n_input / page;
    trace_request request = w->request;
    request.blocks = &s->blocks[w->first_block];
    if (repage_keys_fill(&s->keys, &request, page, full) < 0)
        return run_out_of_memory(run);
    kvk_text prompt = {.n_tokens = n_input, .n_keys = full, .keys = s->keys.keys};
    int found = run_attach(run, w->seq, &prompt);
    if (found < 0)
        return found;
    uint32_t hits = (uint32_t)found / page;
    kvk_text rest = {.n_tokens = n_input - hits * page, .n_keys = full - hits, .keys = s->keys.keys + hits};
    int rc = run_extend(run, w->seq, &rest);
    return rc < 0 ? rc : (int)hits;
}

static int start(replay_run *run, uint32_t place, uint64_t now)
{
    turns_state *s = run->state;
    waiting *w = &s->all[place];
    int rc = run_open(run, &w->seq);
    int hits = rc < 0 ? rc : hold_prompt(run, w);
    if (hits < 0)
        return hits;
    uint32_t pages =
        min_u32(repage_count(&w->request, run->result->page_tokens), w->request.n_input / run->result->page_tokens);
    w->held = w->request.n_input;
    w->start_us = now;
    run->result->page_refs += pages;
    run->result->page_hits += (uint64_t)hits;
    run->result->token_hits += (uint64_t)hits * run->result->page_tokens;
    show(run, place, pages, (uint32_t)hits);
    return schedule_next(run, place);
}

/* No trace says what the output is, so its pages have keys that nobody looks for. */
static int grow_to(replay_run *run, waiting *w, uint32_t n_tokens)
{
    turns_state *s = run->state;
    uint32_t page = run->result->page_tokens, full = n_tokens / page - w->held / page;
    if (repage_keys_fill(&s->keys, NULL, page, full) < 0)
        return run_out_of_memory(run);
    kvk_text text = {.n_tokens = n_tokens - w->held, .n_keys = full, .keys = s->keys.keys};
    w->held = n_tokens;
    int rc = run_extend(run, w->seq, &text);
    return rc < 0 ? rc : 0;
}

static int grow(replay_run *run, uint32_t place)
{
    turns_state *s = run->state;
    waiting *w = &s->all[place];
    uint32_t page = run->result->page_tokens;
    int rc = grow_to(run, w, (uint32_t)ceil_div(w->held, page) * page + 1);
    return rc < 0 ? rc : schedule_next(run, place);
}

static int end(replay_run *run, uint32_t place, uint64_t now)
{
    turns_state *s = run->state;
    waiting *w = &s->all[place];
    uint32_t n = w->request.n_output;
    int rc = grow_to(run, w, w->request.n_input + n - (n > 0));
    if (rc == 0)
        rc = run_close(run, w->seq);
    if (rc < 0)
        return rc;
    heap_remove(&s->next, place);
    run->result->makespan_us = now;
    rc = 0;
    for (uint32_t i = w->follower; i != NO_REQUEST && rc == 0; i = s->all[i].next)
        rc = schedule(run, i, STEP_START, now + s->all[i].request.turn.think_us);
    return rc;
}

static int finish(replay_run *run)
{
    turns_state *s = run->state;
    const heap_item *top;
    int rc = 0;
    while (rc == 0 && (top = heap_top(&s->next))) {
        uint32_t place = top->id;
        uint64_t now = top->key;
        step what = (step)(top->tie >> 32);
        rc = what == STEP_END ? end(run, place, now) : what == STEP_GROW ? grow(run, place) : start(run, place, now);
        add_sample(run, now);
    }
    return rc;
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
