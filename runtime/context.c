/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/internal.h"

kr_status kr__device_fail(kr_error *err, kr_device *device, CUresult result, const char *function,
                          const char *file, int line, const char *format, ...)
{
    char what[512], suspect[192] = "";
    va_list args;
    va_start(args, format);
    kr__format_list(what, sizeof what, format, args);
    va_end(args);
    pthread_mutex_lock(&device->lock);
    const kr_kernel *launched = atomic_load_explicit(&device->launched, memory_order_acquire);
    if (launched)
        kr__format(suspect, sizeof suspect, "%s of %s", launched->name, launched->module->name);
    pthread_mutex_unlock(&device->lock);
    return kr__cuda_fail(err, device->driver, result, function, device->info.ordinal, suspect, file, line,
                         "%s", what);
}

void kr__device_forget_launch(const kr_kernel *kernel)
{
    kr_device *device = kernel->device;
    pthread_mutex_lock(&device->lock);
    atomic_compare_exchange_strong(&device->launched, &(const kr_kernel *){kernel}, NULL);
    pthread_mutex_unlock(&device->lock);
}

static CUresult push(kr__scope *scope, kr__driver *driver, CUcontext context)
{
    *scope = (kr__scope){.driver = driver};
    CUresult result = driver->cuCtxGetCurrent(&scope->previous);
    if (result == CUDA_SUCCESS && scope->previous != context) {
        result = driver->cuCtxPushCurrent_v2(context);
        scope->pushed = result == CUDA_SUCCESS;
    }
    return result;
}

kr_status kr__scope_push(kr__scope *scope, kr__driver *driver, CUcontext context, kr_error *err)
{
    const CUresult result = push(scope, driver, context);
    return result == CUDA_SUCCESS ? KR_OK
                                  : KR_CUDA_FAIL(err, driver, result, "cuCtxPushCurrent_v2", -1, NULL,
                                                 "cannot make a context current");
}

/* A driver that refuses is none of the caller's concern: only a capture would notice. */
void kr__scope_relax(kr__scope *scope)
{
    scope->capture_mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    scope->relaxed = scope->driver->cuThreadExchangeStreamCaptureMode(&scope->capture_mode) == CUDA_SUCCESS;
}

void kr__scope_end(kr__scope *scope)
{
    if (scope->relaxed)
        scope->driver->cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
    scope->relaxed = false;
    if (!scope->pushed)
        return;
    CUcontext popped;
    if (scope->driver->cuCtxPopCurrent_v2(&popped) != CUDA_SUCCESS)
        scope->driver->cuCtxSetCurrent(scope->previous); /* the caller's world comes first */
    scope->pushed = false;
}

/* An own context is current when it has just been made; the caller's must be again. */
static CUresult create_own(kr_device *device, CUcontext *ret_context)
{
    kr__scope scope = {.driver = device->driver};
    CUresult result = device->driver->cuCtxGetCurrent(&scope.previous);
    if (result == CUDA_SUCCESS)
        result = device->driver->cuCtxCreate_v2(ret_context, CU_CTX_SCHED_AUTO, device->cudevice);
    scope.pushed = result == CUDA_SUCCESS;
    kr__scope_end(&scope);
    return result;
}

static kr_status make_context(kr_device *device, kr_error *err)
{
    const bool own = device->runtime->contexts == KR_CONTEXT_OWN;
    CUcontext context = NULL;
    const CUresult result = own ? create_own(device, &context)
                                : device->driver->cuDevicePrimaryCtxRetain(&context, device->cudevice);
    if (result == CUDA_SUCCESS) {
        atomic_store_explicit(&device->context, context, memory_order_release);
        return KR_OK;
    }
    const kr_status status =
        KR_CUDA_FAIL(err, device->driver, result, own ? "cuCtxCreate_v2" : "cuDevicePrimaryCtxRetain",
                     device->info.ordinal, NULL, "cannot get a context on device %d (%s)",
                     device->info.ordinal, device->info.name);
    int mode = CU_COMPUTEMODE_DEFAULT;
    if (result == CUDA_ERROR_DEVICE_UNAVAILABLE &&
        device->driver->cuDeviceGetAttribute(&mode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, device->cudevice) ==
            CUDA_SUCCESS &&
        mode != CU_COMPUTEMODE_DEFAULT)
        kr__error_advice(err,
                         "The device is in %s mode: choose another device, or `nvidia-smi -i %d -c DEFAULT`.",
                         mode == CU_COMPUTEMODE_PROHIBITED ? "compute-prohibited" : "exclusive-process",
                         device->info.ordinal);
    return status;
}

kr_status kr__device_context(kr_device *device, CUcontext *ret_context, kr_error *err)
{
    kr_status status = KR_OK;
    if (!atomic_load_explicit(&device->context, memory_order_acquire)) {
        pthread_mutex_lock(&device->lock);
        if (!atomic_load_explicit(&device->context, memory_order_relaxed))
            status = make_context(device, err);
        pthread_mutex_unlock(&device->lock);
    }
    if (status == KR_OK)
        *ret_context = atomic_load_explicit(&device->context, memory_order_acquire);
    return status;
}

void kr__device_release(kr_device *device)
{
    const CUcontext context = atomic_exchange(&device->context, NULL);
    if (!context || device->runtime->adopted || kr__driver_forked(device->driver))
        return;
    /* After a fault, or at the process's end, the driver may answer that the context is gone: then it is. */
    if (device->runtime->contexts == KR_CONTEXT_OWN)
        device->driver->cuCtxDestroy_v2(context);
    else
        device->driver->cuDevicePrimaryCtxRelease_v2(device->cudevice);
}

kr_status kr__scope_begin(kr__scope *scope, kr_device *device, kr_error *err)
{
    CUcontext context;
    kr_status status = kr__driver_alive(device->driver, err);
    if (status == KR_OK)
        status = kr__device_context(device, &context, err);
    if (status != KR_OK)
        return status;
    const CUresult result = push(scope, device->driver, context);
    return result == CUDA_SUCCESS
               ? KR_OK
               : KR_DEVICE_FAIL(err, device, result, "cuCtxPushCurrent_v2",
                                "cannot make the context of device %d current", device->info.ordinal);
}

bool kr__scope_begin_destroy(kr__scope *scope, kr_device *device)
{
    const CUcontext context = atomic_load_explicit(&device->context, memory_order_acquire);
    return context && kr__driver_alive(device->driver, NULL) == KR_OK &&
           push(scope, device->driver, context) == CUDA_SUCCESS;
}
