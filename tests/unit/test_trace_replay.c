/* Replays small enough to be counted by hand. */
#include "unit/trace_text.h"

#include "run_tests.h"
#include "trace/repage.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST(in, out, ids)                                                                                          \
    "{\"timestamp\": 0, \"input_length\": " in ", \"output_length\": " out ", \"hash_ids\": " ids "}\n"

/* Blocks of 512: the second prompt shares the first two blocks (1,024 tokens), the third is the first again. */
static const char three_prompts[] =
    REQUEST("1300", "1", "[1, 2, 3]") REQUEST("1536", "1", "[1, 2, 4]") REQUEST("1300", "1", "[1, 2, 3]");

typedef struct expected_hits {
    uint32_t page_tokens;
    uint64_t refs, hits;
} expected_hits;

static const expected_hits by_page_size[] = {
    {512, 3 + 3 + 3, 2 + 3},
    {256, 6 + 6 + 6, 4 + 6},  /* a partial block of 276 tokens has 2 pages */
    {1024, 2 + 2 + 2, 1 + 2}, /* the second page is a block and nothing, or a block */
    {2048, 1 + 1 + 1, 0 + 1}, /* blocks 1, 2 are shared, their page is not */
    {1, 1300 + 1536 + 1300, 1024 + 1300},
};

START_TEST(pages_of_blocks_hit_as_counted_by_hand)
{
    const expected_hits *e = &by_page_size[_i];
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.page_tokens = e->page_tokens;
    options.audit = e->page_tokens > 1;
    replay_result r = text_replay(three_prompts, &options);
    ck_assert_uint_eq(r.requests, 3);
    ck_assert_uint_eq(r.page_refs, e->refs);
    ck_assert_uint_eq(r.page_hits, e->hits);
    ck_assert_uint_eq(r.token_hits, e->page_tokens == 2048 ? 1300 : 1024 + 1300);
    ck_assert_uint_eq(r.unique_pages, e->refs - e->hits);
    ck_assert_uint_eq(r.input_tokens, 1300 + 1536 + 1300);
}
END_TEST

/* Two pages: a prompt of two blocks drives another out, and comes back to nothing. */
START_TEST(a_small_pool_forgets)
{
    static const char text[] = REQUEST("1024", "1", "[1, 2]") REQUEST("1024", "1", "[3, 4]")
        REQUEST("1024", "1", "[1, 2]") REQUEST("1024", "1", "[1, 2]");
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.n_pages = 2;
    options.audit = true;
    replay_result r = text_replay(text, &options);
    ck_assert_uint_eq(r.page_hits, 2);
    ck_assert_uint_eq(r.stats.pages_reclaimed, 4);
    ck_assert_uint_eq(r.unique_pages, 4);
}
END_TEST

/* Pages a b a c a in two pages: by age of their content a goes for c, by last use b. Chains would have to keep a as
 * long as b hangs on it. */
START_TEST(pages_alone_go_in_the_order_asked_for)
{
    static const char text[] =
        REQUEST("1024", "1", "[1, 2]") REQUEST("512", "1", "[1]") REQUEST("512", "1", "[3]") REQUEST("512", "1", "[1]");
    static const uint64_t hits[REPLAY_RECLAIMS] = {
        [KVK_RECLAIM_LRU] = 2, [KVK_RECLAIM_FIFO] = 1, [KVK_RECLAIM_LFU] = 2, [KVK_RECLAIM_S3FIFO] = 1};
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_FLAT;
    options.n_pages = 2;
    options.audit = true;
    for (int order = 0; order < REPLAY_RECLAIMS; order++) {
        options.reclaim = (kvk_reclaim)order;
        replay_result r = text_replay(text, &options);
        ck_assert_uint_eq(r.page_refs, 5);
        ck_assert_uint_eq(r.page_hits, hits[order]);
        ck_assert_uint_eq(r.token_hits, 512 * hits[order]);
    }
}
END_TEST

