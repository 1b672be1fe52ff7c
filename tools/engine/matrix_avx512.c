/* matrix_avx512.c: the build compiles this file, and one of attention, for AVX-512. */
#include "engine/matrix_panel.h"

#ifdef __AVX512F__
#define TILE 12
#define PANELS 2
#include "engine/matrix_kernel.h"

const matrix_kernel *matrix_kernel_avx512(void)
{
    static const matrix_kernel kernel = {PANELS, multiply};
    int is_there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return is_there ? &kernel : NULL;
}
#else
const matrix_kernel *matrix_kernel_avx512(void)
{
    return NULL;
}
#endif
