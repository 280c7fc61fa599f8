/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted libcuda: see fake.h. With FAKE_STUB it is the toolkit's link stub; with FAKE_INCOMPLETE it lacks
 * two functions that the library needs. */

#include "fake.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

#define KR_DRIVER_ROW(need, name, params) CUresult name params;
#include "runtime/driver/driver.def"
#undef KR_DRIVER_ROW

static fake state = {.version = 13000, .n_devices = 2, .free_bytes = 1 << 30};

fake *fake_cuda(void)
{
    return &state;
}

/* ---- the ABI of 2010, which nobody may call ---- */

#define OLD(name)    \
    void name(void); \
    void name(void)  \
    {                \
        abort();     \
    }
OLD(cuMemAlloc)
OLD(cuMemFree)
OLD(cuMemGetInfo)
OLD(cuMemAllocPitch)
OLD(cuMemcpyHtoD)
OLD(cuMemcpyDtoH)
OLD(cuMemcpyHtoDAsync)
OLD(cuMemcpyDtoHAsync)
OLD(cuMemcpyDtoDAsync)
OLD(cuDeviceTotalMem)
OLD(cuCtxCreate)
OLD(cuCtxDestroy)
OLD(cuCtxPushCurrent)
OLD(cuCtxPopCurrent)
OLD(cuModuleGetGlobal)
OLD(cuStreamDestroy)
OLD(cuEventDestroy)
OLD(cuDevicePrimaryCtxRelease)

#ifdef FAKE_STUB

#define KR_DRIVER_ROW(need, name, params) \
    CUresult name params                  \
    {                                     \
        return CUDA_ERROR_STUB_LIBRARY;   \
    }
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "runtime/driver/driver.def"
#undef KR_DRIVER_ROW

#else

/* ---- what the driver owns: kept in a list, so that it is never the library's leak ---- */

typedef struct kept {
    struct kept *next, *previous;
} kept;
static kept all = {&all, &all};
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

static void *keep(size_t bytes)
{
    kept *k = calloc(1, sizeof *k + bytes);
    pthread_mutex_lock(&all_lock);
    *k = (kept){all.next, &all};
    k->next->previous = all.next = k;
    pthread_mutex_unlock(&all_lock);
    return k + 1;
}

static void drop(void *memory)
{
    kept *k = (kept *)memory - 1;
    pthread_mutex_lock(&all_lock);
    k->next->previous = k->previous;
    k->previous->next = k->next;
    pthread_mutex_unlock(&all_lock);
    free(k);
}

/* ---- calls ---- */

enum { MAX_DEVICES = 8, MAX_STACK = 256, MAX_FUNCTIONS = 8, MAX_PARAMS = 8 };

static bool initialised;
static int sticky;

/* Calls that give something back have their effect even when they are told to fail, as at the end of a
 * process. */
static CUresult enter(const char *name)
{
    const int call = atomic_fetch_add(&state.calls, 1) + 1;
    if (call == state.fail_at) {
        state.failed = name;
        return (CUresult)state.fail_with;
    }
    return CUDA_SUCCESS;
}

#define ENTER()                                   \
    do {                                          \
        const CUresult entered = enter(__func__); \
        if (entered)                              \
            return entered;                       \
        if (!initialised)                         \
            return CUDA_ERROR_NOT_INITIALIZED;    \
    } while (0)

#define ENTER_CONTEXT()                        \
    do {                                       \
        ENTER();                               \
        if (!current())                        \
            return CUDA_ERROR_INVALID_CONTEXT; \
        if (sticky)                            \
            return (CUresult)sticky;           \
    } while (0)

/* ---- contexts ---- */

struct CUctx_st {
    CUdevice device;
};

static struct CUctx_st primary[MAX_DEVICES] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local CUcontext stack[MAX_STACK];
static _Thread_local int depth;

static CUcontext current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    const CUresult result = enter(__func__);
    if (!result && !state.init)
        initialised = true;
    return result ? result : (CUresult)state.init;
}

