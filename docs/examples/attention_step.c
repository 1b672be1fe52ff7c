/* attention_step.c: attention over pages while an eviction policy decides which pages a sequence keeps. A model of two
 * layers whose queries, keys and values are just numbers; every output is compared with plain attention over the
 * tokens that are left. docs/integrating.md tells the story; this file is compiled and run in CI.
 *
 *     cc attention_step.c $(pkg-config --cflags --libs kvkeep) -lm && ./a.out
 */
#include <kvkeep/attention.h>
#include <kvkeep/eviction.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_TOKENS = 4, N_PAGES = 64, LAYERS = 2, KV_HEADS = 2, HEADS = 4, SIZE = 16 };
enum { PROMPT = 42, TEXT = 150, BUDGET = 32 /* tokens of KV that a sequence may hold */ };

static kvk_cache *cache;
static kvk_kv kv; /* where K and V lie, of all layers: one group */

/* What the model computes of each token. A server has it for the step's tokens only; here it is what attention is
 * checked against. */
static float q[LAYERS][TEXT][HEADS][SIZE], k[LAYERS][TEXT][KV_HEADS][SIZE], v[LAYERS][TEXT][KV_HEADS][SIZE];

/* Arrays of a step: a plan fills them, attention reads them. */
static int32_t indptr[2], pages[N_PAGES], positions[N_PAGES], seq_lens[1], query_indptr[2];
static int64_t slots[PROMPT];
static float o[PROMPT][HEADS][SIZE], mean[N_PAGES], peak[N_PAGES];

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

/* Attention as it is written in papers, of one head of the query at position `at`: over the tokens up to it in pages
 * that are still listed. Returns how far row `row` of o is from that. */
static double difference(uint32_t layer, uint32_t at, uint32_t row, uint32_t head)
{
    double sum = 0, exact[SIZE] = {0}, largest = 0;
    uint32_t kv_head = head / (HEADS / KV_HEADS);
    for (int32_t i = 0; i < indptr[1]; i++)
        for (uint32_t t = (uint32_t)positions[i]; t < (uint32_t)positions[i] + PAGE_TOKENS && t <= at; t++) {
            double score = 0;
            for (int d = 0; d < SIZE; d++)
                score += (double)q[layer][at][head][d] * (double)k[layer][t][kv_head][d];
            double weight = exp(score / sqrt(SIZE));
            sum += weight;
            for (int d = 0; d < SIZE; d++)
                exact[d] += weight * (double)v[layer][t][kv_head][d];
        }
    for (int d = 0; d < SIZE; d++) {
        double off = fabs((double)o[row][head][d] - exact[d] / sum);
        expect(off < 1e-5, "the output of plain attention"); /* not so for NaN either */
        largest = fmax(largest, off);
    }
    return largest;
}

/* Moves come before the kernels: here the copy of a page that somebody else reads, for this sequence to write to. */
static int run_moves(void)
{
    kvk_host_pages where = {kv.base,   kv.page_stride, kv.head_stride, LAYERS * 2 * KV_HEADS,
                            SIZE * 2u, PAGE_TOKENS,    N_PAGES}; /* f16: 2 bytes */
    kvk_move moves[8];
    int n, total = 0;
    while ((n = must(kvk_moves_take(cache, moves, 8), "kvk_moves_take")) > 0)
        total += must(kvk_moves_run_host(moves, (uint32_t)n, &(kvk_host_memory){.groups = &where, .n_groups = 1}),
                      "kvk_moves_run_host");
    return total;
}

/* Attention of the tokens from `at` on; adds what it gave each page to `mean` and `peak`. */
static void attend(uint32_t layer, uint32_t at)
{
    static void *workspace; /* grows to what the largest step needs, and stays */
    static int64_t room;
    kvk_attention a;
    kvk_attention_init(&a);
    a.n = 1;
    a.kv = &kv;
    a.layer = layer;
    a.n_heads = HEADS;
    a.indptr = indptr;
    a.pages = pages;
    a.positions = positions;
    a.seq_lens = seq_lens;
    a.query_indptr = query_indptr;
    a.q = (kvk_rows){q[layer][at], KVK_F32, 0, HEADS * SIZE, SIZE};
    kvk_attention_out out;
    kvk_attention_out_init(&out);
    out.o = o;
    out.o_token_stride = HEADS * SIZE;
    out.o_head_stride = SIZE;
    out.mean = mean;
    out.peak = peak;
    out.weight = 1.0f / LAYERS; /* so that the layers' masses add up to their mean */

    int64_t bytes = kvk_attention_workspace(&a, &out);
    if (bytes > room) {
        free(workspace);
        room = (bytes + 63) / 64 * 64;
        expect((workspace = aligned_alloc(64, (size_t)room)) != NULL, "memory");
    }
    must(kvk_attention_cpu(&a, &out, workspace, (uint64_t)room), "kvk_attention_cpu");
}

/* One step of one sequence: the text's n tokens from `at` on. A server has all its sequences in one plan. Returns the
 * moves that were run, and in *largest the largest difference so far. */
