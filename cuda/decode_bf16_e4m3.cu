#include "cuda/decode.cuh"
#include "cuda/kernels.cuh"

const decode_kernels decode_bf16_e4m3 = {
    KVK_F8_E4M3,
    KVK_BF16,
    {KVK_DECODE_KERNEL(bf16_math, e4m3_kv, 64), KVK_DECODE_KERNEL(bf16_math, e4m3_kv, 80),
     KVK_DECODE_KERNEL(bf16_math, e4m3_kv, 96), KVK_DECODE_KERNEL(bf16_math, e4m3_kv, 128),
     KVK_DECODE_KERNEL(bf16_math, e4m3_kv, 256)}};
