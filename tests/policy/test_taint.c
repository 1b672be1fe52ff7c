/* test_taint.c: what a sequence computes after its first loss is found by nobody; what it computed before still is. And
 * how losses go together with forks, truncation, swapping, preemption, attaching, pins and batches in flight.
 *
 * One text: token i is lab_token(i). Pages of 4 tokens. */
#include "lab.h"
#include "run_tests.h"

#include <string.h>

static lab l;

static void open_windowed(uint32_t n_groups, uint32_t n_pages, uint32_t host_pages, uint32_t window)
{
    const kvk_group groups[TWIN_GROUPS] = {{.window = window}};
    kvk_config config;
    kvk_config_init(&config);
    l = (lab){.setup = {.has_text = 1}, .page_tokens = 4, .n_groups = n_groups};
    config.page_tokens = 4;
    config.n_groups = n_groups;
    config.n_pages = n_pages;
    config.host_pages = host_pages;
    config.groups = groups;
    ck_assert_int_eq(kvk_cache_open(&config, &l.cache), 0);
}

static void open_cache(uint32_t n_groups, uint32_t n_pages, uint32_t host_pages)
{
    open_windowed(n_groups, n_pages, host_pages, 0);
}

static kvk_text text_of(uint32_t first, uint32_t n)
{
    static uint32_t tokens[256];
    ck_assert_uint_le(n, 256);
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = lab_token(first + i);
    return (kvk_text){.n_tokens = n, .tokens = tokens};
}

/* Tokens of the text, in whole pages, that a new prompt would find. */
static int found(void)
{
    kvk_text text = text_of(0, 200);
    return kvk_prefix_lookup(l.cache, NULL, &text);
}

static subject open_seq(void)
{
    subject s = {.masses = {MASS_EQUAL, 0, 4}};
    ck_assert_int_eq(kvk_seq_open(l.cache, NULL, &s.seq), 0);
    return s;
}

/* A sequence that computed and named the first n tokens. */
static subject seq_of(uint32_t n)
{
    subject s = open_seq();
    lab_run(&l, &s, n);
    return s;
}

static int attach(subject *s, uint32_t n)
{
    kvk_text text = text_of(0, n);
    return kvk_prefix_attach(l.cache, s->seq, &text);
}

static int lose(const subject *s, uint32_t group, uint32_t position)
{
    return kvk_evict(l.cache, s->seq, group, &position, 1);
}

static uint32_t first_taint(const subject *s)
{
    return lab_info(&l, s).first_taint;
}

static kvk_stats stats(void)
{
    kvk_stats out = {.size = sizeof out};
    ck_assert_int_eq(kvk_stats_get(l.cache, &out), 0);
    return out;
}

/* The page numbers of a table, as bits. */
static uint32_t pages_of(const subject *s, uint32_t group)
{
    uint32_t numbers[TWIN_PAGES], bits = 0, n = lab_table(&l, s, group, numbers);
    for (uint32_t i = 0; i < n; i++)
        bits |= 1u << numbers[i];
    return bits;
}

/* ---- What is published --------------------------------------------------------------------------------------- */

START_TEST(what_is_computed_after_a_loss_is_not_found)
{
    open_cache(1, 64, 0);
    subject s = seq_of(16);
    ck_assert_uint_eq(lab_info(&l, &s).tainted, 0);
    ck_assert_uint_eq(first_taint(&s), UINT32_MAX);
    ck_assert_int_eq(lose(&s, 0, 4), 1);
    ck_assert_uint_eq(first_taint(&s), 16);
    lab_run(&l, &s, 8);
    ck_assert_int_eq(found(), 16); /* the lost page too: its content stays cached */
    ck_assert_int_eq(kvk_seq_close(l.cache, s.seq), 5);
    ck_assert_int_eq(found(), 16);
    lab_close(&l);
}
END_TEST

