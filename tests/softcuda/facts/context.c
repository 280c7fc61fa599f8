/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation, errors, entry points, devices, contexts, peers, profiling. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/softcuda/facts/kernels.h"

/* ---- before cuInit, and without a context ---- */

static void errors_between(int first, int last)
{
    for (int code = first; code < last; code++) {
        const char *name = NULL, *text = NULL;
        CUresult a = cuGetErrorName((CUresult)code, &name), b = cuGetErrorString((CUresult)code, &text);
        if (!a || !b)
            say(" %d %s (%s)", code, name, text);
    }
}

static void errors_1(void)
{
    errors_between(0, 300);
}

static void errors_2(void)
{
    errors_between(300, 803);
}

static void errors_3(void)
{
    errors_between(803, 1000);
}

static void errors_wrong(void)
{
    const char *text = "as it was";
    ASK(cuGetErrorName((CUresult)12345, &text));
    say(" %s", text ? text : "null");
    text = "as it was";
    ASK(cuGetErrorString((CUresult)-1, &text));
    say(" %s", text ? text : "null");
}

/* Calls that name no object that must be there. */
static void ask_all(void)
{
    int n;
    unsigned u;
    size_t z;
    unsigned long long id;
    CUcontext context;
    CUstream stream;
    CUevent event;
    CUmodule module;
    CUlibrary library;
    CUgraph graph;
    CUlinkState link;
    CUuserObject object;
    CUdeviceptr address;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    CUfunc_cache cache;
    CUsharedconfig config;
    ASK(cuDriverGetVersion(&n));
    ASK(cuDeviceGetCount(&n));
    ASK(cuDeviceGet(&n, 0));
    ASK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ASK(cuDeviceTotalMem_v2(&z, 0));
    ASK(cuDeviceCanAccessPeer(&n, 0, 1));
    ASK(cuDevicePrimaryCtxGetState(0, &u, &n));
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, 0));
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    ASK(cuDevicePrimaryCtxReset_v2(0));
    say(" |");
    ASK(cuCtxGetCurrent(&context));
    ASK(cuCtxSetCurrent(NULL));
    ASK(cuCtxPushCurrent_v2(NULL));
    ASK(cuCtxPopCurrent_v2(&context));
    ASK(cuCtxGetDevice(&n));
    ASK(cuCtxGetFlags(&u));
    ASK(cuCtxSetFlags(0));
    ASK(cuCtxGetId(NULL, &id));
    ASK(cuCtxGetApiVersion(NULL, &u));
    ASK(cuCtxSynchronize());
    ASK(cuCtxGetLimit(&z, CU_LIMIT_STACK_SIZE));
    ASK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1024));
    ASK(cuCtxGetCacheConfig(&cache));
    ASK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_NONE));
    ASK(cuCtxGetSharedMemConfig(&config));
    ASK(cuCtxGetStreamPriorityRange(&n, &n));
    ASK(cuCtxResetPersistingL2Cache());
    ASK(cuCtxAttach(&context, 0));
    ASK(cuCtxDestroy_v2(NULL));
    ASK(cuCtxEnablePeerAccess(NULL, 0));
    ASK(cuCtxDisablePeerAccess(NULL));
    say(" |");
    ASK(cuStreamCreate(&stream, 0));
    ASK(cuStreamCreateWithPriority(&stream, 0, 0));
    ASK(cuStreamQuery(NULL));
    ASK(cuStreamSynchronize(NULL));
    ASK(cuStreamDestroy_v2(NULL));
    ASK(cuStreamGetFlags(NULL, &u));
    ASK(cuStreamGetCtx(NULL, &context));
    ASK(cuStreamWaitEvent(NULL, NULL, 0));
    ASK(cuEventCreate(&event, 0));
    ASK(cuEventRecord(NULL, NULL));
    ASK(cuEventQuery(NULL));
    ASK(cuEventDestroy_v2(NULL));
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    ASK(cuLaunchHostFunc(NULL, NULL, NULL));
    say(" |");
    ASK(cuModuleLoadData(&module, kernels_ptx));
    ASK(cuModuleLoad(&module, "/nonexistent"));
    ASK(cuModuleUnload(NULL));
    ASK(cuModuleGetLoadingMode(&n));
    ASK(cuLibraryLoadData(&library, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLinkCreate_v2(0, NULL, NULL, &link));
    ASK(cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL));
    ASK(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, NULL, 32, 0));
    say(" |");
    ASK(cuGraphCreate(&graph, 0));
    ASK(cuGraphDestroy(NULL));
    ASK(cuUserObjectCreate(&object, NULL, NULL, 1, 1));
    ASK(cuProfilerStart());
    ASK(cuProfilerStop());
    ASK(cuMemAlloc_v2(&address, 64));
    ASK(cuMemFree_v2(0));
}

static void init_before(void)
{
    ask_all();
}

static void init_without_context(void)
{
    ASK(cuInit(0));
    ask_all();
}

static void init_flags(void)
{
    ASK(cuInit(1));
    ASK(cuInit(~0u));
    ASK(cuInit(0));
    ASK(cuInit(0));
    ASK(cuInit(1));
}

static void init_version(void)
{
    int version = 0;
    ASK(cuDriverGetVersion(&version));
    say(" %d", version >= 13000);
    ASK(cuDriverGetVersion(NULL));
}

/* ---- entry points ---- */

#define IS(symbol)              \
    {                           \
#symbol, (void *)symbol \
    }

