/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes of each kind, the edges between them, copies, user objects. */
#include "softcuda/driver/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sets of nodes ---- */

bool sc_nodes_have(const sc_nodes *set, const sc_node *node)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->items[i] == node)
            return true;
    return false;
}

bool sc_nodes_add(sc_nodes *set, sc_node *node)
{
    if (sc_nodes_have(set, node))
        return true;
    sc_node **grown = realloc(set->items, (set->n + 1) * sizeof(sc_node *));
    if (!grown)
        return false;
    set->items = grown;
    grown[set->n++] = node;
    return true;
}

bool sc_nodes_add_all(sc_nodes *set, const sc_nodes *others)
{
    for (size_t i = 0; i < others->n; i++)
        if (!sc_nodes_add(set, others->items[i]))
            return false;
    return true;
}

static void remove_from(sc_nodes *set, const sc_node *node)
{
    size_t n = 0;
    for (size_t i = 0; i < set->n; i++)
        if (set->items[i] != node)
            set->items[n++] = set->items[i];
    set->n = n;
}

void sc_nodes_clear(sc_nodes *set)
{
    free(set->items);
    *set = (sc_nodes){0};
}

/* ---- graphs ---- */

static void finish_node(sc_object *object)
{
    sc_node *node = (sc_node *)object;
    sc_work_release(node->work);
    sc_nodes_clear(&node->before);
    if (node->child) {
        sc_object_retract(node->child);
        sc_release(node->child);
    }
    free(node->attributes);
    free(node);
}

static void finish_graph(sc_object *object)
{
    sc_graph *graph = (sc_graph *)object;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        sc_object_retract(graph->nodes.items[i]);
        sc_release(graph->nodes.items[i]);
    }
    sc_nodes_clear(&graph->nodes);
    free(graph->uses.items);
    free(graph);
}

sc_graph *sc_graph_create(void)
{
    sc_graph *graph = sc_object_create(sizeof(sc_graph), SC_GRAPH, NULL, finish_graph);
    if (graph)
        graph->id = sc_next_id();
    return graph;
}

sc_graph *sc_graph_find(CUgraph handle)
{
    return sc_object_find(SC_GRAPH, (uintptr_t)handle);
}

sc_node *sc_node_find(CUgraphNode handle)
{
    return sc_object_find(SC_NODE, (uintptr_t)handle);
}

sc_node *sc_graph_add(sc_graph *graph, sc_work *work, const sc_nodes *before)
{
    sc_node *node = sc_object_create(sizeof *node, SC_NODE, NULL, finish_node);
    if (!node) {
        sc_work_release(work);
        return NULL;
    }
    node->graph = graph;
    node->work = work;
    node->index = graph->nodes.n;
    node->id = sc_next_id();
    if (!sc_nodes_add_all(&node->before, before) || !sc_object_publish(node, (uintptr_t)node)) {
        sc_release(node);
        return NULL;
    }
    if (!sc_nodes_add(&graph->nodes, node)) {
        sc_object_retract(node);
        sc_release(node);
        return NULL;
    }
    return node;
}

static bool are_placed(const sc_nodes *before, const bool *placed)
{
    for (size_t i = 0; i < before->n; i++)
        if (!placed[before->items[i]->index])
            return false;
    return true;
}

/* Again and again through the nodes: they mostly are in order already. */
bool sc_graph_order(const sc_graph *graph, sc_node ***ret_nodes)
{
    const sc_nodes *all = &graph->nodes;
    sc_node **order = calloc(all->n + 1, sizeof(sc_node *));
    bool *placed = calloc(all->n + 1, sizeof *placed);
    size_t n = 0, before = 1;
    while (order && placed && n < all->n && n != before) {
        before = n;
        for (size_t i = 0; i < all->n; i++)
            if (!placed[i] && are_placed(&all->items[i]->before, placed)) {
                placed[i] = true;
                order[n++] = all->items[i];
            }
        if (n == before)
            break;
    }
    bool whole = order && placed && n == all->n;
    free(placed);
    if (whole)
        *ret_nodes = order;
    else
        free(order);
    return whole;
}

