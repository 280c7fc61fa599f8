/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_RUNTIME_INTERNAL_H
#define KR_RUNTIME_INTERNAL_H

/* What the runtime's own files and the registry know of each other's objects. */

#include <pthread.h>
#include <stdatomic.h>

#include <kregistry/module.h>

#include "ptx/image/image.h"
#include "runtime/driver/driver.h"

struct kr_stream {
    kr_device *device;
    CUstream custream;
    bool owned;
};

struct kr_event {
    kr_device *device;
    CUevent cuevent;
    bool timing;
};

struct kr_device {
    kr_runtime *runtime;
    kr__driver *driver;
    CUdevice cudevice;
    kr_device_info info;
    kr_stream default_stream;
    pthread_mutex_t lock;       /* makes the context; under it `launched` is read, and kernels are freed */
    _Atomic(CUcontext) context; /* NULL until first used */
    _Atomic(const kr_kernel *) launched; /* last: the first to suspect after a fault. NULL: it is gone */
};

struct kr_runtime {
    kr__driver *driver;
    kr__log log;
    kr_context_mode contexts;
    bool adopted; /* the context of devices[0] is the caller's */
    size_t n_devices;
    kr_device devices[];
};

struct kr_buffer {
    kr_device *device;
    CUdeviceptr pointer; /* 0 for 0 bytes */
    size_t bytes;
    bool owned;
};

/*
 * An image, loaded once for all devices where the driver has libraries (CUDA 12.0): PTX is then compiled once
 * a compute capability, not once a device. Each module made of it holds it. `image` must stay valid until the
 * last kr__code_load. Safe from many threads.
 */
typedef struct kr__code kr__code;
kr_status kr__code_create(kr__driver *driver, const void *image, size_t image_bytes, const char *name,
                          kr__code **ret_code, kr_error *err);
void kr__code_release(kr__code **code);
kr_status kr__code_load(kr__code *code, kr_device *device, kr_module **ret_module, kr_error *err);

struct kr_module {
    kr_device *device;
    kr__code *code;
    bool in_library; /* the module is the library's: unloaded with it */
    CUmodule cumodule;
    pthread_mutex_t lock; /* guards kernels, and the raising of their shared memory */
    kr_kernel *kernels;
    const char *name; /* the code's, for messages */
};

struct kr_kernel {
    kr_device *device;
    kr_module *module;
    CUfunction cufunction;
    kr_kernel_info info;
    atomic_int allowed_dynamic_bytes; /* shared memory; only ever raised */
    int n_params;                     /* -1: the driver cannot tell */
    struct kr__param_place {
        size_t offset_bytes, bytes;
    } * params; /* n_params of them */
    struct kr_kernel *next;
    char name[];
};

/* ---- context scope (context.c) ---- */

/* The device's context is the current one between begin and end; after end the caller's is what it was. Free
 * of driver calls but one when it is current already. begin also answers for a driver that is lost or forked,
 * and a scope whose begin failed needs no end. */
typedef struct kr__scope {
    kr__driver *driver;
    CUcontext previous;
    bool pushed, relaxed;
    CUstreamCaptureMode capture_mode; /* of the thread before it was relaxed */
} kr__scope;
kr_status kr__scope_begin(kr__scope *scope, kr_device *device, kr_error *err);
void kr__scope_end(kr__scope *scope);

/* For allocating, loading and giving back, until the scope ends: they are no work in a stream, so a capture
 * that is going on, in this thread or another, neither forbids them nor is ended by them. */
void kr__scope_relax(kr__scope *scope);

/* The same for destroy paths: false when there is nothing left to give back to (no context yet, a fault, a
 * fork, a driver that has shut down). */
bool kr__scope_begin_destroy(kr__scope *scope, kr_device *device);

/* Creates or retains the context if need be. */
kr_status kr__device_context(kr_device *device, CUcontext *ret_context, kr_error *err);
/* Gives it back. */
void kr__device_release(kr_device *device);

/* Makes a context current that is not a device's. */
kr_status kr__scope_push(kr__scope *scope, kr__driver *driver, CUcontext context, kr_error *err);

