/* memory.c: memory of the CUDA device that tests run on. */
#include "device/memory.h"

#include <check.h>
#include <cuda_runtime_api.h>

static void succeeds(cudaError_t rc)
{
    ck_assert_msg(rc == cudaSuccess, "CUDA: %s", cudaGetErrorString(rc));
}

void *device_take(uint64_t bytes)
{
    void *memory = NULL;
    succeeds(cudaMalloc(&memory, bytes ? bytes : 1));
    succeeds(cudaMemset(memory, 0xff, bytes ? bytes : 1));
    return memory;
}

void *device_copy_of(const void *host, uint64_t bytes)
{
    if (!host)
        return NULL;
    void *copy = device_take(bytes);
    succeeds(cudaMemcpy(copy, host, bytes, cudaMemcpyHostToDevice));
    return copy;
}

/* What follows is read as NaN, and as ids of pages that are far outside. */
void *device_copy_at_end(const void *host, uint64_t bytes)
{
    if (!host)
        return NULL;
    void *copy = device_take(bytes + 4096);
    succeeds(cudaMemcpy(copy, host, bytes, cudaMemcpyHostToDevice));
    return copy;
}

void *device_borrow(const void *host, uint64_t bytes)
{
    return device_copy_of(host, bytes);
}

void device_give_back(void *device)
{
    device_free(device);
}

void device_read(void *host, const void *device, uint64_t bytes)
{
    succeeds(cudaDeviceSynchronize());
    if (host)
        succeeds(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
}

void device_free(void *device)
{
    succeeds(cudaFree(device));
}
