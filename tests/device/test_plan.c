/* How a batch's work is divided: that it does not show in the results, and what there is no room for. */
#include "device/memory.h"
#include "device/on_device.h"
#include "device/tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t lengths[] = {97, 700, 0, 16, 1200}, queries[] = {1, 9, 0, 3, 1};
static const grid_shape mixed = {.name = "mixed",
                                 .dtype = KVK_F16,
                                 .q_dtype = KVK_F16,
                                 .o_dtype = KVK_F32,
                                 .page_tokens = 16,
                                 .kv_heads = 2,
                                 .group = 3,
                                 .head_size = 64,
                                 .n = 5,
                                 .lengths = lengths,
                                 .queries = queries,
                                 .seed = 1};

static device_options by_batch; /* parts as the batch suggests */

/* ---- the same bits */

static int same_bits(const grid_result *a, const grid_result *b, const grid_case *c)
{
    return memcmp(a->out.o, b->out.o, a->o_elements * sizeof(float)) == 0 &&
           memcmp(a->out.lse, b->out.lse, a->n_lse * sizeof(float)) == 0 &&
           memcmp(a->out.mean, b->out.mean, c->n_mean * sizeof(float)) == 0 &&
           memcmp(a->out.peak, b->out.peak, c->n_mean * sizeof(float)) == 0 &&
           memcmp(a->out.near, b->out.near, c->n_near * sizeof(float)) == 0;
}

START_TEST(the_same_batch_gives_the_same_bits)
{
    device_options options = {_i ? 128 : 0, 0};
    grid_case *c = grid_open(&mixed);
    grid_result *first = grid_result_open(c, KVK_F32), *second = grid_result_open(c, KVK_F32);
    ck_assert_int_eq(attention_on_device(&options, c, &first->out), 0);
    ck_assert_int_eq(attention_on_device(&options, c, &second->out), 0);
    ck_assert(same_bits(first, second, c));
    grid_result_close(first);
    grid_result_close(second);
    grid_close(c);
}
END_TEST

/* One entry of a case, and where its results are in those of the whole. */
typedef struct alone {
    grid_case c;
    int32_t indptr[2], query_indptr[2];
    uint64_t row, mean_at;
} alone;

static void take_entry(const grid_case *c, uint32_t entry, alone *a)
{
    int32_t page = c->indptr[entry], query = c->query_indptr[entry];
    a->c = *c;
    a->indptr[0] = a->query_indptr[0] = 0;
    a->indptr[1] = c->indptr[entry + 1] - page;
    a->query_indptr[1] = c->query_indptr[entry + 1] - query;
    a->c.indptr = a->indptr;
    a->c.query_indptr = a->query_indptr;
    a->c.attention.n = 1;
    a->c.n_pages = a->c.n_mean = (uint64_t)a->indptr[1];
    a->c.n_queries = (uint64_t)a->query_indptr[1];
    a->c.pages += page;
    a->c.seq_lens += entry;
    a->c.q = (uint16_t *)c->q + (uint64_t)query * c->attention.q.token_stride;
    a->row = (uint64_t)query * c->n_heads;
    a->mean_at = (uint64_t)page;
}

static void entry_agrees(const grid_case *c, const grid_result *all, uint32_t entry, device_options options)
{
    alone a;
    take_entry(c, entry, &a);
    grid_result *r = grid_result_open(&a.c, KVK_F32);
    r->out.near = (free(r->out.near), NULL);
    ck_assert_int_eq(attention_on_device(&options, &a.c, &r->out), 0);
    const float *o = (const float *)all->out.o + a.row * 64;
    ck_assert(memcmp(r->out.o, o, r->n_lse * 64 * sizeof(float)) == 0);
    ck_assert(memcmp(r->out.lse, all->out.lse + a.row, r->n_lse * sizeof(float)) == 0);
    ck_assert(memcmp(r->out.mean, all->out.mean + a.mean_at, a.c.n_mean * sizeof(float)) == 0);
    ck_assert(memcmp(r->out.peak, all->out.peak + a.mean_at, a.c.n_mean * sizeof(float)) == 0);
    grid_result_close(r);
}

START_TEST(with_a_fixed_split_an_entry_does_not_see_the_others)
{
    grid_case *c = grid_open(&mixed);
    grid_result *all = grid_result_open(c, KVK_F32);
    device_options options = {128, 0};
    ck_assert_int_eq(attention_on_device(&options, c, &all->out), 0);
    for (uint32_t i = 0; i < mixed.n; i++)
        if (mixed.lengths[i] > 0)
            entry_agrees(c, all, i, options);
    grid_result_close(all);
    grid_close(c);
}
END_TEST

/* 39 short entries and then a long one, on a large device: the number of its parts is what is limited. */
START_TEST(a_long_entry_among_many_has_few_parts)
{
    uint32_t many[40];
    device_options options = {0, 132};
    grid_shape s = mixed;
    for (uint32_t i = 0; i < 40; i++)
        many[i] = i < 39 ? i : 20000;
    s.name = "a long entry among many";
    s.kv_heads = 1;
    s.group = 2;
    s.n = 40;
    s.lengths = many;
    s.queries = NULL;
    grid_check(&s, GRID_HALF, attention_on_device, &options);
}
END_TEST

