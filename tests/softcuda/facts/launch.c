/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: shapes, parameters, attributes, cooperation, host functions, the calls of before CUDA 4, and what
 * is answered after a fault. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/facts/kernels.h"

static CUresult sized(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned dynamic)
{
    return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, dynamic, NULL, NULL, NULL);
}

static void shapes(void)
{
    begin();
    CUfunction f = kernel("nul");
    ASK(sized(f, 0, 1, 1, 1, 1, 1, 0));
    ASK(sized(f, 1, 0, 1, 1, 1, 1, 0));
    ASK(sized(f, 1, 1, 0, 1, 1, 1, 0));
    ASK(sized(f, 1, 1, 1, 0, 1, 1, 0));
    ASK(sized(f, 1, 1, 1, 1, 0, 1, 0));
    ASK(sized(f, 1, 1, 1, 1, 1, 0, 0));
    ASK(sized(f, 1, 65535, 1, 1, 1, 1, 0));
    ASK(sized(f, 1, 65536, 1, 1, 1, 1, 0));
    ASK(sized(f, 1, 1, 65535, 1, 1, 1, 0));
    ASK(sized(f, 1, 1, 65536, 1, 1, 1, 0));
    ASK(sized(f, 0x80000000u, 1, 1, 1, 1, 1, 0));
    ASK(sized(f, 1, 1, 1, 1024, 1, 1, 0));
    ASK(sized(f, 1, 1, 1, 1025, 1, 1, 0));
    ASK(sized(f, 1, 1, 1, 1, 1025, 1, 0));
    ASK(sized(f, 1, 1, 1, 1, 1, 64, 0));
    ASK(sized(f, 1, 1, 1, 1, 1, 65, 0));
    ASK(sized(f, 1, 1, 1, 32, 32, 1, 0));
    ASK(sized(f, 1, 1, 1, 32, 33, 1, 0));
    ASK(sized(f, 1, 1, 1, 0x10000, 0x10000, 1, 0));
    ASK(sized(f, 1, 1, 1, 1, 1, 1, 49152));
    ASK(sized(f, 1, 1, 1, 1, 1, 1, 49153));
    ASK(sized(f, 1, 1, 1, 1, 1, 1, ~0u));
    ASK(cuCtxSynchronize());
}

static void shapes_limited(void)
{
    begin();
    CUmodule module = load(kernels_ptx);
    CUfunction limited = function(module, "lim256"), required = function(module, "req64");
    ASK(sized(limited, 1, 1, 1, 256, 1, 1, 0));
    ASK(sized(limited, 1, 1, 1, 257, 1, 1, 0));
    ASK(sized(limited, 1, 1, 1, 1, 256, 1, 0));
    ASK(sized(limited, 1, 1, 1, 16, 17, 1, 0));
    ASK(sized(required, 1, 1, 1, 64, 1, 1, 0));
    ASK(sized(required, 1, 1, 1, 1, 64, 1, 0));
    ASK(sized(required, 1, 1, 1, 32, 1, 1, 0));
    ASK(sized(required, 1, 1, 1, 65, 1, 1, 0));
    ASK(sized(required, 1, 1, 1, 128, 1, 1, 0));
}

static void params(void)
{
    unsigned v = 2;
    char block[16];
    size_t bytes = 12;
    begin();
    CUdeviceptr p = memory(4);
    CUfunction f = kernel("add"), nul = kernel("nul");
    memcpy(block, &p, 8);
    memcpy(block + 8, &v, 4);
    void *named[] = {&p, &v};
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, named, NULL));
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, named, extra));
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuLaunchKernel(nul, 1, 1, 1, 1, 1, 1, 0, NULL, named, NULL));
    ASK(cuLaunchKernel(nul, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    say(" %u", word_at(p));
    bytes = 16;
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    bytes = 13;
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    say(" %u", word_at(p));
    void *end[] = {CU_LAUNCH_PARAM_END};
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, end));
    ASK(cuLaunchKernel(nul, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, end));
    void *no_size[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_END};
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, no_size));
    void *unknown[] = {(void *)7, block, CU_LAUNCH_PARAM_END};
    ASK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, unknown));
    bytes = 0;
    ASK(cuLaunchKernel(nul, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
    ASK(cuCtxSynchronize());
}

static void handles(void)
{
    CUcontext a = begin(), b;
    CUfunction f = kernel("nul");
    CUstream here = new_stream(0);
    ASK(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuLaunchKernelEx(NULL, f, NULL, NULL));
    ASK(cuLaunchCooperativeKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL));
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    MUST(cuCtxSetCurrent(b));
    ASK(run(f, here, NULL));
    ASK(run(f, NULL, NULL));
    CUstream there = new_stream(0);
    MUST(cuCtxSetCurrent(a));
    ASK(run(f, there, NULL));
    MUST(cuCtxSetCurrent(NULL));
    ASK(run(f, here, NULL));
    ASK(run(f, NULL, NULL));
}

