/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share devices, contexts, streams, events and modules. What they compute tells whether anything
 * was lost; whether they race is for ThreadSanitizer to say (scripts/test).
 */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/softcuda/calls.h"

#define OK(call) ck_assert_int_eq((call), CUDA_SUCCESS)

enum { N_THREADS = 6, N_STREAMS = 3, ROUNDS = 20, GRID = 4, BLOCK = 64 };

/* count: one more in *p for each thread. store: writes where p points. */
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .entry count(.param .u64 p)\n"
                          "{\n"
                          "    .reg .b64 %rd<2>;\n"
                          "    ld.param.u64 %rd1, [p]; red.global.add.u32 [%rd1], 1; ret;\n"
                          "}\n"
                          ".visible .entry store(.param .u64 p)\n"
                          "{\n"
                          "    .reg .b64 %rd<2>;\n"
                          "    ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret;\n"
                          "}\n";

static CUcontext context;
static CUlibrary library;
static CUmodule module;
static CUfunction count, store;
static CUstream streams[N_STREAMS];
static CUevent event;
static CUdeviceptr counter;
static atomic_uint launched, called;

static void start(void)
{
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_75", 1);
    setenv("KREGISTRY_SOFTCUDA_THREADS", "3", 1);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetFunction(&count, module, "count"));
    OK(cuModuleGetFunction(&store, module, "store"));
    for (int i = 0; i < N_STREAMS; i++)
        OK(cuStreamCreate(&streams[i], i == 0 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc_v2(&counter, 4));
    OK(cuMemsetD32_v2(counter, 0, 1));
}

static void at_once(void *(*work)(void *))
{
    pthread_t threads[N_THREADS];
    for (intptr_t i = 0; i < N_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
}

static CUresult launch(CUfunction function, CUdeviceptr p, CUstream stream)
{
    void *params[] = {&p};
    return cuLaunchKernel(function, GRID, 1, 1, BLOCK, 1, 1, 0, stream, params, NULL);
}

static void *initialise(void *unused)
{
    int n;
    void *function;
    CUcontext own;
    (void)unused;
    OK(cuInit(0));
    OK(cuDeviceGetCount(&n));
    ck_assert_int_eq(n, 2);
    OK(cuGetProcAddress_v2("cuMemAlloc", &function, 12000, 0, NULL));
    OK(cuDevicePrimaryCtxRetain(&own, 0));
    return NULL;
}

START_TEST(initialised_by_all)
{
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_75", 1);
    at_once(initialise);
}
END_TEST

static void called_back(void *unused)
{
    (void)unused;
    atomic_fetch_add(&called, 1);
}

/* Streams, the event, the function's attributes: everything is everybody's. */
static void *share(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < ROUNDS; round++) {
        const CUstream stream = streams[(round + (intptr_t)arg) % N_STREAMS];
        int value;
        OK(launch(count, counter, round % 4 ? stream : NULL));
        atomic_fetch_add(&launched, 1);
        OK(cuEventRecord(event, stream));
        OK(cuStreamWaitEvent(streams[round % N_STREAMS], event, 0));
        OK(cuLaunchHostFunc(stream, called_back, NULL));
        OK(cuFuncSetAttribute(count, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024 * (round + 1)));
        OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, count));
        cuStreamQuery(stream);
        cuEventQuery(event);
        OK(round % 5 ? cuEventSynchronize(event) : cuCtxSynchronize());
    }
    return NULL;
}

START_TEST(streams_of_all)
{
    unsigned result;
    start();
    at_once(share);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(&result, counter, sizeof result));
    ck_assert_uint_eq(result, atomic_load(&launched) * GRID * BLOCK);
    ck_assert_uint_eq(atomic_load(&called), N_THREADS * ROUNDS);
}
END_TEST

/* Memory, modules, contexts, and a library that all of these use. */
static void *come_and_go(void *arg)
{
    for (int round = 0; round < ROUNDS; round++) {
        CUcontext own;
        CUkernel kernel;
        CUdeviceptr p, q;
        CUmodule loaded;
        unsigned result;
        size_t available, total;
        OK(cuCtxCreate_v2(&own, 0, (CUdevice)((round + (intptr_t)arg) % 2)));
        OK(cuMemAlloc_v2(&p, 64));
        OK(cuMemAllocAsync(&q, 1 << 16, NULL));
        OK(cuMemsetD32_v2(p, 0, 1));
        OK(cuModuleLoadData(&loaded, ptx));
        OK(cuLibraryGetKernel(&kernel, library, "count"));
        OK(launch((CUfunction)kernel, p, NULL));
        OK(cuModuleUnload(loaded));
        OK(cuMemcpyDtoH_v2(&result, p, sizeof result));
        ck_assert_uint_eq(result, GRID * BLOCK);
        OK(cuMemFreeAsync(q, NULL));
        OK(cuMemGetInfo_v2(&available, &total));
        OK(cuMemFree_v2(p));
        OK(cuCtxDestroy_v2(own));
    }
    return NULL;
}

START_TEST(contexts_of_each)
{
    start();
    at_once(come_and_go);
}
END_TEST

/* One of them launches what faults; whatever the others then do is answered with success or with the fault.
 */
static void *fault_in_one(void *arg)
{
    OK(cuCtxSetCurrent(context));
    for (int round = 0; round < ROUNDS; round++) {
        const CUstream stream = streams[round % N_STREAMS];
        CUdeviceptr p;
        const CUresult results[] = {
            launch(count, counter, stream),
            arg == NULL && round == ROUNDS / 2 ? launch(store, 4096, stream) : CUDA_SUCCESS,
            cuMemAlloc_v2(&p, 64),
            cuEventRecord(event, stream),
            cuStreamSynchronize(stream),
        };
        for (size_t i = 0; i < sizeof results / sizeof *results; i++)
            ck_assert(results[i] == CUDA_SUCCESS || results[i] == CUDA_ERROR_ILLEGAL_ADDRESS);
    }
    return NULL;
}

START_TEST(a_fault_among_threads)
{
    setenv("KREGISTRY_SOFTCUDA_LOG", "1", 1);
    start();
    at_once(fault_in_one);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

int main(void)
{
    unsetenv("CUDA_VISIBLE_DEVICES");
    TCase *cases = tcase_create("threads");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, initialised_by_all);
    tcase_add_test(cases, streams_of_all);
    tcase_add_test(cases, contexts_of_each);
    tcase_add_test(cases, a_fault_among_threads);
    Suite *suite = suite_create("softcuda threads");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
