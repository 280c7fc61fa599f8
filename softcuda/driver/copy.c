/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills. Device addresses are addresses of this process, so a copy is a copy; what is checked is
 * that it stays inside the allocations. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef enum side { ON_DEVICE, ON_HOST, ON_EITHER } side;

/* One side of a copy: rows in layers. */
typedef struct copy_plane {
    uint64_t start;
    size_t pitch, layer; /* from row to row, from layer to layer */
    side side;
} copy_plane;

typedef struct extent {
    size_t width, height, depth;
} extent;

typedef struct copy_work {
    sc_work work;
    copy_plane to, from;
    extent extent;
    const sc_device *device;
    bool to_pageable, from_pageable;
    atomic_bool by_host; /* of a graph: one of the sides is the host's, or has been taken for it */
    void *staged; /* what pageable host memory held when the call was made; NULL: read it when it runs */
} copy_work;

/* How many bytes lie from the address on. Mapped memory goes on in what is mapped behind it. */
static size_t bytes_from(const sc_device *device, uint64_t address, sc_allocation found)
{
    uint64_t end = found.start + found.bytes;
    while (found.mapped && sc_memory_find(end, &found) && found.mapped &&
           sc_memory_reaches((unsigned)device->ordinal, end))
        end = found.start + found.bytes;
    return end - address;
}

