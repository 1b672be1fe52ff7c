/* test_api_plan.c: the arrays of a plan, worked out by hand, in every form and width. */
#include "api.h"

#include <string.h>

enum { E = 3, P = 6, Q = 5, GROUPS = 2 };

static void two_groups(kvk_config *config)
{
    config->n_groups = 2;
}

/* Three sequences: 6 tokens + 3 new ones on pages {0,1,4} and {2,3,5}, none, 4 tokens + 1 new one. */
static void three_sequences(kvk_batch_entry entries[E])
{
    api_open(16, two_groups);
    entries[0] = (kvk_batch_entry){.seq = api_text(100, 6), .n_query = 3};
    ck_assert_int_eq(kvk_reserve(cache, entries[0].seq, 3, KVK_RECLAIM), 2);
    entries[1] = (kvk_batch_entry){.seq = api_seq()};
    entries[2] = (kvk_batch_entry){.seq = api_text(500, 4), .n_query = 1};
    ck_assert_int_eq(kvk_reserve(cache, entries[2].seq, 9, KVK_RECLAIM), 6); /* more than the plan lists */
    CHECK_TABLE(entries[0].seq, 0, 0, 1, 4);
    CHECK_TABLE(entries[0].seq, 1, 2, 3, 5);
    CHECK_TABLE(entries[2].seq, 0, 6, 8, 9, 10);
    CHECK_TABLE(entries[2].seq, 1, 7, 11, 12, 13);
}

static const int64_t slots[GROUPS * Q] = {6, 7, 16, 32, -1, 14, 15, 20, 44, -1};

START_TEST(csr_with_32_bits)
{
    static const int32_t want_indptr[] = {0, 3, 3, 5, 0, 3, 3, 5};
    static const int32_t want_pages[] = {0, 1, 4, 6, 8, -1, 2, 3, 5, 7, 11, -1};
    static const int32_t want_positions[] = {0, 4, 8, 0, 4, -1, 0, 4, 8, 0, 4, -1};
    static const int32_t want_last[] = {1, 0, 1, 1, 0, 1};
    static const int32_t want_lens[] = {9, 0, 5}, want_query[] = {0, 3, 3, 4};
    int32_t indptr[GROUPS * (E + 1)], pages[GROUPS * P], positions[GROUPS * P], last[GROUPS * E], lens[E], query[E + 1];
    int64_t got_slots[GROUPS * Q];
    kvk_batch_entry entries[E];
    kvk_batch batch = 0;
    kvk_plan plan;
    three_sequences(entries);
    memset(pages, -1, sizeof pages);
    memset(positions, -1, sizeof positions);
    memset(got_slots, -1, sizeof got_slots);
    kvk_plan_init(&plan);
    plan.entries_cap = E, plan.pages_cap = P, plan.slots_cap = Q;
    plan.indptr = indptr, plan.pages = pages, plan.positions = positions, plan.last_page_len = last;
    plan.seq_lens = lens, plan.query_indptr = query, plan.slots = got_slots;
    ck_assert_int_eq(kvk_batch_plan(cache, entries, E, &plan, &batch), 0);
    ck_assert_mem_eq(indptr, want_indptr, sizeof indptr);
    ck_assert_mem_eq(pages, want_pages, sizeof pages);
    ck_assert_mem_eq(positions, want_positions, sizeof positions);
    ck_assert_mem_eq(last, want_last, sizeof last);
    ck_assert_mem_eq(lens, want_lens, sizeof lens);
    ck_assert_mem_eq(query, want_query, sizeof query);
    ck_assert_mem_eq(got_slots, slots, sizeof slots);
    ck_assert_uint_eq(plan.n_pages, 5);
    ck_assert_uint_eq(plan.n_slots, 4);
    api_close();
}
END_TEST

START_TEST(padded_with_64_bits)
{
    enum { ROW = 4 };
    static const int64_t want_pages[GROUPS * E * ROW] = {0, 1, 4, -9, -9, -9, -9, -9, 6, 8,  -9, -9,
                                                         2, 3, 5, -9, -9, -9, -9, -9, 7, 11, -9, -9};
    static const int64_t want_positions[GROUPS * E * ROW] = {0, 4, 8, -9, -9, -9, -9, -9, 0, 4, -9, -9,
                                                             0, 4, 8, -9, -9, -9, -9, -9, 0, 4, -9, -9};
    static const int64_t want_last[] = {1, 0, 1, 1, 0, 1}, want_lens[] = {9, 0, 5}, want_query[] = {0, 3, 3, 4};
    int64_t pages[GROUPS * E * ROW], positions[GROUPS * E * ROW], last[GROUPS * E], lens[E], query[E + 1];
    int64_t got_slots[GROUPS * Q];
    kvk_batch_entry entries[E];
    kvk_batch batch = 0;
    kvk_plan plan;
    three_sequences(entries);
    memset(got_slots, -1, sizeof got_slots);
    kvk_plan_init(&plan);
    plan.form = KVK_PLAN_PADDED, plan.index_bits = 64, plan.pad = -9;
    plan.entries_cap = E, plan.pages_cap = ROW, plan.slots_cap = Q;
    plan.pages = pages, plan.positions = positions, plan.last_page_len = last;
    plan.seq_lens = lens, plan.query_indptr = query, plan.slots = got_slots;
    ck_assert_int_eq(kvk_batch_plan(cache, entries, E, &plan, &batch), 0);
    ck_assert_mem_eq(pages, want_pages, sizeof pages);
    ck_assert_mem_eq(positions, want_positions, sizeof positions);
    ck_assert_mem_eq(last, want_last, sizeof last);
    ck_assert_mem_eq(lens, want_lens, sizeof lens);
    ck_assert_mem_eq(query, want_query, sizeof query);
    ck_assert_mem_eq(got_slots, slots, sizeof slots);
    ck_assert_uint_eq(plan.n_pages, 3); /* the longest row */
    api_close();
}
END_TEST

