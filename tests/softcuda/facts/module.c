/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, libraries, the options of the compiler in the driver, and linking. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/facts/kernels.h"

static const char bad_ptx[] = PTX(".visible .entry k() { frobnicate; ret; }\n");
static const char managed_ptx[] = PTX(".visible .global .attribute(.managed) .align 4 .u32 mvar = 5;\n"
                                      ".visible .global .align 4 .u32 plain = 6;\n"
                                      ".visible .entry k() { ret; }\n");

/* ---- modules ---- */

static void module_functions(void)
{
    unsigned n = NO_SUCH;
    CUfunction found[8] = {NULL}, one;
    const char *name;
    begin();
    CUmodule module = load(kernels_ptx);
    ASK(cuModuleGetFunctionCount(&n, module));
    say(":%u", n);
    ASK(cuModuleEnumerateFunctions(found, 8, module));
    for (int i = 0; i < 8; i++)
        say("%d", found[i] != NULL);
    ASK(cuModuleGetFunction(&one, module, "add"));
    int among = 0;
    for (unsigned i = 0; i < n && i < 8; i++)
        among += found[i] == one;
    say(" %d", among);
    memset(found, 0, sizeof found);
    ASK(cuModuleEnumerateFunctions(found, 2, module));
    say(":%d%d%d", found[0] != NULL, found[1] != NULL, found[2] != NULL);
    ASK(cuFuncGetName(&name, one));
    say(" %s", name);
}

static void module_wrong(void)
{
    unsigned n;
    CUfunction f;
    CUmodule module;
    CUdeviceptr address;
    size_t bytes;
    begin();
    CUmodule good = load(kernels_ptx);
    ASK(cuModuleLoadData(NULL, kernels_ptx));
    ASK(cuModuleLoadData(&module, NULL));
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 1, NULL, NULL));
    ASK(cuModuleLoad(&module, NULL));
    ASK(cuModuleLoad(NULL, "/nonexistent"));
    ASK(cuModuleLoad(&module, ""));
    ASK(cuModuleLoadFatBinary(&module, NULL));
    say(" |");
    ASK(cuModuleGetFunctionCount(NULL, good));
    ASK(cuModuleGetFunctionCount(&n, NULL));
    ASK(cuModuleEnumerateFunctions(NULL, 1, good));
    ASK(cuModuleEnumerateFunctions(&f, 0, good));
    ASK(cuModuleEnumerateFunctions(NULL, 0, good));
    ASK(cuModuleEnumerateFunctions(&f, 1, NULL));
    say(" |");
    ASK(cuModuleGetFunction(NULL, good, "nul"));
    ASK(cuModuleGetFunction(&f, NULL, "nul"));
    ASK(cuModuleGetFunction(&f, good, NULL));
    ASK(cuModuleGetFunction(&f, good, "gvar"));
    say(" |");
    ASK(cuModuleGetGlobal_v2(&address, &bytes, NULL, "gvar"));
    ASK(cuModuleGetGlobal_v2(&address, &bytes, good, NULL));
    ASK(cuModuleGetGlobal_v2(&address, &bytes, good, ""));
    ASK(cuModuleGetGlobal_v2(&address, &bytes, good, "nul"));
    ASK(cuModuleGetGlobal_v2(NULL, &bytes, good, "gvar"));
    ASK(cuModuleGetGlobal_v2(&address, NULL, good, "gvar"));
    ASK(cuModuleGetGlobal_v2(NULL, NULL, good, "gvar"));
    say(" |");
    ASK(cuModuleUnload(NULL));
    ASK(cuModuleUnload(good));
}

static void module_empty(void)
{
    CUmodule module;
    unsigned n = NO_SUCH;
    begin();
    ASK(cuModuleLoadData(&module, PTX("")));
    ASK(cuModuleGetFunctionCount(&n, module));
    say(":%u", n);
    ASK(cuModuleLoadData(&module, ""));
    ASK(cuModuleLoadData(&module, "x"));
    ASK(cuModuleLoadData(&module, "// nothing\n"));
    ASK(cuModuleLoadFatBinary(&module, kernels_ptx));
}

