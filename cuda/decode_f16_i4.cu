#include "cuda/decode.cuh"
#include "cuda/kernels.cuh"

const decode_kernels decode_f16_i4 = {KVK_I4,
                                      KVK_F16,
                                      {KVK_DECODE_KERNEL(f16_math, i4_kv, 64),
                                       {NULL, {}} /* 40 bytes: rows would not begin at multiples of 16 */,
                                       KVK_DECODE_KERNEL(f16_math, i4_kv, 96),
                                       KVK_DECODE_KERNEL(f16_math, i4_kv, 128),
                                       KVK_DECODE_KERNEL(f16_math, i4_kv, 256)}};
