/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

kr_status kr__options(kr_error *err, const void *options, void *own, size_t own_bytes)
{
    memset(own, 0, own_bytes);
    if (!options)
        return KR_OK;
    const size_t bytes = *(const size_t *)options;
    if (bytes < sizeof bytes)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "struct_size of the options is %zu: set it to sizeof",
                       bytes);
    for (size_t i = own_bytes; i < bytes; i++)
        if (((const unsigned char *)options)[i])
            return KR_FAIL(err, KR_INVALID_ARGUMENT,
                           "the options set a field (byte %zu) that this library does not know", i);
    memcpy(own, options, bytes < own_bytes ? bytes : own_bytes);
    return KR_OK;
}

/* Which device is an existing context of? */
static kr_status device_of_context(kr__driver *driver, CUcontext context, CUdevice *ret_device, kr_error *err)
{
    kr__scope scope;
    const kr_status status = kr__scope_push(&scope, driver, context, err);
    if (status != KR_OK)
        return kr__while(err, status, "adopting a context");
    const CUresult result = driver->cuCtxGetDevice(ret_device);
    kr__scope_end(&scope);
    return result == CUDA_SUCCESS ? KR_OK
                                  : KR_CUDA_FAIL(err, driver, result, "cuCtxGetDevice", -1, NULL,
                                                 "cannot ask the context for its device");
}

static kr_status fail_ordinal(kr__driver *driver, int ordinal, kr_error *err)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    KR_FAIL(err, KR_INVALID_ARGUMENT, "device %d asked for; %d present (0 to %d)%s%s", ordinal,
            driver->n_devices, driver->n_devices - 1, visible ? ", CUDA_VISIBLE_DEVICES=" : "",
            visible ? visible : "");
    kr__error_advice(err, "`kregistry devices` lists them.");
    return KR_INVALID_ARGUMENT;
}

/* The driver's device of an ordinal. It is the ordinal, but the driver must say so. */
static kr_status find_device(kr__driver *driver, int ordinal, CUdevice *ret_device, kr_error *err)
{
    if (ordinal < 0 || ordinal >= driver->n_devices)
        return fail_ordinal(driver, ordinal, err);
    const CUresult result = driver->cuDeviceGet(ret_device, ordinal);
    return result == CUDA_SUCCESS ? KR_OK
                                  : KR_CUDA_FAIL(err, driver, result, "cuDeviceGet", ordinal, NULL,
                                                 "cannot open device %d", ordinal);
}

static kr_status add_device(kr_runtime *runtime, CUdevice cudevice, int ordinal, CUcontext adopted,
                            kr_error *err)
{
    kr_device *device = &runtime->devices[runtime->n_devices];
    pthread_mutex_init(&device->lock, NULL);
    atomic_init(&device->context, adopted);
    runtime->n_devices++;
    return kr__device_init(device, runtime, cudevice, ordinal, err);
}

static kr_status open_devices(kr_runtime *runtime, const kr_runtime_options *options, size_t n, kr_error *err)
{
    CUdevice cudevice;
    if (options->context) {
        runtime->adopted = true;
        const kr_status status = device_of_context(runtime->driver, options->context, &cudevice, err);
        return status == KR_OK ? add_device(runtime, cudevice, cudevice, options->context, err) : status;
    }
    for (size_t i = 0; i < n; i++) {
        const int ordinal = options->devices ? options->devices[i] : (int)i;
        for (size_t j = 0; j < i && options->devices; j++)
            if (options->devices[j] == ordinal)
                return KR_FAIL(err, KR_INVALID_ARGUMENT, "device %d is named twice", ordinal);
        kr_status status = find_device(runtime->driver, ordinal, &cudevice, err);
        if (status == KR_OK)
            status = add_device(runtime, cudevice, ordinal, NULL, err);
        if (status != KR_OK)
            return status;
    }
    return KR_OK;
}

static kr_status check_options(const kr_runtime_options *o, kr_error *err)
{
    if (o->driver && !o->driver[0]) /* the dynamic linker would take the program itself */
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "driver is an empty path");
    if (o->contexts != KR_CONTEXT_PRIMARY && o->contexts != KR_CONTEXT_OWN)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "contexts is %d: it is KR_CONTEXT_PRIMARY or KR_CONTEXT_OWN",
                       (int)o->contexts);
    if (o->context && (o->devices || o->contexts == KR_CONTEXT_OWN))
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "an existing context comes with its device: no devices, no own contexts");
    if (!o->devices != !o->n_devices)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "devices is %s but n_devices is %zu",
                       o->devices ? "set" : "NULL", o->n_devices);
    return KR_OK;
}

kr_status kr_runtime_create(const kr_runtime_options *options, kr_runtime **ret_runtime, kr_error *err)
{
    KR_REQUIRE(err, ret_runtime);
    kr_runtime_options o;
    kr_status status = KR_OPTIONS(err, options, o);
    if (status == KR_OK)
        status = check_options(&o, err);
    kr__log log = {o.log, o.log_user};
    kr__driver *driver;
    if (status == KR_OK)
        status = kr__driver_open(o.driver, &log, &driver, err);
    if (status == KR_OK)
        status = kr__driver_alive(driver, err);
    if (status != KR_OK)
        return status;
    const size_t n = o.context ? 1 : o.devices ? o.n_devices : (size_t)driver->n_devices;
    kr_runtime *runtime = kr__alloc(1, sizeof *runtime + n * sizeof runtime->devices[0], err);
    if (!runtime)
        return KR_OUT_OF_HOST_MEMORY;
    runtime->driver = driver;
    runtime->log = log;
    runtime->contexts = o.contexts;
    status = open_devices(runtime, &o, n, err);
    if (status != KR_OK) {
        kr_runtime_destroy(&runtime);
        return status;
    }
    *ret_runtime = runtime;
    return KR_OK;
}

void kr_runtime_destroy(kr_runtime **runtime)
{
    if (!runtime || !*runtime)
        return;
    kr_runtime *r = *runtime;
    *runtime = NULL;
    for (size_t i = 0; i < r->n_devices; i++) {
        kr__device_release(&r->devices[i]);
        pthread_mutex_destroy(&r->devices[i].lock);
    }
    free(r);
}

kr_driver_info kr_runtime_driver(const kr_runtime *runtime)
{
    if (!runtime)
        return (kr_driver_info){0};
    const kr__driver *d = runtime->driver;
    return (kr_driver_info){.path = d->path, .version = d->version, .kind = d->kind};
}

size_t kr_runtime_n_devices(const kr_runtime *runtime)
{
    return runtime ? runtime->n_devices : 0;
}

kr_device *kr_runtime_device(const kr_runtime *runtime, size_t index)
{
    return runtime && index < runtime->n_devices ? (kr_device *)&runtime->devices[index] : NULL;
}