static void append_page(void *ctx, uint64_t arrival_us, uint64_t page)
{
    char *text = ctx;
    ck_assert_uint_eq(arrival_us, 0);
    text[strlen(text)] = (char)('a' + page);
}

/* a b c, a b d, a b c: with three pages the first c makes room for d. */
START_TEST(pages_are_numbered_by_content_and_belady_knows_them)
{
    char pages[16] = "";
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.n_pages = 3;
    options.belady = true;
    options.on_page = append_page;
    options.ctx = pages;
    replay_result r = text_replay(three_prompts, &options);
    ck_assert_str_eq(pages, "abcabdabc");
    ck_assert_uint_eq(r.belady_hits, 4);
    ck_assert_uint_eq(r.page_hits, 4);
}
END_TEST

/* The same id after another block is another content. */
START_TEST(a_page_is_its_content_and_all_before)
{
    char pages[16] = "";
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.on_page = append_page;
    options.ctx = pages;
    text_replay(REQUEST("1024", "1", "[1, 2]") REQUEST("1024", "1", "[2, 2]"), &options);
    ck_assert_str_eq(pages, "abcd");
}
END_TEST

START_TEST(keys_within_a_block)
{
    const uint64_t blocks[] = {70, 71};
    trace_request request = {.n_input = 7, .block_tokens = 4, .n_blocks = 2, .blocks = blocks};
    kvk_key keys[4];
    ck_assert_uint_eq(repage_count(&request, 2), 4);
    repage_keys(&request, 2, keys);
    for (uint64_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(keys[i].lo, blocks[i / 2]);
        ck_assert_uint_eq(keys[i].hi, i % 2);
    }
}
END_TEST

START_TEST(keys_over_blocks)
{
    const uint64_t blocks[] = {70, 71, 72};
    trace_request request = {.n_input = 9, .block_tokens = 4, .n_blocks = 3, .blocks = blocks};
    kvk_key keys[2];
    ck_assert_uint_eq(repage_count(&request, 8), 2);
    repage_keys(&request, 8, keys);
    ck_assert_uint_eq(keys[0].lo, 71);
    ck_assert_uint_eq(keys[0].hi, ((uint64_t)1 << 32) + 2);
    ck_assert_uint_eq(keys[1].lo, 72);
    ck_assert_uint_eq(keys[1].hi, ((uint64_t)1 << 32) + 1);
}
END_TEST

START_TEST(keys_of_scopes_and_unnamed_pages_stay_apart)
{
    const uint64_t blocks[] = {70};
    trace_request request = {.n_input = 5, .block_tokens = 4, .n_blocks = 1, .blocks = blocks, .full_blocks = true};
    kvk_key a, b;
    ck_assert_uint_eq(repage_count(&request, 4), 1);
    ck_assert_uint_eq(repage_count(&request, 8), 0);
    repage_keys(&request, 4, &a);
    request.scope = 1;
    repage_keys(&request, 4, &b);
    ck_assert_uint_eq(a.lo, b.lo);
    ck_assert_uint_ne(a.hi, b.hi);
    ck_assert_uint_ne(repage_unnamed(70).hi, b.hi);
    ck_assert_uint_ne(repage_unnamed(70).lo, repage_unnamed(71).lo);
}
END_TEST

START_TEST(prefix_mode_refuses_what_it_cannot_do)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.page_tokens = 768;
    text_replay_fails(three_prompts, &options, TRACE_BAD_INPUT,
                      "t: a page of 768 tokens is no part and no multiple of the trace's 512");
    options.page_tokens = 512;
    options.n_pages = 2;
    text_replay_fails(three_prompts, &options, TRACE_FAILED,
                      "t:1: needs more pages than the pool's 2: 1536 tokens more");
    options.n_pages = REPLAY_UNLIMITED;
    options.belady = true;
    text_replay_fails(three_prompts, &options, TRACE_BAD_INPUT,
                      "t: field belady: needs a pool of a size: in an unlimited one nothing is given up");
    options.mode = REPLAY_LENGTHS;
    text_replay_fails(three_prompts, &options, TRACE_BAD_INPUT, "t: field belady: goes with mode prefix or flat only");
    options = REPLAY_OPTIONS_DEFAULT;
    text_replay_fails("arrived_at,num_prefill_tokens,num_decode_tokens\n0,1,1\n", &options, TRACE_BAD_INPUT,
                      "t: vidur traces name no content: use mode timed or lengths");
}
END_TEST