static void entry_versions(void)
{
    static const struct {
        const char *name;
        int version;
    } asked[] = {{"cuCtxCreate", 2000},
                 {"cuCtxCreate", 3020},
                 {"cuCtxCreate", 11030},
                 {"cuCtxCreate", 11040},
                 {"cuCtxCreate", 12040},
                 {"cuCtxCreate", 12050},
                 {"cuCtxCreate", 13000},
                 {"cuCtxCreate", 14000},
                 {"cuCtxCreate_v2", 12000},
                 {"cuCtxCreate_v4", 13000},
                 {"cuMemAlloc", 2000},
                 {"cuMemAlloc", 3020},
                 {"cuMemAlloc_v2", 12000},
                 {"cuEventElapsedTime", 12000},
                 {"cuEventElapsedTime", 12080},
                 {"cuEventElapsedTime", 13000},
                 {"cuGraphInstantiate", 10000},
                 {"cuGraphInstantiate", 11000},
                 {"cuGraphInstantiate", 11040},
                 {"cuGraphInstantiate", 12000},
                 {"cuGetProcAddress", 11030},
                 {"cuGetProcAddress", 12000},
                 {"cuCtxSynchronize", 12000},
                 {"cuCtxSynchronize", 13000},
                 {"cuCtxGetDevice", 12000},
                 {"cuCtxGetDevice", 13000},
                 {"cuDevicePrimaryCtxReset", 7000},
                 {"cuDevicePrimaryCtxReset", 11000},
                 {"cuStreamBeginCapture", 10000},
                 {"cuStreamBeginCapture", 10010},
                 {"cuInit", 1},
                 {"cuInit", 2000},
                 {"cuLaunchKernelEx", 11070},
                 {"cuLaunchKernelEx", 11080},
                 {"", 12000},
                 {"nothing", 12000},
                 {"cudaMalloc", 12000},
                 {"cuinit", 12000},
                 {"cuGraphAddNode", 12020},
                 {"cuGraphAddNode", 12030},
                 {"cuGraphAddNode", 13000},
                 {"cuStreamGetCtx", 12000},
                 {"cuStreamGetCtx", 12050},
                 {"cuMemAdvise", 12000},
                 {"cuMemAdvise", 12020},
                 {"cuMemAdvise", 13000}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        void *found = NULL;
        CUdriverProcAddressQueryResult status = NO_SUCH;
        CUresult result = cuGetProcAddress_v2(asked[i].name, &found, asked[i].version, 0, &status);
        say(" %s@%d:%d,%d,%d", asked[i].name, asked[i].version, (int)result, found != NULL, (int)status);
    }
}

static void entry_newer(void)
{
    static const int asked[] = {13000, 13001, 13010, 13020, 13990, 13999, 14000, 99000, -1};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        void *found = NULL;
        CUdriverProcAddressQueryResult status = NO_SUCH;
        CUresult result = cuGetProcAddress_v2("cuInit", &found, asked[i], 0, &status);
        say(" %d:%d,%d,%d", asked[i], (int)result, found != NULL, (int)status);
    }
}

static void entry_same(void)
{
    static const struct {
        const char *name;
        int version;
        void *expected;
    } asked[] = {{"cuCtxCreate", 3020, (void *)cuCtxCreate_v2},
                 {"cuCtxCreate", 11040, (void *)cuCtxCreate_v3},
                 {"cuCtxCreate", 12050, (void *)cuCtxCreate_v4},
                 {"cuCtxCreate", 13000, (void *)cuCtxCreate_v4},
                 {"cuCtxGetDevice", 12000, (void *)cuCtxGetDevice},
                 {"cuCtxGetDevice", 13000, (void *)cuCtxGetDevice_v2},
                 {"cuEventElapsedTime", 12000, (void *)cuEventElapsedTime},
                 {"cuEventElapsedTime", 12080, (void *)cuEventElapsedTime_v2},
                 {"cuMemAlloc", 12000, (void *)cuMemAlloc_v2},
                 {"cuGraphInstantiate", 12000, (void *)cuGraphInstantiateWithFlags},
                 {"cuGetProcAddress", 12000, (void *)cuGetProcAddress_v2}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        void *found = NULL;
        ASK(cuGetProcAddress_v2(asked[i].name, &found, asked[i].version, 0, NULL));
        say(" %d", found == asked[i].expected);
    }
}

static void entry_flags(void)
{
    void *one = NULL, *other = NULL;
    CUdriverProcAddressQueryResult status = NO_SUCH;
    for (unsigned long long flags = 0; flags < 5; flags++) {
        ASK(cuGetProcAddress_v2("cuLaunchKernel", &one, 12000, flags, &status));
        say(",%d,%d", one == (void *)cuLaunchKernel, one == (void *)cuLaunchKernel_ptsz);
    }
    ASK(cuGetProcAddress_v2("cuInit", &other, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    say(" %d", other == (void *)cuInit);
}

static void entry_wrong(void)
{
    void *found = (void *)1;
    CUdriverProcAddressQueryResult status = NO_SUCH;
    ASK(cuGetProcAddress_v2("cuInit", &found, 12000, 0, NULL));
    ASK(cuGetProcAddress_v2("cuInit", &found, 0, 0, &status));
    say(",%d", (int)status);
    ASK(cuGetProcAddress_v2("cuInit", &found, -1, 0, &status));
    say(",%d", (int)status);
    found = (void *)1;
    ASK(cuGetProcAddress_v2("nothing", &found, 12000, 0, NULL));
    say(",%d", found == NULL);
}

static void entry_table(void)
{
    const void *table = (void *)1;
    CUuuid none = {{0}};
    ASK(cuGetExportTable(&table, &none));
    say(" %d", table == NULL);
}

/* ---- devices ---- */

static void device_right(void)
{
    int n = 0, major = 0, minor = 0;
    CUdevice device = -1;
    size_t bytes = 0;
    MUST(cuInit(0));
    ASK(cuDeviceGetCount(&n));
    say(" %d", n);
    ASK(cuDeviceGet(&device, 1));
    say(" %d", device);
    ASK(cuDeviceComputeCapability(&major, &minor, 0));
    say(" %d.%d", major, minor);
    ASK(cuDeviceTotalMem_v2(&bytes, 0));
    say(" %zu", bytes);
    char name[100];
    ASK(cuDeviceGetName(name, sizeof name, 0));
    say(" %s", name);
    memset(name, 'z', sizeof name);
    ASK(cuDeviceGetName(name, 8, 0));
    say(" %.8s %d", name, name[7] == 0);
    CUuuid one, other;
    ASK(cuDeviceGetUuid_v2(&one, 0));
    ASK(cuDeviceGetUuid_v2(&other, 1));
    say(" %d", memcmp(&one, &other, sizeof one) != 0);
}

static void device_wrong(void)
{
    int n, major;
    unsigned mask;
    char text[64];
    size_t bytes;
    CUuuid uuid;
    CUdevprop properties;
    MUST(cuInit(0));
    static const CUdevice wrong[] = {-1, 2, NO_SUCH};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CUdevice d = wrong[i];
        say(" |");
        ASK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, d));
        ASK(cuDeviceGetName(text, sizeof text, d));
        ASK(cuDeviceGetUuid_v2(&uuid, d));
        ASK(cuDeviceTotalMem_v2(&bytes, d));
        ASK(cuDeviceComputeCapability(&n, &major, d));
        ASK(cuDeviceGetProperties(&properties, d));
        ASK(cuDeviceGetPCIBusId(text, sizeof text, d));
        ASK(cuDeviceGetLuid(text, &mask, d));
        ASK(cuDeviceCanAccessPeer(&n, 0, d));
        ASK(cuDeviceCanAccessPeer(&n, d, 0));
        ASK(cuDeviceGetP2PAttribute(&n, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, d));
        ASK(cuDeviceGetExecAffinitySupport(&n, CU_EXEC_AFFINITY_TYPE_SM_COUNT, d));
        ASK(cuDeviceGetTexture1DLinearMaxWidth(&bytes, 0x20, 1, d));
    }
}