/* Fills err from a driver's answer to a call on this device. */
#define KR_DEVICE_FAIL(err, device_, result, function, ...) \
    kr__device_fail((err), (device_), (result), (function), __FILE__, __LINE__, __VA_ARGS__)
kr_status kr__device_fail(kr_error *err, kr_device *device, CUresult result, const char *function,
                          const char *file, int line, const char *format, ...) KR_PRINTF(7, 8);

/* One driver call in the device's context, scope and error included:
 *     return KR_CALL(err, device, cuStreamSynchronize, (custream), "waiting for a stream failed"); */
#define KR_CALL(err, device, function, arguments, ...)                                      \
    ({                                                                                      \
        kr__scope scope_;                                                                   \
        kr_status status_ = kr__scope_begin(&scope_, (device), (err));                      \
        if (status_ == KR_OK) {                                                             \
            const CUresult result_ = (device)->driver->function arguments;                  \
            kr__scope_end(&scope_);                                                         \
            if (result_ != CUDA_SUCCESS)                                                    \
                status_ = KR_DEVICE_FAIL((err), (device), result_, #function, __VA_ARGS__); \
        }                                                                                   \
        status_;                                                                            \
    })

/* The kernel will be gone: no message of a fault may name it from now on. */
void kr__device_forget_launch(const kr_kernel *kernel);

/* Fills the device's info from the driver. */
kr_status kr__device_init(kr_device *device, kr_runtime *runtime, CUdevice cudevice, int ordinal,
                          kr_error *err);

/* Reads an options struct whose caller may be of another version: what it lacks is zero; what it has and this
 * library does not know must be zero. */
#define KR_OPTIONS(err, options, own) kr__options((err), (options), &(own), sizeof(own))
kr_status kr__options(kr_error *err, const void *options, void *own, size_t own_bytes);

/* ---- streams (stream.c) ---- */

/* Refuses a stream that is capturing, and leaves its capture alone. */
kr_status kr__stream_not_capturing(kr_stream *stream, const char *what, kr_error *err);

/* ---- launch (launch.c) ---- */

/* Is the configuration possible on this device for this kernel? Zero dimensions count as 1 and are written
 * so. Raises the kernel's dynamic shared memory where it must. */
kr_status kr__launch_check(kr_kernel *kernel, const kr_launch_config *config, kr_launch_config *ret_config,
                           kr_error *err);

/* The value of one argument as a kernel parameter. */
typedef union kr__param {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f32;
    double f64;
} kr__param;

/* Checks and packs one argument; index and name (or NULL) are for messages. device: a buffer must be of it.
 */
kr_status kr__param_pack(const kr_arg *arg, size_t index, const char *name, kr_device *device,
                         kr__param *ret_param, size_t *ret_bytes, kr_error *err);

/* cuLaunchKernel of a configuration that kr__launch_check has passed, with no other check and no scope: the
 * device's context must be current (kr__scope_begin). Remembers the kernel, for the message of a fault. */
static inline CUresult kr__kernel_launch_raw(const kr_kernel *kernel, CUstream stream,
                                             const kr_launch_config *config, void **params)
{
    atomic_store_explicit(&kernel->device->launched, kernel, memory_order_release);
    return kernel->device->driver->cuLaunchKernel(
        kernel->cufunction, config->grid[0], config->grid[1], config->grid[2], config->block[0],
        config->block[1], config->block[2], config->dynamic_shared_bytes, stream, params, NULL);
}

/* Fills err from cuLaunchKernel's answer, with the numbers of kernel and configuration. */
kr_status kr__launch_fail(const kr_kernel *kernel, const kr_launch_config *config, CUresult result,
                          kr_error *err);

/* ---- kernels (kernel.c) ---- */

/* Finds the kernel in the module and reads what it is; the module's context is current. */
kr_status kr__kernel_create(kr_module *module, const char *name, kr_kernel **ret_kernel, kr_error *err);
void kr__kernel_free(kr_kernel *kernel);

#endif
