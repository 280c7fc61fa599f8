/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs, kind by kind: how they are added, what they tell of themselves, how they are changed. */
#include "softcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- adding nodes ---- */

/* Before another thread can see the node. */
static void be_like(sc_node *node, const sc_node *like)
{
    node->has_params = like->has_params;
    node->params = like->params;
    node->child = like->child;
}

CUresult sc_graph_add_handle(CUgraphNode *ret_handle, CUgraph handle, const CUgraphNode *before,
                             size_t n_before, CUresult made, sc_work *work, const sc_node *like)
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
        if (node && like)
            be_like(node, like);
    } else if (work) {
        sc_work_release(work);
    }
    sc_nodes_clear(&nodes);
    sc_unlock();
    if (!result)
        *ret_handle = (CUgraphNode)node;
    return result;
}

#define NODE CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *before, size_t n_before
#define ADD(made, work, like) sc_graph_add_handle(ret_node, graph, before, n_before, made, work, like)

API(cuGraphAddEmptyNode, NODE)
{
    TRY(sc_initialized());
    return ADD(CUDA_SUCCESS, sc_work_nothing(CU_GRAPH_NODE_TYPE_EMPTY), NULL);
}

/* A node of the type, or NULL. */
static sc_node *node_of(CUgraphNode handle, CUgraphNodeType type)
{
    sc_node *node = sc_node_find(handle);
    return node && node->type == type ? node : NULL;
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

/* What a copy or fill was made of. */
static void set_params(sc_node *node, sc_node_params params)
{
    sc_lock();
    node->has_params = true;
    node->params = params;
    sc_unlock();
}

static CUresult get_params(const sc_node *node, const char *kind, sc_node_params *ret_params)
{
    sc_lock();
    bool has_params = node->has_params;
    *ret_params = node->params;
    sc_unlock();
    if (!has_params)
        sc_say("the parameters of a captured %s are not there", kind);
    return has_params ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
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
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = sc_launch_params(node->work, params);
    sc_unlock();
    return result;
}

static bool is_cooperative(const sc_node *node)
{
    sc_lock();
    bool cooperative = sc_launch_is_cooperative(node->work);
    sc_unlock();
    return cooperative;
}

API(cuGraphKernelNodeSetParams_v2, CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *params)
{
    sc_work *work;
    TRY(sc_working());
    sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_launch_node(params, is_cooperative(node), &work));
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
    sc_lock();
    *value = node->attributes ? node->attributes[id] : (CUlaunchAttributeValue){{0}};
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        value->cooperative = sc_launch_is_cooperative(node->work);
    sc_unlock();
    return CUDA_SUCCESS;
}

/* Of the attributes, one changes what is run. */
static CUresult set_cooperative(sc_node *node, bool cooperative)
{
    CUDA_KERNEL_NODE_PARAMS params;
    sc_work *work;
    sc_lock();
    sc_work *old = node->work; /* which the parameters lie in */
    sc_work_retain(old);
    CUresult result = sc_launch_params(old, &params);
    sc_unlock();
    if (!result)
        result = sc_launch_node(&params, cooperative, &work);
    if (!result)
        set_work(node, work);
    sc_work_release(old);
    return result;
}

/* Consumes them; NULL: none is set. */
static void set_attributes(sc_node *node, CUlaunchAttributeValue *attributes)
{
    sc_lock();
    CUlaunchAttributeValue *old = node->attributes;
    node->attributes = attributes;
    sc_unlock();
    free(old);
}

/* False: out of memory. */
static bool copy_attributes(const sc_node *node, CUlaunchAttributeValue **ret_attributes)
{
    *ret_attributes = NULL;
    sc_lock();
    bool any = node->attributes != NULL;
    if (any && (*ret_attributes = malloc(SC_N_ATTRIBUTES * sizeof **ret_attributes)))
        memcpy(*ret_attributes, node->attributes, SC_N_ATTRIBUTES * sizeof **ret_attributes);
    sc_unlock();
    return *ret_attributes || !any;
}

static CUresult set_attribute(sc_node *node, CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
    sc_lock();
    if (!node->attributes)
        node->attributes = calloc(SC_N_ATTRIBUTES, sizeof *node->attributes);
    bool is_there = node->attributes != NULL;
    if (is_there)
        node->attributes[id] = *value;
    sc_unlock();
    return is_there ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
        TRY(set_cooperative(node, value->cooperative != 0));
    return set_attribute(node, id, value);
}

API(cuGraphKernelNodeCopyAttributes, CUgraphNode to, CUgraphNode from)
{
    TRY(sc_initialized());
    sc_node *a = node_of(to, CU_GRAPH_NODE_TYPE_KERNEL), *b = node_of(from, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!a || !b)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(set_cooperative(a, is_cooperative(b)));
    CUlaunchAttributeValue *attributes;
    if (!copy_attributes(b, &attributes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    set_attributes(a, attributes);
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

API(cuGraphAddMemcpyNode, NODE, const CUDA_MEMCPY3D *params, CUcontext context)
{
    sc_work *work = NULL;
    TRY(sc_working());
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult made = sc_copy_node(params, context, &work);
    return ADD(made, work, (&(sc_node){.has_params = true, .params.copy = *params}));
}

API(cuGraphMemcpyNodeGetParams, CUgraphNode handle, CUDA_MEMCPY3D *params)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    sc_node_params kept;
    TRY(get_params(node, "copy", &kept));
    *params = kept.copy;
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
    set_params(node, (sc_node_params){.copy = *params});
    return CUDA_SUCCESS;
}

API(cuGraphAddMemsetNode, NODE, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    sc_work *work = NULL;
    TRY(sc_working());
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult made = sc_fill_node(params, context, &work);
    return ADD(made, work, (&(sc_node){.has_params = true, .params.fill = *params}));
}

API(cuGraphMemsetNodeGetParams, CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_MEMSET);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    sc_node_params kept;
    TRY(get_params(node, "fill", &kept));
    *params = kept.fill;
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
    set_params(node, (sc_node_params){.fill = *params});
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
    sc_lock();
    *params = sc_host_params(node->work);
    sc_unlock();
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

/* ---- child graphs: copies of what they are made from ---- */

API(cuGraphAddChildGraphNode, NODE, CUgraph child_handle)
{
    TRY(sc_initialized());
    sc_graph *child = sc_graph_find(child_handle);
    if (!child)
        return CUDA_ERROR_INVALID_VALUE;
    sc_graph *copy;
    TRY(sc_graph_clone(child, true, &copy));
    CUresult result = ADD(CUDA_SUCCESS, sc_work_nothing(CU_GRAPH_NODE_TYPE_GRAPH), &(sc_node){.child = copy});
    if (result) {
        sc_lock();
        sc_object_drop(copy);
        sc_unlock();
    }
    return result;
}

API(cuGraphChildGraphNodeGetGraph, CUgraphNode handle, CUgraph *ret_graph)
{
    TRY(sc_initialized());
    const sc_node *node = node_of(handle, CU_GRAPH_NODE_TYPE_GRAPH);
    if (!node || !ret_graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    *ret_graph = (CUgraph)node->child;
    sc_unlock();
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
    sc_lock();
    *ret_event = (CUevent)((const sc_event_work *)node->work)->event;
    sc_unlock();
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
