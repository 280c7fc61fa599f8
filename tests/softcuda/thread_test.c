/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share devices, contexts, streams, events and modules. What they compute tells whether anything
 * was lost; whether they race is for ThreadSanitizer to say (scripts/test).
 */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softcuda/calls.h"

#define OK(call) ck_assert_int_eq((call), CUDA_SUCCESS)

enum { N_THREADS = 6, N_STREAMS = 3, ROUNDS = 20, GRID = 4, BLOCK = 64 };

/* count: one more in *p for each thread. store: writes where p points. */
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry count(.param .u64 p)\n"
                          "{\n"
                          "    .reg .b64 %rd<2>;\n"
                          "    ld.param.u64 %rd1, [p]; red.global.add.u32 [%rd1], 1; ret;\n"
                          "}\n"
                          ".visible .entry store(.param .u64 p)\n"
                          "{\n"
                          "    .reg .b64 %rd<2>;\n"
                          "    ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret;\n"
                          "}\n";

static CUcontext context;
static CUlibrary library;
static CUmodule module;
static CUfunction count, store;
static CUstream streams[N_STREAMS];
static CUevent event;
static CUdeviceptr counter;
static atomic_uint launched, called;

static void start(void)
{
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_75", 1);
    setenv("KREGISTRY_SOFTCUDA_THREADS", "3", 1);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&count, module, "count"));
    OK(cuModuleGetFunction(&store, module, "store"));
    for (int i = 0; i < N_STREAMS; i++)
        OK(cuStreamCreate(&streams[i], i == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc_v2(&counter, 4));
    OK(cuMemsetD32_v2(counter, 0, 1));
}

static void at_once(void *(*work)(void *))
{
    pthread_t threads[N_THREADS];
    for (intptr_t i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static CUresult launch(CUfunction function, CUdeviceptr p, CUstream stream)
{
    void *params[] = {&p};
    return cuLaunchKernel(function, GRID, 1, 1, BLOCK, 1, 1, 0, stream, params, NULL);
}

static void *initialise(void *unused)
{
    int n;
    void *function;
    CUcontext own;
    (void)unused;
    CUresult early = cuDeviceGetCount(&n);
    ck_assert(early == CUDA_SUCCESS || early == CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    ck_assert_int_eq(n, 2);
    OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, NULL));
    OK(cuDevicePrimaryCtxRetain(&own, 0));
    return NULL;
}

START_TEST(initialised_by_all)
{
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_75", 1);
    at_once(initialise);
}
END_TEST

static void called_back(void *unused)
{
    (void)unused;
    atomic_fetch_add(&called, 1);
}

/* Streams, the event, the function's attributes: everything is everybody's. */
static void *share(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < ROUNDS; round++) {
        const CUstream stream = streams[(round + (intptr_t)arg) % N_STREAMS];
        int value;
        OK(launch(count, counter, round % 4 ? stream : NULL));
        atomic_fetch_add(&launched, 1);
        OK(cuEventRecord(event, stream));
        OK(cuStreamWaitEvent(streams[round % N_STREAMS], event, 0));
        OK(cuLaunchHostFunc(stream, called_back, NULL));
        OK(cuFuncSetAttribute(count, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024 * (round + 1)));
        OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, count));
        cuStreamQuery(stream);
        cuEventQuery(event);
        OK(round % 5 ? cuEventSynchronize(event) : cuCtxSynchronize());
    }
    return NULL;
}

START_TEST(streams_of_all)
{
    unsigned result;
    start();
    at_once(share);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(&result, counter, sizeof result));
    ck_assert_uint_eq(result, atomic_load(&launched) * GRID * BLOCK);
    ck_assert_uint_eq(atomic_load(&called), N_THREADS * ROUNDS);
}
END_TEST

