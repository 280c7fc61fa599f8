/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_BUFFER_H
#define KREGISTRY_BUFFER_H

#include <kregistry/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory of one device. A buffer of 0 bytes is legal: its device pointer is 0.
 *
 * Threads: every function may be called from many threads at once, also with the same buffer (what two copies
 * into the same bytes leave there is theirs to order); destroying a buffer while another thread uses it is
 * the caller's mistake. */
typedef struct kr_buffer kr_buffer;

typedef struct kr_buffer_options {
    size_t struct_size;
    void *cudeviceptr; /* non-NULL: wrap this CUdeviceptr (cast), which somebody else owns */
} kr_buffer_options;

/* Returns when the memory is there; what it holds is not defined. KR_OUT_OF_DEVICE_MEMORY tells bytes asked,
 * free and total. An address to wrap is taken as it is. */
KR_API kr_status kr_buffer_create(kr_device *device, size_t bytes, const kr_buffer_options *options,
                                  kr_buffer **ret_buffer, kr_error *err);

/* Rows of width_bytes, each starting *ret_pitch_bytes after the last: a pitch that the device likes. */
KR_API kr_status kr_buffer_create_pitched(kr_device *device, size_t width_bytes, size_t height,
                                          kr_buffer **ret_buffer, size_t *ret_pitch_bytes, kr_error *err);

/* Frees the memory (unless wrapped). Work in flight that uses it must have ended. Accepts NULL and a pointer
 * to NULL; nulls the handle. */
KR_API void kr_buffer_destroy(kr_buffer **buffer);

KR_API kr_device *kr_buffer_device(const kr_buffer *buffer);
KR_API size_t kr_buffer_bytes(const kr_buffer *buffer);
KR_API uint64_t kr_buffer_cudeviceptr(const kr_buffer *buffer);

/* Host to buffer and back, at an offset; return when the copy is done, ordered after everything given
 * to the device's default stream. A range outside the buffer is KR_INVALID_ARGUMENT with the numbers. */
KR_API kr_status kr_buffer_upload(kr_buffer *buffer, size_t offset_bytes, const void *from, size_t bytes,
                                  kr_error *err);
KR_API kr_status kr_buffer_download(kr_buffer *buffer, size_t offset_bytes, void *to, size_t bytes,
                                    kr_error *err);

/* The same in stream order: returns when the copy is in the stream, which is of the buffer's device. Host
 * memory must stay valid until the stream has passed the copy. */
KR_API kr_status kr_buffer_upload_async(kr_buffer *buffer, size_t offset_bytes, const void *from,
                                        size_t bytes, kr_stream *stream, kr_error *err);
KR_API kr_status kr_buffer_download_async(kr_buffer *buffer, size_t offset_bytes, void *to, size_t bytes,
                                          kr_stream *stream, kr_error *err);

/* Buffer to buffer in stream order, also between devices (with or without peer access). The stream is of
 * either device. What ranges of one buffer that overlap leave is not defined. KR_INVALID_ARGUMENT: a range
 * outside its buffer, a stream of a third device, buffers of two drivers. */
KR_API kr_status kr_buffer_copy(kr_buffer *to, size_t to_offset_bytes, kr_buffer *from,
                                size_t from_offset_bytes, size_t bytes, kr_stream *stream, kr_error *err);

/* Sets every byte of the range, in stream order. KR_INVALID_ARGUMENT: a range outside the buffer, a stream of
 * another device. */
KR_API kr_status kr_buffer_set(kr_buffer *buffer, size_t offset_bytes, uint8_t value, size_t bytes,
                               kr_stream *stream, kr_error *err);

/* The default stream of the buffer's device. */
KR_API kr_stream *kr_default_stream(const kr_buffer *buffer);

#ifdef __cplusplus
}
#endif
#endif
