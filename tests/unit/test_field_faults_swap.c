/* Faults that other KV managers had when sequences left the pool and came back, and when it was asked from inside. */
#include "api.h"

#include <stdlib.h>
#include <string.h>

/* ---- TensorRT-LLM#8813: other prompts' tokens come back from host memory; llama.cpp#27068: a restore corrupts */

enum { N_PAGES = 12, HOST_PAGES = 12, N_SEQS = 4, GROUPS = 2, STEPS = 3000 };

/* What each group's memory holds: one number per token. */
static uint32_t pool_kv[GROUPS][N_PAGES][4], host_kv[GROUPS][HOST_PAGES][4];

/* A sequence, and how many of its tokens are in place. */
typedef struct client {
    kvk_seq seq;
    uint32_t n, swapped;
} client;

static void two_groups_and_a_host_pool(kvk_config *config)
{
    config->n_groups = GROUPS;
    config->host_pages = HOST_PAGES;
}

static void run_moves(void)
{
    kvk_host_pages pages[GROUPS], swap[GROUPS];
    kvk_move moves[API_MAX];
    for (uint32_t g = 0; g < GROUPS; g++) {
        pages[g] = (kvk_host_pages){pool_kv[g], sizeof pool_kv[g][0], 0, 1, sizeof(uint32_t), 4, N_PAGES};
        swap[g] = (kvk_host_pages){host_kv[g], sizeof host_kv[g][0], 0, 1, sizeof(uint32_t), 4, HOST_PAGES};
    }
    int n = kvk_moves_take(cache, moves, API_MAX);
    ck_assert_int_eq(
        kvk_moves_run_host(moves, (uint32_t)n, &(kvk_host_memory){.groups = pages, .swap = swap, .n_groups = GROUPS}),
        n);
}

/* What token `at` of a client must hold in a group. */
static uint32_t kv_of(uint32_t who, uint32_t group, uint32_t at)
{
    return 1 + who + 10 * group + 100 * at;
}

/* Every sequence that is in the pool reads its own tokens, in every group. */
static void check_memory(const client *clients)
{
    uint32_t ids[N_PAGES];
    for (uint32_t c = 0; c < N_SEQS; c++)
        for (uint32_t g = 0; g < GROUPS && !clients[c].swapped; g++) {
            ck_assert_int_ge(kvk_seq_table(cache, clients[c].seq, g, ids, N_PAGES), 0);
            for (uint32_t i = 0; i < clients[c].n; i++)
                ck_assert_uint_eq(pool_kv[g][ids[i / 4]][i % 4], kv_of(c, g, i));
        }
}

static void compute(client *c, uint32_t who)
{
    uint32_t ids[N_PAGES];
    if (c->n >= 10 || kvk_reserve(cache, c->seq, 1, KVK_RECLAIM) < 0)
        return;
    run_moves();
    for (uint32_t g = 0; g < GROUPS; g++) {
        ck_assert_int_ge(kvk_seq_table(cache, c->seq, g, ids, N_PAGES), 0);
        pool_kv[g][ids[c->n / 4]][c->n % 4] = kv_of(who, g, c->n);
    }
    ck_assert_int_ge(api_commit(c->seq, 1000 * who + c->n, 1), 0);
    c->n++;
}

/* One thing that a server does with a client, by chance. */
static void step(client *c, uint32_t who, int dice)
{
    if (c->swapped && dice < 60) {
        c->swapped = kvk_swap_in(cache, c->seq, KVK_RECLAIM) < 0;
    } else if (dice < 60) {
        compute(c, who);
    } else if (dice < 80) {
        c->swapped |= kvk_preempt(cache, c->seq, KVK_PREEMPT_SWAP) >= 0;
    } else if (dice < 90) {
        ck_assert_int_ge(kvk_preempt(cache, c->seq, KVK_PREEMPT_RECOMPUTE), 0);
        *c = (client){.seq = c->seq};
        c->n = (uint32_t)api_attach(c->seq, 1000 * who, 11);
    } else {
        ck_assert_int_ge(kvk_seq_close(cache, c->seq), 0);
        *c = (client){.seq = api_seq()};
    }
    run_moves();
}

START_TEST(swapped_sequences_come_back_with_their_own_tokens)
{
    client clients[N_SEQS];
    srand(20260101);
    api_open(N_PAGES, two_groups_and_a_host_pool);
    for (uint32_t c = 0; c < N_SEQS; c++)
        clients[c] = (client){.seq = api_seq()};
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t c = (uint32_t)rand() % N_SEQS;
        step(&clients[c], c, rand() % 100);
        check_memory(clients);
        kvk_stats stats = api_stats();
        ck_assert_uint_eq(stats.pages_free + stats.pages_cached + stats.pages_used, N_PAGES);
        ck_assert_uint_le(stats.host_pages_used, HOST_PAGES);
    }
    ck_assert_uint_gt(api_stats().swapped_in_pages, 100);
    for (uint32_t c = 0; c < N_SEQS; c++)
        ck_assert_int_ge(kvk_seq_close(cache, clients[c].seq), 0);
    ck_assert_uint_eq(api_stats().host_pages_used + api_stats().pages_used, 0);
    api_close();
}
END_TEST