/* ---- attributes ---- */

static CUlaunchConfig config_of(CUlaunchAttribute *attributes, unsigned n)
{
    return (CUlaunchConfig){.gridDimX = 4,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = 32,
                            .blockDimY = 1,
                            .blockDimZ = 1,
                            .attrs = attributes,
                            .numAttrs = n};
}

static CUresult with(CUfunction f, CUlaunchAttributeID id, CUlaunchAttributeValue value)
{
    CUlaunchAttribute attribute = {.id = id, .value = value};
    CUlaunchConfig config = config_of(&attribute, 1);
    return cuLaunchKernelEx(&config, f, NULL, NULL);
}

#define VALUE(...) ((CUlaunchAttributeValue){__VA_ARGS__})

static void attributes_zero(void)
{
    begin();
    CUfunction f = kernel("nul");
    for (int id = -1; id < 20; id++)
        say(" %d:%d", id, (int)with(f, (CUlaunchAttributeID)id, VALUE(.pad = {0})));
    CUlaunchConfig config = config_of(NULL, 1);
    ASK(cuLaunchKernelEx(&config, f, NULL, NULL));
    config = config_of(NULL, 0);
    ASK(cuLaunchKernelEx(&config, f, NULL, NULL));
    ASK(cuCtxSynchronize());
}

static void attributes_cooperative(void)
{
    begin();
    CUfunction f = kernel("nul");
    for (int i = -1; i < 4; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, VALUE(.cooperative = i)));
    ASK(cuCtxSynchronize());
}

static void attributes_cluster(void)
{
    static const unsigned dims[][3] = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {3, 1, 1}, {1, 2, 1}, {0, 1, 1},
                                       {2, 0, 0}, {8, 1, 1}, {1, 1, 0}, {5, 5, 5}, {16, 1, 1}};
    begin();
    CUfunction f = kernel("nul");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                 VALUE(.clusterDim = {dims[i][0], dims[i][1], dims[i][2]})));
    ASK(cuCtxSynchronize());
}

static void attributes_cluster_preferred(void)
{
    static const unsigned pairs[][2] = {{2, 4}, {4, 2}, {2, 2}, {0, 2}, {2, 0}, {1, 4}};
    begin();
    CUfunction f = kernel("nul");
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CUlaunchAttribute both[] = {
            {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {pairs[i][0], 1, 1}},
            {.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
             .value.preferredClusterDim = {pairs[i][1], 1, 1}}};
        CUlaunchConfig config = config_of(both, 2);
        ASK(cuLaunchKernelEx(&config, f, NULL, NULL));
    }
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, VALUE(.preferredClusterDim = {2, 1, 1})));
    for (int i = -1; i < 4; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
                 VALUE(.clusterSchedulingPolicyPreference = (CUclusterSchedulingPolicy)i)));
    ASK(cuCtxSynchronize());
}

static void attributes_priority(void)
{
    static const int values[] = {-100, -6, -5, -1, 0, 1, 100};
    begin();
    CUfunction f = kernel("nul");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_PRIORITY, VALUE(.priority = values[i])));
    ASK(cuCtxSynchronize());
}

static void attributes_steering(void)
{
    begin();
    CUfunction f = kernel("nul");
    for (int i = -1; i < 6; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
                 VALUE(.syncPolicy = (CUsynchronizationPolicy)i)));
    say(" |");
    for (int i = -1; i < 3; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                 VALUE(.programmaticStreamSerializationAllowed = i)));
    say(" |");
    for (int i = -1; i < 3; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, VALUE(.memSyncDomain = (CUlaunchMemSyncDomain)i)));
    say(" |");
    static const unsigned char maps[][2] = {{0, 0}, {0, 1}, {1, 0}, {3, 3}, {0, 4}, {4, 0}, {255, 255}};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
                 VALUE(.memSyncDomainMap = {maps[i][0], maps[i][1]})));
    say(" |");
    static const int carveouts[] = {-2, -1, 0, 1, 50, 100, 101};
    for (size_t i = 0; i < sizeof carveouts / sizeof *carveouts; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                 VALUE(.sharedMemCarveout = (unsigned)carveouts[i])));
    say(" |");
    for (unsigned i = 0; i < 3; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
                 VALUE(.nvlinkUtilCentricScheduling = i)));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
             VALUE(.deviceUpdatableKernelNode = {1, NULL})));
    ASK(cuCtxSynchronize());
}

