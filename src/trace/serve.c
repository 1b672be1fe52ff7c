#include "trace/serve.h"

#include "base/checked.h"

__extension__ typedef unsigned __int128 wide;

enum { END, GROW };    /* in the order of equal times */
#define KIND_SHIFT 62u /* a tie is the kind of an event above its job's number */

int serve_open(serve *s, replay_run *run, const serve_ops *ops)
{
    *s = (serve){.run = run, .ops = ops};
    if (memory_open(&s->memory, NULL) < 0)
        return run_out_of_memory(run);
    heap_open(&s->next, &s->memory);
    heap_open(&s->queue, &s->memory);
    return 0;
}

void serve_close(serve *s)
{
    if (!s->next.memory)
        return;
    heap_close(&s->next);
    heap_close(&s->queue);
    quantile_close(&s->waits, &s->memory);
    quantile_close(&s->usages, &s->memory);
    memory_give(&s->memory, s->jobs, s->jobs_cap * sizeof *s->jobs);
    memory_give(&s->memory, s->running, s->running_cap * sizeof *s->running);
    memory_close(&s->memory);
}

int serve_prepare(serve *s, uint32_t n_places)
{
    if (memory_grow(&s->memory, &s->jobs, &s->jobs_cap, n_places, sizeof *s->jobs) < 0 ||
        memory_grow(&s->memory, &s->running, &s->running_cap, n_places, sizeof *s->running) < 0 ||
        heap_prepare(&s->next, n_places) < 0 || heap_prepare(&s->queue, n_places) < 0)
        return run_out_of_memory(s->run);
    return 0;
}

static kvk_stats stats_of(const serve *s)
{
    kvk_stats stats = {.size = sizeof stats};
    kvk_stats_get(s->run->cache, &stats);
    return stats;
}

static uint64_t page_tokens(const serve *s)
{
    return s->run->result->page_tokens;
}

/* ---- The clock -------------------------------------------------------------------------------------------------- */

/* When output token k is there, from the whole prompt on. */
static uint64_t token_time(const serve_job *j, uint64_t k)
{
    if (k == 0)
        return 0;
    uint64_t each = j->service_us / j->n_output, rest = j->service_us % j->n_output;
    return each * k + rest * k / j->n_output; /* rest * k / n is below n */
}

/* Token places in its pages. */
static uint64_t room_of(const serve *s, const serve_job *j)
{
    return ceil_div(j->held, page_tokens(s)) * page_tokens(s);
}

static uint32_t prompt_of(const serve_job *j)
{
    return j->n_input + j->made;
}

/* Output tokens there at the present time, as far as there is room: one that has no page yet waits for its event. */
static uint32_t made_now(const serve *s, const serve_job *j)
{
    if (j->is_filling || j->n_output == 0)
        return j->made;
    wide n = ((wide)(s->now - j->origin_us) + 1) * j->n_output;
    uint64_t room = room_of(s, j) - j->n_input, k = (uint64_t)((n + j->service_us - 1) / j->service_us) - 1;
    k = k < j->n_output - 1 ? k : j->n_output - 1;
    return (uint32_t)(k < room ? k : room);
}

static uint64_t tokens_now(const serve *s, const serve_job *j)
{
    return j->is_filling ? j->held : (uint64_t)j->n_input + made_now(s, j);
}

uint64_t serve_tokens(const serve *s)
{
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < s->n_running; i++)
        tokens += tokens_now(s, &s->jobs[s->running[i]]);
    return tokens;
}

static void add_sample(const serve *s)
{
    if (!samples_due(s->run->options->samples))
        return;
    double room = (double)stats_of(s).pages_used * s->run->result->page_tokens;
    samples_add(s->run->options->samples, (sample){(double)s->now * 1e-6, room, (double)serve_tokens(s)});
}

int serve_pass(serve *s, uint64_t time)
{
    replay_result *r = s->run->result;
    uint64_t span = time - s->now, area;
    if (span == 0)
        return 0;
    kvk_stats stats = stats_of(s);
    if (s->integrates &&
        (checked_mul(stats.pages_used, span, &area) < 0 || checked_add(r->page_us, area, &r->page_us) < 0))
        return run_clock_overflow(s->run);
    if (s->queue.count > 0)
        r->withheld_page_us += (double)min_u32(r->watermark, stats.n_pages - stats.pages_used) * (double)span;
    s->now = time;
    return 0;
}