/* Memory, modules, contexts, and a library that all of these use. */
static void *come_and_go(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        CUcontext own;
        CUkernel kernel;
        CUdeviceptr p, q;
        CUmodule loaded;
        unsigned result;
        size_t available, total;
        OK(cuCtxCreate_v2(&own, 0, (CUdevice)((round + (intptr_t)arg) % 2)));
        OK(cuMemAlloc_v2(&p, 64));
        OK(cuMemAllocAsync(&q, 1 << 16, NULL));
        OK(cuMemsetD32_v2(p, 0, 1));
        OK(cuModuleLoadData(&loaded, ptx));
        OK(cuLibraryGetKernel(&kernel, library, "count"));
        OK(launch((CUfunction)kernel, p, NULL));
        OK(cuModuleUnload(loaded));
        OK(cuMemcpyDtoH_v2(&result, p, sizeof result));
        ck_assert_uint_eq(result, GRID * BLOCK);
        OK(cuMemFreeAsync(q, NULL));
        OK(cuMemGetInfo_v2(&available, &total));
        OK(cuMemFree_v2(p));
        OK(cuCtxDestroy_v2(own));
    }
    return NULL;
}

START_TEST(contexts_of_each)
{
    start();
    at_once(come_and_go);
}
END_TEST

/* One of them launches what faults; whatever the others then do is answered with success or with the fault.
 */
