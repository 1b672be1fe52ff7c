/* Requests at their times, in an unlimited pool.
 *
 * A sequence holds its prompt from its arrival t0. Its token k = 1 .. n_output-1 is there from t0 + k * token_us, and
 * all of it goes at t0 + n_output * token_us. At equal times sequences end first, then grow, then arrive.
 *
 * Tokens within a page change nothing that the manager sees, so only those that need a new page are events; what came
 * since the last one is committed with them. The integral of tokens is a sum known on arrival, that of pages is taken
 * from the manager's own count, from event to event.
 */
#include "trace/replay_run.h"

#include "base/checked.h"
#include "base/heap.h"

#include <math.h>

typedef struct live_sequence {
    kvk_seq seq;
    uint64_t t0;
    uint32_t n_input, n_output;
    uint32_t held;   /* tokens committed */
    uint64_t number; /* of the request; 0 for a place not in use */
} live_sequence;

typedef struct timed_state {
    memory memory;
    heap next; /* the next event of each sequence, by its place in `live` */
    live_sequence *live;
    uint32_t *unused; /* places given back, a stack */
    uint32_t live_cap, unused_cap, n_live, n_unused;
    uint64_t now;
} timed_state;

static int content(replay_run *run, kvk_content *out)
{
    *out = KVK_CONTENT_NONE;
    return run_needs_unlimited(run);
}

static int open_timed(replay_run *run)
{
    timed_state *s = run->state;
    if (memory_open(&s->memory, NULL) < 0)
        return run_out_of_memory(run);
    heap_open(&s->next, &s->memory);
    return 0;
}

static void close_timed(replay_run *run)
{
    timed_state *s = run->state;
    if (!s->next.memory)
        return;
    heap_close(&s->next);
    memory_give(&s->memory, s->live, s->live_cap * sizeof *s->live);
    memory_give(&s->memory, s->unused, s->unused_cap * sizeof *s->unused);
    memory_close(&s->memory);
}

/* Lets the time pass up to `time`. */
static int pass(replay_run *run, uint64_t time)
{
    timed_state *s = run->state;
    if (time == s->now)
        return 0;
    kvk_stats stats = {.size = sizeof stats};
    kvk_stats_get(run->cache, &stats);
    uint64_t area;
    if (checked_mul(stats.pages_used, time - s->now, &area) < 0 ||
        checked_add(run->result->page_us, area, &run->result->page_us) < 0)
        return run_clock_overflow(run);
    s->now = time;
    return 0;
}

static uint32_t tokens_at(const live_sequence *q, uint64_t time, uint64_t token_us)
{
    uint64_t made = (time - q->t0) / token_us;
    return made < q->n_output ? q->n_input + (uint32_t)made : q->n_input + q->n_output - (q->n_output > 0);
}

/* What lives may be many, so it is only added up where a point of the curve is due. */
static void add_sample(replay_run *run)
{
    const timed_state *s = run->state;
    if (!samples_due(run->options->samples))
        return;
    kvk_stats stats = {.size = sizeof stats};
    kvk_stats_get(run->cache, &stats);
    double tokens = 0;
    for (uint32_t i = 0; i < s->n_live; i++)
        if (s->live[i].number)
            tokens += tokens_at(&s->live[i], s->now, run->options->token_us);
    double room = (double)stats.pages_used * run->result->page_tokens;
    samples_add(run->options->samples, (sample){(double)s->now * 1e-6, room, tokens});
}

/* Sets the next event of a sequence: the first token past its pages, or its end. Ends come before growth at equal
 * times. */
static void schedule(replay_run *run, uint32_t place)
{
    const uint64_t after_ends = (uint64_t)1 << 63;
    timed_state *s = run->state;
    const live_sequence *q = &s->live[place];
    uint64_t page = run->result->page_tokens;
    uint64_t k = ceil_div(q->held, page) * page - q->n_input + 1;
    bool grows = k < q->n_output;
    heap_push(&s->next, place, q->t0 + (grows ? k : q->n_output) * run->options->token_us,
              grows ? after_ends | q->number : q->number);
}

