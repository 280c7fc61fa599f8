/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that facts are asked with, and how they are come by. */
#ifndef SOFTCUDA_FACTS_KERNELS_H
#define SOFTCUDA_FACTS_KERNELS_H

#include "tests/softcuda/facts/facts.h"

#define PTX(body) ".version 7.0\n.target sm_75\n.address_size 64\n" body

/* nul: nothing. add: *p += v. fault: writes to address 0. */
static const char kernels_ptx[] = PTX(".visible .global .align 4 .u32 gvar[4] = {1, 2, 3, 4};\n"
                                      ".visible .const .align 4 .u32 cvar = 9;\n"
                                      ".visible .entry nul() { ret; }\n"
                                      ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
                                      ".reg .u64 %a<3>; .reg .u32 %r<3>;\n"
                                      "ld.param.u64 %a1, [p];\nld.param.u32 %r1, [v];\n"
                                      "cvta.to.global.u64 %a2, %a1;\n"
                                      "atom.global.add.u32 %r2, [%a2], %r1;\nret;\n}\n"
                                      ".visible .entry fault()\n{\n"
                                      ".reg .u64 %a<2>; .reg .u32 %r<2>;\n"
                                      "mov.u64 %a1, 0;\nmov.u32 %r1, 1;\nst.global.u32 [%a1], %r1;\nret;\n}\n"
                                      ".visible .entry lim256() .maxntid 256, 1, 1 { ret; }\n"
                                      ".visible .entry req64() .reqntid 64, 1, 1 { ret; }\n");

static inline CUmodule load(const char *ptx)
{
    CUmodule module;
    MUST(cuModuleLoadData(&module, ptx));
    return module;
}

static inline CUfunction function(CUmodule module, const char *name)
{
    CUfunction f;
    MUST(cuModuleGetFunction(&f, module, name));
    return f;
}

/* One of kernels_ptx in a module of its own. */
static inline CUfunction kernel(const char *name)
{
    return function(load(kernels_ptx), name);
}

/* One block of one thread. */
static inline CUresult run(CUfunction f, CUstream stream, void **params)
{
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static inline CUstream new_stream(unsigned flags)
{
    CUstream stream;
    MUST(cuStreamCreate(&stream, flags));
    return stream;
}

static inline CUevent new_event(unsigned flags)
{
    CUevent event;
    MUST(cuEventCreate(&event, flags));
    return event;
}

/* Device memory, zeroed. */
static inline CUdeviceptr memory(size_t bytes)
{
    CUdeviceptr address;
    MUST(cuMemAlloc_v2(&address, bytes));
    MUST(cuMemsetD8_v2(address, 0, bytes));
    MUST(cuCtxSynchronize()); /* a fill need not be done when it returns */
    return address;
}

static inline unsigned word_at(CUdeviceptr address)
{
    unsigned word = 0;
    MUST(cuMemcpyDtoH_v2(&word, address, sizeof word));
    return word;
}

#define NO_SUCH 99

/* A row of a family's table, which is named after its function. */
#define FACT(name)  \
    {               \
#name, name \
    }

#endif
