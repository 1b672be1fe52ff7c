/* The fast attention against the reference: every shape of the grid, with the kernels of every instruction set that
 * this processor has. */
#include "attention/cpu.h"
#include "attention/grid.h"
#include "run_tests.h"

#include <stdlib.h>
#include <string.h>

/* A workspace of what is asked for, all of it NaN before. */
static void *workspace_of(const grid_case *c, const kvk_attention_out *out, int64_t *bytes)
{
    *bytes = kvk_attention_workspace(&c->attention, out);
    ck_assert_int_ge(*bytes, 0);
    void *workspace = aligned_alloc(64, ((size_t)*bytes + 64) / 64 * 64);
    ck_assert_ptr_nonnull(workspace);
    memset(workspace, 0xff, (size_t)*bytes);
    return workspace;
}

static int run(void *kernels, const grid_case *c, const kvk_attention_out *out)
{
    int64_t bytes;
    void *workspace = workspace_of(c, out, &bytes);
    int rc = cpu_attention(kernels, &c->attention, out, workspace, (uint64_t)bytes);
    free(workspace);
    return rc;
}

static void agrees(int i, const cpu_kernels *kernels)
{
    uint32_t n;
    cpu_kernels copy;
    if (!kernels)
        return;
    copy = *kernels;
    grid_check(&grid_shapes(&n)[i], GRID_FLOAT, run, &copy);
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

int main(void)
{
    uint32_t n;
    TCase *tests = tcase_create("cpu");
    grid_shapes(&n);
    tcase_add_loop_test(tests, base_agrees, 0, (int)n);
    tcase_add_loop_test(tests, avx2_agrees, 0, (int)n);
    tcase_add_loop_test(tests, avx512_agrees, 0, (int)n);
    return run_tests("cpu", tests);
}
