/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries: images without a context. A module is made of one in each context where it is first needed. */
#include "softcuda/driver/driver.h"

#include <stdlib.h>
#include <string.h>

typedef struct sc_kernel {
    sc_object object;
    struct sc_library *library;
    const char *name;
} sc_kernel;

typedef struct sc_library {
    sc_object object;
    char *image;
    size_t bytes;
    bool listed; /* kernels and names are filled in: when somebody first asks for a kernel */
    size_t n_kernels, n_names;
    sc_kernel **kernels;
    char **names;
} sc_library;

/* Guards the making of modules and lists. Taken before every other lock. */
static pthread_mutex_t library_lock = PTHREAD_MUTEX_INITIALIZER;

/* With the lock, where other threads can know the library. */
static void end_library(sc_object *object)
{
    sc_library *library = (sc_library *)object;
    for (size_t i = 0; i < library->n_kernels; i++)
        sc_object_retract(library->kernels[i]);
}

static void finish_kernel(sc_object *object)
{
    free(object);
}

static void finish_library(sc_object *object)
{
    sc_library *library = (sc_library *)object;
    for (size_t i = 0; i < library->n_kernels; i++)
        sc_release(library->kernels[i]);
    free(library->kernels);
    free(library->names);
    free(library->image);
    free(library);
}

static CUresult create_library(char *image, size_t bytes, CUlibrary *ret_library)
{
    CUresult result = sc_image_check(image, bytes);
    sc_library *library = NULL;
    if (!result && !(library = sc_object_create(sizeof *library, SC_LIBRARY, NULL, finish_library)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result) {
        free(image);
        return result;
    }
    library->object.end = end_library;
    library->image = image;
    library->bytes = bytes;
    if (!sc_object_publish(library, (uintptr_t)library)) {
        sc_release(library);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_library = (CUlibrary)library;
    return CUDA_SUCCESS;
}

/* The image is copied, so none of them changes anything. */
static CUresult check_options(const CUlibraryOption *options, unsigned n)
{
    if (n && !options)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n; i++)
        if (options[i] >= CU_LIBRARY_NUM_OPTIONS)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

API(cuLibraryLoadData, CUlibrary *ret_library, const void *code, CUjit_option *jit_options, void **jit_values,
    unsigned n_jit, CUlibraryOption *options, void **values, unsigned n_options)
{
    (void)values;
    TRY(sc_initialized());
    if (!ret_library || !code)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check_options(options, n_options));
    TRY(sc_jit_check(&(sc_jit){n_jit, jit_options, jit_values}));
    const void *wrapped = sc_mapped_bytes(code, false) >= 24 ? kr__fatbin_unwrap(code) : NULL;
    code = wrapped ? wrapped : code;
    size_t bytes = kr__image_bytes(code, sc_mapped_bytes(code, false));
    char *image = malloc(bytes + 1);
    if (!image)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(image, code, bytes);
    image[bytes] = '\0';
    return create_library(image, bytes, ret_library);
}

API(cuLibraryLoadFromFile, CUlibrary *ret_library, const char *path, CUjit_option *jit_options,
    void **jit_values, unsigned n_jit, CUlibraryOption *options, void **values, unsigned n_options)
{
    (void)values;
    TRY(sc_initialized());
    if (!ret_library || !path)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(check_options(options, n_options));
    TRY(sc_jit_check(&(sc_jit){n_jit, jit_options, jit_values}));
    char *image;
    size_t bytes;
    TRY(sc_module_file(path, &image, &bytes));
    return create_library(image, bytes, ret_library);
}

/* ---- the module of a context ---- */

typedef struct module_search {
    const sc_library *library;
    const sc_context *context; /* NULL: any */
    sc_module *found;
} module_search;

static void match_module(void *object, void *user)
{
    module_search *search = user;
    sc_module *module = object;
    if (module->library == search->library && (!search->context || module->object.context == search->context))
        search->found = module;
}

static sc_module *module_of(const sc_library *library, const sc_context *context)
{
    module_search search = {library, context, NULL};
    sc_objects_each(SC_MODULE, match_module, &search);
    return search.found;
}

static CUresult module_in(sc_library *library, sc_context *context, sc_module **ret_module)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&library_lock);
    sc_module *module = module_of(library, context);
    if (sc_has_ended(library)) {
        result = CUDA_ERROR_INVALID_HANDLE;
    } else if (!module) {
        result = library->bytes
                     ? sc_module_load(context, library->image, library->bytes, &(sc_jit){0}, library, &module)
                     : CUDA_ERROR_INVALID_IMAGE;
    }
    pthread_mutex_unlock(&library_lock);
    if (!result)
        *ret_module = module;
    return result;
}

