/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: what the driver checks, the parameter block, and the run itself. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct launch_work {
    sc_work work;
    sc_module *module; /* kept loaded until it has run */
    sc_launch launch;
    uint64_t params[]; /* the parameter block */
} launch_work;

typedef struct launch_shape {
    unsigned grid[3], block[3];
    size_t dynamic;
    bool cooperative;
    const CUlaunchAttributeValue *cluster; /* NULL: none asked for */
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
        break;
    }
    return CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult run_launch(sc_work *work)
{
    launch_work *launch = (launch_work *)work;
    sc_fault fault = {0};
    TRY(sc_launch_fault(sc_program_kernel(launch->launch.program, (size_t)launch->launch.kernel)->name));
    if (sc_run(&launch->launch, &fault, NULL))
        return CUDA_SUCCESS;
    if (sc_logging())
        sc_say("%s: block (%u,%u,%u), thread (%u,%u,%u), PTX line %u: %s", fault.kernel, fault.block[0],
               fault.block[1], fault.block[2], fault.thread[0], fault.thread[1], fault.thread[2], fault.line,
               fault.text);
    CUresult code = fault_code(fault.kind);
    return code ? code : CUDA_ERROR_LAUNCH_FAILED;
}

static void finish_launch(sc_work *work)
{
    sc_release(((launch_work *)work)->module);
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
    if (!*ret_params || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_bytes = *bytes;
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
        if (bytes > function->param_bytes)
            return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
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
    return sc_cluster_check(function, dims, shape->grid);
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
    if (threads > (unsigned)function->max_threads || shape->dynamic > (size_t)function->max_dynamic_shared)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned multiprocessors = (unsigned)function->object.context->device->chip->multiprocessors;
    if (shape->cooperative &&
        blocks > (uint64_t)sc_occupancy(function, (int)threads, shape->dynamic) * multiprocessors)
        return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction handle, const launch_shape *shape, CUstream stream_handle, void **params,
                       void **extra)
{
    sc_stream *stream;
    sc_function *function;
    TRY(sc_stream_enter(stream_handle, &stream));
    TRY(sc_function_in(stream->object.context, handle, &function));
    if (function->object.context != stream->object.context)
        return CUDA_ERROR_INVALID_HANDLE;
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
        .grid_id = sc_next_id(),
        .budget = sc_setting_value(SC_SETTING_BUDGET),
        .shuffle_seed = sc_setting_value(SC_SETTING_SHUFFLE),
    };
    return sc_stream_submit(stream, (sc_work *)work, false);
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

/* Attributes that steer the hardware and cannot change what a kernel computes are taken; those that would
 * have to be done are refused. */
static CUresult read_attributes(const CUlaunchConfig *config, launch_shape *shape)
{
    if (config->numAttrs && !config->attrs)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &config->attrs[i];
        switch (attribute->id) {
        case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            shape->cooperative = attribute->value.cooperative != 0;
            break;
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            shape->cluster = &attribute->value;
            break;
        case CU_LAUNCH_ATTRIBUTE_IGNORE:
        case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
            break;
        case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
            return CUDA_ERROR_NOT_SUPPORTED;
        default:
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
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