/* Adds what a job has held since `since_us` to the integral of tokens. */
static int count_tokens(serve *s, const serve_job *j)
{
    if (!s->integrates)
        return 0;
    uint64_t span = s->now - j->since_us, n = made_now(s, j) - j->made, area, total;
    uint64_t most = j->is_filling ? j->held : prompt_of(j) + n, later = n * (n + 1) / 2 * s->run->options->token_us;
    if (checked_mul(most, span, &area) < 0 || checked_add(s->run->result->token_us, area - later, &total) < 0)
        return run_clock_overflow(s->run);
    s->run->result->token_us = total;
    return 0;
}

/* The next event of a job that runs: its next chunk, the first token past its pages, or its end. */
static int schedule(serve *s, uint32_t place)
{
    const serve_job *j = &s->jobs[place];
    uint64_t k = room_of(s, j) - j->n_input + 1, span, when;
    int kind = j->is_filling || k < j->n_output ? GROW : END;
    span = j->is_filling ? s->run->options->token_us : kind == GROW ? token_time(j, k) : j->service_us;
    when = (j->is_filling ? j->since_us : j->origin_us) + span;
    if (when < s->now || when > UINT64_MAX / 2)
        return run_clock_overflow(s->run);
    heap_push(&s->next, place, when, (uint64_t)kind << KIND_SHIFT | j->number);
    return 0;
}

uint64_t serve_next(const serve *s)
{
    const heap_item *top = heap_top(&s->next);
    return top ? top->key : UINT64_MAX;
}

/* ---- Giving way ------------------------------------------------------------------------------------------------- */

static void stop_running(serve *s, uint32_t place)
{
    uint32_t at = s->jobs[place].runs_at, last = s->running[--s->n_running];
    s->running[at] = last;
    s->jobs[last].runs_at = at;
    heap_remove(&s->next, place);
}

/* No K/V is behind these pages: moves are done when they are taken. */
static void run_moves(serve *s)
{
    kvk_move moves[64];
    while (kvk_moves_take(s->run->cache, moves, 64) == 64)
        ;
}

/* The job gives all its pages away and waits. Where it cannot be swapped out its tokens are to be computed again. */
static int give_way(serve *s, uint32_t place)
{
    serve_job *j = &s->jobs[place];
    uint64_t tokens = tokens_now(s, j);
    uint32_t made = made_now(s, j);
    int rc = count_tokens(s, j);
    if (rc < 0)
        return rc;
    rc = s->run->options->preempt == KVK_PREEMPT_SWAP ? run_preempt(s->run, j->seq, KVK_PREEMPT_SWAP) : KVK_ENOPAGE;
    j->is_swapped = rc >= 0;
    if (rc == KVK_ENOPAGE)
        rc = run_preempt(s->run, j->seq, KVK_PREEMPT_RECOMPUTE);
    if (rc < 0)
        return rc;
    run_moves(s);
    if (!j->is_swapped) {
        j->lost = (uint32_t)tokens;
        j->held = 0;
    }
    j->made = made;
    stop_running(s, place);
    heap_push(&s->queue, place, j->arrival_us, j->number);
    return 0;
}

static int victim(serve *s, uint32_t *place)
{
    kvk_seq seq;
    if (kvk_victim(s->run->cache, &seq) == 1)
        for (uint32_t i = 0; i < s->n_running; i++)
            if (s->jobs[s->running[i]].seq == seq) {
                *place = s->running[i];
                return 0;
            }
    return run_stuck(s->run);
}

/* Notes how much of the pool holds tokens. What was made since a job's last page is not known to the cache. */
static int note_usage(serve *s)
{
    kvk_stats stats = stats_of(s);
    uint64_t tokens = stats.live_tokens;
    for (uint32_t i = 0; i < s->n_running; i++)
        tokens += tokens_now(s, &s->jobs[s->running[i]]) - s->jobs[s->running[i]].held;
    double share = (double)tokens / ((double)stats.n_pages * stats.page_tokens);
    s->reclaimed = stats.pages_reclaimed;
    return quantile_add(&s->usages, &s->memory, (uint64_t)(share * 0x1p32)) < 0 ? run_out_of_memory(s->run) : 0;
}

static int note_reclaiming(serve *s)
{
    return s->ops->text && stats_of(s).pages_reclaimed != s->reclaimed ? note_usage(s) : 0;
}

