/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays: memory of a device that is named by coordinates. There are no textures and surfaces, so copies
 * alone reach it, and nobody sees that rows lie close together. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>

typedef enum shape { LINE, PLANE, SOLID, LINES, PLANES, CUBE, CUBES, N_SHAPES } shape;

/* The device's limits of each side; 0: it has none of its own. */
typedef struct limits {
    CUdevice_attribute width, height, depth;
} limits;

#define LIMIT(what) CU_DEVICE_ATTRIBUTE_MAXIMUM_##what
static const limits of_textures[N_SHAPES] = {
    [LINE] = {LIMIT(TEXTURE1D_WIDTH), 0, 0},
    [PLANE] = {LIMIT(TEXTURE2D_WIDTH), LIMIT(TEXTURE2D_HEIGHT), 0},
    [SOLID] = {LIMIT(TEXTURE3D_WIDTH), LIMIT(TEXTURE3D_HEIGHT), LIMIT(TEXTURE3D_DEPTH)},
    [LINES] = {LIMIT(TEXTURE1D_LAYERED_WIDTH), 0, LIMIT(TEXTURE1D_LAYERED_LAYERS)},
    [PLANES] = {LIMIT(TEXTURE2D_LAYERED_WIDTH), LIMIT(TEXTURE2D_LAYERED_HEIGHT),
                LIMIT(TEXTURE2D_LAYERED_LAYERS)},
    [CUBE] = {LIMIT(TEXTURECUBEMAP_WIDTH), 0, 0},
    [CUBES] = {LIMIT(TEXTURECUBEMAP_LAYERED_WIDTH), 0, LIMIT(TEXTURECUBEMAP_LAYERED_LAYERS)},
};
static const limits of_surfaces[N_SHAPES] = {
    [LINE] = {LIMIT(SURFACE1D_WIDTH), 0, 0},
    [PLANE] = {LIMIT(SURFACE2D_WIDTH), LIMIT(SURFACE2D_HEIGHT), 0},
    [SOLID] = {LIMIT(SURFACE3D_WIDTH), LIMIT(SURFACE3D_HEIGHT), LIMIT(SURFACE3D_DEPTH)},
    [LINES] = {LIMIT(SURFACE1D_LAYERED_WIDTH), 0, LIMIT(SURFACE1D_LAYERED_LAYERS)},
    [PLANES] = {LIMIT(SURFACE2D_LAYERED_WIDTH), LIMIT(SURFACE2D_LAYERED_HEIGHT),
                LIMIT(SURFACE2D_LAYERED_LAYERS)},
    [CUBE] = {LIMIT(SURFACECUBEMAP_WIDTH), 0, 0},
    [CUBES] = {LIMIT(SURFACECUBEMAP_LAYERED_WIDTH), 0, LIMIT(SURFACECUBEMAP_LAYERED_LAYERS)},
};
static const limits of_gathering = {LIMIT(TEXTURE2D_GATHER_WIDTH), LIMIT(TEXTURE2D_GATHER_HEIGHT), 0};
static const limits of_deep_solids = {LIMIT(TEXTURE3D_WIDTH_ALTERNATE), LIMIT(TEXTURE3D_HEIGHT_ALTERNATE),
                                      LIMIT(TEXTURE3D_DEPTH_ALTERNATE)};

static bool keeps(const sc_device *device, CUdevice_attribute limit, size_t side)
{
    int most;
    return !limit || (sc_chip_attribute(device->chip, device->number, limit, &most) && side <= (size_t)most);
}

static bool fits(const sc_device *device, const limits *of, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return keeps(device, of->width, d->Width) && keeps(device, of->height, d->Height) &&
           keeps(device, of->depth, d->Depth);
}

/* false: there is none such. */
static bool shape_of(const CUDA_ARRAY3D_DESCRIPTOR *d, shape *ret_shape)
{
    enum { FACES = 6 };
    const bool layered = d->Flags & CUDA_ARRAY3D_LAYERED;
    if (!d->Width)
        return false;
    if (d->Flags & CUDA_ARRAY3D_CUBEMAP) {
        *ret_shape = layered ? CUBES : CUBE;
        return d->Width == d->Height && d->Depth && d->Depth % FACES == 0 && (layered || d->Depth == FACES);
    }
    if (layered) {
        *ret_shape = d->Height ? PLANES : LINES;
        return d->Depth != 0;
    }
    *ret_shape = d->Depth ? SOLID : d->Height ? PLANE : LINE;
    return d->Height || !d->Depth;
}