static void module_loading_mode(void)
{
    int mode = NO_SUCH;
    MUST(cuInit(0));
    ASK(cuModuleGetLoadingMode(&mode));
    say(":%d", mode);
}

static void module_loading_mode_eager(void)
{
    int mode = NO_SUCH;
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    MUST(cuInit(0));
    ASK(cuModuleGetLoadingMode(&mode));
    say(":%d", mode);
}

static void module_globals(void)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;
    begin();
    CUmodule module = load(kernels_ptx), again = load(kernels_ptx);
    CUdeviceptr other = 0;
    ASK(cuModuleGetGlobal_v2(&address, &bytes, module, "gvar"));
    say(":%zu %u", bytes, word_at(address + 8));
    ASK(cuModuleGetGlobal_v2(&other, NULL, again, "gvar"));
    say(":%d", other == address);
    ASK(cuModuleGetGlobal_v2(&address, &bytes, module, "cvar"));
    say(":%zu %u", bytes, word_at(address));
    ASK(cuMemFree_v2(address));
}

static void module_managed(void)
{
    CUdeviceptr address = 0;
    size_t bytes = 0;
    begin();
    CUmodule module = load(managed_ptx);
    ASK(cuModuleGetGlobal_v2(&address, &bytes, module, "mvar"));
    say(":%zu %u", bytes, *(unsigned *)(uintptr_t)address);
}

static void module_other_context(void)
{
    CUcontext b;
    CUfunction f;
    begin();
    CUmodule module = load(kernels_ptx);
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    MUST(cuCtxSetCurrent(b));
    ASK(cuModuleGetFunction(&f, module, "nul"));
    ASK(run(f, NULL, NULL));
    ASK(cuModuleUnload(module));
}

static void module_unload_running(void)
{
    unsigned v = 3;
    begin();
    CUdeviceptr p = memory(4);
    CUmodule module = load(kernels_ptx);
    CUfunction f = function(module, "add");
    for (int i = 0; i < 100; i++)
        MUST(run(f, NULL, (void *[]){&p, &v}));
    ASK(cuModuleUnload(module));
    say(" %u", word_at(p));
}

/* ---- libraries ---- */

static CUlibrary library(const char *ptx)
{
    CUlibrary made;
    MUST(cuLibraryLoadData(&made, ptx, NULL, NULL, 0, NULL, NULL, 0));
    return made;
}

static void library_kernels(void)
{
    unsigned n = NO_SUCH;
    CUkernel found[8] = {NULL}, one = NULL, again = NULL;
    CUlibrary back = NULL;
    const char *name = "";
    begin();
    CUlibrary lib = library(kernels_ptx);
    ASK(cuLibraryGetKernelCount(&n, lib));
    say(":%u", n);
    ASK(cuLibraryEnumerateKernels(found, 8, lib));
    for (int i = 0; i < 8; i++)
        say("%d", found[i] != NULL);
    ASK(cuLibraryGetKernel(&one, lib, "add"));
    ASK(cuLibraryGetKernel(&again, lib, "add"));
    say(":%d", one == again);
    ASK(cuKernelGetName(&name, one));
    say(":%s", name);
    ASK(cuKernelGetLibrary(&back, one));
    say(":%d", back == lib);
    memset(found, 0, sizeof found);
    ASK(cuLibraryEnumerateKernels(found, 2, lib));
    say(":%d%d%d", found[0] != NULL, found[1] != NULL, found[2] != NULL);
}