CUresult sc_graph_nodes(const sc_graph *graph, const CUgraphNode *handles, size_t n, sc_nodes *ret_nodes)
{
    sc_nodes nodes = {0};
    if (n && !handles)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        sc_node *node = sc_node_find(handles[i]);
        bool good = node && node->graph == graph && !sc_nodes_have(&nodes, node);
        if (!good || !sc_nodes_add(&nodes, node)) {
            sc_nodes_clear(&nodes);
            return good ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
        }
    }
    *ret_nodes = nodes;
    return CUDA_SUCCESS;
}

/* Everything of a node but its place. */
static bool copy_node(sc_node *to, const sc_node *from)
{
    to->origin = from->id;
    to->has_params = from->has_params;
    to->params = from->params;
    if (from->attributes) {
        to->attributes = malloc(SC_N_ATTRIBUTES * sizeof *to->attributes);
        if (!to->attributes)
            return false;
        memcpy(to->attributes, from->attributes, SC_N_ATTRIBUTES * sizeof *to->attributes);
    }
    if (!from->child)
        return true;
    to->child = sc_graph_copy(from->child);
    return to->child && sc_object_publish(to->child, (uintptr_t)to->child);
}

sc_graph *sc_graph_copy(const sc_graph *graph)
{
    sc_graph *copy = sc_graph_create();
    bool good = copy && sc_uses_copy(&copy->uses, &graph->uses);
    for (size_t i = 0; good && i < graph->nodes.n; i++) {
        sc_work_retain(graph->nodes.items[i]->work);
        sc_node *node = sc_graph_add(copy, graph->nodes.items[i]->work, &(sc_nodes){0});
        good = node && copy_node(node, graph->nodes.items[i]);
    }
    for (size_t i = 0; good && i < graph->nodes.n; i++) {
        const sc_nodes *before = &graph->nodes.items[i]->before;
        for (size_t j = 0; good && j < before->n; j++)
            good = sc_nodes_add(&copy->nodes.items[i]->before, copy->nodes.items[before->items[j]->index]);
    }
    if (copy)
        copy->origin = graph->id;
    if (!good) {
        sc_release(copy);
        return NULL;
    }
    return copy;
}

