/* faults.c: the shapes, and what else it takes. */
#include "attention/faults.h"

#include <check.h>
#include <math.h>
#include <string.h>

/* Texts long enough for several parts: 4,100 tokens on the CPU, 97 where parts are as short as can be. */
static const uint32_t one[] = {97}, two[] = {54, 97}, all_queries[] = {54, 97}, some[] = {5, 40},
                      none_between[] = {0, 5, 0, 7, 0}, in_parts[] = {4100, 97}, drafts[] = {3, 3}, windowed[] = {200},
                      windowed_queries[] = {60}, same_prefix[] = {97, 54, 97, 130};

#define TEXTS(lengths_) .n = sizeof(lengths_) / sizeof *(lengths_), .lengths = (lengths_)
#define FAULT(title, ...)                                                                                              \
    {                                                                                                                  \
        .name = title, .seed = __LINE__, __VA_ARGS__                                                                   \
    }

static const grid_shape faults[] = {
    /* vllm#47671, #50427, llama.cpp#24912, aiter#4427 */
    FAULT("offsets of pages have 64 bits", TEXTS(two), .features = GRID_FAR),
    /* aiter#3062 */
    FAULT("page ids have more than 16 bits", TEXTS(one), .features = GRID_FAR | GRID_EVICTED),
    /* vllm#641, flash-attention#1745: every unused place of the grid is NaN */
    FAULT("NaN in unused places does no harm", TEXTS(two)),
    /* Wan2GP#1628: NaN + -inf is NaN, so what is masked may not be computed with */
    FAULT("NaN behind a mask does no harm", TEXTS(two), .queries = all_queries, .window = 7),
    /* flashinfer#4450: an infinity of 5e4 is smaller than some scores; what is masked would win over scores of -5e5 */
    FAULT("scores may be larger than any stand-in for infinity", TEXTS(two), .queries = all_queries, .scale = 2,
          .q_size = 8192),
    /* llama.cpp#12776: a largest score of -inf after a tile, a warp or a part of which a query sees nothing */
    FAULT("a query may see nothing of the first tokens", TEXTS(windowed), .queries = windowed_queries, .group = 1,
          .window = 4),
    /* flashinfer#4051: nothing merged with nothing */
    FAULT("a query may see nothing at all", TEXTS(two), .queries = some, .features = GRID_MASKED),
    /* pytorch#194167 */
    FAULT("every row is written where there are parts", TEXTS(in_parts), .queries = drafts, .features = GRID_ROWS),
    /* flash-attention#2842 */
    FAULT("a text of no tokens takes no place", TEXTS(none_between)),
    /* vllm flash-attention#87 */
    FAULT("each head has its own lse", TEXTS(two), .kv_heads = 3, .group = 5),
    /* TensorRT-LLM#6573, mlc-llm#2543 */
    FAULT("groups may have 6 heads", TEXTS(two), .group = 6),
    FAULT("groups may have 6 heads in chunks", TEXTS(two), .queries = some, .group = 6),
    FAULT("groups may have more than 8 heads", TEXTS(two), .group = 12),
    FAULT("groups may have more heads than a tile", TEXTS(two), .group = 20),
    /* FreeToken#177 */
    FAULT("rows taken together are of one group", TEXTS(two), .queries = some, .kv_heads = 5, .group = 3),
    /* flashinfer#4347 */
    FAULT("pages may have more than 128 tokens", TEXTS(windowed), .page_tokens = 144),
    /* vllm#47056 */
    FAULT("pages may have 4 tokens", TEXTS(two), .page_tokens = 4),
    FAULT("pages may have 40 tokens", TEXTS(two), .page_tokens = 40),
    FAULT("pages may have 48 tokens", TEXTS(two), .page_tokens = 48),
    /* flashinfer#1023, sglang#24198: a path for each of decode, chunks, sizes, removal errors and parts; the grid's
     * scales are not 1 */
    FAULT("scales of e4m3 count in decode", TEXTS(two), .dtype = KVK_F8_E4M3),
    FAULT("scales of e4m3 count in chunks", TEXTS(two), .dtype = KVK_F8_E4M3, .queries = all_queries),
    FAULT("scales of e4m3 count in heads of 50", TEXTS(two), .dtype = KVK_F8_E4M3, .head_size = 50),
    FAULT("scales of e4m3 count in heads of 80", TEXTS(two), .dtype = KVK_F8_E4M3, .head_size = 80),
    FAULT("scales of e4m3 count in errors", TEXTS(two), .dtype = KVK_F8_E4M3, .features = GRID_NEAR_ERROR),
    FAULT("scales of e4m3 count in parts", TEXTS(in_parts), .dtype = KVK_F8_E4M3, .queries = drafts),
    FAULT("scales of i8 count in errors", TEXTS(two), .dtype = KVK_I8, .features = GRID_NEAR_ERROR),
    FAULT("scales of i4 count in errors", TEXTS(two), .dtype = KVK_I4, .queries = some, .features = GRID_NEAR_ERROR),
    /* flashinfer#3864 */
    FAULT("each query has its own window", TEXTS(two), .queries = all_queries, .window = 21),
    FAULT("a draft does not see those after it", TEXTS(two), .queries = drafts, .features = GRID_ROWS),
    /* TensorRT-LLM#15739 */
    FAULT("sinks are for every query", TEXTS(two), .queries = some, .features = GRID_SINKS | GRID_ROWS),
    FAULT("sinks count once where there are parts", TEXTS(in_parts), .queries = drafts, .features = GRID_SINKS),
    /* masses are an entry's, not a page's */
    FAULT("a page of several texts has a mass from each", TEXTS(same_prefix), .features = GRID_SHARED),
};