/* A page that is partly from before the loss is not found either. */
START_TEST(a_page_across_the_loss_is_not_found)
{
    open_cache(1, 64, 0);
    subject s = seq_of(18);
    ck_assert_int_eq(lose(&s, 0, 0), 1);
    ck_assert_uint_eq(first_taint(&s), 18);
    lab_run(&l, &s, 6);
    ck_assert_int_eq(found(), 16);
    lab_end_subject(&l, &s);
    ck_assert_int_eq(found(), 16);
    lab_close(&l);
}
END_TEST

/* Tokens of a batch in flight read the page that is lost meanwhile, so they are as good as before. */
START_TEST(a_batch_in_flight_is_from_before_the_loss)
{
    static lab_batch b;
    open_cache(1, 64, 0);
    subject s = seq_of(16);
    const lab_entry entry = {&s, 6, 6, 0};
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 6, KVK_RECLAIM), 2);
    lab_plan(&l, &entry, 1, &b);
    ck_assert_int_eq(lose(&s, 0, 4), 1);
    ck_assert_uint_eq(first_taint(&s), 22);
    ck_assert_int_ge(kvk_batch_end(l.cache, b.id, &b.result), 0);
    kvk_text text = text_of(16, 6);
    ck_assert_int_eq(kvk_commit(l.cache, s.seq, &text), 1);
    lab_run(&l, &s, 6);
    ck_assert_int_eq(found(), 20);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* Rejected drafts lower the first tainted token. */
START_TEST(rejected_drafts_are_not_from_before_the_loss)
{
    static lab_batch b;
    open_cache(1, 64, 0);
    subject s = seq_of(16);
    const lab_entry entry = {&s, 6, 3, 1};
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 6, KVK_RECLAIM), 2);
    lab_plan(&l, &entry, 1, &b);
    ck_assert_int_eq(lose(&s, 0, 4), 1);
    ck_assert_int_ge(kvk_batch_end(l.cache, b.id, &b.result), 0);
    ck_assert_uint_eq(first_taint(&s), 19);
    kvk_text text = text_of(16, 3);
    ck_assert_int_eq(kvk_commit(l.cache, s.seq, &text), 0);
    lab_run(&l, &s, 6);
    ck_assert_int_eq(found(), 16);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* Lost before it was named: the chain ends before it. */
START_TEST(a_page_lost_before_its_name_breaks_the_chain)
{
    static lab_batch b;
    open_cache(1, 64, 0);
    subject s = open_seq();
    const lab_entry entry = {&s, 16, 16, 0};
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 16, KVK_RECLAIM), 4);
    lab_plan(&l, &entry, 1, &b);
    ck_assert_int_ge(kvk_batch_end(l.cache, b.id, &b.result), 0);
    ck_assert_int_eq(lose(&s, 0, 4), 1);
    kvk_text text = text_of(0, 16);
    ck_assert_int_ge(kvk_commit(l.cache, s.seq, &text), 0);
    ck_assert_int_eq(found(), 4);
    lab_end_subject(&l, &s);
    ck_assert_int_eq(found(), 4);
    lab_close(&l);
}
END_TEST

/* A loss in one group taints all: the next layers compute from it. */
START_TEST(a_loss_in_one_group_taints_all)
{
    open_cache(3, 64, 0);
    subject s = seq_of(16);
    ck_assert_int_eq(lose(&s, 2, 0), 1);
    lab_run(&l, &s, 8);
    ck_assert_int_eq(found(), 16);
    ck_assert_uint_eq(pages_of(&s, 1), 63);
    ck_assert_uint_eq(pages_of(&s, 2), 62);
    lab_end_subject(&l, &s);
    ck_assert_int_eq(found(), 16);
    lab_close(&l);
}
END_TEST

/* ---- Forks, attaching, truncation ----------------------------------------------------------------------------- */

START_TEST(a_fork_is_tainted_as_its_parent)
{
    open_cache(1, 64, 0);
    subject s = seq_of(16);
    lose(&s, 0, 8);
    subject fork = lab_fork(&l, &s, s.masses);
    ck_assert_uint_eq(first_taint(&fork), 16);
    ck_assert_uint_eq(lab_info(&l, &fork).pages_evicted, 1);
    ck_assert_uint_eq(pages_of(&fork, 0), 11);
    lab_end_subject(&l, &s);
    lab_run(&l, &fork, 8);
    ck_assert_int_eq(found(), 16);
    lab_end_subject(&l, &fork);
    lab_close(&l);
}
END_TEST