/* Is the whole box inside one allocation (or in ordinary host memory, where that is allowed)? */
static CUresult check(const sc_device *device, const copy_plane *plane, extent e, bool *ret_pageable)
{
    size_t rows, bytes;
    if (__builtin_mul_overflow(plane->pitch, e.height - 1, &rows) ||
        __builtin_mul_overflow(plane->layer, e.depth - 1, &bytes) ||
        __builtin_add_overflow(bytes, rows, &bytes) || __builtin_add_overflow(bytes, e.width, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    sc_allocation found;
    *ret_pageable = !sc_memory_find(plane->start, &found);
    if (*ret_pageable)
        return plane->start && plane->side != ON_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (found.mapped && !sc_memory_reaches((unsigned)device->ordinal, plane->start))
        return CUDA_ERROR_INVALID_VALUE;
    return bytes <= bytes_from(device, plane->start, found) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void copy_rows(copy_plane to, copy_plane from, extent e)
{
    if (e.depth == 1 && to.pitch == e.width && from.pitch == e.width) {
        e.width *= e.height;
        e.height = 1;
    }
    for (size_t z = 0; z < e.depth; z++)
        for (size_t y = 0; y < e.height; y++) {
            const uint64_t row = to.start + z * to.layer + y * to.pitch;
            const uint64_t source = from.start + z * from.layer + y * from.pitch;
            memmove((void *)(uintptr_t)row, (const void *)(uintptr_t)source, e.width);
            sc_check_copied(row, source, e.width);
        }
}

/* The staged bytes as a side. */
static copy_plane packed(const void *bytes, extent e)
{
    return (copy_plane){(uintptr_t)bytes, e.width, e.width * e.height, ON_HOST};
}

/* Memory that was there when a copy was made may be gone when it runs: a graph's runs at any time. */
static bool is_gone(const sc_device *device, const copy_plane *plane, extent e)
{
    bool pageable;
    return check(device, plane, e, &pageable) || pageable;
}

/* Pinned or registered. */
static bool is_host(uint64_t address)
{
    const sc_block *block = sc_block_around(address);
    return block && (block->kind == SC_BLOCK_HOST || block->kind == SC_BLOCK_REGISTERED);
}

static bool is_copy_gone(const copy_work *copy)
{
    return (!copy->to_pageable && is_gone(copy->device, &copy->to, copy->extent)) ||
           (!copy->from_pageable && is_gone(copy->device, &copy->from, copy->extent));
}

static CUresult run_copy(sc_work *work)
{
    copy_work *copy = (copy_work *)work;
    if (is_copy_gone(copy))
        return copy->by_host ? CUDA_ERROR_LAUNCH_FAILED : CUDA_ERROR_ILLEGAL_ADDRESS;
    copy_rows(copy->to, copy->staged ? packed(copy->staged, copy->extent) : copy->from, copy->extent);
    return CUDA_SUCCESS;
}

static void finish_copy(sc_work *work)
{
    free(((copy_work *)work)->staged);
}

/* What every copy asks first. */
static CUresult enter(CUstream handle, sc_stream **ret_stream)
{
    TRY(sc_working_here());
    return sc_stream_enter(handle, ret_stream);
}

/*
 * The one way to copy. An asynchronous copy out of pageable memory has read it when the call returns, and one
 * into pageable memory returns when it is done: as the driver's staging does.
 */
static CUresult copy(copy_plane to, copy_plane from, extent e, sc_stream *stream, bool wait)
{
    if (!e.width || !e.height || !e.depth)
        return CUDA_SUCCESS;
    const sc_device *device = stream->object.context->device;
    bool to_pageable, from_pageable;
    TRY(check(device, &to, e, &to_pageable));
    TRY(check(device, &from, e, &from_pageable));
    copy_work *work = sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEMCPY, run_copy, finish_copy);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *work = (copy_work){work->work, to, from, e, device, to_pageable, from_pageable, false, NULL};
    if (from_pageable && !wait && !to_pageable && !sc_stream_is_captured(stream))
        work->staged = malloc(e.width * e.height * e.depth);
    if (work->staged)
        copy_rows(packed(work->staged, e), from, e);
    work->work.waits = to_pageable || (from_pageable && !work->staged);
    return sc_stream_submit(stream, (sc_work *)work, wait);
}

static CUresult copy_bytes(uint64_t to, side to_side, uint64_t from, side from_side, size_t bytes,
                           CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(enter(handle, &stream));
    return copy((copy_plane){to, 0, 0, to_side}, (copy_plane){from, 0, 0, from_side}, (extent){bytes, 1, 1},
                stream, wait);
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

/* Addresses say whose memory it is, so the contexts decide nothing; the driver takes NULL too. */
static CUresult check_contexts(CUcontext to, CUcontext from)
{
    bool valid = (!to || sc_context_find(to)) && (!from || sc_context_find(from));
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult copy_peer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                          size_t bytes, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(enter(handle, &stream));
    TRY(check_contexts(to_context, from_context));
    return copy_bytes(to, ON_DEVICE, from, ON_DEVICE, bytes, handle, wait);
}

API_SYNC(cuMemcpyPeer,
         (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes),
         (to, to_context, from, from_context, bytes))
{
    return copy_peer(to, to_context, from, from_context, bytes, stream, true);
}

API_STREAM(cuMemcpyPeerAsync,
           (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
            CUstream stream),
           (to, to_context, from, from_context, bytes, stream))
{
    return copy_peer(to, to_context, from, from_context, bytes, stream, false);
}

/* ---- two and three dimensions ---- */

/* One side of CUDA's structs. */
typedef struct place {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, height, level;
} place;

static bool is_within(size_t at, size_t n, size_t size)
{
    return at <= size && n <= size - at;
}

/* An array has a pitch and a height of its own, and one level. */
static CUresult read_array(const place *p, extent e, copy_plane *ret_plane)
{
    const sc_array *array = sc_array_find(p->array);
    bool valid = array && !p->level && is_within(p->x, e.width, array->row_bytes) &&
                 is_within(p->y, e.height, array->rows) && is_within(p->z, e.depth, array->layers);
    if (!valid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!array->start)
        return sc_lacks("memory for sparse arrays");
    const size_t pitch = array->row_bytes, layer = pitch * array->rows;
    *ret_plane = (copy_plane){array->start + p->z * layer + p->y * pitch + p->x, pitch, layer, ON_DEVICE};
    return CUDA_SUCCESS;
}

/* Offsets do not lead from memory that the driver knows to what it does not. */
static side side_of(const place *p)
{
    sc_allocation found;
    if (p->type == CU_MEMORYTYPE_HOST)
        return ON_HOST;
    return p->type == CU_MEMORYTYPE_DEVICE || sc_memory_find(p->device, &found) ? ON_DEVICE : ON_EITHER;
}

/* A pitch of 0 is that of the rows that are copied; a height of 0 likewise. */
static CUresult read_place(place p, extent e, copy_plane *ret_plane)
{
    size_t row, rows, layer, offset, in_layers;
    if (p.type == CU_MEMORYTYPE_ARRAY)
        return read_array(&p, e, ret_plane);
    if (p.type < CU_MEMORYTYPE_HOST || p.type > CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_add_overflow(p.x, e.width, &row) || __builtin_add_overflow(p.y, e.height, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    p.pitch = p.pitch ? p.pitch : row;
    p.height = p.height ? p.height : rows;
    if (p.pitch < row || p.height < rows || __builtin_mul_overflow(p.pitch, p.height, &layer) ||
        __builtin_mul_overflow(p.pitch, p.y, &offset) || __builtin_mul_overflow(layer, p.z, &in_layers) ||
        __builtin_add_overflow(offset, in_layers, &offset) || __builtin_add_overflow(offset, p.x, &offset))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t start = p.type == CU_MEMORYTYPE_HOST ? (uintptr_t)p.host : p.device;
    *ret_plane = (copy_plane){start ? start + offset : 0, p.pitch, layer, side_of(&p)};
    return CUDA_SUCCESS;
}

static CUresult copy_box(place to, place from, extent e, sc_stream *stream, bool wait)
{
    copy_plane to_plane, from_plane;
    if (!e.width || !e.height || !e.depth)
        return CUDA_SUCCESS;
    TRY(read_place(from, e, &from_plane));
    TRY(read_place(to, e, &to_plane));
    return copy(to_plane, from_plane, e, stream, wait);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(enter(handle, &stream));
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    const place from = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes,
                        c->srcY,          0,          c->srcPitch,  0,           0};
    const place to = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes,
                      c->dstY,          0,          c->dstPitch,  0,           0};
    return copy_box(to, from, (extent){c->WidthInBytes, c->Height, 1}, stream, wait);
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

/* The sides of the two structs of three dimensions, whose fields have the same names. */
#define PLACE_3D(c, end)                                                                             \
    {                                                                                                \
        (c)->end##MemoryType, (c)->end##Host, (c)->end##Device, (c)->end##Array, (c)->end##XInBytes, \
            (c)->end##Y, (c)->end##Z, (c)->end##Pitch, (c)->end##Height, (c)->end##LOD               \
    }

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(enter(handle, &stream));
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    const place from = PLACE_3D(c, src), to = PLACE_3D(c, dst);
    return copy_box(to, from, (extent){c->WidthInBytes, c->Height, c->Depth}, stream, wait);
}

API_SYNC(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *params), (params))
{
    return copy_3d(params, stream, true);
}

API_STREAM(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *params, CUstream stream), (params, stream))
{
    return copy_3d(params, stream, false);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *c, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(enter(handle, &stream));
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check_contexts(c->dstContext, c->srcContext));
    const place from = PLACE_3D(c, src), to = PLACE_3D(c, dst);
    return copy_box(to, from, (extent){c->WidthInBytes, c->Height, c->Depth}, stream, wait);
}