static void device_null(void)
{
    int n;
    MUST(cuInit(0));
    ASK(cuDeviceGetCount(NULL));
    ASK(cuDeviceGet(NULL, 0));
    ASK(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ASK(cuDeviceGetName(NULL, 10, 0));
    ASK(cuDeviceTotalMem_v2(NULL, 0));
    ASK(cuDeviceGetUuid_v2(NULL, 0));
    ASK(cuDeviceComputeCapability(NULL, &n, 0));
    ASK(cuDeviceComputeCapability(&n, NULL, 0));
    ASK(cuDeviceGetProperties(NULL, 0));
    ASK(cuDeviceCanAccessPeer(NULL, 0, 1));
    ASK(cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    ASK(cuDeviceGetPCIBusId(NULL, 20, 0));
    ASK(cuDeviceGetByPCIBusId(NULL, "0000:00:00.0"));
    ASK(cuDeviceGetByPCIBusId(&n, NULL));
    ASK(cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    ASK(cuDeviceGetTexture1DLinearMaxWidth(NULL, 0x20, 1, 0));
}

static void device_attributes_wrong(void)
{
    int n = -1;
    MUST(cuInit(0));
    static const int wrong[] = {-1, 0, 148, 149, 1000, 0x7fffffff};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ASK(cuDeviceGetAttribute(&n, (CUdevice_attribute)wrong[i], 0));
    say(" %d", n);
}

/* What belongs to the machine, its cables and its operating system, or to engines that softcuda lacks. */
static int is_of_machine(int attribute)
{
    static const int these[] = {32,  33,  34,  44,  50,  84,  85,  88,  94,  98,  100, 101, 103, 107, 110,
                                112, 113, 114, 116, 117, 118, 119, 121, 124, 125, 127, 128, 130, 131, 132,
                                133, 134, 136, 137, 139, 140, 141, 142, 143, 144, 145, 146, 147};
    for (size_t i = 0; i < sizeof these / sizeof *these; i++)
        if (these[i] == attribute)
            return 1;
    return 0;
}

static void device_attributes(void)
{
    MUST(cuInit(0));
    for (int i = 1; i < 148; i++) {
        int n = -1;
        if (is_of_machine(i))
            continue;
        MUST(cuDeviceGetAttribute(&n, (CUdevice_attribute)i, 0));
        say(" %d:%d", i, n);
    }
}

static void device_properties(void)
{
    CUdevprop p;
    MUST(cuInit(0));
    ASK(cuDeviceGetProperties(&p, 0));
    say(" %d %d,%d,%d %d,%d,%d %d %d %d %d %d %d %d", p.maxThreadsPerBlock, p.maxThreadsDim[0],
        p.maxThreadsDim[1], p.maxThreadsDim[2], p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2],
        p.sharedMemPerBlock, p.totalConstantMemory, p.SIMDWidth, p.memPitch, p.regsPerBlock, p.clockRate,
        p.textureAlign);
}

static void device_luid(void)
{
    char luid[8];
    unsigned mask = 7;
    MUST(cuInit(0));
    ASK(cuDeviceGetLuid(luid, &mask, 0));
    ASK(cuDeviceGetLuid(NULL, NULL, 0));
}

static void device_texture_width(void)
{
    static const int formats[] = {1, 2, 3, 8, 9, 10, 16, 32, 0, NO_SUCH};
    MUST(cuInit(0));
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (unsigned channels = 0; channels < 5; channels++) {
            size_t width = 0;
            CUresult result = cuDeviceGetTexture1DLinearMaxWidth(&width, formats[i], channels, 0);
            say(" %d:%zu", (int)result, width);
        }
}

static void device_affinity(void)
{
    int n = NO_SUCH;
    MUST(cuInit(0));
    ASK(cuDeviceGetExecAffinitySupport(&n, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    say(" %d", n);
    ASK(cuDeviceGetExecAffinitySupport(&n, CU_EXEC_AFFINITY_TYPE_MAX, 0));
    ASK(cuDeviceGetExecAffinitySupport(&n, (CUexecAffinityType)-1, 0));
}

static void device_pci(void)
{
    char id[32], again[32];
    CUdevice device = -1;
    MUST(cuInit(0));
    ASK(cuDeviceGetPCIBusId(id, sizeof id, 1));
    say(" %zu %c%c%c", strlen(id), id[4], id[7], id[10]);
    ASK(cuDeviceGetByPCIBusId(&device, id));
    say(" %d", device);
    ASK(cuDeviceGetByPCIBusId(&device, id + 5));
    say(" %d", device);
    for (char *c = strcpy(again, id); *c; c++)
        if (*c >= 'A' && *c <= 'F')
            *c = (char)(*c - 'A' + 'a');
    ASK(cuDeviceGetByPCIBusId(&device, again));
    for (int bytes = 0; bytes < 14; bytes++)
        ASK(cuDeviceGetPCIBusId(again, bytes, 1));
    ASK(cuDeviceGetPCIBusId(again, -1, 1));
    ASK(cuDeviceGetByPCIBusId(&device, ""));
    ASK(cuDeviceGetByPCIBusId(&device, "garbage"));
    ASK(cuDeviceGetByPCIBusId(&device, "ffff:ff:1f.0"));
    ASK(cuDeviceGetByPCIBusId(&device, "0000:fe:00.0"));
    strcat(id, "x");
    ASK(cuDeviceGetByPCIBusId(&device, id));
}

static void device_peers(void)
{
    int n = -1;
    MUST(cuInit(0));
    ASK(cuDeviceCanAccessPeer(&n, 0, 1));
    say(" %d", n);
    ASK(cuDeviceCanAccessPeer(&n, 0, 0));
    say(" %d", n);
    for (int i = 0; i < 7; i++) {
        n = -1;
        ASK(cuDeviceGetP2PAttribute(&n, (CUdevice_P2PAttribute)i, 0, 1));
        say(":%d", i == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : n);
    }
    ASK(cuDeviceGetP2PAttribute(&n, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0));
}

/* ---- primary contexts ---- */

static void say_state(CUdevice device)
{
    unsigned flags = NO_SUCH;
    int active = -1;
    CUresult result = cuDevicePrimaryCtxGetState(device, &flags, &active);
    say(" %d(%u,%d)", (int)result, flags, active);
}

static void primary_states(void)
{
    CUcontext a = NULL, b = NULL, other = NULL;
    MUST(cuInit(0));
    say_state(0);
    ASK(cuDevicePrimaryCtxRetain(&a, 0));
    say_state(0);
    say_state(1);
    ASK(cuDevicePrimaryCtxRetain(&b, 0));
    ASK(cuDevicePrimaryCtxRetain(&other, 1));
    say(" %d %d", a == b, a == other);
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    say_state(0);
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    say_state(0);
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    ASK(cuDevicePrimaryCtxReset_v2(0));
    say_state(0);
    say_state(1);
}

static void primary_wrong(void)
{
    CUcontext context;
    unsigned flags;
    int active;
    MUST(cuInit(0));
    ASK(cuDevicePrimaryCtxRetain(NULL, 0));
    ASK(cuDevicePrimaryCtxRetain(&context, -1));
    ASK(cuDevicePrimaryCtxRetain(&context, 2));
    ASK(cuDevicePrimaryCtxRelease_v2(2));
    ASK(cuDevicePrimaryCtxReset_v2(2));
    ASK(cuDevicePrimaryCtxSetFlags_v2(2, 0));
    ASK(cuDevicePrimaryCtxGetState(2, &flags, &active));
    ASK(cuDevicePrimaryCtxGetState(0, NULL, &active));
    ASK(cuDevicePrimaryCtxGetState(0, &flags, NULL));
}

static void primary_flags(void)
{
    static const unsigned asked[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 24, 128, 256, 512, 0x80000000};
    MUST(cuInit(0));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        ASK(cuDevicePrimaryCtxSetFlags_v2(0, asked[i]));
        say_state(0);
    }
}

static void primary_flags_active(void)
{
    unsigned flags = NO_SUCH;
    begin();
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC));
    say_state(0);
    ASK(cuCtxGetFlags(&flags));
    say(":%u", flags);
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_LMEM_RESIZE_TO_MAX));
    say_state(0);
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN));
    say_state(0);
    ASK(cuDevicePrimaryCtxReset_v2(0));
    say_state(0);
}

