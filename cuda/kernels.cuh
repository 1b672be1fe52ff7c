/* cuda/kernels.cuh: the kernels of decode, each file of them by head size. */
#ifndef KVK_CUDA_KERNELS_CUH
#define KVK_CUDA_KERNELS_CUH

#include "cuda/launch.cuh"
#include "cuda/work.cuh"

struct decode_kernel {
    void (*kernel)(decode_parameters); /* NULL: there is none */
    launch_shape shape;                /* blocks left open */
};

/* For K and V stored as `kv_dtype` and queries of `dtype`. */
struct decode_kernels {
    uint32_t kv_dtype, dtype;
    decode_kernel by_size[5]; /* heads of 64, 80, 96, 128, 256 */
};

extern const decode_kernels decode_f16, decode_f16_e4m3, decode_f16_i8, decode_f16_i4;
extern const decode_kernels decode_bf16, decode_bf16_e4m3, decode_bf16_i8, decode_bf16_i4;

#define KVK_DECODE_KERNEL(M, KV, SIZE)                                                                                 \
    {                                                                                                                  \
        decode<decode_shape<M, KV<M>, SIZE>>,                                                                          \
        {                                                                                                              \
            0, decode_shape<M, KV<M>, SIZE>::threads, decode_shape<M, KV<M>, SIZE>::shared_bytes                       \
        }                                                                                                              \
    }

#endif
