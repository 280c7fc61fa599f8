/* SPDX-License-Identifier: Apache-2.0 */
/* Capturing streams into graphs. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/facts/kernels.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

static CUfunction nul;

/* A context, a kernel, and a stream that is being captured. */
static CUstream begin_capture(int mode)
{
    begin();
    nul = kernel("nul");
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
    return stream;
}

static void say_status(CUstream stream)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)NO_SUCH;
    CUresult result = cuStreamIsCapturing(stream, &status);
    say(" %d(%d)", (int)result, (int)status);
}

static size_t n_nodes(CUgraph graph)
{
    size_t n = 0;
    return graph && !cuGraphGetNodes(graph, NULL, &n) ? n : 0;
}

/* Ends the capture and tells how many nodes of each type came of it. */
static void end(CUstream stream)
{
    CUgraph graph = (CUgraph)1;
    CUgraphNode nodes[32];
    size_t n = 32;
    ASK(cuStreamEndCapture(stream, &graph));
    if (!graph) {
        say("(none)");
        return;
    }
    if (graph == (CUgraph)1) {
        say("(untouched)");
        return;
    }
    MUST(cuGraphGetNodes(graph, nodes, &n));
    say("(");
    for (size_t i = 0; i < n; i++) {
        CUgraphNodeType type;
        MUST(cuGraphNodeGetType(nodes[i], &type));
        say("%d,", (int)type);
    }
    say(")");
}

static void modes(void)
{
    begin();
    CUstream stream = new_stream(0);
    CUgraph graph = (CUgraph)1;
    for (int mode = -1; mode < 4; mode++) {
        ASK(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
        say_status(stream);
        ASK(cuStreamEndCapture(stream, &graph));
        say_status(stream);
    }
    ASK(cuStreamBeginCapture_v2(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    ASK(cuStreamEndCapture(stream, NULL));
    ASK(cuStreamIsCapturing(stream, NULL));
}

static void end_null(void)
{
    CUstream stream = begin_capture(GLOBAL);
    ASK(cuStreamEndCapture(stream, NULL));
    say_status(stream);
    end(stream);
}

static void kinds(void)
{
    CUdeviceptr p, q;
    char host[16];
    begin();
    nul = kernel("nul");
    CUdeviceptr memory_here = memory(64);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(run(nul, stream, NULL));
    ASK(cuMemcpyHtoDAsync_v2(memory_here, host, 16, stream));
    ASK(cuMemcpyDtoHAsync_v2(host, memory_here, 16, stream));
    ASK(cuMemsetD32Async(memory_here, 1, 4, stream));
    ASK(cuLaunchHostFunc(stream, (CUhostFn)free, NULL));
    ASK(cuEventRecord(event, stream));
    ASK(cuEventRecordWithFlags(event, stream, 1));
    ASK(cuStreamWaitEvent(stream, event, 1));
    ASK(cuMemAllocAsync(&p, 64, stream));
    ASK(cuMemFreeAsync(p, stream));
    ASK(cuMemAllocAsync(&q, 64, stream));
    ASK(cuStreamAddCallback(stream, NULL, NULL, 0));
    end(stream);
}

static void empty_copies(void)
{
    char host[16];
    begin();
    CUdeviceptr p = memory(64);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuMemcpyHtoDAsync_v2(p, host, 0, stream));
    ASK(cuMemsetD32Async(p, 1, 0, stream));
    end(stream);
}

enum call {
    MEM_ALLOC,
    HOST_ALLOC,
    STREAM_SYNCHRONIZE,
    STREAM_QUERY,
    CONTEXT_SYNCHRONIZE,
    STREAM_CREATE,
    EVENT_CREATE,
    MODULE_LOAD,
    LEGACY_QUERY,
    LEGACY_LAUNCH,
    STREAM_DESTROY,
    FUNC_ATTRIBUTE,
    BEGIN_AGAIN,
    CALLBACK,
    OCCUPANCY,
    WRITE_VALUE,
    SET_LIMIT,
    COOPERATIVE,
    LEGACY_SYNCHRONIZE,
};

static void do_nothing(CUstream stream, CUresult status, void *user)
{
    (void)stream, (void)status, (void)user;
}

/* Calls that a capture in progress may forbid; each spoils a capture of its own. */
static void forbidden_in(int mode, enum call which)
{
    CUstream stream = begin_capture(mode), other;
    CUdeviceptr p;
    CUevent event;
    CUmodule module;
    void *host;
    int n;
    switch (which) {
    case MEM_ALLOC:
        ASK(cuMemAlloc_v2(&p, 64));
        break;
    case HOST_ALLOC:
        ASK(cuMemHostAlloc(&host, 64, 0));
        break;
    case STREAM_SYNCHRONIZE:
        ASK(cuStreamSynchronize(stream));
        break;
    case STREAM_QUERY:
        ASK(cuStreamQuery(stream));
        break;
    case CONTEXT_SYNCHRONIZE:
        ASK(cuCtxSynchronize());
        break;
    case STREAM_CREATE:
        ASK(cuStreamCreate(&other, 0));
        break;
    case EVENT_CREATE:
        ASK(cuEventCreate(&event, 0));
        break;
    case MODULE_LOAD:
        ASK(cuModuleLoadData(&module, kernels_ptx));
        break;
    case LEGACY_QUERY:
        ASK(cuStreamQuery(NULL));
        break;
    case LEGACY_LAUNCH:
        ASK(run(nul, NULL, NULL));
        break;
    case STREAM_DESTROY:
        ASK(cuStreamDestroy_v2(stream));
        break;
    case FUNC_ATTRIBUTE:
        ASK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, nul));
        break;
    case BEGIN_AGAIN:
        ASK(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)mode));
        break;
    case CALLBACK:
        ASK(cuStreamAddCallback(stream, do_nothing, NULL, 0));
        break;
    case OCCUPANCY:
        ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, nul, 32, 0));
        break;
    case WRITE_VALUE:
        ASK(cuStreamWriteValue32_v2(stream, 4096, 0, 0));
        break;
    case SET_LIMIT:
        ASK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
        break;
    case COOPERATIVE:
        ASK(cuLaunchCooperativeKernel(nul, 1, 1, 1, 1, 1, 1, 0, stream, NULL));
        break;
    case LEGACY_SYNCHRONIZE:
        ASK(cuStreamSynchronize(NULL));
        break;
    }
    if (which != STREAM_DESTROY) {
        say_status(stream);
        end(stream);
    }
}