static void primary_flags_then_retain(void)
{
    unsigned flags = NO_SUCH;
    CUcontext context;
    MUST(cuInit(0));
    ASK(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_YIELD));
    ASK(cuDevicePrimaryCtxRetain(&context, 0));
    ASK(cuCtxSetCurrent(context));
    ASK(cuCtxGetFlags(&flags));
    say(":%u", flags);
    say_state(0);
}

static void primary_released(void)
{
    CUdevice device = -1;
    CUcontext context = begin(), current = NULL;
    CUdeviceptr address;
    unsigned version;
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    ASK(cuCtxGetCurrent(&current));
    say(" %d", current == context);
    ASK(cuCtxGetDevice(&device));
    ASK(cuMemAlloc_v2(&address, 64));
    ASK(cuCtxSynchronize());
    ASK(cuCtxGetApiVersion(context, &version));
    ASK(cuCtxSetCurrent(context));
    ASK(cuCtxPushCurrent_v2(context));
    ASK(cuDevicePrimaryCtxRetain(&current, 0));
    say(" %d", current == context);
    ASK(cuMemAlloc_v2(&address, 64));
}

static void primary_reset_objects(void)
{
    begin();
    CUstream stream = new_stream(0);
    CUfunction f = kernel("nul");
    CUdeviceptr address = memory(64);
    ASK(run(f, stream, NULL));
    ASK(cuDevicePrimaryCtxReset_v2(0));
    ASK(cuMemFree_v2(address));
    ASK(cuCtxSynchronize());
    ASK(cuCtxSetCurrent(NULL));
    ASK(cuDevicePrimaryCtxRelease_v2(0));
    say_state(0);
}

/* ---- own contexts ---- */

