/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills. Device addresses are addresses of this process, so a copy is a copy; what is checked is
 * that it stays inside the allocations. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef enum side { ON_DEVICE, ON_HOST, ON_EITHER } side;

/* A box of rows. */
typedef struct copy_plane {
    uint64_t start;
    size_t pitch;
    side side;
} copy_plane;

typedef struct copy_work {
    sc_work work;
    uint64_t to, from;
    size_t to_pitch, from_pitch;
    size_t width, height;
    void *staged; /* what pageable host memory held when the call was made; NULL: read it when it runs */
} copy_work;

/* Is the whole box inside one allocation (or in ordinary host memory, where that is allowed)? */
static CUresult check(const copy_plane *plane, size_t width, size_t height, bool *ret_pageable)
{
    size_t bytes;
    if (__builtin_mul_overflow(plane->pitch, height - 1, &bytes) ||
        __builtin_add_overflow(bytes, width, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    sc_allocation found;
    *ret_pageable = !sc_memory_find(plane->start, &found);
    if (*ret_pageable)
        return plane->start && plane->side != ON_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    return bytes <= found.start + found.bytes - plane->start ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void copy_rows(uint64_t to, size_t to_pitch, uint64_t from, size_t from_pitch, size_t width,
                      size_t height)
{
    if (to_pitch == width && from_pitch == width) {
        width *= height;
        height = 1;
    }
    for (size_t y = 0; y < height; y++)
        memmove((char *)(uintptr_t)to + y * to_pitch, (const char *)(uintptr_t)from + y * from_pitch, width);
}

static CUresult run_copy(sc_work *work)
{
    copy_work *copy = (copy_work *)work;
    if (copy->staged)
        copy_rows(copy->to, copy->to_pitch, (uintptr_t)copy->staged, copy->width, copy->width, copy->height);
    else
        copy_rows(copy->to, copy->to_pitch, copy->from, copy->from_pitch, copy->width, copy->height);
    return CUDA_SUCCESS;
}

static void finish_copy(sc_work *work)
{
    free(((copy_work *)work)->staged);
}

/*
 * The one way to copy. An asynchronous copy out of pageable memory has read it when the call returns, and one
 * into pageable memory returns when it is done: as the driver's staging does.
 */
static CUresult copy(copy_plane to, copy_plane from, size_t width, size_t height, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(sc_working_here());
    TRY(sc_stream_enter(handle, &stream));
    if (!width || !height)
        return CUDA_SUCCESS;
    bool to_pageable, from_pageable;
    TRY(check(&to, width, height, &to_pageable));
    TRY(check(&from, width, height, &from_pageable));
    copy_work *work = sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEMCPY, run_copy, finish_copy);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *work = (copy_work){work->work, to.start, from.start, to.pitch, from.pitch, width, height, NULL};
    bool stage = from_pageable && !wait && !to_pageable && !stream->capture;
    if (stage) {
        work->staged = malloc(width * height);
        if (work->staged)
            copy_rows((uintptr_t)work->staged, width, from.start, from.pitch, width, height);
    }
    bool must_wait = wait || (!stream->capture && (to_pageable || (stage && !work->staged)));
    return sc_stream_submit(stream, (sc_work *)work, must_wait);
}

static CUresult copy_bytes(uint64_t to, side to_side, uint64_t from, side from_side, size_t bytes,
                           CUstream stream, bool wait)
{
    return copy((copy_plane){to, bytes, to_side}, (copy_plane){from, bytes, from_side}, bytes, 1, stream,
                wait);
}

API_SYNC(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes), (to, from, bytes))
{
    return copy_bytes(to, ON_DEVICE, (uintptr_t)from, ON_HOST, bytes, stream, true);
}

API_STREAM(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    return copy_bytes(to, ON_DEVICE, (uintptr_t)from, ON_HOST, bytes, stream, false);
}

API_SYNC(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
    return copy_bytes((uintptr_t)to, ON_HOST, from, ON_DEVICE, bytes, stream, true);
}

API_STREAM(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    return copy_bytes((uintptr_t)to, ON_HOST, from, ON_DEVICE, bytes, stream, false);
}

API_SYNC(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
    return copy_bytes(to, ON_DEVICE, from, ON_DEVICE, bytes, stream, true);
}

API_STREAM(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    return copy_bytes(to, ON_DEVICE, from, ON_DEVICE, bytes, stream, false);
}

API_SYNC(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
    return copy_bytes(to, ON_EITHER, from, ON_EITHER, bytes, stream, true);
}

API_STREAM(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
           (to, from, bytes, stream))
{
    return copy_bytes(to, ON_EITHER, from, ON_EITHER, bytes, stream, false);
}

API_SYNC(cuMemcpyPeer,
         (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes),
         (to, to_context, from, from_context, bytes))
{
    TRY(sc_working());
    if (!sc_context_find(to_context) || !sc_context_find(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_bytes(to, ON_DEVICE, from, ON_DEVICE, bytes, stream, true);
}

API_STREAM(cuMemcpyPeerAsync,
           (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
            CUstream stream),
           (to, to_context, from, from_context, bytes, stream))
{
    TRY(sc_working());
    if (!sc_context_find(to_context) || !sc_context_find(from_context))
        return CUDA_ERROR_INVALID_CONTEXT;
    return copy_bytes(to, ON_DEVICE, from, ON_DEVICE, bytes, stream, false);
}

/* ---- two dimensions ---- */

static CUresult read_plane(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y,
                           size_t pitch, size_t width, copy_plane *ret_plane)
{
    if (type == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    size_t row;
    if (__builtin_add_overflow(x, width, &row))
        return CUDA_ERROR_INVALID_VALUE;
    pitch = pitch ? pitch : row;
    if (pitch < row)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t start = type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device;
    side on = type == CU_MEMORYTYPE_HOST ? ON_HOST : type == CU_MEMORYTYPE_DEVICE ? ON_DEVICE : ON_EITHER;
    *ret_plane = (copy_plane){start ? start + y * pitch + x : 0, pitch, on};
    return CUDA_SUCCESS;
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool wait)
{
    TRY(sc_working());
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    copy_plane to, from;
    TRY(read_plane(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, c->srcPitch,
                   c->WidthInBytes, &from));
    TRY(read_plane(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, c->dstPitch,
                   c->WidthInBytes, &to));
    return copy(to, from, c->WidthInBytes, c->Height, stream, wait);
}

API_SYNC(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *params), (params))
{
    return copy_2d(params, stream, true);
}

API_SYNC(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *params), (params))
{
    return copy_2d(params, stream, true);
}

API_STREAM(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *params, CUstream stream), (params, stream))
{
    return copy_2d(params, stream, false);
}

/* ---- fills ---- */

typedef struct fill_work {
    sc_work work;
    uint64_t to;
    size_t pitch, width, height; /* width in elements */
    unsigned value, element;
} fill_work;

static CUresult run_fill(sc_work *work)
{
    const fill_work *fill = (const fill_work *)work;
    for (size_t y = 0; y < fill->height; y++) {
        char *row = (char *)(uintptr_t)fill->to + y * fill->pitch;
        if (fill->element == 1)
            memset(row, (int)fill->value, fill->width);
        else
            for (size_t x = 0; x < fill->width; x++)
                memcpy(row + x * fill->element, &fill->value, fill->element);
    }
    return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr to, size_t pitch, unsigned element, unsigned value, size_t width,
                     size_t height, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(sc_stream_enter(handle, &stream));
    size_t bytes;
    if (to % element || __builtin_mul_overflow(width, element, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!width || !height)
        return CUDA_SUCCESS;
    pitch = height == 1 ? bytes : pitch;
    if (pitch < bytes || pitch % element)
        return CUDA_ERROR_INVALID_VALUE;
    bool pageable;
    TRY(check(&(copy_plane){to, pitch, ON_DEVICE}, bytes, height, &pageable));
    fill_work *work = sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEMSET, run_fill, NULL);
    if (work)
        *work = (fill_work){work->work, to, pitch, width, height, value, element};
    return sc_stream_submit(stream, (sc_work *)work, wait);
}

/* The four functions of an element type. The synchronous names end in _v2, the others do not. */
#define FILLS(bits, type)                                                                                \
    API_SYNC(cuMemsetD##bits##_v2, (CUdeviceptr to, type value, size_t n), (to, value, n))               \
    {                                                                                                    \
        return fill(to, 0, bits / 8, value, n, 1, stream, true);                                         \
    }                                                                                                    \
    API_STREAM(cuMemsetD##bits##Async, (CUdeviceptr to, type value, size_t n, CUstream stream),          \
               (to, value, n, stream))                                                                   \
    {                                                                                                    \
        return fill(to, 0, bits / 8, value, n, 1, stream, false);                                        \
    }                                                                                                    \
    API_SYNC(cuMemsetD2D##bits##_v2,                                                                     \
             (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),                    \
             (to, pitch, value, width, height))                                                          \
    {                                                                                                    \
        return fill(to, pitch, bits / 8, value, width, height, stream, true);                            \
    }                                                                                                    \
    API_STREAM(cuMemsetD2D##bits##Async,                                                                 \
               (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height, CUstream stream), \
               (to, pitch, value, width, height, stream))                                                \
    {                                                                                                    \
        return fill(to, pitch, bits / 8, value, width, height, stream, false);                           \
    }

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)
