/* A step that is captured in a graph and replayed: with its own batch, with a shorter one in the same arrays, and with
 * its own again. */
#include "gpu/graph.h"

#include "device/memory.h"
#include "device/on_device.h"

#include <cuda_runtime_api.h>
#include <string.h>

static const uint32_t lengths[] = {97, 700, 16, 1200}, queries[] = {1, 9, 3, 1};
static const grid_shape shape = {.name = "captured",
                                 .dtype = KVK_BF16,
                                 .q_dtype = KVK_BF16,
                                 .o_dtype = KVK_F32,
                                 .page_tokens = 16,
                                 .kv_heads = 2,
                                 .group = 4,
                                 .head_size = 128,
                                 .n = 4,
                                 .lengths = lengths,
                                 .queries = queries,
                                 .seed = 1};
static const device_options by_batch;

static cudaGraphExec_t capture(device_case *d)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t step;
    ck_assert_int_eq(cudaStreamCreate(&stream), cudaSuccess);
    ck_assert_int_eq(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    d->stream = stream;
    ck_assert_int_eq(device_case_run(d), 0);
    ck_assert_int_eq(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphInstantiate(&step, graph, 0), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    ck_assert_int_eq(cudaStreamDestroy(stream), cudaSuccess);
    return step;
}

static void replay(cudaGraphExec_t step)
{
    ck_assert_int_eq(cudaGraphLaunch(step, NULL), cudaSuccess);
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
}

static void write_to(const void *device, const int32_t *numbers, uint64_t n)
{
    ck_assert_int_eq(cudaMemcpy((void *)(uintptr_t)device, numbers, n * sizeof *numbers, cudaMemcpyHostToDevice),
                     cudaSuccess);
}

/* Zeroes what masses are added to. */
static void clear_sums(device_case *d)
{
    const grid_case *c = d->c;
    ck_assert_int_eq(cudaMemset(d->out.mean, 0, c->n_mean * sizeof(float)), cudaSuccess);
    ck_assert_int_eq(cudaMemset(d->out.peak, 0, c->n_mean * sizeof(float)), cudaSuccess);
    ck_assert_int_eq(cudaMemset(d->out.near, 0, c->n_near * sizeof(float)), cudaSuccess);
}

static void are_equal(const grid_case *c, const grid_result *a, const grid_result *b)
{
    ck_assert(memcmp(a->out.o, b->out.o, a->o_elements * sizeof(float)) == 0);
    ck_assert(memcmp(a->out.lse, b->out.lse, a->n_lse * sizeof(float)) == 0);
    ck_assert(memcmp(a->out.mean, b->out.mean, c->n_mean * sizeof(float)) == 0);
    ck_assert(memcmp(a->out.near, b->out.near, c->n_near * sizeof(float)) == 0);
}

START_TEST(a_captured_step_is_replayed_over_other_batches)
{
    static const int32_t nothing[5];
    grid_case *c = grid_open(&shape);
    grid_result *exact = grid_result_open(c, KVK_F32), *found = grid_result_open(c, KVK_F32);
    ck_assert_int_eq(attention_on_device((void *)(uintptr_t)&by_batch, c, &exact->out), 0);
    device_case *d = device_case_open(c, &found->out, by_batch);
    cudaGraphExec_t step = capture(d);
    replay(step);
    write_to(d->attention.indptr, nothing, 5);
    write_to(d->attention.query_indptr, nothing, 5);
    write_to(d->attention.seq_lens, nothing, 4);
    replay(step);
    write_to(d->attention.indptr, c->indptr, 5);
    write_to(d->attention.query_indptr, c->query_indptr, 5);
    write_to(d->attention.seq_lens, c->seq_lens, 4);
    clear_sums(d);
    replay(step);
    device_case_read(d);
    are_equal(c, exact, found);
    ck_assert_int_eq(cudaGraphExecDestroy(step), cudaSuccess);
    device_case_close(d);
    grid_result_close(exact);
    grid_result_close(found);
    grid_close(c);
}
END_TEST

void add_graph_tests(TCase *tests)
{
    tcase_add_test(tests, a_captured_step_is_replayed_over_other_batches);
}