static void *fault_in_one(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < ROUNDS; round++) {
        const CUstream stream = streams[round % N_STREAMS];
        CUdeviceptr p;
        const CUresult results[] = {
            launch(count, counter, stream),
            arg == NULL && round == ROUNDS / 2 ? launch(store, 4096, stream) : CUDA_SUCCESS,
            cuMemAlloc_v2(&p, 64),
            cuEventRecord(event, stream),
            cuStreamSynchronize(stream),
        };
        for (size_t i = 0; i < sizeof results / sizeof *results; i++)
            ck_assert(results[i] == CUDA_SUCCESS || results[i] == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    return NULL;
}

START_TEST(a_fault_among_threads)
{
    setenv("KREGISTRY_SOFTCUDA_LOG", "1", 1);
    start();
    at_once(fault_in_one);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

/* ---- handles that one thread destroys while others use them ---- */

#define HANDLE(of) ((uintptr_t)(of))

static uintptr_t make_stream(void)
{
    CUstream made;
    OK(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    return HANDLE(made);
}

static CUresult use_stream(uintptr_t handle)
{
    const CUstream stream = (CUstream)handle;
    CUstreamCaptureStatus status;
    CUcontext of;
    CUgraph graph = NULL;
    CUresult result = launch(count, counter, stream);
    cuStreamGetCtx(stream, &of);
    cuEventRecord(event, stream);
    cuStreamWaitEvent(stream, event, 0);
    cuStreamSynchronize(stream);
    if (!cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED)) {
        launch(count, counter, stream);
        cuStreamIsCapturing(stream, &status);
        if (!cuStreamEndCapture(stream, &graph))
            cuGraphDestroy(graph);
    }
    return result;
}

static CUresult end_stream(uintptr_t handle)
{
    return cuStreamDestroy_v2((CUstream)handle);
}

static uintptr_t make_event(void)
{
    CUevent made;
    OK(cuEventCreate(&made, 0));
    return HANDLE(made);
}

static CUresult use_event(uintptr_t handle)
{
    float ms;
    CUresult result = cuEventRecord((CUevent)handle, streams[1]);
    cuStreamWaitEvent(streams[2], (CUevent)handle, 0);
    cuEventQuery((CUevent)handle);
    cuEventElapsedTime(&ms, (CUevent)handle, event);
    cuEventSynchronize((CUevent)handle);
    return result;
}

static CUresult end_event(uintptr_t handle)
{
    return cuEventDestroy_v2((CUevent)handle);
}

static uintptr_t make_module(void)
{
    CUmodule made;
    OK(cuModuleLoadData(&made, ptx));
    return HANDLE(made);
}

static CUresult use_module(uintptr_t handle)
{
    CUfunction function;
    CUmodule of;
    int value;
    CUresult result = cuModuleGetFunction(&function, (CUmodule)handle, "count");
    if (!result) {
        launch(function, counter, streams[1]);
        cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
        cuFuncGetModule(&of, function);
    }
    return result;
}

static CUresult end_module(uintptr_t handle)
{
    return cuModuleUnload((CUmodule)handle);
}

static uintptr_t make_library(void)
{
    CUlibrary made;
    OK(cuLibraryLoadData(&made, ptx, NULL, NULL, 0, NULL, NULL, 0));
    return HANDLE(made);
}

static CUresult use_library(uintptr_t handle)
{
    CUkernel kernel;
    CUmodule of;
    CUfunction function;
    CUresult result = cuLibraryGetKernel(&kernel, (CUlibrary)handle, "count");
    cuLibraryGetModule(&of, (CUlibrary)handle);
    if (!result) {
        launch((CUfunction)kernel, counter, streams[2]);
        cuKernelGetFunction(&function, kernel);
    }
    return result;
}

static CUresult end_library(uintptr_t handle)
{
    return cuLibraryUnload((CUlibrary)handle);
}

static uintptr_t make_context(void)
{
    CUcontext made;
    OK(cuCtxCreate_v2(&made, 0, 1));
    OK(cuCtxPopCurrent_v2(NULL));
    return HANDLE(made);
}

static CUresult use_context(uintptr_t handle)
{
    CUdeviceptr p;
    CUstream own;
    CUmodule loaded;
    CUfunction function;
    unsigned version;
    CUresult result = cuCtxPushCurrent_v2((CUcontext)handle);
    if (result)
        return result;
    cuCtxGetApiVersion((CUcontext)handle, &version);
    if (!cuMemAlloc_v2(&p, 64)) {
        cuMemsetD32_v2(p, 0, 1);
        cuMemsetD32Async(p, 0, 1, CU_STREAM_PER_THREAD);
        cuStreamSynchronize(CU_STREAM_PER_THREAD);
    }
    if (!cuModuleLoadData(&loaded, ptx))
        cuModuleGetFunction(&function, loaded, "count");
    if (!cuStreamCreate(&own, 0))
        cuStreamSynchronize(own);
    cuCtxSynchronize();
    OK(cuCtxPopCurrent_v2(NULL));
    return result;
}

static CUresult end_context(uintptr_t handle)
{
    return cuCtxDestroy_v2((CUcontext)handle);
}

static uintptr_t make_graph(void)
{
    CUgraph made;
    CUgraphNode first, second;
    OK(cuGraphCreate(&made, 0));
    if (!cuGraphAddEmptyNode(&first, made, NULL, 0))
        cuGraphAddEmptyNode(&second, made, &first, 1);
    return HANDLE(made);
}

static CUresult use_graph(uintptr_t handle)
{
    enum { MOST = 4 };
    CUgraphNode nodes[MOST];
    CUgraphNodeType type;
    CUgraph copy;
    CUgraphExec exec;
    size_t n = MOST;
    CUresult result = cuGraphGetNodes((CUgraph)handle, nodes, &n);
    for (size_t i = 0; i < n && !result; i++)
        cuGraphNodeGetType(nodes[i], &type);
    if (!cuGraphClone(&copy, (CUgraph)handle))
        cuGraphDestroy(copy);
    if (!cuGraphInstantiateWithFlags(&exec, (CUgraph)handle, 0))
        cuGraphExecDestroy(exec);
    return result;
}

static CUresult end_graph(uintptr_t handle)
{
    return cuGraphDestroy((CUgraph)handle);
}

static uintptr_t make_exec(void)
{
    CUgraphExec made = NULL;
    const CUgraph graph = (CUgraph)make_graph();
    cuGraphInstantiateWithFlags(&made, graph, 0);
    cuGraphDestroy(graph);
    return HANDLE(made);
}

static CUresult use_exec(uintptr_t handle)
{
    return cuGraphLaunch((CUgraphExec)handle, streams[1]);
}

static CUresult end_exec(uintptr_t handle)
{
    return cuGraphExecDestroy((CUgraphExec)handle);
}

static uintptr_t make_pool(void)
{
    CUmemoryPool made;
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    OK(cuMemPoolCreate(&made, &props));
    return HANDLE(made);
}

static CUresult use_pool(uintptr_t handle)
{
    CUdeviceptr p;
    uint64_t used;
    CUresult result = cuMemAllocFromPoolAsync(&p, 64, (CUmemoryPool)handle, streams[1]);
    if (!result)
        OK(cuMemFreeAsync(p, streams[1]));
    cuMemPoolGetAttribute((CUmemoryPool)handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
    cuDeviceSetMemPool(0, (CUmemoryPool)handle);
    if (!cuMemAllocAsync(&p, 64, streams[1]))
        OK(cuMemFreeAsync(p, streams[1]));
    return result;
}

static CUresult end_pool(uintptr_t handle)
{
    return cuMemPoolDestroy((CUmemoryPool)handle);
}

static uintptr_t make_memory(void)
{
    CUdeviceptr made;
    OK(cuMemAllocAsync(&made, 64, streams[1]));
    return (uintptr_t)made;
}

static CUresult use_memory(uintptr_t handle)
{
    CUdeviceptr base;
    CUcontext of;
    size_t bytes;
    cuMemGetAddressRange_v2(&base, &bytes, handle);
    return cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, handle);
}

static CUresult end_memory(uintptr_t handle)
{
    return handle & 512 ? cuMemFreeAsync(handle, NULL) : cuMemFree_v2(handle);
}

static uintptr_t make_array(void)
{
    CUarray made;
    const CUDA_ARRAY_DESCRIPTOR line = {64, 0, CU_AD_FORMAT_FLOAT, 1};
    OK(cuArrayCreate_v2(&made, &line));
    return HANDLE(made);
}

static CUresult use_array(uintptr_t handle)
{
    CUDA_ARRAY_DESCRIPTOR line;
    return cuArrayGetDescriptor_v2(&line, (CUarray)handle);
}

static CUresult end_array(uintptr_t handle)
{
    return cuArrayDestroy((CUarray)handle);
}

enum { MAPPING = 2 << 20 };

static uintptr_t make_created(void)
{
    CUmemGenericAllocationHandle made;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    OK(cuMemCreate(&made, MAPPING, &prop, 0));
    return (uintptr_t)made;
}

static CUresult use_created(uintptr_t handle)
{
    CUdeviceptr at;
    CUmemAllocationProp prop;
    cuMemGetAllocationPropertiesFromHandle(&prop, handle);
    OK(cuMemAddressReserve(&at, MAPPING, 0, 0, 0));
    CUresult result = cuMemMap(at, MAPPING, 0, handle, 0);
    if (!result)
        OK(cuMemUnmap(at, MAPPING));
    OK(cuMemAddressFree(at, MAPPING));
    return result;
}

static CUresult end_created(uintptr_t handle)
{
    return cuMemRelease(handle);
}

static uintptr_t make_link(void)
{
    CUlinkState made;
    OK(cuLinkCreate_v2(0, NULL, NULL, &made));
    return HANDLE(made);
}

static CUresult use_link(uintptr_t handle)
{
    static char nothing[] = ".version 7.0\n.target sm_75\n.address_size 64\n";
    return cuLinkAddData_v2((CUlinkState)handle, CU_JIT_INPUT_PTX, nothing, sizeof nothing, "a", 0, NULL,
                            NULL);
}

static CUresult end_link(uintptr_t handle)
{
    return cuLinkDestroy((CUlinkState)handle);
}

static uintptr_t make_user(void)
{
    CUuserObject made;
    OK(cuUserObjectCreate(&made, NULL, called_back, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    return HANDLE(made);
}

static CUresult use_user(uintptr_t handle)
{
    CUresult result = cuUserObjectRetain((CUuserObject)handle, 1);
    return result ? result : cuUserObjectRelease((CUuserObject)handle, 1);
}

static CUresult end_user(uintptr_t handle)
{
    return cuUserObjectRelease((CUuserObject)handle, 1);
}

/* What a launch of the graph has left out. */
static atomic_uintptr_t left_out;

static uintptr_t make_graph_memory(void)
{
    CUgraph made;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
                                         .bytesize = 64};
    OK(cuGraphCreate(&made, 0));
    if (!cuGraphAddMemAllocNode(&node, made, NULL, 0, &params)) {
        atomic_store(&left_out, params.dptr);
        if (!cuGraphInstantiateWithFlags(&exec, made, 0)) {
            OK(cuGraphLaunch(exec, streams[1]));
            cuGraphExecDestroy(exec);
        }
    }
    return HANDLE(made);
}

static CUresult use_graph_memory(uintptr_t handle)
{
    uint64_t used;
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    CUresult result = cuMemFreeAsync(atomic_load(&left_out), streams[1]);
    return result ? result : cuGraphDestroy((CUgraph)handle);
}

static const struct kind {
    uintptr_t (*make)(void);
    CUresult (*use)(uintptr_t handle), (*end)(uintptr_t handle);
} kinds[] = {
    {make_stream, use_stream, end_stream},    {make_event, use_event, end_event},
    {make_module, use_module, end_module},    {make_library, use_library, end_library},
    {make_context, use_context, end_context}, {make_graph, use_graph, end_graph},
    {make_exec, use_exec, end_exec},          {make_pool, use_pool, end_pool},
    {make_memory, use_memory, end_memory},    {make_array, use_array, end_array},
    {make_created, use_created, end_created}, {make_link, use_link, end_link},
    {make_user, use_user, end_user},          {make_graph_memory, use_graph_memory, end_graph},
};
static const struct kind *kind;
static atomic_uintptr_t handle_of_all;

/* What is destroyed already is told so, in the words of its kind. */
static void expect_right_or_gone(CUresult result)
{
    switch (result) {
    case CUDA_SUCCESS:
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_CONTEXT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ILLEGAL_STATE: /* another captures the stream */
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
        return;
    default:
        ck_abort_msg("answered %d", (int)result);
    }
}

/* The even threads use what the odd ones make and destroy, at times twice: then it may be a newer object that
 * has the same handle. */
static void *use_or_replace(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < 10 * ROUNDS; round++) {
        if ((intptr_t)arg % 2 == 0) {
            expect_right_or_gone(kind->use(atomic_load(&handle_of_all)));
            continue;
        }
        uintptr_t old =
            round % 3 ? atomic_exchange(&handle_of_all, kind->make()) : atomic_load(&handle_of_all);
        expect_right_or_gone(kind->end(old));
    }
    return NULL;
}

START_TEST(destroyed_while_used)
{
    start();
    kind = &kinds[_i];
    atomic_store(&handle_of_all, kind->make());
    at_once(use_or_replace);
    OK(cuCtxSynchronize());
}
END_TEST

/* ---- a stream that some capture while others use it ---- */

enum { EXTERNAL = 1 };

static CUresult alloc_and_free(CUstream stream)
{
    CUdeviceptr p;
    CUresult result = cuMemAllocAsync(&p, 64, stream);
    if (!result) /* of a graph that is gone, p is no address any more */
        cuMemFreeAsync(p, stream);
    return result;
}

static CUresult copy_pageable(CUstream stream)
{
    const unsigned word = 7;
    return cuMemcpyHtoDAsync_v2(counter, &word, sizeof word, stream);
}

static CUresult record_external(CUstream stream)
{
    return cuEventRecordWithFlags(event, stream, EXTERNAL);
}

static CUresult wait_external(CUstream stream)
{
    return cuStreamWaitEvent(stream, event, EXTERNAL);
}

static CUresult write_value(CUstream stream)
{
    return cuStreamWriteValue32_v2(stream, counter, 7, 0);
}

static CUresult (*const uses[])(CUstream) = {alloc_and_free, copy_pageable, record_external, wait_external,
                                             write_value};

static void *capture_or_use(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < 100 * ROUNDS; round++) {
        CUgraph graph = NULL;
        if ((intptr_t)arg % 2 == 0)
            expect_right_or_gone(uses[round % (int)(sizeof uses / sizeof *uses)](streams[1]));
        else if (!cuStreamBeginCapture_v2(streams[1], CU_STREAM_CAPTURE_MODE_RELAXED) &&
                 !cuStreamEndCapture(streams[1], &graph))
            cuGraphDestroy(graph);
    }
    return NULL;
}

START_TEST(captured_while_used)
{
    start();
    at_once(capture_or_use);
    OK(cuCtxSynchronize());
}
END_TEST

/* ---- settings that some change while others read them ---- */

static CUdeviceptr managed;
static CUmemoryPool pool;
static CUkernel listed;

enum { MANAGED = 1 << 16 };

static void change_context(void)
{
    OK(cuCtxSetFlags(CU_CTX_SCHED_SPIN));
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
    OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1));
    OK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD));
}

