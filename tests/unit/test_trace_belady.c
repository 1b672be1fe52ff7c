/* The best cache of single pages, against hand counts and against trying everything. */
#include "run_tests.h"
#include "trace/belady.h"

#include <check.h>
#include <string.h>

static uint64_t hits_of(const char *refs, uint32_t capacity)
{
    belady b;
    uint64_t hits;
    ck_assert_int_eq(belady_open(&b), 0);
    for (const char *c = refs; *c; c++)
        ck_assert_int_eq(belady_add(&b, (uint32_t)(*c - 'a')), 0);
    ck_assert_int_eq(belady_hits(&b, capacity, &hits), 0);
    belady_close(&b);
    return hits;
}

typedef struct hand_count {
    const char *refs;
    uint32_t capacity;
    uint64_t hits;
} hand_count;

static const hand_count counts[] = {
    {"", 1, 0},
    {"abcabc", 1, 0},
    {"aab", 1, 1},
    {"abcabc", 2, 2}, /* c drives b out, a hits; b drives out a, which nobody asks for, and c hits */
    {"abcabc", 3, 3},
    {"abacada", 2, 3},      /* a stays throughout */
    {"abcdabeabcde", 3, 5}, /* the textbook's string: 7 faults */
    {"abcdabeabcde", 4, 6}, /* 6 faults */
};

START_TEST(counted_by_hand)
{
    ck_assert_uint_eq(hits_of(counts[_i].refs, counts[_i].capacity), counts[_i].hits);
}
END_TEST

/* The most hits from refs[0] on with the pages of `cached` there, whatever is given up. */
static uint64_t best(const char *refs, uint32_t cached, int capacity)
{
    if (!*refs)
        return 0;
    uint32_t page = 1u << (*refs - 'a');
    if (cached & page)
        return 1 + best(refs + 1, cached, capacity);
    if (__builtin_popcount(cached) < capacity)
        return best(refs + 1, cached | page, capacity);
    uint64_t most = 0;
    for (uint32_t rest = cached; rest; rest &= rest - 1) {
        uint64_t hits = best(refs + 1, (cached & ~(rest & -rest)) | page, capacity);
        most = hits > most ? hits : most;
    }
    return most;
}

START_TEST(nothing_does_better)
{
    uint32_t x = 1;
    for (int i = 0; i < 300; i++) {
        char refs[13] = "";
        for (int k = 0; k < 12; k++) {
            x = x * 1664525 + 1013904223;
            refs[k] = (char)('a' + (x >> 16) % 5);
        }
        for (int capacity = 1; capacity <= 4; capacity++)
            ck_assert_uint_eq(hits_of(refs, (uint32_t)capacity), best(refs, 0, capacity));
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("belady");
    tcase_add_loop_test(t, counted_by_hand, 0, sizeof counts / sizeof counts[0]);
    tcase_add_test(t, nothing_does_better);
    return run_tests("trace_belady", t);
}
