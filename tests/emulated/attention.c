/* attention.c: the kernels on the CPU against the reference, under one of the emulator's schedulers. */
#include "device/on_device.h"
#include "emulated/emulator.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>

static emulator_schedule schedule;

/* Parts as the batch suggests, and parts as short as can be. */
START_TEST(a_shape_of_the_grid_agrees)
{
    uint32_t n, split_tokens = (uint32_t)_i % 2;
    const grid_shape *shape = &grid_shapes(&n)[_i / 2];
    if (!shape_is_for_device(shape))
        return;
    emulator_set(schedule, (uint64_t)_i + 1);
    grid_check(shape, device_precision(shape), attention_on_device, &split_tokens);
}
END_TEST

static int find_schedule(const char *name)
{
    for (schedule = EMULATOR_LOCK_STEP; schedule <= EMULATOR_RANDOM; schedule++)
        if (strcmp(emulator_name(schedule), name) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t n;
    if (argc != 2 || !find_schedule(argv[1])) {
        fprintf(stderr, "usage: %s lock-step|greedy|random\n", argv[0]);
        return 2;
    }
    TCase *tests = tcase_create("attention");
    grid_shapes(&n);
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, a_shape_of_the_grid_agrees, 0, (int)n * 2);
    return run_tests(argv[1], tests);
}
