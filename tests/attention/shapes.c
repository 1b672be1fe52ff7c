/* shapes.c: what every version of attention is to pass: each type, size and feature by itself, and those together that
 * have met in bugs. */
#include "attention/grid.h"

/* Lengths around the borders of pages of 16, and others. */
static const uint32_t mixed[] = {0, 1, 15, 16, 17, 54, 97};
static const uint32_t borders_1[] = {0, 1, 2, 9}, borders_8[] = {0, 1, 7, 8, 9, 54}, borders_32[] = {1, 31, 32, 33, 97},
                      borders_64[] = {1, 63, 64, 65, 130}, borders_128[] = {1, 127, 128, 129, 300};
static const uint32_t two[] = {54, 97}, one[] = {97}, long_one[] = {2048}, longer[] = {4100};
static const uint32_t skewed[] = {2048, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, drafted[] = {600, 600, 600, 600, 1500},
                      drafts[] = {1, 1, 1, 1, 3};
/* Chunks of a prefill: the first, whole prompts, later ones, some with no query at all. */
static const uint32_t chunked[] = {40, 97, 130, 33, 0, 20, 64}, chunks[] = {5, 97, 17, 1, 0, 0, 33};
static const uint32_t late[] = {47, 130}, late_queries[] = {40, 70};

#define DECODE(texts) .n = sizeof(texts) / sizeof *(texts), .lengths = (texts)
#define CHUNKS(texts, parts) DECODE(texts), .queries = (parts)
#define SHAPE(title, kv, query, page, heads, per_kv, size, ...)                                                        \
    {                                                                                                                  \
        .name = title, .dtype = KVK_##kv, .q_dtype = KVK_##query, .o_dtype = KVK_##query, .page_tokens = (page),       \
        .kv_heads = (heads), .group = (per_kv), .head_size = (size), .seed = __LINE__, __VA_ARGS__                     \
    }
#define ALL (GRID_ALIBI | GRID_SINKS | GRID_EVICTED | GRID_NHD | GRID_GAPS | GRID_NEAR_ERROR)

static const grid_shape shapes[] = {
    SHAPE("f32 for f32", F32, F32, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("f16 for f32", F16, F32, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("bf16 for f32", BF16, F32, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("e4m3 for f32", F8_E4M3, F32, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("i8 for f32", I8, F32, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("i4 for f32", I4, F32, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("f32 for f16", F32, F16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("f16 for f16", F16, F16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("bf16 for f16", BF16, F16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("e4m3 for f16", F8_E4M3, F16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("i8 for f16", I8, F16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("i4 for f16", I4, F16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("f32 for bf16", F32, BF16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("f16 for bf16", F16, BF16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("bf16 for bf16", BF16, BF16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("e4m3 for bf16", F8_E4M3, BF16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("i8 for bf16", I8, BF16, 16, 2, 4, 64, DECODE(mixed)),
    SHAPE("i4 for bf16", I4, BF16, 16, 2, 4, 64, DECODE(mixed)),

    SHAPE("pages of 1", F16, F16, 1, 2, 4, 64, DECODE(borders_1)),
    SHAPE("pages of 8", BF16, BF16, 8, 2, 4, 64, DECODE(borders_8)),
    SHAPE("pages of 32", F16, F16, 32, 2, 4, 64, DECODE(borders_32)),
    SHAPE("pages of 64", BF16, BF16, 64, 2, 4, 64, DECODE(borders_64)),
    SHAPE("pages of 128", F16, F16, 128, 1, 4, 64, DECODE(borders_128)),
    SHAPE("chunks, pages of 8", F16, F16, 8, 1, 4, 64, CHUNKS(chunked, chunks)),
    SHAPE("chunks, pages of 64", BF16, BF16, 64, 1, 4, 64, CHUNKS(chunked, chunks)),

    SHAPE("no group", F16, F16, 16, 3, 1, 64, DECODE(two)),
    SHAPE("groups of 2", BF16, BF16, 16, 2, 2, 64, DECODE(two)),
    SHAPE("groups of 3", F16, F16, 16, 3, 3, 64, DECODE(two)),
    SHAPE("groups of 6", BF16, BF16, 16, 1, 6, 64, DECODE(two)),
    SHAPE("groups of 7", F16, F16, 16, 2, 7, 64, DECODE(two)),
    SHAPE("groups of 8", BF16, BF16, 16, 2, 8, 64, DECODE(two)),
    SHAPE("groups of 16", F16, F16, 16, 1, 16, 64, DECODE(two)),
    SHAPE("groups of 20", F16, F16, 16, 2, 20, 64, DECODE(one)),
    SHAPE("chunks, groups of 3", BF16, BF16, 16, 3, 3, 64, CHUNKS(late, late_queries)),

    SHAPE("heads of 80", F16, F16, 16, 2, 4, 80, DECODE(two)),
    SHAPE("heads of 96", BF16, BF16, 16, 2, 4, 96, DECODE(two)),
    SHAPE("heads of 128", F16, F16, 16, 2, 4, 128, DECODE(two)),
    SHAPE("heads of 256", BF16, BF16, 16, 1, 4, 256, DECODE(two)),
    SHAPE("i8 heads of 80", I8, F16, 16, 2, 4, 80, DECODE(two)),
    SHAPE("i4 heads of 96", I4, BF16, 16, 2, 4, 96, DECODE(two)),
    SHAPE("e4m3 heads of 256", F8_E4M3, BF16, 16, 1, 4, 256, DECODE(two)),
    SHAPE("chunks, heads of 128", F16, F16, 16, 1, 4, 128, CHUNKS(late, late_queries)),

    SHAPE("chunks", F16, F16, 16, 2, 4, 64, CHUNKS(chunked, chunks)),
    SHAPE("chunks, e4m3", F8_E4M3, BF16, 16, 1, 4, 64, CHUNKS(chunked, chunks)),
    SHAPE("chunks, i8", I8, F16, 16, 1, 4, 64, CHUNKS(chunked, chunks)),
    SHAPE("a row for each query", BF16, BF16, 16, 2, 4, 64, CHUNKS(chunked, chunks), .features = GRID_ROWS),
    SHAPE("window of 1", F16, F16, 16, 2, 4, 64, DECODE(mixed), .window = 1),
    SHAPE("window of 17", BF16, BF16, 16, 2, 4, 64, DECODE(mixed), .window = 17),
    SHAPE("chunks, window of 21", F16, F16, 16, 1, 4, 64, CHUNKS(chunked, chunks), .window = 21),
    SHAPE("soft cap", BF16, BF16, 16, 2, 4, 64, DECODE(mixed), .soft_cap = 2.5f),
    SHAPE("scale", F16, F16, 16, 2, 4, 64, DECODE(mixed), .scale = 0.25f),
    SHAPE("alibi", F16, F16, 16, 2, 4, 64, DECODE(mixed), .features = GRID_ALIBI),
    SHAPE("chunks, alibi", BF16, BF16, 16, 1, 4, 64, CHUNKS(chunked, chunks), .features = GRID_ALIBI),
    SHAPE("sinks", F16, F16, 16, 2, 4, 64, DECODE(mixed), .features = GRID_SINKS),
    SHAPE("chunks, sinks", BF16, BF16, 16, 1, 4, 64, CHUNKS(chunked, chunks), .features = GRID_SINKS),
    SHAPE("evicted pages", F16, F16, 16, 2, 4, 64, DECODE(mixed), .features = GRID_EVICTED),
    SHAPE("chunks, evicted pages", BF16, BF16, 16, 1, 4, 64, CHUNKS(late, late_queries), .features = GRID_EVICTED),
    SHAPE("masked queries", F16, F16, 16, 1, 4, 64, CHUNKS(late, late_queries), .features = GRID_MASKED),
    SHAPE("masked queries with sinks", BF16, BF16, 16, 1, 4, 64, CHUNKS(late, late_queries),
          .features = GRID_MASKED | GRID_SINKS),
    SHAPE("tokens before heads", F16, F16, 16, 2, 4, 64, DECODE(mixed), .features = GRID_NHD),
    SHAPE("gaps", BF16, BF16, 16, 2, 4, 64, DECODE(mixed), .features = GRID_GAPS),
    SHAPE("gaps, i4", I4, F16, 16, 2, 4, 64, DECODE(mixed), .features = GRID_GAPS | GRID_NHD),
    SHAPE("removal error", F16, F16, 16, 2, 4, 64, DECODE(mixed), .features = GRID_NEAR_ERROR),
    SHAPE("chunks, removal error", BF16, BF16, 16, 1, 4, 64, CHUNKS(chunked, chunks), .features = GRID_NEAR_ERROR),
    SHAPE("all features", F16, F16, 16, 2, 3, 64, DECODE(mixed), .window = 60, .soft_cap = 5, .features = ALL),
    SHAPE("chunks, all features", BF16, BF16, 16, 1, 3, 64, CHUNKS(late, late_queries), .window = 60, .soft_cap = 5,
          .features = ALL | GRID_ROWS),

    SHAPE("logits of 5e5", F16, F16, 16, 2, 4, 64, DECODE(mixed), .scale = 2, .q_size = 8192),
    SHAPE("chunks, logits of 5e5", BF16, BF16, 16, 1, 4, 64, CHUNKS(chunked, chunks), .scale = 2, .q_size = 8192),
    SHAPE("far pages", F16, F16, 16, 1, 4, 64, DECODE(mixed), .features = GRID_FAR),
    SHAPE("chunks, far pages of i8", I8, BF16, 16, 1, 4, 64, CHUNKS(chunked, chunks), .features = GRID_FAR),
    SHAPE("2,048 tokens", F16, F16, 16, 1, 4, 64, DECODE(long_one)),
    SHAPE("4,100 tokens", BF16, BF16, 16, 1, 2, 64, DECODE(longer)),
    SHAPE("one long among short ones", F16, F16, 16, 1, 4, 64, DECODE(skewed)),
    SHAPE("drafts among decodes", BF16, BF16, 16, 1, 4, 64, CHUNKS(drafted, drafts), .features = GRID_ROWS),
};

const grid_shape *grid_shapes(uint32_t *n)
{
    *n = sizeof shapes / sizeof *shapes;
    return shapes;
}

double grid_work(const grid_shape *s)
{
    double pairs = 0;
    for (uint32_t i = 0; i < s->n; i++)
        pairs += (double)s->lengths[i] * (s->queries ? s->queries[i] : 1);
    return pairs * s->kv_heads * s->group * s->head_size;
}