static void read_context(void)
{
    unsigned flags;
    int active;
    size_t limit;
    CUfunc_cache config;
    OK(cuCtxGetFlags(&flags));
    OK(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
    OK(cuCtxGetCacheConfig(&config));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    OK(launch(count, counter, streams[1]));
}

static void change_stream(void)
{
    const CUlaunchAttributeValue priority = {.priority = -1}, domain = {.memSyncDomain = 1},
                                 policy = {.syncPolicy = CU_SYNC_POLICY_YIELD},
                                 window = {.accessPolicyWindow = {.num_bytes = 64}},
                                 map = {.memSyncDomainMap = {1, 2}};
    OK(cuStreamSetAttribute(streams[1], CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority));
    OK(cuStreamSetAttribute(streams[1], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &domain));
    OK(cuStreamSetAttribute(streams[1], CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy));
    OK(cuStreamSetAttribute(streams[1], CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &window));
    OK(cuStreamSetAttribute(streams[1], CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &map));
    OK(cuStreamCopyAttributes(streams[1], streams[2]));
}

static void read_stream(void)
{
    static const CUlaunchAttributeID all[] = {
        CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP};
    CUlaunchAttributeValue value;
    int priority;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        OK(cuStreamGetAttribute(streams[1], all[i], &value));
    OK(cuStreamGetPriority(streams[1], &priority));
    OK(cuStreamCopyAttributes(streams[2], streams[1]));
}

static void change_memory(void)
{
    const unsigned on = 1;
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    uint64_t threshold = 1 << 20;
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, counter));
    OK(cuMemAdvise(managed, MANAGED / 2, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    OK(cuMemPrefetchAsync(managed, MANAGED / 4, 0, streams[1]));
    OK(cuMemPoolSetAccess(pool, &access, 1));
    OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

static void read_memory(void)
{
    unsigned is_on;
    int advice;
    uint64_t threshold;
    CUmemAccess_flags access;
    CUmemLocation place = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    OK(cuPointerGetAttribute(&is_on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, counter));
    OK(cuMemRangeGetAttribute(&advice, sizeof advice, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, MANAGED));
    OK(cuMemPoolGetAccess(&access, pool, &place));
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

static void change_function(void)
{
    OK(cuFuncSetBlockShape(count, BLOCK, 1, 1));
    OK(cuFuncSetSharedSize(count, 64));
    OK(cuParamSetSize(count, sizeof counter));
    OK(cuParamSetv(count, 0, &counter, sizeof counter));
    OK(cuFuncSetAttribute(count, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
    OK(cuFuncLoad(count));
    OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, listed, 0));
}

static void read_function(void)
{
    int value;
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, count));
    OK(cuFuncIsLoaded(&value, count));
    OK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, listed, 0));
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, count, BLOCK, 64));
    OK(cuParamSetv(count, 0, &counter, sizeof counter));
    OK(cuFuncSetBlockShape(count, 1, 1, 1));
    OK(cuParamSetSize(count, sizeof counter));
    OK(cuLaunchGridAsync(count, GRID, 1, streams[1]));
}

