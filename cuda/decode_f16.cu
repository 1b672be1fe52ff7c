#include "cuda/decode.cuh"
#include "cuda/kernels.cuh"

const decode_kernels decode_f16 = {
    KVK_F16,
    KVK_F16,
    {KVK_DECODE_KERNEL(f16_math, plain_kv, 64), KVK_DECODE_KERNEL(f16_math, plain_kv, 80),
     KVK_DECODE_KERNEL(f16_math, plain_kv, 96), KVK_DECODE_KERNEL(f16_math, plain_kv, 128),
     KVK_DECODE_KERNEL(f16_math, plain_kv, 256)}};