START_TEST(short_arrays_are_told_and_nothing_is_written)
{
    int32_t pages[GROUPS * P];
    int64_t got_slots[GROUPS * Q];
    kvk_batch_entry entries[E];
    kvk_batch batch = 0;
    kvk_plan plan;
    three_sequences(entries);
    memset(pages, -1, sizeof pages);
    kvk_plan_init(&plan);
    plan.entries_cap = E, plan.pages_cap = 4, plan.slots_cap = Q;
    plan.pages = pages, plan.slots = got_slots;
    ck_assert_int_eq(kvk_batch_plan(cache, entries, E, &plan, &batch), KVK_ESPACE);
    ck_assert_uint_eq(plan.n_pages, 5);
    ck_assert_uint_eq(plan.n_slots, 4);
    plan.pages_cap = P, plan.slots_cap = 3;
    ck_assert_int_eq(kvk_batch_plan(cache, entries, E, &plan, &batch), KVK_ESPACE);
    plan.slots_cap = Q, plan.entries_cap = 2;
    ck_assert_int_eq(kvk_batch_plan(cache, entries, E, &plan, &batch), KVK_ESPACE);
    for (int i = 0; i < GROUPS * P; i++)
        ck_assert_int_eq(pages[i], -1);
    ck_assert_uint_eq(batch, 0);
    ck_assert_uint_eq(api_info(entries[0].seq).n_tokens, 6);
    ck_assert_uint_eq(api_stats().batches_in_flight, 0);
    plan.entries_cap = E;
    ck_assert_int_eq(kvk_batch_plan(cache, entries, E, &plan, &batch), 0);
    api_close();
}
END_TEST

static int plan_entries(const kvk_batch_entry *entries, uint32_t n)
{
    kvk_batch batch = 0;
    kvk_plan plan;
    kvk_plan_init(&plan);
    int rc = kvk_batch_plan(cache, entries, n, &plan, &batch);
    ck_assert_int_eq(batch != 0, rc == 0);
    return rc;
}

START_TEST(entries_that_cannot_be_planned_are_refused)
{
    api_open(16, NULL);
    kvk_seq seq = api_text(100, 6), gone = api_seq(), child;
    kvk_seq_close(cache, gone);
    ck_assert_int_eq(plan_entries((kvk_batch_entry[]){{.seq = seq}, {.seq = seq}}, 2), KVK_EINVAL);
    ck_assert_int_eq(plan_entries((kvk_batch_entry[]){{.seq = seq}, {.seq = gone}}, 2), KVK_ESTALE);
    ck_assert_int_eq(plan_entries((kvk_batch_entry[]){{.seq = seq, .n_query = 3}}, 1), KVK_ESTATE);
    ck_assert_int_eq(plan_entries((kvk_batch_entry[]){{.seq = seq, .n_query = UINT32_MAX}}, 1), KVK_ESTATE);
    ck_assert_int_eq(plan_entries(NULL, 1), KVK_EINVAL);
    ck_assert_int_eq(kvk_seq_fork(cache, seq, &child), 0);
    ck_assert_int_eq(plan_entries((kvk_batch_entry[]){{.seq = child, .n_query = 1}}, 1), KVK_ESTATE); /* shared */
    ck_assert_int_eq(plan_entries((kvk_batch_entry[]){{.seq = child}, {.seq = seq}}, 2), 0);
    ck_assert_int_eq(plan_entries(NULL, 0), 0);
    api_close();
}
END_TEST

START_TEST(a_plan_in_no_known_form_is_refused)
{
    kvk_batch batch;
    kvk_plan plan;
    api_open(16, NULL);
    kvk_plan_init(&plan);
    ck_assert_uint_eq(plan.index_bits, 32);
    ck_assert_uint_eq(plan.form, KVK_PLAN_CSR);
    plan.form = 2;
    ck_assert_int_eq(kvk_batch_plan(cache, NULL, 0, &plan, &batch), KVK_EINVAL);
    plan.form = KVK_PLAN_PADDED, plan.index_bits = 16;
    ck_assert_int_eq(kvk_batch_plan(cache, NULL, 0, &plan, &batch), KVK_EINVAL);
    plan.index_bits = 64;
    ck_assert_int_eq(kvk_batch_plan(cache, NULL, 0, &plan, NULL), KVK_EINVAL);
    ck_assert_int_eq(kvk_batch_plan(cache, NULL, 0, NULL, &batch), KVK_EINVAL);
    plan.size = 0;
    ck_assert_int_eq(kvk_batch_plan(cache, NULL, 0, &plan, &batch), KVK_EINVAL);
    api_close();
}
END_TEST

int main(void)
{
    return RUN_TESTS("api_plan", csr_with_32_bits, padded_with_64_bits, short_arrays_are_told_and_nothing_is_written,
                     entries_that_cannot_be_planned_are_refused, a_plan_in_no_known_form_is_refused);
}
