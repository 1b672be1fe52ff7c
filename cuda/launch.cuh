/* cuda/launch.cuh: launching a kernel that takes one struct. */
#ifndef KVK_CUDA_LAUNCH_CUH
#define KVK_CUDA_LAUNCH_CUH

#include <kvkeep/base.h>

#include <cuda_runtime.h>

#include <cstdint>

struct launch_shape {
    uint32_t blocks, threads, shared_bytes;
};

/* 0 or KVK_EDEVICE. No blocks: nothing to do. */
template <class P> int launch(void (*kernel)(P), const launch_shape &shape, P parameters, void *stream)
{
    void *arguments[] = {&parameters};
    if (shape.blocks == 0)
        return 0;
    if (shape.shared_bytes > 48u * 1024 && cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                                static_cast<int>(shape.shared_bytes)) != cudaSuccess)
        return KVK_EDEVICE;
    cudaError_t error = cudaLaunchKernel(kernel, dim3(shape.blocks), dim3(shape.threads), arguments, shape.shared_bytes,
                                         static_cast<cudaStream_t>(stream));
    return error == cudaSuccess ? 0 : KVK_EDEVICE;
}

#endif
