/* Real traces in pools that are too small for them: everybody comes to an end, and the same run gives the same numbers.
 */
#include "golden/golden.h"
#include "run_tests.h"

#include <check.h>

static const double shares[] = {1, 0.75, 0.5, 0.25};

enum { N_SHARES = sizeof shares / sizeof shares[0] };

static void assert_same(const replay_result *a, const replay_result *b)
{
    ck_assert_uint_eq(a->rejected, b->rejected);
    ck_assert_uint_eq(a->recomputed_tokens, b->recomputed_tokens);
    ck_assert_uint_eq(a->page_us, b->page_us);
    ck_assert_uint_eq(a->token_us, b->token_us);
    ck_assert_uint_eq(a->makespan_us, b->makespan_us);
    ck_assert_uint_eq(a->page_hits, b->page_hits);
    ck_assert_uint_eq(a->wait_us_p50, b->wait_us_p50);
    ck_assert_uint_eq(a->wait_us_p99, b->wait_us_p99);
    ck_assert_uint_eq(a->peak_running, b->peak_running);
    ck_assert_uint_eq(a->stats.pages_taken, b->stats.pages_taken);
    ck_assert_uint_eq(a->stats.preemptions, b->stats.preemptions);
    ck_assert_uint_eq(a->stats.swapped_out_pages, b->stats.swapped_out_pages);
    ck_assert_double_eq(a->usage_when_reclaiming_p50, b->usage_when_reclaiming_p50);
}

static void assert_all_ended(const replay_result *r, const replay_result *unlimited)
{
    ck_assert_uint_eq(r->requests, unlimited->requests);
    ck_assert_uint_eq(r->stats.sequences, 0);
    ck_assert_uint_eq(r->stats.pages_used, 0);
    ck_assert_uint_eq(r->stats.host_pages_used, 0);
    ck_assert_uint_eq(r->stats.swapped_in_pages, r->stats.swapped_out_pages);
    ck_assert_uint_le(r->stats.peak_pages_used, r->n_pages);
    ck_assert(r->rejected > 0 || r->makespan_us >= unlimited->makespan_us);
    ck_assert(r->rejected > 0 || r->stats.pages_taken >= unlimited->stats.pages_taken);
}

typedef struct scenario {
    const char *file;
    replay_mode mode;
    uint32_t page_tokens, requests, chunk;
    kvk_preempt_how preempt;
} scenario;

static void check_shares(const scenario *x)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = x->mode;
    options.page_tokens = x->page_tokens;
    options.max_requests = x->requests;
    options.preempt = x->preempt;
    options.chunk = x->chunk;
    replay_result unlimited = golden_replay(x->file, &options);
    bool pressed = false;
    for (int i = 0; i < N_SHARES; i++) {
        options.n_pages = (uint32_t)(unlimited.stats.peak_pages_used * shares[i]);
        options.audit = false;
        replay_result once = golden_replay(x->file, &options);
        options.audit = true;
        replay_result again = golden_replay(x->file, &options);
        assert_all_ended(&once, &unlimited);
        assert_same(&once, &again);
        pressed = pressed || once.stats.preemptions > 0 || once.wait_us_p99 > 0;
    }
    ck_assert(pressed);
}

START_TEST(azure)
{
    check_shares(&(scenario){AZURE, REPLAY_TIMED, 64, 1500, 0, KVK_PREEMPT_RECOMPUTE});
    check_shares(&(scenario){AZURE, REPLAY_TIMED, 64, 1500, 256, KVK_PREEMPT_SWAP});
}
END_TEST

START_TEST(mooncake)
{
    check_shares(&(scenario){MOONCAKE, REPLAY_TIMED, 512, 500, 0, KVK_PREEMPT_SWAP});
    check_shares(&(scenario){MOONCAKE, REPLAY_TIMED, 512, 500, 2048, KVK_PREEMPT_RECOMPUTE});
}
END_TEST

/* Sub-agents run at once with the one that called them, and share its prefix. */
START_TEST(a_session)
{
    check_shares(&(scenario){SESSIONS "/trace_0277.json", REPLAY_TURNS, 64, 0, 0, KVK_PREEMPT_RECOMPUTE});
    check_shares(&(scenario){SESSIONS "/trace_0277.json", REPLAY_TURNS, 64, 0, 4096, KVK_PREEMPT_SWAP});
}
END_TEST

/* All 13 sessions in half of the pages that they would like. */
START_TEST(sessions)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_TURNS;
    replay_result unlimited = golden_replay_sessions(&options);
    options.n_pages = 10347 / 2;
    replay_result r = golden_replay_sessions(&options);
    assert_all_ended(&r, &unlimited);
    ck_assert_uint_eq(r.rejected, 0);
    ck_assert_uint_le(r.page_hits, unlimited.page_hits);
}
END_TEST

/* The whole day, without the audit: what became of the tokens does not depend on how long they waited. */
START_TEST(azure_whole)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_TIMED;
    options.page_tokens = 16;
    replay_result unlimited = golden_replay(AZURE, &options);
    for (int i = 0; i < N_SHARES; i++) {
        options.n_pages = (uint32_t)(4812 * shares[i]);
        replay_result r = golden_replay(AZURE, &options);
        assert_all_ended(&r, &unlimited);
        ck_assert_uint_eq(r.rejected, 0);
        ck_assert_uint_eq(r.stats.preemptions == 0, i == 0);
    }
}
END_TEST

int main(void)
{
    if (!golden_is_here())
        return 77;
    TCase *t = tcase_create("pools");
    tcase_set_timeout(t, 300);
    tcase_add_test(t, azure);
    tcase_add_test(t, azure_whole);
    tcase_add_test(t, mooncake);
    tcase_add_test(t, a_session);
    tcase_add_test(t, sessions);
    return run_tests("pools", t);
}
