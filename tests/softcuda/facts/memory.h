/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs about memory share. */
#ifndef SOFTCUDA_FACTS_MEMORY_H
#define SOFTCUDA_FACTS_MEMORY_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/softcuda/facts/facts.h"

#define UNSET 0xeeeeeeeeeeeeeeeeull
#define GARBAGE 0x123450000ull
#define POINTER(address) ((void *)(uintptr_t)(address))
#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PAGE = 4096, MIB = 1 << 20 };

/* What an address or handle is, compared with the one that it could be. */
static inline void say_is(unsigned long long value, unsigned long long expected)
{
    say(" %s", value == expected ? "same" : value == UNSET ? "unset" : value ? "other" : "null");
}

static inline CUdeviceptr device(size_t bytes)
{
    CUdeviceptr p;
    MUST(cuMemAlloc_v2(&p, bytes));
    return p;
}

static inline CUdeviceptr device_freed(size_t bytes)
{
    CUdeviceptr p = device(bytes);
    MUST(cuMemFree_v2(p));
    return p;
}

static inline CUdeviceptr pinned(size_t bytes)
{
    void *p;
    MUST(cuMemHostAlloc(&p, bytes, 0));
    return ADDRESS(p);
}

static inline CUdeviceptr managed(size_t bytes)
{
    CUdeviceptr p;
    MUST(cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL));
    return p;
}

static inline CUdeviceptr plain(size_t bytes)
{
    void *p = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    if (!p)
        MUST(CUDA_ERROR_OUT_OF_MEMORY);
    memset(p, 0, bytes);
    return ADDRESS(p);
}

static inline CUdeviceptr registered(size_t bytes)
{
    CUdeviceptr p = plain(bytes);
    MUST(cuMemHostRegister_v2(POINTER(p), bytes, 0));
    return p;
}

static inline CUdeviceptr pooled(size_t bytes)
{
    CUdeviceptr p;
    MUST(cuMemAllocAsync(&p, bytes, NULL));
    MUST(cuStreamSynchronize(NULL));
    return p;
}

/* The primary context of the second device, made current. */
static inline CUcontext begin_second(void)
{
    CUcontext context;
    MUST(cuDevicePrimaryCtxRetain(&context, 1));
    MUST(cuCtxSetCurrent(context));
    return context;
}

/* Memory of the second device; the current context stays. */
static inline CUdeviceptr second_device(size_t bytes)
{
    CUcontext before;
    MUST(cuCtxGetCurrent(&before));
    begin_second();
    CUdeviceptr p = device(bytes);
    MUST(cuCtxSetCurrent(before));
    return p;
}

static inline CUstream stream(void)
{
    CUstream s;
    MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

static const char module_text[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                                  ".visible .global .align 4 .b32 words[250];\n"
                                  ".visible .entry fault() { trap; ret; }\n";

/* Ends the process' contexts with a kernel's fault. */
static inline void fault_here(void)
{
    CUmodule module;
    CUfunction function;
    MUST(cuModuleLoadData(&module, module_text));
    MUST(cuModuleGetFunction(&function, module, "fault"));
    MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuCtxSynchronize());
}

#endif
