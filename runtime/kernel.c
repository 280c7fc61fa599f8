/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/internal.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    CUfunction_attribute attribute;
    size_t offset; /* of an int in kr_kernel_info */
} attributes[] = {
#define ROW(attribute, field)                                          \
    {                                                                  \
        CU_FUNC_ATTRIBUTE_##attribute, offsetof(kr_kernel_info, field) \
    }
    ROW(NUM_REGS, registers),
    ROW(SHARED_SIZE_BYTES, static_shared_bytes),
    ROW(CONST_SIZE_BYTES, const_bytes),
    ROW(LOCAL_SIZE_BYTES, local_bytes),
    ROW(MAX_THREADS_PER_BLOCK, max_threads_per_block),
    ROW(PTX_VERSION, ptx_version),
    ROW(BINARY_VERSION, binary_version),
    ROW(MAX_DYNAMIC_SHARED_SIZE_BYTES, max_dynamic_shared_bytes),
#undef ROW
};

/* Asking also makes a lazy driver load the kernel now, not in the midst of work at its first launch. */
static kr_status read_attributes(kr_kernel *kernel, kr_error *err)
{
    kr_device *device = kernel->device;
    for (size_t i = 0; i < KR_COUNT(attributes); i++) {
        int *field = (int *)((char *)&kernel->info + attributes[i].offset);
        const CUresult result =
            device->driver->cuFuncGetAttribute(field, attributes[i].attribute, kernel->cufunction);
        if (result != CUDA_SUCCESS)
            return KR_DEVICE_FAIL(err, device, result, "cuFuncGetAttribute", "cannot read attribute %d of %s",
                                  (int)attributes[i].attribute, kernel->name);
    }
    atomic_init(&kernel->allowed_dynamic_bytes, kernel->info.max_dynamic_shared_bytes);
    return KR_OK;
}

static kr_status read_params(kr_kernel *kernel, kr_error *err)
{
    kr_device *device = kernel->device;
    kernel->n_params = -1;
    if (!device->driver->cuFuncGetParamInfo)
        return KR_OK;
    for (int n = 0;; n++) {
        struct kr__param_place place;
        const CUresult result = device->driver->cuFuncGetParamInfo(kernel->cufunction, (size_t)n,
                                                                   &place.offset_bytes, &place.bytes);
        if (result == CUDA_ERROR_INVALID_VALUE) { /* past the last one */
            kernel->n_params = n;
            return KR_OK;
        }
        if (result != CUDA_SUCCESS)
            return KR_DEVICE_FAIL(err, device, result, "cuFuncGetParamInfo", "cannot read parameter %d of %s",
                                  n, kernel->name);
        struct kr__param_place *params = kr__grow(kernel->params, (size_t)n, sizeof *params);
        if (!params)
            return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no host memory for the parameters of %s",
                           kernel->name);
        params[n] = place;
        kernel->params = params;
    }
}

/* The names that the module has, and the nearest to the one asked for. */
static void list_names(const kr_module *module, const char *name, kr__text *names, char *nearest,
                       size_t nearest_bytes)
{
    const kr__driver *driver = module->device->driver;
    unsigned n = 0;
    nearest[0] = '\0';
    if (!driver->cuModuleGetFunctionCount || !driver->cuModuleEnumerateFunctions || !driver->cuFuncGetName ||
        driver->cuModuleGetFunctionCount(&n, module->cumodule) != CUDA_SUCCESS || n == 0)
        return;
    CUfunction *functions = calloc(n, sizeof *functions);
    if (functions && driver->cuModuleEnumerateFunctions(functions, n, module->cumodule) == CUDA_SUCCESS) {
        size_t best = SIZE_MAX;
        for (unsigned i = 0; i < n; i++) {
            const char *other;
            if (driver->cuFuncGetName(&other, functions[i]) != CUDA_SUCCESS)
                continue;
            kr__text_add(names, "%s%s", names->bytes ? ", " : "", other);
            const bool holds_it = strncmp(other, "_Z", 2) == 0 && strstr(other, name);
            if (best > 0 && (holds_it || kr__nearer(name, other, &best))) {
                best = holds_it ? 0 : best;
                kr__format(nearest, nearest_bytes, "%s", other);
            }
        }
    }
    free(functions);
}

