/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs beside what. Nothing here is decided by time: kernels and the host wait for each other, so a test
 * ends only if they run at once, or one holds a kernel and looks at what has not happened yet. Expected: the
 * CUDA driver API reference ("API synchronization behavior", "Stream synchronization behavior").
 */
#include <pthread.h>
#include <string.h>

#include "tests/softcuda/start.h"

/*
 * meet(mine, theirs): mine[0] = 1, then waits until theirs[0] is not 0.
 * add(p, n): p[0] += n.
 */
static const char ptx[] =
    HEADER ".visible .entry meet(.param .u64 mine, .param .u64 theirs)\n"
           "{\n"
           "    .reg .pred %p; .reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
           "    ld.param.u64 %rd1, [mine]; ld.param.u64 %rd2, [theirs];\n"
           "    mov.u32 %r1, 1; st.volatile.global.u32 [%rd1], %r1;\n"
           "again:\n"
           "    ld.volatile.global.u32 %r1, [%rd2];\n"
           "    setp.eq.u32 %p, %r1, 0;\n"
           "    @%p bra again;\n"
           "    ret;\n"
           "}\n"
           ".visible .entry add(.param .u64 p, .param .u32 n)\n"
           "{\n"
           "    .reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
           "    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
           "    ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, %r1; st.global.u32 [%rd1], %r2; ret;\n"
           "}\n";

typedef CUresult launcher(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          CUstream, void **, void **);

