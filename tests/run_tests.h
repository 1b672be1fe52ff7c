/* The end of every main of tests: one suite with one case, run. */
#ifndef TESTS_RUN_TESTS_H
#define TESTS_RUN_TESTS_H

#include <check.h>
#include <stdlib.h>

/* Takes the case over. Returns what main returns. CK_VERBOSITY in the environment says how much is printed. */
static inline int run_tests(const char *name, TCase *tests)
{
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, tests);
    SRunner *run = srunner_create(suite);
    srunner_run_all(run, CK_ENV);
    int failed = srunner_ntests_failed(run);
    srunner_free(run);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
