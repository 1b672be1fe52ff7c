/* Faults that attention of other servers and libraries had, each named after its report: the fast attention has none of
 * them. What they have in common is a shape; so most tests are a shape against the reference. */
#define _DEFAULT_SOURCE /* mmap */
#include "attention/cpu.h"
#include "attention/grid.h"
#include "run_tests.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int run(void *ctx, const grid_case *c, const kvk_attention_out *out)
{
    int64_t bytes = kvk_attention_workspace(&c->attention, out);
    void *workspace = bytes < 0 ? NULL : aligned_alloc(64, ((size_t)bytes + 64) / 64 * 64);
    int rc = workspace ? kvk_attention_cpu(&c->attention, out, workspace, (uint64_t)bytes) : KVK_EINVAL;
    (void)ctx;
    free(workspace);
    return rc;
}

static const uint32_t one[] = {97}, two[] = {54, 97}, all_queries[] = {54, 97}, some[] = {5, 40},
                      none_between[] = {5, 0, 7}, with_drafts[] = {4100}, drafts[] = {3}, windowed[] = {200},
                      windowed_queries[] = {60};

#define TEXTS(lengths_) .n = sizeof(lengths_) / sizeof *(lengths_), .lengths = (lengths_)
#define SHAPE(...)                                                                                                     \
    &(grid_shape)                                                                                                      \
    {                                                                                                                  \
        .name = __func__, .seed = __LINE__, __VA_ARGS__                                                                \
    }

/* What is not set is as in most servers. */
static grid_shape usual(const grid_shape *shape)
{
    grid_shape s = *shape;
    s.dtype = s.dtype ? s.dtype : KVK_F16;
    s.page_tokens = s.page_tokens ? s.page_tokens : 16;
    s.kv_heads = s.kv_heads ? s.kv_heads : 2;
    s.group = s.group ? s.group : 4;
    s.head_size = s.head_size ? s.head_size : 64;
    return s;
}

static void agrees(const grid_shape *shape)
{
    grid_shape s = usual(shape);
    grid_check(&s, GRID_FLOAT, run, NULL);
}

#define FAULT(name, ...)                                                                                               \
    START_TEST(name)                                                                                                   \
    {                                                                                                                  \
        agrees(SHAPE(__VA_ARGS__));                                                                                    \
    }                                                                                                                  \
    END_TEST

/* vllm#47671, #50427, llama.cpp#24912, aiter#4427 */
FAULT(offsets_of_pages_have_64_bits, TEXTS(two), .features = GRID_FAR)
/* aiter#3062 */
FAULT(page_ids_have_more_than_16_bits, TEXTS(one), .features = GRID_FAR | GRID_EVICTED)
/* vllm#641, flash-attention#1745: every unused place of the grid is NaN */
FAULT(nan_in_unused_places_does_no_harm, TEXTS(two))
/* Wan2GP#1628: NaN + -inf is NaN, so what is masked may not be computed with */
FAULT(nan_behind_a_mask_does_no_harm, TEXTS(two), .queries = all_queries, .window = 7)
/* flashinfer#4450: an infinity of 5e4 is smaller than some scores */
FAULT(scores_may_be_larger_than_any_stand_in_for_infinity, TEXTS(two), .scale = 2, .q_size = 8192)
/* llama.cpp#12776: a largest score of -inf after a tile of which a query sees nothing */
FAULT(a_query_may_see_nothing_of_the_first_tile, TEXTS(windowed), .queries = windowed_queries, .group = 1, .window = 4)
/* flashinfer#4051: nothing merged with nothing */
FAULT(queries_that_see_nothing_at_all_have_no_nan, TEXTS(two), .queries = some, .features = GRID_MASKED)
/* pytorch#194167 */
FAULT(every_row_is_written_with_two_parts, TEXTS(with_drafts), .queries = drafts, .features = GRID_ROWS)
/* flash-attention#2842 */
FAULT(a_text_of_no_tokens_takes_no_place, TEXTS(none_between))
/* vllm flash-attention#87 */
FAULT(each_head_has_its_own_lse, TEXTS(two), .kv_heads = 3, .group = 5)
/* TensorRT-LLM#6573, mlc-llm#2543 */
FAULT(groups_may_have_6_heads, TEXTS(two), .group = 6)
FAULT(groups_may_have_more_than_8_heads, TEXTS(two), .group = 12)
/* FreeToken#177 */
FAULT(queries_taken_together_are_of_one_group, TEXTS(two), .queries = some, .kv_heads = 5, .group = 3)
/* flashinfer#4347 */
FAULT(pages_may_have_more_than_128_tokens, TEXTS(windowed), .page_tokens = 144)
/* vllm#47056 */
FAULT(pages_need_not_have_16_tokens, TEXTS(two), .page_tokens = 40)
/* flashinfer#3864 */
FAULT(each_query_has_its_own_window, TEXTS(two), .queries = all_queries, .window = 21)
/* TensorRT-LLM#15739 */
FAULT(sinks_are_for_every_query, TEXTS(two), .queries = some, .features = GRID_SINKS | GRID_ROWS)

