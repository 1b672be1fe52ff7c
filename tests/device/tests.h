/* tests.h: what the kernels must pass on every device. */
#ifndef TESTS_DEVICE_TESTS_H
#define TESTS_DEVICE_TESTS_H

#include <check.h>

void add_attention_tests(TCase *tests); /* the grid, against the reference */
void add_fault_tests(TCase *tests);     /* faults of others */
void add_plan_tests(TCase *tests);      /* how work is divided, what is refused */
void add_append_tests(TCase *tests);    /* against kvk_append */
void add_moves_tests(TCase *tests);     /* against kvk_moves_run_host */

#endif