static void create_flags(void)
{
    static const unsigned asked[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 12, 128, 256, 512, 0x80000000};
    MUST(cuInit(0));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        CUcontext context;
        unsigned flags = NO_SUCH;
        CUresult result = cuCtxCreate_v2(&context, asked[i], 0);
        say(" %u:%d", asked[i], (int)result);
        if (result)
            continue;
        ASK(cuCtxGetFlags(&flags));
        say("(%u)", flags);
        ASK(cuCtxDestroy_v2(context));
    }
}

static void create_wrong(void)
{
    CUcontext context;
    MUST(cuInit(0));
    ASK(cuCtxCreate_v2(NULL, 0, 0));
    ASK(cuCtxCreate_v2(&context, 0, -1));
    ASK(cuCtxCreate_v2(&context, 0, 2));
    ASK(cuCtxCreate_v2(&context, 256, 2));
    ASK(cuCtxCreate_v4(NULL, NULL, 0, 0));
    ASK(cuCtxCreate_v4(&context, NULL, 0, 2));
    ASK(cuCtxCreate_v4(&context, NULL, 1024, 0));
}

static void create_affinity(void)
{
    CUexecAffinityParam one = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {8}}, wrong = {CU_EXEC_AFFINITY_TYPE_MAX, {8}};
    CUctxCreateParams none = {NULL, 0, NULL}, some = {&one, 1, NULL}, bad = {NULL, 1, NULL};
    CUcontext context;
    MUST(cuInit(0));
    ASK(cuCtxCreate_v3(&context, NULL, 0, 0, 0));
    ASK(cuCtxCreate_v3(&context, &one, 1, 0, 0));
    ASK(cuCtxCreate_v3(&context, &wrong, 1, 0, 0));
    ASK(cuCtxCreate_v3(&context, NULL, 1, 0, 0));
    ASK(cuCtxCreate_v3(&context, &one, 0, 0, 0));
    ASK(cuCtxCreate_v3(&context, &one, -1, 0, 0));
    say(" |");
    ASK(cuCtxCreate_v4(&context, NULL, 0, 0));
    ASK(cuCtxCreate_v4(&context, &none, 0, 0));
    ASK(cuCtxCreate_v4(&context, &some, 0, 0));
    ASK(cuCtxCreate_v4(&context, &bad, 0, 0));
}

static void create_versions(void)
{
    CUcontext context;
    unsigned version = 0;
    CUexecAffinityParam affinity = {CU_EXEC_AFFINITY_TYPE_SM_COUNT, {0}};
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    ASK(cuCtxGetApiVersion(context, &version));
    say(":%u", version);
    MUST(cuCtxCreate_v3(&context, NULL, 0, 0, 0));
    ASK(cuCtxGetApiVersion(context, &version));
    say(":%u", version);
    MUST(cuCtxCreate_v4(&context, NULL, 0, 0));
    ASK(cuCtxGetApiVersion(NULL, &version));
    say(":%u", version);
    ASK(cuCtxGetApiVersion(context, NULL));
    ASK(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    say(":%u", affinity.param.val);
    ASK(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_MAX));
    ASK(cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
}

static void stack_order(void)
{
    CUcontext a, b, c = NULL;
    CUdevice device = -1;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&a, 0, 0));
    MUST(cuCtxCreate_v2(&b, 0, 1));
    ASK(cuCtxGetDevice(&device));
    say(":%d", device);
    ASK(cuCtxGetDevice_v2(&device, a));
    say(":%d", device);
    ASK(cuCtxPopCurrent_v2(&c));
    say(":%d", c == b);
    ASK(cuCtxGetDevice(&device));
    say(":%d", device);
    ASK(cuCtxSetCurrent(NULL));
    ASK(cuCtxGetCurrent(&c));
    say(":%d", c == NULL);
    ASK(cuCtxPopCurrent_v2(NULL));
    ASK(cuCtxSetCurrent(b));
    ASK(cuCtxPopCurrent_v2(NULL));
    ASK(cuCtxPopCurrent_v2(NULL));
}

static void destroy_current(void)
{
    CUcontext a, b, c = NULL;
    CUdevice device;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&a, 0, 0));
    MUST(cuCtxCreate_v2(&b, 0, 0));
    ASK(cuCtxDestroy_v2(b));
    ASK(cuCtxGetCurrent(&c));
    say(":%d", c == a);
    ASK(cuCtxPushCurrent_v2(a));
    ASK(cuCtxDestroy_v2(a));
    ASK(cuCtxGetCurrent(&c));
    say(":%d,%d", c == NULL, c == a);
    ASK(cuCtxGetDevice(&device));
    ASK(cuCtxSynchronize());
    ASK(cuCtxPopCurrent_v2(&c));
    ASK(cuCtxPopCurrent_v2(&c));
}

static void destroy_not_current(void)
{
    CUcontext a, b, c = NULL;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&a, 0, 0));
    MUST(cuCtxCreate_v2(&b, 0, 0));
    ASK(cuCtxDestroy_v2(a));
    ASK(cuCtxGetCurrent(&c));
    say(":%d", c == b);
    ASK(cuCtxPopCurrent_v2(&c));
    ASK(cuCtxSynchronize());
    ASK(cuCtxGetCurrent(&c));
    say(":%d", c == a);
    ASK(cuCtxPopCurrent_v2(&c));
}

/* A handle of a context that was destroyed: `a` is current nowhere, or lies under another in this thread's
 * stack. */
static CUcontext destroyed(int lies_below)
{
    CUcontext a, b;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&a, 0, 0));
    if (lies_below)
        MUST(cuCtxCreate_v2(&b, 0, 0));
    else
        MUST(cuCtxPopCurrent_v2(NULL));
    MUST(cuCtxDestroy_v2(a));
    return a;
}

/* A second time is asked only of one that lies below: where nothing is current, the driver's answers to it
 * differ from one call to the next. */
static void destroyed_twice_below(void)
{
    CUcontext a = destroyed(1);
    ASK(cuCtxDestroy_v2(a));
    ASK(cuCtxDestroy_v2(a));
}

