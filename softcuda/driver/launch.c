/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: what the driver checks, the parameter block, and the run itself. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct launch_work {
    sc_work work;
    sc_module *module; /* kept loaded until it has run */
    sc_launch launch;
    /* What a graph tells of its node. */
    const sc_function *function;
    CUkernel kernel;    /* that it was named by, or NULL */
    void **pointers;    /* to each parameter in the block; made when first asked for */
    size_t extra_bytes; /* of a block that was given whole; else 0 */
    void *extra[5];
    uint64_t params[]; /* the parameter block */
} launch_work;

typedef struct launch_shape {
    unsigned grid[3], block[3];
    size_t dynamic;
    bool cooperative;
    const CUlaunchAttributeValue *cluster, *preferred_cluster; /* NULL: none asked for */
    CUevent event;                                             /* to be recorded when it is done, or NULL */
} launch_shape;

/* ---- running ---- */

static CUresult fault_code(sc_fault_kind kind)
{
    switch (kind) {
    case SC_FAULT_NONE:
        return CUDA_SUCCESS;
    case SC_FAULT_OUT_OF_BOUNDS:
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    case SC_FAULT_MISALIGNED:
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    case SC_FAULT_ASSERT:
        return CUDA_ERROR_ASSERT;
    case SC_FAULT_ILLEGAL_INSTRUCTION:
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    case SC_FAULT_ADDRESS_SPACE:
        return CUDA_ERROR_INVALID_ADDRESS_SPACE;
    case SC_FAULT_TIMEOUT:
    case SC_FAULT_DEADLOCK:
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    case SC_FAULT_NO_MEMORY:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case SC_FAULT_TRAP:
    case SC_FAULT_STACK:
    case SC_FAULT_CALLED_OFF: /* the fault that did it is the one that counts */
        break;
    }
    return CUDA_ERROR_LAUNCH_FAILED;
}

static void tell(const sc_fault *fault)
{
    if (fault->line)
        sc_say("%s: block (%u,%u,%u), thread (%u,%u,%u), PTX line %u: %s", fault->kernel, fault->block[0],
               fault->block[1], fault->block[2], fault->thread[0], fault->thread[1], fault->thread[2],
               fault->line, fault->text);
    else
        sc_say("%s: block (%u,%u,%u): %s", fault->kernel, fault->block[0], fault->block[1], fault->block[2],
               fault->text);
}

static CUresult run_launch(sc_work *work)
{
    launch_work *launch = (launch_work *)work;
    sc_fault fault = {0};
    TRY(sc_launch_fault(sc_program_kernel(launch->launch.program, (size_t)launch->launch.kernel)->name));
    if (sc_run(&launch->launch, &fault, NULL))
        return CUDA_SUCCESS;
    if (sc_logging() && fault.kind != SC_FAULT_CALLED_OFF)
        tell(&fault);
    CUresult code = fault_code(fault.kind);
    return code ? code : CUDA_ERROR_LAUNCH_FAILED;
}

static void finish_launch(sc_work *work)
{
    launch_work *launch = (launch_work *)work;
    free(launch->pointers);
    sc_release(launch->module);
}

static void describe_extra(launch_work *work, const sc_function *function)
{
    work->extra_bytes = function->param_bytes;
    work->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    work->extra[1] = work->params;
    work->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    work->extra[3] = &work->extra_bytes;
    work->extra[4] = CU_LAUNCH_PARAM_END;
}

/* ---- the parameter block ---- */

/* `extra`: pairs of a name and a value until CU_LAUNCH_PARAM_END. A block shorter than the kernel's is taken.
 */
static CUresult read_extra(void **extra, const void **ret_params, size_t *ret_bytes)
{
    enum { MOST = 8 };
    const size_t *bytes = NULL;
    *ret_params = NULL;
    for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (i >= MOST)
            return CUDA_ERROR_INVALID_VALUE;
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            *ret_params = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (!*ret_params != !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_bytes = bytes ? *bytes : 0;
    return CUDA_SUCCESS;
}

static CUresult pack(const sc_function *function, void **params, void **extra, void *to)
{
    if (params && extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra) {
        const void *block;
        size_t bytes;
        TRY(read_extra(extra, &block, &bytes));
        if (!block && function->n_params)
            return CUDA_ERROR_INVALID_VALUE;
        if (bytes > function->param_bytes)
            return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
        if (block)
            memcpy(to, block, bytes);
        return CUDA_SUCCESS;
    }
    if (function->n_params && !params)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < function->n_params; i++) {
        if (!params[i])
            return CUDA_ERROR_INVALID_VALUE;
        memcpy((char *)to + function->params[i].offset, params[i], function->params[i].bytes);
    }
    return CUDA_SUCCESS;
}