static void attributes_window(void)
{
    begin();
    CUdeviceptr p = memory(1 << 20);
    CUfunction f = kernel("nul");
    void *base = (void *)(uintptr_t)p;
    const CUaccessPolicyWindow windows[] = {
        {base, 1 << 20, 1.0f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING},
        {base, 1 << 20, 0.5f, CU_ACCESS_PROPERTY_NORMAL, CU_ACCESS_PROPERTY_NORMAL},
        {base, 1 << 20, 1.5f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING},
        {base, 1 << 20, -1.0f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING},
        {base, 1 << 20, 1.0f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_PERSISTING},
        {base, (size_t)1 << 40, 1.0f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING},
        {base, 0, 1.0f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING},
        {NULL, 1 << 20, 1.0f, CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_STREAMING},
        {base, 1 << 20, 1.0f, (CUaccessProperty)7, CU_ACCESS_PROPERTY_STREAMING},
    };
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
        ASK(with(f, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, VALUE(.accessPolicyWindow = windows[i])));
    ASK(cuCtxSynchronize());
}

static void attributes_events(void)
{
    begin();
    CUfunction f = kernel("nul");
    CUevent timed = new_event(0), untimed = new_event(CU_EVENT_DISABLE_TIMING);
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, VALUE(.programmaticEvent = {untimed, 0, 0})));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, VALUE(.programmaticEvent = {timed, 0, 0})));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, VALUE(.programmaticEvent = {NULL, 0, 0})));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, VALUE(.programmaticEvent = {untimed, 9, 0})));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, VALUE(.programmaticEvent = {untimed, 0, 1})));
    ASK(cuEventSynchronize(untimed));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, VALUE(.launchCompletionEvent = {untimed, 0})));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, VALUE(.launchCompletionEvent = {timed, 0})));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, VALUE(.launchCompletionEvent = {NULL, 0})));
    ASK(with(f, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, VALUE(.launchCompletionEvent = {untimed, 9})));
    ASK(cuEventSynchronize(untimed));
    ASK(cuEventQuery(untimed));
    ASK(cuCtxSynchronize());
}

static void attributes_many(void)
{
    begin();
    CUfunction f = kernel("nul");
    CUlaunchAttribute many[3] = {{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1},
                                 {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {2, 1, 1}},
                                 {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1}};
    CUlaunchConfig config = config_of(many, 3);
    ASK(cuLaunchKernelEx(&config, f, NULL, NULL));
    many[1] = many[2] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -1};
    ASK(cuLaunchKernelEx(&config, f, NULL, NULL));
    many[2] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                  .value.programmaticStreamSerializationAllowed = 1};
    ASK(cuLaunchKernelEx(&config, f, NULL, NULL));
    config.blockDimX = 0;
    ASK(cuLaunchKernelEx(&config, f, NULL, NULL));
    ASK(cuCtxSynchronize());
}

/* ---- cooperation ---- */

static CUresult together(CUfunction f, unsigned blocks, unsigned threads, unsigned dynamic)
{
    return cuLaunchCooperativeKernel(f, blocks, 1, 1, threads, 1, 1, dynamic, NULL, NULL);
}

static void cooperative(void)
{
    int a_multiprocessor = 0, n = 0;
    begin();
    CUfunction f = kernel("nul");
    MUST(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    MUST(cuOccupancyMaxActiveBlocksPerMultiprocessor(&a_multiprocessor, f, 1024, 0));
    unsigned most = (unsigned)(n * a_multiprocessor);
    ASK(together(f, most, 1024, 0));
    ASK(together(f, most + 1, 1024, 0));
    ASK(together(f, (unsigned)n * 32, 32, 0));
    ASK(together(f, (unsigned)n * 32 + 1, 32, 0));
    ASK(together(f, (unsigned)n * 4, 32, 49152));
    ASK(together(f, (unsigned)n * 4 + 1, 32, 49152));
    ASK(together(f, 0, 32, 0));
    ASK(together(f, 1, 2048, 0));
    ASK(together(f, 1, 32, 49153));
    ASK(cuCtxSynchronize());
}

static void cooperative_many(void)
{
    CUcontext a = begin(), b;
    CUfunction f = kernel("nul");
    CUstream one = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    MUST(cuCtxSetCurrent(b));
    CUfunction g = kernel("nul");
    CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
    MUST(cuCtxSetCurrent(a));
    CUDA_LAUNCH_PARAMS list[] = {{f, 1, 1, 1, 32, 1, 1, 0, one, NULL},
                                 {g, 1, 1, 1, 32, 1, 1, 0, other, NULL}};
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 2, 3));
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 2, 4));
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 0, 0));
    ASK(cuLaunchCooperativeKernelMultiDevice(NULL, 2, 0));
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 3, 0));
    list[1].gridDimX = 2;
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
    list[1].gridDimX = 1;
    list[1].hStream = NULL;
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
    list[1] = list[0];
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
    list[0].gridDimX = 1000000;
    ASK(cuLaunchCooperativeKernelMultiDevice(list, 1, 0));
    ASK(cuCtxSynchronize());
}