/* Room for a job's next tokens. 1, or 0 if it had to give way itself. */
static int make_room(serve *s, uint32_t place, uint32_t to)
{
    const serve_job *j = &s->jobs[place];
    int rc = run_reserve(s->run, j->seq, to - j->held, KVK_RECLAIM);
    if (rc == KVK_ENOPAGE && note_usage(s) < 0)
        return TRACE_FAILED;
    while (rc == KVK_ENOPAGE) {
        uint32_t other = place;
        rc = victim(s, &other);
        if (rc == 0)
            rc = give_way(s, other);
        if (rc < 0 || other == place)
            return rc;
        rc = run_reserve(s->run, j->seq, to - j->held, KVK_RECLAIM);
    }
    return rc < 0 ? rc : 1;
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

static int commit(serve *s, uint32_t place, uint32_t to)
{
    serve_job *j = &s->jobs[place];
    kvk_text text = {.n_tokens = to - j->held};
    int rc = s->ops->text ? s->ops->text(s, place, j->held, to, &text) : 0;
    if (rc == 0)
        rc = run_commit(s->run, j->seq, &text);
    j->held = to;
    return rc < 0 ? rc : note_reclaiming(s);
}

/* The whole prompt is there: the output begins, or goes on. */
static void begin_output(const serve *s, serve_job *j)
{
    j->is_filling = false;
    j->since_us = s->now;
    j->origin_us = s->now - token_time(j, j->made);
}

static uint32_t next_chunk(const serve *s, const serve_job *j, uint32_t from)
{
    uint32_t chunk = s->run->options->chunk, left = prompt_of(j) - from;
    return from + (chunk && chunk < left ? chunk : left);
}

static int grow(serve *s, uint32_t place)
{
    serve_job *j = &s->jobs[place];
    uint32_t to = j->is_filling ? next_chunk(s, j, j->held) : (uint32_t)room_of(s, j) + 1;
    int rc = make_room(s, place, to);
    if (rc == 1 && j->is_filling)
        rc = count_tokens(s, j) < 0 ? TRACE_BAD_INPUT : 1;
    if (rc == 1)
        rc = commit(s, place, to) < 0 ? TRACE_FAILED : 1;
    if (rc <= 0)
        return rc;
    if (j->is_filling)
        j->since_us = s->now;
    if (j->is_filling && to == prompt_of(j))
        begin_output(s, j);
    return schedule(s, place);
}

static int end(serve *s, uint32_t place)
{
    serve_job *j = &s->jobs[place];
    uint32_t last = j->n_input + j->n_output - (j->n_output > 0);
    int rc = count_tokens(s, j);
    if (rc == 0 && last > j->held) {
        rc = run_reserve(s->run, j->seq, last - j->held, KVK_RECLAIM);
        rc = rc < 0 ? rc : commit(s, place, last);
    }
    if (rc >= 0)
        rc = run_close(s->run, j->seq);
    if (rc < 0)
        return rc;
    stop_running(s, place);
    s->freed = true;
    s->run->result->served_output_tokens += s->jobs[place].n_output;
    s->run->result->makespan_us = s->now;
    return s->ops->gone(s, place);
}

/* ---- Letting in ------------------------------------------------------------------------------------------------- */

/* Pages that the prompts of those that run still need. */
static uint64_t promised(const serve *s)
{
    uint64_t pages = 0;
    if (s->run->options->chunk == 0 || s->run->result->n_pages == REPLAY_UNLIMITED)
        return 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const serve_job *j = &s->jobs[s->running[i]];
        pages += j->is_filling ? ceil_div(prompt_of(j), page_tokens(s)) - ceil_div(j->held, page_tokens(s)) : 0;
    }
    return pages;
}

/* Whether a job that was swapped out finds room, the rest of its prompt included. */
static bool finds_room(const serve *s, const serve_job *j)
{
    kvk_stats stats = stats_of(s);
    uint64_t need = ceil_div(j->is_filling ? prompt_of(j) : j->held, page_tokens(s)) + promised(s);
    return need + s->run->result->watermark <= (uint64_t)stats.pages_free + stats.pages_cached;
}

/* Whether a prompt does, of which `found` tokens are attached. */
static bool prompt_finds_room(const serve *s, const serve_job *j, uint32_t found)
{
    uint64_t others = promised(s), need = prompt_of(j) - found + others * page_tokens(s);
    if (need > KVK_MAX_TOKENS)
        return 0;
    int rc = kvk_can_reserve(s->run->cache, j->seq, (uint32_t)need, KVK_FREE_ONLY);
    return rc == KVK_OK || (rc == KVK_NEVER && others == 0); /* then kvk_reserve says why */
}

static int swap_in(serve *s, serve_job *j)
{
    int rc = finds_room(s, j) ? run_swap_in(s->run, j->seq) : KVK_ENOPAGE;
    if (rc < 0)
        return rc == KVK_ENOPAGE ? 0 : rc;
    run_moves(s);
    j->is_swapped = false;
    return 1;
}

