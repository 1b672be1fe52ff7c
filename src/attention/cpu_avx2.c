/* cpu_avx2.c: attention with vectors of 32 bytes. The build compiles this file, and no other, for AVX2, FMA and F16C,
 * which no processor has without the others. */
#include "attention/cpu.h"

#ifdef __AVX2__
#define VECTOR_BYTES 32
#include "attention/cpu_finish.h"

const cpu_kernels *cpu_kernels_avx2(void)
{
    static const cpu_kernels kernels = {"avx2", attend_item, merge_block};
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? &kernels : NULL;
}
#else
const cpu_kernels *cpu_kernels_avx2(void)
{
    return NULL;
}
#endif
