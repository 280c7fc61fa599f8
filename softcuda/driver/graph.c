/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, and capturing streams into them. A node is a work and the nodes before it. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct sc_graph sc_graph;

struct sc_node {
    sc_object object;
    sc_graph *graph;
    sc_work *work;
    sc_nodes before;
    size_t index; /* in the graph; every node comes after lower ones alone */
};

struct sc_graph {
    sc_object object;
    sc_nodes nodes;
};

/* One capture: the graph, and the streams that belong to it point here. */
struct sc_capture {
    unsigned refs;
    uint64_t id;
    sc_graph *graph;
    sc_stream *origin;
    CUstreamCaptureMode mode;
    uint64_t thread;
    bool invalid;
    sc_capture *next; /* of all in progress */
};

static bool add_to(sc_nodes *set, sc_node *node)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->items[i] == node)
            return true;
    sc_node **grown = realloc(set->items, (set->n + 1) * sizeof(sc_node *));
    if (!grown)
        return false;
    set->items = grown;
    grown[set->n++] = node;
    return true;
}

static bool add_all(sc_nodes *set, const sc_nodes *others)
{
    for (size_t i = 0; i < others->n; i++)
        if (!add_to(set, others->items[i]))
            return false;
    return true;
}

static void clear(sc_nodes *set)
{
    free(set->items);
    *set = (sc_nodes){0};
}

/* ---- graphs ---- */

static void finish_node(sc_object *object)
{
    sc_node *node = (sc_node *)object;
    sc_work_release(node->work);
    clear(&node->before);
    free(node);
}

static void finish_graph(sc_object *object)
{
    sc_graph *graph = (sc_graph *)object;
    for (size_t i = 0; i < graph->nodes.n; i++) {
        sc_object_retract(graph->nodes.items[i]);
        sc_release(graph->nodes.items[i]);
    }
    clear(&graph->nodes);
    free(graph);
}

static sc_graph *create_graph(void)
{
    return sc_object_create(sizeof(sc_graph), SC_GRAPH, NULL, finish_graph);
}

/* Consumes the work. NULL: out of memory. */
static sc_node *add_node(sc_graph *graph, sc_work *work, const sc_nodes *before)
{
    sc_node *node = sc_object_create(sizeof *node, SC_NODE, NULL, finish_node);
    if (!node) {
        sc_work_release(work);
        return NULL;
    }
    node->graph = graph;
    node->work = work;
    node->index = graph->nodes.n;
    if (!add_all(&node->before, before) || !sc_object_publish(node, (uintptr_t)node)) {
        sc_release(node);
        return NULL;
    }
    if (!add_to(&graph->nodes, node)) {
        sc_object_retract(node);
        sc_release(node);
        return NULL;
    }
    return node;
}

/* ---- capture ---- */

static sc_capture *captures; /* in progress, in the whole process */
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static void forget_event(void *event, void *capture)
{
    if (((sc_event *)event)->capture == capture)
        sc_capture_forget_event(event);
}

/* The last stream to leave ends the capture; events recorded in it lead nowhere then. */
static void leave(sc_stream *stream)
{
    sc_capture *capture = stream->capture;
    if (!capture)
        return;
    stream->capture = NULL;
    clear(&stream->tails);
    if (--capture->refs)
        return;
    sc_capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    sc_objects_each(SC_EVENT, forget_event, capture);
    sc_release(capture->graph);
    free(capture);
}

void sc_capture_leave(sc_stream *stream)
{
    leave(stream);
}

CUresult sc_capture_invalidate(sc_capture *capture, CUresult code)
{
    capture->invalid = true;
    return code;
}