static void library_wrong(void)
{
    unsigned n;
    CUkernel k;
    CUmodule m;
    CUlibrary l;
    CUfunction f;
    CUdeviceptr address;
    size_t bytes;
    void *pointer;
    const char *name;
    begin();
    CUlibrary lib = library(kernels_ptx);
    MUST(cuLibraryGetKernel(&k, lib, "nul"));
    ASK(cuLibraryLoadData(NULL, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadData(&l, NULL, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadFromFile(&l, NULL, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadFromFile(NULL, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryLoadFromFile(&l, "/nonexistent", NULL, NULL, 0, NULL, NULL, 0));
    say(" |");
    ASK(cuLibraryGetKernelCount(NULL, lib));
    ASK(cuLibraryGetKernelCount(&n, NULL));
    ASK(cuLibraryEnumerateKernels(NULL, 1, lib));
    ASK(cuLibraryEnumerateKernels(&k, 0, lib));
    ASK(cuLibraryEnumerateKernels(NULL, 0, lib));
    ASK(cuLibraryEnumerateKernels(&k, 1, NULL));
    say(" |");
    ASK(cuLibraryGetKernel(NULL, lib, "nul"));
    ASK(cuLibraryGetKernel(&k, NULL, "nul"));
    ASK(cuLibraryGetKernel(&k, lib, NULL));
    ASK(cuLibraryGetKernel(&k, lib, ""));
    ASK(cuLibraryGetKernel(&k, lib, "nothing"));
    ASK(cuLibraryGetModule(NULL, lib));
    ASK(cuLibraryGetModule(&m, NULL));
    say(" |");
    ASK(cuLibraryGetGlobal(&address, &bytes, NULL, "gvar"));
    ASK(cuLibraryGetGlobal(&address, &bytes, lib, NULL));
    ASK(cuLibraryGetGlobal(&address, &bytes, lib, "nothing"));
    ASK(cuLibraryGetGlobal(NULL, NULL, lib, "gvar"));
    ASK(cuLibraryGetManaged(&address, &bytes, NULL, "gvar"));
    ASK(cuLibraryGetManaged(&address, &bytes, lib, NULL));
    ASK(cuLibraryGetManaged(&address, &bytes, lib, "gvar"));
    ASK(cuLibraryGetManaged(&address, &bytes, lib, "nothing"));
    ASK(cuLibraryGetUnifiedFunction(&pointer, NULL, "nul"));
    ASK(cuLibraryGetUnifiedFunction(&pointer, lib, NULL));
    ASK(cuLibraryGetUnifiedFunction(&pointer, lib, "nothing"));
    ASK(cuLibraryGetUnifiedFunction(NULL, lib, "nul"));
    ASK(cuLibraryGetUnifiedFunction(&pointer, lib, "nul"));
    say(" |");
    ASK(cuKernelGetFunction(NULL, k));
    ASK(cuKernelGetFunction(&f, NULL));
    ASK(cuKernelGetLibrary(NULL, k));
    ASK(cuKernelGetLibrary(&l, NULL));
    ASK(cuKernelGetName(NULL, k));
    ASK(cuKernelGetName(&name, NULL));
    ASK(cuLibraryUnload(NULL));
}

static void library_options(void)
{
    static int yes = 1, no = 0;
    CUlibrary l;
    CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED, many = CU_LIBRARY_NUM_OPTIONS,
                    none = (CUlibraryOption)-1;
    void *values[1] = {&yes};
    begin();
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &preserved, values, 1));
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &preserved, NULL, 1));
    values[0] = &no;
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &preserved, values, 1));
    values[0] = (void *)1;
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &preserved, values, 1));
    values[0] = NULL;
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &preserved, values, 1));
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &many, values, 1));
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &none, values, 1));
    ASK(cuLibraryLoadData(&l, kernels_ptx, NULL, NULL, 0, &preserved, values, 0));
}

