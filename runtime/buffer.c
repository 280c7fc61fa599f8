/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/buffer.h>

#include <stdlib.h>

#include "runtime/internal.h"

/* Allocates with the device's own facts in the message when there is not enough. Called in the device's
 * scope. */
static kr_status fail_alloc(kr_device *device, CUresult result, const char *function, size_t bytes,
                            kr_error *err)
{
    size_t free_bytes, total_bytes;
    if (result == CUDA_ERROR_OUT_OF_MEMORY &&
        device->driver->cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS)
        return KR_DEVICE_FAIL(err, device, result, function, "%zu bytes asked for, %zu free of %zu (%s)",
                              bytes, free_bytes, total_bytes, device->info.name);
    return KR_DEVICE_FAIL(err, device, result, function, "cannot allocate %zu bytes on device %d (%s)", bytes,
                          device->info.ordinal, device->info.name);
}

kr_status kr_buffer_create(kr_device *device, size_t bytes, const kr_buffer_options *options,
                           kr_buffer **ret_buffer, kr_error *err)
{
    KR_REQUIRE(err, device, ret_buffer);
    kr_buffer_options o;
    kr_status status = KR_OPTIONS(err, options, o);
    if (status != KR_OK)
        return status;
    kr_buffer *buffer = kr__alloc(1, sizeof *buffer, err);
    if (!buffer)
        return KR_OUT_OF_HOST_MEMORY;
    *buffer = (kr_buffer){.device = device, .pointer = (CUdeviceptr)(uintptr_t)o.cudeviceptr, .bytes = bytes};
    if (!o.cudeviceptr && bytes) {
        kr__scope scope;
        status = kr__scope_begin(&scope, device, err);
        if (status == KR_OK) {
            kr__scope_relax(&scope);
            const CUresult result = device->driver->cuMemAlloc_v2(&buffer->pointer, bytes);
            if (result != CUDA_SUCCESS)
                status = fail_alloc(device, result, "cuMemAlloc_v2", bytes, err);
            kr__scope_end(&scope);
        }
        buffer->owned = true;
    }
    if (status == KR_OK)
        *ret_buffer = buffer;
    else
        free(buffer);
    return status;
}

kr_status kr_buffer_create_pitched(kr_device *device, size_t width_bytes, size_t height,
                                   kr_buffer **ret_buffer, size_t *ret_pitch_bytes, kr_error *err)
{
    KR_REQUIRE(err, device, ret_buffer, ret_pitch_bytes);
    if (!width_bytes || !height) {
        const kr_status status = kr_buffer_create(device, 0, NULL, ret_buffer, err);
        if (status == KR_OK)
            *ret_pitch_bytes = width_bytes;
        return status;
    }
    size_t bytes;
    if (__builtin_mul_overflow(width_bytes, height, &bytes))
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%zu rows of %zu bytes are more than an address can count",
                       height, width_bytes);
    kr_buffer *buffer = kr__alloc(1, sizeof *buffer, err);
    if (!buffer)
        return KR_OUT_OF_HOST_MEMORY;
    *buffer = (kr_buffer){.device = device, .owned = true};
    kr__scope scope;
    kr_status status = kr__scope_begin(&scope, device, err);
    size_t pitch = 0;
    if (status == KR_OK) {
        enum { ELEMENT_BYTES = 16 }; /* the widest a thread reads at once */
        kr__scope_relax(&scope);
        const CUresult result =
            device->driver->cuMemAllocPitch_v2(&buffer->pointer, &pitch, width_bytes, height, ELEMENT_BYTES);
        if (result != CUDA_SUCCESS)
            status = fail_alloc(device, result, "cuMemAllocPitch_v2", bytes, err);
        kr__scope_end(&scope);
    }
    if (status != KR_OK) {
        free(buffer);
        return status;
    }
    buffer->bytes = pitch * height;
    *ret_buffer = buffer;
    *ret_pitch_bytes = pitch;
    return KR_OK;
}

