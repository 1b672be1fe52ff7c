/* day.c: a usual day. */
#include "day.h"

enum { BLOCK_HEAD = 16 };

void *memory_take_block(void *ctx, size_t bytes)
{
    memory *m = ctx;
    if (m->fails_at && ++m->n_made >= m->fails_at && m->n_made < m->fails_at + 2)
        return NULL; /* twice, since the library asks again for less */
    char *block = malloc(BLOCK_HEAD + bytes);
    ck_assert_ptr_nonnull(block);
    memcpy(block, &bytes, sizeof bytes);
    m->n_held += bytes;
    return block + BLOCK_HEAD;
}

void memory_give_block(void *ctx, void *block, size_t bytes)
{
    memory *m = ctx;
    size_t taken;
    char *start = (char *)block - BLOCK_HEAD;
    memcpy(&taken, start, sizeof taken);
    ck_assert_msg(taken == bytes, "%zu bytes taken, %zu given back", taken, bytes);
    m->n_held -= bytes;
    free(start);
}

kvk_text day_prompt(const day *d, uint32_t from, uint32_t to)
{
    kvk_text text = {.n_tokens = to - from};
    if (d->config.content == KVK_CONTENT_TOKENS)
        text.tokens = d->tokens + from;
    if (d->config.content == KVK_CONTENT_KEYS) {
        text.keys = d->keys + from / PAGE_TOKENS;
        text.n_keys = to / PAGE_TOKENS - from / PAGE_TOKENS;
    }
    return text;
}

static int ignore_bytes(void *ctx, const char *bytes, size_t n)
{
    (void)ctx, (void)bytes, (void)n;
    return 0;
}

int day_opens(day *d)
{
    return kvk_cache_open(&d->config, &d->cache);
}

int day_starts_recording(day *d)
{
    return d->recorded ? kvk_record_start(d->cache, ignore_bytes, NULL) : 0;
}

static int open_seq(day *d, int i)
{
    return kvk_seq_open(d->cache, NULL, &d->seqs[i]);
}

int day_opens_the_first(day *d)
{
    return open_seq(d, 0);
}

static int attaches_nothing(day *d)
{
    kvk_text text = day_prompt(d, 0, PROMPT);
    return kvk_prefix_attach(d->cache, d->seqs[0], &text);
}

static int reserves_the_prompt(day *d)
{
    return kvk_reserve(d->cache, d->seqs[0], PROMPT, KVK_FREE_ONLY);
}

static int commits_the_prompt(day *d)
{
    kvk_text text = day_prompt(d, 0, PROMPT);
    return kvk_commit(d->cache, d->seqs[0], &text);
}

static int forks_it(day *d)
{
    return kvk_seq_fork(d->cache, d->seqs[0], &d->seqs[1]);
}

static int copies_on_write(day *d)
{
    return kvk_reserve(d->cache, d->seqs[1], 3, KVK_RECLAIM);
}

static int plan(day *d, kvk_batch_entry entry, kvk_batch *out)
{
    int32_t pages[PAGES];
    int64_t slots[PAGES];
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = plan.slots_cap = PAGES;
    plan.pages = d->config.n_groups == 1 ? pages : NULL;
    plan.slots = d->config.n_groups == 1 ? slots : NULL;
    return kvk_batch_plan(d->cache, &entry, 1, &plan, out);
}

static int plans_the_child(day *d)
{
    return plan(d, (kvk_batch_entry){.seq = d->seqs[1], .n_query = 3}, &d->batches[0]);
}

static int plans_the_parent(day *d)
{
    return plan(d, (kvk_batch_entry){.seq = d->seqs[0], .n_query = 0}, &d->batches[1]);
}

static int closes_the_parent(day *d)
{
    return kvk_seq_close(d->cache, d->seqs[0]);
}

static int ends_the_child(day *d)
{
    const uint32_t accepted = 1;
    const kvk_batch_result result = {.size = sizeof result, .n = 1, .accepted = &accepted};
    return kvk_batch_end(d->cache, d->batches[0], &result);
}

static int ends_the_parent(day *d)
{
    return kvk_batch_end(d->cache, d->batches[1], NULL);
}

static int truncates_the_child(day *d)
{
    return kvk_truncate(d->cache, d->seqs[1], PROMPT - 3);
}

static int grows_the_child(day *d)
{
    return kvk_reserve(d->cache, d->seqs[1], 6, KVK_EVICT);
}

static int commits_the_child(day *d)
{
    kvk_text text = day_prompt(d, PROMPT - 3, PROMPT);
    return kvk_commit(d->cache, d->seqs[1], &text);
}

static int opens_another(day *d)
{
    int i = 2;
    while (d->seqs[i])
        i++;
    return open_seq(d, i);
}

