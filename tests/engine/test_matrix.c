/* Products with matrices: every kind of weights and every kernel, against sums in double precision. */
#include "engine/matrix_panel.h"
#include "engine/tiny_model.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif

enum { MOST_IN = 320, MOST_OUT = 70, MOST_ROWS = 200 };

static float x[MOST_ROWS * MOST_IN], y[MOST_ROWS * MOST_OUT], other[MOST_ROWS * MOST_OUT];
static unsigned char blocks[MOST_OUT * MOST_IN * 4];

/* A tensor of small numbers; of scales and minima too, so that no float is absurd. */
static gguf_tensor make_tensor(uint32_t type, uint32_t n_in, uint32_t n_out)
{
    uint32_t bytes = type == GGUF_Q4_0 ? 18 : type == GGUF_Q4_1 ? 20 : type == GGUF_Q8_0 ? 34 : 128;
    gguf_tensor t = {.type = type, .n_dims = 2, .dims = {n_in, n_out, 1, 1}, .data = blocks};
    t.bytes = (uint64_t)n_in * n_out / 32 * bytes;
    for (uint64_t i = 0; i < t.bytes; i++) {
        uint64_t at = i % bytes;
        blocks[i] = (unsigned char)rand();
        if (type != GGUF_F32 && (at == 1 || (at == 3 && type == GGUF_Q4_1)))
            blocks[i] = (unsigned char)(0x24 + (rand() & 0x83)); /* the high byte of a half: some 2^-6, or minus that */
    }
    for (uint64_t i = 0; type == GGUF_F32 && i < (uint64_t)n_in * n_out; i++)
        ((float *)(void *)blocks)[i] = (float)rand() / (float)RAND_MAX - 0.5F;
    return t;
}

static matrix make_matrix(matrix_kind kind, const gguf_tensor *t)
{
    static float numbers[MOST_IN];
    matrix m = {.kind = kind, .n_in = (uint32_t)t->dims[0], .n_out = (uint32_t)t->dims[1]};
    uint64_t bytes = matrix_panels(&m) * matrix_panel_bytes(kind, m.n_in);
    m.panels = aligned_alloc(64, bytes);
    ck_assert(m.panels != NULL);
    memset(m.panels, 0, bytes);
    for (uint32_t row = 0; row < m.n_out; row++)
        ck_assert_int_eq(matrix_put(&m, row, t, row, numbers), 0);
    return m;
}

static void check_against_double(const gguf_tensor *t, uint32_t rows)
{
    float weights[MOST_IN];
    uint32_t n_in = (uint32_t)t->dims[0], n_out = (uint32_t)t->dims[1];
    for (uint32_t o = 0; o < n_out; o++) {
        ck_assert_int_eq(gguf_row(t, o, weights), 0);
        for (uint32_t r = 0; r < rows; r++) {
            double sum = 0, size = 0;
            for (uint32_t i = 0; i < n_in; i++) {
                sum += (double)weights[i] * (double)x[r * n_in + i];
                size += fabs((double)weights[i] * (double)x[r * n_in + i]);
            }
            if (!(fabs((double)y[r * n_out + o] - sum) <= 1e-5 * size + 1e-9))
                ck_abort_msg("row %u, output %u: %g, not %g", r, o, (double)y[r * n_out + o], sum);
        }
    }
}

static const uint32_t types[] = {GGUF_F32, GGUF_Q4_0, GGUF_Q4_1, GGUF_Q8_0};
static const uint32_t row_counts[] = {1, 2, 3, 5, 12, 13, 25, 96, 97, 200};

enum { N_TYPES = sizeof types / sizeof types[0], N_COUNTS = sizeof row_counts / sizeof row_counts[0] };

static void fill_x(void)
{
    for (uint32_t i = 0; i < MOST_ROWS * MOST_IN; i++)
        x[i] = (float)rand() / (float)RAND_MAX - 0.5F;
}

