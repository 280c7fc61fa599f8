/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_RUNTIME_H
#define KREGISTRY_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kregistry/cc.h>
#include <kregistry/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * kr_runtime: an opened driver and its devices. One or several a process; all share the loaded
 * libcuda. Safe to use from many threads once created. kr_device pointers live as long as it does.
 *
 * After every call of this library, on every path, the calling thread's current CUDA context is what
 * it was before the call.
 */
typedef struct kr_runtime kr_runtime;
typedef struct kr_device kr_device;

typedef enum kr_log_level { KR_LOG_INFO, KR_LOG_WARNING } kr_log_level;
typedef void (*kr_log_fn)(void *user, kr_log_level level, const char *text);

typedef enum kr_context_mode {
    KR_CONTEXT_PRIMARY = 0, /* the device's primary context: shared with cudart, PyTorch, ... */
    KR_CONTEXT_OWN = 1      /* one cuCtxCreate a device, destroyed with the runtime */
} kr_context_mode;

/* Zero is every field's default. */
typedef struct kr_runtime_options {
    size_t struct_size;
    const char *driver; /* NULL: the NVIDIA driver, looked for where drivers live; else that file alone */
    kr_context_mode contexts;
    void *context;      /* an existing CUcontext to work in: the runtime then has that one device */
    const int *devices; /* ordinals to open, n_devices of them; NULL: every device */
    size_t n_devices;
    kr_log_fn log; /* NULL: nothing is logged. Called from any thread */
    void *log_user;
} kr_runtime_options;

/* Opens the driver, initialises it, finds the devices. Contexts are created or retained when a device
 * is first used, so listing devices costs no device memory.
 * KR_NOT_ON_THIS_MACHINE: no driver (the places tried are in err->log), only the toolkit's link
 * stub, a driver too old, no device. KR_INVALID_ARGUMENT: no such ordinal. */
KR_API kr_status kr_runtime_create(const kr_runtime_options *options, kr_runtime **ret_runtime,
                                   kr_error *err);

/* Releases all contexts that the runtime holds. Everything made from it must be destroyed before.
 * Accepts NULL and a pointer to NULL; nulls the handle. */
KR_API void kr_runtime_destroy(kr_runtime **runtime);

typedef struct kr_driver_info {
    const char *path; /* of the loaded file, as the dynamic linker knows it */
    int version;      /* as cuDriverGetVersion gives it: 13000 for CUDA 13.0 */
    const char *kind; /* "nvidia" or "softcuda" */
} kr_driver_info;

KR_API kr_driver_info kr_runtime_driver(const kr_runtime *runtime);
KR_API size_t kr_runtime_n_devices(const kr_runtime *runtime);

/* The index-th opened device (not the driver's ordinal); NULL past the end. */
KR_API kr_device *kr_runtime_device(const kr_runtime *runtime, size_t index);

/* What the driver says of a device, asked once. */
typedef struct kr_device_info {
    int ordinal;
    char name[256];
    kr_cc cc;
    char uuid[48]; /* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" */
    char pci[16];  /* "0000:01:00.0" */
    size_t memory_bytes;
    int multiprocessors;
    int max_threads_per_block;
    int max_block[3];
    int max_grid[3];
    int max_threads_per_multiprocessor;
    int max_blocks_per_multiprocessor;
    int registers_per_block;
    int registers_per_multiprocessor;
    int shared_bytes_per_block;
    int shared_bytes_per_block_optin;
    int shared_bytes_per_multiprocessor;
    int reserved_shared_bytes_per_block;
    int warp_size;
    int cooperative_launch;
    int memory_pools;
    int integrated;
    bool simulated; /* softcuda's: its kernels run on the CPU */
} kr_device_info;

KR_API const kr_device_info *kr_device_get_info(const kr_device *device);

/* The CUcontext that the library works in on this device; creates or retains it if need be. */
KR_API kr_status kr_device_cucontext(kr_device *device, void **ret_context, kr_error *err);

/* Free and total bytes now. */
KR_API kr_status kr_device_memory(kr_device *device, size_t *ret_free_bytes, size_t *ret_total_bytes,
                                  kr_error *err);

/* Waits until the device has done everything given to it in the library's context. Not while a stream of it is
 * capturing: the driver refuses, and the capture is lost (kr_stream_synchronize leaves it alone). */
KR_API kr_status kr_device_synchronize(kr_device *device, kr_error *err);

/* Can kernels of `device` read and write memory of `peer`? */
KR_API kr_status kr_device_can_access_peer(kr_device *device, kr_device *peer, int *ret_can, kr_error *err);

/* Lets them. Done twice it is done once. Directional. */
KR_API kr_status kr_device_enable_peer(kr_device *device, kr_device *peer, kr_error *err);

#ifdef __cplusplus
}
#endif
#endif