API_SYNC(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *params), (params))
{
    return copy_3d_peer(params, stream, true);
}

API_STREAM(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *params, CUstream stream), (params, stream))
{
    return copy_3d_peer(params, stream, false);
}

/* ---- arrays by an offset into the first row ---- */

static place in_array(CUarray array, size_t offset)
{
    return (place){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static place on_host(const void *host)
{
    return (place){.type = CU_MEMORYTYPE_HOST, .host = host};
}

static place on_device(CUdeviceptr device)
{
    return (place){.type = CU_MEMORYTYPE_DEVICE, .device = device};
}

static CUresult copy_row(place to, place from, size_t bytes, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(enter(handle, &stream));
    return copy_box(to, from, (extent){bytes, 1, 1}, stream, wait);
}

API_SYNC(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void *from, size_t bytes),
         (to, offset, from, bytes))
{
    return copy_row(in_array(to, offset), on_host(from), bytes, stream, true);
}

API_STREAM(cuMemcpyHtoAAsync_v2, (CUarray to, size_t offset, const void *from, size_t bytes, CUstream stream),
           (to, offset, from, bytes, stream))
{
    return copy_row(in_array(to, offset), on_host(from), bytes, stream, false);
}

API_SYNC(cuMemcpyAtoH_v2, (void *to, CUarray from, size_t offset, size_t bytes), (to, from, offset, bytes))
{
    return copy_row(on_host(to), in_array(from, offset), bytes, stream, true);
}

API_STREAM(cuMemcpyAtoHAsync_v2, (void *to, CUarray from, size_t offset, size_t bytes, CUstream stream),
           (to, from, offset, bytes, stream))
{
    return copy_row(on_host(to), in_array(from, offset), bytes, stream, false);
}

API_SYNC(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
         (to, offset, from, bytes))
{
    return copy_row(in_array(to, offset), on_device(from), bytes, stream, true);
}

API_SYNC(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
         (to, from, offset, bytes))
{
    return copy_row(on_device(to), in_array(from, offset), bytes, stream, true);
}

API_SYNC(cuMemcpyAtoA_v2, (CUarray to, size_t to_offset, CUarray from, size_t offset, size_t bytes),
         (to, to_offset, from, offset, bytes))
{
    return copy_row(in_array(to, to_offset), in_array(from, offset), bytes, stream, true);
}

/* ---- batches ---- */

/* Each of `attrs` holds from its index on; the first from 0. */
static CUresult check_batch(const CUmemcpyAttributes *attrs, const size_t *indices, size_t n_attrs, size_t n)
{
    if (indices[0] != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n_attrs; i++) {
        bool in_order = indices[i] < n && (i == 0 || indices[i] > indices[i - 1]);
        bool known = attrs[i].srcAccessOrder >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
                     attrs[i].srcAccessOrder <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY && attrs[i].flags <= 1;
        if (!in_order || !known)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static copy_plane anywhere(CUdeviceptr start)
{
    return (copy_plane){start, 0, 0, ON_EITHER};
}

/* Nothing is copied where one copy is wrong. *ret_wrong is that one; SIZE_MAX: what is wrong is none of them.
 */
static CUresult copy_batch(const CUdeviceptr *to, const CUdeviceptr *from, const size_t *bytes, size_t n,
                           const CUmemcpyAttributes *attrs, const size_t *indices, size_t n_attrs,
                           CUstream stream, size_t *ret_wrong)
{
    sc_stream *s;
    bool pageable;
    *ret_wrong = SIZE_MAX;
    TRY(enter(stream, &s));
    if (!stream || stream == CU_STREAM_LEGACY || !to || !from || !bytes || !n || !attrs || !indices ||
        !n_attrs)
        return CUDA_ERROR_INVALID_VALUE;
    if (sc_stream_is_captured(s))
        return CUDA_ERROR_NOT_SUPPORTED;
    TRY(check_batch(attrs, indices, n_attrs, n));
    for (size_t i = 0; i < n; i++) {
        const copy_plane ends[] = {anywhere(to[i]), anywhere(from[i])};
        for (size_t end = 0; end < KR_COUNT(ends); end++)
            if (!bytes[i] ||
                check(s->object.context->device, &ends[end], (extent){bytes[i], 1, 1}, &pageable)) {
                *ret_wrong = i;
                return CUDA_ERROR_INVALID_VALUE;
            }
    }
    for (size_t i = 0, a = 0; i < n; i++) {
        a += a + 1 < n_attrs && indices[a + 1] == i;
        bool wait = attrs[a].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
        TRY(copy(anywhere(to[i]), anywhere(from[i]), (extent){bytes[i], 1, 1}, s, wait));
    }
    return CUDA_SUCCESS;
}

API_STREAM(cuMemcpyBatchAsync_v2,
           (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t n, CUmemcpyAttributes *attrs,
            size_t *indices, size_t n_attrs, CUstream stream),
           (to, from, bytes, n, attrs, indices, n_attrs, stream))
{
    size_t wrong;
    return copy_batch(to, from, bytes, n, attrs, indices, n_attrs, stream, &wrong);
}

/* CUDA 12.8's. */
API_STREAM(cuMemcpyBatchAsync,
           (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t n, CUmemcpyAttributes *attrs,
            size_t *indices, size_t n_attrs, size_t *ret_wrong, CUstream stream),
           (to, from, bytes, n, attrs, indices, n_attrs, ret_wrong, stream))
{
    size_t wrong;
    CUresult result = copy_batch(to, from, bytes, n, attrs, indices, n_attrs, stream, &wrong);
    if (result && ret_wrong)
        *ret_wrong = wrong;
    return result;
}

/* ---- fills ---- */

typedef struct fill_work {
    sc_work work;
    const sc_device *device;
    uint64_t to;
    size_t pitch, width, height; /* width in elements */
    unsigned value, element;
} fill_work;

static bool is_fill_gone(const fill_work *fill)
{
    return is_gone(fill->device, &(copy_plane){fill->to, fill->pitch, 0, ON_DEVICE},
                   (extent){fill->width * fill->element, fill->height, 1});
}

static CUresult run_fill(sc_work *work)
{
    const fill_work *fill = (const fill_work *)work;
    if (is_fill_gone(fill))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    for (size_t y = 0; y < fill->height; y++) {
        char *row = (char *)(uintptr_t)fill->to + y * fill->pitch;
        if (fill->element == 1)
            memset(row, (int)fill->value, fill->width);
        else
            for (size_t x = 0; x < fill->width; x++)
                memcpy(row + x * fill->element, &fill->value, fill->element);
        sc_check_filled((uintptr_t)row, fill->width * fill->element);
    }
    return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr to, size_t pitch, unsigned element, unsigned value, size_t width,
                     size_t height, CUstream handle, bool wait)
{
    sc_stream *stream;
    TRY(sc_stream_enter(handle, &stream));
    size_t bytes;
    if (!width || !height)
        return CUDA_SUCCESS;
    if (to % element || __builtin_mul_overflow(width, element, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    pitch = height == 1 ? bytes : pitch;
    if (pitch < bytes || pitch % element)
        return CUDA_ERROR_INVALID_VALUE;
    bool pageable;
    const sc_device *device = stream->object.context->device;
    TRY(check(device, &(copy_plane){to, pitch, 0, ON_DEVICE}, (extent){bytes, height, 1}, &pageable));
    if (!sc_memory_within_reach(stream->object.context, to))
        return CUDA_ERROR_INVALID_VALUE;
    fill_work *work = sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEMSET, run_fill, NULL);
    if (work)
        *work = (fill_work){work->work, device, to, pitch, width, height, value, element};
    return sc_stream_submit(stream, (sc_work *)work, wait);
}

/* A fill's memory is looked at when its graph is instantiated; a copy then takes for the host's what it does
 * not find. */
CUresult sc_work_instantiate(sc_work *work)
{
    if (work && work->run == run_fill && is_fill_gone((const fill_work *)work))
        return CUDA_ERROR_INVALID_VALUE;
    if (work && work->run == run_copy) {
        copy_work *copy = (copy_work *)work;
        copy->by_host = is_host(copy->to.start) || is_host(copy->from.start) || is_copy_gone(copy);
    }
    return CUDA_SUCCESS;
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