static void library_modules(void)
{
    CUmodule one = NULL, again = NULL, other = NULL;
    CUfunction f = NULL, g = NULL;
    CUkernel k;
    CUcontext a = begin(), b;
    CUlibrary lib = library(kernels_ptx);
    ASK(cuLibraryGetModule(&one, lib));
    ASK(cuLibraryGetModule(&again, lib));
    say(":%d", one == again);
    ASK(cuModuleUnload(one));
    ASK(cuModuleGetFunction(&f, one, "nul"));
    ASK(cuLibraryGetKernel(&k, lib, "nul"));
    ASK(cuKernelGetFunction(&g, k));
    say(":%d", f == g);
    MUST(cuDevicePrimaryCtxRetain(&b, 1));
    MUST(cuCtxSetCurrent(b));
    ASK(cuLibraryGetModule(&other, lib));
    say(":%d", one == other);
    ASK(cuKernelGetFunction(&f, k));
    say(":%d", f == g);
    ASK(run((CUfunction)k, NULL, NULL));
    ASK(run(f, NULL, NULL));
    ASK(run(g, NULL, NULL));
    ASK(cuCtxSynchronize());
    MUST(cuCtxSetCurrent(a));
    ASK(cuLibraryUnload(lib));
    ASK(cuCtxSynchronize());
}

static void library_without_context(void)
{
    CUlibrary lib;
    CUkernel k;
    CUfunction f;
    CUmodule m;
    CUdeviceptr address;
    size_t bytes, offset;
    unsigned n;
    int value;
    MUST(cuInit(0));
    ASK(cuLibraryLoadData(&lib, kernels_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryGetKernelCount(&n, lib));
    ASK(cuLibraryGetKernel(&k, lib, "add"));
    ASK(cuLibraryGetModule(&m, lib));
    ASK(cuLibraryGetGlobal(&address, &bytes, lib, "gvar"));
    ASK(cuKernelGetFunction(&f, k));
    ASK(cuKernelGetParamInfo(k, 1, &offset, &bytes));
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
    ASK(cuLibraryUnload(lib));
}

static void library_bad(void)
{
    CUlibrary lib;
    CUmodule m;
    CUkernel k;
    unsigned n = NO_SUCH;
    begin();
    ASK(cuLibraryLoadData(&lib, bad_ptx, NULL, NULL, 0, NULL, NULL, 0));
    ASK(cuLibraryGetModule(&m, lib));
    ASK(cuLibraryGetKernel(&k, lib, "k"));
    ASK(cuLibraryGetKernelCount(&n, lib));
    ASK(cuLibraryUnload(lib));
}

static void kernel_attributes(void)
{
    begin();
    CUlibrary lib = library(kernels_ptx);
    CUkernel k;
    int value = -1;
    MUST(cuLibraryGetKernel(&k, lib, "lim256"));
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, 0));
    say(":%d", value);
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, k, 1));
    say(":%d", value);
    ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, k, 0));
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 0));
    say(":%d", value);
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, k, 1));
    say(":%d", value);
    ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300000, k, 0));
    ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NUM_REGS, 3, k, 0));
    ASK(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 0));
    ASK(cuKernelSetCacheConfig(k, (CUfunc_cache)9, 0));
    say(" |");
    ASK(cuKernelGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 0));
    ASK(cuKernelGetAttribute(&value, (CUfunction_attribute)NO_SUCH, k, 0));
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL, 0));
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, k, 2));
    ASK(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, k, -1));
    ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, NULL, 0));
    ASK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0, k, 2));
    ASK(cuKernelSetCacheConfig(NULL, CU_FUNC_CACHE_PREFER_L1, 0));
    ASK(cuKernelSetCacheConfig(k, CU_FUNC_CACHE_PREFER_L1, 2));
}

static void kernel_params(void)
{
    size_t offset = NO_SUCH, bytes = NO_SUCH;
    CUkernel k;
    begin();
    CUlibrary lib = library(kernels_ptx);
    MUST(cuLibraryGetKernel(&k, lib, "add"));
    ASK(cuKernelGetParamInfo(k, 1, &offset, &bytes));
    say(":%zu+%zu", offset, bytes);
    ASK(cuKernelGetParamInfo(k, 0, &offset, NULL));
    ASK(cuKernelGetParamInfo(k, 0, NULL, &bytes));
    ASK(cuKernelGetParamInfo(k, 2, &offset, &bytes));
    ASK(cuKernelGetParamInfo(NULL, 0, &offset, &bytes));
}

/* ---- options of the compiler ---- */