static int attaches_what_is_there(day *d)
{
    kvk_text text = day_prompt(d, 0, PROMPT);
    return kvk_prefix_attach(d->cache, d->seqs[2], &text);
}

static int looks_up(day *d)
{
    kvk_text text = day_prompt(d, 0, PROMPT);
    return kvk_prefix_lookup(d->cache, NULL, &text);
}

static int takes_moves(day *d)
{
    kvk_move moves[4];
    return kvk_moves_take(d->cache, moves, 4);
}

static int sets_a_priority(day *d)
{
    return kvk_seq_set_priority(d->cache, d->seqs[2], 7);
}

static int can_reserve(day *d)
{
    return kvk_can_reserve(d->cache, d->seqs[2], 9, KVK_RECLAIM);
}

/* ---- Under pressure ---- */

static int ranges_are_kept(day *d)
{
    const kvk_retention ranges[] = {{0, 8, 80, 0, 1000}, {8, UINT32_MAX, 10, 0, 0}};
    return kvk_retain(d->cache, d->seqs[1], ranges, 2);
}

static int pins_the_child(day *d)
{
    return d->config.content == KVK_CONTENT_NONE ? 0 : kvk_pin(d->cache, d->seqs[1], PAGE_TOKENS);
}

static int unpins_the_child(day *d)
{
    return d->config.content == KVK_CONTENT_NONE ? 0 : kvk_unpin(d->cache, d->seqs[1], PAGE_TOKENS);
}

static int swaps_the_child_out(day *d)
{
    return kvk_preempt(d->cache, d->seqs[1], KVK_PREEMPT_SWAP);
}

static int swaps_the_child_in(day *d)
{
    return kvk_swap_in(d->cache, d->seqs[1], KVK_RECLAIM);
}

static int finds_a_victim(day *d)
{
    kvk_seq seq;
    return kvk_victim(d->cache, &seq);
}

static int recomputes_the_third(day *d)
{
    return kvk_preempt(d->cache, d->seqs[2], KVK_PREEMPT_RECOMPUTE);
}

static int time_passes(day *d)
{
    return kvk_set_time(d->cache, 2000);
}

static int shrinks_and_moves(day *d)
{
    return kvk_resize(d->cache, PAGES - 8, 1);
}

static int grows_again(day *d)
{
    return kvk_resize(d->cache, PAGES, 0);
}

static void count_event(void *ctx, const kvk_event *event)
{
    day *d = ctx;
    (void)event;
    d->n_events++;
}

int day_listens(day *d)
{
    return kvk_set_events(d->cache, count_event, d);
}

int day_takes_all_moves(day *d)
{
    kvk_move moves[16];
    int n;
    while ((n = kvk_moves_take(d->cache, moves, 16)) > 0)
        ;
    return n;
}

static int write_state(void *ctx, const char *bytes, size_t n)
{
    day *d = ctx;
    if (n > sizeof d->state - d->n_state)
        return 1;
    memcpy(d->state + d->n_state, bytes, n);
    d->n_state += n;
    return 0;
}

static int64_t read_state(void *ctx, char *bytes, size_t n)
{
    day *d = ctx;
    n = n < d->n_state - d->n_read ? n : d->n_state - d->n_read;
    memcpy(bytes, d->state + d->n_read, n);
    d->n_read += n;
    return (int64_t)n;
}

int day_saves(day *d)
{
    d->n_state = 0;
    return kvk_save(d->cache, write_state, d);
}

int day_loads(day *d)
{
    d->n_read = 0;
    return d->recorded ? 0 : kvk_load(d->cache, read_state, d);
}

int day_audits(day *d)
{
    return kvk_audit(d->cache, NULL, NULL);
}

int day_stops_recording(day *d)
{
    return d->recorded ? kvk_record_stop(d->cache) : 0;
}

static const day_call calls[] = {
    day_opens,
    day_starts_recording,
    day_listens,
    day_opens_the_first,
    attaches_nothing,
    reserves_the_prompt,
    commits_the_prompt,
    forks_it,
    copies_on_write,
    plans_the_child,
    plans_the_parent,
    closes_the_parent,
    ends_the_child,
    ends_the_parent,
    takes_moves,
    truncates_the_child,
    grows_the_child,
    commits_the_child,
    opens_another,
    attaches_what_is_there,
    looks_up,
    sets_a_priority,
    can_reserve,
    ranges_are_kept,
    pins_the_child,
    unpins_the_child,
    finds_a_victim,
    swaps_the_child_out,
    recomputes_the_third,
    swaps_the_child_in,
    time_passes,
    shrinks_and_moves,
    grows_again,
    day_takes_all_moves,
    day_saves,
    day_loads,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    opens_another,
    day_audits,
    day_stops_recording,
};

const schedule usual_day = {calls, sizeof calls / sizeof calls[0]};