/* The memory of a shared page comes back with its last reference. */
START_TEST(a_shared_page_is_lost_by_one_only)
{
    open_cache(1, 64, 0);
    subject s = seq_of(16), other = open_seq();
    ck_assert_int_eq(attach(&other, 17), 16);
    subject fork = lab_fork(&l, &s, s.masses);
    ck_assert_uint_eq(stats().pages_used, 4);
    ck_assert_int_eq(lose(&s, 0, 4), 0);
    ck_assert_int_eq(lose(&fork, 0, 4), 0);
    ck_assert_uint_eq(stats().pages_used, 4);
    ck_assert_uint_eq(pages_of(&other, 0), 15);
    ck_assert_int_eq(lose(&other, 0, 4), 1);
    ck_assert_uint_eq(stats().pages_used, 3);
    ck_assert_uint_eq(stats().pages_evicted, 3);
    ck_assert_uint_eq(stats().tokens_evicted, 12);
    ck_assert_int_eq(found(), 16);
    lab_end_subject(&l, &s);
    lab_end_subject(&l, &other);
    lab_end_subject(&l, &fork);
    lab_close(&l);
}
END_TEST

/* A prefix that another lost pages of is whole for who attaches it, and what is computed then is found. */
START_TEST(attaching_begins_untainted)
{
    open_cache(1, 64, 0);
    subject s = seq_of(16), other = open_seq();
    lose(&s, 0, 4);
    ck_assert_int_eq(attach(&other, 30), 16);
    ck_assert_uint_eq(lab_info(&l, &other).tainted, 0);
    ck_assert_uint_eq(pages_of(&other, 0), 15);
    lab_run(&l, &other, 8);
    ck_assert_int_eq(found(), 24);
    lab_end_subject(&l, &s);
    lab_end_subject(&l, &other);
    lab_close(&l);
}
END_TEST

START_TEST(truncating_to_before_the_loss_heals)
{
    open_cache(1, 64, 0);
    subject s = seq_of(16);
    lose(&s, 0, 8);
    lab_run(&l, &s, 10);
    ck_assert_int_eq(kvk_truncate(l.cache, s.seq, 20), 2); /* of 26 tokens: pages 5 and 6 */
    ck_assert_uint_eq(first_taint(&s), 16);
    ck_assert_int_eq(kvk_truncate(l.cache, s.seq, 14), 1);
    ck_assert_uint_eq(first_taint(&s), 14);
    ck_assert_int_eq(kvk_truncate(l.cache, s.seq, 12), 1);
    ck_assert_uint_eq(first_taint(&s), 12); /* page 2 is still lacking */
    ck_assert_int_eq(kvk_truncate(l.cache, s.seq, 10), KVK_ESTATE);
    ck_assert_uint_eq(first_taint(&s), 12);
    ck_assert_int_eq(kvk_truncate(l.cache, s.seq, 8), 0);
    ck_assert_uint_eq(lab_info(&l, &s).tainted, 0);
    ck_assert_uint_eq(first_taint(&s), UINT32_MAX);
    lab_run(&l, &s, 16);
    ck_assert_int_eq(found(), 24);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* A window of 10 tokens has passed the gap, so the table lacks nothing; but its tokens were computed without it. */
START_TEST(a_gap_that_slid_out_is_no_cure)
{
    open_windowed(1, 64, 0, 10);
    subject s = seq_of(16);
    ck_assert_int_eq(lose(&s, 0, 8), 1);
    lab_run(&l, &s, 24);
    ck_assert_int_eq(kvk_seq_first(l.cache, s.seq, 0), 28); /* token 40 attends to 31 .. 40 */
    ck_assert_uint_eq(first_taint(&s), 16);
    ck_assert_int_ge(kvk_truncate(l.cache, s.seq, 38), 0);
    ck_assert_uint_eq(first_taint(&s), 16);
    lab_end_subject(&l, &s);
    ck_assert_int_eq(found(), 16);
    lab_close(&l);
}
END_TEST

/* ---- Swapping, preemption, pins ------------------------------------------------------------------------------- */

START_TEST(swapping_keeps_gaps_and_taint)
{
    static kvk_page_score before[TWIN_PAGES], after[TWIN_PAGES];
    open_cache(1, 64, 8);
    subject s = seq_of(16);
    kvk_eviction e;
    kvk_eviction_init(&e);
    ck_assert_int_eq(kvk_policy_parse("h2o", NULL, &e.choice, NULL, 0), 0);
    ck_assert_int_eq(kvk_seq_set_eviction(l.cache, s.seq, &e), 0);
    lab_run(&l, &s, 4);
    lose(&s, 0, 4);
    uint32_t n = lab_scores(&l, &s, 0, before);
    ck_assert_int_eq(kvk_preempt(l.cache, s.seq, KVK_PREEMPT_SWAP), 4);
    ck_assert_uint_eq(stats().host_pages_used, 4);
    ck_assert_int_eq(kvk_seq_scores(l.cache, s.seq, 0, after, TWIN_PAGES), KVK_ESTATE);
    ck_assert_int_eq(lose(&s, 0, 8), KVK_ESTATE);
    ck_assert_int_eq(kvk_swap_in(l.cache, s.seq, KVK_RECLAIM), 4);
    ck_assert_uint_eq(lab_scores(&l, &s, 0, after), n);
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(after[i].position, before[i].position);
        ck_assert_mem_eq(&after[i].score, &before[i].score, sizeof after[i].score);
    }
    ck_assert_uint_eq(first_taint(&s), 20);
    lab_run(&l, &s, 8);
    lab_end_subject(&l, &s);
    ck_assert_int_eq(found(), 20);
    lab_close(&l);
}
END_TEST