/* ---- before CUDA 4 ---- */

static void old_launch(void)
{
    unsigned v = 5;
    begin();
    CUdeviceptr p = memory(4);
    CUfunction f = kernel("add");
    ASK(cuFuncSetBlockShape(f, 4, 1, 1));
    ASK(cuFuncSetSharedSize(f, 0));
    ASK(cuParamSetv(f, 0, &p, sizeof p));
    ASK(cuParamSeti(f, 8, v));
    ASK(cuParamSetSize(f, 12));
    ASK(cuLaunch(f));
    ASK(cuLaunchGrid(f, 2, 3));
    ASK(cuLaunchGridAsync(f, 1, 1, NULL));
    ASK(cuCtxSynchronize());
    say(" %u", word_at(p));
}

static void old_launch_wrong(void)
{
    begin();
    unsigned v = 1;
    CUfunction f = kernel("nul"), g = kernel("add");
    ASK(cuLaunch(f));
    ASK(cuFuncSetBlockShape(NULL, 1, 1, 1));
    ASK(cuFuncSetBlockShape(f, 0, 1, 1));
    ASK(cuFuncSetBlockShape(f, -1, 1, 1));
    ASK(cuFuncSetBlockShape(f, 1025, 1, 1));
    ASK(cuFuncSetBlockShape(f, 1024, 1, 1));
    ASK(cuFuncSetBlockShape(f, 32, 33, 1));
    ASK(cuFuncSetBlockShape(f, 32, 1, 1));
    ASK(cuFuncSetSharedSize(NULL, 0));
    ASK(cuFuncSetSharedSize(f, 49152));
    ASK(cuFuncSetSharedSize(f, 49153));
    ASK(cuFuncSetSharedSize(f, 1000000));
    ASK(cuParamSetSize(NULL, 0));
    ASK(cuParamSetSize(f, 4096));
    ASK(cuParamSetSize(f, 1000000));
    ASK(cuParamSetSize(f, 0));
    ASK(cuParamSeti(NULL, 0, 1));
    ASK(cuParamSeti(f, 4093, 1));
    ASK(cuParamSeti(f, 1, 1));
    ASK(cuParamSetf(f, 0, 1.0f));
    ASK(cuParamSetv(f, 0, &v, 0));
    ASK(cuLaunch(NULL));
    ASK(cuLaunchGrid(f, 0, 1));
    ASK(cuLaunchGrid(f, -1, 1));
    ASK(cuLaunchGrid(NULL, 1, 1));
    ASK(cuLaunchGridAsync(NULL, 1, 1, NULL));
    ASK(cuFuncSetBlockShape(g, 32, 1, 1));
    ASK(cuCtxSynchronize());
}

/* ---- host functions ---- */

static int called;

static void count(void *user)
{
    called += *(int *)user;
}

static void inside(void *user)
{
    int *results = user, n;
    CUcontext context;
    CUstream stream;
    CUstreamCaptureStatus status;
    results[0] = (int)cuCtxSynchronize();
    results[1] = (int)cuDeviceGetCount(&n);
    results[2] = (int)cuCtxGetCurrent(&context);
    results[3] = (int)cuStreamCreate(&stream, 0);
    results[4] = (int)cuStreamIsCapturing(NULL, &status);
    results[5] = (int)cuDriverGetVersion(&n);
    results[6] = (int)cuStreamQuery(NULL);
    results[7] = (int)cuGetErrorName(CUDA_SUCCESS, (const char **)&context);
}

static void host_functions(void)
{
    static int two = 2, results[8];
    begin();
    CUstream stream = new_stream(0);
    ASK(cuLaunchHostFunc(stream, count, &two));
    ASK(cuLaunchHostFunc(NULL, count, &two));
    ASK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, count, &two));
    ASK(cuCtxSynchronize());
    say(" %d", called);
    ASK(cuLaunchHostFunc(stream, NULL, NULL));
    ASK(cuLaunchHostFunc(stream, inside, results));
    ASK(cuStreamSynchronize(stream));
    say(" |");
    for (int i = 0; i < 8; i++)
        say(" %d", results[i]);
}