static int step(kvk_seq seq, uint32_t at, uint32_t n, double *largest)
{
    must(kvk_reserve(cache, seq, n, KVK_RECLAIM), "kvk_reserve"); /* past the budget it evicts */
    kvk_plan plan;
    kvk_plan_init(&plan);
    plan.entries_cap = 1;
    plan.pages_cap = N_PAGES;
    plan.slots_cap = PROMPT;
    plan.indptr = indptr;
    plan.pages = pages;
    plan.positions = positions;
    plan.seq_lens = seq_lens;
    plan.query_indptr = query_indptr;
    plan.slots = slots;
    kvk_batch_entry entry = {seq, n, 0};
    kvk_batch batch;
    must(kvk_batch_plan(cache, &entry, 1, &plan, &batch), "kvk_batch_plan");
    int moves = run_moves();

    memset(mean, 0, sizeof mean);
    memset(peak, 0, sizeof peak);
    for (uint32_t layer = 0; layer < LAYERS; layer++) {
        kvk_rows new_k = {k[layer][at], KVK_F32, 0, KV_HEADS * SIZE, SIZE}, new_v = new_k;
        new_v.data = v[layer][at];
        must(kvk_append(&kv, layer, slots, n, &new_k, &new_v), "kvk_append");
        attend(layer, at);
        for (uint32_t i = 0; i < n * HEADS; i++)
            *largest = fmax(*largest, difference(layer, at + i / HEADS, i / HEADS, i % HEADS));
    }

    /* The policy learns from the masses. Drafts that may be rejected would need a row of masses each (out.rows). */
    kvk_masses masses = {.size = sizeof masses, .stride = N_PAGES, .mean = mean, .peak = peak};
    kvk_batch_result result = {.size = sizeof result, .n = 1, .masses = &masses};
    must(kvk_batch_end(cache, batch, &result), "kvk_batch_end");
    return moves;
}

/* Multiples of 1/64, which f16 holds exactly: so what is compared is attention alone. */
static void compute(float *out, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        out[i] = (float)(seed >> 24) / 64 - 2;
    }
}

static void open_cache(void)
{
    uint64_t bytes, n_scales;
    kvk_config config;
    kvk_config_init(&config);
    config.page_tokens = PAGE_TOKENS;
    config.n_pages = N_PAGES;
    config.content = KVK_CONTENT_NONE; /* no prefix cache, so nothing to commit: see serving_step.c */
    must(kvk_cache_open(&config, &cache), "kvk_cache_open");
    kvk_kv_init(&kv, KVK_F16, N_PAGES, PAGE_TOKENS);
    must(kvk_kv_shape(&kv, LAYERS, KV_HEADS, SIZE), "kvk_kv_shape");
    must(kvk_kv_bytes(&kv, &bytes, &n_scales), "kvk_kv_bytes");
    expect((kv.base = malloc(bytes)) != NULL, "memory");
    memset(kv.base, 0xff, bytes); /* NaN: nothing is read that was not written */
}

static kvk_seq open_sequence(void)
{
    kvk_seq seq;
    kvk_eviction eviction;
    char why[100];
    kvk_eviction_init(&eviction);
    eviction.budget = BUDGET;
    must(kvk_policy_parse("h2o:sinks=4:recent=8", NULL, &eviction.choice, why, sizeof why), why);
    must(kvk_seq_open(cache, NULL, &seq), "kvk_seq_open");
    must(kvk_seq_set_eviction(cache, seq, &eviction), "kvk_seq_set_eviction");
    return seq;
}

int main(void)
{
    double largest = 0;
    compute(q[0][0][0], sizeof q / sizeof(float), 1);
    compute(k[0][0][0], sizeof k / sizeof(float), 2);
    compute(v[0][0][0], sizeof v / sizeof(float), 3);
    open_cache();

    /* The prompt's sequence stays for other answers; this answer shares its pages until it writes to one. */
    kvk_seq prompt = open_sequence(), answer;
    int moves = step(prompt, 0, PROMPT, &largest);
    must(kvk_seq_fork(cache, prompt, &answer), "kvk_seq_fork");
    for (uint32_t at = PROMPT; at < TEXT; at++)
        moves += step(answer, at, 1, &largest);

    kvk_eviction_info info = {.size = sizeof info};
    must(kvk_eviction_info_get(cache, answer, &info), "kvk_eviction_info_get");
    printf("%d tokens: %u pages evicted, %u kept, %d moved; largest difference to plain attention %.2g\n", TEXT,
           (unsigned)info.pages_evicted, (unsigned)info.pages_kept, moves, largest);
    expect(info.pages_evicted > 0 && info.tokens_kept <= BUDGET, "an answer within its budget");
    expect(moves == 1, "a copy of the prompt's last page");
    expect(kvk_audit(cache, NULL, NULL) == 0, "every invariant");
    kvk_cache_close(cache);
    free(kv.base);
    return 0;
}