#define FORBIDDEN(name, call)             \
    static void global_##name(void)       \
    {                                     \
        forbidden_in(GLOBAL, call);       \
    }                                     \
    static void local_##name(void)        \
    {                                     \
        forbidden_in(THREAD_LOCAL, call); \
    }                                     \
    static void relaxed_##name(void)      \
    {                                     \
        forbidden_in(RELAXED, call);      \
    }
FORBIDDEN(mem_alloc, MEM_ALLOC)
FORBIDDEN(host_alloc, HOST_ALLOC)
FORBIDDEN(stream_synchronize, STREAM_SYNCHRONIZE)
FORBIDDEN(stream_query, STREAM_QUERY)
FORBIDDEN(context_synchronize, CONTEXT_SYNCHRONIZE)
FORBIDDEN(stream_create, STREAM_CREATE)
FORBIDDEN(event_create, EVENT_CREATE)
FORBIDDEN(module_load, MODULE_LOAD)
FORBIDDEN(legacy_query, LEGACY_QUERY)
FORBIDDEN(legacy_launch, LEGACY_LAUNCH)
FORBIDDEN(stream_destroy, STREAM_DESTROY)
FORBIDDEN(func_attribute, FUNC_ATTRIBUTE)
FORBIDDEN(begin_again, BEGIN_AGAIN)
FORBIDDEN(callback, CALLBACK)
FORBIDDEN(occupancy, OCCUPANCY)
FORBIDDEN(write_value, WRITE_VALUE)
FORBIDDEN(set_limit, SET_LIMIT)
FORBIDDEN(cooperative, COOPERATIVE)
FORBIDDEN(legacy_synchronize, LEGACY_SYNCHRONIZE)

/* The same from another thread. */
static CUcontext shared_context;

static void *allocate(void *unused)
{
    CUdeviceptr p;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    (void)unused;
    MUST(cuCtxSetCurrent(shared_context));
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    say(":%d", (int)mode);
    ASK(cuMemAlloc_v2(&p, 64));
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    ASK(cuMemAlloc_v2(&p, 64));
    return NULL;
}

static CUstream shared_stream;

static void *end_there(void *unused)
{
    (void)unused;
    MUST(cuCtxSetCurrent(shared_context));
    end(shared_stream);
    return NULL;
}

static void in_thread(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) == 0)
        pthread_join(thread, NULL);
}

static void threads_in(int mode)
{
    shared_stream = begin_capture(mode);
    MUST(cuCtxGetCurrent(&shared_context));
    in_thread(allocate);
    say_status(shared_stream);
    in_thread(end_there);
    end(shared_stream);
}