static void ask_pushed(CUcontext context)
{
    ASK(cuCtxPushCurrent_v2(context));
    ASK(cuCtxSynchronize());
}

static void ask_set(CUcontext context)
{
    ASK(cuCtxSetCurrent(context));
    ASK(cuCtxSynchronize());
}

static void ask_itself(CUcontext context)
{
    unsigned long long id = 0;
    unsigned version = 0;
    ASK(cuCtxGetId(context, &id));
    ASK(cuCtxGetApiVersion(context, &version));
    ASK(cuCtxEnablePeerAccess(context, 0));
}

static void destroyed_pushed(void)
{
    ask_pushed(destroyed(0));
}

static void destroyed_pushed_below(void)
{
    ask_pushed(destroyed(1));
}

static void destroyed_set(void)
{
    ask_set(destroyed(0));
}

static void destroyed_set_below(void)
{
    ask_set(destroyed(1));
}

static void destroyed_asked(void)
{
    ask_itself(destroyed(0));
}

static void destroyed_asked_below(void)
{
    ask_itself(destroyed(1));
}

static void attach_detach(void)
{
    CUcontext own, attached = NULL;
    MUST(cuInit(0));
    ASK(cuCtxAttach(&attached, 0));
    MUST(cuCtxCreate_v2(&own, 0, 0));
    ASK(cuCtxAttach(&attached, 0));
    say(":%d", attached == own);
    ASK(cuCtxAttach(NULL, 0));
    ASK(cuCtxAttach(&attached, 1));
    ASK(cuCtxDetach(own));
    ASK(cuCtxSynchronize());
    ASK(cuCtxDetach(own));
    ASK(cuCtxSynchronize());
    ASK(cuCtxDetach(NULL));
}

static void attach_primary(void)
{
    CUcontext context = begin(), attached = NULL;
    ASK(cuCtxAttach(&attached, 0));
    say(":%d", attached == context);
    ASK(cuCtxDetach(context));
    ASK(cuCtxDetach(context));
    ASK(cuCtxDestroy_v2(context));
}

static void context_ids(void)
{
    CUcontext a, b;
    unsigned long long one = 0, other = 0, third = 0;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&a, 0, 0));
    MUST(cuCtxCreate_v2(&b, 0, 0));
    ASK(cuCtxGetId(a, &one));
    ASK(cuCtxGetId(b, &other));
    ASK(cuCtxGetId(NULL, &third));
    say(" %d %d", one == other, other == third);
    ASK(cuCtxGetId(a, NULL));
    ASK(cuCtxDestroy_v2(b));
    MUST(cuCtxCreate_v2(&b, 0, 0));
    ASK(cuCtxGetId(b, &third));
    say(" %d", other == third);
}

static void context_flags(void)
{
    static const unsigned asked[] = {1, 4, 2, 3, 8, 16, 0, 128, 256};
    unsigned flags = NO_SUCH;
    CUcontext own;
    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&own, CU_CTX_SCHED_SPIN, 0));
    ASK(cuCtxGetFlags(NULL));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        ASK(cuCtxSetFlags(asked[i]));
        ASK(cuCtxGetFlags(&flags));
        say(":%u", flags);
    }
}

static void context_flags_primary(void)
{
    static const unsigned asked[] = {1, 4, 16, 128, 0};
    unsigned flags = NO_SUCH;
    begin();
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        ASK(cuCtxSetFlags(asked[i]));
        ASK(cuCtxGetFlags(&flags));
        say(":%u", flags);
        say_state(0);
    }
}

static void context_null(void)
{
    CUcontext context = begin();
    ASK(cuCtxGetCurrent(NULL));
    ASK(cuCtxGetDevice(NULL));
    ASK(cuCtxGetDevice_v2(NULL, context));
    ASK(cuCtxGetFlags(NULL));
    ASK(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE));
    ASK(cuCtxGetCacheConfig(NULL));
    ASK(cuCtxGetSharedMemConfig(NULL));
    ASK(cuCtxGetStreamPriorityRange(NULL, NULL));
    ASK(cuCtxGetApiVersion(NULL, NULL));
    ASK(cuCtxGetId(NULL, NULL));
    ASK(cuCtxSynchronize_v2(NULL));
    ASK(cuCtxSynchronize_v2(context));
}

/* ---- limits ---- */

static void limit_values(CUlimit limit, const size_t *values, size_t n)
{
    size_t value = 0;
    begin();
    CUresult result = cuCtxGetLimit(&value, limit);
    say(" %d:%zu", (int)result, result ? 0 : value);
    for (size_t i = 0; i < n; i++) {
        ASK(cuCtxSetLimit(limit, values[i]));
        result = cuCtxGetLimit(&value, limit);
        say("(%d:%zu)", (int)result, result ? 0 : value);
    }
}

#define LIMIT_CASE(name, limit, ...)                                            \
    static void name(void)                                                      \
    {                                                                           \
        static const size_t values[] = {__VA_ARGS__};                           \
        limit_values((CUlimit)(limit), values, sizeof values / sizeof *values); \
    }

LIMIT_CASE(limit_stack, CU_LIMIT_STACK_SIZE, 0, 1, 16, 17, 100, 1000, 1025, 4096, 65536, 262144)
LIMIT_CASE(limit_stack_large, CU_LIMIT_STACK_SIZE, 524288, 600000, 1 << 20, (size_t)1 << 32, SIZE_MAX)
LIMIT_CASE(limit_printf, CU_LIMIT_PRINTF_FIFO_SIZE, 0, 1, 524287, 524288, 524289, 1 << 20, 1000000, 3000001)
LIMIT_CASE(limit_heap, CU_LIMIT_MALLOC_HEAP_SIZE, 0, 1, 4194303, 4194304, 4194305, 5000000, 1 << 24)
LIMIT_CASE(limit_sync_depth, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 0, 2, 24, 100)
LIMIT_CASE(limit_pending, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 0, 1, 100, 2048, 5000)
LIMIT_CASE(limit_fetch, CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 0, 1, 31, 32, 33, 64, 100, 128, 129, 1000)
LIMIT_CASE(limit_persisting, CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0, 1, 1 << 20, 11796480, 20000000, 39321600,
           39321601, (size_t)1 << 32)
