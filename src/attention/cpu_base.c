/* cpu_base.c: attention with vectors of 16 bytes, for what every processor of the architecture has. */
#define VECTOR_BYTES 16
#include "attention/cpu_finish.h"

const cpu_kernels *cpu_kernels_base(void)
{
    static const cpu_kernels kernels = {"base", attend_item, merge_block};
    return &kernels;
}
