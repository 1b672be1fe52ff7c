#include "kvkeep/bench/gpu.h"

#include "attention/convert.h"

#include <kvkeep/cuda.h>

#include <cuda_runtime_api.h>
#include <math.h>
#include <stdlib.h>

#define ROWS 1024u /* different tokens that K and V are filled with */

struct gpu_bench {
    gpu_shape shape;
    bench_batch batch;
    kvk_kv kv;
    uint64_t kv_bytes;
    kvk_attention attention;
    kvk_attention_out out;
    kvk_cuda_plan plan;
    const float *rows;    /* [ROWS][kv_heads][head_size] */
    const int64_t *slots; /* [tokens of all pages] in order */
    const kvk_move *moves;
    void *arrays[24]; /* of the device, to be freed */
    uint32_t n_arrays, n_moves;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

/* ---- memory of the device */

static void *take(gpu_bench *b, uint64_t bytes)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, bytes) != cudaSuccess)
        return NULL;
    b->arrays[b->n_arrays++] = memory;
    return cudaMemset(memory, 0, bytes) == cudaSuccess ? memory : NULL;
}

static void *put(gpu_bench *b, const void *host, uint64_t bytes)
{
    void *memory = host ? take(b, bytes) : NULL;
    return memory && cudaMemcpy(memory, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess ? memory : NULL;
}

/* Takes a list of the host over. */
static void *hand_over(gpu_bench *b, void *host, uint64_t bytes)
{
    void *memory = put(b, host, bytes);
    free(host);
    return memory;
}

/* ---- K and V */

static uint64_t token_elements(const gpu_bench *b)
{
    return (uint64_t)b->kv.n_heads * b->kv.head_size;
}

static float *make_rows(const gpu_bench *b)
{
    uint64_t random = 1, n = ROWS * token_elements(b);
    float *rows = malloc(n * sizeof *rows);
    for (uint64_t i = 0; rows && i < n; i++)
        rows[i] = bench_normal(&random);
    return rows;
}

static int64_t *make_slots(const gpu_bench *b)
{
    uint64_t n = (uint64_t)b->kv.n_pages * BENCH_PAGE_TOKENS;
    int64_t *slots = malloc(n * sizeof *slots);
    for (uint64_t i = 0; slots && i < n; i++)
        slots[i] = (int64_t)i;
    return slots;
}

static int append(const gpu_bench *b, uint32_t layer, uint64_t first, uint32_t n)
{
    kvk_rows rows = {
        .data = b->rows, .dtype = KVK_F32, .token_stride = token_elements(b), .head_stride = b->kv.head_size};
    kvk_cuda_tokens tokens = {.size = sizeof tokens, .n = n, .slots = b->slots + first, .k = rows, .v = rows};
    return kvk_cuda_append(&b->kv, layer, &tokens, b->stream);
}

static int fill_kv(const gpu_bench *b)
{
    uint64_t n = (uint64_t)b->kv.n_pages * BENCH_PAGE_TOKENS;
    int rc = 0;
    for (uint32_t layer = 0; layer < b->kv.n_layers; layer++)
        for (uint64_t first = 0; rc == 0 && first < n; first += ROWS)
            rc = append(b, layer, first, (uint32_t)(n - first < ROWS ? n - first : ROWS));
    return rc;
}

static int open_kv(gpu_bench *b)
{
    const attention_shape *x = &b->shape.batch;
    uint64_t n_scales;
    kvk_kv_init(&b->kv, x->dtype, b->batch.n_pages, BENCH_PAGE_TOKENS);
    if (kvk_kv_shape(&b->kv, b->shape.n_layers, x->kv_heads, x->head_size) < 0 ||
        kvk_kv_bytes(&b->kv, &b->kv_bytes, &n_scales) < 0)
        return -1;
    b->kv.base = take(b, b->kv_bytes);
    b->kv.scales = n_scales ? take(b, n_scales * sizeof(float)) : NULL;
    b->rows = hand_over(b, make_rows(b), ROWS * token_elements(b) * sizeof(float));
    b->slots = hand_over(b, make_slots(b), (uint64_t)b->kv.n_pages * BENCH_PAGE_TOKENS * sizeof(int64_t));
    if (!b->kv.base || (n_scales && !b->kv.scales) || !b->rows || !b->slots)
        return -1;
    return fill_kv(b);
}

/* ---- the batch */

static uint16_t *make_queries(const gpu_bench *b, uint64_t n)
{
    uint64_t random = 3;
    uint16_t *q = malloc(n * sizeof *q);
    for (uint64_t i = 0; q && i < n; i++) {
        float x = bench_normal(&random);
        q[i] = b->shape.q_dtype == KVK_F16 ? f16_of_float(x) : bf16_of_float(x);
    }
    return q;
}

static int open_attention(gpu_bench *b)
{
    kvk_attention *a = &b->attention;
    const bench_batch *lists = &b->batch;
    kvk_attention_init(a);
    a->n = lists->n;
    a->kv = &b->kv;
    a->n_heads = b->shape.batch.kv_heads * b->shape.batch.group;
    a->indptr = put(b, lists->indptr, (lists->n + 1) * sizeof *lists->indptr);
    a->pages = put(b, lists->pages, lists->n_pages * sizeof *lists->pages);
    a->seq_lens = put(b, lists->seq_lens, lists->n * sizeof *lists->seq_lens);
    a->query_indptr = put(b, lists->query_indptr, (lists->n + 1) * sizeof *lists->query_indptr);
    uint64_t token = (uint64_t)a->n_heads * b->kv.head_size, n = lists->n_queries * token;
    a->q = (kvk_rows){.data = hand_over(b, make_queries(b, n), n * sizeof(uint16_t)),
                      .dtype = b->shape.q_dtype,
                      .token_stride = token,
                      .head_stride = b->kv.head_size};
    return a->indptr && a->pages && a->seq_lens && a->query_indptr && a->q.data ? 0 : -1;
}

static int open_results(gpu_bench *b)
{
    kvk_attention_out *out = &b->out;
    uint64_t places = (uint64_t)b->batch.n * 3 * b->shape.n_layers * b->attention.n_heads; /* of near, in decode */
    kvk_attention_out_init(out);
    out->o_dtype = b->shape.q_dtype;
    out->o_token_stride = b->attention.q.token_stride;
    out->o_head_stride = b->attention.q.head_stride;
    out->o = take(b, b->batch.n_queries * out->o_token_stride * sizeof(uint16_t));
    out->mean = take(b, b->batch.n_pages * sizeof(float));
    out->peak = take(b, b->batch.n_pages * sizeof(float));
    out->near = b->shape.has_near ? take(b, places * sizeof(float)) : NULL;
    out->near_kind = KVK_NEAR_ERROR;
    out->near_values = b->shape.n_layers * b->attention.n_heads;
    return out->o && out->mean && out->peak && (out->near || !b->shape.has_near) ? 0 : -1;
}

static int open_plan(gpu_bench *b)
{
    kvk_cuda_plan *p = &b->plan;
    kvk_cuda_plan_init(p);
    p->n_entries = b->batch.n;
    p->n_queries = b->batch.n_queries;
    p->entry_queries = b->shape.batch.n_queries;
    p->n_pages = b->batch.n_pages;
    p->n_mass_layers = b->shape.has_masses ? b->shape.n_layers : 0;
    p->n_heads = b->attention.n_heads;
    p->n_kv_heads = b->kv.n_heads;
    p->head_size = b->kv.head_size;
    p->page_tokens = BENCH_PAGE_TOKENS;
    p->split_tokens = b->shape.split_tokens;
    p->near_peaks = (uint32_t)b->shape.has_near;
    int64_t bytes = kvk_cuda_workspace(p);
    p->workspace_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    p->workspace = bytes > 0 ? take(b, p->workspace_bytes) : NULL;
    return p->workspace ? 0 : -1;
}

/* Every page of the first half onto one of the second. */
static int open_moves(gpu_bench *b)
{
    uint32_t n = b->kv.n_pages / 2;
    kvk_move *moves = calloc(n + 1, sizeof *moves);
    for (uint32_t i = 0; moves && i < n; i++)
        moves[i] = (kvk_move){.kind = KVK_MOVE_COPY, .src = i, .dst = n + i, .n_tokens = BENCH_PAGE_TOKENS};
    b->n_moves = n;
    b->moves = hand_over(b, moves, (n + 1) * sizeof *moves);
    return b->moves ? 0 : -1;
}

static int open_stream(gpu_bench *b)
{
    return cudaStreamCreate(&b->stream) == cudaSuccess && cudaEventCreate(&b->begin) == cudaSuccess &&
                   cudaEventCreate(&b->end) == cudaSuccess
               ? 0
               : -1;
}

gpu_bench *bench_gpu_open(const gpu_shape *shape)
{
    gpu_bench *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->shape = *shape;
    if (open_stream(b) == 0 && bench_batch_open(&shape->batch, &b->batch) == 0 && open_kv(b) == 0 &&
        open_attention(b) == 0 && open_results(b) == 0 && open_plan(b) == 0 && open_moves(b) == 0 &&
        cudaStreamSynchronize(b->stream) == cudaSuccess)
        return b;
    bench_gpu_close(b);
    return NULL;
}

void bench_gpu_close(gpu_bench *b)
{
    bench_batch_close(&b->batch);
    for (uint32_t i = 0; i < b->n_arrays; i++)
        cudaFree(b->arrays[i]);
    if (b->begin)
        cudaEventDestroy(b->begin);
    if (b->end)
        cudaEventDestroy(b->end);
    if (b->stream)
        cudaStreamDestroy(b->stream);
    free(b);
}

/* ---- what is measured */

double bench_gpu_bytes(const gpu_bench *b)
{
    return (double)b->kv_bytes;
}

double bench_gpu_tokens(const gpu_bench *b)
{
    return (double)b->batch.n_tokens;
}

/* Of the pairs of query and key that causal order leaves; texts of one length. */
double bench_gpu_operations(const gpu_bench *b)
{
    const attention_shape *x = &b->shape.batch;
    double queries = x->n_queries, pairs = queries * (x->n_tokens - (queries - 1) / 2);
    return 4 * pairs * x->n * b->attention.n_heads * b->kv.head_size * b->shape.n_layers;
}

static int step(gpu_bench *b)
{
    int rc = kvk_cuda_prepare(&b->plan, &b->attention, NULL, b->stream);
    for (uint32_t layer = 0; rc == 0 && layer < b->shape.n_layers; layer++) {
        b->attention.layer = layer;
        b->out.near_first = layer * b->attention.n_heads;
        rc = kvk_cuda_attention(&b->plan, &b->attention, &b->out, b->shape.has_masses ? layer : 0, b->stream);
    }
    if (rc == 0 && b->shape.has_masses)
        rc = kvk_cuda_mass(&b->plan, &b->attention, &b->out, b->shape.n_layers, b->stream);
    return rc;
}

static void begin(gpu_bench *b)
{
    cudaEventRecord(b->begin, b->stream);
}

static double end(gpu_bench *b, int rc)
{
    float ms = 0;
    cudaEventRecord(b->end, b->stream);
    if (cudaEventSynchronize(b->end) != cudaSuccess || rc != 0 ||
        cudaEventElapsedTime(&ms, b->begin, b->end) != cudaSuccess)
        return NAN;
    return (double)ms / 1e3;
}

double bench_gpu_step(gpu_bench *b)
{
    begin(b);
    return end(b, step(b));
}

double bench_gpu_copy(gpu_bench *b)
{
    uint64_t half = b->kv_bytes / 2;
    begin(b);
    return end(b, cudaMemcpyAsync((char *)b->kv.base + half, b->kv.base, half, cudaMemcpyDeviceToDevice, b->stream) !=
                      cudaSuccess);
}

double bench_gpu_append(gpu_bench *b, uint32_t tokens)
{
    int rc = 0;
    begin(b);
    for (uint32_t layer = 0; rc == 0 && layer < b->kv.n_layers; layer++)
        rc = append(b, layer, 0, tokens < ROWS ? tokens : ROWS);
    return end(b, rc);
}

double bench_gpu_moves(gpu_bench *b)
{
    kvk_host_pages pages = {.base = b->kv.base,
                            .page_stride = b->kv.page_stride,
                            .row_stride = b->kv.head_stride,
                            .rows = b->kv.n_layers * 2 * b->kv.n_heads,
                            .token_bytes = (uint32_t)b->kv.token_stride,
                            .page_tokens = BENCH_PAGE_TOKENS,
                            .n_pages = b->kv.n_pages};
    kvk_host_memory where = {.groups = &pages, .n_groups = 1};
    begin(b);
    return end(b, kvk_cuda_moves(b->moves, b->n_moves, &where, b->stream));
}