/* ---- vllm#28018, sglang#26248: thrash; each preemption lets somebody else go on, so all of them end */

enum { CROWD = 6, PROMPT = 8, OUTPUT = 16 };

typedef struct request {
    kvk_seq seq;
    uint32_t n, admitted, done;
} request;

/* Admission keeps the watermark; a prompt comes back as a whole, with what was computed before. */
static void admit(request *r, uint32_t who)
{
    if (kvk_can_reserve(cache, r->seq, r->n, KVK_FREE_ONLY) != KVK_OK)
        return;
    uint32_t attached = (uint32_t)api_attach(r->seq, 1000 * who, r->n);
    if (kvk_reserve(cache, r->seq, r->n - attached, KVK_FREE_ONLY) < 0) {
        ck_assert_int_ge(kvk_preempt(cache, r->seq, KVK_PREEMPT_RECOMPUTE), 0);
        return;
    }
    ck_assert_int_ge(api_commit(r->seq, 1000 * who + attached, r->n - attached), 0);
    r->admitted = 1;
}

/* One token more, for which others are preempted. Returns 0 if it was preempted itself. */
static int decode(request *requests, uint32_t who)
{
    request *r = &requests[who];
    kvk_seq victim;
    while (kvk_reserve(cache, r->seq, 1, KVK_RECLAIM) < 0) {
        ck_assert_int_eq(kvk_victim(cache, &victim), 1);
        ck_assert_int_gt(kvk_preempt(cache, victim, KVK_PREEMPT_RECOMPUTE), 0);
        for (uint32_t i = 0; i < CROWD; i++)
            requests[i].admitted &= requests[i].seq != victim;
        if (victim == r->seq)
            return 0;
    }
    ck_assert_int_ge(api_commit(r->seq, 1000 * who + r->n, 1), 0);
    r->n++;
    return 1;
}

static void with_watermark(kvk_config *config)
{
    config->watermark = 1;
}

START_TEST(a_crowd_that_does_not_fit_ends_without_thrash)
{
    request requests[CROWD];
    uint32_t done = 0, rounds = 0;
    api_open(12, with_watermark);
    for (uint32_t i = 0; i < CROWD; i++)
        requests[i] = (request){.seq = api_seq(), .n = PROMPT};
    for (; done < CROWD; rounds++) {
        ck_assert_uint_lt(rounds, 200);
        for (uint32_t i = 0; i < CROWD; i++) {
            request *r = &requests[i];
            if (r->done)
                continue;
            if (!r->admitted)
                admit(r, i);
            else if (decode(requests, i) && r->n == PROMPT + OUTPUT) {
                ck_assert_int_ge(kvk_seq_close(cache, r->seq), 0);
                r->done = 1;
                done++;
            }
        }
    }
    ck_assert_uint_le(api_stats().preemptions, 4 * CROWD);
    api_close();
}
END_TEST

/* ---- A callback that calls back */

static int calls;

static int write_and_ask(void *ctx, const char *bytes, size_t n)
{
    kvk_seq seq;
    (void)bytes;
    *(size_t *)ctx += n;
    calls++;
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &seq), KVK_EREENTRY);
    ck_assert_int_eq(kvk_pin(cache, 1, 1), KVK_EREENTRY);
    ck_assert_int_eq(kvk_resize(cache, 1, 0), KVK_EREENTRY);
    ck_assert_int_eq(kvk_set_time(cache, 1), KVK_EREENTRY);
    ck_assert_int_eq(kvk_record_stop(cache), KVK_EREENTRY);
    kvk_cache_close(cache);
    return 0;
}

START_TEST(a_recorders_writer_may_not_call_the_cache)
{
    size_t written = 0;
    api_open(8, NULL);
    ck_assert_int_eq(kvk_record_start(cache, write_and_ask, &written), 0);
    ck_assert_int_ge(kvk_seq_close(cache, api_text(0, 8)), 0);
    ck_assert_int_eq(kvk_record_stop(cache), 0);
    ck_assert_int_eq(calls, 1);
    ck_assert_uint_gt(written, 0);
    ck_assert_uint_eq(api_stats().pages_cached, 2);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("field_faults_swap", swapped_sequences_come_back_with_their_own_tokens,
                     a_crowd_that_does_not_fit_ends_without_thrash, a_recorders_writer_may_not_call_the_cache);
}