static int extend_to(replay_run *run, live_sequence *q, uint32_t n_tokens)
{
    kvk_text text = {.n_tokens = n_tokens - q->held};
    q->held = n_tokens;
    return run_extend(run, q->seq, &text);
}

static int one_event(replay_run *run)
{
    timed_state *s = run->state;
    heap_item event = *heap_top(&s->next);
    live_sequence *q = &s->live[event.id];
    bool ends = event.tie == q->number;
    int rc = pass(run, event.key);
    if (rc == 0)
        rc = extend_to(run, q, tokens_at(q, s->now, run->options->token_us));
    if (rc >= 0 && ends)
        rc = run_close(run, q->seq);
    if (rc < 0)
        return rc;
    if (ends) {
        heap_remove(&s->next, event.id);
        q->number = 0;
        s->unused[s->n_unused++] = event.id;
    } else {
        schedule(run, event.id);
    }
    add_sample(run);
    return 0;
}

static int events_until(replay_run *run, uint64_t time)
{
    timed_state *s = run->state;
    const heap_item *top;
    while ((top = heap_top(&s->next)) && top->key <= time) {
        int rc = one_event(run);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Gets a place in `live`, and room in the heap and in `unused` for it. */
static int take_place(replay_run *run, uint32_t *out)
{
    timed_state *s = run->state;
    if (s->n_unused > 0) {
        *out = s->unused[--s->n_unused];
        return 0;
    }
    void *live = s->live, *unused = s->unused;
    uint32_t need = s->n_live + 1;
    int rc = memory_grow(&s->memory, &live, &s->live_cap, need, sizeof *s->live);
    s->live = live;
    if (rc == 0)
        rc = memory_grow(&s->memory, &unused, &s->unused_cap, need, sizeof *s->unused);
    s->unused = unused;
    if (rc < 0 || heap_prepare(&s->next, need) < 0)
        return run_out_of_memory(run);
    *out = s->n_live++;
    return 0;
}

/* The request's share of the integral of tokens; also makes sure that none of its events is past the clock. */
static int count_tokens(replay_run *run, const live_sequence *q)
{
    uint64_t out = q->n_output, steps = q->n_input * out + (out ? out * (out - 1) / 2 : 0), area, span, end;
    if (checked_mul(steps, run->options->token_us, &area) < 0 ||
        checked_add(run->result->token_us, area, &run->result->token_us) < 0 ||
        checked_mul(out, run->options->token_us, &span) < 0 || checked_add(q->t0, span, &end) < 0)
        return run_clock_overflow(run);
    return 0;
}

static int admit(replay_run *run, const live_sequence *arrived, replay_request *seen)
{
    timed_state *s = run->state;
    uint32_t place = 0;
    int rc = count_tokens(run, arrived);
    if (rc == 0)
        rc = take_place(run, &place);
    if (rc < 0)
        return rc;
    live_sequence *q = &s->live[place];
    *q = *arrived;
    rc = run_open(run, &q->seq);
    if (rc == 0)
        rc = extend_to(run, q, q->n_input);
    if (rc < 0)
        return rc;
    seen->pages = (uint32_t)rc;
    schedule(run, place);
    add_sample(run);
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

static int one_request(replay_run *run, const trace_request *request, replay_request *seen)
{
    live_sequence arrived = {.number = seen->number, .n_input = request->n_input, .n_output = request->n_output};
    int rc = arrival(run, request->arrival_us, &arrived.t0);
    if (rc == 0)
        rc = events_until(run, arrived.t0);
    if (rc == 0)
        rc = pass(run, arrived.t0);
    return rc < 0 ? rc : admit(run, &arrived, seen);
}

static int finish(replay_run *run)
{
    return events_until(run, UINT64_MAX);
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