static void threads_global(void)
{
    threads_in(GLOBAL);
}
static void threads_local(void)
{
    threads_in(THREAD_LOCAL);
}
static void threads_relaxed(void)
{
    threads_in(RELAXED);
}

static void exchange(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuInit(0));
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    say(":%d", (int)mode);
    mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    say(":%d", (int)mode);
    mode = (CUstreamCaptureMode)3;
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    say(":%d", (int)mode);
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    say(":%d", (int)mode);
}

static void exchange_inside(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr p;
    CUstream stream = begin_capture(GLOBAL);
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    ASK(cuMemAlloc_v2(&p, 64));
    ASK(cuMemFree_v2(p));
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    end(stream);
}

/* ---- many streams ---- */

static void fork_join(void)
{
    CUstream stream = begin_capture(GLOBAL), other;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUevent forked, joined;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    other = new_stream(CU_STREAM_NON_BLOCKING);
    forked = new_event(CU_EVENT_DISABLE_TIMING);
    joined = new_event(0);
    ASK(run(nul, stream, NULL));
    ASK(cuEventRecord(forked, stream));
    ASK(cuStreamWaitEvent(other, forked, 0));
    say_status(other);
    ASK(run(nul, other, NULL));
    ASK(run(nul, stream, NULL));
    ASK(cuEventRecord(joined, other));
    ASK(cuStreamWaitEvent(stream, joined, 0));
    ASK(run(nul, stream, NULL));
    end(stream);
    say_status(other);
    ASK(cuEventQuery(forked));
    ASK(cuStreamWaitEvent(other, forked, 0));
    ASK(run(nul, other, NULL));
    ASK(cuStreamSynchronize(other));
}

static void unjoined(void)
{
    begin();
    nul = kernel("nul");
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuEventRecord(event, stream));
    ASK(cuStreamWaitEvent(other, event, 0));
    ASK(run(nul, other, NULL));
    end(other);
    say_status(stream);
    end(stream);
    say_status(other);
    ASK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuEventRecord(event, stream));
    ASK(cuStreamWaitEvent(other, event, 0));
    ASK(run(nul, other, NULL));
    end(stream);
    say_status(other);
}

static void forked_without_work(void)
{
    begin();
    nul = kernel("nul");
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(run(nul, stream, NULL));
    ASK(cuEventRecord(event, stream));
    ASK(cuStreamWaitEvent(other, event, 0));
    end(stream);
    say_status(other);
}

static void merge(void)
{
    begin();
    CUstream one = new_stream(CU_STREAM_NON_BLOCKING), two = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent event = new_event(CU_EVENT_DISABLE_TIMING);
    MUST(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuStreamBeginCapture_v2(two, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuEventRecord(event, one));
    ASK(cuStreamWaitEvent(two, event, 0));
    say_status(one);
    say_status(two);
    end(one);
    end(two);
}

static void isolation(void)
{
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING), other = new_stream(CU_STREAM_NON_BLOCKING);
    CUevent before = new_event(CU_EVENT_DISABLE_TIMING), never = new_event(CU_EVENT_DISABLE_TIMING);
    ASK(cuEventRecord(before, other));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuStreamWaitEvent(stream, never, 0));
    say_status(stream);
    ASK(cuStreamWaitEvent(stream, before, 0));
    say_status(stream);
    end(stream);
}

static void events_captured(void)
{
    float ms;
    CUstream stream = begin_capture(RELAXED);
    CUevent event = new_event(0), plain = new_event(0);
    ASK(cuEventRecord(event, stream));
    ASK(cuEventElapsedTime_v2(&ms, event, event));
    say_status(stream);
    ASK(cuEventRecord(plain, NULL));
    ASK(cuEventSynchronize(plain));
    ASK(cuEventQuery(plain));
    ASK(cuEventQuery(event));
    say_status(stream);
    end(stream);
    ASK(cuEventQuery(event));
    ASK(cuEventElapsedTime_v2(&ms, plain, event));
    ASK(cuEventRecord(event, stream));
    ASK(cuEventSynchronize(event));
}

static void legacy(void)
{
    char host[16] = {0};
    begin();
    nul = kernel("nul");
    CUdeviceptr p = memory(64);
    CUstream stream = new_stream(0);
    CUevent event = new_event(0);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    say_status(NULL);
    ASK(cuEventRecord(event, NULL));
    say_status(stream);
    end(stream);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuMemcpyHtoD_v2(p, host, 16));
    end(stream);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuEventRecord(event, stream));
    ASK(cuStreamWaitEvent(NULL, event, 0));
    end(stream);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuStreamSynchronize(NULL));
    end(stream);
}