#define VIDUR "arrived_at,num_prefill_tokens,num_decode_tokens\n"

/* Pages of 4, a token every 10 us. */
static replay_options timed_options(void)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_TIMED;
    options.page_tokens = 4;
    options.token_us = 10;
    options.audit = true;
    return options;
}

/* 4 tokens from 0, 5 from 10, 6 from 20, gone at 30: pages 1, 2, 2. Then 8 tokens from 30 to 40: pages 2. */
START_TEST(one_ends_when_the_next_arrives)
{
    replay_options options = timed_options();
    replay_result r = text_replay(VIDUR "0,4,3\n0.00003,8,1\n", &options);
    ck_assert_uint_eq(r.stats.peak_sequences, 1);
    ck_assert_uint_eq(r.stats.peak_pages_used, 2);
    ck_assert_uint_eq(r.stats.pages_taken, 4);
    ck_assert_uint_eq(r.page_us, 1 * 10 + 2 * 10 + 2 * 10 + 2 * 10);
    ck_assert_uint_eq(r.token_us, 4 * 10 + 5 * 10 + 6 * 10 + 8 * 10);
    ck_assert_uint_eq(r.stats.pages_used, 0);
    ck_assert_uint_eq(r.stats.sequences, 0);
}
END_TEST

/* At 30 the first gives back 2 pages and the second, here since 20, takes its second one: 3 pages at most, never 4. */
START_TEST(one_ends_before_another_grows)
{
    replay_options options = timed_options();
    replay_result r = text_replay(VIDUR "0,4,3\n0.00002,4,5\n", &options);
    ck_assert_uint_eq(r.stats.peak_pages_used, 3);
    ck_assert_uint_eq(r.stats.peak_sequences, 2);
    ck_assert_uint_eq(r.page_us, 50 + 1 * 10 + 2 * 40);
    ck_assert_uint_eq(r.token_us, 150 + (4 + 5 + 6 + 7 + 8) * 10);
}
END_TEST

typedef struct text_buffer {
    char text[4096];
    size_t n;
} text_buffer;

static int keep(void *ctx, const char *bytes, size_t n)
{
    text_buffer *b = ctx;
    ck_assert_uint_lt(b->n + n, sizeof b->text);
    memcpy(b->text + b->n, bytes, n);
    b->n += n;
    return 0;
}

/* As above with a third that arrives at 30. The log says in which order it went. */
START_TEST(at_equal_times_end_then_grow_then_arrive)
{
    text_buffer log = {.n = 0};
    replay_options options = timed_options();
    options.audit = false;
    options.record = keep;
    options.record_ctx = &log;
    text_replay(VIDUR "0,4,3\n0.00002,4,5\n0.00003,4,1\n", &options);
    const char *close = strstr(log.text, "\"close\""), *grow = close ? strstr(close, "\"reserve\"") : NULL;
    ck_assert_ptr_nonnull(grow);
    const char *third = strstr(close, "\"open\"");
    ck_assert_ptr_nonnull(third);
    ck_assert(grow < third);
    ck_assert_ptr_null(strstr(third + 1, "\"open\""));
}
END_TEST

