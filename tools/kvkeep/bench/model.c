/* A model of the LLaMA family on the cache: decoding and prefill, against what the machine's memory and its products
 * allow. */
#include "engine/runner.h"
#include "kvkeep/bench/yardsticks.h"
#include "kvkeep/loaded_model.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 32, CONTEXT = 512, PROMPT = 1000, CHUNK = 64, STEPS = 128 /* decoded at most */ };

typedef struct model_bench {
    loaded_model loaded;
    runner *runner;
    kvk_seq seqs[MOST];
    uint32_t n, tokens; /* sequences; of each */
    char *memory;       /* as much as a step of decoding reads: weights, and K and V */
    uint64_t memory_bytes;
    float *matrices;
} model_bench;

static void close_bench(void *state)
{
    model_bench *b = state;
    runner_close(b->runner);
    loaded_model_close(&b->loaded);
    free(b->memory);
    free(b->matrices);
    free(b);
}

int bench_model_ready(trace_error *error)
{
    loaded_model m = {0};
    int rc = loaded_model_open(&m, NULL, error);
    loaded_model_close(&m);
    return rc;
}

/* Any tokens will do. */
static uint32_t token_at(const model_bench *b, uint32_t i)
{
    return (i * 7919 + 101) % b->loaded.model->shape.n_vocabulary;
}

/* The next tokens of every sequence. */
static int step(model_bench *b, uint32_t n_tokens)
{
    uint32_t tokens[CHUNK];
    runner_entry entries[MOST];
    trace_error error;
    for (uint32_t i = 0; i < n_tokens; i++)
        tokens[i] = token_at(b, b->tokens + i);
    for (uint32_t i = 0; i < b->n; i++)
        entries[i] = (runner_entry){.sequence = b->seqs[i], .tokens = tokens, .n = n_tokens, .want = RUNNER_LAST};
    b->tokens += n_tokens;
    return runner_step(b->runner, entries, b->n, &error);
}

static int fill(model_bench *b, uint32_t n_tokens)
{
    int rc = 0;
    while (rc == 0 && b->tokens < n_tokens)
        rc = step(b, n_tokens - b->tokens < CHUNK ? n_tokens - b->tokens : CHUNK);
    return rc;
}

static int begin_texts(model_bench *b)
{
    trace_error error;
    int rc = 0;
    b->tokens = 0;
    for (uint32_t i = 0; i < b->n && rc == 0; i++)
        rc = runner_sequence(b->runner, NULL, &b->seqs[i], &error);
    return rc;
}

static int end_texts(model_bench *b)
{
    int rc = 0;
    for (uint32_t i = 0; i < b->n && rc >= 0; i++)
        rc = kvk_seq_close(runner_cache(b->runner), b->seqs[i]);
    return rc;
}

static int open_memory(model_bench *b)
{
    const uint64_t unit = 64 << 10;
    uint64_t pages = CONTEXT / 16, bytes = b->n * pages * runner_page_bytes(b->runner);
    b->memory_bytes = (bytes + b->loaded.model->weight_bytes) / unit * unit;
    b->memory = malloc(b->memory_bytes);
    for (uint64_t i = 0; b->memory && i < b->memory_bytes; i += 64)
        b->memory[i] = 1;
    return b->memory ? 0 : -1;
}

static model_bench *open_texts(uint32_t n, uint32_t n_tokens)
{
    model_bench *b = calloc(1, sizeof *b);
    trace_error error;
    if (!b)
        return NULL;
    if (loaded_model_open(&b->loaded, NULL, &error) == 0) {
        runner_config config = RUNNER_CONFIG(b->loaded.model);
        config.kv_type = KVK_F16;
        config.kv_tokens = (uint64_t)n * (n_tokens + STEPS);
        b->n = n;
        if (runner_open(&config, &b->runner, &error) == 0 && begin_texts(b) == 0)
            return b;
    }
    close_bench(b);
    return NULL;
}

/* ---- Decoding --------------------------------------------------------------------------------------------------- */

static void *open_decode(const bench_case *me)
{
    model_bench *b = open_texts(me->size, CONTEXT);
    if (b && fill(b, CONTEXT) == 0)
        return b;
    if (b)
        close_bench(b);
    return NULL;
}