/* flashinfer#1023, sglang#24198: a path for each of decode, chunks, odd sizes and removal errors. The grid's scales are
 * not 1. */
START_TEST(scales_of_e4m3_count_on_every_path)
{
    agrees(SHAPE(TEXTS(two), .dtype = KVK_F8_E4M3));
    agrees(SHAPE(TEXTS(two), .dtype = KVK_F8_E4M3, .queries = all_queries));
    agrees(SHAPE(TEXTS(two), .dtype = KVK_F8_E4M3, .head_size = 50));
    agrees(SHAPE(TEXTS(two), .dtype = KVK_F8_E4M3, .features = GRID_NEAR_ERROR));
    agrees(SHAPE(TEXTS(with_drafts), .dtype = KVK_F8_E4M3, .queries = drafts));
}
END_TEST

/* flash-attention#1000: what is cut into parts is the text, not what the cache could hold. */
START_TEST(a_large_cache_makes_no_more_work)
{
    grid_shape shape = usual(SHAPE(TEXTS(two), .features = GRID_FAR));
    grid_case *c = grid_open(&shape);
    kvk_attention_out out;
    kvk_attention_out_init(&out);
    int64_t bytes = kvk_attention_workspace(&c->attention, &out);
    c->kv.n_pages = 2000; /* less than before */
    for (uint64_t i = 0; i < c->n_pages; i++)
        c->pages[i] = (int32_t)i;
    ck_assert_int_eq(kvk_attention_workspace(&c->attention, &out), bytes);
    grid_close(c);
}
END_TEST

/* n numbers that end where memory does. */
static int32_t *at_the_end_of_memory(const int32_t *numbers, uint64_t n)
{
    uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
    ck_assert_uint_le(n * sizeof *numbers, size);
    char *memory = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + size, size, PROT_NONE), 0);
    int32_t *copy = (int32_t *)(void *)(memory + size) - n;
    memcpy(copy, numbers, n * sizeof *numbers);
    return copy;
}

/* vllm flash-attention#42 */
START_TEST(nothing_is_read_past_the_page_list)
{
    grid_shape shape = usual(SHAPE(TEXTS(two)));
    grid_case *c = grid_open(&shape);
    grid_result *r = grid_result_open(c, KVK_F32);
    c->attention.pages = at_the_end_of_memory(c->pages, c->n_pages);
    c->attention.positions = at_the_end_of_memory(c->positions, c->n_pages);
    ck_assert_int_eq(run(NULL, c, &r->out), 0);
    for (uint64_t i = 0; i < r->n_lse; i++)
        ck_assert(isfinite(r->out.lse[i]));
    grid_result_close(r);
    grid_close(c);
}
END_TEST

/* VeloxQuant#141: a page of new tokens without a mass would be evicted at once. With keys of zeroes each token has the
 * same share. */
START_TEST(the_newest_page_has_its_mass)
{
    grid_shape shape = usual(SHAPE(TEXTS(one)));
    grid_case *c = grid_open(&shape);
    grid_result *r = grid_result_open(c, KVK_F32);
    memset(c->kv.base, 0, c->kv_bytes);
    ck_assert_int_eq(run(NULL, c, &r->out), 0);
    ck_assert_double_eq_tol((double)r->out.peak[c->n_pages - 1], 1.0 / 97,
                            1e-6); /* 97 tokens, 1 of them in the 7th page */
    ck_assert_double_eq_tol((double)r->out.peak[0], 16.0 / 97, 1e-6);
    grid_result_close(r);
    grid_close(c);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("cpu_faults");
    tcase_add_test(tests, offsets_of_pages_have_64_bits);
    tcase_add_test(tests, page_ids_have_more_than_16_bits);
    tcase_add_test(tests, nan_in_unused_places_does_no_harm);
    tcase_add_test(tests, nan_behind_a_mask_does_no_harm);
    tcase_add_test(tests, scores_may_be_larger_than_any_stand_in_for_infinity);
    tcase_add_test(tests, a_query_may_see_nothing_of_the_first_tile);
    tcase_add_test(tests, queries_that_see_nothing_at_all_have_no_nan);
    tcase_add_test(tests, every_row_is_written_with_two_parts);
    tcase_add_test(tests, a_text_of_no_tokens_takes_no_place);
    tcase_add_test(tests, each_head_has_its_own_lse);
    tcase_add_test(tests, groups_may_have_6_heads);
    tcase_add_test(tests, groups_may_have_more_than_8_heads);
    tcase_add_test(tests, queries_taken_together_are_of_one_group);
    tcase_add_test(tests, pages_may_have_more_than_128_tokens);
    tcase_add_test(tests, pages_need_not_have_16_tokens);
    tcase_add_test(tests, each_query_has_its_own_window);
    tcase_add_test(tests, sinks_are_for_every_query);
    tcase_add_test(tests, scales_of_e4m3_count_on_every_path);
    tcase_add_test(tests, a_large_cache_makes_no_more_work);
    tcase_add_test(tests, nothing_is_read_past_the_page_list);
    tcase_add_test(tests, the_newest_page_has_its_mass);
    return run_tests("cpu_faults", tests);
}
