/* Traces of masses for tests: out of arrays, and written as .npy files. */
#ifndef TESTS_UNIT_MASS_MEMORY_H
#define TESTS_UNIT_MASS_MEMORY_H

#include "trace/mass.h"

#include <stdio.h>

/* A trace of arrays [steps][groups][columns] that stay the caller's; `peak` may be NULL. Fills in `pages`, `columns`
 * and `near_heads` of the shape. */
mass_trace *memory_trace(mass_shape shape, const float *mean, const float *peak);

/* Gives a trace of memory_trace needles, which stay the caller's. */
void memory_needles(mass_trace *t, const mass_needle *needles, uint32_t n);

/* Masses [steps][groups][pages] that add up to 1 for each step and group, NAN where no page is yet; some are 0, a few
 * are large. The caller frees them. */
float *random_masses(const mass_shape *shape, uint64_t seed);

/* Appends a .npy header of format 1 with this dictionary, and the values. */
void write_npy_header(FILE *out, const char *dictionary);
void write_npy(FILE *out, const uint64_t shape[3], const float *values);

#endif