static CUresult load_with(CUjit_option option, void *value, void **after)
{
    CUmodule module;
    CUresult result = cuModuleLoadDataEx(&module, kernels_ptx, 1, &option, &value);
    if (after)
        *after = value;
    return result;
}

/* Or belongs to one that does. */
static int takes_pointer(int option)
{
    return option == CU_JIT_INFO_LOG_BUFFER || option == CU_JIT_ERROR_LOG_BUFFER ||
           (option >= CU_JIT_GLOBAL_SYMBOL_NAMES && option <= CU_JIT_GLOBAL_SYMBOL_COUNT) ||
           (option >= CU_JIT_REFERENCED_KERNEL_NAMES && option <= CU_JIT_REFERENCED_VARIABLE_COUNT);
}

/* Zero threads a block divide the driver by zero. */
static void jit_numbers(void)
{
    begin();
    for (int option = -1; option < 40; option++)
        if (!takes_pointer(option) && option != CU_JIT_THREADS_PER_BLOCK)
            say(" %d:%d", option, (int)load_with((CUjit_option)option, NULL, NULL));
}

static void jit_numbers_one(void)
{
    begin();
    for (int option = -1; option < 40; option++)
        if (!takes_pointer(option))
            say(" %d:%d", option, (int)load_with((CUjit_option)option, (void *)1, NULL));
}

static void jit_each(CUjit_option option, const int *values, size_t n)
{
    begin();
    for (size_t i = 0; i < n; i++)
        say(" %d:%d", values[i], (int)load_with(option, (void *)(intptr_t)values[i], NULL));
}

#define JIT_CASE(name, option, ...)                               \
    static void name(void)                                        \
    {                                                             \
        static const int values[] = {__VA_ARGS__};                \
        jit_each(option, values, sizeof values / sizeof *values); \
    }

JIT_CASE(jit_optimization, CU_JIT_OPTIMIZATION_LEVEL, 0, 1, 2, 3, 4, 5, 100, -1)
JIT_CASE(jit_registers, CU_JIT_MAX_REGISTERS, 0, 1, 8, 16, 24, 32, 64, 255, 256, 1000, -1)
JIT_CASE(jit_threads, CU_JIT_THREADS_PER_BLOCK, 1, 32, 128, 1024, 1025, 100000)
JIT_CASE(jit_target, CU_JIT_TARGET, 0, 1, 20, 30, 50, 52, 70, 75, 80, 86, 89, 90, 100, 120, 900, -1)
JIT_CASE(jit_fallback, CU_JIT_FALLBACK_STRATEGY, 0, 1, 2, 3, -1)
JIT_CASE(jit_cache, CU_JIT_CACHE_MODE, 0, 1, 2, 3, -1)
JIT_CASE(jit_debug, CU_JIT_GENERATE_DEBUG_INFO, 0, 1, 2, -1)
JIT_CASE(jit_line, CU_JIT_GENERATE_LINE_INFO, 0, 1, 2, -1)
JIT_CASE(jit_verbose, CU_JIT_LOG_VERBOSE, 0, 1, 2, -1)
JIT_CASE(jit_lto, CU_JIT_LTO, 0, 1, 2)
JIT_CASE(jit_min_blocks, CU_JIT_MIN_CTA_PER_SM, 0, 1, 2, 32, 100, -1)
JIT_CASE(jit_max_threads, CU_JIT_MAX_THREADS_PER_BLOCK, 0, 1, 128, 1024, 2000)
JIT_CASE(jit_split, CU_JIT_SPLIT_COMPILE, 0, 1, 4, -1)
JIT_CASE(jit_position, CU_JIT_POSITION_INDEPENDENT_CODE, 0, 1, -1, -2, 2)

static void jit_threads_answer(void)
{
    void *after = NULL;
    begin();
    ASK(load_with(CU_JIT_THREADS_PER_BLOCK, (void *)128, &after));
    say(":%lld", (long long)(intptr_t)after);
    ASK(load_with(CU_JIT_OPTIMIZATION_LEVEL, (void *)2, &after));
    say(":%lld", (long long)(intptr_t)after);
}

