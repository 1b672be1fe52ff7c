/* The generated workload: the same for the same seed, and counted the same by a naive prefix cache. */
#include "run_tests.h"
#include "trace/generate.h"
#include "trace/replay.h"

#include <check.h>
#include <stdlib.h>

static trace *open_generated(uint64_t seed, uint64_t requests)
{
    trace_options options = TRACE_OPTIONS_DEFAULT;
    trace *t;
    trace_error error;
    options.seed = seed;
    options.requests = requests;
    ck_assert_int_eq(trace_open_generated(&options, &t, &error), 0);
    return t;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

/* One number for all that a workload says. */
static uint64_t digest(uint64_t seed)
{
    trace *t = open_generated(seed, 300);
    trace_request r;
    trace_error error;
    uint64_t hash = 0, last = 0, n = 0;
    while (trace_next(t, &r, &error) == 1) {
        ck_assert_uint_ge(r.arrival_us, last);
        ck_assert_uint_ge(r.n_input, 1);
        ck_assert_uint_ge(r.n_output, 1);
        last = r.arrival_us;
        hash = mix(mix(mix(hash, r.arrival_us), r.n_input), r.n_output);
        for (uint32_t i = 0; i < r.n_input + r.n_output; i++)
            hash = mix(hash, r.tokens[i]);
        n++;
    }
    ck_assert_uint_eq(n, 300);
    trace_close(t);
    return hash;
}

START_TEST(the_seed_decides)
{
    ck_assert_uint_eq(digest(1), digest(1));
    ck_assert_uint_ne(digest(1), digest(2));
}
END_TEST

enum { PLACES = 1 << 20 };

/* A set of prefixes by their hashes. Returns 1 if it was in already. */
static int put(uint64_t *set, uint64_t hash)
{
    uint64_t place = hash % PLACES;
    while (set[place] && set[place] != hash)
        place = (place + 1) % PLACES;
    int known = set[place] == hash;
    set[place] = hash;
    return known;
}

typedef struct naive_counts {
    uint64_t refs, hits, unique;
} naive_counts;

static void count_prompt(uint64_t *set, const trace_request *r, uint32_t page, naive_counts *c)
{
    uint64_t hash = 1;
    int all_known = 1;
    for (uint32_t i = 0; i < r->n_input / page; i++) {
        for (uint32_t j = 0; j < page; j++)
            hash = mix(hash, r->tokens[i * page + j] + 1);
        int known = put(set, hash);
        all_known = all_known && known;
        c->refs++;
        c->unique += !known;
        c->hits += all_known && (i + 1) * page < r->n_input; /* the last token is always computed */
    }
}

static naive_counts count_naively(uint32_t page)
{
    uint64_t *set = calloc(PLACES, sizeof *set);
    ck_assert_ptr_nonnull(set);
    naive_counts c = {0};
    trace *t = open_generated(3, 500);
    trace_request r;
    trace_error error;
    while (trace_next(t, &r, &error) == 1)
        count_prompt(set, &r, page, &c);
    trace_close(t);
    free(set);
    return c;
}

START_TEST(a_naive_cache_counts_the_same)
{
    static const uint32_t sizes[] = {1, 5, 16, 64};
    naive_counts want = count_naively(sizes[_i]);
    replay_options options = REPLAY_OPTIONS_DEFAULT;
    options.page_tokens = sizes[_i];
    trace *t = open_generated(3, 500);
    replay_result r;
    trace_error error;
    ck_assert_msg(replay_trace(t, &options, &r, &error) == 0, "%s", error.text);
    trace_close(t);
    ck_assert_uint_eq(r.page_refs, want.refs);
    ck_assert_uint_eq(r.page_hits, want.hits);
    ck_assert_uint_eq(r.token_hits, want.hits * sizes[_i]);
    ck_assert_uint_eq(r.unique_pages, want.unique);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("generate");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_seed_decides);
    tcase_add_loop_test(t, a_naive_cache_counts_the_same, 0, 4);
    return run_tests("trace_generate", t);
}
