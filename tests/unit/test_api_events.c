/* test_api_events.c: what became findable and what is no more, in order; and callbacks that call back. */
#include "api.h"

enum { MOST_EVENTS = 16 };

static kvk_event events[MOST_EVENTS];
static uint32_t tokens[MOST_EVENTS][4];
static uint32_t n_events;

static void keep(void *ctx, const kvk_event *event)
{
    (void)ctx;
    ck_assert_uint_lt(n_events, MOST_EVENTS);
    ck_assert_uint_eq(event->size, sizeof *event);
    ck_assert_uint_eq(event->page_tokens, 4);
    events[n_events] = *event;
    for (int i = 0; i < 4 && event->tokens; i++)
        tokens[n_events][i] = event->tokens[i];
    n_events++;
}

static void open_and_listen(uint32_t n_pages)
{
    n_events = 0;
    api_open(n_pages, NULL);
    ck_assert_int_eq(kvk_set_events(cache, keep, NULL), 0);
}

static int same_key(kvk_key a, kvk_key b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

START_TEST(full_pages_are_told_with_their_parents)
{
    open_and_listen(4);
    api_text(100, 10);
    ck_assert_uint_eq(n_events, 2);
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(events[i].kind, KVK_EVENT_STORED);
        ck_assert_uint_eq(events[i].page, i);
        ck_assert_uint_eq(events[i].group, 0);
        ck_assert_uint_eq(tokens[i][0], 100 + 4 * i);
        ck_assert_uint_eq(tokens[i][3], 103 + 4 * i);
    }
    ck_assert(same_key(events[0].parent, (kvk_key){0, 0}));
    ck_assert(same_key(events[1].parent, events[0].key));
    api_close();
}
END_TEST

START_TEST(a_content_is_told_once_for_all_its_copies)
{
    open_and_listen(2);
    kvk_seq first = api_text(100, 4), second = api_text(100, 4), other = api_seq();
    ck_assert_uint_eq(n_events, 1);
    kvk_seq_close(cache, first);
    ck_assert_int_eq(kvk_reserve(cache, other, 4, KVK_RECLAIM), 1);
    ck_assert_uint_eq(n_events, 1); /* there is another copy */
    kvk_seq_close(cache, second);
    ck_assert_int_eq(kvk_reserve(cache, other, 8, KVK_RECLAIM), 1);
    ck_assert_uint_eq(n_events, 2);
    ck_assert_uint_eq(events[1].kind, KVK_EVENT_REMOVED);
    ck_assert(same_key(events[1].key, events[0].key));
    ck_assert_uint_eq(tokens[1][0], 100);
    api_close();
}
END_TEST

START_TEST(a_reset_is_told_as_a_whole)
{
    open_and_listen(4);
    kvk_seq_close(cache, api_text(100, 8));
    n_events = 0;
    ck_assert_int_eq(kvk_prefix_reset(cache, NULL), 2);
    ck_assert_uint_eq(n_events, 1);
    ck_assert_uint_eq(events[0].kind, KVK_EVENT_CLEARED);
    api_close();
}
END_TEST

START_TEST(a_content_that_is_moved_is_told_nothing)
{
    open_and_listen(2);
    kvk_seq first = api_text(100, 4), second = api_text(200, 4);
    kvk_seq_close(cache, first);
    n_events = 0;
    ck_assert_int_eq(kvk_resize(cache, 1, 1), 0);
    ck_assert_uint_eq(n_events, 1); /* what had to make way */
    ck_assert_uint_eq(events[0].kind, KVK_EVENT_REMOVED);
    ck_assert_uint_eq(tokens[0][0], 100);
    CHECK_TABLE(second, 0, 0);
    api_close();
}
END_TEST

START_TEST(no_function_no_events)
{
    open_and_listen(4);
    ck_assert_int_eq(kvk_set_events(cache, NULL, NULL), 0);
    api_text(100, 8);
    ck_assert_uint_eq(n_events, 0);
    ck_assert_int_eq(kvk_set_events(NULL, keep, NULL), KVK_EINVAL);
    api_close();
}
END_TEST