/* A run with a plan that has room for more, in every way that a plan can. */
static void run_with_room(const grid_case *c, const kvk_attention_out *out)
{
    device_case *d = device_case_open(c, out, by_batch);
    d->plan.n_entries *= 4;
    d->plan.n_queries *= 4;
    d->plan.n_pages *= 8;
    d->plan.n_masses *= 2;
    d->plan.entry_queries *= 2;
    device_case_plan(d);
    ck_assert_int_eq(device_case_run(d), 0);
    device_case_read(d);
    device_case_close(d);
}

/* flash-attention#1000: what is divided is the batch, not what the plan or the cache has room for. Other parts would
 * give other bits. */
START_TEST(a_larger_plan_makes_no_other_parts)
{
    device_options shorter = {64, 0};
    grid_case *c = grid_open(&mixed);
    grid_result *r[3];
    for (int i = 0; i < 3; i++)
        r[i] = grid_result_open(c, KVK_F32);
    run_with_room(c, &r[0]->out);
    ck_assert_int_eq(attention_on_device(&by_batch, c, &r[1]->out), 0);
    ck_assert_int_eq(attention_on_device(&shorter, c, &r[2]->out), 0);
    ck_assert(same_bits(r[0], r[1], c));
    ck_assert(!same_bits(r[0], r[2], c));
    for (int i = 0; i < 3; i++)
        grid_result_close(r[i]);
    grid_close(c);
}
END_TEST

/* ---- room */

static int32_t status_of(const device_case *d)
{
    int32_t status;
    device_read(&status, d->plan.workspace, sizeof status);
    return status;
}

/* Runs a batch with a smaller plan, and expects nothing to be written. */
static void has_no_room(void (*shrink)(kvk_cuda_plan *))
{
    grid_case *c = grid_open(&mixed);
    grid_result *r = grid_result_open(c, KVK_F32), *untouched = grid_result_open(c, KVK_F32);
    device_case *d = device_case_open(c, &r->out, by_batch);
    ck_assert_int_eq(device_case_run(d), 0);
    ck_assert_int_eq(status_of(d), 0);
    device_case_close(d);
    d = device_case_open(c, &untouched->out, by_batch);
    shrink(&d->plan);
    device_case_plan(d);
    ck_assert_int_eq(device_case_run(d), 0);
    ck_assert_int_eq(status_of(d), KVK_ESPACE);
    device_case_read(d);
    device_case_close(d);
    grid_result_close(r);
    r = grid_result_open(c, KVK_F32);
    ck_assert(same_bits(untouched, r, c));
    grid_result_close(r);
    grid_result_close(untouched);
    grid_close(c);
}

static void fewer_queries(kvk_cuda_plan *plan)
{
    plan->n_queries--;
}

static void fewer_masses(kvk_cuda_plan *plan)
{
    plan->n_masses--;
}

static void shorter_entries(kvk_cuda_plan *plan)
{
    plan->entry_queries = 8;
}

static void shorter_parts(kvk_cuda_plan *plan)
{
    plan->split_tokens = 64; /* with room for the parts of 10 pages */
    plan->n_pages = 10;
    plan->n_masses = 0;
}

START_TEST(what_the_plan_has_no_room_for_is_not_begun)
{
    static void (*const shrinks[])(kvk_cuda_plan *) = {fewer_queries, fewer_masses, shorter_entries, shorter_parts};
    has_no_room(shrinks[_i]);
}
END_TEST

/* A captured launch is replayed with whatever its arrays then hold: here a case's own, then none at all, then its own
 * again. */
START_TEST(a_plan_serves_one_batch_after_another)
{
    static const int32_t nothing[6];
    grid_case *c = grid_open(&mixed);
    grid_result *r = grid_result_open(c, KVK_F32), *again = grid_result_open(c, KVK_F32);
    device_case *d = device_case_open(c, &r->out, by_batch);
    ck_assert_int_eq(device_case_run(d), 0);
    device_case_read(d);
    kvk_attention full = d->attention;
    d->attention.indptr = device_copy_of(nothing, sizeof nothing);
    d->attention.query_indptr = d->attention.seq_lens = d->attention.indptr;
    ck_assert_int_eq(device_case_run(d), 0);
    device_free((void *)(uintptr_t)d->attention.indptr);
    d->attention = full;
    device_case *second = device_case_open(c, &again->out, by_batch);
    second->plan = d->plan;
    ck_assert_int_eq(device_case_run(second), 0);
    device_case_read(second);
    ck_assert(same_bits(r, again, c));
    device_case_close(d);
    device_case_close(second);
    grid_result_close(r);
    grid_result_close(again);
    grid_close(c);
}
END_TEST

/* The arguments of a call, which are the host's to change as soon as it returns. */
typedef struct arguments {
    kvk_cuda_plan plan;
    kvk_kv kv;
    kvk_attention attention;
    kvk_attention_out out;
} arguments;

