/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that do what they should not: they are told so, and nobody falls. */
#include <string.h>
#include <unistd.h>

#include "tests/softcuda/start.h"

/* write_until: writes to `to` until the word at `flag` is not 0; before that, 1 to the word behind the flag.
 */
static const char ptx[] = HEADER ".visible .entry write_until(.param .u64 to, .param .u64 flag)\n"
                                 "{\n"
                                 "    .reg .b64 %to, %flag; .reg .b32 %n; .reg .pred %go_on;\n"
                                 "    ld.param.u64 %to, [to];\n"
                                 "    ld.param.u64 %flag, [flag];\n"
                                 "    st.volatile.global.u32 [%flag+4], 1;\n"
                                 "L:  st.volatile.global.u32 [%to], 1;\n"
                                 "    ld.volatile.global.u32 %n, [%flag];\n"
                                 "    setp.eq.u32 %go_on, %n, 0;\n"
                                 "    @%go_on bra L;\n"
                                 "    ret;\n"
                                 "}\n";

static unsigned destroyed;

static void count_destroyed(void *unused)
{
    (void)unused;
    destroyed++;
}

static CUstream stream_alone(void)
{
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

/* ---- graphs ---- */

START_TEST(more_references_given_back_than_there_are)
{
    CUgraph graph, copy;
    CUgraphExec exec;
    CUuserObject object;
    start("sm_90");
    OK(cuGraphCreate(&graph, 0));
    OK(cuUserObjectCreate(&object, NULL, count_destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(graph, object, 1, 0));
    OK(cuUserObjectRelease(object, 2));
    ck_assert_uint_eq(destroyed, 1);
    OK(cuGraphClone(&copy, graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    OK(cuGraphDestroy(copy));
    OK(cuGraphExecDestroy(exec));
    ck_assert_uint_eq(destroyed, 1);
}
END_TEST

START_TEST(a_child_graph_is_its_nodes_to_destroy)
{
    CUgraph graph, empty, child;
    CUgraphNode node;
    CUgraphExec exec;
    start("sm_90");
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&empty, 0));
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, empty));
    OK(cuGraphChildGraphNodeGetGraph(node, &child));
    IS(INVALID_VALUE, cuGraphDestroy(child));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    IS(INVALID_VALUE, cuGraphDestroy(child));
    OK(cuGraphDestroy(empty));
}
END_TEST

static CUgraphExec end_capture(CUstream stream)
{
    CUgraph graph;
    CUgraphExec exec;
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

/* ---- memory that is gone when it is touched ---- */

START_TEST(words_where_there_is_no_memory)
{
    start("sm_90");
    CUstream stream = stream_alone();
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamWriteValue32_v2(stream, 4096, 1, 0));
    OK(cuGraphLaunch(end_capture(stream), stream));
    IS(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}
END_TEST

START_TEST(a_copy_from_memory_that_is_gone)
{
    start("sm_90");
    CUstream stream = stream_alone();
    CUdeviceptr p = zeros(1);
    void *host = pinned_zeros(1);
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemcpyHtoDAsync_v2(p, host, 4, stream));
    CUgraphExec exec = end_capture(stream);
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFreeHost(host));
    OK(cuGraphLaunch(exec, stream));
    IS(LAUNCH_FAILED, cuStreamSynchronize(stream));
}
END_TEST

enum { BYTES = 2 << 20 };

static CUdeviceptr mapped(void)
{
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemAddressReserve(&p, BYTES, 0, 0, 0));
    OK(cuMemCreate(&handle, BYTES, &prop, 0));
    OK(cuMemMap(p, BYTES, 0, handle, 0));
    OK(cuMemSetAccess(p, BYTES, &access, 1));
    OK(cuMemRelease(handle));
    return p;
}

