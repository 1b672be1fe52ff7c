/* serving_step.c: what a batching server does with kvkeep in one step, with a model of one layer and one head whose
 * K and V are just the token's number. docs/integrating.md tells the story; this file is compiled and run in CI.
 *
 *     cc serving_step.c $(pkg-config --cflags --libs kvkeep) && ./a.out
 */
#include <kvkeep/kvkeep.h>

#include <stdio.h>
#include <stdlib.h>

enum { PAGE_TOKENS = 4, N_PAGES = 16, MAX_TOKENS = 64, ROWS = 2 }; /* a row for K and one for V */

/* The engine owns K and V; the cache only says which page is whose. HND layout: kv[page][K|V][token]. */
static float kv[N_PAGES][ROWS][PAGE_TOKENS];

static int must(int result, const char *call)
{
    if (result >= 0)
        return result;
    fprintf(stderr, "%s: %s\n", call, kvk_strerror(result));
    exit(1);
}

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "expected: %s\n", what);
    exit(1);
}

/* Moves come before the kernels of the batch they were queued for: copies on write, and zeros for new pages. */
static int run_moves(kvk_cache *cache)
{
    kvk_host_pages pages = {kv, sizeof kv[0], sizeof kv[0][0], ROWS, sizeof(float), PAGE_TOKENS, N_PAGES};
    kvk_move moves[8];
    int n, total = 0;
    while ((n = must(kvk_moves_take(cache, moves, 8), "kvk_moves_take")) > 0)
        total += must(kvk_moves_run_host(moves, (uint32_t)n, &(kvk_host_memory){.groups = &pages, .n_groups = 1}),
                      "kvk_moves_run_host");
    return total;
}

/* Stands for the model: writes each new token's K and V to its slot. */
static void append(const int64_t *slots, const uint32_t *tokens, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (int row = 0; row < ROWS; row++)
            kv[slots[i] / PAGE_TOKENS][row][slots[i] % PAGE_TOKENS] = (float)tokens[i];
}

/* Stands for attention: reads through the page list and checks that every token of the sequence is where it should
 * be. */
static void attend(const kvk_plan *plan, const uint32_t *text)
{
    const int32_t *indptr = plan->indptr, *pages = plan->pages, *length = plan->seq_lens;
    expect((length[0] + PAGE_TOKENS - 1) / PAGE_TOKENS == indptr[1] - indptr[0], "pages that cover the sequence");
    for (int32_t i = 0; i < length[0]; i++)
        for (int row = 0; row < ROWS; row++)
            expect((uint32_t)kv[pages[i / PAGE_TOKENS]][row][i % PAGE_TOKENS] == text[i], "the token's own K and V");
}

/* One step of one sequence: computes text[at .. at+n-1]. A server does the same with all its sequences in one plan. */
static void step(kvk_cache *cache, kvk_seq seq, const uint32_t *text, uint32_t at, uint32_t n)
{
    int taken = must(kvk_reserve(cache, seq, n, KVK_RECLAIM), "kvk_reserve");

    int32_t indptr[2], pages[N_PAGES], last_page_len[1], seq_lens[1];
    int64_t slots[MAX_TOKENS];
    kvk_plan plan;
    kvk_plan_init(&plan); /* CSR, int32: as FlashInfer takes it */
    plan.entries_cap = 1;
    plan.pages_cap = N_PAGES;
    plan.slots_cap = MAX_TOKENS;
    plan.indptr = indptr;
    plan.pages = pages;
    plan.last_page_len = last_page_len;
    plan.seq_lens = seq_lens;
    plan.slots = slots;

    kvk_batch_entry entry = {seq, n, 0};
    kvk_batch batch;
    must(kvk_batch_plan(cache, &entry, 1, &plan, &batch), "kvk_batch_plan");
    int moves = run_moves(cache);
    append(slots, text + at, n);
    attend(&plan, text);

    /* From here on pages given back meanwhile may be reused; and full pages of accepted tokens become findable. */
    must(kvk_batch_end(cache, batch, NULL), "kvk_batch_end");
    kvk_text accepted = {.n_tokens = n, .tokens = text + at};
    int full = must(kvk_commit(cache, seq, &accepted), "kvk_commit");
    printf("  %u tokens at %u: %d pages taken, %d moves, %d pages became findable\n", n, at, taken, moves, full);
}

/* One request from admission to its end. Returns the tokens that the prefix cache had. */
static uint32_t serve(kvk_cache *cache, const uint32_t *text, uint32_t n_prompt, uint32_t n_output)
{
    kvk_seq seq;
    must(kvk_seq_open(cache, NULL, &seq), "kvk_seq_open");
    kvk_text prompt = {.n_tokens = n_prompt, .tokens = text};
    uint32_t hit = (uint32_t)must(kvk_prefix_attach(cache, seq, &prompt), "kvk_prefix_attach");
    printf("request of %u tokens, %u of them cached\n", n_prompt, hit);

    /* Admission keeps the watermark; LATER would mean to close this sequence and try again when others have finished.
     * */
    int can = must(kvk_can_reserve(cache, seq, n_prompt - hit, KVK_FREE_ONLY), "kvk_can_reserve");
    expect(can == KVK_OK, "room for the prompt");

    step(cache, seq, text, hit, n_prompt - hit); /* prefill; a long prompt would go in chunks */
    for (uint32_t i = 0; i < n_output; i++)
        step(cache, seq, text, n_prompt + i, 1); /* decode */
    must(kvk_seq_close(cache, seq), "kvk_seq_close");
    return hit;
}

int main(void)
{
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = PAGE_TOKENS;
    config.n_pages = N_PAGES;
    config.watermark = 2;
    config.zero_fill = 1; /* attention kernels read whole pages, and 0 x NaN is NaN */
    kvk_cache *cache;
    must(kvk_cache_open(&config, &cache), "kvk_cache_open");

    uint32_t text[MAX_TOKENS];
    for (uint32_t i = 0; i < MAX_TOKENS; i++)
        text[i] = 100 + i;

    expect(serve(cache, text, 10, 2) == 0, "nothing cached at first");
    expect(serve(cache, text, 10, 3) == 8, "the two full pages of the same prompt");

    kvk_stats stats = {.size = sizeof stats};
    must(kvk_stats_get(cache, &stats), "kvk_stats_get");
    printf("pages: %u free, %u cached, %u used\n", stats.pages_free, stats.pages_cached, stats.pages_used);
    expect(stats.pages_used == 0, "no page used when nobody runs");
    expect(kvk_audit(cache, NULL, NULL) == 0, "every invariant");
    kvk_cache_close(cache);
    return 0;
}