/* ---- the checks ---- */

/* Clusters: a grid is made of whole ones, of at most 8 blocks, or 16 where the function allows it. */
CUresult sc_cluster_check(const sc_function *function, const unsigned dims[3], const unsigned grid[3])
{
    uint64_t blocks = 1, most = function->non_portable_cluster ? 16 : 8;
    for (int i = 0; i < 3; i++) {
        if (!dims[i] || dims[i] > most || grid[i] % dims[i])
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        blocks *= dims[i];
    }
    if (blocks > 1 && function->object.context->device->chip->cc < 90)
        return CUDA_ERROR_NOT_SUPPORTED;
    return blocks > most ? CUDA_ERROR_INVALID_CLUSTER_SIZE : CUDA_SUCCESS;
}

static CUresult check_cluster(const sc_function *function, const launch_shape *shape)
{
    unsigned dims[3];
    for (int i = 0; i < 3; i++)
        dims[i] = function->cluster[i] ? (unsigned)function->cluster[i] : 1;
    if (shape->cluster)
        memcpy(dims, &shape->cluster->clusterDim, sizeof dims);
    TRY(sc_cluster_check(function, dims, shape->grid));
    if (!shape->preferred_cluster)
        return CUDA_SUCCESS;
    unsigned preferred[3]; /* of whole clusters */
    memcpy(preferred, &shape->preferred_cluster->preferredClusterDim, sizeof preferred);
    for (int i = 0; i < 3; i++)
        if (!shape->cluster || !preferred[i] || preferred[i] % dims[i])
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    return sc_cluster_check(function, preferred, shape->grid);
}

