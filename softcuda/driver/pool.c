/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools, and memory that is allocated and freed in the order of a stream. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

/* A pool holds memory in steps of this size. What it holds and nobody uses is only counted: the memory itself
 * goes back when it is freed. */
enum { STEP = 32 << 20 };

/* Guards what pools count and which of them devices have. One of the locks that are taken last. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

struct sc_pool {
    sc_object object;
    sc_device *device;
    bool is_default;
    uint64_t threshold;
    uint64_t most; /* that it may hold; 0: as much as there is */
    uint64_t used, used_high, reserved, reserved_high;
    uint64_t access; /* a bit for each device that may touch its memory besides its own */
    int reuse[3];    /* CU_MEMPOOL_ATTR_REUSE_*: kept, without effect */
};

static void finish_pool(sc_object *object)
{
    free(object);
}

sc_pool *sc_pool_create(sc_device *device, bool is_default, uint64_t most_bytes)
{
    sc_pool *pool = sc_object_create(sizeof *pool, SC_POOL, NULL, finish_pool);
    if (!pool)
        return NULL;
    pool->device = device;
    pool->is_default = is_default;
    pool->most = most_bytes;
    for (size_t i = 0; i < KR_COUNT(pool->reuse); i++)
        pool->reuse[i] = 1;
    if (sc_object_publish(pool, (uintptr_t)pool))
        return pool;
    sc_object_discard(pool);
    return NULL;
}

static sc_pool *find_pool(CUmemoryPool handle)
{
    return sc_object_find(SC_POOL, (uintptr_t)handle);
}

/* ---- what a pool holds; with the lock held ---- */

static uint64_t steps(uint64_t bytes)
{
    return bytes > UINT64_MAX - STEP ? UINT64_MAX : (bytes + STEP - 1) / STEP * STEP;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Gives back all but `keep` bytes of what is held. */
static void trim(sc_pool *pool, uint64_t keep)
{
    uint64_t least = larger(steps(pool->used), steps(keep));
    pool->reserved = least < pool->reserved ? least : pool->reserved;
}

static bool take(sc_pool *pool, size_t bytes)
{
    uint64_t reserved = larger(steps(pool->used + bytes), pool->reserved);
    if (pool->most && reserved > steps(pool->most))
        return false;
    pool->used += bytes;
    pool->reserved = reserved;
    pool->used_high = larger(pool->used, pool->used_high);
    pool->reserved_high = larger(reserved, pool->reserved_high);
    return true;
}

void sc_pool_take_back(sc_pool *pool, size_t bytes)
{
    pthread_mutex_lock(&pool_lock);
    pool->used -= bytes;
    trim(pool, pool->threshold);
    pthread_mutex_unlock(&pool_lock);
    sc_release(pool);
}

/* ---- pools ---- */

API(cuMemPoolCreate, CUmemoryPool *ret_pool, const CUmemPoolProps *props)
{
    static const unsigned char zeros[sizeof props->reserved];
    const unsigned known = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_FABRIC;
    sc_device *device;
    TRY(sc_initialized());
    if (!ret_pool || !props || props->handleTypes & ~known ||
        memcmp(props->reserved, zeros, sizeof zeros) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ||
        props->location.type == CU_MEM_LOCATION_TYPE_HOST ||
        props->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA || props->handleTypes)
        return sc_lacks("pools of managed or host memory, or for other processes");
    if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || sc_device_find(props->location.id, &device))
        return CUDA_ERROR_INVALID_VALUE;
    if (steps(props->maxSize) == UINT64_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_pool *pool = sc_pool_create(device, false, props->maxSize);
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
    pthread_mutex_lock(&pool_lock);
    if (pool->device->pool == pool)
        pool->device->pool = pool->device->default_pool;
    sc_object_drop(pool); /* blocks still out keep it */
    pthread_mutex_unlock(&pool_lock);
    return CUDA_SUCCESS;
}

API(cuMemPoolTrimTo, CUmemoryPool handle, size_t keep_bytes)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool_lock);
    trim(pool, keep_bytes);
    pthread_mutex_unlock(&pool_lock);
    return CUDA_SUCCESS;
}