/* The primary context of the other device comes and goes: here it is asked for what needs no context. */
static void change_primary(void)
{
    CUcontext other;
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuDevicePrimaryCtxReset_v2(1));
    OK(cuDevicePrimaryCtxRelease_v2(1));
}

static void read_primary(void)
{
    int value;
    unsigned flags;
    unsigned long long id;
    CUcontext other;
    size_t limit;
    cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, listed, 1);
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxPushCurrent_v2(other));
    cuCtxGetFlags(&flags);
    cuCtxGetId(other, &id);
    cuCtxGetApiVersion(other, &flags);
    cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE);
    cuStreamSynchronize(NULL);
    OK(cuCtxPopCurrent_v2(&other));
    OK(cuDevicePrimaryCtxRelease_v2(1));
}

static const struct {
    void (*change)(void), (*read)(void);
} settings[] = {
    {change_context, read_context},   {change_stream, read_stream},   {change_memory, read_memory},
    {change_function, read_function}, {change_primary, read_primary},
};
static size_t setting;

static void *read_or_set(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < 10 * ROUNDS; round++)
        (intptr_t) arg % 2 ? settings[setting].change() : settings[setting].read();
    return NULL;
}

START_TEST(set_while_read)
{
    start();
    OK(cuMemAllocManaged(&managed, MANAGED, CU_MEM_ATTACH_GLOBAL));
    OK(cuLibraryGetKernel(&listed, library, "count"));
    pool = (CUmemoryPool)make_pool();
    setting = (size_t)_i;
    at_once(read_or_set);
    OK(cuCtxSynchronize());
}
END_TEST

