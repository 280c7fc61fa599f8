/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs, kind by kind: how they are added, what they tell of themselves, how they are changed. */
#include "softcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- adding nodes ---- */

CUresult sc_graph_add_handle(CUgraphNode *ret_handle, CUgraph handle, const CUgraphNode *before,
                             size_t n_before, CUresult made, sc_work *work, sc_node **ret_node)
{
    sc_nodes nodes = {0};
    sc_graph *graph = sc_graph_find(handle);
    CUresult result = !ret_handle || !graph ? CUDA_ERROR_INVALID_VALUE : made;
    if (!result && !work)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    sc_lock();
    if (!result)
        result = sc_graph_nodes(graph, before, n_before, &nodes);
    sc_node *node = NULL;
    if (!result) {
        node = sc_graph_add(graph, work, &nodes);
        result = node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    } else if (work) {
        sc_work_release(work);
    }
    sc_nodes_clear(&nodes);
    sc_unlock();
    if (!result)
        *ret_handle = (CUgraphNode)node;
    if (ret_node)
        *ret_node = node;
    return result;
}

#define NODE CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *before, size_t n_before
#define ADD(made, work, ret) sc_graph_add_handle(ret_node, graph, before, n_before, made, work, ret)

API(cuGraphAddEmptyNode, NODE)
{
    TRY(sc_initialized());
    return ADD(CUDA_SUCCESS, sc_work_nothing(CU_GRAPH_NODE_TYPE_EMPTY), NULL);
}

/* A node of the type, or NULL. */
static sc_node *node_of(CUgraphNode handle, CUgraphNodeType type)
{
    sc_node *node = sc_node_find(handle);
    return node && node->work->type == type ? node : NULL;
}

/* Consumes the work. */
static void set_work(sc_node *node, sc_work *work)
{
    sc_lock();
    sc_work *old = node->work;
    node->work = work;
    sc_work_release(old);
    sc_unlock();
}

/* ---- kernels ---- */

API(cuGraphAddKernelNode_v2, NODE, const CUDA_KERNEL_NODE_PARAMS *params)
{
    sc_work *work = NULL;
    TRY(sc_working());
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult made = sc_launch_node(params, false, &work);
    return ADD(made, work, NULL);
}

API(cuGraphKernelNodeGetParams_v2, CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
    return node && params ? sc_launch_params(node->work, params) : CUDA_ERROR_INVALID_VALUE;
}

API(cuGraphKernelNodeSetParams_v2, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *params)
{
    sc_work *work;
    TRY(sc_working());
    sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_launch_node(params, sc_launch_is_cooperative(node->work), &work));
    set_work(node, work);
    return CUDA_SUCCESS;
}

/* Before CUDA 12 the structure ended before `kern`. */
enum { OLD_PARAMS = offsetof(CUDA_KERNEL_NODE_PARAMS, kern) };

API(cuGraphAddKernelNode, NODE, const void *params)
{
    CUDA_KERNEL_NODE_PARAMS whole = {0};
    if (params)
        memcpy(&whole, params, OLD_PARAMS);
    return cuGraphAddKernelNode_v2(ret_node, graph, before, n_before, params ? &whole : NULL);
}

API(cuGraphKernelNodeGetParams, CUgraphNode handle, void *params)
{
    CUDA_KERNEL_NODE_PARAMS whole;
    TRY(cuGraphKernelNodeGetParams_v2(handle, params ? &whole : NULL));
    memcpy(params, &whole, OLD_PARAMS);
    return CUDA_SUCCESS;
}

API(cuGraphKernelNodeSetParams, CUgraphNode handle, const void *params)
{
    CUDA_KERNEL_NODE_PARAMS whole = {0};
    if (params)
        memcpy(&whole, params, OLD_PARAMS);
    return cuGraphKernelNodeSetParams_v2(handle, params ? &whole : NULL);
}

static bool is_kernel_attribute(CUlaunchAttributeID id)
{
    static const CUlaunchAttributeID these[] = {
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
        CU_LAUNCH_ATTRIBUTE_PRIORITY,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
        CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    };
    for (size_t i = 0; i < KR_COUNT(these); i++)
        if (these[i] == id)
            return true;
    return false;
}

API(cuGraphKernelNodeGetAttribute, CUgraphNode handle, CUlaunchAttributeID id, CUlaunchAttributeValue *value)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !value || !is_kernel_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    *value = node->attributes ? node->attributes[id] : (CUlaunchAttributeValue){{0}};
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        value->cooperative = sc_launch_is_cooperative(node->work);
    return CUDA_SUCCESS;
}

