/* test_soundness.c: an engine that computes. Each token's K/V is a number: the hash of the text up to it if all that it
 * attended to was there and right, else rubbish. Whatever is found by prefix must be right, after any order of
 * reserving, computing, rejecting, evicting, forking, truncating, swapping and preempting. */
#include "lab.h"
#include "run_tests.h"

#include <string.h>

enum { PT = 4, SEQS = 5, MAX_TOKENS = 120, POOL = 90, HOST = 30, LISTED = 1024, MOVES = 512 };

/* What a plan of one entry lists, by group. */
typedef struct listing {
    uint32_t indptr[TWIN_GROUPS][2], pages[TWIN_GROUPS][LISTED], positions[TWIN_GROUPS][LISTED];
    int64_t slots[TWIN_GROUPS][MAX_TOKENS];
} listing;

typedef struct writer {
    kvk_seq seq;
    int is_open, is_swapped, is_cut;  /* is_cut: since its batch was planned */
    uint32_t n_tokens, n_named, text; /* n_tokens: computed, those in flight included */
    uint32_t tokens[MAX_TOKENS];
    uint32_t in_flight, start, accepted; /* in_flight: queries of its batch; 0: none */
    kvk_batch batch;
    listing plan;
} writer;

typedef struct engine {
    kvk_cache *cache;
    uint32_t n_groups, window, seed, drawn, rubbish;
    writer writers[SEQS];
    uint64_t kv[POOL][PT], host[HOST][PT];
    uint64_t attached, evicted;
} engine;

static uint32_t draw(engine *e, uint32_t below)
{
    return mass_hash(e->seed, e->drawn++, 5, 0) % below;
}

/* Texts of two choices every 6 tokens, so that many begin alike. */
static void go_on_with(writer *w, uint32_t text, uint32_t from)
{
    w->text = text;
    for (uint32_t i = from; i < MAX_TOKENS; i++)
        w->tokens[i] = 100 + i + 1000 * (mass_hash(text, i / 6, 0, 0) & 1);
}

/* Of the text up to and with token n - 1; never 0. */
static uint64_t hash_of(const writer *w, uint32_t n)
{
    uint64_t h = 1;
    for (uint32_t i = 0; i < n; i++)
        h = (h ^ w->tokens[i]) * 0x9e3779b97f4a7c15u + 1;
    return h | 1;
}

/* ---- The engine's side --------------------------------------------------------------------------------------- */

static void run_moves(engine *e)
{
    kvk_move moves[MOVES];
    kvk_host_pages pool = {e->kv, PT * 8, PT * 8, 1, 8, PT, POOL}, swap = {e->host, PT * 8, PT * 8, 1, 8, PT, HOST};
    const kvk_host_pages pools[TWIN_GROUPS] = {pool, pool, pool}, swaps[TWIN_GROUPS] = {swap, swap, swap};
    const kvk_host_memory memory = {pools, swaps, e->n_groups, 0};
    int n = kvk_moves_take(e->cache, moves, MOVES);
    LAB_HOLDS(n >= 0 && n < MOVES);
    LAB_HOLDS(kvk_moves_run_host(moves, (uint32_t)n, &memory) == n);
}

/* True if a query finds all that it attends to in a group, and finds it right. */
static int sees_all(const engine *e, const writer *w, uint32_t group, uint32_t query)
{
    const listing *at = &w->plan;
    uint32_t window = group == 1 ? e->window : 0, from = window && query >= window ? query + 1 - window : 0;
    for (uint32_t p = from, k = 0; p < query; p++) {
        while (k < at->indptr[group][1] && at->positions[group][k] + PT <= p)
            k++;
        if (k == at->indptr[group][1] || at->positions[group][k] > p)
            return 0;
        if (e->kv[at->pages[group][k]][p % PT] != hash_of(w, p + 1))
            return 0;
    }
    return 1;
}

/* Batches may run in any order: whatever one reads or writes is nobody else's until it has ended. */
static void compute(engine *e, const writer *w)
{
    for (uint32_t i = 0; i < w->in_flight; i++) {
        uint32_t query = w->start + i;
        int is_right = 1;
        for (uint32_t g = 0; g < e->n_groups; g++)
            is_right = is_right && sees_all(e, w, g, query);
        uint64_t value = is_right ? hash_of(w, query + 1) : 2 * (uint64_t)++e->rubbish;
        for (uint32_t g = 0; g < e->n_groups; g++)
            e->kv[w->plan.slots[g][i] / PT][w->plan.slots[g][i] % PT] = value;
    }
}

