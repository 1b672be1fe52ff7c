/* What a model does with vectors, against the same in double precision. */
#include "engine/numbers.h"
#include "run_tests.h"

#include <check.h>
#include <math.h>

enum { MOST = 1003 }; /* no multiple of what goes side by side */

static float x[2 * MOST], y[MOST];

static void spread(float from, float to, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        x[i] = from + (to - from) * (float)i / (float)(n - 1);
}

START_TEST(gates)
{
    spread(-100, 100, MOST);
    for (uint32_t i = 0; i < MOST; i++)
        x[MOST + i] = 1.5F;
    gate(x, 1, MOST, y);
    for (uint32_t i = 0; i < MOST; i++) {
        double want = (double)x[i] / (1 + exp(-(double)x[i])) * 1.5;
        ck_assert_double_eq_tol((double)y[i], want, 5e-7 * fabs(want) + 1e-35);
    }
}
END_TEST

START_TEST(gates_of_several_rows)
{
    for (uint32_t i = 0; i < 8 * 2 * 37; i++)
        x[i] = (float)i / 100;
    gate(x, 8, 37, y);
    for (uint32_t row = 0; row < 8; row++)
        for (uint32_t i = 0; i < 37; i++) {
            double g = (double)x[row * 74 + i], want = g / (1 + exp(-g)) * (double)x[row * 74 + 37 + i];
            ck_assert_double_eq_tol((double)y[row * 37 + i], want, 5e-7 * fabs(want) + 1e-35);
        }
}
END_TEST

START_TEST(likelihoods)
{
    static const uint32_t lengths[] = {1, 2, 7, 8, 9, 512, 513, MOST};
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        double sum = 0;
        spread(-30, 12, MOST);
        for (uint32_t i = 0; i < lengths[k]; i++)
            sum += exp((double)x[i]);
        for (uint32_t token = 0; token < lengths[k]; token += 1 + lengths[k] / 5) {
            double got = negative_log_likelihood(x, lengths[k], token), want = log(sum) - (double)x[token];
            ck_assert_double_eq_tol(got, want, 1e-6 * (1 + fabs(want)));
        }
    }
}
END_TEST

START_TEST(norms)
{
    float weight[37];
    for (uint32_t i = 0; i < 37; i++)
        weight[i] = (float)i / 20;
    spread(-3, 5, 37 * 20);
    rms_norm(x, 20, 37, weight, 1e-5F, y);
    for (uint32_t row = 0; row < 20; row++) {
        double sum = 0;
        for (uint32_t i = 0; i < 37; i++)
            sum += (double)x[row * 37 + i] * (double)x[row * 37 + i];
        for (uint32_t i = 0; i < 37; i++) {
            double want = (double)x[row * 37 + i] / sqrt(sum / 37 + 1e-5) * (double)weight[i];
            ck_assert_double_eq_tol((double)y[row * 37 + i], want, 1e-6 * (1 + fabs(want)));
        }
    }
}
END_TEST

/* Turning by a position and by its factor keeps lengths, and position 0 changes nothing. */
START_TEST(rotations)
{
    model_shape s = {.head_size = 8, .n_rotated = 6, .rope_base = 100, .pairs = MODEL_PAIRS_HALVES};
    float heads[16], before[16], turns[6], factors[3] = {1, 2, 4};
    for (uint32_t i = 0; i < 16; i++)
        before[i] = heads[i] = (float)i + 1;
    rotation_at(&s, NULL, 0, turns);
    rotate(&s, turns, heads, 2);
    ck_assert_mem_eq(heads, before, sizeof heads);
    rotation_at(&s, factors, 5, turns);
    rotate(&s, turns, heads, 2);
    for (uint32_t h = 0; h < 2; h++)
        for (uint32_t i = 0; i < 3; i++) {
            double angle = 5 / pow(100, i / 3.0) / (double)factors[i];
            double a = (double)before[8 * h + i], b = (double)before[8 * h + i + 3];
            ck_assert_double_eq_tol((double)heads[8 * h + i], a * cos(angle) - b * sin(angle), 1e-5);
            ck_assert_double_eq_tol((double)heads[8 * h + i + 3], a * sin(angle) + b * cos(angle), 1e-5);
        }
    ck_assert(heads[6] == 7 && heads[7] == 8 && heads[15] == 16);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("numbers");
    tcase_add_test(t, gates);
    tcase_add_test(t, gates_of_several_rows);
    tcase_add_test(t, likelihoods);
    tcase_add_test(t, norms);
    tcase_add_test(t, rotations);
    return run_tests("numbers", t);
}