static void call_back(void *ctx, const kvk_event *event)
{
    const kvk_seq *seq = ctx;
    const kvk_text text = {.n_tokens = 0};
    kvk_stats stats = {.size = sizeof stats};
    kvk_seq_info info = {.size = sizeof info};
    kvk_seq other;
    (void)event;
    n_events++;
    ck_assert_int_eq(kvk_seq_open(cache, NULL, &other), KVK_EREENTRY);
    ck_assert_int_eq(kvk_seq_close(cache, *seq), KVK_EREENTRY);
    ck_assert_int_eq(kvk_seq_fork(cache, *seq, &other), KVK_EREENTRY);
    ck_assert_int_eq(kvk_seq_info_get(cache, *seq, &info), KVK_EREENTRY);
    ck_assert_int_eq(kvk_seq_table(cache, *seq, 0, NULL, 0), KVK_EREENTRY);
    ck_assert_int_eq(kvk_seq_first(cache, *seq, 0), KVK_EREENTRY);
    ck_assert_int_eq(kvk_reserve(cache, *seq, 1, KVK_RECLAIM), KVK_EREENTRY);
    ck_assert_int_eq(kvk_can_reserve(cache, *seq, 1, KVK_RECLAIM), KVK_EREENTRY);
    ck_assert_int_eq(kvk_commit(cache, *seq, &text), KVK_EREENTRY);
    ck_assert_int_eq(kvk_truncate(cache, *seq, 0), KVK_EREENTRY);
    ck_assert_int_eq(kvk_preempt(cache, *seq, KVK_PREEMPT_SWAP), KVK_EREENTRY);
    ck_assert_int_eq(kvk_swap_in(cache, *seq, KVK_RECLAIM), KVK_EREENTRY);
    ck_assert_int_eq(kvk_victim(cache, &other), KVK_EREENTRY);
    ck_assert_int_eq(kvk_pin(cache, *seq, 4), KVK_EREENTRY);
    ck_assert_int_eq(kvk_retain(cache, *seq, NULL, 0), KVK_EREENTRY);
    ck_assert_int_eq(kvk_set_time(cache, 9), KVK_EREENTRY);
    ck_assert_int_eq(kvk_resize(cache, 1, 1), KVK_EREENTRY);
    ck_assert_int_eq(kvk_prefix_reset(cache, NULL), KVK_EREENTRY);
    ck_assert_int_eq(kvk_stats_get(cache, &stats), KVK_EREENTRY);
    ck_assert_int_eq(kvk_set_events(cache, NULL, NULL), KVK_EREENTRY);
    ck_assert_int_eq(kvk_audit(cache, NULL, NULL), KVK_EREENTRY);
    kvk_cache_close(cache);
}

START_TEST(a_callback_that_calls_back_is_refused_and_nothing_is_lost)
{
    open_and_listen(4);
    kvk_seq seq = api_seq();
    ck_assert_int_eq(kvk_set_events(cache, call_back, &seq), 0);
    ck_assert_int_eq(kvk_reserve(cache, seq, 9, KVK_RECLAIM), 3);
    ck_assert_int_eq(api_commit(seq, 100, 9), 2);
    ck_assert_uint_eq(n_events, 2);
    ck_assert_uint_eq(api_info(seq).n_tokens, 9);
    CHECK_TABLE(seq, 0, 0, 1, 2);
    ck_assert_uint_eq(api_stats().n_pages, 4);
    ck_assert_int_eq(kvk_set_time(cache, 1), 0);
    ck_assert_int_eq(api_attach(api_seq(), 100, 9), 8);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_events", full_pages_are_told_with_their_parents, a_content_is_told_once_for_all_its_copies,
                     a_reset_is_told_as_a_whole, a_content_that_is_moved_is_told_nothing, no_function_no_events,
                     a_callback_that_calls_back_is_refused_and_nothing_is_lost);
}