static void meet_by(launcher *launch, CUfunction meet, unsigned *mine, unsigned *theirs, CUstream stream)
{
    void *params[] = {&mine, &theirs};
    OK(launch(meet, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static void meet_in(CUfunction meet, unsigned *mine, unsigned *theirs, CUstream stream)
{
    meet_by(cuLaunchKernel, meet, mine, theirs, stream);
}

static void add_in(CUfunction add, CUdeviceptr p, unsigned n, CUstream stream)
{
    void *params[] = {&p, &n};
    OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

static unsigned see(const unsigned *flag)
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static void await(const unsigned *flag)
{
    while (!see(flag))
        ;
}

static void release(unsigned *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

/* What must not run yet gets its chance: a good driver passes however long this is. */
static void work_beside(CUfunction meet, unsigned *set)
{
    CUstream beside;
    OK(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 100; i++) {
        meet_in(meet, set, set, beside);
        OK(cuStreamSynchronize(beside));
    }
    OK(cuStreamDestroy_v2(beside));
}

static CUstream stream_of(unsigned flags)
{
    CUstream stream;
    OK(cuStreamCreate(&stream, flags));
    return stream;
}

/* A program that forgets to synchronise sees what was there before. */
START_TEST(the_host_goes_on_and_sees_stale_data)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet"), add = load(ptx, "add");
    unsigned *flags = pinned_zeros(2), *result = pinned_zeros(1);
    CUdeviceptr p = zeros(1);
    CUstream s = stream_of(CU_STREAM_NON_BLOCKING), beside = stream_of(CU_STREAM_NON_BLOCKING);
    CUevent event;
    OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    meet_in(meet, &flags[0], &flags[1], s);
    add_in(add, p, 7, s);
    OK(cuMemcpyDtoHAsync_v2(result, p, 4, s));
    OK(cuEventRecord(event, s));
    await(&flags[0]); /* the kernel runs, and so does the host */
    IS(NOT_READY, cuStreamQuery(s));
    IS(NOT_READY, cuEventQuery(event));
    ck_assert_uint_eq(see(result), 0);
    ck_assert_uint_eq(word(p, 0), 0); /* by the legacy stream, which a non-blocking one does not hold up */
    unsigned *copied = pinned_zeros(1);
    OK(cuMemcpyDtoHAsync_v2(copied, p, 4, beside));
    OK(cuStreamSynchronize(beside));
    ck_assert_uint_eq(*copied, 0);
    release(&flags[1]);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(*result, 7);
    OK(cuEventQuery(event));
}
END_TEST

/* Kernels that end only if both run at once. */
START_TEST(kernels_of_two_streams_overlap)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(2);
    meet_in(meet, &flags[0], &flags[1], stream_of(CU_STREAM_NON_BLOCKING));
    meet_in(meet, &flags[1], &flags[0], stream_of(CU_STREAM_DEFAULT));
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(kernels_of_many_streams_overlap_on_one_thread_each)
{
    enum { STREAMS = 16 };
    setenv("KREGISTRY_SOFTCUDA_THREADS", "1", 1);
    start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(STREAMS);
    for (int i = 0; i < STREAMS; i++)
        meet_in(meet, &flags[i], &flags[(i + 1) % STREAMS], stream_of(CU_STREAM_NON_BLOCKING));
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(kernels_of_two_devices_overlap)
{
    CUcontext first = start("sm_90,sm_75"), second;
    CUfunction here = load(ptx, "meet");
    unsigned *flags = pinned_zeros(2);
    CUdeviceptr managed;
    OK(cuMemAllocManaged(&managed, 8, CU_MEM_ATTACH_GLOBAL));
    unsigned *shared = (unsigned *)(uintptr_t)managed;
    shared[0] = shared[1] = 0;
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    CUfunction there = load(ptx, "meet");
    meet_in(there, &flags[1], &flags[0], NULL);
    meet_in(there, &shared[0], &shared[1], NULL);
    OK(cuCtxSetCurrent(first));
    meet_in(here, &flags[0], &flags[1], NULL);
    meet_in(here, &shared[1], &shared[0], NULL);
    OK(cuCtxSynchronize());
    OK(cuCtxSetCurrent(second));
    OK(cuCtxSynchronize());
}
END_TEST

/* In one stream a kernel comes after the other: the second has not begun while the first waits. */
START_TEST(kernels_of_one_stream_do_not)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(4);
    CUstream s = stream_of(CU_STREAM_NON_BLOCKING);
    meet_in(meet, &flags[0], &flags[1], s);
    meet_in(meet, &flags[2], &flags[0], s); /* would end at once, if it began */
    await(&flags[0]);
    work_beside(meet, &flags[3]);
    ck_assert_uint_eq(see(&flags[2]), 0);
    release(&flags[1]);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(flags[2], 1);
}
END_TEST

START_TEST(a_non_blocking_stream_runs_beside_the_legacy_one)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(2);
    meet_in(meet, &flags[0], &flags[1], NULL);
    meet_in(meet, &flags[1], &flags[0], stream_of(CU_STREAM_NON_BLOCKING));
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(a_blocking_stream_does_not)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(4);
    CUstream blocking = stream_of(CU_STREAM_DEFAULT);
    meet_in(meet, &flags[0], &flags[1], NULL);
    meet_in(meet, &flags[2], &flags[0], blocking);
    await(&flags[0]);
    work_beside(meet, &flags[3]);
    ck_assert_uint_eq(see(&flags[2]), 0);
    IS(NOT_READY, cuStreamQuery(blocking));
    release(&flags[1]);
    OK(cuStreamSynchronize(blocking));
    ck_assert_uint_eq(flags[2], 1);
}
END_TEST

/* ---- default streams of threads ---- */

typedef struct partner {
    CUcontext context;
    CUfunction meet;
    unsigned *mine, *theirs;
    launcher *launch;
} partner;

static void *launch_as(void *arg)
{
    partner *p = arg;
    OK(cuCtxSetCurrent(p->context));
    meet_by(p->launch, p->meet, p->mine, p->theirs, NULL);
    return NULL;
}

static void on_a_thread(partner *p)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, launch_as, p), 0);
    pthread_join(thread, NULL);
}

START_TEST(per_thread_streams_of_two_threads_overlap)
{
    CUcontext context = start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(2);
    partner a = {context, meet, &flags[0], &flags[1], cuLaunchKernel_ptsz};
    partner b = {context, meet, &flags[1], &flags[0], cuLaunchKernel_ptsz};
    on_a_thread(&a);
    on_a_thread(&b);
    OK(cuCtxSynchronize());
}
END_TEST

/* All threads share the legacy stream, and a per-thread one comes after it as a blocking one does. */
START_TEST(the_legacy_stream_is_one_for_all_threads)
{
    static launcher *const second[] = {cuLaunchKernel, cuLaunchKernel_ptsz};
    CUcontext context = start("sm_90");
    CUfunction meet = load(ptx, "meet");
    for (size_t i = 0; i < KR_COUNT(second); i++) {
        unsigned *flags = pinned_zeros(4);
        partner a = {context, meet, &flags[0], &flags[1], cuLaunchKernel};
        partner b = {context, meet, &flags[2], &flags[0], second[i]};
        on_a_thread(&a);
        on_a_thread(&b);
        await(&flags[0]);
        work_beside(meet, &flags[3]);
        ck_assert_uint_eq(see(&flags[2]), 0);
        release(&flags[1]);
        OK(cuCtxSynchronize());
        ck_assert_uint_eq(flags[2], 1);
    }
}
END_TEST