/* Of the attributes, one changes what is run. */
static CUresult set_cooperative(sc_node *node, bool cooperative)
{
    CUDA_KERNEL_NODE_PARAMS params;
    sc_work *work;
    TRY(sc_launch_params(node->work, &params));
    TRY(sc_launch_node(&params, cooperative, &work));
    set_work(node, work);
    return CUDA_SUCCESS;
}

API(cuGraphKernelNodeSetAttribute, CUgraphNode handle, CUlaunchAttributeID id,
    const CUlaunchAttributeValue *value)
{
    TRY(sc_initialized());
    sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !value || !is_kernel_attribute(id))
        return CUDA_ERROR_INVALID_VALUE;
    if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return sc_lacks("clusters and updates from a device, set on a node");
    TRY(sc_attribute_check(id, value));
    if (!node->attributes && !(node->attributes = calloc(SC_N_ATTRIBUTES, sizeof *node->attributes)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        TRY(set_cooperative(node, value->cooperative != 0));
    node->attributes[id] = *value;
    return CUDA_SUCCESS;
}

API(cuGraphKernelNodeCopyAttributes, CUgraphNode to, CUgraphNode from)
{
    TRY(sc_initialized());
    sc_node *a = node_of(to, CU_GRAPH_NODE_TYPE_KERNEL), *b = node_of(from, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!a || !b)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(set_cooperative(a, sc_launch_is_cooperative(b->work)));
    free(a->attributes);
    a->attributes = NULL;
    if (!b->attributes)
        return CUDA_SUCCESS;
    a->attributes = malloc(SC_N_ATTRIBUTES * sizeof *a->attributes);
    if (!a->attributes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(a->attributes, b->attributes, SC_N_ATTRIBUTES * sizeof *a->attributes);
    return CUDA_SUCCESS;
}

/* ---- copies and fills: what the call for a stream would add ---- */

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *, CUstream) SC_ENTRY(cuMemcpy3DAsync_v2);
CUresult cuMemsetD2D8Async(CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream)
    SC_ENTRY(cuMemsetD2D8Async);
CUresult cuMemsetD2D16Async(CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream)
    SC_ENTRY(cuMemsetD2D16Async);
CUresult cuMemsetD2D32Async(CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream)
    SC_ENTRY(cuMemsetD2D32Async);

static CUresult call_copy(const void *params, CUstream stream)
{
    return cuMemcpy3DAsync_v2(params, stream);
}

static CUresult call_fill(const void *params, CUstream stream)
{
    const CUDA_MEMSET_NODE_PARAMS *p = params;
    switch (p->elementSize) {
    case 1:
        return cuMemsetD2D8Async(p->dst, p->pitch, (unsigned char)p->value, p->width, p->height, stream);
    case 2:
        return cuMemsetD2D16Async(p->dst, p->pitch, (unsigned short)p->value, p->width, p->height, stream);
    case 4:
        return cuMemsetD2D32Async(p->dst, p->pitch, p->value, p->width, p->height, stream);
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The context named, or the current one. */
static CUresult make_in(CUcontext handle, sc_capturable call, const void *params, sc_work **ret_work)
{
    sc_context *context = sc_context_find(handle);
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    if (!context)
        TRY(sc_enter(&context));
    return sc_capture_work(context, call, params, ret_work);
}

CUresult sc_copy_node(const CUDA_MEMCPY3D *params, CUcontext context, sc_work **ret_work)
{
    return make_in(context, call_copy, params, ret_work);
}

CUresult sc_fill_node(const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context, sc_work **ret_work)
{
    return make_in(context, call_fill, params, ret_work);
}

static CUresult not_kept(const char *kind)
{
    sc_say("the parameters of a captured %s are not there", kind);
    return CUDA_ERROR_NOT_SUPPORTED;
}

API(cuGraphAddMemcpyNode, NODE, const CUDA_MEMCPY3D *params, CUcontext context)
{
    sc_work *work = NULL;
    sc_node *node;
    TRY(sc_working());
    CUresult made = sc_copy_node(params, context, &work);
    TRY(ADD(made, work, &node));
    node->has_params = true;
    node->params.copy = *params;
    return CUDA_SUCCESS;
}

API(cuGraphMemcpyNodeGetParams, CUgraphNode handle, CUDA_MEMCPY3D *params)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    if (!node->has_params)
        return not_kept("copy");
    *params = node->params.copy;
    return CUDA_SUCCESS;
}

API(cuGraphMemcpyNodeSetParams, CUgraphNode handle, const CUDA_MEMCPY3D *params)
{
    sc_work *work;
    TRY(sc_working());
    sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_copy_node(params, NULL, &work));
    set_work(node, work);
    node->has_params = true;
    node->params.copy = *params;
    return CUDA_SUCCESS;
}

API(cuGraphAddMemsetNode, NODE, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    sc_work *work = NULL;
    sc_node *node;
    TRY(sc_working());
    CUresult made = sc_fill_node(params, context, &work);
    TRY(ADD(made, work, &node));
    node->has_params = true;
    node->params.fill = *params;
    return CUDA_SUCCESS;
}

API(cuGraphMemsetNodeGetParams, CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_MEMSET);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    if (!node->has_params)
        return not_kept("fill");
    *params = node->params.fill;
    return CUDA_SUCCESS;
}

