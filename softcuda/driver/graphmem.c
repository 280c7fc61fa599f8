/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that graphs allocate and free. An allocation node has its memory, and so its address, from when it
 * is added until its work goes; launching only says whether it is out: whether somebody may use it.
 */
#include "softcuda/driver/graph.h"

#include <string.h>

typedef struct memory_work {
    sc_work work;
    sc_block *block;
    CUDA_MEM_ALLOC_NODE_PARAMS params; /* of an allocation */
} memory_work;

/* Guards what blocks and devices know of graphs' memory. Taken after sc_mutex, before the last ones: it may
 * go at any time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult run_nothing(sc_work *work)
{
    (void)work;
    return CUDA_SUCCESS;
}

/* With the lock held. */
static void count(sc_device *device, CUgraphMem_attribute current, int64_t bytes)
{
    uint64_t *now = &device->graph_memory[current], *high = &device->graph_memory[current + 1];
    *now += (uint64_t)bytes;
    *high = *now > *high ? *now : *high;
}

/* What is still out when its graph goes becomes memory as any other. */
static void finish_allocation(sc_work *of)
{
    sc_block *block = ((memory_work *)of)->block;
    pthread_mutex_lock(&lock);
    count(block->device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, -(int64_t)block->bytes);
    block->in_graph = false;
    bool is_out = block->is_out;
    pthread_mutex_unlock(&lock);
    if (!is_out)
        sc_object_drop(block);
}

static void finish_free(sc_work *of)
{
    sc_release(((memory_work *)of)->block);
}