static void take_arguments(arguments *a, const device_case *d)
{
    *a = (arguments){d->plan, d->kv, d->attention, d->out};
    a->attention.kv = &a->kv;
}

/* TensorRT-LLM#15546: what a batch needs changed before it had run. An emulated device runs nothing before somebody
 * waits. */
START_TEST(arguments_may_change_after_a_call)
{
    arguments a;
    grid_case *c = grid_open(&mixed);
    grid_result *found = grid_result_open(c, KVK_F32), *exact = grid_result_open(c, KVK_F32);
    device_case *d = device_case_open(c, &found->out, by_batch);
    take_arguments(&a, d);
    ck_assert_int_eq(kvk_cuda_prepare(&a.plan, &a.attention, a.out.rows, NULL), 0);
    memset(&a, 0xff, sizeof a);
    take_arguments(&a, d);
    ck_assert_int_eq(kvk_cuda_attention(&a.plan, &a.attention, &a.out, 0, NULL), 0);
    memset(&a, 0xff, sizeof a);
    take_arguments(&a, d);
    ck_assert_int_eq(kvk_cuda_mass(&a.plan, &a.attention, &a.out, 1, NULL), 0);
    memset(&a, 0xff, sizeof a);
    device_case_read(d);
    ck_assert_int_eq(attention_on_device(&by_batch, c, &exact->out), 0);
    ck_assert(same_bits(found, exact, c));
    device_case_close(d);
    grid_result_close(found);
    grid_result_close(exact);
    grid_close(c);
}
END_TEST

/* ---- masses of several layers */

/* Two layers, the second one with another scale, in one launch; against the reference, which adds one after the other.
 */
START_TEST(masses_of_layers_are_added_in_one_launch)
{
    grid_case *c = grid_open(&mixed);
    grid_result *found = grid_result_open(c, KVK_F32), *exact = grid_result_open(c, KVK_F32);
    device_case *d = device_case_open(c, &found->out, by_batch);
    d->plan.n_mass_layers = 3;
    device_case_plan(d);
    ck_assert_int_eq(kvk_cuda_prepare(&d->plan, &d->attention, NULL, NULL), 0);
    for (uint32_t layer = 0; layer < 2; layer++) {
        d->attention.scale = c->attention.scale = layer ? 0.5f : 0.125f;
        ck_assert_int_eq(kvk_cuda_attention(&d->plan, &d->attention, &d->out, layer, NULL), 0);
        ck_assert_int_eq(kvk_attention_reference(&c->attention, &exact->out), 0);
    }
    ck_assert_int_eq(kvk_cuda_mass(&d->plan, &d->attention, &d->out, 2, NULL), 0);
    device_case_read(d);
    for (uint64_t i = 0; i < c->n_mean; i++) { /* sums of 9 queries at most */
        ck_assert_double_eq_tol((double)found->out.mean[i], (double)exact->out.mean[i], 2e-5);
        ck_assert_double_eq_tol((double)found->out.peak[i], (double)exact->out.peak[i], 1e-5);
    }
    device_case_close(d);
    grid_result_close(found);
    grid_result_close(exact);
    grid_close(c);
}
END_TEST

START_TEST(without_masses_and_outputs_only_lse_is_written)
{
    grid_case *c = grid_open(&mixed);
    grid_result *found = grid_result_open(c, KVK_F32), *exact = grid_result_open(c, KVK_F32);
    kvk_attention_out only = found->out;
    only.o = only.mean = only.peak = only.near = NULL;
    device_case *d = device_case_open(c, &only, by_batch);
    d->plan.n_mass_layers = d->plan.near_peaks = 0;
    device_case_plan(d);
    ck_assert_int_eq(kvk_cuda_prepare(&d->plan, &d->attention, NULL, NULL), 0);
    ck_assert_int_eq(kvk_cuda_attention(&d->plan, &d->attention, &d->out, 0, NULL), 0);
    device_case_read(d);
    ck_assert_int_eq(kvk_attention_reference(&c->attention, &exact->out), 0);
    for (uint64_t i = 0; i < found->n_lse; i++)
        ck_assert_double_eq_tol((double)found->out.lse[i], (double)exact->out.lse[i], 1e-5);
    device_case_close(d);
    grid_result_close(found);
    grid_result_close(exact);
    grid_close(c);
}
END_TEST

void add_plan_tests(TCase *tests)
{
    tcase_add_loop_test(tests, the_same_batch_gives_the_same_bits, 0, 2);
    tcase_add_test(tests, with_a_fixed_split_an_entry_does_not_see_the_others);
    tcase_add_test(tests, a_long_entry_among_many_has_few_parts);
    tcase_add_test(tests, a_larger_plan_makes_no_other_parts);
    tcase_add_loop_test(tests, what_the_plan_has_no_room_for_is_not_begun, 0, 4);
    tcase_add_test(tests, a_plan_serves_one_batch_after_another);
    tcase_add_test(tests, arguments_may_change_after_a_call);
    tcase_add_test(tests, masses_of_layers_are_added_in_one_launch);
    tcase_add_test(tests, without_masses_and_outputs_only_lse_is_written);
}
