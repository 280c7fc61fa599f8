/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: device, pinned, registered, managed, pools, and what a pointer is. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

struct sc_pool {
    sc_object object;
    sc_device *device;
    bool is_default;
    uint64_t threshold;
    size_t used, used_high;
    int reuse[3]; /* CU_MEMPOOL_ATTR_REUSE_*: kept, without effect */
};

/* ---- blocks ---- */

static void finish_block(sc_object *object)
{
    sc_block *block = (sc_block *)object;
    void *start = (void *)(uintptr_t)block->start;
    if (block->pool) {
        sc_lock();
        block->pool->used -= block->bytes;
        sc_unlock();
        sc_release(block->pool);
    }
    if (block->kind == SC_BLOCK_DEVICE)
        sc_memory_free(block->device->memory, block->start);
    else
        sc_memory_unregister_host(start);
    if (block->kind == SC_BLOCK_HOST || block->kind == SC_BLOCK_MANAGED)
        free(start);
    free(block);
}

static bool is_pinned(sc_block_kind kind)
{
    return kind == SC_BLOCK_HOST || kind == SC_BLOCK_REGISTERED;
}

static void add_pinned(void *object, void *user)
{
    const sc_block *block = object;
    *(size_t *)user += is_pinned(block->kind) ? block->bytes : 0;
}

/* Does KREGISTRY_SOFTCUDA_FAIL leave room for it? */
static bool may_pin(sc_block_kind kind, size_t bytes)
{
    if (!is_pinned(kind) || sc_asked.pinned_bytes == SIZE_MAX)
        return true;
    size_t pinned = 0;
    sc_objects_each(SC_BLOCK, add_pinned, &pinned);
    return pinned <= sc_asked.pinned_bytes && bytes <= sc_asked.pinned_bytes - pinned;
}

