#include "cuda/decode.cuh"
#include "cuda/kernels.cuh"

const decode_kernels decode_bf16 = {
    KVK_BF16,
    KVK_BF16,
    {KVK_DECODE_KERNEL(bf16_math, plain_kv, 64), KVK_DECODE_KERNEL(bf16_math, plain_kv, 80),
     KVK_DECODE_KERNEL(bf16_math, plain_kv, 96), KVK_DECODE_KERNEL(bf16_math, plain_kv, 128),
     KVK_DECODE_KERNEL(bf16_math, plain_kv, 256)}};
