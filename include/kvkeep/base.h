/* kvkeep/base.h: what all of kvkeep's headers share: versions, errors, host memory. Included by kvkeep.h. */
#ifndef KVKEEP_BASE_H
#define KVKEEP_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KVK_API __attribute__((visibility("default")))
#else
#define KVK_API
#endif

#define KVK_VERSION_MAJOR 0
#define KVK_VERSION_MINOR 1
#define KVK_VERSION_PATCH 0

/* ---- Errors -------------------------------------------------------------------------------------------------- */

#define KVK_ERRORS(X)                                                                                                  \
    X(KVK_EINVAL, -1, "argument out of range")                                                                         \
    X(KVK_ENOMEM, -2, "out of host memory")                                                                            \
    X(KVK_ENOPAGE, -3, "not enough pages now; later, when others finish")                                              \
    X(KVK_ENEVER, -4, "needs more pages than the pool can ever give")                                                  \
    X(KVK_ESTALE, -5, "handle is not open")                                                                            \
    X(KVK_EBUSY, -6, "in use by a sequence or by a batch in flight")                                                   \
    X(KVK_ESPACE, -7, "an output array is too small")                                                                  \
    X(KVK_ESTATE, -8, "call out of order: see what it needs to come before")                                           \
    X(KVK_EIO, -9, "a writer of the caller's failed")                                                                  \
    X(KVK_EREENTRY, -10, "called from inside a callback of this cache")                                                \
    X(KVK_EFORMAT, -11, "not a saved state that this cache can take")                                                  \
    X(KVK_EDEVICE, -12, "the device's driver refused a launch")

enum kvk_error {
#define KVK_ERROR_ENUM(name, value, text) name = value,
    KVK_ERRORS(KVK_ERROR_ENUM)
#undef KVK_ERROR_ENUM
};

/* The text of an error code; "ok" for values >= 0, "unknown error" for the rest. */
KVK_API const char *kvk_strerror(int error);

/* The name of an error code, "KVK_ENOPAGE"; NULL if there is none. */
KVK_API const char *kvk_error_name(int error);

/* "major.minor.patch" of the library in use. */
KVK_API const char *kvk_version(void);

/* Where host memory comes from. Both functions get `ctx`; alloc returns memory aligned to 16 bytes or NULL; free gets
 * the size that was asked for. */
typedef struct kvk_allocator {
    void *(*alloc)(void *ctx, size_t bytes);
    void (*free)(void *ctx, void *memory, size_t bytes);
    void *ctx;
} kvk_allocator;

#ifdef __cplusplus
}
#endif

#endif