START_TEST(computing_anew_is_untainted)
{
    open_cache(1, 64, 0);
    subject s = seq_of(16);
    lose(&s, 0, 4);
    lab_run(&l, &s, 8);
    ck_assert_int_eq(kvk_preempt(l.cache, s.seq, KVK_PREEMPT_RECOMPUTE), 5);
    ck_assert_uint_eq(lab_info(&l, &s).tainted, 0);
    ck_assert_int_eq(attach(&s, 24), 16);
    lab_run(&l, &s, 8);
    ck_assert_int_eq(found(), 24);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

START_TEST(only_held_pages_are_pinned)
{
    open_cache(1, 64, 0);
    subject s = seq_of(16);
    lose(&s, 0, 4);
    ck_assert_int_eq(kvk_pin(l.cache, s.seq, 16), 3);
    ck_assert_int_eq(lose(&s, 0, 8), KVK_EBUSY);
    ck_assert_int_eq(kvk_unpin(l.cache, s.seq, 16), 3);
    ck_assert_int_eq(lose(&s, 0, 8), 1);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

/* ---- Batches in flight ---------------------------------------------------------------------------------------- */

/* A lost page that a batch reads is handed out when that has ended, no sooner. */
START_TEST(a_page_in_flight_waits_in_limbo)
{
    static lab_batch b;
    open_cache(1, 5, 0);
    subject s = seq_of(16), other = open_seq();
    const lab_entry entry = {&s, 1, 1, 0};
    ck_assert_int_eq(kvk_reserve(l.cache, s.seq, 1, KVK_RECLAIM), 1);
    lab_plan(&l, &entry, 1, &b);
    ck_assert_int_eq(lose(&s, 0, 4), 1);
    ck_assert_uint_eq(stats().pages_limbo, 1);
    ck_assert_int_eq(kvk_can_reserve(l.cache, other.seq, 4, KVK_EVICT), KVK_LATER);
    ck_assert_int_eq(kvk_reserve(l.cache, other.seq, 4, KVK_EVICT), KVK_ENOPAGE);
    ck_assert_int_eq(kvk_batch_end(l.cache, b.id, &b.result), 1);
    ck_assert_int_eq(kvk_reserve(l.cache, other.seq, 4, KVK_RECLAIM), 1);
    ck_assert_uint_eq(stats().pages_reclaimed, 1);
    ck_assert_int_eq(found(), 4); /* page 1 was reclaimed */
    lab_end_subject(&l, &s);
    lab_end_subject(&l, &other);
    lab_close(&l);
}
END_TEST

/* ---- What is told of it --------------------------------------------------------------------------------------- */

typedef struct told {
    uint32_t n, group, position, page;
    kvk_seq seq;
} told;

static void listen(void *ctx, const kvk_event *event)
{
    told *to = ctx;
    if (event->kind != KVK_EVENT_EVICTED)
        return;
    to->n++;
    to->group = event->group;
    to->position = event->position;
    to->page = event->page;
    to->seq = event->seq;
}

START_TEST(losses_are_told)
{
    uint32_t table[8];
    told got = {0};
    open_cache(2, 64, 0);
    subject s = seq_of(16);
    ck_assert_int_eq(kvk_seq_table(l.cache, s.seq, 1, table, 8), 4);
    ck_assert_int_eq(kvk_set_events(l.cache, listen, &got), 0);
    ck_assert_int_eq(lose(&s, 1, 8), 1);
    ck_assert_uint_eq(got.n, 1);
    ck_assert_uint_eq(got.group, 1);
    ck_assert_uint_eq(got.position, 8);
    ck_assert_uint_eq(got.page, table[2]);
    ck_assert_uint_eq(got.seq, s.seq);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

START_TEST(positions_that_are_not_held_are_refused)
{
    static const uint32_t twice[] = {4, 4}, falling[] = {8, 4}, one_gone[] = {4, 8};
    open_cache(1, 64, 0);
    subject s = seq_of(18);
    ck_assert_int_eq(lose(&s, 0, 5), KVK_EINVAL);
    ck_assert_int_eq(lose(&s, 0, 20), KVK_EINVAL);
    ck_assert_int_eq(lose(&s, 1, 4), KVK_EINVAL);
    ck_assert_int_eq(lose(&s, 0, 16), KVK_EBUSY); /* partial */
    ck_assert_int_eq(kvk_evict(l.cache, s.seq, 0, twice, 2), KVK_EINVAL);
    ck_assert_int_eq(kvk_evict(l.cache, s.seq, 0, falling, 2), KVK_EINVAL);
    ck_assert_int_eq(lose(&s, 0, 8), 1);
    ck_assert_int_eq(kvk_evict(l.cache, s.seq, 0, one_gone, 2), KVK_EINVAL);
    ck_assert_uint_eq(pages_of(&s, 0), 27);
    ck_assert_int_eq(kvk_evict(l.cache, s.seq, 0, NULL, 0), 0);
    lab_end_subject(&l, &s);
    lab_close(&l);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("taint");
    tcase_add_test(tests, what_is_computed_after_a_loss_is_not_found);
    tcase_add_test(tests, a_page_across_the_loss_is_not_found);
    tcase_add_test(tests, a_batch_in_flight_is_from_before_the_loss);
    tcase_add_test(tests, rejected_drafts_are_not_from_before_the_loss);
    tcase_add_test(tests, a_page_lost_before_its_name_breaks_the_chain);
    tcase_add_test(tests, a_loss_in_one_group_taints_all);
    tcase_add_test(tests, a_fork_is_tainted_as_its_parent);
    tcase_add_test(tests, a_shared_page_is_lost_by_one_only);
    tcase_add_test(tests, attaching_begins_untainted);
    tcase_add_test(tests, truncating_to_before_the_loss_heals);
    tcase_add_test(tests, a_gap_that_slid_out_is_no_cure);
    tcase_add_test(tests, swapping_keeps_gaps_and_taint);
    tcase_add_test(tests, computing_anew_is_untainted);
    tcase_add_test(tests, only_held_pages_are_pinned);
    tcase_add_test(tests, a_page_in_flight_waits_in_limbo);
    tcase_add_test(tests, losses_are_told);
    tcase_add_test(tests, positions_that_are_not_held_are_refused);
    return run_tests("taint", tests);
}
