/* memory.h: memory of the device that tests of cuda/ run on: an emulated one (tests/emulated), or a GPU (tests/gpu).
 * A failure ends the test. */
#ifndef TESTS_DEVICE_MEMORY_H
#define TESTS_DEVICE_MEMORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of 0xff, aligned to 256. */
void *device_take(uint64_t bytes);

/* The same with what host memory holds; NULL of NULL. */
void *device_copy_of(const void *host, uint64_t bytes);

/* A copy that ends where memory does, so that what is read past it is found, as far as the device can; aligned to 4. */
void *device_copy_at_end(const void *host, uint64_t bytes);

/* A copy of memory that is only read, and may be large: it may be the host's own, so it must stay. NULL of NULL. */
void *device_borrow(const void *host, uint64_t bytes);
void device_give_back(void *device);

/* Waits for what was launched, and copies. */
void device_read(void *host, const void *device, uint64_t bytes);

/* Waits too. */
void device_free(void *device);

#ifdef __cplusplus
}
#endif

#endif
