/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who reaches which memory: what is mapped, what a pool grants, what another process shares. Expected
 * answers: the CUDA driver API reference.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softcuda/calls.h"

#define OK(call) ck_assert_int_eq((call), CUDA_SUCCESS)
#define IS(code, call) ck_assert_int_eq((call), CUDA_ERROR_##code)

enum { BYTES = 2 << 20, WORDS = BYTES / 4 };

/* Adds 3 to the word of each thread. */
static const char bump_ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry bump(.param .u64 p)\n"
    "{\n"
    "    .reg .b32 %r<5>; .reg .b64 %rd<3>;\n"
    "    ld.param.u64 %rd1, [p];\n"
    "    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r1, %r1, %r2, %r3;\n"
    "    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
    "    ld.global.u32 %r4, [%rd1]; add.s32 %r4, %r4, 3; st.global.u32 [%rd1], %r4; ret;\n"
    "}\n";

static void use_device(CUdevice ordinal)
{
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, ordinal));
    OK(cuCtxSetCurrent(context));
}

/* On the current device. */
static CUresult bump(CUdeviceptr p, unsigned words)
{
    CUmodule module;
    CUfunction function;
    void *params[] = {&p};
    OK(cuModuleLoadData(&module, bump_ptx));
    OK(cuModuleGetFunction(&function, module, "bump"));
    OK(cuLaunchKernel(function, words / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    return cuCtxSynchronize();
}

static unsigned word(CUdeviceptr p)
{
    unsigned value;
    OK(cuMemcpyDtoH_v2(&value, p, 4));
    return value;
}

static CUmemGenericAllocationHandle memory_of(CUdevice ordinal, CUmemAllocationHandleType shared)
{
    CUmemGenericAllocationHandle handle;
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = shared,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, ordinal}};
    OK(cuMemCreate(&handle, BYTES, &prop, 0));
    return handle;
}

static void map_at(CUdeviceptr p, CUmemGenericAllocationHandle handle)
{
    OK(cuMemMap(p, BYTES, 0, handle, 0));
}

static void let(CUdevice ordinal, CUdeviceptr p, size_t bytes)
{
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, ordinal},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    OK(cuMemSetAccess(p, bytes, &access, 1));
}

START_TEST(kernels_run_over_mappings)
{
    CUdeviceptr p;
    use_device(0);
    OK(cuMemAddressReserve(&p, 3 * (size_t)BYTES, 0, 0, 0));
    CUmemGenericAllocationHandle first = memory_of(0, 0), second = memory_of(1, 0);
    map_at(p, first);
    map_at(p + BYTES, second);    /* behind it, of another device */
    map_at(p + 2 * BYTES, first); /* and the first again */
    let(0, p, 3 * (size_t)BYTES);
    OK(cuMemRelease(first)); /* the mappings keep it */
    OK(cuMemsetD32_v2(p, 5, 2 * WORDS));
    OK(bump(p, 2 * WORDS));
    ck_assert_uint_eq(word(p + BYTES - 4), 8);
    ck_assert_uint_eq(word(p + 2 * BYTES - 4), 8);
    ck_assert_uint_eq(word(p + 3 * BYTES - 4), 8); /* the same memory as the first */
    OK(cuMemUnmap(p, 3 * (size_t)BYTES));
    IS(INVALID_VALUE, cuMemsetD32_v2(p, 5, 1));
    OK(cuMemAddressFree(p, 3 * (size_t)BYTES));
    OK(cuMemRelease(second));
}
END_TEST

START_TEST(a_mapping_is_for_whom_it_was_granted)
{
    CUdeviceptr p;
    use_device(1);
    OK(cuMemAddressReserve(&p, BYTES, 0, 0, 0));
    map_at(p, memory_of(1, 0));
    let(0, p, BYTES);
    IS(INVALID_VALUE, cuMemsetD32_v2(p, 5, 1)); /* not for the device whose memory it is */
    use_device(0);
    OK(bump(p, 256));
    use_device(1);
    IS(ILLEGAL_ADDRESS, bump(p, 256));
}
END_TEST

START_TEST(unmapped_addresses_fault)
{
    CUdeviceptr p;
    use_device(0);
    OK(cuMemAddressReserve(&p, BYTES, 0, 0, 0));
    IS(ILLEGAL_ADDRESS, bump(p, 256));
}
END_TEST

START_TEST(a_pool_grants_its_memory)
{
    CUmemoryPool pool;
    CUdeviceptr before, after;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    use_device(0);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&before, 1024, NULL));
    OK(cuMemPoolSetAccess(pool, &access, 1));
    OK(cuMemAllocAsync(&after, 1024, NULL));
    OK(cuCtxSynchronize());
    use_device(1);
    OK(bump(before, 256));
    OK(bump(after, 256));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    OK(cuMemPoolSetAccess(pool, &access, 1));
    IS(ILLEGAL_ADDRESS, bump(before, 256));
}
END_TEST

/* In a process of its own: imports what the parent exported, and adds to it. */
static void import_and_bump(int from)
{
    int number;
    char path[64];
    CUdeviceptr p;
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp prop;
    ck_assert_int_eq(read(from, &number, sizeof number), sizeof number);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), number);
    int file = open(path, O_RDWR);
    ck_assert_int_ge(file, 0);
    use_device(0);
    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)file,
                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(file);
    OK(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
    ck_assert_int_eq(prop.location.id, 1);
    OK(cuMemAddressReserve(&p, BYTES, 0, 0, 0));
    map_at(p, handle);
    let(0, p, BYTES);
    OK(bump(p, 256));
}

START_TEST(another_process_shares_it)
{
    int ends[2], file, status;
    CUdeviceptr p;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork(); /* before cuInit */
    if (child == 0) {
        import_and_bump(ends[0]);
        _exit(0);
    }
    use_device(1);
    CUmemGenericAllocationHandle handle = memory_of(1, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    OK(cuMemAddressReserve(&p, BYTES, 0, 0, 0));
    map_at(p, handle);
    let(1, p, BYTES);
    OK(cuMemsetD32_v2(p, 40, WORDS));
    OK(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ck_assert_int_eq(write(ends[1], &file, sizeof file), sizeof file);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(word(p), 43);
    close(file);
}
END_TEST

/* Who shortened it would take pages from under the others. */
START_TEST(shared_memory_keeps_its_size)
{
    int file;
    use_device(0);
    CUmemGenericAllocationHandle handle = memory_of(0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), imported;
    OK(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    ck_assert_int_ne(ftruncate(file, 0), 0);
    ck_assert_int_ne(ftruncate(file, 2 * BYTES), 0);
    close(file);
    file = memfd_create("softcuda.device.0", MFD_CLOEXEC); /* somebody else's */
    ck_assert_int_eq(ftruncate(file, BYTES), 0);
    IS(INVALID_VALUE, cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(file);
}
END_TEST

START_TEST(files_may_not_be_so_large)
{
    const struct rlimit limit = {BYTES - 1, BYTES - 1};
    const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    use_device(0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    IS(OUT_OF_MEMORY, cuMemCreate(&handle, BYTES, &prop, 0));
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        kernels_run_over_mappings, a_mapping_is_for_whom_it_was_granted,
        unmapped_addresses_fault,  a_pool_grants_its_memory,
        another_process_shares_it, shared_memory_keeps_its_size,
        files_may_not_be_so_large,
    };
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_90", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    TCase *cases = tcase_create("reach");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(cases, tests[i]);
    Suite *suite = suite_create("softcuda reach");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
