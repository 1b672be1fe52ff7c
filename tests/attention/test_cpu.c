/* The fast attention against the reference: every shape of the grid, and those that its blocks, parts and tiles are cut
 * up differently for, with the kernels of every instruction set that this processor has; and that its results depend
 * on the arguments alone. */
#include "attention/cpu.h"
#include "attention/grid.h"
#include "run_tests.h"

#include <stdlib.h>
#include <string.h>

/* ---- shapes */

static const uint32_t two[] = {54, 97}, one[] = {97}, most_of_a_page[] = {1000}, parts[] = {5000, 3, 2500};
static const uint32_t late[] = {47, 130}, late_queries[] = {40, 70}, few[] = {3, 9}, many[] = {700},
                      over_a_border[] = {28, 56}, many_queries[] = {300}, drafts[] = {3, 1, 2};

#define DECODE(texts) .n = sizeof(texts) / sizeof *(texts), .lengths = (texts)
#define CHUNKS(texts, of_them) DECODE(texts), .queries = (of_them)
#define SHAPE(title, kv, query, page, heads, per_kv, size, ...)                                                        \
    {                                                                                                                  \
        .name = title, .dtype = KVK_##kv, .q_dtype = KVK_##query, .o_dtype = KVK_##query, .page_tokens = (page),       \
        .kv_heads = (heads), .group = (per_kv), .head_size = (size), .seed = __LINE__, __VA_ARGS__                     \
    }