static void jit_twice(void)
{
    CUmodule module;
    CUjit_option options[] = {CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_OPTIMIZATION_LEVEL};
    void *values[] = {(void *)1, (void *)2}, *wrong[] = {(void *)1, (void *)9};
    begin();
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 2, options, values));
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 2, options, wrong));
    CUjit_option both[] = {CU_JIT_TARGET, CU_JIT_TARGET_FROM_CUCONTEXT};
    void *of_both[] = {(void *)90, (void *)1};
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 2, both, of_both));
    CUjit_option registers[] = {CU_JIT_MAX_REGISTERS, CU_JIT_THREADS_PER_BLOCK};
    void *of_registers[] = {(void *)32, (void *)128};
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 2, registers, of_registers));
    CUjit_option debug[] = {CU_JIT_GENERATE_DEBUG_INFO, CU_JIT_OPTIMIZATION_LEVEL};
    void *of_debug[] = {(void *)1, (void *)3};
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 2, debug, of_debug));
}

/* The error log in buffers of every small size. */
static void jit_log_sizes(void)
{
    static const size_t sizes[] = {1, 2, 3, 10, 50, 100, 120, 130, 140, 145, 146, 147, 148, 149, 200, 4096};
    begin();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        static char log[8192];
        CUmodule module;
        CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
        void *values[] = {log, (void *)sizes[i]};
        memset(log, 'z', sizeof log);
        CUresult result = cuModuleLoadDataEx(&module, bad_ptx, 2, options, values);
        size_t end = strcspn(log, "z");
        say(" %zu:%d,%zu,%zu,%zu", sizes[i], (int)result, (size_t)(uintptr_t)values[1], strlen(log), end);
    }
}

static void jit_log_order(void)
{
    static char log[256], info[256];
    CUmodule module;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER};
    void *values[] = {(void *)256, log, (void *)256, info};
    begin();
    memset(log, 'z', sizeof log);
    memset(info, 'z', sizeof info);
    ASK(cuModuleLoadDataEx(&module, bad_ptx, 4, options, values));
    say(":%zu,%d %zu,%d %.60s", (size_t)(uintptr_t)values[0], log[0] != 'z', (size_t)(uintptr_t)values[2],
        info[0], log);
    memset(log, 'z', sizeof log);
    memset(info, 'z', sizeof info);
    values[0] = values[2] = (void *)256;
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 4, options, values));
    say(":%zu,%d %zu,%d", (size_t)(uintptr_t)values[0], log[0], (size_t)(uintptr_t)values[2], info[0]);
}

static void jit_log_without(void)
{
    static char log[256] = "zzz";
    CUmodule module;
    CUjit_option buffer = CU_JIT_ERROR_LOG_BUFFER, size = CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES;
    void *value = log, *bytes = (void *)256;
    begin();
    ASK(cuModuleLoadDataEx(&module, bad_ptx, 1, &buffer, &value));
    say(":%.3s", log);
    ASK(cuModuleLoadDataEx(&module, bad_ptx, 1, &size, &bytes));
    say(":%zu", (size_t)(uintptr_t)bytes);
    ASK(cuModuleLoadDataEx(&module, kernels_ptx, 1, &size, &bytes));
    say(":%zu", (size_t)(uintptr_t)bytes);
    CUjit_option both[] = {buffer, size};
    void *none[] = {NULL, (void *)256};
    ASK(cuModuleLoadDataEx(&module, bad_ptx, 2, both, none));
    say(":%zu", (size_t)(uintptr_t)none[1]);
}

static void jit_log_image(void)
{
    static char log[256] = "zzz";
    CUmodule module;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)256};
    begin();
    ASK(cuModuleLoadDataEx(&module, "garbage", 2, options, values));
    say(":%.3s,%zu", log, (size_t)(uintptr_t)values[1]);
}

static void jit_wall_time(void)
{
    float ms = -1;
    void *after = NULL;
    begin();
    ASK(load_with(CU_JIT_WALL_TIME, NULL, &after));
    memcpy(&ms, &after, sizeof ms);
    say(" %d", ms >= 0);
}