void kr_buffer_destroy(kr_buffer **buffer)
{
    if (!buffer || !*buffer)
        return;
    kr_buffer *b = *buffer;
    *buffer = NULL;
    kr__scope scope;
    if (b->owned && kr__scope_begin_destroy(&scope, b->device)) {
        kr__scope_relax(&scope);
        b->device->driver->cuMemFree_v2(b->pointer);
        kr__scope_end(&scope);
    }
    free(b);
}

kr_device *kr_buffer_device(const kr_buffer *buffer)
{
    return buffer ? buffer->device : NULL;
}

size_t kr_buffer_bytes(const kr_buffer *buffer)
{
    return buffer ? buffer->bytes : 0;
}

uint64_t kr_buffer_cudeviceptr(const kr_buffer *buffer)
{
    return buffer ? buffer->pointer : 0;
}

kr_stream *kr_default_stream(const kr_buffer *buffer)
{
    return buffer ? &buffer->device->default_stream : NULL;
}

/* ---- copies ---- */

/* Written so that no sum can wrap. */
static kr_status check_range(const kr_buffer *buffer, size_t offset_bytes, size_t bytes, const char *what,
                             kr_error *err)
{
    if (offset_bytes <= buffer->bytes && bytes <= buffer->bytes - offset_bytes)
        return KR_OK;
    KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: %zu bytes at offset %zu do not lie in a buffer of %zu bytes", what,
            bytes, offset_bytes, buffer->bytes);
    kr__error_device(err, buffer->device->info.ordinal);
    return KR_INVALID_ARGUMENT;
}

static kr_status check_stream(const kr_device *device, const kr_stream *stream, const char *what,
                              kr_error *err)
{
    if (stream->device == device)
        return KR_OK;
    KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: the buffer is on device %d, the stream of device %d", what,
            device->info.ordinal, stream->device->info.ordinal);
    kr__error_device(err, device->info.ordinal);
    return KR_INVALID_ARGUMENT;
}

static kr_status check_host(const void *host, const char *what, kr_error *err)
{
    return host ? KR_OK : KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: the host address is NULL", what);
}

/* stream NULL: the copy is done on return. */
static kr_status upload(kr_buffer *buffer, size_t offset_bytes, const void *from, size_t bytes,
                        kr_stream *stream, kr_error *err)
{
    kr_device *device = buffer->device;
    kr_status status = check_range(buffer, offset_bytes, bytes, "upload", err);
    if (status == KR_OK && stream)
        status = check_stream(device, stream, "upload", err);
    if (status == KR_OK && bytes)
        status = check_host(from, "upload", err);
    if (status != KR_OK || !bytes)
        return status;
    const CUdeviceptr to = buffer->pointer + offset_bytes;
    return stream ? KR_CALL(err, device, cuMemcpyHtoDAsync_v2, (to, from, bytes, stream->custream),
                            "cannot upload %zu bytes to device %d", bytes, device->info.ordinal)
                  : KR_CALL(err, device, cuMemcpyHtoD_v2, (to, from, bytes),
                            "cannot upload %zu bytes to device %d", bytes, device->info.ordinal);
}

static kr_status download(kr_buffer *buffer, size_t offset_bytes, void *to, size_t bytes, kr_stream *stream,
                          kr_error *err)
{
    kr_device *device = buffer->device;
    kr_status status = check_range(buffer, offset_bytes, bytes, "download", err);
    if (status == KR_OK && stream)
        status = check_stream(device, stream, "download", err);
    if (status == KR_OK && bytes)
        status = check_host(to, "download", err);
    if (status != KR_OK || !bytes)
        return status;
    const CUdeviceptr from = buffer->pointer + offset_bytes;
    return stream ? KR_CALL(err, device, cuMemcpyDtoHAsync_v2, (to, from, bytes, stream->custream),
                            "cannot download %zu bytes from device %d", bytes, device->info.ordinal)
                  : KR_CALL(err, device, cuMemcpyDtoH_v2, (to, from, bytes),
                            "cannot download %zu bytes from device %d", bytes, device->info.ordinal);
}