static sc_library *find_library(CUlibrary handle)
{
    return sc_object_find(SC_LIBRARY, (uintptr_t)handle);
}

API(cuLibraryUnload, CUlibrary handle)
{
    TRY(sc_initialized());
    sc_library *library = find_library(handle);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&library_lock);
    bool was_there = sc_object_retract(library);
    if (was_there) {
        for (sc_module *module; (module = module_of(library, NULL));)
            sc_module_unload(module);
        sc_release(library);
    }
    pthread_mutex_unlock(&library_lock);
    return was_there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- kernels ---- */

static CUresult list_kernels(sc_library *library)
{
    if (library->listed)
        return CUDA_SUCCESS;
    if (sc_has_ended(library))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!library->names)
        TRY(sc_image_kernels(library->image, library->bytes, &library->names, &library->n_names));
    if (!library->kernels && !(library->kernels = calloc(library->n_names + 1, sizeof(sc_kernel *))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = library->n_kernels; i < library->n_names; i++) {
        sc_kernel *kernel = sc_object_create(sizeof *kernel, SC_KERNEL, NULL, finish_kernel);
        if (!kernel)
            return CUDA_ERROR_OUT_OF_MEMORY;
        kernel->library = library;
        kernel->name = library->names[i];
        if (!sc_object_publish(kernel, (uintptr_t)kernel)) {
            sc_release(kernel);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        library->kernels[library->n_kernels++] = kernel;
    }
    library->listed = true;
    return CUDA_SUCCESS;
}

/* The library that a handle names, its kernels listed. */
static CUresult find_listed(CUlibrary handle, sc_library **ret_library)
{
    TRY(sc_initialized());
    sc_library *library = find_library(handle);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&library_lock);
    CUresult result = list_kernels(library);
    pthread_mutex_unlock(&library_lock);
    *ret_library = library;
    return result;
}

