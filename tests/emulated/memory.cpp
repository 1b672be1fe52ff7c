/* memory.cpp: the emulated device's memory is the host's. */
#include "device/memory.h"

#include <cstdlib>
#include <cstring>

void *device_take(uint64_t bytes)
{
    void *memory = nullptr;
    if (posix_memalign(&memory, 256, bytes ? bytes : 1) != 0)
        std::abort();
    std::memset(memory, 0xff, bytes);
    return memory;
}

void *device_copy_of(const void *host, uint64_t bytes)
{
    if (!host)
        return nullptr;
    void *copy = device_take(bytes);
    std::memcpy(copy, host, bytes);
    return copy;
}

void *device_borrow(const void *host, uint64_t)
{
    return const_cast<void *>(host);
}

void device_give_back(void *)
{
}

void device_read(void *host, const void *device, uint64_t bytes)
{
    if (host)
        std::memcpy(host, device, bytes);
}

void device_free(void *device)
{
    std::free(device);
}
