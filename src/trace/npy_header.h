/* trace/npy_header.h: the dictionary at the head of a .npy file. */
#ifndef KVKEEP_TRACE_NPY_HEADER_H
#define KVKEEP_TRACE_NPY_HEADER_H

#include "trace/npy.h"

/* Sets npy->type, n_axes and shape from a text such as "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
 * with each of the three once, in any order. 0 or TRACE_BAD_INPUT. */
int npy_header_parse(npy_reader *npy, const char *text, trace_error *error);

#endif
