/* Faults that others had (faults.h): the fast attention has none of them. */
#define _DEFAULT_SOURCE /* mmap */
#include "attention/faults.h"
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

START_TEST(no_fault_of_a_shape_is_here)
{
    grid_shape shape = fault_shape((uint32_t)_i);
    grid_check(&shape, GRID_FLOAT, run, NULL);
}
END_TEST

START_TEST(the_newest_page_has_its_mass)
{
    fault_newest_page(KVK_F32, run, NULL);
}
END_TEST

START_TEST(without_a_page_there_is_nothing)
{
    fault_no_page(KVK_F32, run, NULL);
}
END_TEST

/* flash-attention#1000: what is cut into parts is the text, not what the cache could hold. */
START_TEST(a_large_cache_makes_no_more_work)
{
    grid_shape shape = fault_usual();
    shape.features = GRID_FAR;
    grid_case *c = grid_open(&shape);
    kvk_attention_out out;
    kvk_attention_out_init(&out);
    int64_t bytes = kvk_attention_workspace(&c->attention, &out);
    c->kv.n_pages = (uint32_t)c->n_pages; /* all in use; there were 70,000 */
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
    grid_shape shape = fault_usual();
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

int main(void)
{
    TCase *tests = tcase_create("cpu_faults");
    tcase_add_loop_test(tests, no_fault_of_a_shape_is_here, 0, (int)fault_count());
    tcase_add_test(tests, the_newest_page_has_its_mass);
    tcase_add_test(tests, without_a_page_there_is_nothing);
    tcase_add_test(tests, a_large_cache_makes_no_more_work);
    tcase_add_test(tests, nothing_is_read_past_the_page_list);
    return run_tests("cpu_faults", tests);
}