/* ---- a graph and an instance of it that some change while others read and launch them ---- */

static struct {
    CUgraph graph;
    CUgraphNode kernel, fill, host, record, child;
    CUgraphExec exec;
    CUDA_KERNEL_NODE_PARAMS launch;
    CUDA_MEMSET_NODE_PARAMS words;
    CUDA_HOST_NODE_PARAMS call;
} shared;

static void make_shared(void)
{
    static CUdeviceptr p;
    static void *params[] = {&p};
    p = counter;
    shared.launch = (CUDA_KERNEL_NODE_PARAMS){.func = count,
                                              .gridDimX = 1,
                                              .gridDimY = 1,
                                              .gridDimZ = 1,
                                              .blockDimX = 1,
                                              .blockDimY = 1,
                                              .blockDimZ = 1,
                                              .kernelParams = params};
    shared.words =
        (CUDA_MEMSET_NODE_PARAMS){.dst = counter, .value = 7, .elementSize = 4, .width = 1, .height = 1};
    shared.call.fn = called_back;
    CUgraph child = (CUgraph)make_graph();
    OK(cuGraphCreate(&shared.graph, 0));
    OK(cuGraphAddKernelNode_v2(&shared.kernel, shared.graph, NULL, 0, &shared.launch));
    OK(cuGraphAddMemsetNode(&shared.fill, shared.graph, &shared.kernel, 1, &shared.words, context));
    OK(cuGraphAddHostNode(&shared.host, shared.graph, &shared.fill, 1, &shared.call));
    OK(cuGraphAddEventRecordNode(&shared.record, shared.graph, &shared.host, 1, event));
    OK(cuGraphAddChildGraphNode(&shared.child, shared.graph, &shared.record, 1, child));
    OK(cuGraphInstantiateWithFlags(&shared.exec, shared.graph, 0));
}

