/* bench/servers.c: what servers ask besides: a window beside a full group, swapping, events. Each against what it
 * adds to. */
#include "kvkeep/bench/cache.h"

#include <stdlib.h>

/* ---- a step of a hybrid model: half of the layers see 512 tokens only */

typedef struct hybrid_bench {
    cache_bench *hybrid, *full;
} hybrid_bench;

static void close_hybrid(void *state)
{
    hybrid_bench *s = state;
    if (s->hybrid)
        bench_cache_close(s->hybrid);
    if (s->full)
        bench_cache_close(s->full);
    free(s);
}

static cache_bench *open_two_groups(uint32_t n_pages, uint32_t window)
{
    const kvk_group groups[] = {{.window = 0}, {.window = window}};
    kvk_config config = bench_cache_config(n_pages);
    config.n_groups = 2;
    config.groups = groups;
    cache_bench *s = bench_cache_open(&config, RUNNING_PAGES * PAGE_TOKENS);
    if (!s || bench_open_running(s) >= 0)
        return s;
    bench_cache_close(s);
    return NULL;
}

static void *open_hybrid(const bench_case *me)
{
    hybrid_bench *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->hybrid = open_two_groups(me->size, 512);
    s->full = open_two_groups(me->size, 0);
    if (s->hybrid && s->full)
        return s;
    close_hybrid(s);
    return NULL;
}

static double run_hybrid(void *state)
{
    return bench_run_steps(((hybrid_bench *)state)->hybrid);
}

static double run_full(void *state)
{
    return bench_run_steps(((hybrid_bench *)state)->full);
}

/* ---- a sequence swapped out and in again */

static void *open_swap(const bench_case *me)
{
    kvk_config config = bench_cache_config(4 * me->size);
    config.host_pages = me->size;
    cache_bench *s = bench_cache_open(&config, me->size * PAGE_TOKENS);
    kvk_text text = {.n_tokens = me->size * PAGE_TOKENS};
    if (!s)
        return NULL;
    for (uint32_t i = 0; i < text.n_tokens; i++)
        s->tokens[i] = i;
    text.tokens = s->tokens;
    s->next = text.n_tokens;
    if (kvk_seq_open(s->cache, NULL, &s->seqs[0]) == 0 &&
        kvk_reserve(s->cache, s->seqs[0], text.n_tokens, KVK_RECLAIM) >= 0 &&
        kvk_commit(s->cache, s->seqs[0], &text) >= 0)
        return s;
    bench_cache_close(s);
    return NULL;
}

static void drop_moves(cache_bench *s)
{
    kvk_move moves[256];
    while (kvk_moves_take(s->cache, moves, 256) > 0)
        ;
}

static double run_swap(void *state)
{
    cache_bench *s = state;
    double start = bench_now_ns();
    kvk_preempt(s->cache, s->seqs[0], KVK_PREEMPT_SWAP);
    kvk_swap_in(s->cache, s->seqs[0], KVK_RECLAIM);
    double us = (bench_now_ns() - start) / 1e3;
    drop_moves(s);
    return us;
}

static double run_recompute(void *state)
{
    cache_bench *s = state;
    kvk_text text = {.n_tokens = s->next, .tokens = s->tokens};
    double start = bench_now_ns();
    kvk_preempt(s->cache, s->seqs[0], KVK_PREEMPT_RECOMPUTE);
    int hit = kvk_prefix_attach(s->cache, s->seqs[0], &text);
    text.n_tokens -= (uint32_t)hit;
    text.tokens += hit;
    kvk_reserve(s->cache, s->seqs[0], text.n_tokens, KVK_RECLAIM);
    kvk_commit(s->cache, s->seqs[0], &text);
    return (bench_now_ns() - start) / 1e3;
}

/* ---- pages stored and removed, told to a callback that only counts */

static void count_event(void *ctx, const kvk_event *event)
{
    *(uint32_t *)ctx += event->kind == KVK_EVENT_STORED;
}

static void *open_events(const bench_case *me)
{
    kvk_config config = bench_cache_config(me->size);
    return bench_cache_open(&config, me->size * PAGE_TOKENS);
}

/* A prompt that nobody had before fills the whole pool: each page is stored, and the one before it removed. */
static double fill(cache_bench *s)
{
    kvk_stats stats = {.size = sizeof stats};
    kvk_stats_get(s->cache, &stats);
    kvk_text text = {.n_tokens = stats.n_pages * PAGE_TOKENS, .tokens = s->tokens};
    kvk_seq seq = 0;
    s->tokens[0]++;
    double start = bench_now_ns();
    kvk_seq_open(s->cache, NULL, &seq);
    kvk_reserve(s->cache, seq, text.n_tokens, KVK_RECLAIM);
    kvk_commit(s->cache, seq, &text);
    kvk_seq_close(s->cache, seq);
    return (bench_now_ns() - start) / stats.n_pages;
}

static double run_with_events(void *state)
{
    cache_bench *s = state;
    kvk_set_events(s->cache, count_event, &s->next);
    return fill(s);
}

static double run_without_events(void *state)
{
    cache_bench *s = state;
    kvk_set_events(s->cache, NULL, NULL);
    return fill(s);
}

const bench_case bench_servers_cases[] = {
    {"step.hybrid_256x64", "us/step", "two full groups", 2 * RUNNING *RUNNING_PAGES, open_hybrid, run_hybrid, run_full,
     close_hybrid},
    {"swap.out_in_256", "us", "recompute: preempt, attach, reserve, commit", 256, open_swap, run_swap, run_recompute,
     bench_cache_close},
    {"events.page", "ns/page", "the same without events", 1024, open_events, run_with_events, run_without_events,
     bench_cache_close},
};
const uint32_t bench_servers_count = sizeof bench_servers_cases / sizeof *bench_servers_cases;
