/* SPDX-License-Identifier: Apache-2.0 */
/* Instances of graphs: what is launched, and what of it can be changed. */
#include "softcuda/driver/graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct sc_exec sc_exec;

typedef struct exec_node {
    uint64_t id; /* of the graph's node */
    CUgraphNodeType type;
    sc_work *work;
    size_t n_before;
    size_t *before; /* indices of nodes that come first */
    sc_exec *child;
    bool disabled;
    bool has_copy;
    CUDA_MEMCPY3D copy; /* whose memory must stay of the same kinds */
} exec_node;

/* A graph as it was when it was instantiated, its nodes in an order that they can be submitted in. */
struct sc_exec {
    sc_object object;
    size_t n;
    exec_node *nodes;
    sc_uses uses;
    sc_task *last; /* of its last launch, which the next one comes after, whatever the streams */
    unsigned long long flags;
    uint64_t id;
};

static void finish_exec(sc_object *object)
{
    sc_exec *exec = (sc_exec *)object;
    for (size_t i = 0; i < exec->n; i++) {
        sc_work_release(exec->nodes[i].work);
        sc_release(exec->nodes[i].child);
        free(exec->nodes[i].before);
    }
    sc_task_release(exec->last);
    free(exec->nodes);
    sc_uses_drop(&exec->uses);
    free(exec);
}

/* ---- making one ---- */

static CUresult make(const sc_graph *graph, sc_exec **ret_exec);

/* A child's share of user objects is the whole instance's. */
static CUresult copy_node(sc_exec *exec, exec_node *to, const sc_node *node, const size_t *place)
{
    to->before = calloc(node->before.n + 1, sizeof *to->before);
    if (!to->before)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->id = node->id;
    to->type = node->type;
    to->n_before = node->before.n;
    for (size_t i = 0; i < node->before.n; i++)
        to->before[i] = place[node->before.items[i]->index];
    to->has_copy = node->has_params && node->type == CU_GRAPH_NODE_TYPE_MEMCPY;
    if (to->has_copy)
        to->copy = node->params.copy;
    if (!node->child)
        return CUDA_SUCCESS;
    TRY(make(node->child, &to->child));
    sc_uses_move(&exec->uses, &to->child->uses);
    return CUDA_SUCCESS;
}

static CUresult copy_nodes(sc_exec *exec, sc_node **order, size_t n)
{
    size_t *place = calloc(n + 1, sizeof *place);
    exec->nodes = calloc(n + 1, sizeof *exec->nodes);
    CUresult result = place && exec->nodes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < n && !result; i++) {
        place[order[i]->index] = i;
        exec->nodes[i].work = order[i]->work;
        sc_work_retain(order[i]->work);
        exec->n++;
        result = sc_work_instantiate(order[i]->work);
        if (!result)
            result = copy_node(exec, &exec->nodes[i], order[i], place);
    }
    free(place);
    return result;
}

static CUresult make(const sc_graph *graph, sc_exec **ret_exec)
{
    sc_node **order;
    if (!sc_graph_order(graph, &order))
        return CUDA_ERROR_INVALID_VALUE;
    sc_exec *exec = sc_object_create(sizeof *exec, SC_EXEC, NULL, finish_exec);
    bool begun = exec && sc_uses_copy(&exec->uses, &graph->uses);
    CUresult result = begun ? copy_nodes(exec, order, graph->nodes.n) : CUDA_ERROR_OUT_OF_MEMORY;
    free(order);
    if (result)
        sc_release(exec);
    else
        *ret_exec = exec;
    return result;
}

typedef struct exec_search {
    uint64_t id;
    bool found;
} exec_search;

static void match_exec(void *object, void *user)
{
    exec_search *search = user;
    search->found |= ((const sc_exec *)object)->id == search->id;
}

/* Memory nodes have one address, so one instance at a time. */
static bool is_taken(const sc_graph *graph)
{
    exec_search search = {graph->instance, false};
    if (sc_graph_has_memory(graph))
        sc_objects_each(SC_EXEC, match_exec, &search);
    return search.found;
}

