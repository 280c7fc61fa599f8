/* SPDX-License-Identifier: Apache-2.0 */
/* Capturing streams into graphs. */
#include "softcuda/driver/graph.h"

#include <stdlib.h>

/* One capture: the graph, and the streams that belong to it point here. */
struct sc_capture {
    unsigned refs;
    uint64_t id;
    sc_graph *graph;
    bool is_new;             /* the graph is handed out at the end */
    const sc_stream *origin; /* may be gone: only for who has it by another way */
    sc_context *context;     /* of all its streams */
    CUstreamCaptureMode mode;
    uint64_t thread;
    bool invalid;
    bool hidden;      /* of one call, for sc_capture_work: nobody else is in its way */
    sc_capture *next; /* of all in progress */
};

static sc_capture *captures; /* in progress, in the whole process */
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static void forget_event(void *event, void *capture)
{
    if (((sc_event *)event)->capture == capture) {
        sc_capture_forget_event(event);
        ((sc_event *)event)->capture_ended = true;
    }
}

/* The last stream to leave ends the capture; events recorded in it lead nowhere then. */
static void leave(sc_stream *stream)
{
    sc_capture *capture = stream->capture;
    if (!capture)
        return;
    stream->capture = NULL;
    sc_nodes_clear(&stream->tails);
    if (--capture->refs)
        return;
    sc_capture **link = &captures;
    while (*link != capture)
        link = &(*link)->next;
    *link = capture->next;
    sc_objects_each(SC_EVENT, forget_event, capture);
    capture->graph->n_captures--;
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
    if (!work)
        return sc_capture_invalidate(stream->capture, CUDA_ERROR_OUT_OF_MEMORY);
    if (stream->capture->invalid) {
        sc_work_release(work);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    sc_node *node = sc_graph_add(stream->capture->graph, work, &stream->tails);
    sc_nodes_clear(&stream->tails);
    if (!node || !sc_nodes_add(&stream->tails, node))
        return sc_capture_invalidate(stream->capture, CUDA_ERROR_OUT_OF_MEMORY);
    return CUDA_SUCCESS;
}

void sc_capture_forget_event(sc_event *event)
{
    event->capture = NULL;
    event->capture_ended = false;
    sc_nodes_clear(&event->nodes);
}

CUresult sc_capture_record(sc_stream *stream, sc_event *event)
{
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    sc_capture_forget_event(event);
    event->capture = stream->capture;
    return sc_nodes_add_all(&event->nodes, &stream->tails) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sc_capture_wait(sc_stream *stream, sc_event *event)
{
    sc_capture *capture = event->capture;
    if (capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (stream == stream->object.context->legacy)
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    if (capture->context != stream->object.context)
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    if (stream->capture && stream->capture != capture) {
        sc_capture_invalidate(stream->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
    TRY(sc_stream_check(stream));
    if (!stream->capture) {
        stream->capture = capture;
        capture->refs++;
    }
    return sc_nodes_add_all(&stream->tails, &event->nodes) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

sc_graph *sc_capture_graph(const sc_capture *capture)
{
    return capture->graph;
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
        if (s->capture && !s->capture->hidden && (!blocking || !(s->flags & CU_STREAM_NON_BLOCKING)))
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

/* NULL: out of memory. The graph's reference stays the caller's. */
static sc_capture *start(sc_stream *stream, sc_graph *graph, CUstreamCaptureMode mode)
{
    sc_capture *capture = calloc(1, sizeof *capture);
    if (!capture)
        return NULL;
    *capture = (sc_capture){.refs = 1,
                            .id = sc_next_id(),
                            .graph = sc_retain(graph),
                            .origin = stream,
                            .context = stream->object.context,
                            .mode = mode,
                            .thread = sc_thread_id(),
                            .next = captures};
    graph->n_captures++;
    captures = capture;
    stream->capture = capture;
    return capture;
}

static CUresult check_start(const sc_stream *stream)
{
    TRY(sc_stream_check(stream));
    if (stream == stream->object.context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return stream->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

/* The graph can be asked for while it is being captured, so it is in the set of handles from now on. */
static CUresult begin_capture(sc_stream *stream, CUstreamCaptureMode mode)
{
    TRY(check_start(stream));
    sc_graph *graph = sc_graph_create();
    sc_capture *capture =
        graph && sc_object_publish(graph, (uintptr_t)graph) ? start(stream, graph, mode) : NULL;
    if (!capture) {
        if (graph)
            sc_object_retract(graph);
        sc_release(graph);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    capture->is_new = true;
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

static CUresult begin_to_graph(sc_stream *stream, CUgraph handle, const CUgraphNode *before, size_t n,
                               CUstreamCaptureMode mode)
{
    sc_nodes tails = {0};
    sc_graph *graph = sc_graph_find(handle);
    TRY(check_start(stream));
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_graph_nodes(graph, before, n, &tails));
    if (!start(stream, graph, mode)) {
        sc_nodes_clear(&tails);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->tails = tails;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamBeginCaptureToGraph,
           (CUstream stream, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *edges, size_t n,
            CUstreamCaptureMode mode),
           (stream, graph, before, edges, n, mode))
{
    FIND_STREAM;
    if (mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    if (edges)
        return sc_lacks("edges between parts of nodes");
    sc_lock();
    CUresult result = begin_to_graph(s, graph, before, n, mode);
    sc_unlock();
    return result;
}

CUresult sc_capture_work(sc_context *context, sc_capturable call, const void *params, sc_work **ret_work)
{
    sc_graph *graph = sc_graph_create();
    sc_stream *stream = sc_stream_create(context, CU_STREAM_NON_BLOCKING, 0, 0);
    sc_lock();
    sc_capture *capture = graph && stream ? start(stream, graph, CU_STREAM_CAPTURE_MODE_RELAXED) : NULL;
    if (capture)
        capture->hidden = true;
    sc_unlock();
    CUresult result = capture ? call(params, (CUstream)stream) : CUDA_ERROR_OUT_OF_MEMORY;
    sc_lock();
    if (!result && !graph->nodes.n)
        result = CUDA_ERROR_INVALID_VALUE; /* nothing to do is no node */
    if (!result) {
        *ret_work = graph->nodes.items[0]->work;
        sc_work_retain(*ret_work);
    }
    sc_unlock();
    if (stream)
        sc_stream_destroy(stream);
    sc_release(graph);
    return result;
}

static void mark_before(const sc_nodes *set, bool *reached)
{
    for (size_t i = 0; i < set->n; i++)
        reached[set->items[i]->index] = true;
}

/* Did what the other streams ended in flow back into the origin? */
static CUresult check_joined(const sc_capture *capture, const sc_stream *origin)
{
    const sc_nodes *all = &capture->graph->nodes;
    sc_node **order = NULL;
    bool *reached = calloc(all->n + 1, sizeof *reached);
    CUresult result = CUDA_SUCCESS;
    if (!reached || !sc_graph_order(capture->graph, &order)) {
        free(reached);
        return reached ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    }
    mark_before(&origin->tails, reached);
    for (size_t i = all->n; i-- > 0;)
        if (reached[order[i]->index])
            mark_before(&order[i]->before, reached);
    for (const sc_stream *s = origin->object.context->streams; s; s = s->next)
        for (size_t i = 0; s->capture == capture && i < s->tails.n; i++)
            if (!reached[s->tails.items[i]->index])
                result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    free(reached);
    free(order);
    return result;
}

/* No stream and no event of the context knows the capture any more. */
static void dissolve(sc_capture *capture, sc_stream *origin)
{
    capture->refs++;
    for (sc_stream *s = capture->context->streams; s; s = s->next)
        if (s->capture == capture && s != origin)
            leave(s);
    capture->refs--;
    leave(origin);
}

/* However it ends, it has ended. */
static CUresult end_capture(sc_stream *stream, sc_graph **ret_graph)
{
    sc_capture *capture = stream->capture;
    *ret_graph = NULL;
    if (!capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream)
        return sc_capture_invalidate(capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CUresult result = check_joined(capture, stream);
    if (capture->invalid)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != sc_thread_id())
        result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    sc_graph *graph = capture->graph;
    bool drop = result && capture->is_new;
    if (drop)
        sc_object_retract(graph);
    dissolve(capture, stream);
    if (drop)
        sc_release(graph);
    *ret_graph = result ? NULL : graph;
    return result;
}

API_STREAM(cuStreamEndCapture, (CUstream stream, CUgraph *ret_graph), (stream, ret_graph))
{
    FIND_STREAM;
    sc_graph *graph;
    sc_lock();
    CUresult result = end_capture(s, &graph);
    sc_unlock();
    if (ret_graph)
        *ret_graph = (CUgraph)graph;
    return result;
}

static CUstreamCaptureStatus status_of(const sc_stream *stream)
{
    return !stream->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Would asking the legacy stream tie it into a capture? */
static bool is_implicit(const sc_stream *stream)
{
    return stream == stream->object.context->legacy && capturing(stream->object.context, true);
}

API_STREAM(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status), (stream, status))
{
    FIND_STREAM;
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    sc_lock();
    bool implicit = is_implicit(s);
    if (!implicit)
        *status = status_of(s);
    sc_unlock();
    return implicit ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

static CUresult capture_info(sc_stream *s, CUstreamCaptureStatus *status, unsigned long long *id,
                             CUgraph *graph, const CUgraphNode **nodes, size_t *n_nodes)
{
    if (!status)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_implicit(s))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
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
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetCaptureInfo_v2,
           (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph,
            const CUgraphNode **nodes, size_t *n_nodes),
           (stream, status, id, graph, nodes, n_nodes))
{
    FIND_STREAM;
    sc_lock();
    CUresult result = capture_info(s, status, id, graph, nodes, n_nodes);
    sc_unlock();
    return result;
}

API_STREAM(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id),
           (stream, status, id))
{
    return cuStreamGetCaptureInfo_v2(stream, status, id, NULL, NULL, NULL);
}

/* What is known of each edge from a tail on: nothing special. */
static CUresult tail_edges(sc_stream *stream, const CUgraphEdgeData **ret_edges)
{
    CUgraphEdgeData *edges = calloc(stream->tails.n + 1, sizeof *edges);
    if (!edges)
        return CUDA_ERROR_OUT_OF_MEMORY;
    free(stream->edges);
    *ret_edges = stream->edges = edges;
    return CUDA_SUCCESS;
}

API_STREAM(cuStreamGetCaptureInfo_v3,
           (CUstream stream, CUstreamCaptureStatus *status, unsigned long long *id, CUgraph *graph,
            const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *n_nodes),
           (stream, status, id, graph, nodes, edges, n_nodes))
{
    FIND_STREAM;
    sc_lock();
    CUresult result = capture_info(s, status, id, graph, nodes, n_nodes);
    if (!result && edges && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        result = tail_edges(s, edges);
    sc_unlock();
    return result;
}

static CUresult update_tails(sc_stream *stream, const CUgraphNode *handles, size_t n, unsigned flags)
{
    if (!stream->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        return CUDA_ERROR_INVALID_VALUE;
    sc_nodes nodes = {0};
    TRY(sc_graph_nodes(stream->capture->graph, handles, n, &nodes));
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        sc_nodes_clear(&stream->tails);
    bool added = sc_nodes_add_all(&stream->tails, &nodes);
    sc_nodes_clear(&nodes);
    return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

API_STREAM(cuStreamUpdateCaptureDependencies, (CUstream stream, CUgraphNode *nodes, size_t n, unsigned flags),
           (stream, nodes, n, flags))
{
    FIND_STREAM;
    sc_lock();
    CUresult result = update_tails(s, nodes, n, flags);
    sc_unlock();
    return result;
}

API_STREAM(cuStreamUpdateCaptureDependencies_v2,
           (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t n, unsigned flags),
           (stream, nodes, edges, n, flags))
{
    return edges ? sc_lacks("edges between parts of nodes")
                 : cuStreamUpdateCaptureDependencies(stream, nodes, n, flags);
}

/* The mode is taken as it is. */
API(cuThreadExchangeStreamCaptureMode, CUstreamCaptureMode *mode)
{
    TRY(sc_initialized());
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