/* What is cached of the prompt is taken. */
static int attach(serve *s, uint32_t place)
{
    const serve_job *j = &s->jobs[place];
    kvk_text text;
    int rc = s->ops->text ? s->ops->text(s, place, 0, prompt_of(j), &text) : 1;
    if (rc != 0)
        return rc < 0 ? rc : 0;
    return run_attach(s->run, j->seq, &text);
}

/* 1, or 0 if the prompt must wait. */
static int fill(serve *s, uint32_t place)
{
    serve_job *j = &s->jobs[place];
    int rc = j->seq ? 0 : run_open(s->run, &j->seq);
    int found = rc < 0 ? rc : attach(s, place);
    if (found < 0)
        return found;
    if (!prompt_finds_room(s, j, (uint32_t)found))
        return found > 0 && run_truncate(s->run, j->seq) < 0 ? TRACE_FAILED : 0;
    uint32_t to = next_chunk(s, j, (uint32_t)found);
    rc = run_reserve(s->run, j->seq, to - (uint32_t)found, KVK_FREE_ONLY);
    j->held = (uint32_t)found;
    if (rc >= 0)
        rc = commit(s, place, to);
    if (rc < 0)
        return rc;
    j->is_filling = to < prompt_of(j);
    s->run->result->recomputed_tokens += j->lost > (uint32_t)found ? j->lost - (uint32_t)found : 0;
    j->lost = 0;
    if (j->started)
        return 1;
    j->started = true;
    if (quantile_add(&s->waits, &s->memory, s->now - j->arrival_us) < 0)
        return run_out_of_memory(s->run);
    rc = s->ops->started ? s->ops->started(s, place, (uint32_t)found) : 0;
    return rc < 0 ? rc : 1;
}

/* 1, or 0 if the job must wait. */
static int let_in(serve *s, uint32_t place)
{
    serve_job *j = &s->jobs[place];
    int rc = j->is_swapped ? swap_in(s, j) : fill(s, place);
    if (rc <= 0)
        return rc;
    j->runs_at = s->n_running;
    s->running[s->n_running++] = place;
    s->run->result->peak_running = max_u32(s->run->result->peak_running, s->n_running);
    j->since_us = s->now;
    if (!j->is_filling)
        begin_output(s, j);
    rc = schedule(s, place);
    return rc < 0 ? rc : 1;
}

static int let_in_waiting(serve *s)
{
    const heap_item *top;
    s->freed = false;
    while ((top = heap_top(&s->queue))) {
        uint32_t place = top->id;
        int rc = let_in(s, place);
        if (rc <= 0)
            return rc;
        heap_remove(&s->queue, place);
        add_sample(s);
    }
    return 0;
}

/* True of a job that may find no room even alone. */
static bool never_fits(const serve *s, const serve_job *j)
{
    uint64_t tokens = (uint64_t)j->n_input + j->n_output - (j->n_output > 0);
    return ceil_div(tokens, page_tokens(s)) + s->run->result->watermark > s->run->result->n_pages;
}

int serve_arrive(serve *s, uint32_t place, const serve_job *job)
{
    serve_job *j = &s->jobs[place];
    *j = (serve_job){.number = job->number,
                     .service_us = job->service_us,
                     .n_input = job->n_input,
                     .n_output = job->n_output,
                     .arrival_us = s->now};
    if (never_fits(s, j)) {
        s->run->result->rejected++;
        return s->ops->gone(s, place);
    }
    int rc = s->queue.count > 0 ? 0 : let_in(s, place);
    if (rc == 0)
        heap_push(&s->queue, place, j->arrival_us, j->number);
    add_sample(s);
    return rc < 0 ? rc : 0;
}

int serve_step(serve *s)
{
    heap_item event = *heap_top(&s->next);
    int rc = serve_pass(s, event.key);
    if (rc == 0)
        rc = event.tie >> KIND_SHIFT == END ? end(s, event.id) : grow(s, event.id);
    if (rc < 0)
        return rc;
    add_sample(s);
    return s->freed && serve_next(s) > s->now ? let_in_waiting(s) : 0;
}

int serve_finish(serve *s)
{
    replay_result *r = s->run->result;
    if (s->queue.count > 0)
        return run_stuck(s->run);
    r->wait_us_p50 = quantile_at(&s->waits, 0.5);
    r->wait_us_p99 = quantile_at(&s->waits, 0.99);
    r->usage_when_reclaiming_p50 = (double)quantile_at(&s->usages, 0.5) * 0x1p-32;
    return 0;
}