/* ---- linking ---- */

static const char caller[] = PTX(".extern .func (.param .b32 r) twice(.param .b32 a);\n"
                                 ".visible .entry k(.param .u64 p)\n{\n"
                                 ".reg .u64 %a<2>; .reg .u32 %r<3>;\n"
                                 ".param .b32 to; .param .b32 from;\n"
                                 "ld.param.u64 %a1, [p];\nmov.u32 %r1, 21;\n"
                                 "st.param.b32 [to], %r1;\n"
                                 "call.uni (from), twice, (to);\nld.param.b32 %r2, [from];\n"
                                 "st.global.u32 [%a1], %r2;\nret;\n}\n");
static const char callee[] = PTX(".visible .func (.param .b32 r) twice(.param .b32 a)\n{\n"
                                 ".reg .u32 %r<3>;\nld.param.b32 %r1, [a];\nadd.u32 %r2, %r1, %r1;\n"
                                 "st.param.b32 [r], %r2;\nret;\n}\n");

static CUlinkState new_link(void)
{
    CUlinkState link;
    MUST(cuLinkCreate_v2(0, NULL, NULL, &link));
    return link;
}

static CUresult add_ptx(CUlinkState link, const char *ptx)
{
    return cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)ptx, strlen(ptx) + 1, "name", 0, NULL,
                            NULL);
}

static void link_right(void)
{
    void *cubin = NULL, *again = NULL;
    size_t bytes = 0, more = 0;
    CUmodule module;
    begin();
    CUlinkState link = new_link();
    ASK(add_ptx(link, caller));
    ASK(add_ptx(link, callee));
    ASK(cuLinkComplete(link, &cubin, &bytes));
    say(":%d", bytes > 64);
    ASK(cuModuleLoadData(&module, cubin));
    ASK(cuLinkComplete(link, &again, &more));
    say(":%d", again == cubin && more == bytes);
    ASK(add_ptx(link, kernels_ptx));
    ASK(cuLinkDestroy(link));
    CUdeviceptr p = memory(4);
    ASK(run(function(module, "k"), NULL, (void *[]){&p}));
    say(" %u", word_at(p));
}

static void link_order(void)
{
    void *cubin;
    size_t bytes;
    begin();
    CUlinkState link = new_link();
    ASK(cuLinkComplete(link, &cubin, &bytes));
    say(":%d", bytes > 0);
    ASK(cuLinkDestroy(link));
    ASK(cuLinkDestroy(NULL));
    ASK(cuLinkComplete(NULL, &cubin, &bytes));
    ASK(add_ptx(NULL, callee));
    ASK(cuLinkAddFile_v2(NULL, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL));
    ASK(cuLinkCreate_v2(0, NULL, NULL, NULL));
    ASK(cuLinkCreate_v2(1, NULL, NULL, &link));
}

static void link_wrong(void)
{
    void *cubin;
    size_t bytes;
    begin();
    CUlinkState link = new_link();
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, NULL, 10, "n", 0, NULL, NULL));
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)callee, 0, "n", 0, NULL, NULL));
    ASK(cuLinkAddData_v2(link, (CUjitInputType)-1, (void *)(uintptr_t)callee, sizeof callee, "n", 0, NULL,
                         NULL));
    ASK(cuLinkAddData_v2(link, CU_JIT_NUM_INPUT_TYPES, (void *)(uintptr_t)callee, sizeof callee, "n", 0, NULL,
                         NULL));
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, (void *)(uintptr_t)callee, sizeof callee, "n", 0, NULL,
                         NULL));
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_FATBINARY, (void *)(uintptr_t)callee, sizeof callee, "n", 0, NULL,
                         NULL));
    ASK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)callee, sizeof callee, NULL, 0, NULL,
                         NULL));
    ASK(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, NULL, 0, NULL, NULL));
    ASK(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, "/nonexistent", 0, NULL, NULL));
    ASK(cuLinkComplete(link, NULL, &bytes));
    ASK(cuLinkComplete(link, &cubin, NULL));
    ASK(cuLinkComplete(link, &cubin, &bytes));
}