/* With the mutex held, until others can know it. */
static CUresult instantiate_held(CUgraphExec *ret_exec, sc_graph *graph, unsigned long long flags)
{
    sc_exec *exec;
    if (is_taken(graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    TRY(make(graph, &exec));
    exec->flags = flags;
    exec->id = graph->instance = sc_next_id();
    if (!sc_object_publish(exec, (uintptr_t)exec)) {
        sc_release(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_exec = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags)
{
    TRY(sc_entered());
    sc_graph *graph = sc_graph_find(handle);
    if (!ret_exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = instantiate_held(ret_exec, graph, flags);
    sc_unlock();
    return result;
}

API(cuGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    const unsigned long long all =
        CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (flags & ~all)
        return CUDA_ERROR_INVALID_VALUE;
    return instantiate(exec, graph, flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
}

API(cuGraphInstantiate_v2, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
    size_t log_bytes)
{
    if (error_node)
        *error_node = NULL;
    if (log && log_bytes)
        *log = '\0';
    return instantiate(exec, graph, 0);
}

API(cuGraphInstantiate, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
    size_t log_bytes)
{
    return cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
}

/* A node that a cycle goes through, or NULL. */
static sc_node *cyclic_node(const sc_graph *graph)
{
    sc_node **order, *found = NULL;
    sc_lock();
    if (sc_graph_order(graph, &order))
        free(order);
    else
        for (size_t i = 0; i < graph->nodes.n && !found; i++)
            found = graph->nodes.items[i]->before.n ? graph->nodes.items[i] : NULL;
    sc_unlock();
    return found;
}

API(cuGraphInstantiateWithParams, CUgraphExec *exec, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    const sc_graph *graph = sc_graph_find(handle);
    CUresult result = cuGraphInstantiateWithFlags(
        exec, handle, params->flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
    const sc_node *cyclic = result && exec && graph ? cyclic_node(graph) : NULL;
    params->hErrNode_out = (CUgraphNode)(uintptr_t)cyclic;
    params->result_out = cyclic   ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                         : result ? CUDA_GRAPH_INSTANTIATE_ERROR
                                  : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return result;
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *params)
    SC_ENTRY(cuGraphInstantiateWithParams_ptsz);
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return cuGraphInstantiateWithParams(exec, graph, params);
}

static sc_exec *find_exec(CUgraphExec handle)
{
    return sc_object_find(SC_EXEC, (uintptr_t)handle);
}

API(cuGraphExecGetFlags, CUgraphExec handle, unsigned long long *flags)
{
    TRY(sc_initialized());
    const sc_exec *exec = find_exec(handle);
    if (!exec || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

API(cuGraphExecDestroy, CUgraphExec handle)
{
    TRY(sc_initialized());
    sc_exec *exec = find_exec(handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sc_object_retract(exec))
        return CUDA_ERROR_INVALID_VALUE;
    sc_uses uses = exec->uses;
    exec->uses = (sc_uses){0};
    sc_release(exec);
    sc_uses_drop(&uses);
    return CUDA_SUCCESS;
}

/* ---- launching ---- */

/* What one launch has submitted: a task a node. */
typedef struct run {
    sc_context *context;
    sc_task *const *first; /* what the first nodes come after */
    size_t n_first;
    sc_task **tasks;
} run;

static sc_task *submit_exec(const sc_exec *exec, sc_context *context, sc_task *const *before,
                            size_t n_before);

static sc_task *submit_work(sc_context *context, const exec_node *node, sc_task **before, size_t n)
{
    bool is_event =
        node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    sc_event *event = is_event ? ((sc_event_work *)node->work)->event : NULL;
    if (event && node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && event->task)
        before[n++] = event->task;
    sc_work *work = node->disabled ? sc_work_nothing(CU_GRAPH_NODE_TYPE_EMPTY) : node->work;
    if (!work)
        return NULL;
    if (!node->disabled)
        sc_work_retain(work);
    sc_task *task = sc_task_submit(context, work, before, n);
    if (task && event && node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
        sc_capture_forget_event(event);
        sc_task_release(event->task);
        event->task = sc_task_retain(task);
    }
    return task;
}

/* Node i after the nodes before it, or where it is a first one after what the graph comes after. */
static sc_task *submit_node(const sc_exec *exec, size_t i, const run *r)
{
    const exec_node *node = &exec->nodes[i];
    size_t n = node->n_before ? node->n_before : r->n_first;
    sc_task **before = calloc(n + 1, sizeof(sc_task *));
    if (!before)
        return NULL;
    for (size_t j = 0; j < n; j++)
        before[j] = node->n_before ? r->tasks[node->before[j]] : r->first[j];
    sc_task *task = node->child ? submit_exec(node->child, r->context, before, n)
                                : submit_work(r->context, node, before, n);
    free(before);
    return task;
}

/* The nodes, then an empty task after all of them that stands for the whole. NULL: out of memory. */
static sc_task *submit_exec(const sc_exec *exec, sc_context *context, sc_task *const *before, size_t n_before)
{
    run r = {context, before, n_before, calloc(exec->n + 1, sizeof(sc_task *))};
    size_t n = 0;
    while (r.tasks && n < exec->n && (r.tasks[n] = submit_node(exec, n, &r)))
        n++;
    sc_work *join = r.tasks && n == exec->n ? sc_work_nothing(CU_GRAPH_NODE_TYPE_EMPTY) : NULL;
    sc_task *end = NULL;
    if (join)
        end = sc_task_submit(context, join, n ? r.tasks : before, n ? n : n_before);
    while (n > 0)
        sc_task_release(r.tasks[--n]);
    free(r.tasks);
    return end;
}

/* What an earlier launch allocated must have been freed, unless the instance was asked to. */
static CUresult take_memory(const sc_exec *exec)
{
    bool frees = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    for (size_t i = 0; i < exec->n && !frees; i++)
        if (sc_memory_work_is_out(exec->nodes[i].work))
            return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < exec->n; i++)
        sc_memory_work_launch(exec->nodes[i].work);
    return CUDA_SUCCESS;
}

static CUresult launch(sc_exec *exec, sc_stream *stream)
{
    sc_context *context = stream->object.context;
    if (stream->capture)
        return sc_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (stream == context->legacy)
        TRY(sc_capture_implicit(context));
    TRY(sc_stream_check(stream));
    TRY(take_memory(exec));
    sc_task **before;
    size_t n_before;
    TRY(sc_stream_before(stream, &before, &n_before));
    if (exec->last)
        before[n_before++] = exec->last;
    sc_task *end = submit_exec(exec, context, before, n_before);
    free(before);
    if (!end)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sc_task_release(stream->last);
    stream->last = end;
    sc_task_release(exec->last);
    exec->last = sc_task_retain(end);
    return CUDA_SUCCESS;
}

/* Enters and finds the stream that the parameter `stream` names. */
#define FIND_STREAM \
    sc_stream *s;   \
    TRY(sc_stream_enter(stream, &s))

API_STREAM(cuGraphLaunch, (CUgraphExec handle, CUstream stream), (handle, stream))
{
    FIND_STREAM;
    sc_exec *exec = find_exec(handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = launch(exec, s);
    sc_unlock();
    return result;
}

/* There is nothing to upload to. */
API_STREAM(cuGraphUpload, (CUgraphExec handle, CUstream stream), (handle, stream))
{
    FIND_STREAM;
    if (!find_exec(handle))
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result =
        s->capture ? sc_capture_invalidate(s->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) : CUDA_SUCCESS;
    sc_unlock();
    return result;
}

/* ---- changing one ---- */

/* The instance's node of a graph's node of that type, or NULL. */
static exec_node *find_node(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeType type)
{
    sc_exec *exec = find_exec(handle);
    const sc_node *node = sc_node_find(node_handle);
    for (size_t i = 0; exec && node && i < exec->n; i++)
        if (exec->nodes[i].id == node->id)
            return exec->nodes[i].type == type ? &exec->nodes[i] : NULL;
    return NULL;
}

/* Consumes the work. */
static CUresult set_work(exec_node *node, sc_work *work)
{
    CUresult result = sc_work_instantiate(work);
    if (result) {
        sc_work_release(work);
        return result;
    }
    sc_lock();
    sc_work *old = node->work;
    node->work = work;
    sc_work_release(old);
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode handle,
    const CUDA_KERNEL_NODE_PARAMS *params)
{
    sc_work *work;
    TRY(sc_working());
    exec_node *node = find_node(exec, handle, CU_GRAPH_NODE_TYPE_KERNEL);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    bool cooperative = sc_launch_is_cooperative(node->work);
    sc_unlock();
    TRY(sc_launch_node(params, cooperative, &work));
    return set_work(node, work);
}

/* Before CUDA 12 the structure ended before `kern`. */
API(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode handle, const void *params)
{
    CUDA_KERNEL_NODE_PARAMS whole = {0};
    if (params)
        memcpy(&whole, params, offsetof(CUDA_KERNEL_NODE_PARAMS, kern));
    return cuGraphExecKernelNodeSetParams_v2(exec, handle, params ? &whole : NULL);
}

static bool same_memory(const CUDA_MEMCPY3D *a, const CUDA_MEMCPY3D *b)
{
    return a->srcMemoryType == b->srcMemoryType && a->dstMemoryType == b->dstMemoryType;
}

API(cuGraphExecMemcpyNodeSetParams, CUgraphExec exec, CUgraphNode handle, const CUDA_MEMCPY3D *params,
    CUcontext context)
{
    sc_work *work;
    TRY(sc_working());
    exec_node *node = find_node(exec, handle, CU_GRAPH_NODE_TYPE_MEMCPY);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    bool good = !node->has_copy || same_memory(&node->copy, params);
    sc_unlock();
    if (!good)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_copy_node(params, context, &work));
    return set_work(node, work);
}

API(cuGraphExecMemsetNodeSetParams, CUgraphExec exec, CUgraphNode handle,
    const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    sc_work *work;
    TRY(sc_working());
    exec_node *node = find_node(exec, handle, CU_GRAPH_NODE_TYPE_MEMSET);
    if (!node || !params)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_fill_node(params, context, &work));
    return set_work(node, work);
}

API(cuGraphExecHostNodeSetParams, CUgraphExec exec, CUgraphNode handle, const CUDA_HOST_NODE_PARAMS *params)
{
    TRY(sc_initialized());
    exec_node *node = find_node(exec, handle, CU_GRAPH_NODE_TYPE_HOST);
    if (!node || !params || !params->fn)
        return CUDA_ERROR_INVALID_VALUE;
    sc_work *work = sc_host_work_create(params->fn, params->userData);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return set_work(node, work);
}

static CUresult set_event(CUgraphExec exec, CUgraphNode handle, CUgraphNodeType type, CUevent event_handle)
{
    TRY(sc_initialized());
    exec_node *node = find_node(exec, handle, type);
    sc_event *event = sc_object_find(SC_EVENT, (uintptr_t)event_handle);
    if (!node || !event)
        return CUDA_ERROR_INVALID_VALUE;
    sc_work *work = sc_event_work_create(event, type);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return set_work(node, work);
}

API(cuGraphExecEventRecordNodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set_event(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

API(cuGraphExecEventWaitNodeSetEvent, CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set_event(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

static bool can_be_disabled(const exec_node *node)
{
    return node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
           node->type == CU_GRAPH_NODE_TYPE_MEMSET;
}

static exec_node *find_switch(CUgraphExec exec, CUgraphNode handle)
{
    const sc_node *node = sc_node_find(handle);
    exec_node *found = node ? find_node(exec, handle, node->type) : NULL;
    return found && can_be_disabled(found) ? found : NULL;
}

API(cuGraphNodeSetEnabled, CUgraphExec exec, CUgraphNode handle, unsigned enabled)
{
    TRY(sc_initialized());
    exec_node *node = find_switch(exec, handle);
    if (!node)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    node->disabled = !enabled;
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuGraphNodeGetEnabled, CUgraphExec exec, CUgraphNode handle, unsigned *enabled)
{
    TRY(sc_initialized());
    const exec_node *node = find_switch(exec, handle);
    if (!node || !enabled)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    *enabled = !node->disabled;
    sc_unlock();
    return CUDA_SUCCESS;
}

/* ---- updating the whole ---- */

static bool same_before(const exec_node *a, const exec_node *b)
{
    if (a->n_before != b->n_before)
        return false;
    for (size_t i = 0; i < a->n_before; i++)
        if (a->before[i] != b->before[i])
            return false;
    return true;
}

/* Does `next` have the shape of the instance? Where it differs at a node, that is *ret_node. */
static CUgraphExecUpdateResult compare(const sc_exec *exec, const sc_exec *next, const exec_node **ret_node)
{
    if (exec->n != next->n)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < exec->n; i++) {
        const exec_node *a = &exec->nodes[i], *b = &next->nodes[i];
        *ret_node = b;
        if (!same_before(a, b))
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        if (a->type != b->type)
            return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
        if (a->has_copy && b->has_copy && !same_memory(&a->copy, &b->copy))
            return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
        const exec_node *inner = NULL;
        CUgraphExecUpdateResult child =
            a->child ? compare(a->child, b->child, &inner) : CU_GRAPH_EXEC_UPDATE_SUCCESS;
        if (child)
            return child;
    }
    *ret_node = NULL;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* The works change places; the nodes stay who they are. */
static void take_works(sc_exec *exec, sc_exec *next)
{
    for (size_t i = 0; i < exec->n; i++) {
        exec_node *a = &exec->nodes[i], *b = &next->nodes[i];
        sc_work *work = a->work;
        a->work = b->work;
        b->work = work;
        a->has_copy = b->has_copy;
        a->copy = b->copy;
        if (a->child)
            take_works(a->child, b->child);
    }
}

static CUgraphNode handle_of(const sc_graph *graph, const exec_node *node)
{
    for (size_t i = 0; node && i < graph->nodes.n; i++)
        if (graph->nodes.items[i]->id == node->id)
            return (CUgraphNode)graph->nodes.items[i];
    return NULL;
}

/* With the mutex held. The instance keeps its hold on user objects, and takes none of the graph's. */
static CUresult update(sc_exec *exec, const sc_graph *graph, CUgraphExecUpdateResultInfo *info,
                       sc_uses *ret_uses)
{
    sc_exec *next;
    const exec_node *node = NULL;
    TRY(make(graph, &next));
    info->result = compare(exec, next, &node);
    info->errorNode = handle_of(graph, node);
    if (!info->result)
        take_works(exec, next);
    *ret_uses = next->uses;
    next->uses = (sc_uses){0};
    sc_release(next);
    return info->result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_SUCCESS;
}

API(cuGraphExecUpdate_v2, CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *ret_info)
{
    TRY(sc_working());
    sc_exec *exec = find_exec(handle);
    sc_graph *graph = sc_graph_find(graph_handle);
    CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL};
    sc_uses uses = {0};
    if (!exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = update(exec, graph, &info, &uses);
    sc_unlock();
    sc_uses_drop(&uses);
    if (ret_info)
        *ret_info = info;
    return result;
}

API(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode *ret_node,
    CUgraphExecUpdateResult *ret_result)
{
    CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL};
    CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
    if (ret_node)
        *ret_node = info.errorNode;
    if (ret_result)
        *ret_result = info.result;
    return result;
}

API(cuGraphExecChildGraphNodeSetParams, CUgraphExec exec, CUgraphNode handle, CUgraph child)
{
    TRY(sc_working());
    const exec_node *node = find_node(exec, handle, CU_GRAPH_NODE_TYPE_GRAPH);
    const sc_graph *graph = sc_graph_find(child);
    CUgraphExecUpdateResultInfo info;
    sc_uses uses = {0};
    if (!node || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = update(node->child, graph, &info, &uses);
    sc_unlock();
    sc_uses_drop(&uses);
    return result;
}
