/* bench/yardsticks.h: what the machine can do at best: read memory, and multiply matrices. */
#ifndef KVKEEP_TOOLS_BENCH_YARDSTICKS_H
#define KVKEEP_TOOLS_BENCH_YARDSTICKS_H

#include "kvkeep/bench/bench.h"

/* Reads bytes, and fetches as many at `next`, which are read next; NULL: leaves that to the processor, which does it
 * better where all is read in order. Returns something that depends on all of them. */
uint64_t bench_read(const char *from, uint64_t bytes, const char *next);

/* Seconds in which all threads read so many bytes, a multiple of 64 KB, from the first to the last. */
double bench_read_stream(const char *from, uint64_t bytes);

#if KVK_HAVE_OPENBLAS
#define BENCH_SGEMM 1536u

/* Matrices to multiply; NULL without memory. To be freed. */
float *bench_sgemm_open(void);

/* Operations per nanosecond of OpenBLAS' product of two square matrices of BENCH_SGEMM. */
double bench_sgemm(float *matrices);
#endif

#endif