static void link_after_error(void)
{
    void *cubin;
    size_t bytes;
    begin();
    CUlinkState link = new_link();
    ASK(add_ptx(link, bad_ptx));
    ASK(add_ptx(link, callee));
    ASK(cuLinkComplete(link, &cubin, &bytes));
    ASK(cuLinkDestroy(link));
}

static void link_unresolved(void)
{
    static char log[512] = "zzz";
    void *cubin;
    size_t bytes;
    CUlinkState link;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)512};
    begin();
    ASK(cuLinkCreate_v2(2, options, values, &link));
    ASK(add_ptx(link, caller));
    ASK(cuLinkComplete(link, &cubin, &bytes));
    say(":%s,%d", log, (int)(uintptr_t)values[1]);
    ASK(add_ptx(link, callee));
    ASK(cuLinkComplete(link, &cubin, &bytes));
}

static void link_duplicate(void)
{
    static char log[512] = "zzz";
    void *cubin;
    size_t bytes;
    CUlinkState link;
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)512};
    begin();
    ASK(cuLinkCreate_v2(2, options, values, &link));
    ASK(add_ptx(link, callee));
    ASK(add_ptx(link, callee));
    ASK(cuLinkComplete(link, &cubin, &bytes));
    say(":%s,%d", log, (int)(uintptr_t)values[1]);
}

static void link_options(void)
{
    CUlinkState link;
    begin();
    for (int option = -1; option < 40; option++) {
        CUjit_option o = (CUjit_option)option;
        void *value = NULL;
        if (takes_pointer(option) || option == CU_JIT_THREADS_PER_BLOCK)
            continue;
        say(" %d:%d", option, (int)cuLinkCreate_v2(1, &o, &value, &link));
    }
}

static void link_target(void)
{
    static const int targets[] = {0, 20, 50, 75, 80, 90, 100, 120, 999};
    begin();
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        CUlinkState link;
        CUjit_option option = CU_JIT_TARGET;
        void *value = (void *)(intptr_t)targets[i], *cubin;
        size_t bytes;
        CUresult result = cuLinkCreate_v2(1, &option, &value, &link);
        say(" %d:%d", targets[i], (int)result);
        if (result)
            continue;
        ASK(add_ptx(link, callee));
        ASK(cuLinkComplete(link, &cubin, &bytes));
        ASK(cuLinkDestroy(link));
    }
}

static const fact facts[] = {
    FACT(module_functions),
    FACT(module_wrong),
    FACT(module_empty),
    FACT(module_loading_mode),
    FACT(module_loading_mode_eager),
    FACT(module_globals),
    FACT(module_managed),
    FACT(module_other_context),
    FACT(module_unload_running),
    FACT(library_kernels),
    FACT(library_wrong),
    FACT(library_options),
    FACT(library_modules),
    FACT(library_without_context),
    FACT(library_bad),
    FACT(kernel_attributes),
    FACT(kernel_params),
    FACT(jit_numbers),
    FACT(jit_numbers_one),
    FACT(jit_optimization),
    FACT(jit_registers),
    FACT(jit_threads),
    FACT(jit_target),
    FACT(jit_fallback),
    FACT(jit_cache),
    FACT(jit_debug),
    FACT(jit_line),
    FACT(jit_verbose),
    FACT(jit_lto),
    FACT(jit_min_blocks),
    FACT(jit_max_threads),
    FACT(jit_split),
    FACT(jit_position),
    FACT(jit_threads_answer),
    FACT(jit_twice),
    FACT(jit_log_sizes),
    FACT(jit_log_order),
    FACT(jit_log_without),
    FACT(jit_log_image),
    FACT(jit_wall_time),
    FACT(link_right),
    FACT(link_order),
    FACT(link_wrong),
    FACT(link_after_error),
    FACT(link_unresolved),
    FACT(link_duplicate),
    FACT(link_options),
    FACT(link_target),
};
FACTS_MAIN(facts)