API(cuGraphCreate, CUgraph *ret_graph, unsigned flags)
{
    TRY(sc_initialized());
    if (!ret_graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sc_graph *graph = sc_graph_create();
    if (!graph || !sc_object_publish(graph, (uintptr_t)graph)) {
        sc_release(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_graph = (CUgraph)graph;
    return CUDA_SUCCESS;
}

API(cuGraphDestroy, CUgraph handle)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_uses uses = {0};
    sc_lock();
    sc_uses_take(&uses, graph);
    sc_object_retract(graph);
    sc_release(graph);
    sc_unlock();
    sc_uses_drop(&uses);
    return CUDA_SUCCESS;
}

API(cuGraphClone, CUgraph *ret_copy, CUgraph handle)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    if (!ret_copy || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (sc_graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    sc_lock();
    sc_graph *copy = sc_graph_copy(graph);
    sc_unlock();
    if (!copy || !sc_object_publish(copy, (uintptr_t)copy)) {
        sc_release(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_copy = (CUgraph)copy;
    return CUDA_SUCCESS;
}

API(cuGraphNodeFindInClone, CUgraphNode *ret_node, CUgraphNode original, CUgraph handle)
{
    TRY(sc_initialized());
    sc_graph *copy = sc_graph_find(handle);
    const sc_node *node = sc_node_find(original);
    if (!ret_node || !copy || !node || copy->origin != node->graph->id)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    for (size_t i = 0; i < copy->nodes.n && result; i++)
        if (copy->nodes.items[i]->origin == node->id) {
            *ret_node = (CUgraphNode)copy->nodes.items[i];
            result = CUDA_SUCCESS;
        }
    sc_unlock();
    return result;
}

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
        return CUDA_ERROR_NOT_SUPPORTED;
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

/* ---- what a graph is made of ---- */

/* Fills a caller's array, and its count: how many there are, or were written where it has less room. */
typedef struct answer {
    CUgraphNode *nodes, *others;
    size_t room, n;
} answer;

static void put(answer *a, const sc_node *node, const sc_node *other)
{
    if (a->n < a->room && a->nodes)
        a->nodes[a->n] = (CUgraphNode)(uintptr_t)node;
    if (a->n < a->room && a->others)
        a->others[a->n] = (CUgraphNode)(uintptr_t)other;
    a->n++;
}

static void finish_answer(answer *a, size_t *ret_n)
{
    for (size_t i = a->n; i < a->room && a->nodes; i++) {
        a->nodes[i] = NULL;
        if (a->others)
            a->others[i] = NULL;
    }
    *ret_n = a->nodes && a->n > a->room ? a->room : a->n;
}

static answer answer_in(CUgraphNode *nodes, CUgraphNode *others, const size_t *n)
{
    return (answer){nodes, others, nodes ? *n : 0, 0};
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *n, bool roots)
{
    TRY(sc_initialized());
    const sc_graph *graph = sc_graph_find(handle);
    if (!graph || !n)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(nodes, NULL, n);
    sc_lock();
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (!roots || !graph->nodes.items[i]->before.n)
            put(&a, graph->nodes.items[i], NULL);
    sc_unlock();
    finish_answer(&a, n);
    return CUDA_SUCCESS;
}

API(cuGraphGetNodes, CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return list_nodes(graph, nodes, n, false);
}

API(cuGraphGetRootNodes, CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return list_nodes(graph, nodes, n, true);
}

/* What is known of each edge: nothing special. */
static void clear_edges(CUgraphEdgeData *edges, size_t n)
{
    if (edges)
        memset(edges, 0, n * sizeof *edges);
}

API(cuGraphGetEdges_v2, CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges, size_t *n)
{
    TRY(sc_initialized());
    const sc_graph *graph = sc_graph_find(handle);
    if (!graph || !n || !from != !to)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(from, to, n);
    sc_lock();
    for (size_t k = 0; k < graph->nodes.n; k++)
        for (size_t i = 0; i < graph->nodes.n; i++)
            if (sc_nodes_have(&graph->nodes.items[i]->before, graph->nodes.items[k]))
                put(&a, graph->nodes.items[k], graph->nodes.items[i]);
    sc_unlock();
    finish_answer(&a, n);
    clear_edges(from ? edges : NULL, *n);
    return CUDA_SUCCESS;
}

API(cuGraphGetEdges, CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return cuGraphGetEdges_v2(graph, from, to, NULL, n);
}

API(cuGraphNodeGetDependencies_v2, CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges, size_t *n)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(nodes, NULL, n);
    sc_lock();
    for (size_t i = 0; i < node->before.n; i++)
        put(&a, node->before.items[i], NULL);
    sc_unlock();
    finish_answer(&a, n);
    clear_edges(nodes ? edges : NULL, *n);
    return CUDA_SUCCESS;
}

API(cuGraphNodeGetDependencies, CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
    return cuGraphNodeGetDependencies_v2(node, nodes, NULL, n);
}

API(cuGraphNodeGetDependentNodes_v2, CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *edges,
    size_t *n)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !n)
        return CUDA_ERROR_INVALID_VALUE;
    answer a = answer_in(nodes, NULL, n);
    sc_lock();
    for (size_t i = 0; i < node->graph->nodes.n; i++)
        if (sc_nodes_have(&node->graph->nodes.items[i]->before, node))
            put(&a, node->graph->nodes.items[i], NULL);
    sc_unlock();
    finish_answer(&a, n);
    clear_edges(nodes ? edges : NULL, *n);
    return CUDA_SUCCESS;
}

API(cuGraphNodeGetDependentNodes, CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
    return cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, n);
}

API(cuGraphNodeGetType, CUgraphNode handle, CUgraphNodeType *type)
{
    TRY(sc_initialized());
    const sc_node *node = sc_node_find(handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->work->type;
    return CUDA_SUCCESS;
}

/* ---- changing it ---- */

static CUresult change_edge(sc_graph *graph, CUgraphNode from, CUgraphNode to, bool is_there)
{
    sc_node *a = sc_node_find(from), *b = sc_node_find(to);
    if (!a || !b || a == b || a->graph != graph || b->graph != graph ||
        sc_nodes_have(&b->before, a) != is_there)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_there)
        remove_from(&b->before, a);
    else if (!sc_nodes_add(&b->before, a))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

/* Those before the first wrong one stay changed. */
static CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t n,
                             bool are_there)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    if (!graph || (n && (!from || !to)))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = CUDA_SUCCESS;
    sc_lock();
    for (size_t i = 0; i < n && !result; i++)
        result = change_edge(graph, from[i], to[i], are_there);
    sc_unlock();
    return result;
}

