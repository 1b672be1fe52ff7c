/* cuda_runtime.h: what the kernels in cuda/ use of CUDA C++, for a C++ compiler and a CPU.
 *
 * Every CUDA thread is a fiber. A fiber runs until it comes to a barrier, a warp-wide operation or an atomic one; who
 * is next is the scheduler's choice (emulator.h). Blocks run a few at a time. What a kernel may not rely on goes wrong
 * here: shared memory begins as NaN, warps are not in step but at warp-wide operations, asynchronous copies
 * (emulated_copy) land as late as they may, or at once, and no launch begins before somebody waits for it. */
#ifndef TESTS_EMULATED_CUDA_RUNTIME_H
#define TESTS_EMULATED_CUDA_RUNTIME_H

#include <cstddef>
#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};

struct alignas(8) float2 {
    float x, y;
};

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

/* ---- The running thread */

struct emulated_place {
    dim3 thread, block, block_size, grid_size;
};

const emulated_place &emulated_here();
#define threadIdx (emulated_here().thread)
#define blockIdx (emulated_here().block)
#define blockDim (emulated_here().block_size)
#define gridDim (emulated_here().grid_size)

unsigned char *emulated_shared_memory();

/* All threads of the warp come with a pointer to what they bring; the last one does `operation` for all of them. */
typedef void (*emulated_operation)(void *const lanes[32]);
void emulated_together(emulated_operation operation, void *mine);

void emulated_yield();

/* An asynchronous copy of bytes, or of zeroes, into shared memory. Copies of a group that was waited for have landed
 * after the barrier that follows, where other threads may rely on them. */
void emulated_copy(void *to, const void *from, unsigned bytes, bool is_valid);
void emulated_copy_commit();
void emulated_copy_wait(unsigned groups_left);

void __syncthreads();
void __syncwarp();
void __threadfence();

/* ---- Warp-wide operations, of all 32 lanes */

template <class T> struct emulated_shuffle {
    T value, result;
    unsigned from;

    static void run(void *const lanes[32])
    {
        for (int i = 0; i < 32; i++) {
            emulated_shuffle *mine = static_cast<emulated_shuffle *>(lanes[i]);
            mine->result = static_cast<emulated_shuffle *>(lanes[mine->from % 32])->value;
        }
    }
};

template <class T> T __shfl_sync(unsigned, T value, unsigned from)
{
    emulated_shuffle<T> s = {value, value, from};
    emulated_together(emulated_shuffle<T>::run, &s);
    return s.result;
}

template <class T> T __shfl_xor_sync(unsigned mask, T value, unsigned distance)
{
    return __shfl_sync(mask, value, (threadIdx.x % 32) ^ distance);
}

template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned distance)
{
    unsigned lane = threadIdx.x % 32;
    return __shfl_sync(mask, value, lane < distance ? lane : lane - distance);
}

int __any_sync(unsigned mask, int predicate);

/* ---- Atomic operations */

template <class T> T atomicAdd(T *at, T value)
{
    emulated_yield();
    T before = *at;
    *at = before + value;
    return before;
}

template <class T> T atomicMax(T *at, T value)
{
    emulated_yield();
    T before = *at;
    *at = before < value ? value : before;
    return before;
}

/* ---- What a host calls */

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount };
typedef struct emulated_stream *cudaStream_t;

cudaError_t cudaGetDevice(int *device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetLastError();

template <class F> cudaError_t cudaFuncSetAttribute(F *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}

struct emulated_launch {
    dim3 grid, block;
    size_t shared_bytes;
    void (*run)(void *kernel, void *argument);
    void *kernel, *argument;
};

/* The argument is copied now; the kernel runs when somebody waits for it (emulator_finish). */
cudaError_t emulated_run_later(const emulated_launch &launch, size_t argument_bytes);

/* Kernels here have one parameter. */
template <class P>
cudaError_t cudaLaunchKernel(void (*kernel)(P), dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t)
{
    auto run = [](void *k, void *argument) { reinterpret_cast<void (*)(P)>(k)(*static_cast<P *>(argument)); };
    return emulated_run_later({grid, block, shared_bytes, run, reinterpret_cast<void *>(kernel), arguments[0]},
                              sizeof(P));
}

#endif