LIMIT_CASE(limit_shared, CU_LIMIT_SHMEM_SIZE, 0, 1024)
LIMIT_CASE(limit_cig, CU_LIMIT_CIG_ENABLED, 0, 1)
LIMIT_CASE(limit_cig_fallback, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED, 0, 1)
LIMIT_CASE(limit_10, 10, 0, 1)
LIMIT_CASE(limit_99, 99, 0)

static void cache_config(void)
{
    CUfunc_cache config = NO_SUCH;
    begin();
    ASK(cuCtxGetCacheConfig(&config));
    say(":%d", (int)config);
    for (int i = -1; i < 5; i++) {
        ASK(cuCtxSetCacheConfig((CUfunc_cache)i));
        ASK(cuCtxGetCacheConfig(&config));
        say(":%d", (int)config);
    }
}

static void shared_config(void)
{
    CUsharedconfig config = NO_SUCH;
    begin();
    ASK(cuCtxGetSharedMemConfig(&config));
    say(":%d", (int)config);
    for (int i = -1; i < 4; i++) {
        ASK(cuCtxSetSharedMemConfig((CUsharedconfig)i));
        ASK(cuCtxGetSharedMemConfig(&config));
        say(":%d", (int)config);
    }
}

static void priority_range(void)
{
    int least = NO_SUCH, greatest = NO_SUCH;
    begin();
    ASK(cuCtxGetStreamPriorityRange(&least, &greatest));
    say(" %d %d", least, greatest);
    ASK(cuCtxGetStreamPriorityRange(NULL, &greatest));
    ASK(cuCtxGetStreamPriorityRange(&least, NULL));
    ASK(cuCtxResetPersistingL2Cache());
}

static void context_events(void)
{
    CUcontext context = begin(), other;
    CUevent event = new_event(0);
    ASK(cuCtxRecordEvent(context, event));
    ASK(cuEventSynchronize(event));
    ASK(cuEventQuery(event));
    ASK(cuCtxWaitEvent(context, event));
    ASK(cuCtxRecordEvent(NULL, event));
    ASK(cuCtxRecordEvent(context, NULL));
    ASK(cuCtxWaitEvent(context, NULL));
    ASK(cuCtxWaitEvent(NULL, event));
    MUST(cuDevicePrimaryCtxRetain(&other, 1));
    ASK(cuCtxRecordEvent(other, event));
    ASK(cuCtxWaitEvent(other, event));
}

/* ---- peers, profiling ---- */

static void peers(void)
{
    CUcontext a = begin(), b, own;
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    ASK(cuCtxEnablePeerAccess(a, 0));
    ASK(cuCtxDisablePeerAccess(a));
    ASK(cuCtxDisablePeerAccess(b));
    ASK(cuCtxEnablePeerAccess(b, 1));
    ASK(cuCtxEnablePeerAccess(b, 0));
    ASK(cuCtxEnablePeerAccess(b, 0));
    MUST(cuCtxCreate_v2(&own, 0, 1));
    ASK(cuCtxEnablePeerAccess(a, 0));
    ASK(cuCtxSetCurrent(a));
    ASK(cuCtxEnablePeerAccess(own, 0));
    ASK(cuCtxDisablePeerAccess(own));
    ASK(cuCtxDisablePeerAccess(b));
    ASK(cuCtxDisablePeerAccess(b));
    ASK(cuCtxEnablePeerAccess(NULL, 0));
    ASK(cuCtxDisablePeerAccess(NULL));
}

static void peers_same_device(void)
{
    CUcontext a = begin(), own;
    MUST(cuCtxCreate_v2(&own, 0, 0));
    ASK(cuCtxEnablePeerAccess(a, 0));
    ASK(cuCtxEnablePeerAccess(own, 0));
    ASK(cuCtxDisablePeerAccess(a));
}

static void peers_reset(void)
{
    CUcontext b;
    begin();
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    ASK(cuCtxEnablePeerAccess(b, 0));
    ASK(cuDevicePrimaryCtxReset_v2(1));
    ASK(cuCtxDisablePeerAccess(b));
    ASK(cuCtxEnablePeerAccess(b, 0));
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    ASK(cuCtxEnablePeerAccess(b, 0));
}

static void profiler(void)
{
    begin();
    ASK(cuProfilerStop());
    ASK(cuProfilerStart());
    ASK(cuProfilerStart());
    ASK(cuProfilerStop());
    ASK(cuProfilerStop());
    ASK(cuProfilerInitialize("/tmp/config", "/tmp/output", 0));
    ASK(cuProfilerInitialize(NULL, NULL, 0));
}

/* What is written where a call fails after a fault, which a program that does not look goes on with. */
static void reset_after_fault(void)
{
    CUcontext old = begin(), c = (CUcontext)(uintptr_t)1, d = c;
    CUdeviceptr p = 0;
    CUmodule module = NULL;
    ASK(run(kernel("fault"), NULL, NULL));
    ASK(cuCtxSynchronize());
    ASK(cuDevicePrimaryCtxReset_v2(0));
    ASK(cuDevicePrimaryCtxRetain(&c, 0));
    say(" %s", c == old ? "old" : c == (CUcontext)(uintptr_t)1 ? "unset" : c ? "other" : "null");
    ASK(cuCtxCreate_v2(&d, 0, 0));
    say(" %s", d == old ? "old" : d == (CUcontext)(uintptr_t)1 ? "unset" : d ? "other" : "null");
    ASK(cuMemAlloc_v2(&p, 64));
    ASK(cuModuleLoadData(&module, kernels_ptx));
    ASK(cuCtxSetCurrent(old));
    ASK(cuMemAlloc_v2(&p, 64));
    ASK(cuCtxSetCurrent(NULL));
    ASK(cuMemAlloc_v2(&p, 64));
}