API(cuGraphAddDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return change_edges(graph, from, to, n, false);
}

API(cuGraphRemoveDependencies, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n)
{
    return change_edges(graph, from, to, n, true);
}

/* Edges from a part of a node on (programmatic launches) are not there. */
static bool are_plain(const CUgraphEdgeData *edges, size_t n)
{
    static const CUgraphEdgeData plain;
    for (size_t i = 0; edges && i < n; i++)
        if (memcmp(&edges[i], &plain, sizeof plain) != 0)
            return false;
    return true;
}

API(cuGraphAddDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
    const CUgraphEdgeData *edges, size_t n)
{
    return are_plain(edges, n) ? cuGraphAddDependencies(graph, from, to, n) : CUDA_ERROR_NOT_SUPPORTED;
}

API(cuGraphRemoveDependencies_v2, CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
    const CUgraphEdgeData *edges, size_t n)
{
    return are_plain(edges, n) ? cuGraphRemoveDependencies(graph, from, to, n) : CUDA_ERROR_NOT_SUPPORTED;
}

API(cuGraphDestroyNode, CUgraphNode handle)
{
    TRY(sc_initialized());
    sc_node *node = sc_node_find(handle);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    sc_graph *graph = node->graph;
    sc_uses uses = {0};
    if (sc_graph_has_memory(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    sc_lock();
    bool free_to_change = !graph->n_captures; /* whose streams go on from its nodes */
    if (free_to_change) {
        if (node->child)
            sc_uses_take(&uses, node->child);
        sc_object_retract(node);
        remove_from(&graph->nodes, node);
        for (size_t i = 0; i < graph->nodes.n; i++) {
            graph->nodes.items[i]->index = i;
            remove_from(&graph->nodes.items[i]->before, node);
        }
        sc_release(node);
    }
    sc_unlock();
    sc_uses_drop(&uses);
    if (!free_to_change)
        sc_say("a node of a graph that is being captured cannot be destroyed");
    return free_to_change ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- a picture ---- */

API(cuGraphDebugDotPrint, CUgraph handle, const char *path, unsigned flags)
{
    (void)flags; /* they ask for more than the shape */
    TRY(sc_initialized());
    const sc_graph *graph = sc_graph_find(handle);
    if (!graph || !path)
        return CUDA_ERROR_INVALID_VALUE;
    FILE *out = fopen(path, "we");
    if (!out)
        return CUDA_ERROR_OPERATING_SYSTEM;
    sc_lock();
    fprintf(out, "digraph dot {\n");
    for (size_t i = 0; i < graph->nodes.n; i++) {
        const sc_node *node = graph->nodes.items[i];
        fprintf(out, "node%zu [label=\"%zu, type %d\"];\n", i, i, (int)node->work->type);
        for (size_t j = 0; j < node->before.n; j++)
            fprintf(out, "node%zu -> node%zu;\n", node->before.items[j]->index, i);
    }
    sc_unlock();
    fprintf(out, "}\n");
    bool written = !ferror(out);
    return fclose(out) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

/* ---- user objects ---- */

typedef struct sc_user {
    sc_object object;
    unsigned long long n; /* references, the graphs' included */
    CUhostFn destroy;
    void *pointer;
} sc_user;

static void finish_user(sc_object *object)
{
    free(object);
}

/* Gives references back; the last destroys what they were to. */
static void drop(sc_user *user, unsigned n)
{
    sc_lock();
    user->n = user->n > n ? user->n - n : 0;
    bool last = !user->n;
    sc_unlock();
    if (!last)
        return;
    sc_object_retract(user);
    user->destroy(user->pointer);
    sc_release(user);
}

bool sc_uses_copy(sc_uses *to, const sc_uses *from)
{
    if (!from->n)
        return true;
    to->items = malloc(from->n * sizeof *to->items);
    if (!to->items)
        return false;
    to->n = from->n;
    for (size_t i = 0; i < from->n; i++) {
        to->items[i] = from->items[i];
        to->items[i].user->n += to->items[i].n;
    }
    return true;
}

void sc_uses_drop(sc_uses *uses)
{
    for (size_t i = 0; i < uses->n; i++)
        drop(uses->items[i].user, uses->items[i].n);
    free(uses->items);
    *uses = (sc_uses){0};
}

static bool add_use(sc_uses *uses, sc_user *user, unsigned n)
{
    for (size_t i = 0; i < uses->n; i++)
        if (uses->items[i].user == user) {
            uses->items[i].n += n;
            return true;
        }
    sc_use *grown = realloc(uses->items, (uses->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    uses->items = grown;
    grown[uses->n++] = (sc_use){user, n};
    return true;
}

void sc_uses_move(sc_uses *to, sc_uses *from)
{
    for (size_t i = 0; i < from->n; i++)
        add_use(to, from->items[i].user, from->items[i].n);
    free(from->items);
    *from = (sc_uses){0};
}

void sc_uses_take(sc_uses *to, sc_graph *graph)
{
    sc_uses_move(to, &graph->uses);
    for (size_t i = 0; i < graph->nodes.n; i++)
        if (graph->nodes.items[i]->child)
            sc_uses_take(to, graph->nodes.items[i]->child);
}

API(cuUserObjectCreate, CUuserObject *ret_object, void *pointer, CUhostFn destroy, unsigned n, unsigned flags)
{
    if (!ret_object || !destroy || !n || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_initialized());
    sc_user *user = sc_object_create(sizeof *user, SC_USER, NULL, finish_user);
    if (!user || !sc_object_publish(user, (uintptr_t)user)) {
        sc_release(user);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    user->n = n;
    user->destroy = destroy;
    user->pointer = pointer;
    *ret_object = (CUuserObject)user;
    return CUDA_SUCCESS;
}

static sc_user *find_user(CUuserObject handle)
{
    return sc_object_find(SC_USER, (uintptr_t)handle);
}

API(cuUserObjectRetain, CUuserObject handle, unsigned n)
{
    TRY(sc_initialized());
    sc_user *user = find_user(handle);
    if (!user || !n)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    user->n += n;
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuUserObjectRelease, CUuserObject handle, unsigned n)
{
    TRY(sc_initialized());
    sc_user *user = find_user(handle);
    if (!user || !n)
        return CUDA_ERROR_INVALID_VALUE;
    drop(user, n);
    return CUDA_SUCCESS;
}

API(cuGraphRetainUserObject, CUgraph handle, CUuserObject object, unsigned n, unsigned flags)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    sc_user *user = find_user(object);
    if (!graph || !user || !n || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    bool added = add_use(&graph->uses, user, n);
    if (added && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
        user->n += n;
    sc_unlock();
    return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API(cuGraphReleaseUserObject, CUgraph handle, CUuserObject object, unsigned n)
{
    TRY(sc_initialized());
    sc_graph *graph = sc_graph_find(handle);
    sc_user *user = find_user(object);
    if (!graph || !user || !n)
        return CUDA_ERROR_INVALID_VALUE;
    bool held = false;
    sc_lock();
    for (size_t i = 0; i < graph->uses.n; i++)
        if (graph->uses.items[i].user == user && graph->uses.items[i].n >= n) {
            graph->uses.items[i].n -= n;
            held = true;
        }
    sc_unlock();
    if (held)
        drop(user, n);
    return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