kr_status kr_buffer_upload(kr_buffer *buffer, size_t offset_bytes, const void *from, size_t bytes,
                           kr_error *err)
{
    KR_REQUIRE(err, buffer);
    return upload(buffer, offset_bytes, from, bytes, NULL, err);
}

kr_status kr_buffer_download(kr_buffer *buffer, size_t offset_bytes, void *to, size_t bytes, kr_error *err)
{
    KR_REQUIRE(err, buffer);
    return download(buffer, offset_bytes, to, bytes, NULL, err);
}

kr_status kr_buffer_upload_async(kr_buffer *buffer, size_t offset_bytes, const void *from, size_t bytes,
                                 kr_stream *stream, kr_error *err)
{
    KR_REQUIRE(err, buffer, stream);
    return upload(buffer, offset_bytes, from, bytes, stream, err);
}

kr_status kr_buffer_download_async(kr_buffer *buffer, size_t offset_bytes, void *to, size_t bytes,
                                   kr_stream *stream, kr_error *err)
{
    KR_REQUIRE(err, buffer, stream);
    return download(buffer, offset_bytes, to, bytes, stream, err);
}

kr_status kr_buffer_copy(kr_buffer *to, size_t to_offset_bytes, kr_buffer *from, size_t from_offset_bytes,
                         size_t bytes, kr_stream *stream, kr_error *err)
{
    KR_REQUIRE(err, to, from, stream);
    kr_status status = check_range(to, to_offset_bytes, bytes, "copy, destination", err);
    if (status == KR_OK)
        status = check_range(from, from_offset_bytes, bytes, "copy, source", err);
    if (status == KR_OK && stream->device != to->device)
        status = check_stream(from->device, stream, "copy", err);
    if (status == KR_OK && to->device->driver != from->device->driver) {
        status = KR_FAIL(err, KR_INVALID_ARGUMENT, "copy: the buffers are of two drivers, %s and %s",
                         to->device->driver->path, from->device->driver->path);
        kr__error_advice(err, "Copy by way of the host: kr_buffer_download, then kr_buffer_upload.");
    }
    if (status != KR_OK || !bytes)
        return status;
    const CUdeviceptr destination = to->pointer + to_offset_bytes, source = from->pointer + from_offset_bytes;
    CUcontext to_context, from_context;
    status = kr__driver_alive(stream->device->driver, err);
    if (status == KR_OK)
        status = kr__device_context(to->device, &to_context, err);
    if (status == KR_OK)
        status = kr__device_context(from->device, &from_context, err);
    if (status != KR_OK)
        return status;
    /* Between devices the driver goes by the peers' link where access is enabled, and over the host
     * otherwise. */
    const int a = from->device->info.ordinal, b = to->device->info.ordinal;
    return to_context == from_context
               ? KR_CALL(err, stream->device, cuMemcpyDtoDAsync_v2,
                         (destination, source, bytes, stream->custream), "cannot copy %zu bytes on device %d",
                         bytes, a)
               : KR_CALL(err, stream->device, cuMemcpyPeerAsync,
                         (destination, to_context, source, from_context, bytes, stream->custream),
                         "cannot copy %zu bytes from device %d to device %d", bytes, a, b);
}

kr_status kr_buffer_set(kr_buffer *buffer, size_t offset_bytes, uint8_t value, size_t bytes,
                        kr_stream *stream, kr_error *err)
{
    KR_REQUIRE(err, buffer, stream);
    kr_device *device = buffer->device;
    kr_status status = check_range(buffer, offset_bytes, bytes, "set", err);
    if (status == KR_OK)
        status = check_stream(device, stream, "set", err);
    if (status != KR_OK || !bytes)
        return status;
    return KR_CALL(err, device, cuMemsetD8Async,
                   (buffer->pointer + offset_bytes, value, bytes, stream->custream),
                   "cannot set %zu bytes on device %d", bytes, device->info.ordinal);
}