API(cuLibraryGetKernel, CUkernel *ret_kernel, CUlibrary handle, const char *name)
{
    sc_library *library;
    TRY(sc_initialized());
    if (!ret_kernel || !name)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(find_listed(handle, &library));
    for (size_t i = 0; i < library->n_kernels; i++) {
        if (strcmp(library->kernels[i]->name, name) == 0) {
            *ret_kernel = (CUkernel)library->kernels[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

API(cuLibraryGetKernelCount, unsigned *n, CUlibrary handle)
{
    sc_library *library;
    TRY(sc_initialized());
    if (!find_library(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!n)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = find_listed(handle, &library);
    if (result && result != CUDA_ERROR_INVALID_PTX)
        return result;
    *n = result ? 0 : (unsigned)library->n_kernels; /* of PTX that does not compile there is none */
    return CUDA_SUCCESS;
}

API(cuLibraryEnumerateKernels, CUkernel *kernels, unsigned n, CUlibrary handle)
{
    sc_library *library;
    TRY(find_listed(handle, &library));
    if (!kernels)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < n && i < library->n_kernels; i++)
        kernels[i] = (CUkernel)library->kernels[i];
    return CUDA_SUCCESS;
}

API(cuLibraryGetModule, CUmodule *ret_module, CUlibrary handle)
{
    sc_context *context;
    sc_module *module;
    TRY(sc_enter(&context));
    sc_library *library = find_library(handle);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!ret_module)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(module_in(library, context, &module));
    *ret_module = (CUmodule)module;
    return CUDA_SUCCESS;
}

API(cuLibraryGetGlobal, CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
    sc_context *context;
    sc_module *module;
    TRY(sc_enter(&context));
    sc_library *library = find_library(handle);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !*name || (!address && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(module_in(library, context, &module));
    return sc_module_global(module, name, address, bytes);
}

API(cuLibraryGetManaged, CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name)
{
    (void)address, (void)bytes;
    TRY(sc_initialized());
    if (!find_library(handle))
        return CUDA_ERROR_INVALID_HANDLE;
    return name ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}

/* Of a kernel there is none. */
API(cuLibraryGetUnifiedFunction, void **pointer, CUlibrary handle, const char *name)
{
    sc_context *context;
    sc_module *module;
    TRY(sc_enter(&context));
    sc_library *library = find_library(handle);
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!pointer || !name)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(module_in(library, context, &module));
    for (const ptx_function *f = module->ptx ? module->ptx->functions : NULL; f; f = f->next)
        if (!f->is_entry && strcmp(f->name, name) == 0) {
            sc_say("cuLibraryGetUnifiedFunction: a pointer to %s is not there", name);
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

static sc_kernel *find_kernel(CUkernel handle)
{
    return sc_object_find(SC_KERNEL, (uintptr_t)handle);
}

CUresult sc_kernel_function(sc_context *context, CUkernel handle, sc_function **ret_function)
{
    sc_module *module;
    sc_kernel *kernel = find_kernel(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(module_in(kernel->library, context, &module));
    *ret_function = sc_module_function(module, kernel->name);
    if (!*ret_function)
        return CUDA_ERROR_NOT_FOUND;
    (*ret_function)->loaded = true;
    return CUDA_SUCCESS;
}

API(cuKernelGetFunction, CUfunction *ret_function, CUkernel handle)
{
    sc_context *context;
    sc_function *function;
    TRY(sc_enter(&context));
    if (!ret_function)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_kernel_function(context, handle, &function));
    *ret_function = (CUfunction)function;
    return CUDA_SUCCESS;
}

API(cuKernelGetLibrary, CUlibrary *ret_library, CUkernel handle)
{
    TRY(sc_initialized());
    sc_kernel *kernel = find_kernel(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!ret_library)
        return CUDA_ERROR_INVALID_VALUE;
    *ret_library = (CUlibrary)kernel->library;
    return CUDA_SUCCESS;
}

API(cuKernelGetName, const char **name, CUkernel handle)
{
    TRY(sc_initialized());
    if (!name || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    sc_kernel *kernel = find_kernel(handle);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = kernel->name;
    return CUDA_SUCCESS;
}

/* The kernel's function on a device: in the current context where it is of that device, else in the primary.
 */
static CUresult function_on(CUkernel handle, CUdevice ordinal, sc_function **ret_function)
{
    sc_device *device;
    TRY(sc_device_find(ordinal, &device));
    sc_context *context = sc_current();
    if (!context || !context->alive || context->device != device)
        context = device->primary;
    if (!context || !context->alive)
        return CUDA_ERROR_INVALID_CONTEXT;
    return sc_kernel_function(context, handle, ret_function);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice) SC_ENTRY(cuDevicePrimaryCtxRetain);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) SC_ENTRY(cuDevicePrimaryCtxRelease_v2);

API(cuKernelGetAttribute, int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice device)
{
    sc_function *function;
    CUcontext primary;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = function_on(handle, device, &function);
    if (result != CUDA_ERROR_INVALID_CONTEXT)
        return result ? result : sc_function_attribute(function, attribute, value);
    TRY(cuDevicePrimaryCtxRetain(&primary, device)); /* no context is needed to ask */
    result = function_on(handle, device, &function);
    if (!result)
        result = sc_function_attribute(function, attribute, value);
    TRY(cuDevicePrimaryCtxRelease_v2(device));
    return result;
}

API(cuKernelSetAttribute, CUfunction_attribute attribute, int value, CUkernel handle, CUdevice device)
{
    sc_function *function;
    TRY(function_on(handle, device, &function));
    return sc_function_set_attribute(function, attribute, value);
}

API(cuKernelSetCacheConfig, CUkernel handle, CUfunc_cache config, CUdevice device)
{
    sc_function *function;
    TRY(function_on(handle, device, &function));
    return config <= CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuKernelGetParamInfo, CUkernel handle, size_t index, size_t *offset, size_t *bytes)
{
    sc_context *context;
    sc_function *function;
    TRY(sc_enter(&context));
    if (!offset || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    TRY(sc_kernel_function(context, handle, &function));
    if (index >= function->n_params)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = function->params[index].offset;
    if (bytes)
        *bytes = function->params[index].bytes;
    return CUDA_SUCCESS;
}
