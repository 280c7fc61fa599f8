/* SPDX-License-Identifier: Apache-2.0 */
/* How a test begins: devices, a kernel, memory. Any answer but success fails the test. */
#ifndef SOFTCUDA_START_H
#define SOFTCUDA_START_H

#include <check.h>
#include <stdlib.h>

#include "runtime/base/base.h"
#include "tests/softcuda/calls.h"

#define OK(call) ck_assert_int_eq((call), CUDA_SUCCESS)
#define IS(code, call) ck_assert_int_eq((call), CUDA_ERROR_##code)

#define HEADER ".version 6.5\n.target sm_75\n.address_size 64\n"

static inline CUcontext start(const char *devices)
{
    CUcontext context;
    setenv("KREGISTRY_SOFTCUDA_DEVICES", devices, 1);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

static inline CUfunction load(const void *image, const char *name)
{
    CUmodule module;
    CUfunction function;
    OK(cuModuleLoadData(&module, image));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline CUdeviceptr zeros(size_t n)
{
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 4 * n));
    OK(cuMemsetD32_v2(p, 0, n));
    OK(cuCtxSynchronize());
    return p;
}

static inline unsigned word(CUdeviceptr p, size_t i)
{
    unsigned value;
    OK(cuMemcpyDtoH_v2(&value, p + 4 * i, 4));
    return value;
}

/* Words that the host and every device see at one address. */
static inline unsigned *pinned_zeros(size_t n)
{
    void *p;
    OK(cuMemHostAlloc(&p, 4 * n, CU_MEMHOSTALLOC_PORTABLE));
    memset(p, 0, 4 * n);
    return p;
}

/* Runs the tests, each in a process of its own. How many failed. */
static inline int run_tests(const char *name, const TTest *const *tests, size_t n)
{
    unsetenv("CUDA_VISIBLE_DEVICES"); /* each test says what it wants to see */
    TCase *cases = tcase_create(name);
    tcase_set_timeout(cases, 60);
    for (size_t i = 0; i < n; i++)
        tcase_add_test(cases, tests[i]);
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

#endif