static CUresult make_allocation(sc_device *device, const CUDA_MEM_ALLOC_NODE_PARAMS *params,
                                memory_work **ret_work)
{
    sc_block *block;
    const sc_block wish = {
        .kind = SC_BLOCK_DEVICE, .device = device, .bytes = params->bytesize, .in_graph = true};
    TRY(sc_block_create(&wish, NULL, &block));
    memory_work *work =
        sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEM_ALLOC, run_nothing, finish_allocation);
    if (!work) {
        sc_object_drop(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->block = block;
    work->params = *params;
    work->params.dptr = block->start;
    pthread_mutex_lock(&lock);
    count(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, (int64_t)block->bytes);
    pthread_mutex_unlock(&lock);
    *ret_work = work;
    return CUDA_SUCCESS;
}

static bool is_in_graph(const sc_block *block)
{
    pthread_mutex_lock(&lock);
    bool in_graph = block->in_graph;
    pthread_mutex_unlock(&lock);
    return in_graph;
}

/* With the mutex held: memory of an allocation node that this graph does not free yet. */
static CUresult make_free(const sc_graph *graph, sc_block *block, memory_work **ret_work)
{
    if (!block || !is_in_graph(block))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const memory_work *other = (const memory_work *)graph->nodes.items[i]->work;
        if (other->work.type == CU_GRAPH_NODE_TYPE_MEM_FREE && other->block == block)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!sc_retain(block))
        return CUDA_ERROR_INVALID_VALUE;
    memory_work *work = sc_work_create(sizeof *work, CU_GRAPH_NODE_TYPE_MEM_FREE, run_nothing, finish_free);
    if (!work) {
        sc_release(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    work->block = block;
    *ret_work = work;
    return CUDA_SUCCESS;
}

bool sc_graph_has_memory(const sc_graph *graph)
{
    for (size_t i = 0; i < graph->nodes.n; i++) {
        CUgraphNodeType type = graph->nodes.items[i]->type;
        if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            return true;
    }
    return false;
}

/* With the lock held. */
static void set_out(sc_block *block, bool is_out)
{
    if (block->is_out != is_out)
        count(block->device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
              is_out ? (int64_t)block->bytes : -(int64_t)block->bytes);
    block->is_out = is_out;
}

bool sc_memory_work_is_out(const sc_work *work)
{
    if (work->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return false;
    pthread_mutex_lock(&lock);
    bool is_out = ((const memory_work *)work)->block->is_out;
    pthread_mutex_unlock(&lock);
    return is_out;
}

void sc_memory_work_launch(sc_work *work)
{
    if (work->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC && work->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
        return;
    pthread_mutex_lock(&lock);
    set_out(((memory_work *)work)->block, work->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    pthread_mutex_unlock(&lock);
}

/* ---- in a stream ---- */

CUresult sc_graph_alloc(sc_stream *stream, sc_device *device, size_t bytes, CUdeviceptr *ret_address)
{
    memory_work *work;
    *ret_address = 0;
    if (!bytes)
        return CUDA_SUCCESS;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal}},
        .bytesize = bytes};
    TRY(make_allocation(device, &params, &work));
    CUdeviceptr address = work->params.dptr;
    sc_lock();
    bool is_captured = stream->capture != NULL;
    CUresult result = is_captured ? sc_capture_add(stream, (sc_work *)work) : CUDA_ERROR_ILLEGAL_STATE;
    sc_unlock();
    if (!is_captured) /* any more */
        sc_work_release((sc_work *)work);
    *ret_address = result ? 0 : address;
    return result;
}

bool sc_graph_give_back(sc_block *block, CUresult *ret_result)
{
    pthread_mutex_lock(&lock);
    bool in_graph = block->in_graph;
    if (in_graph) {
        *ret_result = block->is_out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
        set_out(block, false);
    }
    pthread_mutex_unlock(&lock);
    return in_graph;
}

static CUresult capture_free(sc_stream *stream, sc_block *block)
{
    memory_work *work;
    TRY(make_free(sc_capture_graph(stream->capture), block, &work));
    return sc_capture_add(stream, (sc_work *)work);
}

bool sc_graph_free(sc_stream *stream, sc_block *block, CUresult *ret_result)
{
    sc_lock();
    bool is_captured = stream->capture != NULL;
    if (is_captured)
        *ret_result = capture_free(stream, block);
    sc_unlock();
    return is_captured;
}

/* ---- by hand ---- */

static CUresult check_params(const CUDA_MEM_ALLOC_NODE_PARAMS *params, sc_device **ret_device)
{
    if (!params || !params->bytesize || params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        sc_device_find(params->poolProps.location.id, ret_device))
        return CUDA_ERROR_INVALID_VALUE;
    bool plain = !params->poolProps.handleTypes && !params->accessDescCount;
    return plain ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED; /* to share with processes or other devices */
}

API(cuGraphAddMemAllocNode, CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *before, size_t n_before,
    CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    sc_device *device;
    memory_work *work;
    TRY(sc_working());
    if (!ret_node || !sc_graph_find(graph))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check_params(params, &device));
    TRY(make_allocation(device, params, &work));
    CUdeviceptr address = work->params.dptr;
    TRY(sc_graph_add_handle(ret_node, graph, before, n_before, CUDA_SUCCESS, (sc_work *)work, NULL));
    params->dptr = address;
    return CUDA_SUCCESS;
}

API(cuGraphMemAllocNodeGetParams, CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !params || node->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        return CUDA_ERROR_INVALID_VALUE;
    *params = ((const memory_work *)node->work)->params;
    return CUDA_SUCCESS;
}

API(cuGraphAddMemFreeNode, CUgraphNode *ret_node, CUgraph graph_handle, const CUgraphNode *before,
    size_t n_before, CUdeviceptr address)
{
    memory_work *work = NULL;
    TRY(sc_working());
    const sc_graph *graph = sc_graph_find(graph_handle);
    if (!ret_node || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult made = make_free(graph, address ? sc_block_at(address) : NULL, &work);
    sc_unlock();
    return sc_graph_add_handle(ret_node, graph_handle, before, n_before, made, (sc_work *)work, NULL);
}

API(cuGraphMemFreeNodeGetParams, CUgraphNode handle, CUdeviceptr *ret_address)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !ret_address || node->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_address = ((const memory_work *)node->work)->block->start;
    return CUDA_SUCCESS;
}

/* ---- what a device's graphs hold ---- */

API(cuDeviceGetGraphMemAttribute, CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    if (!value || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    *(uint64_t *)value = device->graph_memory[attribute];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* The high marks alone can be set, to zero: they then are what is there now. */
API(cuDeviceSetGraphMemAttribute, CUdevice ordinal, CUgraphMem_attribute attribute, void *value)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    bool is_high =
        attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
    if (!value || !is_high || *(uint64_t *)value)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    device->graph_memory[attribute] = device->graph_memory[attribute - 1];
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

/* Nothing is held that no graph needs. */
API(cuDeviceGraphMemTrim, CUdevice ordinal)
{
    sc_device *device;
    return sc_device_find(ordinal, &device);
}