CUresult cuDriverGetVersion(int *version)
{
    const CUresult result = enter(__func__);
    if (!result)
        *version = state.version;
    return result;
}

CUresult cuDeviceGetCount(int *count)
{
    ENTER();
    *count = state.n_devices;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    ENTER();
    *device = ordinal;
    return ordinal < state.n_devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    ENTER();
    snprintf(name, (size_t)bytes, "Fake %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    ENTER();
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (char)(0xa0 + i + device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid(uuid, device);
}

CUresult cuDeviceGetPCIBusId(char *id, int bytes, CUdevice device)
{
    ENTER();
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    ENTER();
    *bytes = (size_t)8 << 30;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    /* An H200, in the numbers of its driver. */
    static const int h200[][2] = {{1, 1024},  {2, 1024},    {3, 1024},   {4, 64},    {5, 2147483647},
                                  {6, 65535}, {7, 65535},   {8, 49152},  {10, 32},   {12, 65536},
                                  {16, 132},  {18, 0},      {20, 0},     {39, 2048}, {75, 9},
                                  {76, 0},    {81, 233472}, {82, 65536}, {95, 1},    {97, 232448},
                                  {106, 32},  {111, 1024},  {115, 1}};
    (void)device;
    ENTER();
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE && state.context_busy) {
        *value = CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < sizeof h200 / sizeof h200[0]; i++)
        if (h200[i][0] == (int)attribute) {
            *value = h200[i][1];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    ENTER();
    *can = device + 1 == peer; /* one way only */
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    ENTER();
    const char *busy = getenv("FAKE_BUSY_DEVICE");
    if (busy && atoi(busy) == device)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (state.context_busy || sticky)
        return (CUresult)(state.context_busy ? state.context_busy : sticky);
    state.retained++;
    *context = &primary[device];
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    const CUresult result = enter(__func__);
    (void)device;
    state.retained--;
    return result;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    (void)flags;
    ENTER();
    *context = keep(sizeof **context);
    (*context)->device = device;
    state.own_contexts++;
    stack[depth++] = *context;
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    const CUresult result = enter(__func__);
    if (current() == context)
        depth--;
    drop(context);
    state.own_contexts--;
    return result;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    ENTER();
    if (depth == MAX_STACK)
        abort();
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    ENTER();
    if (!depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    ENTER();
    *context = current();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER();
    if (!context)
        depth -= depth > 0;
    else if (depth)
        stack[depth - 1] = context;
    else
        stack[depth++] = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    ENTER_CONTEXT();
    *device = current()->device;
    return CUDA_SUCCESS;
}

static CUresult synchronize(void)
{
    if (state.fault)
        sticky = state.fault;
    return (CUresult)sticky;
}

CUresult cuCtxSynchronize(void)
{
    ENTER_CONTEXT();
    return synchronize();
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    static atomic_bool enabled[MAX_DEVICES][MAX_DEVICES];
    (void)flags;
    ENTER_CONTEXT();
    return atomic_exchange(&enabled[current()->device][peer->device], true)
               ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
               : CUDA_SUCCESS;
}

/* ---- memory: of the host, so that copies are real and the sanitizer watches them ---- */

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    ENTER_CONTEXT();
    *free_bytes = state.free_bytes;
    *total_bytes = (size_t)8 << 30;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    ENTER_CONTEXT();
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes > state.free_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = (CUdeviceptr)(uintptr_t)keep(bytes);
    state.allocations++;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width_bytes, size_t height,
                            unsigned element_bytes)
{
    ENTER_CONTEXT();
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width_bytes + 511) & ~(size_t)511;
    if (*pitch * height > state.free_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = (CUdeviceptr)(uintptr_t)keep(*pitch * height);
    state.allocations++;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    const CUresult result = enter(__func__);
    drop((void *)(uintptr_t)pointer);
    state.allocations--;
    return result;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    ENTER_CONTEXT();
    return copy(to, (CUdeviceptr)(uintptr_t)from, bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    ENTER_CONTEXT();
    return copy((CUdeviceptr)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    ENTER_CONTEXT();
    return copy(to, (CUdeviceptr)(uintptr_t)from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    ENTER_CONTEXT();
    return copy((CUdeviceptr)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    ENTER_CONTEXT();
    return copy(to, from, bytes);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream stream)
{
    (void)stream;
    ENTER_CONTEXT();
    return to_context == from_context ? CUDA_ERROR_INVALID_VALUE : copy(to, from, bytes);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream)
{
    (void)stream;
    ENTER_CONTEXT();
    memset((void *)(uintptr_t)to, value, n);
    return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    (void)priority;
    ENTER_CONTEXT();
    if (flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    *stream = keep(16);
    state.streams++;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    const CUresult result = enter(__func__);
    drop(stream);
    state.streams--;
    return result;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    ENTER_CONTEXT();
    return synchronize();
}

CUresult cuStreamQuery(CUstream stream)
{
    (void)stream;
    ENTER_CONTEXT();
    return CUDA_ERROR_NOT_READY;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    ENTER_CONTEXT();
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    static _Thread_local CUstreamCaptureMode own;
    const CUstreamCaptureMode before = own;
    ENTER();
    own = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    (void)stream, (void)event, (void)flags;
    ENTER_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    ENTER_CONTEXT();
    *event = keep(16);
    state.events++;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    const CUresult result = enter(__func__);
    drop(event);
    state.events--;
    return result;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)event, (void)stream;
    ENTER_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    ENTER_CONTEXT();
    return synchronize();
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    (void)start, (void)end;
    ENTER_CONTEXT();
    *ms = 1.5f;
    return CUDA_SUCCESS;
}

/* ---- modules: the .entry lines of the PTX ---- */

struct CUfunc_st {
    char name[64];
    size_t sizes[MAX_PARAMS];
    int n_params, dynamic;
};

struct CUmod_st {
    struct CUfunc_st functions[MAX_FUNCTIONS];
    int n;
};

static void read_entries(const char *ptx, CUmodule module)
{
    for (const char *at = ptx; (at = strstr(at, ".entry ")) && module->n < MAX_FUNCTIONS;) {
        struct CUfunc_st *f = &module->functions[module->n++];
        at += 7;
        sscanf(at, "%63[^( \n]", f->name);
        f->dynamic = 49152;
        const char *end = strchr(at, ')');
        for (const char *p = at; (p = strstr(p, ".param .")) && p < end && f->n_params < MAX_PARAMS; p += 8)
            f->sizes[f->n_params++] = (size_t)atoi(p + 9) / 8;
    }
}

static CUresult refuse(unsigned n, CUjit_option *options, void **values, const char *text)
{
    for (unsigned i = 0; i < n; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            strcpy(values[i], text);
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            values[i] = (void *)strlen(text);
    }
    return CUDA_ERROR_INVALID_PTX;
}

/* A driver's answer to an image. */
static CUresult check_image(const char *image)
{
    int major = 0, minor = 0, sm = 0;
    if (memcmp(image,
               "\x7f"
               "ELF",
               4) == 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    sscanf(image, ".version %d.%d .target sm_%d", &major, &minor, &sm);
    if (major * 10 + minor > 90)
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    return sm > 90 || strstr(image, "frob") ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n_options, CUjit_option *options,
                            void **values)
{
    ENTER_CONTEXT();
    const CUresult result = check_image(image);
    if (result == CUDA_ERROR_INVALID_PTX && strstr(image, "frob"))
        return refuse(n_options, options, values, "ptxas application ptx input, line 7; error : frob");
    if (result)
        return result;
    *module = keep(sizeof **module);
    read_entries(image, *module);
    state.modules++;
    return CUDA_SUCCESS;
}

/* A library, as driver 580 has them: what it holds is looked at when a module is asked of it, and then
 * without a log. */
struct CUlib_st {
    CUmodule modules[MAX_DEVICES];
    char image[];
};

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options,
                           void **jit_values, unsigned n_jit_options, CUlibraryOption *options, void **values,
                           unsigned n_options)
{
    (void)jit_options, (void)jit_values, (void)n_jit_options, (void)options, (void)values, (void)n_options;
    ENTER();
    if (state.no_libraries)
        return CUDA_ERROR_NOT_SUPPORTED;
    const size_t bytes = strlen(image) + 1;
    *library = keep(sizeof **library + bytes);
    memcpy((*library)->image, image, bytes);
    state.libraries++;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    ENTER_CONTEXT();
    CUmodule *mine = &library->modules[current()->device];
    if (!*mine) {
        const CUresult result = check_image(library->image);
        if (result)
            return result;
        *mine = keep(sizeof **mine);
        read_entries(library->image, *mine);
    }
    *module = *mine;
    return CUDA_SUCCESS;
}

CUresult cuLibraryUnload(CUlibrary library)
{
    const CUresult result = enter(__func__);
    for (int i = 0; i < MAX_DEVICES; i++)
        if (library->modules[i])
            drop(library->modules[i]);
    drop(library);
    state.libraries--;
    return result;
}

CUresult cuModuleUnload(CUmodule module)
{
    const CUresult result = enter(__func__);
    drop(module);
    state.modules--;
    return result;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    ENTER_CONTEXT();
    for (int i = 0; i < module->n; i++)
        if (strcmp(module->functions[i].name, name) == 0) {
            *function = &module->functions[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module, const char *name)
{
    ENTER_CONTEXT();
    if (strcmp(name, "table") != 0)
        return CUDA_ERROR_NOT_FOUND;
    *pointer = (CUdeviceptr)(uintptr_t)module;
    *bytes = 64;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module)
{
    ENTER_CONTEXT();
    *count = (unsigned)module->n;
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned n_functions, CUmodule module)
{
    ENTER_CONTEXT();
    for (unsigned i = 0; i < n_functions; i++)
        functions[i] = &module->functions[i];
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    ENTER_CONTEXT();
    *name = function->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset_bytes, size_t *bytes)
{
    ENTER_CONTEXT();
    if (index >= (size_t)function->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset_bytes = index * 8;
    *bytes = function->sizes[index];
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    ENTER_CONTEXT();
    const bool heavy = strcmp(function->name, "heavy") == 0; /* 162 registers, 16 KiB of shared memory */
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = heavy ? 384 : 1024;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = heavy ? 16384 : 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = heavy ? 162 : 16;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = heavy ? 49152 - 16384 : 49152;
        return CUDA_SUCCESS;
    default:
        *value = 90;
        return CUDA_SUCCESS;
    }
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    ENTER_CONTEXT();
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    function->dynamic = value;
    pthread_mutex_unlock(&lock);
    state.set_attributes++;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int block_threads,
                                                     size_t dynamic_shared_bytes)
{
    (void)function, (void)dynamic_shared_bytes;
    ENTER_CONTEXT();
    *blocks = 2048 / block_threads;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block_threads, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t dynamic_shared_bytes,
                                          int max_block_threads)
{
    (void)function, (void)shared_of_block, (void)dynamic_shared_bytes;
    ENTER_CONTEXT();
    *block_threads = max_block_threads ? max_block_threads : 1024;
    *min_grid = 264;
    return CUDA_SUCCESS;
}

#ifndef FAKE_INCOMPLETE
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes,
                        CUstream stream, void **params, void **extra)
{
    (void)stream;
    ENTER_CONTEXT();
    pthread_mutex_lock(&lock);
    const bool fits = (int)dynamic_shared_bytes <= function->dynamic && !extra && grid_x && grid_y && grid_z;
    state.grid[0] = grid_x, state.grid[1] = grid_y, state.grid[2] = grid_z;
    state.block[0] = block_x, state.block[1] = block_y, state.block[2] = block_z;
    state.shared = dynamic_shared_bytes;
    state.context = current();
    strcpy(state.launched, function->name);
    for (int i = 0; i < function->n_params; i++) {
        state.params[i] = 0;
        memcpy(&state.params[i], params[i], function->sizes[i]);
    }
    pthread_mutex_unlock(&lock);
    state.launches++;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
#endif

#endif
