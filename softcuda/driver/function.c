/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver says of a function, and how many of its blocks fit. */
#include "softcuda/driver/driver.h"

#include <string.h>

CUresult sc_function_in(sc_context *context, CUfunction handle, sc_function **ret_function)
{
    *ret_function = sc_object_find(SC_FUNCTION, (uintptr_t)handle);
    return *ret_function ? CUDA_SUCCESS : sc_kernel_function(context, (CUkernel)handle, ret_function);
}

/* Finds the function that the parameter `handle` names. */
#define FIND_FUNCTION                                                       \
    if (!handle)                                                            \
        return CUDA_ERROR_INVALID_HANDLE;                                   \
    TRY(sc_initialized());                                                  \
    sc_function *function = sc_object_find(SC_FUNCTION, (uintptr_t)handle); \
    if (!function)                                                          \
        return CUDA_ERROR_INVALID_HANDLE;                                   \
    TRY(sc_working())

/* The same in the current context, where a kernel of a library is taken for its function. */
#define FIND_FUNCTION_OR_KERNEL \
    sc_context *context;        \
    sc_function *function;      \
    TRY(sc_enter(&context));    \
    TRY(sc_function_in(context, handle, &function))

/* ---- attributes ---- */

CUresult sc_function_attribute(const sc_function *function, CUfunction_attribute attribute, int *ret_value)
{
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *ret_value = function->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *ret_value = (int)function->shared_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        *ret_value = (int)function->const_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
        *ret_value = (int)function->local_bytes;
        break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *ret_value = function->registers;
        break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        *ret_value = function->ptx_version;
        break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *ret_value = function->binary_version;
        break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *ret_value = function->max_dynamic_shared;
        break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *ret_value = function->carveout;
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *ret_value = function->non_portable_cluster;
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *ret_value = function->cluster_scheduling;
        break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
        *ret_value = 0;
        break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *ret_value = function->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult sc_function_set_attribute(sc_function *function, CUfunction_attribute attribute, int value)
{
    const sc_chip *chip = function->object.context->device->chip;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || (size_t)value + function->shared_bytes > (size_t)chip->shared_optin)
            return CUDA_ERROR_INVALID_VALUE;
        function->max_dynamic_shared = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        if (value < -1 || value > 100)
            return CUDA_ERROR_INVALID_VALUE;
        function->carveout = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        if (value < 0)
            return CUDA_ERROR_INVALID_VALUE;
        function->cluster[attribute - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH] = value;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        function->non_portable_cluster = value != 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (value < 0 || value > 2)
            return CUDA_ERROR_INVALID_VALUE;
        function->cluster_scheduling = value;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

API(cuFuncGetAttribute, int *value, CUfunction_attribute attribute, CUfunction handle)
{
    FIND_FUNCTION;
    return value ? sc_function_attribute(function, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

API(cuFuncSetAttribute, CUfunction handle, CUfunction_attribute attribute, int value)
{
    FIND_FUNCTION;
    return sc_function_set_attribute(function, attribute, value);
}

API(cuFuncSetCacheConfig, CUfunction handle, CUfunc_cache config)
{
    FIND_FUNCTION;
    return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuFuncSetSharedMemConfig, CUfunction handle, CUsharedconfig config)
{
    FIND_FUNCTION;
    return config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The same for questions where NULL is a wrong value. */
#define FIND_ASKED_FUNCTION(result)      \
    if (!(result) || !handle)            \
        return CUDA_ERROR_INVALID_VALUE; \
    FIND_FUNCTION

API(cuFuncGetModule, CUmodule *module, CUfunction handle)
{
    FIND_ASKED_FUNCTION(module);
    *module = (CUmodule)function->module;
    return CUDA_SUCCESS;
}

API(cuFuncGetName, const char **name, CUfunction handle)
{
    FIND_ASKED_FUNCTION(name);
    *name = function->name;
    return CUDA_SUCCESS;
}

API(cuFuncGetParamInfo, CUfunction handle, size_t index, size_t *offset, size_t *bytes)
{
    FIND_ASKED_FUNCTION(offset);
    if (index >= function->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = function->params[index].offset;
    if (bytes)
        *bytes = function->params[index].bytes;
    return CUDA_SUCCESS;
}

API(cuFuncLoad, CUfunction handle)
{
    FIND_FUNCTION;
    function->loaded = true;
    return CUDA_SUCCESS;
}

API(cuFuncIsLoaded, int *state, CUfunction handle)
{
    FIND_FUNCTION;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = function->loaded;
    return CUDA_SUCCESS;
}

/* ---- occupancy ---- */

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

enum { WARP = 32, PARTITIONS = 4, REGISTER_UNIT = 256, REGISTER_FILE = 65536 };

static int blocks_by_registers(const sc_function *function, int warps)
{
    int a_warp = (int)round_up((size_t)function->registers * WARP, REGISTER_UNIT);
    if (!a_warp)
        return INT32_MAX;
    return REGISTER_FILE / PARTITIONS / a_warp * PARTITIONS / warps;
}

static size_t shared_unit(const sc_chip *chip)
{
    return chip->cc >= 80 ? 128 : 256;
}

/* How much of its shared memory a multiprocessor gives to blocks that need `a_block` each: all, or where a
 * carveout is preferred the least of the sizes that can be set up (CUDA programming guide) that has it. */
static size_t shared_carveout(const sc_function *function, const sc_chip *chip, size_t a_block)
{
    static const size_t kib[] = {8, 16, 32, 64, 100, 132, 164, 196, 228};
    size_t most = (size_t)chip->shared_per_multiprocessor;
    int percent = function->carveout;
    if (percent < 0)
        return most;
    for (size_t i = 0; i < KR_COUNT(kib); i++) {
        size_t size = kib[i] * 1024;
        if (size < most && size >= a_block && size * 100 >= most * (size_t)percent)
            return size;
    }
    return most;
}

static int blocks_by_shared(const sc_function *function, const sc_chip *chip, size_t dynamic)
{
    size_t a_block =
        round_up(function->shared_bytes + dynamic + (size_t)chip->shared_reserved, shared_unit(chip));
    return a_block ? (int)(shared_carveout(function, chip, a_block) / a_block) : INT32_MAX;
}

int sc_occupancy(const sc_function *function, int block_threads, size_t dynamic)
{
    const sc_chip *chip = function->object.context->device->chip;
    if (block_threads > 1024 || dynamic > (size_t)function->max_dynamic_shared)
        return 0;
    int warps = (block_threads + WARP - 1) / WARP;
    int blocks = least(chip->blocks_per_multiprocessor, chip->threads_per_multiprocessor / (warps * WARP));
    blocks = least(blocks, blocks_by_registers(function, warps));
    return least(blocks, blocks_by_shared(function, chip, dynamic));
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int *blocks, CUfunction handle, int block_threads,
    size_t dynamic, unsigned flags)
{
    FIND_FUNCTION_OR_KERNEL;
    if (!blocks || block_threads <= 0 || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    *blocks = sc_occupancy(function, block_threads, dynamic);
    return CUDA_SUCCESS;
}

API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *blocks, CUfunction handle, int block_threads,
    size_t dynamic)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, block_threads, dynamic, 0);
}

/* The largest block of those that keep the most threads resident. */
API(cuOccupancyMaxPotentialBlockSizeWithFlags, int *min_grid, int *block, CUfunction handle,
    CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit, unsigned flags)
{
    FIND_FUNCTION_OR_KERNEL;
    if (!min_grid || !block || limit < 0 || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    int most = limit > 0 ? least(limit, function->max_threads) : function->max_threads;
    int best_threads = 0, best_block = 0, best_blocks = 0;
    for (int threads = (int)round_up((size_t)most, WARP); threads > 0; threads -= WARP) {
        int tried = least(threads, most);
        int blocks = sc_occupancy(function, tried, dynamic_of ? dynamic_of(tried) : dynamic);
        if (blocks * tried > best_threads) {
            best_threads = blocks * tried;
            best_block = tried;
            best_blocks = blocks;
        }
    }
    *min_grid = best_blocks * function->object.context->device->chip->multiprocessors;
    *block = best_block;
    return CUDA_SUCCESS;
}

API(cuOccupancyMaxPotentialBlockSize, int *min_grid, int *block, CUfunction handle,
    CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(min_grid, block, handle, dynamic_of, dynamic, limit, 0);
}

API(cuOccupancyAvailableDynamicSMemPerBlock, size_t *bytes, CUfunction handle, int blocks, int block_threads)
{
    FIND_FUNCTION_OR_KERNEL;
    const sc_chip *chip = function->object.context->device->chip;
    if (!bytes || blocks <= 0 || block_threads <= 0 || blocks > sc_occupancy(function, block_threads, 0))
        return CUDA_ERROR_INVALID_VALUE;
    size_t unit = shared_unit(chip);
    size_t share = (size_t)chip->shared_per_multiprocessor / (size_t)blocks / unit * unit;
    size_t taken = function->shared_bytes; /* the driver does not count what it reserves */
    size_t most = (size_t)function->max_dynamic_shared;
    share = share > taken ? share - taken : 0;
    *bytes = share < most ? share : most;
    return CUDA_SUCCESS;
}

enum { PORTABLE_CLUSTER = 8, LARGEST_CLUSTER = 16 };

/* The function and the launch that a question about clusters is asked of. */
#define FIND_CLUSTER(result)                                                                   \
    if (!(result) || !handle || !config)                                                       \
        return CUDA_ERROR_INVALID_VALUE;                                                       \
    FIND_FUNCTION_OR_KERNEL;                                                                   \
    if (context->device->chip->cc < 90)                                                        \
        return CUDA_ERROR_NOT_SUPPORTED;                                                       \
    if (!config->gridDimX || !config->blockDimX || !config->blockDimY || !config->blockDimZ || \
        (config->numAttrs && !config->attrs))                                                  \
    return CUDA_ERROR_INVALID_VALUE

static int blocks_of(const sc_function *function, const CUlaunchConfig *config)
{
    const unsigned dims[] = {config->blockDimX, config->blockDimY, config->blockDimZ};
    uint64_t threads = 1;
    for (size_t i = 0; i < KR_COUNT(dims) && threads <= 1024; i++) /* the product of all may not fit */
        threads *= dims[i];
    return threads > 1024 ? 0 : sc_occupancy(function, (int)threads, config->sharedMemBytes);
}

API(cuOccupancyMaxPotentialClusterSize, int *cluster, CUfunction handle, const CUlaunchConfig *config)
{
    FIND_CLUSTER(cluster);
    int most = function->non_portable_cluster ? LARGEST_CLUSTER : PORTABLE_CLUSTER;
    *cluster = blocks_of(function, config) ? most : 0;
    return CUDA_SUCCESS;
}

API(cuOccupancyMaxActiveClusters, int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
    FIND_CLUSTER(clusters);
    unsigned dims[3] = {1, 1, 1}, grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            memcpy(dims, &config->attrs[i].value.clusterDim, sizeof dims);
    TRY(sc_cluster_check(function, dims, grid));
    *clusters = blocks_of(function, config) * context->device->chip->multiprocessors /
                (int)(dims[0] * dims[1] * dims[2]);
    return CUDA_SUCCESS;
}