/* What is not set is as in most servers. */
static grid_shape completed(grid_shape s)
{
    s.dtype = s.dtype ? s.dtype : KVK_F16;
    s.page_tokens = s.page_tokens ? s.page_tokens : 16;
    s.kv_heads = s.kv_heads ? s.kv_heads : 2;
    s.group = s.group ? s.group : 4;
    s.head_size = s.head_size ? s.head_size : 64;
    return s;
}

uint32_t fault_count(void)
{
    return sizeof faults / sizeof *faults;
}

grid_shape fault_shape(uint32_t fault)
{
    return completed(faults[fault]);
}

grid_shape fault_usual(void)
{
    return completed((grid_shape)FAULT("as in most servers", TEXTS(two)));
}

/* VeloxQuant#141: a page of new tokens without a mass would be evicted at once. With keys of zeroes each token has the
 * same share. */
void fault_newest_page(kvk_dtype q_dtype, grid_version version, void *ctx)
{
    grid_shape shape = fault_usual();
    shape.q_dtype = q_dtype;
    grid_case *c = grid_open(&shape);
    grid_result *r = grid_result_open(c, KVK_F32);
    memset(c->kv.base, 0, c->kv_bytes);
    ck_assert_int_eq(version(ctx, c, &r->out), 0);
    const float *peak = r->out.peak + c->indptr[1];
    ck_assert_double_eq_tol((double)peak[6], 1.0 / 97, 1e-6); /* 97 tokens, 1 of them in the 7th page */
    ck_assert_double_eq_tol((double)peak[0], 16.0 / 97, 1e-6);
    grid_result_close(r);
    grid_close(c);
}

static void is_nothing(const grid_case *c, const grid_result *r)
{
    for (uint64_t i = 0; i < r->o_elements; i++)
        ck_assert(((const float *)r->out.o)[i] == 0);
    for (uint64_t i = 0; i < c->n_queries * c->n_heads; i++)
        ck_assert(r->out.lse[i] == -HUGE_VALF);
}

/* flashinfer#4051 once more: of texts whose pages are all gone every row is written, and is nothing. */
void fault_no_page(kvk_dtype q_dtype, grid_version version, void *ctx)
{
    grid_shape shape = fault_usual();
    shape.q_dtype = q_dtype;
    shape.queries = some;
    shape.features = GRID_EVICTED;
    grid_case *c = grid_open(&shape);
    c->indptr[1] = c->indptr[2] = 0;
    c->n_pages = c->n_mean = c->n_near = 0;
    grid_result *r = grid_result_open(c, KVK_F32);
    ck_assert_int_eq(version(ctx, c, &r->out), 0);
    is_nothing(c, r);
    grid_result_close(r);
    grid_close(c);
}
