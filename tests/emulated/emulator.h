/* emulator.h: who runs when, among the threads of an emulated launch. */
#ifndef TESTS_EMULATED_EMULATOR_H
#define TESTS_EMULATED_EMULATOR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum emulator_schedule {
    EMULATOR_LOCK_STEP = 0, /* every thread in turn, to its next stop: what hides most mistakes */
    EMULATOR_GREEDY = 1,    /* the warp of the highest priority, drawn at every barrier: others starve while they can */
    EMULATOR_RANDOM = 2     /* any thread; copies land at once or late */
} emulator_schedule;

/* For the launches that follow. */
void emulator_set(emulator_schedule schedule, uint64_t seed);

/* Runs what was launched, in order. */
void emulator_finish(void);

/* "lock-step", "greedy", "random". */
const char *emulator_name(emulator_schedule schedule);

#ifdef __cplusplus
}
#endif

#endif