static void pageable(void)
{
    static char host[64];
    begin();
    CUdeviceptr p = memory(64);
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuMemcpyHtoD_v2(p, host, 16));
    ASK(cuMemcpyHtoDAsync_v2(p, host, 16, NULL));
    end(stream);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuMemcpyHtoD_v2(p, host, 16));
    say_status(stream);
    end(stream);
}

/* ---- what is being captured ---- */

static void info(void)
{
    CUstreamCaptureStatus status;
    unsigned long long id = 0, again = 0;
    CUgraph graph = NULL;
    const CUgraphNode *nodes = NULL;
    const CUgraphEdgeData *edges = NULL;
    size_t n = NO_SUCH;
    CUstream stream = begin_capture(GLOBAL);
    ASK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &n));
    say(":%d,%d,%d,%zu", (int)status, id != 0, graph != NULL, n);
    ASK(run(nul, stream, NULL));
    ASK(cuStreamGetCaptureInfo_v2(stream, &status, &again, &graph, &nodes, &n));
    say(":%d,%d,%zu,%d", (int)status, id == again, n, nodes && nodes[0]);
    ASK(cuStreamGetCaptureInfo_v3(stream, &status, &again, &graph, &nodes, &edges, &n));
    say(":%d,%zu,%d", (int)status, n, edges == NULL);
    ASK(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, NULL, NULL));
    ASK(cuStreamGetCaptureInfo_v2(stream, NULL, NULL, NULL, NULL, NULL));
    ASK(cuStreamGetCaptureInfo_v3(stream, &status, NULL, NULL, &nodes, NULL, &n));
    say(" %zu", n_nodes(graph));
    end(stream);
    status = (CUstreamCaptureStatus)NO_SUCH;
    n = NO_SUCH;
    ASK(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &nodes, &n));
    say(":%d,%zu", (int)status, n);
}

static void info_invalid(void)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)NO_SUCH;
    unsigned long long id = 0;
    CUstream stream = begin_capture(GLOBAL);
    ASK(cuStreamSynchronize(stream));
    ASK(cuStreamGetCaptureInfo_v2(stream, &status, &id, NULL, NULL, NULL));
    say(":%d", (int)status);
    ASK(run(nul, stream, NULL));
    ASK(cuStreamUpdateCaptureDependencies(stream, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    end(stream);
    ASK(run(nul, stream, NULL));
    ASK(cuStreamSynchronize(stream));
}

static void info_legacy(void)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)NO_SUCH;
    begin();
    CUstream stream = new_stream(0);
    ASK(cuStreamGetCaptureInfo_v2(NULL, &status, NULL, NULL, NULL, NULL));
    say(":%d", (int)status);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuStreamGetCaptureInfo_v2(NULL, &status, NULL, NULL, NULL, NULL));
    say_status(stream);
    end(stream);
}

