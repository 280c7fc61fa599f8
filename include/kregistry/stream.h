/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_STREAM_H
#define KREGISTRY_STREAM_H

#include <stdbool.h>

#include <kregistry/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Streams and events of one device. A handle may be used from many threads; destroying one while
 * another thread uses it is the caller's mistake. */
typedef struct kr_stream kr_stream;
typedef struct kr_event kr_event;

typedef struct kr_stream_options {
    size_t struct_size;
    int priority;        /* as cuStreamCreateWithPriority; 0 is the default priority */
    bool blocks_on_null; /* false: CU_STREAM_NON_BLOCKING */
} kr_stream_options;

KR_API kr_status kr_stream_create(kr_device *device, const kr_stream_options *options, kr_stream **ret_stream,
                                  kr_error *err);
/* Work already given to the stream still completes. Accepts NULL; nulls the handle. A device's default stream
 * stays: the handle alone is nulled. */
KR_API void kr_stream_destroy(kr_stream **stream);

/* The device's default (legacy) stream. Owned by the device. */
KR_API kr_stream *kr_device_default_stream(kr_device *device);

/* Wraps a CUstream of the device's context (NULL: its default stream) that somebody else owns; destroying the
 * wrapper leaves it. */
KR_API kr_status kr_stream_wrap(kr_device *device, void *custream, kr_stream **ret_stream, kr_error *err);

KR_API kr_device *kr_stream_device(const kr_stream *stream);
KR_API void *kr_stream_custream(const kr_stream *stream);

/* Returns when everything given to the stream so far is done. A kernel fault shows here:
 * KR_PROCESS_LOST with the first cause. A stream that is capturing is refused, here and in kr_stream_query,
 * and its capture goes on. */
KR_API kr_status kr_stream_synchronize(kr_stream *stream, kr_error *err);

/* *ret_done: is everything done? Never waits. */
KR_API kr_status kr_stream_query(kr_stream *stream, bool *ret_done, kr_error *err);

/* Everything given to `stream` from now on waits for `event` as last recorded; the event may be of another
 * device. */
KR_API kr_status kr_stream_wait(kr_stream *stream, kr_event *event, kr_error *err);

/* timing: kr_event_elapsed may be asked. Destroying returns at once, also before the event has come. */
KR_API kr_status kr_event_create(kr_device *device, bool timing, kr_event **ret_event, kr_error *err);
KR_API void kr_event_destroy(kr_event **event);
/* The event comes when all that the stream holds now is done; a second record replaces the first.
 * KR_INVALID_ARGUMENT: a stream of another device. */
KR_API kr_status kr_event_record(kr_event *event, kr_stream *stream, kr_error *err);
/* Returns when the event, as last recorded, has come; at once where it never was recorded. */
KR_API kr_status kr_event_synchronize(kr_event *event, kr_error *err);

/* Milliseconds on the device between two recorded, completed events made with timing. */
KR_API kr_status kr_event_elapsed(kr_event *start, kr_event *end, double *ret_ms, kr_error *err);

#ifdef __cplusplus
}
#endif
#endif
