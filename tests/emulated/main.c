/* main.c: the kernels on the CPU, under one of the emulator's schedulers. */
#include "device/tests.h"
#include "emulated/emulator.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>

static emulator_schedule schedule;
static uint64_t seed = 1;

static void set_schedule(void)
{
    emulator_set(schedule, seed);
}

static int find_schedule(const char *name)
{
    for (schedule = EMULATOR_LOCK_STEP; schedule <= EMULATOR_RANDOM; schedule++)
        if (strcmp(emulator_name(schedule), name) == 0)
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3 || !find_schedule(argv[1])) {
        fprintf(stderr, "usage: %s lock-step|greedy|random [SEED]\n", argv[0]);
        return 2;
    }
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : seed;
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, set_schedule, NULL);
    add_plan_tests(tests);
    add_fault_tests(tests);
    add_append_tests(tests);
    add_moves_tests(tests);
    add_attention_tests(tests);
    return run_tests(argv[1], tests);
}
