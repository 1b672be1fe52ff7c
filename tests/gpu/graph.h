/* graph.h: what only a real device has. */
#ifndef TESTS_GPU_GRAPH_H
#define TESTS_GPU_GRAPH_H

#include <check.h>

void add_graph_tests(TCase *tests); /* launches that are captured and replayed */

#endif