/* The count of an attribute, or NULL. */
static uint64_t *count_of(sc_pool *pool, CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool->threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool->used_high;
    default:
        return NULL;
    }
}

API(cuMemPoolGetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!pool || !value || attribute < 1 || attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool_lock);
    const uint64_t *count = count_of(pool, attribute);
    if (count)
        *(uint64_t *)value = *count;
    else
        *(int *)value = pool->reuse[attribute - 1];
    pthread_mutex_unlock(&pool_lock);
    return CUDA_SUCCESS;
}

API(cuMemPoolSetAttribute, CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!pool || !value || attribute < 1 || attribute > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&pool_lock);
    uint64_t *count = count_of(pool, attribute);
    if (!count)
        pool->reuse[attribute - 1] = *(int *)value != 0;
    else if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = *(uint64_t *)value;
    else if (*(uint64_t *)value != 0 || attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ||
             attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        *count = attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool->used : pool->reserved;
    pthread_mutex_unlock(&pool_lock);
    return result;
}

/* ---- who may touch its memory ---- */

static void grant_block(void *object, void *user)
{
    const sc_block *block = object;
    const sc_pool *pool = user;
    if (block->pool == pool)
        sc_memory_grant(block->start, pool->access);
}

static CUresult check_access(const sc_pool *pool, const CUmemAccessDesc *desc)
{
    sc_device *device;
    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE || desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (sc_device_find(desc->location.id, &device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE)
        return device == pool->device ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
    return desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemPoolSetAccess, CUmemoryPool handle, const CUmemAccessDesc *access, size_t n)
{
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!pool || !access)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        TRY(check_access(pool, &access[i]));
    pthread_mutex_lock(&pool_lock);
    for (size_t i = 0; i < n; i++) {
        uint64_t bit = (uint64_t)1 << access[i].location.id;
        pool->access = access[i].flags ? pool->access | bit : pool->access & ~bit;
    }
    sc_objects_each(SC_BLOCK, grant_block, pool);
    pthread_mutex_unlock(&pool_lock);
    return CUDA_SUCCESS;
}

API(cuMemPoolGetAccess, CUmemAccess_flags *flags, CUmemoryPool handle, CUmemLocation *place)
{
    sc_device *device = NULL;
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (!flags || !pool || !place)
        return CUDA_ERROR_INVALID_VALUE;
    bool on_host = place->type == CU_MEM_LOCATION_TYPE_HOST || place->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (!on_host && (place->type != CU_MEM_LOCATION_TYPE_DEVICE || sc_device_find(place->id, &device)))
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool_lock);
    bool allowed = !on_host && (device == pool->device || pool->access >> device->ordinal & 1);
    pthread_mutex_unlock(&pool_lock);
    *flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}

/* ---- a device's pools ---- */

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
    TRY(sc_initialized());
    if (!ret_pool || sc_device_find(ordinal, &device))
        return CUDA_ERROR_INVALID_VALUE;
    *ret_pool = (CUmemoryPool)device->pool;
    return CUDA_SUCCESS;
}