/* ---- copies ---- */

/* Pinned memory is read when the copy's turn comes, pageable memory before the call returns. */
START_TEST(what_an_asynchronous_copy_reads)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(2), *pinned = pinned_zeros(1), pageable = 1;
    CUdeviceptr p = zeros(2);
    CUstream s = stream_of(CU_STREAM_NON_BLOCKING);
    *pinned = 1;
    meet_in(meet, &flags[0], &flags[1], s);
    OK(cuMemcpyHtoDAsync_v2(p, pinned, 4, s));
    OK(cuMemcpyHtoDAsync_v2(p + 4, &pageable, 4, s));
    *pinned = pageable = 2;
    release(&flags[1]);
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(word(p, 0), 2);
    ck_assert_uint_eq(word(p, 1), 1);
}
END_TEST

static void *release_later(void *flag)
{
    release(flag);
    return NULL;
}

/* A copy into pageable memory returns when it is done, and so when what stands before it is. */
START_TEST(a_copy_into_pageable_memory_is_done_on_return)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet"), add = load(ptx, "add");
    unsigned *flags = pinned_zeros(2), pageable = 0;
    CUdeviceptr p = zeros(1);
    CUstream s = stream_of(CU_STREAM_NON_BLOCKING);
    meet_in(meet, &flags[0], &flags[1], s);
    add_in(add, p, 5, s);
    await(&flags[0]);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, release_later, &flags[1]), 0);
    OK(cuMemcpyDtoHAsync_v2(&pageable, p, 4, s));
    ck_assert_uint_eq(pageable, 5);
    pthread_join(thread, NULL);
}
END_TEST

/* A fill of managed memory is done on return. */
START_TEST(a_fill_of_managed_memory_waits)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet");
    unsigned *flags = pinned_zeros(2);
    CUdeviceptr managed;
    OK(cuMemAllocManaged(&managed, 4, CU_MEM_ATTACH_GLOBAL));
    meet_in(meet, &flags[0], &flags[1], NULL);
    await(&flags[0]);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, release_later, &flags[1]), 0);
    OK(cuMemsetD32_v2(managed, 5, 1));
    ck_assert_uint_eq(see((unsigned *)(uintptr_t)managed), 5);
    pthread_join(thread, NULL);
}
END_TEST

/* "Each launch is ordered behind [...] any previous launches of this executable graph" (cuGraphLaunch). */
START_TEST(launches_of_one_graph_do_not_overlap)
{
    start("sm_90");
    CUfunction meet = load(ptx, "meet"), add = load(ptx, "add");
    unsigned *flags = pinned_zeros(2), *beside = pinned_zeros(1);
    CUdeviceptr p = zeros(1);
    CUstream one = stream_of(CU_STREAM_NON_BLOCKING), other = stream_of(CU_STREAM_NON_BLOCKING);
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    add_in(add, p, 1, one);
    meet_in(meet, &flags[0], &flags[1], one);
    OK(cuStreamEndCapture(one, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, one));
    OK(cuGraphLaunch(exec, other));
    OK(cuGraphLaunch(exec, CU_STREAM_PER_THREAD));
    OK(cuGraphExecDestroy(exec));
    await(&flags[0]);
    work_beside(meet, beside);
    IS(NOT_READY, cuStreamQuery(other));
    CUstream reader = stream_of(CU_STREAM_NON_BLOCKING);
    unsigned *seen = pinned_zeros(1);
    OK(cuMemcpyDtoHAsync_v2(seen, p, 4, reader));
    OK(cuStreamSynchronize(reader));
    ck_assert_uint_eq(*seen, 1);
    release(&flags[1]);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(word(p, 0), 3);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        the_host_goes_on_and_sees_stale_data,
        kernels_of_two_streams_overlap,
        kernels_of_many_streams_overlap_on_one_thread_each,
        kernels_of_two_devices_overlap,
        kernels_of_one_stream_do_not,
        a_non_blocking_stream_runs_beside_the_legacy_one,
        a_blocking_stream_does_not,
        per_thread_streams_of_two_threads_overlap,
        the_legacy_stream_is_one_for_all_threads,
        what_an_asynchronous_copy_reads,
        a_copy_into_pageable_memory_is_done_on_return,
        a_fill_of_managed_memory_waits,
        launches_of_one_graph_do_not_overlap,
    };
    return run_tests("softcuda asynchrony", tests, KR_COUNT(tests)) != 0;
}