static kr_status fail_not_found(const kr_module *module, const char *name, kr_error *err)
{
    kr__text names = {0};
    char nearest[256];
    list_names(module, name, &names, nearest, sizeof nearest);
    /* A driver lists the kernels of relocatable machine code that it cannot link, and finds them not. */
    const bool is_open = strcmp(nearest, name) == 0;
    if (is_open)
        KR_FAIL(err, KR_NOT_FOUND, "the kernel \"%.200s\" of %s calls what the image does not have", name,
                module->name);
    else
        KR_FAIL(err, KR_NOT_FOUND, "%s has no kernel \"%.200s\"%s%.600s", module->name, name,
                names.data ? "; it has " : "", names.data ? names.data : "");
    kr__error_code(err, KR_API_CUDA, CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "cuModuleGetFunction");
    kr__error_device(err, module->device->info.ordinal);
    if (is_open)
        kr__error_advice(err, "Link it (kr_link) with the image that has it, and load what that makes.");
    else if (nearest[0])
        kr__error_advice(
            err, "Did you mean \"%s\"?%s", nearest,
            strncmp(nearest, "_Z", 2) == 0 ? " Declare the kernel extern \"C\" to keep its plain name." : "");
    else
        kr__error_advice(err, "Name one of the image's kernels, or load the image that holds it.");
    kr__text_free(&names);
    return KR_NOT_FOUND;
}

kr_status kr__kernel_create(kr_module *module, const char *name, kr_kernel **ret_kernel, kr_error *err)
{
    kr_device *device = module->device;
    kr_kernel *kernel = kr__alloc(1, sizeof *kernel + strlen(name) + 1, err);
    if (!kernel)
        return KR_OUT_OF_HOST_MEMORY;
    kernel->device = device;
    kernel->module = module;
    strcpy(kernel->name, name);
    kernel->info.name = kernel->name;
    const CUresult result = device->driver->cuModuleGetFunction(&kernel->cufunction, module->cumodule, name);
    kr_status status = KR_OK;
    if (result == CUDA_ERROR_NOT_FOUND)
        status = fail_not_found(module, name, err);
    else if (result != CUDA_SUCCESS)
        status = KR_DEVICE_FAIL(err, device, result, "cuModuleGetFunction", "cannot get kernel \"%s\" of %s",
                                name, module->name);
    if (status == KR_OK)
        status = read_attributes(kernel, err);
    if (status == KR_OK)
        status = read_params(kernel, err);
    if (status == KR_OK)
        *ret_kernel = kernel;
    else
        kr__kernel_free(kernel);
    return status;
}

void kr__kernel_free(kr_kernel *kernel)
{
    kr__device_forget_launch(kernel);
    free(kernel->params);
    free(kernel);
}

const kr_kernel_info *kr_kernel_get_info(const kr_kernel *kernel)
{
    return kernel ? &kernel->info : NULL;
}

kr_device *kr_kernel_device(const kr_kernel *kernel)
{
    return kernel ? kernel->device : NULL;
}

void *kr_kernel_cufunction(const kr_kernel *kernel)
{
    return kernel ? kernel->cufunction : NULL;
}

kr_status kr_kernel_param(const kr_kernel *kernel, size_t index, size_t *ret_offset_bytes, size_t *ret_bytes,
                          kr_error *err)
{
    KR_REQUIRE(err, kernel, ret_offset_bytes, ret_bytes);
    if (kernel->n_params < 0) {
        const int version = kernel->device->driver->version;
        return KR_FAIL(err, KR_NOT_ON_THIS_DEVICE,
                       "the driver (CUDA %d.%d) cannot tell a kernel's parameters: 12.4 can", version / 1000,
                       version % 1000 / 10);
    }
    if (index >= (size_t)kernel->n_params)
        return KR_FAIL(err, KR_NOT_FOUND, "%s has %d parameters; there is no index %zu", kernel->name,
                       kernel->n_params, index);
    *ret_offset_bytes = kernel->params[index].offset_bytes;
    *ret_bytes = kernel->params[index].bytes;
    return KR_OK;
}