/* Device memory, or host memory where `start` is given. */
static CUresult create_block(sc_context *context, sc_block_kind kind, void *start, size_t bytes,
                             unsigned flags, sc_block **ret_block)
{
    enum { ALIGNMENT = 256 };
    if (!may_pin(kind, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_block *block = sc_object_create(sizeof *block, SC_BLOCK, context, finish_block);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    block->kind = kind;
    block->bytes = bytes;
    block->flags = flags;
    block->device = context->device;
    block->id = sc_next_id();
    block->start = kind == SC_BLOCK_DEVICE ? sc_memory_alloc(context->device->memory, bytes, ALIGNMENT)
                                           : (uint64_t)(uintptr_t)start;
    bool placed = block->start && (kind == SC_BLOCK_DEVICE || sc_memory_register_host(start, bytes, flags));
    if (!placed) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!sc_object_publish(block, (uintptr_t)block->start)) {
        if (kind == SC_BLOCK_HOST || kind == SC_BLOCK_MANAGED)
            block->kind = SC_BLOCK_REGISTERED; /* the caller frees what it allocated */
        sc_release(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_block = block;
    return CUDA_SUCCESS;
}

static sc_block *block_at(uint64_t start)
{
    return sc_object_find(SC_BLOCK, (uintptr_t)start);
}

/* The block that holds an address, for questions about pointers. */
static sc_block *block_around(uint64_t address)
{
    sc_allocation allocation;
    return sc_memory_find(address, &allocation) ? block_at(allocation.start) : NULL;
}

static void drop(sc_block *block)
{
    sc_object_retract(block);
    sc_release(block);
}

void sc_block_release_all(sc_context *context)
{
    for (sc_block *block; (block = sc_object_of(context, SC_BLOCK));)
        drop(block);
}

/* ---- device memory ---- */

static CUresult alloc_device(CUdeviceptr *ret_address, size_t bytes)
{
    sc_context *context;
    sc_block *block;
    TRY(sc_enter(&context));
    if (!ret_address || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_stream_permitted());
    TRY(create_block(context, SC_BLOCK_DEVICE, NULL, bytes, 0, &block));
    *ret_address = block->start;
    return CUDA_SUCCESS;
}

API(cuMemAlloc_v2, CUdeviceptr *address, size_t bytes)
{
    return alloc_device(address, bytes);
}

API(cuMemAllocPitch_v2, CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
    enum { PITCH = 512 };
    TRY(sc_entered());
    size_t rounded = (width + PITCH - 1) / PITCH * PITCH, bytes;
    bool valid = element == 4 || element == 8 || element == 16;
    if (!pitch || !valid || !width || rounded < width || __builtin_mul_overflow(rounded, height, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(alloc_device(address, bytes));
    *pitch = rounded;
    return CUDA_SUCCESS;
}

API(cuMemFree_v2, CUdeviceptr address)
{
    TRY(sc_working_here());
    if (!address)
        return CUDA_SUCCESS;
    sc_block *block = block_at(address);
    if (!block || (block->kind != SC_BLOCK_DEVICE && block->kind != SC_BLOCK_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_stream_permitted());
    sc_lock();
    sc_task_wait_all(block->object.context);
    sc_unlock();
    TRY(atomic_load(&sc_lost));
    drop(block);
    return CUDA_SUCCESS;
}

API(cuMemGetInfo_v2, size_t *free_bytes, size_t *total_bytes)
{
    sc_context *context;
    TRY(sc_enter(&context));
    size_t usable = context->device->usable_bytes, used = sc_memory_used(context->device->memory);
    if (total_bytes)
        *total_bytes = context->device->memory_bytes;
    if (free_bytes)
        *free_bytes = used < usable ? usable - used : 0;
    return CUDA_SUCCESS;
}

API(cuMemGetAddressRange_v2, CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    TRY(sc_entered());
    sc_allocation allocation;
    if (!sc_memory_find(address, &allocation))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = allocation.start;
    if (bytes)
        *bytes = allocation.bytes;
    return CUDA_SUCCESS;
}

/* ---- host memory ---- */

enum {
    HOST_ALLOC_FLAGS = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED
};

static CUresult alloc_host(sc_block_kind kind, size_t bytes, unsigned flags, void **ret_start)
{
    enum { PAGE = 4096 };
    sc_context *context;
    sc_block *block;
    void *start;
    TRY(sc_enter(&context));
    TRY(sc_stream_permitted());
    if (posix_memalign(&start, PAGE, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    memset(start, 0, bytes);
    CUresult result = create_block(context, kind, start, bytes, flags, &block);
    if (result)
        free(start);
    else
        *ret_start = start;
    return result;
}

API(cuMemHostAlloc, void **ret_start, size_t bytes, unsigned flags)
{
    TRY(sc_entered());
    if (!ret_start || flags & ~(unsigned)HOST_ALLOC_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes)
        return alloc_host(SC_BLOCK_HOST, bytes, flags, ret_start);
    *ret_start = NULL;
    return CUDA_SUCCESS;
}

API(cuMemAllocHost_v2, void **ret_start, size_t bytes)
{
    return cuMemHostAlloc(ret_start, bytes, 0);
}

API(cuMemFreeHost, void *start)
{
    TRY(sc_working_here());
    if (!start)
        return CUDA_SUCCESS;
    sc_block *block = block_at((uintptr_t)start);
    if (!block || block->kind != SC_BLOCK_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    sc_task_wait_all(block->object.context);
    sc_unlock();
    drop(block);
    return CUDA_SUCCESS;
}

API(cuMemHostRegister_v2, void *start, size_t bytes, unsigned flags)
{
    enum { IOMEMORY = 4, READ_ONLY = 8, ALL = 15 };
    const uint64_t user_space = 1ull << 47;
    sc_context *context;
    sc_block *block;
    sc_allocation other;
    uint64_t first = (uintptr_t)start, last;
    TRY(sc_enter(&context));
    if (!start || !bytes || flags & ~(unsigned)ALL || __builtin_add_overflow(first, bytes - 1, &last))
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & IOMEMORY || last >= user_space)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (sc_memory_find(first, &other) || sc_memory_find(last, &other))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (sc_mapped_bytes(start, !(flags & READ_ONLY)) < bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return create_block(context, SC_BLOCK_REGISTERED, start, bytes, flags, &block);
}

API(cuMemHostRegister, void *start, size_t bytes, unsigned flags)
{
    return cuMemHostRegister_v2(start, bytes, flags);
}

API(cuMemHostUnregister, void *start)
{
    TRY(sc_working_here());
    if (!start)
        return CUDA_ERROR_INVALID_VALUE;
    sc_block *block = block_at((uintptr_t)start);
    if (!block)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (block->kind != SC_BLOCK_REGISTERED)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    sc_task_wait_all(block->object.context);
    sc_unlock();
    drop(block);
    return CUDA_SUCCESS;
}

static sc_block *host_block(const void *address)
{
    sc_block *block = block_around((uintptr_t)address);
    return block && block->kind != SC_BLOCK_DEVICE ? block : NULL;
}

API(cuMemHostGetDevicePointer_v2, CUdeviceptr *ret_address, void *start, unsigned flags)
{
    TRY(sc_entered());
    if (!ret_address || flags || !host_block(start))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_address = (uintptr_t)start;
    return CUDA_SUCCESS;
}

API(cuMemHostGetFlags, unsigned *flags, void *start)
{
    TRY(sc_entered());
    sc_block *block = host_block(start);
    if (!flags || !block)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = block->flags | CU_MEMHOSTALLOC_DEVICEMAP; /* under unified addressing all are mapped */
    return CUDA_SUCCESS;
}

/* ---- managed memory: host memory that every device may touch ---- */

API(cuMemAllocManaged, CUdeviceptr *ret_address, size_t bytes, unsigned flags)
{
    TRY(sc_entered());
    if (!ret_address || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    void *start;
    TRY(alloc_host(SC_BLOCK_MANAGED, bytes, flags, &start));
    *ret_address = (uintptr_t)start;
    return CUDA_SUCCESS;
}

static CUresult check_managed(CUdeviceptr address, size_t bytes)
{
    TRY(sc_entered());
    sc_block *block = block_around(address);
    bool inside =
        block && block->kind == SC_BLOCK_MANAGED && bytes && bytes <= block->start + block->bytes - address;
    return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemAdvise, CUdeviceptr address, size_t bytes, int advice, CUdevice device)
{
    (void)advice, (void)device;
    return check_managed(address, bytes);
}

API(cuMemAdvise_v2, CUdeviceptr address, size_t bytes, int advice, CUmemLocation location)
{
    (void)advice, (void)location;
    return check_managed(address, bytes);
}

API_STREAM(cuMemPrefetchAsync, (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
           (address, bytes, device, stream))
{
    (void)device, (void)stream;
    return check_managed(address, bytes);
}

API_STREAM(cuMemPrefetchAsync_v2,
           (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream),
           (address, bytes, location, flags, stream))
{
    (void)location, (void)stream;
    return flags ? CUDA_ERROR_INVALID_VALUE : check_managed(address, bytes);
}

API_STREAM(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),
           (stream, address, bytes, flags))
{
    (void)stream, (void)bytes;
    TRY(sc_entered());
    sc_block *block = block_around(address);
    bool valid = block && block->kind == SC_BLOCK_MANAGED && flags <= CU_MEM_ATTACH_SINGLE;
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- what a pointer is ---- */

static CUresult pointer_attribute(const sc_block *block, CUdeviceptr address, CUpointer_attribute attribute,
                                  void *data)
{
    bool on_device = block->kind == SC_BLOCK_DEVICE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)block->object.context;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data =
            on_device || block->kind == SC_BLOCK_MANAGED ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = address;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = on_device ? NULL : (void *)(uintptr_t)address;
        return on_device ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = block->id;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = block->kind == SC_BLOCK_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = block->device->ordinal;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = block->start;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = block->bytes;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)data = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = (CUmemoryPool)block->pool;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = block->kind == SC_BLOCK_DEVICE || block->kind == SC_BLOCK_MANAGED;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(unsigned *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

API(cuPointerGetAttribute, void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    TRY(sc_initialized());
    sc_block *block = block_around(address);
    if (!data || !block)
        return CUDA_ERROR_INVALID_VALUE;
    return pointer_attribute(block, address, attribute, data);
}

/* The answers about an ordinary host pointer; what has none is left alone. */
static void no_attribute(CUpointer_attribute attribute, CUdeviceptr address, void *data)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        memset(data, 0, 8);
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(CUdeviceptr *)data = address;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = -2;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        break;
    default:
        memset(data, 0, 4);
    }
}

API(cuPointerGetAttributes, unsigned n, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    TRY(sc_entered());
    if (!n || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    sc_block *block = block_around(address);
    for (unsigned i = 0; i < n; i++) {
        if (!data[i])
            return CUDA_ERROR_INVALID_VALUE;
        if (!block)
            no_attribute(attributes[i], address, data[i]);
        else
            pointer_attribute(block, address, attributes[i], data[i]);
    }
    return CUDA_SUCCESS;
}

API(cuPointerSetAttribute, const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    TRY(sc_entered());
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !block_around(address))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* ---- pools ---- */

static void finish_pool(sc_object *object)
{
    free(object);
}

sc_pool *sc_pool_create(sc_device *device, bool is_default)
{
    sc_pool *pool = sc_object_create(sizeof *pool, SC_POOL, NULL, finish_pool);
    if (!pool || !sc_object_publish(pool, (uintptr_t)pool)) {
        free(pool);
        return NULL;
    }
    pool->device = device;
    pool->is_default = is_default;
    for (size_t i = 0; i < KR_COUNT(pool->reuse); i++)
        pool->reuse[i] = 1;
    return pool;
}

static sc_pool *find_pool(CUmemoryPool handle)
{
    return sc_object_find(SC_POOL, (uintptr_t)handle);
}

API(cuMemPoolCreate, CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
    sc_device *device;
    TRY(sc_initialized());
    if (!ret_pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    TRY(sc_device_find(props->location.id, &device));
    sc_pool *pool = sc_pool_create(device, false);
    if (!pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_pool = (CUmemoryPool)pool;
    return CUDA_SUCCESS;
}

API(cuMemPoolDestroy, CUmemoryPool handle)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!pool || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->device->pool == pool)
        pool->device->pool = pool->device->default_pool;
    sc_object_retract(pool);
    sc_release(pool); /* blocks still out keep it */
    return CUDA_SUCCESS;
}

API(cuMemPoolTrimTo, CUmemoryPool handle, size_t keep_bytes)
{
    (void)keep_bytes; /* nothing is held back */
    TRY(sc_initialized());
    return find_pool(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!pool || !value || attribute < 1 || attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        *(int *)value = pool->reuse[attribute - 1];
    else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        *(uint64_t *)value = pool->threshold;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
             attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        *(uint64_t *)value = pool->used;
    else
        *(uint64_t *)value = pool->used_high;
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!pool || !value || attribute < 1 || attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    sc_lock();
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
        pool->reuse[attribute - 1] = *(int *)value != 0;
    else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(uint64_t *)value;
    else if ((attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) &&
             *(uint64_t *)value == 0)
        pool->used_high = pool->used;
    else
        result = CUDA_ERROR_INVALID_VALUE;
    sc_unlock();
    return result;
}

/* Memory of every device is within reach of every other here, so access is granted and not kept. */
API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc *access, size_t n)
{
    TRY(sc_initialized());
    return find_pool(handle) && (access || !n) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemPoolGetAccess, CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *location)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!flags || !pool || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = location->id == pool->device->ordinal ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                   : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

API(cuDeviceGetDefaultMemPool, CUmemoryPool *ret_pool, CUdevice ordinal)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    if (!ret_pool)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_pool = (CUmemoryPool)device->default_pool;
    return CUDA_SUCCESS;
}

API(cuDeviceGetMemPool, CUmemoryPool *ret_pool, CUdevice ordinal)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    if (!ret_pool)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_pool = (CUmemoryPool)device->pool;
    return CUDA_SUCCESS;
}

API(cuDeviceSetMemPool, CUdevice ordinal, CUmemoryPool handle)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    sc_pool *pool = find_pool(handle);
    if (!pool || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    device->pool = pool;
    return CUDA_SUCCESS;
}

static CUresult alloc_from(sc_pool *pool, CUdeviceptr *ret_address, size_t bytes, sc_stream *stream)
{
    if (!ret_address)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return CUDA_ERROR_NOT_SUPPORTED; /* allocation nodes */
    if (!bytes) {
        *ret_address = 0;
        return CUDA_SUCCESS;
    }
    sc_block *block;
    TRY(create_block(stream->object.context, SC_BLOCK_DEVICE, NULL, bytes, 0, &block));
    sc_lock();
    block->pool = sc_retain(pool);
    pool->used += bytes;
    pool->used_high = pool->used > pool->used_high ? pool->used : pool->used_high;
    sc_unlock();
    *ret_address = block->start;
    return CUDA_SUCCESS;
}

API_STREAM(cuMemAllocAsync, (CUdeviceptr * address, size_t bytes, CUstream stream), (address, bytes, stream))
{
    sc_stream *s;
    TRY(sc_stream_enter(stream, &s));
    return alloc_from(s->object.context->device->pool, address, bytes, s);
}

API_STREAM(cuMemAllocFromPoolAsync,
           (CUdeviceptr * address, size_t bytes, CUmemoryPool handle, CUstream stream),
           (address, bytes, handle, stream))
{
    sc_stream *s;
    TRY(sc_stream_enter(stream, &s));
    sc_pool *pool = find_pool(handle);
    if (!pool || pool->device != s->object.context->device)
        return CUDA_ERROR_INVALID_VALUE;
    return alloc_from(pool, address, bytes, s);
}

typedef struct free_work {
    sc_work work;
    sc_block *block;
} free_work;

static CUresult run_free(sc_work *work)
{
    (void)work; /* the reference that the work holds is the last; it goes with the work */
    return CUDA_SUCCESS;
}

static void finish_free(sc_work *work)
{
    sc_release(((free_work *)work)->block);
}

API_STREAM(cuMemFreeAsync, (CUdeviceptr address, CUstream stream), (address, stream))
{
    sc_stream *s;
    TRY(sc_stream_enter(stream, &s));
    if (!address)
        return CUDA_SUCCESS;
    sc_block *block = block_at(address);
    if (!block || block->kind != SC_BLOCK_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture)
        return CUDA_ERROR_NOT_SUPPORTED;
    free_work *work = sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEM_FREE, run_free, finish_free);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_object_retract(block);
    work->block = block;
    return sc_stream_submit(s, (sc_work *)work, false);
}