static void read_shared(void)
{
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMSET_NODE_PARAMS words;
    CUDA_HOST_NODE_PARAMS call;
    CUlaunchAttributeValue value;
    CUevent recorded;
    CUgraph child;
    unsigned enabled;
    OK(cuGraphKernelNodeGetParams_v2(shared.kernel, &kernel));
    OK(cuGraphKernelNodeGetAttribute(shared.kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    OK(cuGraphMemsetNodeGetParams(shared.fill, &words));
    OK(cuGraphHostNodeGetParams(shared.host, &call));
    OK(cuGraphEventRecordNodeGetEvent(shared.record, &recorded));
    OK(cuGraphChildGraphNodeGetGraph(shared.child, &child));
    OK(cuGraphNodeGetEnabled(shared.exec, shared.fill, &enabled));
    OK(use_graph(HANDLE(shared.graph)));
    OK(cuGraphLaunch(shared.exec, streams[1]));
}

/* Another thread may have added a node that the instance lacks. */
static void expect_update(CUresult result)
{
    ck_assert(result == CUDA_SUCCESS || result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}

static void change_shared(void)
{
    CUgraphNode more;
    CUgraphExecUpdateResultInfo info;
    const CUlaunchAttributeValue priority = {.priority = -1}, cooperative = {.cooperative = 1};
    OK(cuGraphKernelNodeSetParams_v2(shared.kernel, &shared.launch));
    OK(cuGraphKernelNodeSetAttribute(shared.kernel, CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority));
    OK(cuGraphKernelNodeSetAttribute(shared.kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &cooperative));
    OK(cuGraphKernelNodeCopyAttributes(shared.kernel, shared.kernel));
    OK(cuGraphMemsetNodeSetParams(shared.fill, &shared.words));
    OK(cuGraphHostNodeSetParams(shared.host, &shared.call));
    OK(cuGraphEventRecordNodeSetEvent(shared.record, event));
    OK(cuGraphExecKernelNodeSetParams_v2(shared.exec, shared.kernel, &shared.launch));
    OK(cuGraphExecMemsetNodeSetParams(shared.exec, shared.fill, &shared.words, context));
    OK(cuGraphNodeSetEnabled(shared.exec, shared.fill, 1));
    expect_update(cuGraphExecUpdate_v2(shared.exec, shared.graph, &info));
    OK(cuGraphAddEmptyNode(&more, shared.graph, &shared.record, 1));
    OK(cuGraphDestroyNode(more));
}

static void *read_or_change(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < 10 * ROUNDS; round++)
        (intptr_t) arg % 2 ? change_shared() : read_shared();
    return NULL;
}

START_TEST(graph_changed_while_used)
{
    start();
    make_shared();
    at_once(read_or_change);
    OK(cuCtxSynchronize());
}
END_TEST

/* ---- fork, while others' objects come and go ---- */

static atomic_bool forked_enough;

static void *make_and_end(void *unused)
{
    (void)unused;
    OK(cuCtxSetCurrent(context));
    while (!atomic_load(&forked_enough))
        end_event(make_event());
    return NULL;
}

/* After softcuda's own destructor, whose key is older. */
static void leave(void *unused)
{
    (void)unused;
    _exit(0);
}

static void end_thread_of_child(bool good)
{
    static int yes;
    pthread_key_t key;
    pthread_key_create(&key, leave);
    pthread_setspecific(key, &yes);
    if (good)
        pthread_exit(NULL);
    _exit(1);
}

/* A child is answered, and its thread may end, whatever lock one of the threads that it has not held at that
 * moment. */
static void fork_children(int n)
{
    for (int i = 0; i < n; i++) {
        pid_t child = fork();
        if (child == 0) {
            CUcontext current;
            bool good = true;
            for (int call = 0; call < 5; call++)
                good &= cuCtxGetCurrent(&current) == CUDA_ERROR_NOT_INITIALIZED;
            end_thread_of_child(good);
        }
        int status = -1;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
    }
}

START_TEST(forked_among_threads)
{
    pthread_t threads[N_THREADS];
    start();
    for (int i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, make_and_end, NULL), 0);
    fork_children(50);
    atomic_store(&forked_enough, true);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void)
{
    unsetenv("CUDA_VISIBLE_DEVICES");
    TCase *cases = tcase_create("threads");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, initialised_by_all);
    tcase_add_test(cases, streams_of_all);
    tcase_add_test(cases, contexts_of_each);
    tcase_add_test(cases, a_fault_among_threads);
    tcase_add_test(cases, captured_while_used);
    tcase_add_test(cases, graph_changed_while_used);
    tcase_add_test(cases, forked_among_threads);
    tcase_add_loop_test(cases, destroyed_while_used, 0, sizeof kinds / sizeof *kinds);
    tcase_add_loop_test(cases, set_while_read, 0, sizeof settings / sizeof *settings);
    Suite *suite = suite_create("softcuda threads");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