/* Small whole numbers give the very floats that they stand for. */
START_TEST(products_are_right_and_the_same)
{
    static const uint32_t shapes[][2] = {{32, 16}, {32, 1}, {64, 40}, {288, 70}, {320, 17}};
    fill_x();
    for (uint32_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        gguf_tensor t = make_tensor(types[_i], shapes[k][0], shapes[k][1]);
        matrix small = make_matrix(matrix_kind_of(types[_i]), &t), floats = make_matrix(MATRIX_F32, &t);
        for (uint32_t r = 0; r < N_COUNTS; r++) {
            memset(y, 0xFF, sizeof y);
            matrix_multiply(&small, x, row_counts[r], y);
            matrix_multiply(&floats, x, row_counts[r], other);
            check_against_double(&t, row_counts[r]);
            ck_assert_mem_eq(y, other, (size_t)row_counts[r] * shapes[k][1] * sizeof *y);
        }
        free(small.panels);
        free(floats.panels);
    }
}
END_TEST

/* A vector's product does not depend on how many are multiplied with it, nor on threads. */
START_TEST(company_changes_nothing)
{
    fill_x();
    gguf_tensor t = make_tensor(types[_i], 288, 70);
    matrix m = make_matrix(matrix_kind_of(types[_i]), &t);
    matrix_multiply(&m, x, MOST_ROWS, y);
#ifdef _OPENMP
    omp_set_num_threads(3);
#endif
    matrix_multiply(&m, x, MOST_ROWS, other);
    ck_assert_mem_eq(y, other, sizeof y);
    for (uint32_t r = 0; r < MOST_ROWS; r++) {
        matrix_multiply(&m, x + (size_t)r * 288, 1, other);
        ck_assert_mem_eq(y + (size_t)r * 70, other, 70 * sizeof *y);
    }
    free(m.panels);
}
END_TEST

START_TEST(every_kernel)
{
    const matrix_kernel *const kernels[] = {matrix_kernel_base(), matrix_kernel_avx2(), matrix_kernel_avx512()};
    fill_x();
    gguf_tensor t = make_tensor(types[_i], 288, 70);
    matrix m = make_matrix(matrix_kind_of(types[_i]), &t);
    for (int k = 0; k < 3; k++)
        for (uint32_t rows = 1; kernels[k] && rows <= MATRIX_ROWS; rows++) {
            memset(y, 0xFF, sizeof y);
            for (uint32_t panel = 0; panel < matrix_panels(&m); panel += kernels[k]->panels) {
                uint32_t left = matrix_panels(&m) - panel;
                matrix_part part = {&m, panel, left < kernels[k]->panels ? left : kernels[k]->panels};
                kernels[k]->multiply(&part, x, rows, y);
            }
            check_against_double(&t, rows);
        }
    free(m.panels);
}
END_TEST

START_TEST(numbers_that_are_none_are_refused)
{
    float numbers[64];
    gguf_tensor t = make_tensor(types[_i], 64, 2);
    matrix m = make_matrix(matrix_kind_of(types[_i]), &t);
    uint64_t row = t.bytes / 2;
    memset(blocks + row + (types[_i] == GGUF_F32 ? 0 : row / 2), 0xFF, types[_i] == GGUF_F32 ? 4 : 2);
    ck_assert_int_eq(matrix_put(&m, 0, &t, 0, numbers), 0);
    ck_assert_int_eq(matrix_put(&m, 1, &t, 1, numbers), -1);
    free(m.panels);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("matrix");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, products_are_right_and_the_same, 0, N_TYPES);
    tcase_add_loop_test(t, company_changes_nothing, 0, N_TYPES);
    tcase_add_loop_test(t, every_kernel, 0, N_TYPES);
    tcase_add_loop_test(t, numbers_that_are_none_are_refused, 0, N_TYPES);
    return run_tests("matrix", t);
}