static CUresult told = (CUresult)NO_SUCH;

static void tell(CUstream stream, CUresult status, void *user)
{
    told = status;
    called = stream == *(CUstream *)user;
}

static void callbacks(void)
{
    begin();
    static CUstream stream;
    stream = new_stream(0);
    ASK(cuStreamAddCallback(stream, tell, &stream, 0));
    ASK(cuStreamSynchronize(stream));
    say(" %d %d", (int)told, called);
    ASK(cuStreamAddCallback(stream, NULL, NULL, 0));
    ASK(cuStreamAddCallback(stream, tell, &stream, 1));
    static CUstream null;
    ASK(cuStreamAddCallback(NULL, tell, &null, 0));
    ASK(cuCtxSynchronize());
    say(" %d", called);
}

/* ---- after a fault ---- */

static void after_fault(void)
{
    CUcontext context = begin(), other;
    CUlibrary library;
    CUkernel k;
    unsigned u;
    int n;
    size_t bytes;
    unsigned long long id;
    MUST(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuLibraryGetKernel(&k, library, "nul"));
    CUmodule module = load(kernels_ptx);
    CUfunction f = function(module, "nul"), g;
    CUstream stream = new_stream(0);
    CUevent event = new_event(0);
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;
    CUlinkState link;
    CUdeviceptr p = memory(64), q;
    const char *name;
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(run(function(module, "fault"), NULL, NULL));
    ASK(cuCtxSynchronize());
    say(" |");
    ASK(cuCtxGetDevice(&n));
    ASK(cuCtxGetFlags(&u));
    ASK(cuCtxSetFlags(0));
    ASK(cuCtxGetId(context, &id));
    ASK(cuCtxGetApiVersion(context, &u));
    ASK(cuCtxGetLimit(&bytes, CU_LIMIT_STACK_SIZE));
    ASK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    ASK(cuCtxGetStreamPriorityRange(&n, &n));
    ASK(cuCtxSynchronize_v2(context));
    ASK(cuCtxCreate_v2(&other, 0, 1));
    ASK(cuDevicePrimaryCtxGetState(0, &u, &n));
    ASK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ASK(cuCtxPushCurrent_v2(context));
    ASK(cuCtxPopCurrent_v2(NULL));
    say(" |");
    ASK(cuStreamCreate(&stream, 0));
    ASK(cuEventCreate(&event, 0));
    ASK(cuEventQuery(event));
    ASK(cuEventSynchronize(event));
    say(" |");
    ASK(cuModuleGetFunction(&g, module, "nul"));
    ASK(cuModuleGetFunctionCount(&u, module));
    ASK(cuModuleGetGlobal_v2(&q, &bytes, module, "gvar"));
    ASK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100));
    ASK(cuFuncGetName(&name, f));
    ASK(cuFuncGetModule(&module, f));
    ASK(cuFuncGetParamInfo(f, 0, &bytes, &bytes));
    ASK(cuFuncLoad(f));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 0));
    ASK(cuLibraryGetKernel(&k, library, "nul"));
    ASK(cuLibraryGetModule(&module, library));
    ASK(cuKernelGetFunction(&g, k));
    ASK(cuKernelGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0));
    ASK(cuLinkCreate_v2(0, NULL, NULL, &link));
    ASK(run(f, NULL, NULL));
    say(" |");
    ASK(cuGraphCreate(&graph, 0));
    ASK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
    ASK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    ASK(cuGraphLaunch(exec, NULL));
    ASK(cuGraphExecDestroy(exec));
    ASK(cuGraphDestroy(graph));
    ASK(cuMemFree_v2(p));
    ASK(cuProfilerStart());
    ASK(cuLibraryUnload(library));
    ASK(cuEventDestroy_v2(event));
}

static const fact facts[] = {
    FACT(shapes),
    FACT(shapes_limited),
    FACT(params),
    FACT(handles),
    FACT(attributes_zero),
    FACT(attributes_cooperative),
    FACT(attributes_cluster),
    FACT(attributes_cluster_preferred),
    FACT(attributes_priority),
    FACT(attributes_steering),
    FACT(attributes_window),
    FACT(attributes_events),
    FACT(attributes_many),
    FACT(cooperative),
    FACT(cooperative_many),
    FACT(old_launch),
    FACT(old_launch_wrong),
    FACT(host_functions),
    FACT(callbacks),
    FACT(after_fault),
};
FACTS_MAIN(facts)