API(cuDeviceSetMemPool, CUdevice ordinal, CUmemoryPool handle)
{
    sc_device *device;
    TRY(sc_initialized());
    sc_pool *pool = find_pool(handle);
    if (sc_device_find(ordinal, &device) || !pool || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&pool_lock);
    bool is_there = !sc_has_ended(pool);
    if (is_there)
        device->pool = pool;
    pthread_mutex_unlock(&pool_lock);
    return is_there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* CUDA 13's forms. Pools of managed memory and of the host's are not there. */
static CUresult check_place(const CUmemLocation *place, CUmemAllocationType type, sc_device **ret_device)
{
    TRY(sc_initialized());
    if (!place)
        return CUDA_ERROR_INVALID_VALUE;
    bool host = place->type == CU_MEM_LOCATION_TYPE_HOST || place->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
    if (place->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT || type == CU_MEM_ALLOCATION_TYPE_MANAGED ||
        (host && type == CU_MEM_ALLOCATION_TYPE_PINNED))
        return sc_lacks("pools of managed or host memory");
    bool valid = place->type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
    return valid && !sc_device_find(place->id, ret_device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemGetDefaultMemPool, CUmemoryPool *ret_pool, CUmemLocation *place, CUmemAllocationType type)
{
    sc_device *device;
    TRY(check_place(place, type, &device));
    return cuDeviceGetDefaultMemPool(ret_pool, device->ordinal);
}

API(cuMemGetMemPool, CUmemoryPool *ret_pool, CUmemLocation *place, CUmemAllocationType type)
{
    sc_device *device;
    TRY(check_place(place, type, &device));
    return cuDeviceGetMemPool(ret_pool, device->ordinal);
}

API(cuMemSetMemPool, CUmemLocation *place, CUmemAllocationType type, CUmemoryPool handle)
{
    sc_device *device;
    TRY(sc_initialized());
    if (check_place(place, type, &device)) /* or a kind of pool that no handle here is of */
        return CUDA_ERROR_INVALID_VALUE;
    return cuDeviceSetMemPool(device->ordinal, handle);
}

/* ---- memory in the order of a stream ---- */

static CUresult alloc_from(sc_pool *pool, CUdeviceptr *ret_address, size_t bytes, sc_stream *stream)
{
    if (!ret_address)
        return CUDA_ERROR_INVALID_VALUE;
    if (sc_stream_is_captured(stream))
        return sc_graph_alloc(stream, pool->device, bytes, ret_address);
    *ret_address = 0;
    if (!bytes)
        return CUDA_SUCCESS;
    const sc_block wish = {.kind = SC_BLOCK_DEVICE, .device = pool->device, .bytes = bytes};
    sc_block *block = sc_block_make(&wish, NULL);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&pool_lock);
    bool is_there = !sc_has_ended(pool), fits = is_there && take(pool, bytes);
    if (fits) {
        block->pool = sc_retain(pool);
        sc_memory_grant(block->start, pool->access);
        fits = sc_object_publish(block, (uintptr_t)block->start);
    }
    pthread_mutex_unlock(&pool_lock);
    if (!fits) {
        sc_release(block);
        return is_there ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
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
    return pool ? alloc_from(pool, address, bytes, s) : CUDA_ERROR_INVALID_VALUE;
}

typedef struct free_work {
    sc_work work;
    sc_block *block;
} free_work;

static CUresult run_free(sc_work *work)
{
    (void)work; /* what is out of the set ends with the reference that the work holds */
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
    sc_block *block = sc_block_at(address);
    CUresult result;
    if (sc_graph_free(s, block, &result))
        return result;
    if (block && sc_graph_give_back(block, &result))
        return result;
    if (block && block->kind == SC_BLOCK_MANAGED)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!block || block->kind != SC_BLOCK_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sc_retain(block))
        return CUDA_ERROR_INVALID_VALUE;
    free_work *work = sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEM_FREE, run_free, finish_free);
    if (!work) {
        sc_release(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->block = block;
    TRY(sc_stream_submit(s, (sc_work *)work, false));
    sc_object_drop(block);
    return CUDA_SUCCESS;
}

/* ---- for other processes: no pool can be shared, so nothing that these name is valid ---- */

API(cuMemPoolExportToShareableHandle, void *ret_handle, CUmemoryPool handle, CUmemAllocationHandleType type,
    unsigned long long flags)
{
    (void)ret_handle, (void)handle, (void)type, (void)flags;
    TRY(sc_initialized());
    return CUDA_ERROR_INVALID_VALUE;
}

API(cuMemPoolImportFromShareableHandle, CUmemoryPool *ret_pool, void *handle, CUmemAllocationHandleType type,
    unsigned long long flags)
{
    TRY(sc_initialized());
    bool no_file =
        ret_pool && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && (intptr_t)handle < 0 && !flags;
    return no_file ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemPoolExportPointer, CUmemPoolPtrExportData *ret_data, CUdeviceptr address)
{
    (void)ret_data, (void)address;
    TRY(sc_initialized());
    return CUDA_ERROR_INVALID_VALUE;
}

API(cuMemPoolImportPointer, CUdeviceptr *ret_address, CUmemoryPool handle, CUmemPoolPtrExportData *data)
{
    (void)ret_address, (void)handle, (void)data;
    TRY(sc_initialized());
    return CUDA_ERROR_INVALID_VALUE;
}
