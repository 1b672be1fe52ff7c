/* matrix_avx2.c: the build compiles this file, and one of attention, for AVX2 and FMA. */
#include "engine/matrix_panel.h"

#ifdef __AVX2__
#define TILE 6
#define PANELS 1
#include "engine/matrix_kernel.h"

const matrix_kernel *matrix_kernel_avx2(void)
{
    static const matrix_kernel kernel = {PANELS, multiply};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernel : NULL;
}
#else
const matrix_kernel *matrix_kernel_avx2(void)
{
    return NULL;
}
#endif
