/* SPDX-License-Identifier: Apache-2.0 */
/* What a pointer is. */
#include "softcuda/driver/driver.h"

#include <string.h>

/* Addresses and bytes of a device come in large pages, those of a pool in larger ones. */
enum { HOST_PAGE = 4096, DEVICE_PAGE = 2 << 20, POOL_PAGE = 32 << 20 };

static uint64_t mapping_start(const sc_block *block)
{
    return block->kind == SC_BLOCK_REGISTERED ? block->start / HOST_PAGE * HOST_PAGE : block->start;
}

static size_t mapping_bytes(const sc_block *block)
{
    size_t page = block->kind == SC_BLOCK_REGISTERED ? HOST_PAGE : block->pool ? POOL_PAGE : DEVICE_PAGE;
    size_t bytes = block->start + block->bytes - mapping_start(block);
    return (bytes + page - 1) / page * page;
}

static CUresult pointer_attribute(const sc_block *block, CUdeviceptr address, CUpointer_attribute attribute,
                                  void *data)
{
    const sc_context *current = sc_current();
    const bool on_device = !sc_block_of_host(block);
    bool is_there = true;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = (CUcontext)block->context;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data =
            on_device || block->kind == SC_BLOCK_MANAGED ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        is_there = !current || sc_memory_within_reach(current, address);
        *(CUdeviceptr *)data = is_there ? address : 0;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        is_there = !on_device;
        *(void **)data = is_there ? (void *)(uintptr_t)address : NULL;
        break;
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
        *(CUdeviceptr *)data = block->start;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = block->bytes;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = mapping_start(block);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = mapping_bytes(block);
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)data = 1;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: /* of mapped memory those of the current device */
        *(unsigned *)data =
            block->kind == SC_BLOCK_MAPPED && current && !sc_memory_within_reach(current, address)
                ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = (CUmemoryPool)block->pool;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)data = block->sync_memops;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(unsigned *)data = block->kind == SC_BLOCK_DEVICE && !block->pool;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)data = 0;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return is_there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuPointerGetAttribute, void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
    TRY(sc_initialized());
    const sc_block *block = sc_block_around(address);
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

/* Can it be asked together with others? */
static bool is_joint(CUpointer_attribute attribute)
{
    return attribute >= CU_POINTER_ATTRIBUTE_CONTEXT &&
           attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE &&
           attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS;
}

/* One after the other, up to one that cannot be asked so. */
API(cuPointerGetAttributes, unsigned n, CUpointer_attribute *attributes, void **data, CUdeviceptr address)
{
    TRY(sc_initialized());
    if (!n || !attributes || !data)
        return CUDA_ERROR_INVALID_VALUE;
    const sc_block *block = sc_block_around(address);
    for (unsigned i = 0; i < n; i++) {
        if (!data[i] || !is_joint(attributes[i]))
            return CUDA_ERROR_INVALID_VALUE;
        if (!block)
            no_attribute(attributes[i], address, data[i]);
        else
            pointer_attribute(block, address, attributes[i], data[i]);
    }
    return CUDA_SUCCESS;
}

/* Without a context too, and after a fault; not in a context that has ended. */
API(cuPointerSetAttribute, const void *value, CUpointer_attribute attribute, CUdeviceptr address)
{
    TRY(sc_initialized());
    const sc_context *current = sc_current();
    sc_block *block = sc_block_around(address);
    if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !block || (current && !current->alive))
        return CUDA_ERROR_INVALID_VALUE;
    block->sync_memops = *(const unsigned *)value != 0;
    return CUDA_SUCCESS;
}