/* 0: no format of single numbers. */
static size_t number_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static CUresult check(const sc_device *device, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    enum {
        ALLOWED = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                  CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
                  CUDA_ARRAY3D_VIDEO_ENCODE_DECODE
    };
    shape kind;
    if (d->Format >= CU_AD_FORMAT_UNORM_INT_101010_2 && d->Format <= CU_AD_FORMAT_SNORM_INT16X4)
        return sc_lacks("arrays of normalised, packed, planar or compressed numbers");
    bool valid = number_bytes(d->Format) &&
                 (d->NumChannels == 1 || d->NumChannels == 2 || d->NumChannels == 4) &&
                 !(d->Flags & ~(unsigned)ALLOWED) && shape_of(d, &kind);
    if (!valid)
        return CUDA_ERROR_INVALID_VALUE;
    valid = fits(device, &of_textures[kind], d) || (kind == SOLID && fits(device, &of_deep_solids, d));
    if (d->Flags & CUDA_ARRAY3D_SURFACE_LDST)
        valid = valid && fits(device, &of_surfaces[kind], d);
    if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER)
        valid = valid && kind == PLANE && fits(device, &of_gathering, d);
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void end(sc_object *object)
{
    sc_array *array = (sc_array *)object;
    if (array->start)
        sc_memory_free(object->context->device->memory, array->start);
}

static void finish(sc_object *object)
{
    free(object);
}

/* Gives it memory; a sparse one, or one whose mapping is deferred, has none until some is mapped. */
static bool place(sc_array *array)
{
    enum { ALIGNMENT = 512 };
    if (array->descriptor.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return true;
    array->start = sc_memory_alloc(array->object.context->device->memory,
                                   array->row_bytes * array->rows * array->layers, ALIGNMENT);
    return array->start != 0;
}

static CUresult create(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    sc_context *context;
    TRY(sc_enter(&context));
    if (!ret_array || !d)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check(context->device, d));
    TRY(sc_stream_permitted());
    sc_array *array = sc_object_create(sizeof *array, SC_ARRAY, context, finish);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    array->object.end = end;
    array->descriptor = *d;
    array->row_bytes = d->Width * d->NumChannels * number_bytes(d->Format);
    array->rows = d->Height ? d->Height : 1;
    array->layers = d->Depth ? d->Depth : 1;
    if (!place(array) || !sc_object_publish(array, (uintptr_t)array)) {
        sc_release(array);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_array = (CUarray)array;
    return CUDA_SUCCESS;
}

API(cuArrayCreate_v2, CUarray *ret_array, const CUDA_ARRAY_DESCRIPTOR *d)
{
    if (!d)
        return create(ret_array, NULL);
    return create(ret_array,
                  &(CUDA_ARRAY3D_DESCRIPTOR){d->Width, d->Height, 0, d->Format, d->NumChannels, 0});
}

API(cuArray3DCreate_v2, CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return create(ret_array, d);
}

sc_array *sc_array_find(CUarray handle)
{
    return sc_object_find(SC_ARRAY, (uintptr_t)handle);
}

/* The driver follows what is no array to the context that would be its own: recorded of zeros. */
static CUresult find(CUarray handle, sc_array **ret_array)
{
    *ret_array = sc_array_find(handle);
    if (!*ret_array)
        return handle ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
    return atomic_load(&sc_lost);
}

API(cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR *d, CUarray handle)
{
    sc_array *array;
    TRY(find(handle, &array));
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    *d = array->descriptor;
    return CUDA_SUCCESS;
}

API(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR *d, CUarray handle)
{
    sc_array *array;
    TRY(find(handle, &array));
    if (!d)
        return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR *whole = &array->descriptor;
    *d = (CUDA_ARRAY_DESCRIPTOR){whole->Width, whole->Height, whole->Format, whole->NumChannels};
    return CUDA_SUCCESS;
}

/* No format here has planes. */
API(cuArrayGetPlane, CUarray *ret_plane, CUarray handle, unsigned index)
{
    sc_array *array;
    (void)ret_plane, (void)index;
    TRY(find(handle, &array));
    return CUDA_ERROR_INVALID_VALUE;
}

API(cuArrayDestroy, CUarray handle)
{
    sc_array *array;
    TRY(sc_initialized());
    TRY(find(handle, &array));
    TRY(sc_stream_permitted());
    return sc_end_at_rest(&array->object);
}