static CUresult check_shape(const sc_function *function, const launch_shape *shape)
{
    static const unsigned most_grid[3] = {2147483647, 65535, 65535}, most_block[3] = {1024, 1024, 64};
    uint64_t threads = 1, blocks = 1;
    for (int i = 0; i < 3; i++) {
        if (!shape->grid[i] || !shape->block[i] || shape->grid[i] > most_grid[i] ||
            shape->block[i] > most_block[i])
            return CUDA_ERROR_INVALID_VALUE;
        if (function->reqntid[0] && shape->block[i] != (function->reqntid[i] ? function->reqntid[i] : 1))
            return CUDA_ERROR_INVALID_VALUE;
        threads *= shape->block[i];
        blocks *= shape->grid[i];
    }
    TRY(check_cluster(function, shape));
    if (threads > (unsigned)function->bound)
        return CUDA_ERROR_INVALID_VALUE;
    if (threads > (unsigned)function->max_threads)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    unsigned multiprocessors = (unsigned)function->object.context->device->chip->multiprocessors;
    if (shape->cooperative &&
        blocks > (uint64_t)sc_occupancy(function, (int)threads, shape->dynamic) * multiprocessors)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return shape->dynamic > (size_t)function->max_dynamic_shared ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* The work of launching the function, after every check. */
static CUresult make_work(sc_function *function, const launch_shape *shape, void **params, void **extra,
                          launch_work **ret_work)
{
    TRY(check_shape(function, shape));
    if (function->index < 0) {
        sc_say("%s cannot be executed: %s", function->name,
               *function->module->refusal ? function->module->refusal
                                          : "the PTX beside its cubin has no such kernel");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    launch_work *work =
        sc_work_create(sizeof *work + function->param_bytes + 8, CU_GRAPH_NODE_TYPE_KERNEL, run_launch, NULL);
    if (!work)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult result = pack(function, params, extra, work->params);
    if (result) {
        sc_work_release((sc_work *)work);
        return result;
    }
    int threads = (int)(shape->block[0] * shape->block[1] * shape->block[2]);
    unsigned resident = (unsigned)(sc_occupancy(function, threads, shape->dynamic) *
                                   function->object.context->device->chip->multiprocessors);
    work->module = sc_retain(function->module);
    if (!work->module) {
        sc_work_release((sc_work *)work);
        return CUDA_ERROR_INVALID_HANDLE; /* it was unloaded meanwhile */
    }
    work->function = function;
    work->work.finish = finish_launch;
    work->launch = (sc_launch){
        .program = function->module->program,
        .kernel = function->index,
        .grid = {shape->grid[0], shape->grid[1], shape->grid[2]},
        .block = {shape->block[0], shape->block[1], shape->block[2]},
        .dynamic_shared_bytes = shape->dynamic,
        .params = work->params,
        .cooperative = shape->cooperative,
        .resident_blocks = resident ? resident : 1,
        .printf_fifo_bytes = function->object.context->limits[CU_LIMIT_PRINTF_FIFO_SIZE],
        .malloc_heap_bytes = function->object.context->limits[CU_LIMIT_MALLOC_HEAP_SIZE],
        .stack_bytes = function->object.context->limits[CU_LIMIT_STACK_SIZE],
        .grid_id = sc_next_id(),
        .budget = sc_setting_value(SC_SETTING_BUDGET),
        .shuffle_seed = sc_setting_value(SC_SETTING_SHUFFLE),
        .called_off = &function->object.context->called_off,
    };
    *ret_work = work;
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction handle, const launch_shape *shape, CUstream stream_handle, void **params,
                       void **extra)
{
    sc_stream *stream;
    sc_function *function;
    launch_work *work;
    TRY(sc_stream_enter(stream_handle, &stream));
    TRY(sc_function_in(stream->object.context, handle, &function));
    if (function->object.context != stream->object.context)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(make_work(function, shape, params, extra, &work));
    function->loaded = true;
    TRY(sc_stream_submit(stream, (sc_work *)work, false));
    return shape->event ? sc_event_record(shape->event, stream) : CUDA_SUCCESS;
}

/* ---- nodes ---- */

CUresult sc_launch_node(const CUDA_KERNEL_NODE_PARAMS *params, bool cooperative, sc_work **ret_work)
{
    sc_context *context = params->ctx ? sc_context_find(params->ctx) : sc_current();
    sc_function *function = sc_object_find(SC_FUNCTION, (uintptr_t)params->func);
    launch_work *work;
    if (params->kern && !params->func) {
        if (!context)
            return CUDA_ERROR_INVALID_CONTEXT;
        TRY(sc_kernel_function(context, params->kern, &function));
    }
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    launch_shape shape = {.grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
                          .block = {params->blockDimX, params->blockDimY, params->blockDimZ},
                          .dynamic = params->sharedMemBytes,
                          .cooperative = cooperative};
    TRY(make_work(function, &shape, params->kernelParams, params->extra, &work));
    work->kernel = params->func ? NULL : params->kern;
    if (params->extra)
        describe_extra(work, function);
    *ret_work = (sc_work *)work;
    return CUDA_SUCCESS;
}

CUresult sc_launch_params(sc_work *of, CUDA_KERNEL_NODE_PARAMS *ret_params)
{
    launch_work *work = (launch_work *)of;
    const sc_function *function = work->function;
    const sc_launch *launch = &work->launch;
    if (!work->extra_bytes && !work->pointers) {
        work->pointers = calloc(function->n_params + 1, sizeof(void *));
        if (!work->pointers)
            return CUDA_ERROR_OUT_OF_MEMORY;
        for (size_t i = 0; i < function->n_params; i++)
            work->pointers[i] = (char *)work->params + function->params[i].offset;
    }
    *ret_params = (CUDA_KERNEL_NODE_PARAMS){
        .func = (CUfunction)(uintptr_t)function,
        .gridDimX = launch->grid[0],
        .gridDimY = launch->grid[1],
        .gridDimZ = launch->grid[2],
        .blockDimX = launch->block[0],
        .blockDimY = launch->block[1],
        .blockDimZ = launch->block[2],
        .sharedMemBytes = (unsigned)launch->dynamic_shared_bytes,
        .kernelParams = work->extra_bytes ? NULL : work->pointers,
        .extra = work->extra_bytes ? work->extra : NULL,
        .kern = work->kernel,
        .ctx = (CUcontext)function->object.context,
    };
    return CUDA_SUCCESS;
}

bool sc_launch_is_cooperative(const sc_work *work)
{
    return ((const launch_work *)work)->launch.cooperative;
}

/* ---- the calls ---- */

#define GRID unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz

API_STREAM(cuLaunchKernel,
           (CUfunction function, GRID, unsigned dynamic, CUstream stream, void **params, void **extra),
           (function, gx, gy, gz, bx, by, bz, dynamic, stream, params, extra))
{
    launch_shape shape = {.grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic = dynamic};
    return launch(function, &shape, stream, params, extra);
}

API_STREAM(cuLaunchCooperativeKernel,
           (CUfunction function, GRID, unsigned dynamic, CUstream stream, void **params),
           (function, gx, gy, gz, bx, by, bz, dynamic, stream, params))
{
    launch_shape shape = {
        .grid = {gx, gy, gz}, .block = {bx, by, bz}, .dynamic = dynamic, .cooperative = true};
    return launch(function, &shape, stream, params, NULL);
}

static bool are_zero(const CUlaunchAttributeValue *value)
{
    static const unsigned none[3];
    return memcmp(&value->clusterDim, none, sizeof none) == 0;
}

static CUresult in_range(int value, int least, int most)
{
    return value >= least && value <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Attributes that steer the hardware and cannot change what a kernel computes are checked and taken. */
static CUresult read_attribute(const CUlaunchAttribute *attribute, launch_shape *shape)
{
    const CUlaunchAttributeValue *value = &attribute->value;
    switch (attribute->id) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        shape->cooperative = value->cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        shape->cluster = are_zero(value) ? NULL : value;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        shape->preferred_cluster = are_zero(value) ? NULL : value;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return in_range((int)value->clusterSchedulingPolicyPreference, 0,
                        CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        return sc_attribute_check(attribute->id, value);
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        return in_range((int)value->sharedMemCarveout, 0, 100);
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
        return in_range((int)value->nvlinkUtilCentricScheduling, 0, 1);
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        shape->event = value->programmaticEvent.event;
        return sc_event_check(shape->event, value->programmaticEvent.flags);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        shape->event = value->launchCompletionEvent.event;
        return sc_event_check(shape->event, value->launchCompletionEvent.flags);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        return CUDA_ERROR_NOT_SUPPORTED;
    default: /* a stream's own, such as the synchronisation policy, among them */
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult read_attributes(const CUlaunchConfig *config, launch_shape *shape)
{
    if (config->numAttrs && !config->attrs)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++)
        TRY(read_attribute(&config->attrs[i], shape));
    return CUDA_SUCCESS;
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction handle, void **params, void **extra,
                          bool per_thread)
{
    TRY(sc_working());
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    launch_shape shape = {.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                          .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                          .dynamic = config->sharedMemBytes};
    TRY(read_attributes(config, &shape));
    CUstream stream = config->hStream || !per_thread ? config->hStream : CU_STREAM_PER_THREAD;
    return launch(handle, &shape, stream, params, extra);
}

API(cuLaunchKernelEx, const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    return launch_ex(config, function, params, extra, false);
}

API(cuLaunchKernelEx_ptsz, const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
    return launch_ex(config, function, params, extra, true);
}

/* ---- one kernel on many devices ---- */

static CUresult check_many(const CUDA_LAUNCH_PARAMS *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        sc_stream *stream, *other;
        if (!list[i].hStream)
            return CUDA_ERROR_INVALID_HANDLE;
        TRY(sc_stream_enter(list[i].hStream, &stream));
        for (unsigned j = 0; j < i; j++) {
            TRY(sc_stream_enter(list[j].hStream, &other));
            if (stream->object.context->device == other->object.context->device)
                return CUDA_ERROR_INVALID_DEVICE;
        }
        if (memcmp(&list[i].gridDimX, &list[0].gridDimX, 7 * sizeof(unsigned)) != 0)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Every stream's next work comes after the last of all of them. */
static CUresult meet(const CUDA_LAUNCH_PARAMS *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        sc_stream *stream, *other;
        TRY(sc_stream_enter(list[i].hStream, &stream));
        for (unsigned j = 0; j < n; j++) {
            TRY(sc_stream_enter(list[j].hStream, &other));
            if (i != j)
                TRY(sc_stream_follow(stream, other));
        }
    }
    return CUDA_SUCCESS;
}

API(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *list, unsigned n, unsigned flags)
{
    enum { NO_PRE_LAUNCH_SYNC = 1, NO_POST_LAUNCH_SYNC = 2 };
    TRY(sc_working());
    if (!list || !n || n > (unsigned)sc_n_devices ||
        flags & ~(unsigned)(NO_PRE_LAUNCH_SYNC | NO_POST_LAUNCH_SYNC))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check_many(list, n));
    if (!(flags & NO_PRE_LAUNCH_SYNC))
        TRY(meet(list, n));
    for (unsigned i = 0; i < n; i++)
        TRY(cuLaunchCooperativeKernel(list[i].function, list[i].gridDimX, list[i].gridDimY, list[i].gridDimZ,
                                      list[i].blockDimX, list[i].blockDimY, list[i].blockDimZ,
                                      list[i].sharedMemBytes, list[i].hStream, list[i].kernelParams));
    return flags & NO_POST_LAUNCH_SYNC ? CUDA_SUCCESS : meet(list, n);
}

/* ---- launches as they were before CUDA 4: told to the function, piece by piece ---- */

enum { MOST_PARAM_BYTES = 32764, MOST_OLD_SHARED = 49152 };

/* Guards what functions were told so. Taken before every other lock. */
static pthread_mutex_t old_lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct sc_old_launch {
    unsigned block[3], shared, param_bytes;
    char params[MOST_PARAM_BYTES];
} sc_old_launch;

/* NULL: out of memory. */
static sc_old_launch *old_of(sc_function *function)
{
    static const sc_old_launch fresh = {.block = {1, 1, 1}};
    if (!function->old && (function->old = malloc(sizeof fresh)))
        *function->old = fresh;
    return function->old;
}

/* Finds what the function was told, and takes the lock of it. */
static CUresult enter_old(CUfunction handle, sc_old_launch **ret_old)
{
    if (!handle)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(sc_working());
    sc_function *function = sc_object_find(SC_FUNCTION, (uintptr_t)handle);
    if (!function)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&old_lock);
    *ret_old = old_of(function);
    if (*ret_old)
        return CUDA_SUCCESS;
    pthread_mutex_unlock(&old_lock);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Gives the lock back. */
static CUresult leave_old(CUresult result)
{
    pthread_mutex_unlock(&old_lock);
    return result;
}

static CUresult set_block(sc_old_launch *old, int x, int y, int z)
{
    enum { MOST = 1024 };
    if (x <= 0 || y <= 0 || z <= 0 || x > MOST || y > MOST || z > MOST || (int64_t)x * y * z > MOST)
        return CUDA_ERROR_INVALID_VALUE;
    const unsigned block[3] = {(unsigned)x, (unsigned)y, (unsigned)z};
    memcpy(old->block, block, sizeof block);
    return CUDA_SUCCESS;
}

static CUresult set_number(unsigned *number, unsigned value, unsigned most)
{
    if (value > most)
        return CUDA_ERROR_INVALID_VALUE;
    *number = value;
    return CUDA_SUCCESS;
}

static CUresult set_param(sc_old_launch *old, int offset, const void *value, unsigned bytes)
{
    if (offset < 0 || bytes > MOST_PARAM_BYTES || (unsigned)offset > MOST_PARAM_BYTES - bytes ||
        (bytes && !value))
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes)
        memcpy(old->params + offset, value, bytes);
    return CUDA_SUCCESS;
}

static CUresult launch_old(CUfunction handle, sc_old_launch *old, int width, int height, CUstream stream)
{
    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    size_t bytes = old->param_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, old->params, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    launch_shape shape = {.grid = {(unsigned)width, (unsigned)height, 1},
                          .block = {old->block[0], old->block[1], old->block[2]},
                          .dynamic = old->shared};
    return launch(handle, &shape, stream, NULL, extra);
}

API(cuFuncSetBlockShape, CUfunction handle, int x, int y, int z)
{
    sc_old_launch *old;
    TRY(enter_old(handle, &old));
    return leave_old(set_block(old, x, y, z));
}

API(cuFuncSetSharedSize, CUfunction handle, unsigned bytes)
{
    sc_old_launch *old;
    TRY(enter_old(handle, &old));
    return leave_old(set_number(&old->shared, bytes, MOST_OLD_SHARED));
}

API(cuParamSetSize, CUfunction handle, unsigned bytes)
{
    sc_old_launch *old;
    TRY(enter_old(handle, &old));
    return leave_old(set_number(&old->param_bytes, bytes, MOST_PARAM_BYTES));
}

API(cuParamSetv, CUfunction handle, int offset, const void *value, unsigned bytes)
{
    sc_old_launch *old;
    TRY(enter_old(handle, &old));
    return leave_old(set_param(old, offset, value, bytes));
}

API(cuParamSeti, CUfunction handle, int offset, unsigned value)
{
    return cuParamSetv(handle, offset, &value, sizeof value);
}

API(cuParamSetf, CUfunction handle, int offset, float value)
{
    return cuParamSetv(handle, offset, &value, sizeof value);
}

API(cuLaunchGridAsync, CUfunction handle, int width, int height, CUstream stream)
{
    sc_old_launch *old;
    TRY(enter_old(handle, &old));
    return leave_old(launch_old(handle, old, width, height, stream));
}

API(cuLaunchGrid, CUfunction handle, int width, int height)
{
    return cuLaunchGridAsync(handle, width, height, NULL);
}

API(cuLaunch, CUfunction handle)
{
    return cuLaunchGridAsync(handle, 1, 1, NULL);
}