START_TEST(nothing_is_generated)
{
    replay_options options = timed_options();
    replay_result r = text_replay(VIDUR "0,4,0\n0,5,0\n", &options);
    ck_assert_uint_eq(r.page_us, 0);
    ck_assert_uint_eq(r.token_us, 0);
    ck_assert_uint_eq(r.stats.pages_taken, 3);
    ck_assert_uint_eq(r.stats.pages_used, 0);
}
END_TEST

/* The second arrives at 30 instead of 60: as the first of these tests. */
START_TEST(twice_the_speed)
{
    replay_options options = timed_options();
    options.speed = 2;
    replay_result r = text_replay(VIDUR "0,4,3\n0.00006,8,1\n", &options);
    ck_assert_uint_eq(r.page_us, 70);
    ck_assert_uint_eq(r.stats.peak_sequences, 1);
}
END_TEST

START_TEST(timed_mode_refuses_what_it_cannot_do)
{
    replay_options options = timed_options();
    options.token_us = UINT64_MAX / 4;
    text_replay_fails(VIDUR "0,1,1\n0,1,9\n", &options, TRACE_BAD_INPUT, "t:3: the time passes 2^64 microseconds");
    options = timed_options();
    options.speed = 1e-300;
    text_replay_fails(VIDUR "1,1,1\n", &options, TRACE_BAD_INPUT, "t:2: the time passes 2^64 microseconds");
}
END_TEST

/* 8 of 8, 9 of 16, 1 of 8 places filled. */
START_TEST(final_lengths)
{
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.mode = REPLAY_LENGTHS;
    options.page_tokens = 8;
    options.audit = true;
    replay_result r = text_replay(VIDUR "0,5,3\n0,5,4\n0,1,0\n", &options);
    ck_assert_uint_eq(r.pages_total, 1 + 2 + 1);
    ck_assert_uint_eq(r.waste_tokens, 0 + 7 + 7);
    options.max_requests = 2;
    r = text_replay(VIDUR "0,5,3\n0,5,4\n0,1,0\n", &options);
    ck_assert_uint_eq(r.requests, 2);
    ck_assert_uint_eq(r.waste_tokens, 7);
}
END_TEST

START_TEST(samples_keep_their_number)
{
    samples *s = calloc(1, sizeof *s);
    ck_assert_ptr_nonnull(s);
    for (int i = 0; i < 10000; i++)
        if (samples_due(s))
            samples_add(s, (sample){.x = i});
    ck_assert_uint_le(s->n, SAMPLES_MAX);
    ck_assert_uint_ge(s->n, SAMPLES_MAX / 2);
    for (uint32_t i = 0; i < s->n; i++)
        ck_assert_double_eq(s->points[i].x, (double)(i * s->stride));
    ck_assert(!samples_due(NULL));
    free(s);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("replay");
    tcase_add_loop_test(t, pages_of_blocks_hit_as_counted_by_hand, 0, sizeof by_page_size / sizeof by_page_size[0]);
    tcase_add_test(t, a_small_pool_forgets);
    tcase_add_test(t, pages_alone_go_in_the_order_asked_for);
    tcase_add_test(t, pages_are_numbered_by_content_and_belady_knows_them);
    tcase_add_test(t, a_page_is_its_content_and_all_before);
    tcase_add_test(t, keys_within_a_block);
    tcase_add_test(t, keys_over_blocks);
    tcase_add_test(t, keys_of_scopes_and_unnamed_pages_stay_apart);
    tcase_add_test(t, prefix_mode_refuses_what_it_cannot_do);
    tcase_add_test(t, one_ends_when_the_next_arrives);
    tcase_add_test(t, one_ends_before_another_grows);
    tcase_add_test(t, at_equal_times_end_then_grow_then_arrive);
    tcase_add_test(t, nothing_is_generated);
    tcase_add_test(t, twice_the_speed);
    tcase_add_test(t, timed_mode_refuses_what_it_cannot_do);
    tcase_add_test(t, final_lengths);
    tcase_add_test(t, samples_keep_their_number);
    return run_tests("trace_replay", t);
}