API(cuGraphMemsetNodeSetParams, CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS *params)
{
    sc_work *work;
    TRY(sc_working());
    sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_MEMSET);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_fill_node(params, NULL, &work));
    set_work(node, work);
    node->has_params = true;
    node->params.fill = *params;
    return CUDA_SUCCESS;
}

/* ---- host functions ---- */

API(cuGraphAddHostNode, NODE, const CUDA_HOST_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    if (!params || !params->fn)
        return CUDA_ERROR_INVALID_VALUE;
    return ADD(CUDA_SUCCESS, sc_host_work_create(params->fn, params->userData), NULL);
}

API(cuGraphHostNodeGetParams, CUgraphNode handle, CUDA_HOST_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_HOST);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    *params = sc_host_params(node->work);
    return CUDA_SUCCESS;
}

API(cuGraphHostNodeSetParams, CUgraphNode handle, const CUDA_HOST_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_HOST);
    if (!node || !params || !params->fn)
        return CUDA_ERROR_INVALID_VALUE;
    sc_work *work = sc_host_work_create(params->fn, params->userData);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    set_work(node, work);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph) SC_ENTRY(cuGraphDestroy);

/* ---- child graphs: copies of what they are made from ---- */

API(cuGraphAddChildGraphNode, NODE, CUgraph child_handle)
{
    TRY(sc_initialized());
    sc_graph *child = sc_graph_find(child_handle);
    sc_node *node;
    if (!child)
        return CUDA_ERROR_INVALID_VALUE;
    if (sc_graph_has_memory(child))
        return CUDA_ERROR_NOT_SUPPORTED;
    sc_lock();
    sc_graph *copy = sc_graph_copy(child);
    sc_unlock();
    if (!copy || !sc_object_publish(copy, (uintptr_t)copy)) {
        sc_release(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result = ADD(CUDA_SUCCESS, sc_work_nothing(CU_GRAPH_NODE_TYPE_GRAPH), &node);
    if (result)
        return cuGraphDestroy((CUgraph)copy), result;
    node->child = copy;
    return CUDA_SUCCESS;
}

API(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph *ret_graph)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_GRAPH);
    if (!node || !ret_graph)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_graph = (CUgraph)node->child;
    return CUDA_SUCCESS;
}

/* ---- events ---- */

static CUresult event_work(CUevent handle, CUgraphNodeType type, sc_work **ret_work)
{
    sc_event *event = sc_object_find(SC_EVENT, (uintptr_t)handle);
    if (!event)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_work = sc_event_work_create(event, type);
    return *ret_work ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_event(CUgraphNode handle, CUgraphNodeType type, CUevent *ret_event)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, type);
    if (!node || !ret_event)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_event = (CUevent)((const sc_event_work *)node->work)->event;
    return CUDA_SUCCESS;
}

static CUresult set_event(CUgraphNode handle, CUgraphNodeType type, CUevent event)
{
    sc_work *work;
    TRY(sc_initialized());
    sc_node *node = node_of(handle, type);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(event_work(event, type, &work));
    set_work(node, work);
    return CUDA_SUCCESS;
}

#define EVENT_NODES(kind, type)                                                   \
    API(cuGraphAddEvent##kind##Node, NODE, CUevent event)                         \
    {                                                                             \
        sc_work *work = NULL;                                                     \
        TRY(sc_initialized());                                                    \
        CUresult made = event_work(event, type, &work);                           \
        return ADD(made, work, NULL);                                             \
    }                                                                             \
    API(cuGraphEvent##kind##NodeGetEvent, CUgraphNode handle, CUevent *ret_event) \
    {                                                                             \
        return get_event(handle, type, ret_event);                                \
    }                                                                             \
    API(cuGraphEvent##kind##NodeSetEvent, CUgraphNode handle, CUevent event)      \
    {                                                                             \
        return set_event(handle, type, event);                                    \
    }

EVENT_NODES(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
EVENT_NODES(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)