static void dependencies(void)
{
    CUstreamCaptureStatus status;
    CUgraph graph;
    CUgraphNode first, second, added, other;
    const CUgraphNode *nodes;
    size_t n = 0;
    CUstream stream = begin_capture(RELAXED);
    CUgraph foreign;
    MUST(cuGraphCreate(&foreign, 0));
    MUST(cuGraphAddEmptyNode(&other, foreign, NULL, 0));
    ASK(run(nul, stream, NULL));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, &nodes, &n));
    first = nodes[0];
    ASK(run(nul, stream, NULL));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, &nodes, &n));
    second = nodes[0];
    ASK(cuGraphAddEmptyNode(&added, graph, &first, 1));
    ASK(cuStreamUpdateCaptureDependencies(stream, &added, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, &nodes, &n));
    say(":%zu", n);
    ASK(cuStreamUpdateCaptureDependencies(stream, &added, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, &nodes, &n));
    say(":%zu", n);
    ASK(cuStreamUpdateCaptureDependencies_v2(stream, &second, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, &nodes, &n));
    say(":%zu,%d", n, nodes[0] == second);
    ASK(cuStreamUpdateCaptureDependencies(stream, &other, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    ASK(cuStreamUpdateCaptureDependencies(stream, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    ASK(cuStreamUpdateCaptureDependencies(stream, &added, 1, 2));
    ASK(cuStreamUpdateCaptureDependencies(stream, NULL, 0, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    ASK(cuStreamUpdateCaptureDependencies(stream, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, &nodes, &n));
    say(":%zu", n);
    end(stream);
    ASK(cuStreamUpdateCaptureDependencies(stream, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

static void to_graph(void)
{
    CUgraph graph, back = NULL;
    CUgraphNode first, foreign;
    size_t n = 0;
    begin();
    nul = kernel("nul");
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddEmptyNode(&first, graph, NULL, 0));
    CUgraph other;
    MUST(cuGraphCreate(&other, 0));
    MUST(cuGraphAddEmptyNode(&foreign, other, NULL, 0));
    ASK(cuStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(run(nul, stream, NULL));
    ASK(cuStreamEndCapture(stream, &back));
    say(":%d,%zu", back == graph, n_nodes(graph));
    CUgraphNode from[4], to[4];
    n = 4;
    ASK(cuGraphGetEdges(graph, from, to, &n));
    say(":%zu,%d", n, n && from[0] == first);
    ASK(cuStreamBeginCaptureToGraph(stream, NULL, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuStreamBeginCaptureToGraph(stream, graph, &foreign, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuStreamBeginCaptureToGraph(NULL, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, (CUstreamCaptureMode)3));
    say_status(stream);
}

static void launch_inside(void)
{
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuGraphLaunch(exec, stream));
    end(stream);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuGraphUpload(exec, stream));
    say_status(stream);
    end(stream);
}

static void executed(void)
{
    unsigned v = 3;
    CUgraph graph;
    CUgraphExec exec;
    begin();
    CUdeviceptr p = memory(64);
    CUfunction f = kernel("add");
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuMemsetD32Async(p, 10, 1, stream));
    ASK(run(f, stream, (void *[]){&p, &v}));
    v = 100;
    ASK(run(f, stream, (void *[]){&p, &v}));
    ASK(cuStreamEndCapture(stream, &graph));
    say(" %u", word_at(p));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(cuGraphDestroy(graph));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuStreamSynchronize(stream));
    say(" %u", word_at(p));
}

static void allocations(void)
{
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr p = 0, q = 0;
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuMemAllocAsync(&p, 4096, stream));
    ASK(cuMemsetD32Async(p, 7, 16, stream));
    ASK(cuMemFreeAsync(p, stream));
    ASK(cuMemFreeAsync(p, stream));
    ASK(cuMemAllocAsync(&q, 0, stream));
    ASK(cuMemFreeAsync(12345, stream));
    ASK(cuStreamEndCapture(stream, &graph));
    say(" %zu", n_nodes(graph));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuStreamSynchronize(stream));
}

static void allocations_kept(void)
{
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr p = 0;
    begin();
    CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuMemAllocAsync(&p, 4096, stream));
    ASK(cuMemsetD32Async(p, 7, 16, stream));
    ASK(cuStreamEndCapture(stream, &graph));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuStreamSynchronize(stream));
    say(" %u", word_at(p));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuMemFreeAsync(p, stream));
    ASK(cuGraphLaunch(exec, stream));
    ASK(cuStreamSynchronize(stream));
    ASK(cuMemFree_v2(p));
    ASK(cuMemFree_v2(p));
    ASK(cuGraphExecDestroy(exec));
    ASK(cuGraphDestroy(graph));
}

#define THREE(n) FACT(global_##n), FACT(local_##n), FACT(relaxed_##n)
static const fact facts[] = {
    FACT(modes),
    FACT(end_null),
    FACT(kinds),
    FACT(empty_copies),
    THREE(mem_alloc),
    THREE(host_alloc),
    THREE(stream_synchronize),
    THREE(stream_query),
    THREE(context_synchronize),
    THREE(stream_create),
    THREE(event_create),
    THREE(module_load),
    THREE(legacy_query),
    THREE(legacy_launch),
    THREE(stream_destroy),
    THREE(func_attribute),
    THREE(begin_again),
    THREE(callback),
    THREE(occupancy),
    THREE(write_value),
    THREE(set_limit),
    THREE(cooperative),
    THREE(legacy_synchronize),
    FACT(threads_global),
    FACT(threads_local),
    FACT(threads_relaxed),
    FACT(exchange),
    FACT(exchange_inside),
    FACT(fork_join),
    FACT(unjoined),
    FACT(forked_without_work),
    FACT(merge),
    FACT(isolation),
    FACT(events_captured),
    FACT(legacy),
    FACT(pageable),
    FACT(info),
    FACT(info_invalid),
    FACT(info_legacy),
    FACT(dependencies),
    FACT(to_graph),
    FACT(launch_inside),
    FACT(executed),
    FACT(allocations),
    FACT(allocations_kept),
};
FACTS_MAIN(facts)
