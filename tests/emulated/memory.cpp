/* memory.cpp: the emulated device's memory is the host's. */
#include "device/memory.h"
#include "emulated/emulator.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

/* Memory that ends with a page that nobody may touch. */
struct mapping {
    unsigned char *at;
    uint64_t bytes; /* without that page */
};

std::map<void *, mapping> guarded; /* by the address handed out */

mapping map_guarded(uint64_t bytes)
{
    uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), whole = (bytes + page - 1) / page * page;
    void *at = mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mapping m = {static_cast<unsigned char *>(at), whole};
    if (at == MAP_FAILED || mprotect(m.at + whole, page, PROT_NONE) != 0)
        std::abort();
    return m;
}

bool unmap(void *memory)
{
    auto found = guarded.find(memory);
    if (found == guarded.end())
        return false;
    munmap(found->second.at, found->second.bytes + static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
    guarded.erase(found);
    return true;
}

} // namespace

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

void *device_copy_at_end(const void *host, uint64_t bytes)
{
    if (!host)
        return nullptr;
    mapping m = map_guarded(bytes);
    void *copy = m.at + m.bytes - bytes;
    std::memcpy(copy, host, bytes);
    guarded[copy] = m;
    return copy;
}

void *device_borrow(const void *host, uint64_t)
{
    return const_cast<void *>(host);
}

void device_give_back(void *)
{
    emulator_finish();
}

void device_read(void *host, const void *device, uint64_t bytes)
{
    emulator_finish();
    if (host)
        std::memcpy(host, device, bytes);
}

void device_free(void *device)
{
    emulator_finish();
    if (!unmap(device))
        std::free(device);
}
