/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: device, pitched, pinned, registered. Managed memory, pools and pointers have files of their own. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- blocks ---- */

/* Host memory: zeros on pages of their own, no more than the host has, and a page behind them that is
 * nobody's. */
enum { GAP_BYTES = 4096 };

/* NULL: so much is not there. */
static void *map_pages(size_t bytes)
{
    if (bytes / (size_t)sysconf(_SC_PAGESIZE) >= (size_t)sysconf(_SC_PHYS_PAGES))
        return NULL;
    void *start = mmap(NULL, bytes + GAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static void unmap_pages(void *start, size_t bytes)
{
    sc_pages_leave(start, bytes + GAP_BYTES);
}

static void unplace(sc_block *block)
{
    if (block->kind == SC_BLOCK_DEVICE)
        sc_memory_free(block->device->memory, block->start);
    else if (block->kind != SC_BLOCK_VARIABLE)
        sc_memory_unregister_host((void *)(uintptr_t)block->start);
}

static void end_block(sc_object *object)
{
    sc_block *block = (sc_block *)object;
    void *start = (void *)(uintptr_t)block->start;
    if (block->pool)
        sc_pool_take_back(block->pool, block->bytes);
    unplace(block);
    if (block->kind == SC_BLOCK_MAPPED)
        sc_mapping_end(block);
    if (block->kind == SC_BLOCK_HOST || block->kind == SC_BLOCK_MANAGED)
        unmap_pages(start, block->bytes);
}

static void finish_block(sc_object *object)
{
    sc_block *block = (sc_block *)object;
    free(block->pages);
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

/* Tells the machine of the block's memory. false: no room. */
static bool place(sc_block *block, void *start)
{
    enum { ALIGNMENT = 512 };
    sc_device *device = block->device;
    block->start = (uintptr_t)start;
    switch (block->kind) {
    case SC_BLOCK_DEVICE:
        block->start = sc_memory_alloc(device->memory, block->bytes, ALIGNMENT);
        return block->start != 0;
    case SC_BLOCK_MAPPED:
        return sc_memory_map((unsigned)device->ordinal, start, block->bytes);
    case SC_BLOCK_VARIABLE: /* its program's, to allocate and to free */
        return true;
    default:
        return sc_memory_register_host(start, block->bytes, block->flags);
    }
}

sc_block *sc_block_make(const sc_block *wish, void *start)
{
    if (!may_pin(wish->kind, wish->bytes))
        return NULL;
    sc_context *ends_with = wish->kind == SC_BLOCK_VARIABLE ? NULL : wish->context;
    sc_block *block = sc_object_create(sizeof *block, SC_BLOCK, ends_with, finish_block);
    if (!block)
        return NULL;
    const sc_object object = block->object;
    *block = *wish;
    block->object = object;
    block->object.end = end_block;
    block->sync_memops = !sc_block_of_host(block) || block->kind == SC_BLOCK_MANAGED;
    block->id = sc_next_id();
    if (place(block, start))
        return block;
    sc_object_discard(block);
    return NULL;
}

CUresult sc_block_create(const sc_block *wish, void *start, sc_block **ret_block)
{
    sc_block *block = sc_block_make(wish, start);
    if (!block)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!sc_object_publish(block, (uintptr_t)block->start)) {
        unplace(block);
        sc_object_discard(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_block = block;
    return CUDA_SUCCESS;
}

bool sc_block_of_host(const sc_block *block)
{
    return block->kind == SC_BLOCK_HOST || block->kind == SC_BLOCK_REGISTERED ||
           block->kind == SC_BLOCK_MANAGED;
}

sc_block *sc_block_at(uint64_t start)
{
    return sc_object_find(SC_BLOCK, (uintptr_t)start);
}

sc_block *sc_block_around(uint64_t address)
{
    sc_allocation allocation;
    return sc_memory_find(address, &allocation) ? sc_block_at(allocation.start) : NULL;
}

/* Memory of a pool has no context: its user waits. */
CUresult sc_end_at_rest(sc_object *object)
{
    if (object->context) {
        sc_lock();
        sc_task_wait_all(object->context);
        sc_unlock();
        TRY(atomic_load(&sc_lost));
    }
    sc_object_drop(object);
    return CUDA_SUCCESS;
}

/* ---- device memory ---- */

static CUresult alloc_device(CUdeviceptr *ret_address, size_t bytes)
{
    sc_context *context;
    sc_block *block;
    TRY(sc_enter(&context));
    if (!ret_address)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_address = 0;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_stream_permitted());
    const sc_block wish = {
        .kind = SC_BLOCK_DEVICE, .device = context->device, .context = context, .bytes = bytes};
    TRY(sc_block_create(&wish, NULL, &block));
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
    if (address)
        *address = 0;
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
    sc_block *block = sc_block_at(address);
    if (!block || (block->kind != SC_BLOCK_DEVICE && block->kind != SC_BLOCK_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(atomic_load(&sc_lost));
    TRY(sc_stream_permitted());
    CUresult result;
    return sc_graph_give_back(block, &result) ? result : sc_end_at_rest(&block->object);
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

/* Memory of another device is found only by who may touch it. */
API(cuMemGetAddressRange_v2, CUdeviceptr *base, size_t *bytes, CUdeviceptr address)
{
    sc_context *context;
    sc_allocation found;
    if (!base && !bytes)
        return CUDA_SUCCESS;
    TRY(sc_enter(&context));
    bool is_there = sc_memory_find(address, &found) && sc_memory_within_reach(context, address);
    if (base)
        *base = is_there ? found.start : 0;
    if (bytes)
        *bytes = is_there ? found.bytes : 0;
    return is_there ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

bool sc_memory_within_reach(const sc_context *context, uint64_t address)
{
    return sc_memory_reaches((unsigned)context->device->ordinal, address);
}

/* ---- host memory ---- */

enum {
    HOST_ALLOC_FLAGS = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED
};

CUresult sc_host_alloc(const sc_block *wish, void **ret_start)
{
    sc_context *context;
    sc_block *block;
    TRY(sc_enter(&context));
    TRY(sc_stream_permitted());
    void *start = map_pages(wish->bytes);
    if (!start)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_block here = *wish;
    here.device = context->device;
    here.context = context;
    CUresult result = sc_block_create(&here, start, &block);
    if (result)
        unmap_pages(start, wish->bytes);
    else
        *ret_start = start;
    return result;
}

API(cuMemHostAlloc, void **ret_start, size_t bytes, unsigned flags)
{
    TRY(sc_entered());
    if (!ret_start)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_start = NULL;
    if (flags & ~(unsigned)HOST_ALLOC_FLAGS)
        return CUDA_ERROR_INVALID_VALUE;
    const sc_block wish = {.kind = SC_BLOCK_HOST, .bytes = bytes, .flags = flags};
    return bytes ? sc_host_alloc(&wish, ret_start) : CUDA_SUCCESS;
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
    sc_block *block = sc_block_at((uintptr_t)start);
    if (!block || block->kind != SC_BLOCK_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(atomic_load(&sc_lost));
    return sc_end_at_rest(&block->object);
}

/* What lies under the first or the last byte and cannot be registered again. */
static CUresult check_unregistered(uint64_t first, uint64_t last)
{
    sc_allocation found;
    if (!sc_memory_find(first, &found) && !sc_memory_find(last, &found) &&
        !sc_memory_host_between(first, last, &found))
        return CUDA_SUCCESS;
    const sc_block *block = sc_block_at(found.start);
    return block && block->kind == SC_BLOCK_REGISTERED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                                                       : CUDA_ERROR_INVALID_VALUE;
}

API(cuMemHostRegister_v2, void *start, size_t bytes, unsigned flags)
{
    enum {
        ALLOWED = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY
    };
    const uint64_t user_space = 1ull << 47;
    sc_context *context;
    sc_block *block;
    uint64_t first = (uintptr_t)start, last;
    TRY(sc_enter(&context));
    /* CU_MEMHOSTREGISTER_IOMEMORY is for memory of other devices, of which there is none. */
    if (!start || !bytes || flags & ~(unsigned)ALLOWED || __builtin_add_overflow(first, bytes - 1, &last))
        return CUDA_ERROR_INVALID_VALUE;
    if (last >= user_space)
        return CUDA_ERROR_NOT_SUPPORTED;
    TRY(check_unregistered(first, last));
    if (sc_mapped_bytes(start, !(flags & CU_MEMHOSTREGISTER_READ_ONLY)) < bytes)
        return CUDA_ERROR_INVALID_VALUE;
    const sc_block wish = {.kind = SC_BLOCK_REGISTERED,
                           .device = context->device,
                           .context = context,
                           .bytes = bytes,
                           .flags = flags};
    return sc_block_create(&wish, start, &block);
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
    sc_block *block = sc_block_around((uintptr_t)start);
    if (!block)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (block->kind != SC_BLOCK_REGISTERED || block->start != (uintptr_t)start)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(atomic_load(&sc_lost));
    return sc_end_at_rest(&block->object);
}

API(cuMemHostGetDevicePointer_v2, CUdeviceptr *ret_address, void *start, unsigned flags)
{
    TRY(sc_entered());
    if (!ret_address)
        return CUDA_ERROR_INVALID_VALUE;
    const sc_block *block = sc_block_around((uintptr_t)start);
    bool valid = !flags && block && (block->kind == SC_BLOCK_HOST || block->kind == SC_BLOCK_REGISTERED);
    *ret_address = valid ? (uintptr_t)start : 0;
    return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The flags that are told: under unified addressing all host memory is mapped, and allocated memory portable.
 */
API(cuMemHostGetFlags, unsigned *flags, void *start)
{
    static const unsigned told[] = {[SC_BLOCK_HOST] = CU_MEMHOSTALLOC_WRITECOMBINED,
                                    [SC_BLOCK_REGISTERED] = CU_MEMHOSTREGISTER_PORTABLE,
                                    [SC_BLOCK_MANAGED] = 0};
    if (!flags)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_entered());
    const sc_block *block = sc_block_around((uintptr_t)start);
    if (!block || !sc_block_of_host(block))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = (block->flags & told[block->kind]) | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
}

/* ---- for other processes: what is wrong is told, what is right cannot be done ---- */

API(cuMemGetHandleForAddressRange, void *ret_handle, CUdeviceptr address, size_t bytes,
    CUmemRangeHandleType type, unsigned long long flags)
{
    enum { PAGE = 4096 };
    TRY(sc_entered());
    const sc_block *block = sc_block_around(address);
    bool valid = ret_handle && block && block->kind == SC_BLOCK_DEVICE && bytes && address % PAGE == 0 &&
                 bytes % PAGE == 0 && bytes <= block->start + block->bytes - address &&
                 type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD && flags <= 1;
    return valid ? sc_lacks("memory as a dma-buf") : CUDA_ERROR_INVALID_VALUE;
}

API(cuIpcGetMemHandle, CUipcMemHandle *ret_handle, CUdeviceptr address)
{
    TRY(sc_entered());
    const sc_block *block = sc_block_around(address);
    bool valid = ret_handle && block && block->kind == SC_BLOCK_DEVICE && !block->pool;
    return valid ? sc_lacks("memory for other processes through cuIpc") : CUDA_ERROR_INVALID_VALUE;
}

/* No handle was ever made, so none is valid. */
API(cuIpcOpenMemHandle_v2, CUdeviceptr *ret_address, CUipcMemHandle handle, unsigned flags)
{
    (void)ret_address, (void)handle, (void)flags;
    TRY(sc_entered());
    return CUDA_ERROR_INVALID_VALUE;
}

API(cuIpcCloseMemHandle, CUdeviceptr address)
{
    (void)address;
    TRY(sc_entered());
    return CUDA_ERROR_INVALID_VALUE;
}