/* With memory to read. */
static void *open_reading(const bench_case *me)
{
    model_bench *b = open_decode(me);
    if (!b || open_memory(b) == 0)
        return b;
    close_bench(b);
    return NULL;
}

/* Begins again where the texts' room ends. */
static double run_decode(void *state)
{
    model_bench *b = state;
    if (b->tokens == CONTEXT + STEPS && (end_texts(b) < 0 || begin_texts(b) < 0 || fill(b, CONTEXT) < 0))
        return (double)NAN;
    double start = bench_now_ns();
    return step(b, 1) == 0 ? b->n / ((bench_now_ns() - start) / 1e9) : (double)NAN;
}

static double run_read(void *state)
{
    const model_bench *b = state;
    return b->n / bench_read_stream(b->memory, b->memory_bytes);
}

/* ---- Against products ------------------------------------------------------------------------------------------- */

#if KVK_HAVE_OPENBLAS

static double weights_of(const matrix *m)
{
    return (double)m->n_in * m->n_out;
}

/* Multiplications and additions of a step: `tokens` of a sequence through the layers, the last one's logits, and
 * attention over `before` tokens on an average. */
static double operations_of(const model *m, double tokens, double before)
{
    const model_layer *l = m->layers;
    double layer = weights_of(&l->qkv) + weights_of(&l->attention_out) + weights_of(&l->gate_up) + weights_of(&l->down);
    double attention = 2 * before * m->shape.n_heads * m->shape.head_size;
    return 2 * (tokens * m->shape.n_layers * (layer + attention) + weights_of(&m->output));
}

static model_bench *with_matrices(model_bench *b)
{
    if (!b)
        return NULL;
    b->matrices = bench_sgemm_open();
    if (b->matrices)
        return b;
    close_bench(b);
    return NULL;
}

static void *open_products(const bench_case *me)
{
    return with_matrices(open_decode(me));
}

static double run_products(void *state)
{
    const model_bench *b = state;
    double operations = operations_of(b->loaded.model, 1, CONTEXT);
    return bench_sgemm(b->matrices) * 1e9 / operations;
}

static void *open_prefill(const bench_case *me)
{
    return with_matrices(open_texts(1, me->size));
}

static double run_prefill(void *state)
{
    model_bench *b = state;
    double start = bench_now_ns();
    if (fill(b, PROMPT) < 0)
        return (double)NAN;
    double seconds = (bench_now_ns() - start) / 1e9;
    return end_texts(b) >= 0 && begin_texts(b) == 0 ? PROMPT / seconds : (double)NAN;
}

static double run_prefill_products(void *state)
{
    const model_bench *b = state;
    double operations = operations_of(b->loaded.model, PROMPT, PROMPT / 2.0);
    return PROMPT * bench_sgemm(b->matrices) * 1e9 / operations;
}

#define AGAINST_PRODUCTS(name, n, open, run, products)                                                                 \
    {                                                                                                                  \
        name, "tok/s", "sgemm by OpenBLAS", n, open, run, products, close_bench                                        \
    }
#define PRODUCT_CASES                                                                                                  \
    AGAINST_PRODUCTS("model.decode.8.sgemm", 8, open_products, run_decode, run_products),                              \
        AGAINST_PRODUCTS("model.decode.32.sgemm", 32, open_products, run_decode, run_products),                        \
        AGAINST_PRODUCTS("model.prefill.1000", PROMPT, open_prefill, run_prefill, run_prefill_products),
#else
#define PRODUCT_CASES
#endif

#define DECODE_CASE(name, n)                                                                                           \
    {                                                                                                                  \
        name, "tok/s", "reading weights and KV", n, open_reading, run_decode, run_read, close_bench                    \
    }

const bench_case bench_model_cases[] = {DECODE_CASE("model.decode.1", 1), DECODE_CASE("model.decode.8", 8),
                                        DECODE_CASE("model.decode.32", 32), PRODUCT_CASES};
const uint32_t bench_model_count = sizeof bench_model_cases / sizeof *bench_model_cases;