static void plan(engine *e, writer *w, uint32_t n)
{
    const kvk_batch_entry entry = {w->seq, n, 0};
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = LISTED;
    plan.slots_cap = MAX_TOKENS;
    plan.indptr = w->plan.indptr;
    plan.pages = w->plan.pages;
    plan.positions = w->plan.positions;
    plan.slots = w->plan.slots[0];
    run_moves(e);
    LAB_HOLDS(kvk_batch_plan(e->cache, &entry, 1, &plan, &w->batch) == 0);
    w->start = w->n_tokens;
    w->is_cut = 0;
    w->in_flight = n;
    w->n_tokens += n;
}

/* Some drafts are rejected; then the text goes on in another way. */
static void end(engine *e, writer *w)
{
    static float mean[TWIN_GROUPS * LISTED];
    const masses m = {MASS_RANDOM, e->seed, PT};
    uint32_t rows = w->in_flight, accepted = draw(e, 3) ? rows : draw(e, rows + 1);
    for (uint32_t i = 0; i < TWIN_GROUPS * LISTED; i++)
        mean[i] = (float)mass_mean(&m, 0, MAX_TOKENS * PT, (i + e->drawn) % MAX_TOKENS);
    compute(e, w);
    if (w->n_named > w->start + accepted && !w->is_cut)
        accepted = w->n_named - w->start;
    const kvk_masses told = {.size = sizeof told, .stride = LISTED, .mean = mean, .rows = &rows};
    const kvk_batch_result result = {sizeof result, 1, &accepted, &told};
    LAB_HOLDS(kvk_batch_end(e->cache, w->batch, &result) >= 0);
    w->in_flight = 0;
    if (w->is_cut || accepted == rows)
        return;
    go_on_with(w, draw(e, 6), w->start + accepted);
    w->n_tokens = w->start + accepted;
}

static void name(engine *e, writer *w)
{
    kvk_text text = {.n_tokens = w->n_tokens - w->n_named, .tokens = w->tokens + w->n_named};
    LAB_HOLDS(kvk_commit(e->cache, w->seq, &text) >= 0);
    w->n_named = w->n_tokens;
}

/* ---- What may happen ----------------------------------------------------------------------------------------- */

/* What is found must be right, wherever it is read. */
static void check_found(engine *e, const writer *w)
{
    run_moves(e);
    for (uint32_t g = 0; g < e->n_groups; g++) {
        uint32_t pages[MAX_TOKENS], positions[MAX_TOKENS];
        int n = kvk_seq_table(e->cache, w->seq, g, pages, MAX_TOKENS);
        LAB_HOLDS(n >= 0 && kvk_seq_positions(e->cache, w->seq, g, positions, MAX_TOKENS) == n);
        for (int k = 0; k < n; k++)
            for (uint32_t p = positions[k]; p < positions[k] + PT && p < w->n_tokens; p++)
                LAB_CHECK(e->kv[pages[k]][p % PT] == hash_of(w, p + 1),
                          "seed %u, draw %u: group %u: token %u of %u is not what was found", e->seed, e->drawn, g, p,
                          w->n_tokens);
    }
    e->attached += w->n_tokens;
}

static void attach(engine *e, writer *w)
{
    go_on_with(w, draw(e, 6), 0);
    kvk_text text = {.n_tokens = 1 + draw(e, MAX_TOKENS - 1), .tokens = w->tokens};
    int n = kvk_prefix_attach(e->cache, w->seq, &text);
    LAB_HOLDS(n >= 0);
    w->n_tokens = w->n_named = (uint32_t)n;
    check_found(e, w);
}

static void open_writer(engine *e, writer *w)
{
    static const char *const policies[] = {"h2o:sinks=0:recent=8",         "window", "streaming:sinks=4", "lru",
                                           "h2o:exit=1:sinks=0:recent=12", "full"};
    kvk_eviction how;
    kvk_eviction_init(&how);
    LAB_HOLDS(kvk_policy_parse(policies[draw(e, 6)], NULL, &how.choice, NULL, 0) == 0);
    how.budget = 28 + draw(e, 40);
    *w = (writer){.is_open = 1};
    LAB_HOLDS(kvk_seq_open(e->cache, NULL, &w->seq) == 0);
    if (draw(e, 2))
        attach(e, w);
    if (draw(e, 4))
        LAB_HOLDS(kvk_seq_set_eviction(e->cache, w->seq, &how) == 0);
    if (w->n_tokens == 0)
        attach(e, w);
}

