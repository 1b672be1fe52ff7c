#include "cuda/decode.cuh"
#include "cuda/kernels.cuh"

const decode_kernels decode_bf16_i8 = {
    KVK_I8,
    KVK_BF16,
    {KVK_DECODE_KERNEL(bf16_math, i8_kv, 64), KVK_DECODE_KERNEL(bf16_math, i8_kv, 80),
     KVK_DECODE_KERNEL(bf16_math, i8_kv, 96), KVK_DECODE_KERNEL(bf16_math, i8_kv, 128),
     KVK_DECODE_KERNEL(bf16_math, i8_kv, 256)}};