kr_status kr_kernel_occupancy(kr_kernel *kernel, int block_threads, size_t dynamic_shared_bytes,
                              int *ret_blocks, kr_error *err)
{
    KR_REQUIRE(err, kernel, ret_blocks);
    if (block_threads < 1)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: a block of %d threads", kernel->name, block_threads);
    int blocks;
    const kr_status status = KR_CALL(
        err, kernel->device, cuOccupancyMaxActiveBlocksPerMultiprocessor,
        (&blocks, kernel->cufunction, block_threads, dynamic_shared_bytes),
        "cannot compute the occupancy of %s with blocks of %d threads and %zu bytes of dynamic shared memory",
        kernel->name, block_threads, dynamic_shared_bytes);
    if (status == KR_OK)
        *ret_blocks = blocks;
    return status;
}

kr_status kr_kernel_suggest(kr_kernel *kernel, size_t dynamic_shared_bytes, int max_block_threads,
                            int *ret_block_threads, int *ret_min_grid, kr_error *err)
{
    KR_REQUIRE(err, kernel, ret_block_threads, ret_min_grid);
    if (max_block_threads < 0)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: blocks of at most %d threads", kernel->name,
                       max_block_threads);
    int grid, threads;
    const kr_status status =
        KR_CALL(err, kernel->device, cuOccupancyMaxPotentialBlockSize,
                (&grid, &threads, kernel->cufunction, NULL, dynamic_shared_bytes, max_block_threads),
                "cannot get a block size for %s with %zu bytes of dynamic shared memory", kernel->name,
                dynamic_shared_bytes);
    if (status == KR_OK) {
        *ret_block_threads = threads;
        *ret_min_grid = grid;
    }
    return status;
}

/* Never lowered: another thread may be launching with the larger size. */
kr_status kr_kernel_allow_shared(kr_kernel *kernel, size_t dynamic_shared_bytes, kr_error *err)
{
    KR_REQUIRE(err, kernel);
    if (dynamic_shared_bytes <=
        (size_t)atomic_load_explicit(&kernel->allowed_dynamic_bytes, memory_order_acquire))
        return KR_OK;
    const kr_device_info *info = &kernel->device->info;
    const int fixed = kernel->info.static_shared_bytes;
    const int limit = info->shared_bytes_per_block_optin ? info->shared_bytes_per_block_optin
                                                         : info->shared_bytes_per_block;
    if (fixed > limit || dynamic_shared_bytes > (size_t)(limit - fixed)) {
        KR_FAIL(err, KR_INVALID_ARGUMENT,
                "%s: %zu bytes of dynamic shared memory; device %d lets a block have %d, of which the "
                "kernel's own take %d",
                kernel->name, dynamic_shared_bytes, info->ordinal, limit, fixed);
        kr__error_device(err, info->ordinal);
        kr__error_advice(err, "Use at most %d bytes.", fixed > limit ? 0 : limit - fixed);
        return KR_INVALID_ARGUMENT;
    }
    const int wanted = (int)dynamic_shared_bytes;
    kr_status status = KR_OK;
    pthread_mutex_lock(&kernel->module->lock);
    if (wanted > atomic_load_explicit(&kernel->allowed_dynamic_bytes, memory_order_relaxed)) {
        status = KR_CALL(err, kernel->device, cuFuncSetAttribute,
                         (kernel->cufunction, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, wanted),
                         "cannot allow %s %d bytes of dynamic shared memory", kernel->name, wanted);
        if (status == KR_OK)
            atomic_store_explicit(&kernel->allowed_dynamic_bytes, wanted, memory_order_release);
    }
    pthread_mutex_unlock(&kernel->module->lock);
    return status;
}
