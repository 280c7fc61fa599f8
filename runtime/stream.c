/* SPDX-License-Identifier: Apache-2.0 */
#include <kregistry/stream.h>

#include <stdlib.h>

#include "runtime/internal.h"

/* ---- streams ---- */

static kr_status make_stream(kr_device *device, CUstream custream, bool owned, kr_stream **ret_stream,
                             kr_error *err)
{
    kr_stream *stream = kr__alloc(1, sizeof *stream, err);
    if (!stream)
        return KR_OUT_OF_HOST_MEMORY;
    *stream = (kr_stream){.device = device, .custream = custream, .owned = owned};
    *ret_stream = stream;
    return KR_OK;
}

kr_status kr_stream_create(kr_device *device, const kr_stream_options *options, kr_stream **ret_stream,
                           kr_error *err)
{
    KR_REQUIRE(err, device, ret_stream);
    kr_stream_options o;
    kr_status status = KR_OPTIONS(err, options, o);
    kr_stream *stream = NULL;
    if (status == KR_OK)
        status = make_stream(device, NULL, true, &stream, err);
    if (status != KR_OK)
        return status;
    const unsigned flags = o.blocks_on_null ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    status = KR_CALL(err, device, cuStreamCreateWithPriority, (&stream->custream, flags, o.priority),
                     "cannot create a stream of priority %d on device %d", o.priority, device->info.ordinal);
    if (status == KR_OK)
        *ret_stream = stream;
    else
        free(stream);
    return status;
}

void kr_stream_destroy(kr_stream **stream)
{
    if (!stream || !*stream)
        return;
    kr_stream *s = *stream;
    *stream = NULL;
    if (s == &s->device->default_stream)
        return;
    kr__scope scope;
    if (s->owned && kr__scope_begin_destroy(&scope, s->device)) {
        s->device->driver->cuStreamDestroy_v2(s->custream);
        kr__scope_end(&scope);
    }
    free(s);
}

kr_stream *kr_device_default_stream(kr_device *device)
{
    return device ? &device->default_stream : NULL;
}

kr_status kr_stream_wrap(kr_device *device, void *custream, kr_stream **ret_stream, kr_error *err)
{
    KR_REQUIRE(err, device, ret_stream);
    return make_stream(device, custream, false, ret_stream, err);
}

kr_device *kr_stream_device(const kr_stream *stream)
{
    return stream ? stream->device : NULL;
}

void *kr_stream_custream(const kr_stream *stream)
{
    return stream ? stream->custream : NULL;
}

/* Asked first, because the call itself would end the capture. */
kr_status kr__stream_not_capturing(kr_stream *stream, const char *what, kr_error *err)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    const kr_status status = KR_CALL(err, stream->device, cuStreamIsCapturing, (stream->custream, &capture),
                                     "%s: not while a stream is capturing", what);
    if (status != KR_OK || capture == CU_STREAM_CAPTURE_STATUS_NONE)
        return status;
    KR_FAIL(err, KR_INVALID_ARGUMENT,
            "%s: the stream is capturing; nothing given to it runs before the graph does", what);
    kr__error_device(err, stream->device->info.ordinal);
    kr__error_advice(err, "End the capture first (cuStreamEndCapture).");
    return KR_INVALID_ARGUMENT;
}

kr_status kr_stream_synchronize(kr_stream *stream, kr_error *err)
{
    KR_REQUIRE(err, stream);
    const kr_status status = kr__stream_not_capturing(stream, "waiting for a stream", err);
    if (status != KR_OK)
        return status;
    return KR_CALL(err, stream->device, cuStreamSynchronize, (stream->custream),
                   "waiting for a stream of device %d failed", stream->device->info.ordinal);
}

kr_status kr_stream_query(kr_stream *stream, bool *ret_done, kr_error *err)
{
    KR_REQUIRE(err, stream, ret_done);
    kr_device *device = stream->device;
    kr__scope scope;
    kr_status status = kr__stream_not_capturing(stream, "asking a stream", err);
    if (status == KR_OK)
        status = kr__scope_begin(&scope, device, err);
    if (status != KR_OK)
        return status;
    const CUresult result = device->driver->cuStreamQuery(stream->custream);
    kr__scope_end(&scope);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        return KR_DEVICE_FAIL(err, device, result, "cuStreamQuery", "asking a stream of device %d failed",
                              device->info.ordinal);
    *ret_done = result == CUDA_SUCCESS;
    return KR_OK;
}

kr_status kr_stream_wait(kr_stream *stream, kr_event *event, kr_error *err)
{
    KR_REQUIRE(err, stream, event);
    return KR_CALL(err, stream->device, cuStreamWaitEvent, (stream->custream, event->cuevent, 0),
                   "a stream of device %d cannot wait for an event of device %d",
                   stream->device->info.ordinal, event->device->info.ordinal);
}

/* ---- events ---- */

kr_status kr_event_create(kr_device *device, bool timing, kr_event **ret_event, kr_error *err)
{
    KR_REQUIRE(err, device, ret_event);
    kr_event *event = kr__alloc(1, sizeof *event, err);
    if (!event)
        return KR_OUT_OF_HOST_MEMORY;
    *event = (kr_event){.device = device, .timing = timing};
    const kr_status status = KR_CALL(err, device, cuEventCreate,
                                     (&event->cuevent, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
                                     "cannot create an event on device %d", device->info.ordinal);
    if (status == KR_OK)
        *ret_event = event;
    else
        free(event);
    return status;
}

void kr_event_destroy(kr_event **event)
{
    if (!event || !*event)
        return;
    kr_event *e = *event;
    *event = NULL;
    kr__scope scope;
    if (kr__scope_begin_destroy(&scope, e->device)) {
        e->device->driver->cuEventDestroy_v2(e->cuevent);
        kr__scope_end(&scope);
    }
    free(e);
}

kr_status kr_event_record(kr_event *event, kr_stream *stream, kr_error *err)
{
    KR_REQUIRE(err, event, stream);
    kr_device *device = event->device;
    if (stream->device != device)
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "an event of device %d cannot be recorded in a stream of device %d",
                       device->info.ordinal, stream->device->info.ordinal);
    return KR_CALL(err, device, cuEventRecord, (event->cuevent, stream->custream),
                   "cannot record an event on device %d", device->info.ordinal);
}

kr_status kr_event_synchronize(kr_event *event, kr_error *err)
{
    KR_REQUIRE(err, event);
    return KR_CALL(err, event->device, cuEventSynchronize, (event->cuevent),
                   "waiting for an event of device %d failed", event->device->info.ordinal);
}

kr_status kr_event_elapsed(kr_event *start, kr_event *end, double *ret_ms, kr_error *err)
{
    KR_REQUIRE(err, start, end, ret_ms);
    kr_device *device = start->device;
    if (end->device != device)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "the events are of two devices, %d and %d",
                       device->info.ordinal, end->device->info.ordinal);
    if (!start->timing || !end->timing)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "the %s event was created without timing",
                       start->timing ? "end" : "start");
    float ms;
    const kr_status status =
        KR_CALL(err, device, cuEventElapsedTime, (&ms, start->cuevent, end->cuevent),
                "no time between the events: one was not recorded, or has not completed yet");
    if (status != KR_OK)
        return status;
    *ret_ms = ms;
    return KR_OK;
}
