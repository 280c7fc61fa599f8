/* SPDX-License-Identifier: Apache-2.0 */
/* An image of any kind given to softcuda's libcuda: loaded, linked, and asked about everything in it. */
#include "fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/softcuda/calls.h"

enum { LOG_BYTES = 300, MOST_FUNCTIONS = 16 };

static void must(CUresult result)
{
    if (result)
        abort();
}

static void start(void)
{
    CUcontext context;
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
}

/* A NUL after it, and right after that a page that cannot be read: cuModuleLoadData has no size to go by. */
static void *place(const uint8_t *bytes, size_t n, size_t *ret_mapped)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t mapped = (n + page) / page * page;
    char *pages = mmap(NULL, mapped + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    mprotect(pages + mapped, page, PROT_NONE);
    *ret_mapped = mapped + page;
    return memcpy(pages + mapped - n - 1, bytes, n);
}

static void unplace(void *image, size_t mapped)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap((void *)((uintptr_t)image / page * page), mapped);
}

static void ask_function(CUfunction function)
{
    const char *name;
    size_t offset, bytes;
    int value;
    must(cuFuncGetName(&name, function));
    for (int attribute = 0; attribute < 16; attribute++)
        cuFuncGetAttribute(&value, (CUfunction_attribute)attribute, function);
    for (size_t i = 0; cuFuncGetParamInfo(function, i, &offset, &bytes) == CUDA_SUCCESS; i++)
        continue;
    cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 128, 1024);
}

static void load_module(const void *image)
{
    char info[LOG_BYTES], error[LOG_BYTES];
    CUjit_option options[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_MAX_REGISTERS};
    void *values[] = {info, (void *)(uintptr_t)LOG_BYTES, error, (void *)(uintptr_t)LOG_BYTES,
                      (void *)(uintptr_t)32};
    CUmodule module;
    CUfunction functions[MOST_FUNCTIONS];
    unsigned n;
    if (cuModuleLoadDataEx(&module, image, 5, options, values))
        return;
    must(cuModuleGetFunctionCount(&n, module));
    n = n < MOST_FUNCTIONS ? n : MOST_FUNCTIONS;
    must(cuModuleEnumerateFunctions(functions, n, module));
    for (unsigned i = 0; i < n; i++)
        ask_function(functions[i]);
    must(cuModuleUnload(module));
}

static void load_library(const void *image)
{
    CUlibrary library;
    CUmodule module;
    if (cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0))
        return;
    cuLibraryGetModule(&module, library);
    must(cuLibraryUnload(library));
}

static void link_image(void *image, size_t n)
{
    CUlinkState state;
    void *cubin;
    size_t cubin_bytes;
    const CUjitInputType type = n && *(char *)image == '\x7f' ? CU_JIT_INPUT_CUBIN : CU_JIT_INPUT_PTX;
    must(cuLinkCreate_v2(0, NULL, NULL, &state));
    if (!cuLinkAddData_v2(state, type, image, n, "fuzz", 0, NULL, NULL) &&
        !cuLinkComplete(state, &cubin, &cubin_bytes))
        load_module(cubin);
    must(cuLinkDestroy(state));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static bool started;
    size_t mapped;
    if (!started)
        start();
    started = true;
    void *image = place(bytes, n, &mapped);
    if (!image)
        return 0;
    load_module(image);
    load_library(image);
    link_image(image, n);
    unplace(image, mapped);
    return 0;
}