START_TEST(a_fill_of_memory_that_is_gone)
{
    start("sm_90");
    CUstream stream = stream_alone();
    CUdeviceptr p = mapped();
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(p, 0, BYTES, stream));
    CUgraphExec exec = end_capture(stream);
    OK(cuMemUnmap(p, BYTES));
    OK(cuGraphLaunch(exec, stream));
    IS(ILLEGAL_ADDRESS, cuStreamSynchronize(stream));
}
END_TEST

/* Returns when the kernel has begun to write. */
static void begin_writing(CUdeviceptr to, volatile unsigned *flag, CUstream stream)
{
    CUdeviceptr at = (uintptr_t)flag;
    void *params[] = {&to, &at};
    OK(cuLaunchKernel(load(ptx, "write_until"), 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    while (!flag[1])
        usleep(100);
}

START_TEST(memory_unmapped_under_a_kernel)
{
    start("sm_90");
    CUstream stream = stream_alone();
    volatile unsigned *flag = pinned_zeros(2);
    CUdeviceptr p = mapped(), again;
    begin_writing(p, flag, stream);
    OK(cuMemUnmap(p, BYTES));
    usleep(10000);
    OK(cuMemAddressFree(p, BYTES));
    usleep(10000);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    OK(cuMemAddressReserve(&again, BYTES, 0, p, 0)); /* nothing holds the addresses any more */
    ck_assert_uint_eq(again, p);
}
END_TEST

START_TEST(memory_of_another_context_freed_under_a_kernel)
{
    CUcontext own = start("sm_90"), other;
    CUstream stream = stream_alone();
    volatile unsigned *flag = pinned_zeros(2);
    OK(cuCtxCreate_v2(&other, 0, 0));
    unsigned *freed = pinned_zeros(1), *ended = pinned_zeros(1);
    OK(cuCtxSetCurrent(own));
    begin_writing((uintptr_t)freed, flag, stream);
    OK(cuMemFreeHost(freed));
    usleep(10000);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
    *flag = flag[1] = 0;
    begin_writing((uintptr_t)ended, flag, stream);
    OK(cuCtxDestroy_v2(other));
    usleep(10000);
    *flag = 1;
    OK(cuStreamSynchronize(stream));
}
END_TEST

/* ---- kernels without an end ---- */

/* A fault of another kernel ends it: else no context that it runs in could be ended. */
START_TEST(a_kernel_without_an_end_ends_with_a_fault)
{
    static const char trap[] = HEADER ".visible .entry fault() { trap; }\n";
    CUcontext own = start("sm_90,sm_90"), other;
    volatile unsigned *flag = pinned_zeros(2);
    begin_writing(zeros(1), flag, stream_alone());
    OK(cuCtxCreate_v2(&other, 0, 1));
    OK(cuLaunchKernel(load(trap, "fault"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    IS(LAUNCH_FAILED, cuCtxSynchronize());
    OK(cuCtxSetCurrent(own));
    IS(LAUNCH_FAILED, cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset_v2(0));
}
END_TEST

/* ---- files ---- */

/* A file of a tebibyte, none of which is on the disk. */
START_TEST(a_file_larger_than_any_image)
{
    char path[] = "/tmp/hostile_test.XXXXXX";
    CUmodule module;
    CUlibrary library;
    start("sm_90");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    if (ftruncate(file, (off_t)1 << 40) == 0) {
        IS(OUT_OF_MEMORY, cuModuleLoad(&module, path));
        IS(OUT_OF_MEMORY, cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    }
    unlink(path);
    close(file);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        more_references_given_back_than_there_are,
        a_child_graph_is_its_nodes_to_destroy,
        words_where_there_is_no_memory,
        a_copy_from_memory_that_is_gone,
        a_fill_of_memory_that_is_gone,
        memory_unmapped_under_a_kernel,
        memory_of_another_context_freed_under_a_kernel,
        a_kernel_without_an_end_ends_with_a_fault,
        a_file_larger_than_any_image,
    };
    return run_tests("softcuda hostile", tests, KR_COUNT(tests)) != 0;
}
