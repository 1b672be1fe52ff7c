/* cpu_avx512.c: attention with vectors of 64 bytes. The build compiles this file, and no other, for AVX-512. */
#include "attention/cpu.h"

#ifdef __AVX512F__
#define VECTOR_BYTES 64
#include "attention/cpu_finish.h"

const cpu_kernels *cpu_kernels_avx512(void)
{
    static const cpu_kernels kernels = {"avx512", attend_item, merge_block};
    int is_there = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return is_there ? &kernels : NULL;
}
#else
const cpu_kernels *cpu_kernels_avx512(void)
{
    return NULL;
}
#endif