/* wait: says in words[0] that it runs, and in words[2] that it ends, which it does when words[1] is set. */
static const char wait_ptx[] = PTX(".visible .entry wait(.param .u64 p)\n{\n"
                                   ".reg .u64 %a<3>; .reg .u32 %r<2>; .reg .pred %p;\n"
                                   "ld.param.u64 %a1, [p];\ncvta.to.global.u64 %a2, %a1;\n"
                                   "st.volatile.global.u32 [%a2], 1;\n"
                                   "AGAIN:\nld.volatile.global.u32 %r1, [%a2+4];\n"
                                   "setp.eq.u32 %p, %r1, 0;\n@%p bra AGAIN;\n"
                                   "st.volatile.global.u32 [%a2+8], 1;\nret;\n}\n");

enum { RUNS, GO, ENDS };

static volatile unsigned *words; /* host memory */

static bool is_set(int which)
{
    for (int i = 0; i < 2000 && !words[which]; i++)
        usleep(1000);
    return words[which] != 0;
}

/* Starts wait on the second device and then a fault on the first. Leaves the second's context current. */
static void fault_beside_wait(void)
{
    void *p;
    CUcontext first = begin(), second;
    MUST(cuMemHostAlloc(&p, 64, CU_MEMHOSTALLOC_PORTABLE));
    words = memset(p, 0, 64);
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)p;
    CUfunction fault = kernel("fault");
    MUST(cuDevicePrimaryCtxRetain(&second, 1));
    MUST(cuCtxSetCurrent(second));
    MUST(run(function(load(wait_ptx), "wait"), NULL, (void *[]){&address}));
    say(" %d", is_set(RUNS));
    MUST(cuCtxSetCurrent(first));
    ASK(run(fault, NULL, NULL));
    ASK(cuCtxSynchronize());
    MUST(cuCtxSetCurrent(second));
}

/* What the other device's kernel does after a fault, and what its context's calls answer meanwhile and then.
 */
static void fault_of_other_device(void)
{
    CUdeviceptr p;
    fault_beside_wait();
    ASK(cuStreamQuery(NULL));
    ASK(cuMemAlloc_v2(&p, 64));
    say(" %u", words[ENDS]);
    words[GO] = 1;
    say(" %d", is_set(ENDS));
    ASK(cuStreamQuery(NULL));
    ASK(cuCtxSynchronize());
    ASK(cuMemAlloc_v2(&p, 64));
}

static void *go_later(void *unused)
{
    sleep(1);
    words[GO] = 1;
    return unused;
}

/* Does a call that waits for that kernel wait? */
static void fault_of_other_device_waited(void)
{
    pthread_t thread;
    fault_beside_wait();
    if (pthread_create(&thread, NULL, go_later, NULL))
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    ASK(cuCtxSynchronize());
    say(" %u", words[ENDS]);
    say(" %d", is_set(ENDS));
}

/* Does resetting the device stop it? */
static void fault_of_other_device_reset(void)
{
    pthread_t thread;
    fault_beside_wait();
    if (pthread_create(&thread, NULL, go_later, NULL))
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    ASK(cuDevicePrimaryCtxReset_v2(1));
    say(" %u", words[ENDS]);
    say(" %d", is_set(ENDS));
}

static const fact facts[] = {
    {"reset_after_fault", reset_after_fault},
    FACT(fault_of_other_device),
    FACT(fault_of_other_device_waited),
    FACT(fault_of_other_device_reset),
    FACT(errors_1),
    FACT(errors_2),
    FACT(errors_3),
    FACT(errors_wrong),
    FACT(init_before),
    FACT(init_without_context),
    FACT(init_flags),
    FACT(init_version),
    FACT(entry_versions),
    FACT(entry_newer),
    FACT(entry_same),
    FACT(entry_flags),
    FACT(entry_wrong),
    FACT(entry_table),
    FACT(device_right),
    FACT(device_wrong),
    FACT(device_null),
    FACT(device_attributes_wrong),
    FACT(device_attributes),
    FACT(device_properties),
    FACT(device_luid),
    FACT(device_texture_width),
    FACT(device_affinity),
    FACT(device_pci),
    FACT(device_peers),
    FACT(primary_states),
    FACT(primary_wrong),
    FACT(primary_flags),
    FACT(primary_flags_active),
    FACT(primary_flags_then_retain),
    FACT(primary_released),
    FACT(primary_reset_objects),
    FACT(create_flags),
    FACT(create_wrong),
    FACT(create_affinity),
    FACT(create_versions),
    FACT(stack_order),
    FACT(destroy_current),
    FACT(destroy_not_current),
    FACT(destroyed_twice_below),
    FACT(destroyed_pushed),
    FACT(destroyed_pushed_below),
    FACT(destroyed_set),
    FACT(destroyed_set_below),
    FACT(destroyed_asked),
    FACT(destroyed_asked_below),
    FACT(attach_detach),
    FACT(attach_primary),
    FACT(context_ids),
    FACT(context_flags),
    FACT(context_flags_primary),
    FACT(context_null),
    FACT(limit_stack),
    FACT(limit_stack_large),
    FACT(limit_printf),
    FACT(limit_heap),
    FACT(limit_sync_depth),
    FACT(limit_pending),
    FACT(limit_fetch),
    FACT(limit_persisting),
    FACT(limit_shared),
    FACT(limit_cig),
    FACT(limit_cig_fallback),
    FACT(limit_10),
    FACT(limit_99),
    FACT(cache_config),
    FACT(shared_config),
    FACT(priority_range),
    FACT(context_events),
    FACT(peers),
    FACT(peers_same_device),
    FACT(peers_reset),
    FACT(profiler),
};
FACTS_MAIN(facts)