static const grid_shape shapes[] = {
    SHAPE("heads of 1", F16, F32, 16, 2, 4, 1, DECODE(two)),
    SHAPE("heads of 7", F32, F16, 16, 2, 4, 7, DECODE(two), .features = GRID_NEAR_ERROR),
    SHAPE("heads of 33", BF16, F32, 16, 2, 3, 33, CHUNKS(late, late_queries), .features = GRID_NEAR_ERROR),
    SHAPE("i4 heads of 14", I4, F32, 16, 2, 4, 14, DECODE(two)),
    SHAPE("e4m3 heads of 20", F8_E4M3, F32, 16, 2, 4, 20, DECODE(two), .features = GRID_NEAR_ERROR),
    SHAPE("i8 heads of 112", I8, F32, 16, 2, 4, 112, DECODE(two), .features = GRID_NEAR_ERROR),
    SHAPE("heads of 1024", F16, F16, 16, 1, 2, 1024, DECODE(one)),
    SHAPE("a group of 71", F16, F32, 16, 1, 71, 64, CHUNKS(two, few), .features = GRID_ROWS),
    SHAPE("40 KV heads", BF16, F32, 16, 40, 1, 32, DECODE(two), .features = GRID_NHD),
    SHAPE("24 KV heads in groups of 5", F16, F32, 16, 24, 5, 32, CHUNKS(two, few), .features = GRID_SINKS),
    SHAPE("pages of 3", F16, F32, 3, 2, 4, 64, DECODE(two), .features = GRID_NEAR_ERROR),
    SHAPE("pages of 24", BF16, F32, 24, 2, 4, 64, CHUNKS(late, late_queries), .window = 41),
    SHAPE("pages of 300", F16, F32, 300, 2, 4, 64, DECODE(most_of_a_page), .features = GRID_NEAR_ERROR),
    SHAPE("pages of 4096", F16, F32, 4096, 1, 4, 64, CHUNKS(parts, drafts), .features = GRID_NEAR_ERROR | GRID_ROWS),
    SHAPE("parts", F16, F32, 16, 2, 3, 64, DECODE(parts), .features = GRID_NEAR_ERROR),
    SHAPE("parts, drafts", BF16, F32, 16, 2, 3, 64, CHUNKS(parts, drafts), .features = GRID_ROWS | GRID_SINKS),
    SHAPE("parts, i8", I8, F32, 16, 1, 4, 64, DECODE(parts), .features = GRID_EVICTED),
    SHAPE("parts, i4 pages of 8", I4, F32, 8, 1, 1, 64, DECODE(parts), .features = GRID_ALIBI),
    SHAPE("parts of a window", F16, F32, 16, 2, 2, 64, CHUNKS(parts, drafts), .window = 2500),
    SHAPE("many queries", F16, F32, 16, 2, 2, 64, CHUNKS(many, many_queries), .features = GRID_NEAR_ERROR),
    SHAPE("many queries, all else", I8, F32, 16, 2, 3, 48, CHUNKS(many, many_queries), .window = 90, .soft_cap = 3,
          .features = GRID_ALIBI | GRID_SINKS | GRID_EVICTED | GRID_ROWS | GRID_GAPS | GRID_NEAR_ERROR),
    SHAPE("4 and 12 tokens of pages of 16", F16, F32, 16, 2, 4, 64, DECODE(over_a_border), .window = 16),
    SHAPE("8 and 24 tokens of pages of 32", F16, F32, 32, 2, 4, 64, DECODE(over_a_border), .window = 32),
    SHAPE("a negative scale", F16, F32, 16, 2, 4, 64, DECODE(two), .scale = -0.25f),
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

static const grid_shape *shape_of(int i)
{
    uint32_t n;
    const grid_shape *grid = grid_shapes(&n);
    return (uint32_t)i < n ? &grid[i] : &shapes[(uint32_t)i - n];
}

/* ---- a run */

/* A run with kernels and scratch for so many threads, and what the workspace is filled with before. */
typedef struct version {
    const cpu_kernels *kernels;
    uint32_t n_threads;
    int poison;
} version;

#define POISON_NAN 0xff
#define POISON_LARGE 0x7f

static int run(void *ctx, const grid_case *c, const kvk_attention_out *out)
{
    const version *v = ctx;
    cpu_job job;
    int64_t bytes = cpu_measure(&job, &c->attention, out, v->n_threads);
    ck_assert_int_ge(bytes, 0);
    void *workspace = aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
    ck_assert_ptr_nonnull(workspace);
    memset(workspace, v->poison, (size_t)bytes);
    int rc = cpu_attention(v->kernels, &c->attention, out, workspace, (uint64_t)bytes);
    free(workspace);
    return rc;
}

static void agrees(int i, const cpu_kernels *kernels)
{
    version nan = {kernels, 2, POISON_NAN}, large = {kernels, 2, POISON_LARGE};
    if (!kernels)
        return;
    grid_check(shape_of(i), GRID_FLOAT, run, &nan);
    grid_check(shape_of(i), GRID_FLOAT, run, &large);
}

START_TEST(base_agrees)
{
    agrees(_i, cpu_kernels_base());
}
END_TEST

START_TEST(avx2_agrees)
{
    agrees(_i, cpu_kernels_avx2());
}
END_TEST

START_TEST(avx512_agrees)
{
    agrees(_i, cpu_kernels_avx512());
}
END_TEST

/* ---- the number of threads */

static void are_the_same(const void *a, const void *b, uint64_t bytes, const grid_shape *shape)
{
    ck_assert_msg(memcmp(a, b, bytes) == 0, "%s: one thread gives other bits than several", shape->name);
}

START_TEST(threads_change_no_bit)
{
    const grid_shape *shape = shape_of(_i);
    grid_case *c = grid_open(shape);
    grid_result *r[2] = {grid_result_open(c, KVK_F32), grid_result_open(c, KVK_F32)};
    for (uint32_t i = 0; i < 2; i++) {
        version v = {cpu_kernels_base(), i == 0 ? 1 : 8, POISON_NAN};
        ck_assert_int_eq(run(&v, c, &r[i]->out), 0);
    }
    are_the_same(r[0]->out.o, r[1]->out.o, r[0]->o_elements * sizeof(float), shape);
    are_the_same(r[0]->out.lse, r[1]->out.lse, r[0]->n_lse * sizeof(float), shape);
    are_the_same(r[0]->out.mean, r[1]->out.mean, c->n_mean * sizeof(float), shape);
    are_the_same(r[0]->out.peak, r[1]->out.peak, c->n_mean * sizeof(float), shape);
    are_the_same(r[0]->out.near, r[1]->out.near, c->n_near * sizeof(float), shape);
    grid_result_close(r[0]);
    grid_result_close(r[1]);
    grid_close(c);
}
END_TEST

/* ---- the workspace */

START_TEST(a_workspace_must_be_large_enough_and_aligned)
{
    grid_case *c = grid_open(&shapes[0]);
    grid_result *r = grid_result_open(c, KVK_F32);
    cpu_job job;
    uint64_t least = (uint64_t)cpu_measure(&job, &c->attention, &r->out, 1);
    char *workspace = aligned_alloc(64, (least + 128) / 64 * 64);
    ck_assert_ptr_nonnull(workspace);
    ck_assert_int_ge(kvk_attention_workspace(&c->attention, &r->out), (int64_t)least);
    ck_assert_int_eq(kvk_attention_cpu(&c->attention, &r->out, workspace, least - 1), KVK_ESPACE);
    ck_assert_int_eq(kvk_attention_cpu(&c->attention, &r->out, NULL, least), KVK_ESPACE);
    ck_assert_int_eq(kvk_attention_cpu(&c->attention, &r->out, workspace + 4, least), KVK_EINVAL);
    ck_assert(r->out.lse[0] != r->out.lse[0]); /* as poisoned before */
    ck_assert_int_eq(kvk_attention_cpu(&c->attention, &r->out, workspace, least), 0);
    ck_assert(r->out.lse[0] == r->out.lse[0]);
    free(workspace);
    grid_result_close(r);
    grid_close(c);
}
END_TEST

START_TEST(what_the_reference_refuses_is_refused)
{
    grid_case *c = grid_open(&shapes[0]);
    grid_result *r = grid_result_open(c, KVK_F32);
    c->attention.layer = c->kv.n_layers;
    ck_assert_int_eq(kvk_attention_workspace(&c->attention, &r->out), KVK_EINVAL);
    ck_assert_int_eq(kvk_attention_cpu(&c->attention, &r->out, r->out.o, UINT64_MAX), KVK_EINVAL);
    grid_result_close(r);
    grid_close(c);
}
END_TEST

START_TEST(nothing_asked_for_is_no_work)
{
    grid_case *c = grid_open(&shapes[0]);
    kvk_attention_out out;
    version v = {cpu_kernels_base(), 2, POISON_NAN};
    kvk_attention_out_init(&out);
    ck_assert_int_eq(run(&v, c, &out), 0);
    c->attention.n = 0;
    ck_assert_int_eq(run(&v, c, &out), 0);
    grid_close(c);
}
END_TEST

int main(void)
{
    uint32_t n;
    TCase *tests = tcase_create("cpu");
    grid_shapes(&n);
    n += N_SHAPES;
    tcase_add_loop_test(tests, base_agrees, 0, (int)n);
    tcase_add_loop_test(tests, avx2_agrees, 0, (int)n);
    tcase_add_loop_test(tests, avx512_agrees, 0, (int)n);
    tcase_add_loop_test(tests, threads_change_no_bit, 0, (int)n);
    tcase_add_test(tests, a_workspace_must_be_large_enough_and_aligned);
    tcase_add_test(tests, what_the_reference_refuses_is_refused);
    tcase_add_test(tests, nothing_asked_for_is_no_work);
    return run_tests("cpu", tests);
}