CUresult sc_capture_add(sc_stream *stream, sc_work *work)
{
    if (stream->capture->invalid) {
        sc_work_release(work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    sc_node *node = add_node(stream->capture->graph, work, &stream->tails);
    clear(&stream->tails);
    if (!node || !add_to(&stream->tails, node))
        return sc_capture_invalidate(stream->capture, CUDA_ERROR_OUT_OF_MEMORY);
    return CUDA_SUCCESS;
}

void sc_capture_forget_event(sc_event *event)
{
    event->capture = NULL;
    clear(&event->nodes);
}

CUresult sc_capture_record(sc_stream *stream, sc_event *event)
{
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    sc_capture_forget_event(event);
    event->capture = stream->capture;
    return add_all(&event->nodes, &stream->tails) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sc_capture_wait(sc_stream *stream, sc_event *event)
{
    sc_capture *capture = event->capture;
    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream == stream->object.context->legacy)
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (capture->origin->object.context != stream->object.context)
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (stream->capture && stream->capture != capture)
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    if (!stream->capture) {
        stream->capture = capture;
        capture->refs++;
    }
    return add_all(&stream->tails, &event->nodes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Who forbids what: cuThreadExchangeStreamCaptureMode. A capture in global mode forbids it to every thread
 * that is in global mode itself, one in thread-local mode to its own thread, and a relaxed one to none. */
static bool forbids(const sc_capture *capture)
{
    if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    return capture->thread == sc_thread_id() ||
           (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult sc_capture_forbids(void)
{
    CUresult result = CUDA_SUCCESS;
    for (sc_capture *capture = captures; capture; capture = capture->next)
        if (forbids(capture))
            result = sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return result;
}

static sc_stream *capturing(sc_context *context, bool blocking)
{
    for (sc_stream *s = context->streams; s; s = s->next)
        if (s->capture && (!blocking || !(s->flags & CU_STREAM_NON_BLOCKING)))
            return s;
    return NULL;
}

CUresult sc_capture_implicit(sc_context *context)
{
    sc_stream *stream = capturing(context, true);
    return stream ? sc_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

CUresult sc_capture_context(sc_context *context)
{
    sc_stream *stream = capturing(context, false);
    return stream ? sc_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
                  : CUDA_SUCCESS;
}

/* Enters and finds the stream that the parameter `stream` names. */
#define FIND_STREAM \
    sc_stream *s;   \
    TRY(sc_stream_enter(stream, &s))

static CUresult begin_capture(sc_stream *stream, CUstreamCaptureMode mode)
{
    if (stream == stream->object.context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    sc_capture *capture = calloc(1, sizeof *capture);
    sc_graph *graph = create_graph();
    if (!capture || !graph) {
        free(capture);
        sc_release(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *capture = (sc_capture){1, sc_next_id(), graph, stream, mode, sc_thread_id(), false, captures};
    captures = capture;
    stream->capture = capture;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
{
    FIND_STREAM;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = begin_capture(s, mode);
    sc_unlock();
    return result;
}

API_STREAM(cuStreamBeginCapture, (CUstream stream), (stream))
{
    return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void mark_before(const sc_nodes *set, bool *reached)
{
    for (size_t i = 0; i < set->n; i++)
        reached[set->items[i]->index] = true;
}

/* Did all the work of other streams flow back into the origin? */
static CUresult check_joined(const sc_capture *capture)
{
    const sc_nodes *all = &capture->graph->nodes;
    bool *reached = calloc(all->n + 1, sizeof *reached);
    if (!reached)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mark_before(&capture->origin->tails, reached);
    for (size_t i = all->n; i-- > 0;)
        if (reached[i])
            mark_before(&all->items[i]->before, reached);
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < all->n; i++)
        if (!reached[i])
            result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    free(reached);
    return result;
}

/* No stream and no event of the context knows the capture any more. */
static void dissolve(sc_context *context, sc_capture *capture)
{
    capture->refs++;
    sc_stream *origin = capture->origin;
    for (sc_stream *s = context->streams; s; s = s->next)
        if (s->capture == capture && s != origin)
            leave(s);
    capture->refs--;
    leave(origin);
}

static CUresult end_capture(sc_stream *stream, sc_graph **ret_graph)
{
    sc_capture *capture = stream->capture;
    *ret_graph = NULL;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sc_thread_id())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : check_joined(capture);
    sc_graph *graph = result ? NULL : sc_retain(capture->graph);
    dissolve(stream->object.context, capture);
    if (graph && !sc_object_publish(graph, (uintptr_t)graph)) {
        sc_release(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_graph = graph;
    return result;
}

API_STREAM(cuStreamEndCapture, (CUstream stream, CUgraph *ret_graph), (stream, ret_graph))
{
    FIND_STREAM;
    sc_graph *graph;
    sc_lock();
    CUresult result = s->capture && !ret_graph ? CUDA_ERROR_INVALID_VALUE : end_capture(s, &graph);
    sc_unlock();
    if (!ret_graph)
        return result;
    *ret_graph = (CUgraph)graph;
    return result;
}

static CUstreamCaptureStatus status_of(const sc_stream *stream)
{
    return !stream->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

API_STREAM(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), (stream, status))
{
    FIND_STREAM;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    *status = status_of(s);
    bool implicit = s == s->object.context->legacy && capturing(s->object.context, true);
    sc_unlock();
    return implicit ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id,
                             CUgraph *graph, const CUgraphNode **nodes, size_t *n_nodes)
{
    FIND_STREAM;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    *status = status_of(s);
    if (*status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        if (id)
            *id = s->capture->id;
        if (graph)
            *graph = (CUgraph)s->capture->graph;
        if (nodes)
            *nodes = (const CUgraphNode *)s->tails.items;
        if (n_nodes)
            *n_nodes = s->tails.n;
    }
    sc_unlock();
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id),
           (stream, status, id))
{
    return capture_info(stream, status, id, NULL, NULL, NULL);
}

API_STREAM(cuStreamGetCaptureInfo_v2,
           (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph,
            const CUgraphNode **nodes, size_t *n_nodes),
           (stream, status, id, graph, nodes, n_nodes))
{
    return capture_info(stream, status, id, graph, nodes, n_nodes);
}

API_STREAM(cuStreamGetCaptureInfo_v3,
           (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph,
            const CUgraphNode **nodes, const void **edges, size_t *n_nodes),
           (stream, status, id, graph, nodes, edges, n_nodes))
{
    if (edges)
        *edges = NULL;
    return capture_info(stream, status, id, graph, nodes, n_nodes);
}

API(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
{
    TRY(sc_initialized());
    if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

/* ---- the graph API ---- */

static sc_graph *find_graph(CUgraph handle)
{
    return sc_object_find(SC_GRAPH, (uintptr_t)handle);
}

API(cuGraphCreate, CUgraph *ret_graph, unsigned flags)
{
    TRY(sc_initialized());
    if (!ret_graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sc_graph *graph = create_graph();
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
    sc_graph *graph = find_graph(handle);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_object_retract(graph);
    sc_release(graph);
    return CUDA_SUCCESS;
}

API(cuGraphAddEmptyNode, CUgraphNode *ret_node, CUgraph handle, const CUgraphNode *before, size_t n_before)
{
    TRY(sc_initialized());
    sc_graph *graph = find_graph(handle);
    if (!graph || !ret_node || (n_before && !before))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n_before; i++) {
        sc_node *node = sc_object_find(SC_NODE, (uintptr_t)before[i]);
        if (!node || node->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    }
    sc_work *work = sc_work_nothing(CU_GRAPH_NODE_TYPE_EMPTY);
    sc_lock();
    sc_node *node = work ? add_node(graph, work, &(sc_nodes){(sc_node **)(uintptr_t)before, n_before}) : NULL;
    sc_unlock();
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *ret_node = (CUgraphNode)node;
    return CUDA_SUCCESS;
}

API(cuGraphGetNodes, CUgraph handle, CUgraphNode *nodes, size_t *n_nodes)
{
    TRY(sc_initialized());
    sc_graph *graph = find_graph(handle);
    if (!graph || !n_nodes)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    for (size_t i = 0; nodes && i < *n_nodes; i++)
        nodes[i] = i < graph->nodes.n ? (CUgraphNode)graph->nodes.items[i] : NULL;
    if (!nodes || *n_nodes > graph->nodes.n)
        *n_nodes = graph->nodes.n;
    sc_unlock();
    return CUDA_SUCCESS;
}

API(cuGraphNodeGetType, CUgraphNode handle, CUgraphNodeType *type)
{
    TRY(sc_initialized());
    sc_node *node = sc_object_find(SC_NODE, (uintptr_t)handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->work->type;
    return CUDA_SUCCESS;
}

/* ---- executing ---- */

/* A graph as it was when it was instantiated. */
typedef struct sc_exec {
    sc_object object;
    size_t n;
    struct exec_node {
        sc_work *work;
        size_t n_before;
        size_t *before;
    } * nodes;
} sc_exec;

static void finish_exec(sc_object *object)
{
    sc_exec *exec = (sc_exec *)object;
    for (size_t i = 0; i < exec->n; i++) {
        sc_work_release(exec->nodes[i].work);
        free(exec->nodes[i].before);
    }
    free(exec->nodes);
    free(exec);
}

static bool copy_nodes(sc_exec *exec, const sc_graph *graph)
{
    exec->nodes = calloc(graph->nodes.n + 1, sizeof *exec->nodes);
    for (size_t i = 0; exec->nodes && i < graph->nodes.n; i++) {
        const sc_node *node = graph->nodes.items[i];
        struct exec_node *to = &exec->nodes[i];
        to->before = calloc(node->before.n + 1, sizeof *to->before);
        if (!to->before)
            return false;
        to->n_before = node->before.n;
        for (size_t j = 0; j < node->before.n; j++)
            to->before[j] = node->before.items[j]->index;
        to->work = node->work;
        sc_work_retain(to->work);
        exec->n++;
    }
    return exec->nodes != NULL;
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph handle)
{
    TRY(sc_initialized());
    sc_graph *graph = find_graph(handle);
    if (!ret_exec || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    sc_exec *exec = sc_object_create(sizeof *exec, SC_EXEC, NULL, finish_exec);
    sc_lock();
    bool made = exec && copy_nodes(exec, graph);
    sc_unlock();
    if (!made || !sc_object_publish(exec, (uintptr_t)exec)) {
        sc_release(exec);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_exec = (CUgraphExec)exec;
    return CUDA_SUCCESS;
}

API(cuGraphInstantiateWithFlags, CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    enum { AUTO_FREE_ON_LAUNCH = 1, USE_NODE_PRIORITY = 8 };
    if (flags & ~(unsigned long long)(AUTO_FREE_ON_LAUNCH | USE_NODE_PRIORITY))
        return flags > 15 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
    return instantiate(exec, graph);
}

API(cuGraphInstantiate_v2, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
    size_t log_bytes)
{
    if (error_node)
        *error_node = NULL;
    if (log && log_bytes)
        *log = '\0';
    return instantiate(exec, graph);
}

API(cuGraphInstantiate, CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
    size_t log_bytes)
{
    return cuGraphInstantiate_v2(exec, graph, error_node, log, log_bytes);
}

API(cuGraphInstantiateWithParams, CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    enum { UPLOAD = 2 }; /* nothing to upload */
    TRY(cuGraphInstantiateWithFlags(exec, graph, params->flags & ~(unsigned long long)UPLOAD));
    params->hErrNode_out = NULL;
    params->result_out = 0;
    return CUDA_SUCCESS;
}

API(cuGraphInstantiateWithParams_ptsz, CUgraphExec *exec, CUgraph graph,
    CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    return cuGraphInstantiateWithParams(exec, graph, params);
}

API(cuGraphExecDestroy, CUgraphExec handle)
{
    TRY(sc_initialized());
    sc_exec *exec = sc_object_find(SC_EXEC, (uintptr_t)handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sc_object_retract(exec);
    sc_release(exec);
    return CUDA_SUCCESS;
}

/* Submits node i after the nodes before it, or after the stream's work where it is a first one. */
static sc_task *submit_node(sc_exec *exec, size_t i, sc_stream *stream, sc_task **tasks,
                            sc_task **stream_before, size_t n_stream_before)
{
    struct exec_node *node = &exec->nodes[i];
    sc_work_retain(node->work);
    if (!node->n_before)
        return sc_task_submit(stream->object.context, node->work, stream_before, n_stream_before);
    sc_task **before = calloc(node->n_before, sizeof(sc_task *));
    if (!before) {
        sc_work_release(node->work);
        return NULL;
    }
    for (size_t j = 0; j < node->n_before; j++)
        before[j] = tasks[node->before[j]];
    sc_task *task = sc_task_submit(stream->object.context, node->work, before, node->n_before);
    free(before);
    return task;
}

/* The nodes, then an empty task after all of them that stands for the graph in its stream. */
static CUresult launch(sc_exec *exec, sc_stream *stream)
{
    if (stream->capture)
        return sc_capture_invalidate(stream->capture, CUDA_ERROR_NOT_SUPPORTED); /* child graphs */
    if (stream == stream->object.context->legacy)
        TRY(sc_capture_implicit(stream->object.context));
    sc_task **before = NULL, **tasks = calloc(exec->n + 1, sizeof(sc_task *));
    size_t n_before = 0, n = 0;
    bool ok = tasks && sc_stream_before(stream, &before, &n_before);
    while (ok && n < exec->n) {
        tasks[n] = submit_node(exec, n, stream, tasks, before, n_before);
        ok = tasks[n] != NULL;
        n += ok;
    }
    sc_work *join = ok ? sc_work_nothing(CU_GRAPH_NODE_TYPE_EMPTY) : NULL;
    sc_task *end = NULL;
    if (join)
        end = sc_task_submit(stream->object.context, join, n ? tasks : before, n ? n : n_before);
    if (end) {
        sc_task_release(stream->last);
        stream->last = end;
    }
    while (n > 0)
        sc_task_release(tasks[--n]);
    free(tasks);
    free(before);
    return end ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API_STREAM(cuGraphLaunch, (CUgraphExec handle, CUstream stream), (handle, stream))
{
    FIND_STREAM;
    sc_exec *exec = sc_object_find(SC_EXEC, (uintptr_t)handle);
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    CUresult result = launch(exec, s);
    sc_unlock();
    return result;
}

API_STREAM(cuGraphUpload, (CUgraphExec handle, CUstream stream), (handle, stream))
{
    FIND_STREAM;
    (void)s;
    return sc_object_find(SC_EXEC, (uintptr_t)handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