static void fork_writer(engine *e, const writer *from, writer *to)
{
    if (from->in_flight || from->is_swapped)
        return;
    *to = *from;
    LAB_HOLDS(kvk_seq_fork(e->cache, from->seq, &to->seq) == 0);
    go_on_with(to, draw(e, 6), to->n_tokens);
}

static void close_writer(engine *e, writer *w)
{
    LAB_HOLDS(kvk_seq_close(e->cache, w->seq) >= 0);
    w->is_open = 0; /* its batch may still run */
}

static void go_on(engine *e, writer *w)
{
    uint32_t n = draw(e, 3) ? 1 + draw(e, 5) : 1 + draw(e, 24);
    if (w->n_tokens + n > MAX_TOKENS)
        close_writer(e, w);
    else if (kvk_reserve(e->cache, w->seq, n, KVK_EVICT) >= 0)
        plan(e, w, n);
}

static void lose(engine *e, const writer *w)
{
    uint32_t group = draw(e, e->n_groups), positions[MAX_TOKENS];
    int n = kvk_seq_positions(e->cache, w->seq, group, positions, MAX_TOKENS);
    LAB_HOLDS(n >= 0);
    if (n > 0)
        e->evicted += kvk_evict(e->cache, w->seq, group, &positions[draw(e, (uint32_t)n)], 1) >= 0;
}

static void truncate_writer(engine *e, writer *w)
{
    uint32_t n = draw(e, w->n_tokens + 1);
    if (w->in_flight || kvk_truncate(e->cache, w->seq, n) < 0)
        return;
    w->n_tokens = n;
    w->n_named = w->n_named < n ? w->n_named : n;
    go_on_with(w, draw(e, 6), n);
}

static void preempt(engine *e, writer *w)
{
    if (draw(e, 2)) {
        w->is_swapped = kvk_preempt(e->cache, w->seq, KVK_PREEMPT_SWAP) >= 0;
        return;
    }
    LAB_HOLDS(kvk_preempt(e->cache, w->seq, KVK_PREEMPT_RECOMPUTE) >= 0);
    w->n_tokens = w->n_named = 0;
    w->is_cut = 1;
    if (!w->in_flight) /* what it writes is still to be told by its old text */
        attach(e, w);
}

static void step(engine *e)
{
    writer *w = &e->writers[draw(e, SEQS)];
    uint32_t what = draw(e, 40);
    if (!w->is_open && w->in_flight)
        end(e, w);
    else if (!w->is_open) {
        const writer *from = &e->writers[draw(e, SEQS)];
        if (from->is_open && what < 20)
            fork_writer(e, from, w);
        else
            open_writer(e, w);
    } else if (w->is_swapped)
        w->is_swapped = kvk_swap_in(e->cache, w->seq, KVK_EVICT) < 0;
    else if (what < 4)
        lose(e, w);
    else if (what == 4)
        truncate_writer(e, w);
    else if (what == 5)
        preempt(e, w);
    else if (what == 6)
        close_writer(e, w);
    else if (w->in_flight)
        end(e, w);
    else if (what < 15)
        name(e, w);
    else
        go_on(e, w);
}

static void open_engine(engine *e, uint32_t seed)
{
    static const kvk_group groups[TWIN_GROUPS] = {{.window = 0}, {.window = 10}, {.window = 0}};
    kvk_config config;
    kvk_config_init(&config);
    *e = (engine){.n_groups = 1 + seed % 3, .window = seed % 2 ? 10 : 0, .seed = seed};
    config.page_tokens = PT;
    config.n_pages = POOL;
    config.host_pages = HOST;
    config.n_groups = e->n_groups;
    config.partial_reuse = seed % 5 == 0;
    config.zero_fill = seed % 7 == 0;
    config.groups = e->window ? groups : NULL;
    LAB_HOLDS(kvk_cache_open(&config, &e->cache) == 0);
}

START_TEST(what_is_found_is_right)
{
    static engine e;
    uint64_t attached = 0, evicted = 0;
    for (uint32_t seed = 0; seed < 40; seed++) {
        open_engine(&e, 40 * (uint32_t)_i + seed);
        for (uint32_t i = 0; i < 1500; i++)
            step(&e);
        LAB_HOLDS(kvk_audit(e.cache, NULL, NULL) == 0);
        kvk_cache_close(e.cache);
        attached += e.attached;
        evicted += e.evicted;
    }
    ck_assert_uint_gt(attached, 10000);
    ck_assert_uint_gt(evicted, 1000);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("soundness");
    tcase_add_loop_test(tests, what_is_found_is_right, 0, 8);
    return run_tests("soundness", tests);
}
