/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softcuda's libcuda as a program sees it. Check runs each test in a process of its own, so each chooses its
 * devices before cuInit. Expected answers: the CUDA driver API reference, and answers of a real driver (H200,
 * 580.159).
 */
#include <check.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptx/image/image.h"
#include "tests/image/small_cubin.h"
#include "tests/softcuda/start.h"

/* add: p[i] += n for i < gridDim * blockDim. store: p[i] = 7, one thread. */
static const char add_ptx[] =
    HEADER ".visible .global .align 4 .u32 counter = 5;\n"
           ".visible .entry add(.param .u64 p, .param .u32 n)\n"
           "{\n"
           "    .reg .b32 %r<6>; .reg .b64 %rd<5>;\n"
           "    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n];\n"
           "    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
           "    mad.lo.s32 %r2, %r2, %r3, %r4;\n"
           "    mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2;\n"
           "    ld.global.u32 %r5, [%rd1]; add.s32 %r5, %r5, %r1; st.global.u32 [%rd1], %r5;\n"
           "    ret;\n"
           "}\n"
           ".visible .entry store(.param .u64 p, .param .u64 i)\n"
           "{\n"
           "    .reg .b32 %r<2>; .reg .b64 %rd<4>;\n"
           "    ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [i];\n"
           "    shl.b64 %rd3, %rd2, 2; add.s64 %rd1, %rd1, %rd3;\n"
           "    mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; ret;\n"
           "}\n"
           ".visible .entry bump() { .reg .b32 %r<2>; ld.global.u32 %r1, [counter]; add.u32 %r1, %r1, 1; "
           "st.global.u32 [counter], %r1; ret; }\n";

static CUresult launch_add(CUfunction add, CUdeviceptr p, unsigned n, CUstream stream)
{
    void *params[] = {&p, &n};
    return cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

/* ---- finding it ---- */

START_TEST(nothing_before_init)
{
    int version, count;
    OK(cuDriverGetVersion(&version));
    ck_assert_int_eq(version, 13000);
    IS(NOT_INITIALIZED, cuDeviceGetCount(&count));
    IS(NOT_INITIALIZED, cuCtxSynchronize());
    IS(INVALID_VALUE, cuInit(1));
    const void *table = "untouched";
    IS(INVALID_VALUE, cuGetExportTable(&table, &(CUuuid){{1}}));
    ck_assert_ptr_null(table);
}
END_TEST

static void *procedure(const char *name, int version, unsigned flags, CUdriverProcAddressQueryResult expected)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress_v2(name, &found, version, flags, &status));
    ck_assert_msg(status == expected, "%s at %d: %d", name, version, (int)status);
    ck_assert_int_eq(found != NULL, expected == CU_GET_PROC_ADDRESS_SUCCESS);
    return found;
}

START_TEST(procedures_by_version_and_flag)
{
    ck_assert_ptr_eq(procedure("cuMemAlloc", 13000, 0, 0), (void *)(uintptr_t)cuMemAlloc_v2);
    ck_assert_ptr_ne(procedure("cuMemAlloc", 2000, 0, 0), (void *)(uintptr_t)cuMemAlloc_v2);
    ck_assert_ptr_eq(procedure("cuLaunchKernel", 12000, 0, 0), (void *)(uintptr_t)cuLaunchKernel);
    ck_assert_ptr_eq(procedure("cuLaunchKernel", 12000, 2, 0), (void *)(uintptr_t)cuLaunchKernel_ptsz);
    ck_assert_ptr_eq(procedure("cuLaunchKernel", 12000, 1, 0), (void *)(uintptr_t)cuLaunchKernel);
    ck_assert_ptr_eq(procedure("cuInit", 12000, 2, 0), (void *)(uintptr_t)cuInit);
    ck_assert_ptr_eq(procedure("cuCtxGetDevice", 12090, 0, 0), (void *)(uintptr_t)cuCtxGetDevice);
    ck_assert_ptr_eq(procedure("cuCtxGetDevice", 13000, 0, 0), (void *)(uintptr_t)cuCtxGetDevice_v2);
    procedure("cuLaunchKernelEx", 11050, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    procedure("cuLaunchKernelEx", 11060, 0, 0);
    procedure("cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    IS(INVALID_VALUE, cuGetProcAddress_v2("cuInit", &(void *){NULL}, 12000, 77, NULL));
    IS(INVALID_VALUE, cuGetProcAddress_v2(NULL, &(void *){NULL}, 12000, 0, NULL));
}
END_TEST

START_TEST(an_older_driver)
{
    setenv("KREGISTRY_SOFTCUDA_DRIVER", "12.4", 1);
    int version;
    OK(cuDriverGetVersion(&version));
    ck_assert_int_eq(version, 12040);
    procedure("cuKernelGetLibrary", 12040, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND); /* 12.5 */
    procedure("cuFuncGetParamInfo", 12040, 0, 0);                                    /* 12.4 */
    ck_assert_ptr_eq(procedure("cuCtxGetDevice", 12040, 0, 0), (void *)(uintptr_t)cuCtxGetDevice);
    IS(INVALID_VALUE, cuGetProcAddress_v2("cuInit", &(void *){NULL}, 12050, 0, NULL));
    IS(INVALID_VALUE, cuGetProcAddress_v2("cuInit", &(void *){NULL}, 13000, 0, NULL));
    start("sm_90");
    CUdevice device = 7;
    OK(cuCtxGetDevice_v2(&device, (CUcontext)0x1230)); /* as a client of then calls it: with one argument */
    ck_assert_int_eq(device, 0);
    CUmodule module;
    IS(UNSUPPORTED_PTX_VERSION,
       cuModuleLoadData(&module,
                        ".version 8.5\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"));
    OK(cuModuleLoadData(&module,
                        ".version 8.4\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"));
}
END_TEST

/* What was told on standard error since `file` took its place. */
static const char *told(FILE *file)
{
    static char text[4096];
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    return text;
}

/* A function that is not there, a part of one that is not, and what no driver can do: three kinds of the same
 * answer. */
START_TEST(what_is_not_there_says_so)
{
    setenv("KREGISTRY_SOFTCUDA_LOG", "1", 1);
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    dup2(fileno(file), STDERR_FILENO);
    start("sm_90");
    char luid[8];
    unsigned mask;
    IS(NOT_SUPPORTED, cuDeviceGetLuid(luid, &mask, 0));
    ck_assert_str_eq(told(file), "");
    IS(NOT_SUPPORTED, cuTexObjectDestroy(1));
    ck_assert_str_eq(told(file), "softcuda: the whole of cuTexObjectDestroy is not there\n");
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {CU_MEM_LOCATION_TYPE_HOST, 0}};
    IS(NOT_SUPPORTED, cuMemPoolCreate(&(CUmemoryPool){NULL}, &props));
    ck_assert_ptr_nonnull(
        strstr(told(file), "softcuda: of a call that is there, this is not: pools of managed"));
}
END_TEST

START_TEST(errors_have_names)
{
    const char *text;
    OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    ck_assert_str_eq(text, "CUDA_ERROR_ILLEGAL_ADDRESS");
    OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    ck_assert_str_eq(text, "out of memory");
    OK(cuGetErrorString(CUDA_SUCCESS, &text));
    ck_assert_str_eq(text, "no error");
    IS(INVALID_VALUE, cuGetErrorName((CUresult)12345, &text));
    ck_assert_ptr_null(text);
}
END_TEST

/* ---- devices ---- */

static int attribute(CUdevice_attribute which, CUdevice device)
{
    int value;
    OK(cuDeviceGetAttribute(&value, which, device));
    return value;
}

START_TEST(devices_as_asked_for)
{
    start("sm_75,H200,rtx4090,sm_121");
    int count;
    OK(cuDeviceGetCount(&count));
    ck_assert_int_eq(count, 4);
    static const int cc[] = {75, 90, 89, 121}, threads[] = {1024, 2048, 1536, 1536};
    static const int blocks[] = {16, 32, 24, 24}, optin[] = {65536, 232448, 101376, 101376};
    static const int window[] = {0, 134217728, 134217728, 134217728}, domains[] = {1, 4, 1, 4};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, i) * 10 +
                             attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, i),
                         cc[i]);
        ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, i), threads[i]);
        ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, i), blocks[i]);
        ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, i), optin[i]);
        ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, i), window[i]);
        ck_assert_int_eq(attribute(CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, i), domains[i]);
        char id[16];
        CUdevice found;
        OK(cuDeviceGetPCIBusId(id, sizeof id, i));
        OK(cuDeviceGetByPCIBusId(&found, id));
        ck_assert_int_eq(found, i);
    }
    IS(INVALID_VALUE, cuDeviceGetAttribute(&count, (CUdevice_attribute)999, 0));
    IS(INVALID_DEVICE, cuDeviceGetByPCIBusId(&count, "0000:77:00.0"));
    IS(INVALID_VALUE, cuDeviceGetByPCIBusId(&count, "nonsense"));
    char name[8];
    OK(cuDeviceGetName(name, sizeof name, 1));
    ck_assert_str_eq(name, "NVIDIA ");
    CUuuid a, b;
    OK(cuDeviceGetUuid_v2(&a, 0));
    OK(cuDeviceGetUuid_v2(&b, 1));
    ck_assert_mem_ne(&a, &b, sizeof a);
}
END_TEST

START_TEST(no_such_chip)
{
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_9000", 1);
    IS(NO_DEVICE, cuInit(0));
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "", 1);
    IS(NO_DEVICE, cuInit(0));
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90", 1);
    OK(cuInit(0));
}
END_TEST

/* ---- what the environment asks for ---- */

static void list_devices(void)
{
    int n = 0;
    cuDeviceGetCount(&n);
    for (int i = 0; i < n; i++) {
        CUuuid uuid;
        cuDeviceGetUuid_v2(&uuid, i);
        printf("%d GPU-", attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, i) - 1);
        for (int k = 0; k < 16; k++)
            printf("%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", (uint8_t)uuid.bytes[k]);
        printf("\n");
    }
}

/* What cuInit answers in a process of its own, and what was said and which devices are there then. */
static int init_in_child(const char *name, const char *value, void (*prepare)(void), char said[1024])
{
    int pipes[2], status;
    ck_assert_int_eq(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 1);
        dup2(pipes[1], 2);
        setenv(name, value, 1);
        if (prepare)
            prepare();
        CUresult result = cuInit(0);
        if (!result)
            list_devices();
        fflush(NULL);
        _exit((int)result);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t got; n < 1023 && (got = read(pipes[0], said + n, 1023 - n)) > 0;)
        n += (size_t)got;
    said[n] = '\0';
    close(pipes[0]);
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

START_TEST(bad_settings_are_named)
{
    static const char *const bad[][2] = {
        {"KREGISTRY_SOFTCUDA_DRIVER", "abc"},   {"KREGISTRY_SOFTCUDA_DRIVER", "-1"},
        {"KREGISTRY_SOFTCUDA_DRIVER", "12"},    {"KREGISTRY_SOFTCUDA_DRIVER", "12.4.5"},
        {"KREGISTRY_SOFTCUDA_DRIVER", "1e5"},   {"KREGISTRY_SOFTCUDA_DRIVER", "12.10"},
        {"KREGISTRY_SOFTCUDA_DRIVER", "13.1"},  {"KREGISTRY_SOFTCUDA_DRIVER", " 12.4"},
        {"KREGISTRY_SOFTCUDA_THREADS", "many"}, {"KREGISTRY_SOFTCUDA_THREADS", "0"},
        {"KREGISTRY_SOFTCUDA_THREADS", "-2"},   {"KREGISTRY_SOFTCUDA_THREADS", "2x"},
        {"KREGISTRY_SOFTCUDA_THREADS", "1025"}, {"KREGISTRY_SOFTCUDA_BUDGET", "1e9"},
        {"KREGISTRY_SOFTCUDA_SHUFFLE", "yes"},  {"KREGISTRY_SOFTCUDA_DEVICES", "sm_1"},
        {"KREGISTRY_SOFTCUDA_ISA", "nonsense"},
    };
    char said[1024];
    for (size_t i = 0; i < KR_COUNT(bad); i++) {
        int result = init_in_child(bad[i][0], bad[i][1], NULL, said);
        ck_assert_msg(result == CUDA_ERROR_NO_DEVICE, "%s=%s: %d", bad[i][0], bad[i][1], result);
        ck_assert_msg(strstr(said, bad[i][0]) && strstr(said, bad[i][1]) &&
                          strchr(said, '\n') == said + strlen(said) - 1,
                      "%s=%s: %s", bad[i][0], bad[i][1], said);
    }
    OK(init_in_child("KREGISTRY_SOFTCUDA_DRIVER", "12.4", NULL, said));
    OK(init_in_child("KREGISTRY_SOFTCUDA_THREADS", "", NULL, said));
    OK(init_in_child("KREGISTRY_SOFTCUDA_BUDGET", "0x100", NULL, said));
}
END_TEST

/* As an H200's driver answers, so far as one device can tell. */
START_TEST(visible_devices)
{
    static const struct {
        const char *value, *numbers;
        CUresult result;
    } lists[] = {
        {"", "", CUDA_ERROR_NO_DEVICE},      {"x", "", CUDA_ERROR_NO_DEVICE},
        {"-1", "", CUDA_ERROR_NO_DEVICE},    {",1", "", CUDA_ERROR_NO_DEVICE},
        {"7", "", CUDA_ERROR_NO_DEVICE},     {"GPU-", "", CUDA_ERROR_NO_DEVICE},
        {"MIG-x", "", CUDA_ERROR_NO_DEVICE}, {"0", "0", CUDA_SUCCESS},
        {"2,0", "20", CUDA_SUCCESS},         {"1,7,0", "1", CUDA_SUCCESS},
        {"0,-1,1", "0", CUDA_SUCCESS},       {"0,x,1", "0", CUDA_SUCCESS},
        {"0,,1", "0", CUDA_SUCCESS},         {" 1", "1", CUDA_SUCCESS},
        {"0x1", "0", CUDA_SUCCESS},          {"0,0", "", CUDA_ERROR_INVALID_DEVICE},
    };
    char said[1024], all[1024], list[128];
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_75,sm_80,h200", 1);
    for (size_t i = 0; i < KR_COUNT(lists); i++) {
        int result = init_in_child("CUDA_VISIBLE_DEVICES", lists[i].value, NULL, said);
        ck_assert_msg(result == (int)lists[i].result, "%s: %d", lists[i].value, result);
        const char *line = said;
        for (const char *number = lists[i].numbers; *number; number++, line = strchr(line, '\n') + 1)
            ck_assert_msg(*line == *number, "%s: %s", lists[i].value, said);
        ck_assert_str_eq(line, "");
    }

    /* By UUID, which may be cut short, and not mixed with numbers. */
    OK(init_in_child("CUDA_VISIBLE_DEVICES", "0,1,2", NULL, all));
    const char *third = strstr(all, "\n2 GPU-") + 3;
    snprintf(list, sizeof list, "%.12s", third);
    OK(init_in_child("CUDA_VISIBLE_DEVICES", list, NULL, said));
    ck_assert_str_eq(said, third - 2);
    snprintf(list, sizeof list, "%.40s,1", third);
    OK(init_in_child("CUDA_VISIBLE_DEVICES", list, NULL, said));
    ck_assert_str_eq(said, third - 2);
    snprintf(list, sizeof list, "1,%.40s", third);
    OK(init_in_child("CUDA_VISIBLE_DEVICES", list, NULL, said));
    ck_assert_int_eq(*said, '1');
    snprintf(list, sizeof list, "%.40s,%.40s", third, third);
    IS(INVALID_DEVICE, init_in_child("CUDA_VISIBLE_DEVICES", list, NULL, said));
}
END_TEST

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
static void have_a_gibibyte(void)
{
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 30, 1 << 30}), 0);
}

static void have_nothing_more(void)
{
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &(struct rlimit){1 << 20, 1 << 20}), 0);
}

START_TEST(address_space_is_short)
{
    char said[1024];
    OK(init_in_child("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_90", have_a_gibibyte, said));
    ck_assert_msg(strstr(said, "device 1 has 0.12 GiB of memory, not 80"), "%s", said);
    IS(OUT_OF_MEMORY, init_in_child("KREGISTRY_SOFTCUDA_DEVICES", "sm_90", have_nothing_more, said));
    ck_assert_msg(strstr(said, "160 GiB of address space"), "%s", said);
    have_a_gibibyte();
    start("sm_90");
    CUdeviceptr p = zeros(50 << 20), more;
    OK(launch_add(load(add_ptx, "add"), p, 2, NULL));
    ck_assert_uint_eq(word(p, 63), 2);
    size_t free_bytes;
    OK(cuMemGetInfo_v2(&free_bytes, NULL));
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&more, free_bytes + 1));
}
END_TEST
#endif

/* ---- contexts ---- */

static void *other_thread(void *arg)
{
    CUcontext current = (CUcontext)1;
    OK(cuCtxGetCurrent(&current));
    ck_assert_ptr_null(current);
    OK(cuCtxPushCurrent_v2(arg));
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, 16));
    return NULL;
}

START_TEST(each_thread_has_its_stack)
{
    CUcontext primary = start("sm_75,sm_90"), own, popped;
    OK(cuCtxCreate_v2(&own, 0, 1));
    CUdevice device;
    OK(cuCtxGetDevice(&device));
    ck_assert_int_eq(device, 1);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, primary);
    pthread_join(thread, NULL);
    OK(cuCtxPopCurrent_v2(&popped));
    ck_assert_ptr_eq(popped, own);
    OK(cuCtxGetDevice(&device));
    ck_assert_int_eq(device, 0);
    OK(cuCtxPushCurrent_v2(own));
    OK(cuCtxDestroy_v2(own)); /* current: leaves the stack */
    OK(cuCtxGetCurrent(&popped));
    ck_assert_ptr_eq(popped, primary);
    IS(CONTEXT_IS_DESTROYED, cuCtxDestroy_v2(own));
    IS(INVALID_CONTEXT, cuCtxDestroy_v2(primary));
}
END_TEST

START_TEST(primary_context_lives_while_retained)
{
    CUcontext first = start("sm_90"), again;
    unsigned flags;
    int active;
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    ck_assert_ptr_eq(first, again);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 1);
    CUdeviceptr p = zeros(4);
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    ck_assert_int_eq(active, 0);
    IS(CONTEXT_IS_DESTROYED, cuMemFree_v2(p));
    OK(cuDevicePrimaryCtxRetain(&again, 0)); /* the same again, and current where it was */
    ck_assert_ptr_eq(first, again);
    IS(INVALID_VALUE, cuMemFree_v2(p));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    IS(INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
}
END_TEST

/* A handle brings its context: the current one does not matter, nor whether there is one. */
START_TEST(handles_work_without_a_current_context)
{
    CUcontext primary = start("sm_90"), own, popped;
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64);
    CUstream s;
    CUevent e;
    unsigned *pinned, n = 4;
    OK(cuMemHostAlloc((void **)&pinned, 256, 0));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 0));
    OK(cuCtxCreate_v2(&own, 0, 0));
    for (int mode = 0; mode < 3; mode++) { /* another context, a destroyed one, none */
        if (mode == 1) {
            OK(cuCtxPopCurrent_v2(&popped));
            OK(cuCtxDestroy_v2(own));
            OK(cuCtxPushCurrent_v2(own));
        } else if (mode == 2) {
            OK(cuCtxPopCurrent_v2(&popped));
            OK(cuCtxSetCurrent(NULL));
        }
        OK(launch_add(add, p, 1, s));
        OK(cuEventRecord(e, s));
        OK(cuEventSynchronize(e));
        OK(cuStreamSynchronize(s));
        int value;
        OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, add));
    }
    IS(INVALID_CONTEXT, launch_add(add, p, 1, NULL)); /* the default stream is the current context's */
    IS(INVALID_CONTEXT, cuMemcpyDtoH_v2(&n, p, 4));
    OK(cuMemcpyDtoHAsync_v2(pinned, p, 256, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(pinned[63], 3);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree_v2(p));
    OK(cuEventDestroy_v2(e));
    OK(cuStreamDestroy_v2(s));
    OK(cuCtxSetCurrent(primary));
    OK(cuCtxSynchronize());
}
END_TEST

START_TEST(limits)
{
    start("sm_90");
    size_t value;
    OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
    ck_assert_uint_eq(value, 1024);
    OK(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2048));
    OK(cuCtxGetLimit(&value, CU_LIMIT_PRINTF_FIFO_SIZE));
    ck_assert_uint_eq(value, 524288);
    IS(UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
    IS(INVALID_VALUE, cuCtxGetLimit(&value, (CUlimit)99));
}
END_TEST

/* ---- memory ---- */

START_TEST(copies_go_every_way)
{
    start("sm_90");
    unsigned in[64], out[64];
    for (unsigned i = 0; i < 64; i++)
        in[i] = i * i;
    CUdeviceptr a = zeros(64), b = zeros(64);
    OK(cuMemcpyHtoD_v2(a, in, sizeof in));
    OK(cuMemcpyDtoD_v2(b, a, sizeof in));
    OK(cuMemcpyDtoH_v2(out, b, sizeof out));
    ck_assert_mem_eq(in, out, sizeof in);
    OK(cuMemcpy((CUdeviceptr)(uintptr_t)out, b + 4, 16));
    ck_assert_uint_eq(out[0], 1);
    IS(INVALID_VALUE, cuMemcpyHtoD_v2(a + 4, in, sizeof in));
    IS(INVALID_VALUE, cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)out, in, 4));
    IS(INVALID_VALUE, cuMemcpyDtoH_v2(NULL, a, 4));

    /* 3 rows of 5 words out of the middle. */
    CUDA_MEMCPY2D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = a,
                         .srcPitch = 32,
                         .srcXInBytes = 4,
                         .srcY = 1,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = out,
                         .dstPitch = 20,
                         .WidthInBytes = 20,
                         .Height = 3};
    OK(cuMemcpy2D_v2(&box));
    for (unsigned y = 0; y < 3; y++)
        for (unsigned x = 0; x < 5; x++)
            ck_assert_uint_eq(out[y * 5 + x], in[(y + 1) * 8 + x + 1]);
    box.Height = 8; /* the last row would leave the allocation */
    IS(INVALID_VALUE, cuMemcpy2D_v2(&box));
}
END_TEST

static CUDA_MEMCPY3D into(CUarray to, const void *from)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = to,
                           .WidthInBytes = 16,
                           .Height = 2,
                           .Depth = 3};
}

START_TEST(arrays_are_copied_in_streams_graphs_and_between_devices)
{
    CUcontext first = start("sm_90,sm_90"), second;
    const CUDA_ARRAY3D_DESCRIPTOR d = {2, 2, 3, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_LAYERED};
    unsigned in[24], out[24];
    for (unsigned i = 0; i < 24; i++)
        in[i] = i * i;
    CUarray a, b;
    OK(cuArray3DCreate_v2(&a, &d));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuArray3DCreate_v2(&b, &d));
    OK(cuCtxSetCurrent(first));

    /* Host to array as a node, array to array of the other device, a part of that to the host in a stream. */
    CUDA_MEMCPY3D box = into(a, in);
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &box, first));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    in[23] = 77;
    OK(cuGraphLaunch(exec, NULL));
    const CUDA_MEMCPY3D_PEER across = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                       .srcArray = a,
                                       .srcContext = first,
                                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                       .dstArray = b,
                                       .dstContext = second,
                                       .WidthInBytes = 16,
                                       .Height = 2,
                                       .Depth = 3};
    OK(cuMemcpy3DPeerAsync(&across, NULL));
    box = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                          .srcArray = b,
                          .srcXInBytes = 4,
                          .srcY = 1,
                          .srcZ = 1,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstHost = out,
                          .WidthInBytes = 12,
                          .Height = 1,
                          .Depth = 2};
    OK(cuMemcpy3DAsync_v2(&box, NULL));
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < 6; i++)
        ck_assert_uint_eq(out[i], in[8 * (1 + i / 3) + 5 + i % 3]);
    ck_assert_uint_eq(out[5], 77);
}
END_TEST

START_TEST(arrays_end_with_their_context)
{
    const CUcontext first = start("sm_90");
    size_t before, during, after;
    CUcontext other;
    CUarray array;
    CUDA_ARRAY_DESCRIPTOR d = {1024, 1024, CU_AD_FORMAT_UNSIGNED_INT8, 1};
    OK(cuMemGetInfo_v2(&before, NULL));
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuArrayCreate_v2(&array, &d));
    OK(cuMemGetInfo_v2(&during, NULL));
    ck_assert_uint_eq(before - during, 1 << 20);
    OK(cuCtxDestroy_v2(other));
    OK(cuCtxSetCurrent(first));
    OK(cuMemGetInfo_v2(&after, NULL));
    ck_assert_uint_eq(before, after);
    IS(INVALID_CONTEXT, cuArrayGetDescriptor_v2(&d, array));
}
END_TEST

START_TEST(arrays_that_are_not_there)
{
    start("sm_90");
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR d = {4, 2, 3, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE};
    OK(cuArray3DCreate_v2(&array, &d)); /* and nothing can be mapped there */
    const CUDA_MEMCPY3D box = into(array, &d);
    IS(NOT_SUPPORTED, cuMemcpy3D_v2(&box));
    OK(cuArrayDestroy(array));
    d = (CUDA_ARRAY3D_DESCRIPTOR){4, 4, 0, CU_AD_FORMAT_SNORM_INT16X4, 4, 0};
    IS(NOT_SUPPORTED, cuArray3DCreate_v2(&array, &d));
    d = (CUDA_ARRAY3D_DESCRIPTOR){32769, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    OK(cuArray3DCreate_v2(&array, &d));
    d.Flags = CUDA_ARRAY3D_SURFACE_LDST;
    IS(INVALID_VALUE, cuArray3DCreate_v2(&array, &d));
    d = (CUDA_ARRAY3D_DESCRIPTOR){1 << 14, 1 << 14, 1 << 14, CU_AD_FORMAT_FLOAT, 4, 0};
    IS(OUT_OF_MEMORY, cuArray3DCreate_v2(&array, &d));
}
END_TEST

START_TEST(fills)
{
    start("sm_90");
    CUdeviceptr p = zeros(64);
    OK(cuMemsetD16_v2(p + 2, 0xabcd, 3));
    ck_assert_uint_eq(word(p, 0), 0xabcd0000u);
    ck_assert_uint_eq(word(p, 1), 0xabcdabcdu);
    OK(cuMemsetD2D32_v2(p, 32, 9, 2, 3));
    ck_assert_uint_eq(word(p, 17), 9);
    ck_assert_uint_eq(word(p, 18), 0);
    ck_assert_uint_eq(word(p, 25), 0);
    IS(INVALID_VALUE, cuMemsetD32_v2(p + 2, 0, 1));
    IS(INVALID_VALUE, cuMemsetD8_v2(p, 0, 257));
}
END_TEST

START_TEST(host_memory)
{
    start("sm_90");
    unsigned *pinned, *plain = aligned_alloc(64, 4096);
    CUdeviceptr device;
    OK(cuMemHostAlloc((void **)&pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer_v2(&device, pinned, 0));
    pinned[3] = 40;
    OK(launch_add(load(add_ptx, "add"), device, 2, NULL)); /* a kernel reaches it */
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(pinned[3], 42);
    unsigned type;
    OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device));
    ck_assert_uint_eq(type, CU_MEMORYTYPE_HOST);
    OK(cuMemHostRegister_v2(plain, 4096, 0));
    IS(HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(plain, 64, 0));
    IS(INVALID_VALUE, cuMemFreeHost(plain));
    OK(cuMemHostUnregister(plain));
    IS(HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(plain));
    IS(INVALID_VALUE, cuMemHostGetDevicePointer_v2(&device, plain, 0));
    OK(cuMemFreeHost(pinned));
    IS(INVALID_VALUE, cuMemFreeHost(pinned));
    free(plain);
}
END_TEST

/* What an H200's driver answers. */
START_TEST(what_cannot_be_registered)
{
    start("sm_90");
    enum { PAGE = 4096, READ_ONLY = 8 };
    char *area = mmap(NULL, 6 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(area, MAP_FAILED);
    ck_assert_int_eq(mprotect(area + 2 * PAGE, PAGE, PROT_NONE), 0);
    ck_assert_int_eq(mprotect(area + 4 * PAGE, PAGE, PROT_READ), 0);
    IS(INVALID_VALUE, cuMemHostRegister_v2(area, SIZE_MAX, 0));
    IS(INVALID_VALUE, cuMemHostRegister_v2(area, 0 - (uintptr_t)area + 10, 0));
    IS(NOT_SUPPORTED, cuMemHostRegister_v2(area, (size_t)1 << 62, 0));
    IS(INVALID_VALUE, cuMemHostRegister_v2((void *)PAGE, 16, 0));
    IS(NOT_SUPPORTED, cuMemHostRegister_v2((void *)(0 - (uintptr_t)PAGE), PAGE, 0));
    IS(INVALID_VALUE, cuMemHostRegister_v2(area + 2 * PAGE, PAGE, 0));
    IS(INVALID_VALUE, cuMemHostRegister_v2(area, 4 * PAGE, 0)); /* what is in between is not there */
    OK(cuMemHostRegister_v2(area, 2 * PAGE, 0));
    IS(INVALID_VALUE, cuMemHostRegister_v2(area + 4 * PAGE, PAGE, 0));
    OK(cuMemHostRegister_v2(area + 4 * PAGE, PAGE, READ_ONLY));
    OK(cuMemHostUnregister(area + 4 * PAGE));
    OK(cuMemHostUnregister(area));
    munmap(area, 6 * PAGE);
}
END_TEST

START_TEST(managed_memory_is_everywhere)
{
    start("sm_90,sm_90");
    CUdeviceptr p;
    OK(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
    unsigned *host = (unsigned *)(uintptr_t)p;
    host[63] = 1;
    OK(launch_add(load(add_ptx, "add"), p, 1, NULL));
    OK(cuCtxSynchronize());
    CUcontext other;
    OK(cuDevicePrimaryCtxRetain(&other, 1));
    OK(cuCtxSetCurrent(other));
    OK(launch_add(load(add_ptx, "add"), p, 1, NULL));
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(host[63], 3);
    OK(cuMemFree_v2(p));
}
END_TEST

START_TEST(memory_is_counted)
{
    start("sm_75");
    size_t before, after, total, bytes;
    CUdeviceptr p, base;
    OK(cuMemGetInfo_v2(&before, &total));
    OK(cuMemAlloc_v2(&p, 1 << 20));
    OK(cuMemGetInfo_v2(&after, &total));
    ck_assert_uint_ge(before - after, 1 << 20);
    OK(cuMemGetAddressRange_v2(&base, &bytes, p + 100));
    ck_assert(base == p && bytes == 1 << 20);
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&base, total + 1));
    OK(cuMemFree_v2(p));
    OK(cuMemGetInfo_v2(&after, &total));
    ck_assert_uint_eq(before, after);
    IS(NOT_FOUND, cuMemGetAddressRange_v2(&base, &bytes, p));
}
END_TEST

/* Of the pages that lie in `bytes` from the address on, so many are the host's memory. */
static size_t resident_pages(CUdeviceptr address, size_t bytes)
{
    enum { PAGE = 4096, MOST = 1024 };
    unsigned char pages[MOST];
    CUdeviceptr first = (address + PAGE - 1) / PAGE * PAGE;
    size_t n = (address + bytes - first) / PAGE, resident = 0;
    ck_assert_uint_lt(n, MOST);
    ck_assert_int_eq(mincore((void *)(uintptr_t)first, n * PAGE, pages), 0);
    for (size_t i = 0; i < n; i++)
        resident += pages[i] & 1;
    return resident;
}

START_TEST(what_is_freed_goes_back_to_the_system)
{
    enum { N = 1000, KEPT = 500 };
    CUdeviceptr small[N];
    start("sm_75");
    for (int i = 0; i < N; i++)
        small[i] = zeros(64);
    size_t bytes = small[N - 1] - small[0];
    ck_assert_uint_gt(resident_pages(small[0], bytes), 1);
    OK(cuMemsetD32_v2(small[KEPT], 7, 64));
    for (int i = 0; i < N; i++)
        if (i != KEPT)
            OK(cuMemFree_v2(small[i]));
    ck_assert_uint_eq(resident_pages(small[0], bytes), 1);
    ck_assert_uint_eq(word(small[KEPT], 0), 7);
    ck_assert_uint_eq(word(small[KEPT], 63), 7);
}
END_TEST

/* Linux gives a process 65530 mappings. */
START_TEST(allocations_do_not_use_up_mappings)
{
    setenv("KREGISTRY_SOFTCUDA_CHECK", "memcheck", 1);
    start("sm_75");
    for (int i = 0; i < 70000; i++)
        OK(cuMemFree_v2(zeros(1)));
}
END_TEST

START_TEST(pools)
{
    start("sm_90");
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    OK(cuMemPoolCreate(&pool, &props));
    CUdeviceptr p;
    OK(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
    uint64_t used;
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ck_assert_uint_eq(used, 4096);
    OK(cuMemsetD32Async(p, 3, 1024, NULL));
    OK(cuMemFreeAsync(p, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    ck_assert_uint_eq(used, 0);
    OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &used));
    ck_assert_uint_eq(used, 4096);
    OK(cuMemPoolDestroy(pool));
    IS(INVALID_VALUE, cuMemPoolDestroy(pool));
}
END_TEST

/* ---- modules ---- */

START_TEST(ptx_runs)
{
    start("sm_90");
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64);
    OK(launch_add(add, p, 5, NULL));
    OK(launch_add(add, p, 6, NULL));
    for (unsigned i = 0; i < 64; i++)
        ck_assert_uint_eq(word(p, i), 11);
    const char *name;
    OK(cuFuncGetName(&name, add));
    ck_assert_str_eq(name, "add");
    size_t offset, bytes;
    OK(cuFuncGetParamInfo(add, 1, &offset, &bytes));
    ck_assert(offset == 8 && bytes == 4);
    IS(INVALID_VALUE, cuFuncGetParamInfo(add, 2, &offset, &bytes));
    int value;
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, add));
    ck_assert_int_eq(value, 75);
    OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, add));
    ck_assert_int_eq(value, 90);
}
END_TEST

START_TEST(the_stack_is_as_deep_as_its_limit)
{
    static const char down_ptx[] =
        HEADER ".func (.param .b32 r) down(.param .b32 n)\n"
               "{\n"
               "    .local .align 4 .b8 frame[64]; .reg .pred %p; .reg .b32 %r<4>;\n"
               "    ld.param.b32 %r1, [n]; st.local.b32 [frame+60], %r1; setp.eq.u32 %p, %r1, 0;\n"
               "    mov.b32 %r2, 0; @%p bra END; sub.u32 %r3, %r1, 1;\n"
               "    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r3; call (b), down, (a);\n"
               "      ld.param.b32 %r2, [b]; }\n"
               "END: ld.local.b32 %r1, [frame+60]; add.u32 %r2, %r2, %r1; st.param.b32 [r], %r2; ret;\n"
               "}\n"
               ".visible .entry k(.param .u64 p, .param .b32 n)\n"
               "{\n"
               "    .reg .b64 %rd<2>; .reg .b32 %r<3>;\n"
               "    ld.param.u64 %rd1, [p]; ld.param.b32 %r1, [n];\n"
               "    { .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), down, (a);\n"
               "      ld.param.b32 %r2, [b]; }\n"
               "    st.global.b32 [%rd1], %r2; ret;\n"
               "}\n";
    start("sm_75");
    CUfunction k = load(down_ptx, "k");
    CUdeviceptr p = zeros(1);
    unsigned n = 5000;
    void *params[] = {&p, &n};
    OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 500000));
    OK(cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(word(p, 0), n * (n + 1) / 2);
    n = 8000;
    OK(cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    IS(LAUNCH_FAILED, cuCtxSynchronize());
}
END_TEST

START_TEST(variables_keep_their_values)
{
    start("sm_90");
    CUmodule module;
    CUfunction bump;
    CUdeviceptr counter;
    size_t bytes;
    OK(cuModuleLoadData(&module, add_ptx));
    OK(cuModuleGetFunction(&bump, module, "bump"));
    OK(cuModuleGetGlobal_v2(&counter, &bytes, module, "counter"));
    ck_assert_uint_eq(bytes, 4);
    ck_assert_uint_eq(word(counter, 0), 5);
    OK(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ck_assert_uint_eq(word(counter, 0), 6);
    unsigned n;
    OK(cuModuleGetFunctionCount(&n, module));
    ck_assert_uint_eq(n, 3);
    OK(cuModuleUnload(module));
    IS(INVALID_HANDLE, cuModuleUnload(module));
    IS(INVALID_HANDLE, cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}
END_TEST

START_TEST(jit_log_tells_the_line)
{
    start("sm_90");
    char log[256] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module;
    IS(INVALID_PTX, cuModuleLoadDataEx(&module, HEADER ".visible .entry k()\n{ mov.u32 %r9, 1; ret; }\n", 2,
                                       options, values));
    ck_assert_ptr_nonnull(strstr(log, "line 5"));
    ck_assert_uint_eq((uintptr_t)values[1], strlen(log));
    char tiny[8];
    values[0] = tiny;
    values[1] = (void *)sizeof tiny;
    IS(INVALID_PTX,
       cuModuleLoadDataEx(&module, HEADER ".visible .entry k() { mov.u32 %r9, 1; }\n", 2, options, values));
    ck_assert_uint_eq(strlen(tiny), 7);
}
END_TEST

START_TEST(what_is_no_image)
{
    start("sm_90");
    CUmodule module;
    static const char *const texts[] = {
        "", "garbage",
        "\177ELF\2\1\1 and then something that is no ELF header, but as long as one is, at least",
        ".target sm_75\n.version 7.0\n"};
    for (size_t i = 0; i < KR_COUNT(texts); i++)
        IS(INVALID_IMAGE, cuModuleLoadData(&module, texts[i]));
    IS(INVALID_VALUE, cuModuleLoadData(&module, NULL));
    IS(FILE_NOT_FOUND, cuModuleLoad(&module, "/nonexistent/k.ptx"));
}
END_TEST

START_TEST(libraries_load_where_they_are_used)
{
    CUcontext first = start("sm_90,sm_75"), second;
    CUlibrary library;
    CUkernel kernel;
    OK(cuLibraryLoadData(&library, add_ptx, NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "add"));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    CUcontext contexts[] = {first, second};
    CUdeviceptr counters[2];
    for (int i = 0; i < 2; i++) {
        OK(cuCtxSetCurrent(contexts[i]));
        CUdeviceptr p = zeros(64);
        OK(launch_add((CUfunction)kernel, p, 3, NULL));
        ck_assert_uint_eq(word(p, 63), 3);
        OK(cuLibraryGetGlobal(&counters[i], NULL, library, "counter"));
        int version;
        OK(cuKernelGetAttribute(&version, CU_FUNC_ATTRIBUTE_BINARY_VERSION, kernel, i));
        ck_assert_int_eq(version, i ? 75 : 90);
    }
    ck_assert(counters[0] != counters[1]);
    int value;
    CUmodule module;
    IS(INVALID_HANDLE,
       cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)kernel)); /* no function */
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, (CUfunction)kernel, 32,
                                                   0)); /* but taken for one */
    OK(cuLibraryGetModule(&module, library));
    IS(NOT_PERMITTED, cuModuleUnload(module));
    OK(cuLibraryUnload(library));
    IS(INVALID_HANDLE, cuLibraryUnload(library));
    IS(INVALID_HANDLE, launch_add((CUfunction)kernel, counters[1], 3, NULL));
}
END_TEST

/* ---- linking, cubins, fatbins ---- */

static const char caller_ptx[] = HEADER ".extern .func (.param .b32 r) twice(.param .b32 a);\n"
                                        ".visible .entry k(.param .u64 p)\n"
                                        "{\n"
                                        "    .reg .b32 %r<3>; .reg .b64 %rd<2>;\n"
                                        "    ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];\n"
                                        "    { .param .b32 a0; .param .b32 r0; st.param.b32 [a0], %r1;\n"
                                        "      call.uni (r0), twice, (a0); ld.param.b32 %r2, [r0]; }\n"
                                        "    st.global.u32 [%rd1], %r2; ret;\n"
                                        "}\n";
static const char callee_ptx[] =
    HEADER ".visible .func (.param .b32 r) twice(.param .b32 a)\n"
           "{ .reg .b32 %r<2>; ld.param.b32 %r1, [a]; shl.b32 %r1, %r1, 1; st.param.b32 [r], %r1; ret; }\n";

static void *link_two(size_t *ret_bytes)
{
    CUlinkState link;
    void *cubin, *copy;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)caller_ptx, sizeof caller_ptx, "caller", 0,
                        NULL, NULL));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)callee_ptx, sizeof callee_ptx, "callee", 0,
                        NULL, NULL));
    OK(cuLinkComplete(link, &cubin, ret_bytes));
    copy = malloc(*ret_bytes);
    memcpy(copy, cubin, *ret_bytes);
    OK(cuLinkDestroy(link));
    IS(INVALID_HANDLE, cuLinkDestroy(link));
    return copy;
}

static void check_doubles(const void *image)
{
    CUdeviceptr p = zeros(1);
    OK(cuMemsetD32_v2(p, 21, 1));
    void *params[] = {&p};
    OK(cuLaunchKernel(load(image, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(word(p, 0), 42);
}

START_TEST(linked_code_runs)
{
    start("sm_90");
    size_t bytes;
    void *image = link_two(&bytes);
    check_doubles(image);

    /* It is a cubin like another: the reader of cubins knows the kernel. */
    kr__cubin *cubin;
    kr_error err;
    ck_assert_msg(kr__cubin_read(image, bytes, &cubin, &err) == KR_OK, "%s", err.message);
    ck_assert_int_eq(cubin->arch.major, 9);
    ck_assert_uint_eq(cubin->n_kernels, 1);
    ck_assert_str_eq(cubin->kernels[0].name, "k");
    ck_assert_uint_eq(cubin->kernels[0].n_params, 1);
    ck_assert_uint_eq(cubin->kernels[0].params[0].bytes, 8);
    ck_assert_int_ge(cubin->kernels[0].registers, 4);
    kr__cubin_free(&cubin);

    /* And it can stand in a fatbin. */
    void *fatbin;
    size_t fatbin_bytes;
    kr__fatbin_part part = {KR_IMAGE_CUBIN, {9, 0, 0}, 0, image, bytes};
    ck_assert_int_eq(kr__fatbin_write(&part, 1, &fatbin, &fatbin_bytes, NULL), KR_OK);
    check_doubles(fatbin);
    struct {
        uint32_t magic, version;
        const void *data;
        void *file;
    } wrapper = {0x466243b1, 1, fatbin, NULL};
    check_doubles(&wrapper);
    free(fatbin);

    /* Of another generation it is no code for this device. The SM number is in the second byte of the flags.
     */
    static const uint8_t others[] = {75, 80, 89, 100, 120};
    for (size_t i = 0; i < sizeof others; i++) {
        CUmodule module;
        ((uint8_t *)image)[0x31] = others[i];
        IS(NO_BINARY_FOR_GPU, cuModuleLoadData(&module, image));
    }
    free(image);
}
END_TEST

/* What nvlink of CUDA 13.0 makes of such inputs (sm_80, with -c compiled): a name without linkage is its
 * input's alone, a definition counts before .weak, .weak before .common, the first of equals; the larger
 * .common gives the size. */
static const char asking_ptx[] =
    HEADER ".common .global .align 4 .u32 common;\n"
           ".global .align 4 .u32 own = 1;\n"
           ".weak .global .align 4 .u32 number = 10;\n"
           ".extern .func (.param .b32 r) other();\n"
           ".weak .func (.param .b32 r) pick()\n"
           "{ .reg .b32 %x; mov.u32 %x, 100; st.param.b32 [r], %x; ret; }\n"
           ".func (.param .b32 r) mine()\n"
           "{ .reg .b32 %x; ld.global.u32 %x, [own]; st.param.b32 [r], %x; ret; }\n"
           ".visible .entry k(.param .u64 out)\n"
           "{ .reg .b64 %p; .reg .b32 %a; ld.param.u64 %p, [out];\n"
           "  { .param .b32 q; call (q), pick; ld.param.b32 %a, [q]; } st.global.u32 [%p], %a;\n"
           "  { .param .b32 q; call (q), mine; ld.param.b32 %a, [q]; } st.global.u32 [%p+4], %a;\n"
           "  { .param .b32 q; call (q), other; ld.param.b32 %a, [q]; } st.global.u32 [%p+8], %a;\n"
           "  ld.global.u32 %a, [number]; st.global.u32 [%p+12], %a;\n"
           "  ret; }\n";
#define ANSWERING_PTX(LINKAGE, LINKAGE_OF_OWN)                                                           \
    HEADER ".common .global .align 8 .u64 common;\n" LINKAGE_OF_OWN                                      \
           " .global .align 4 .u32 own = 2;\n" LINKAGE " .global .align 4 .u32 number = 20;\n" LINKAGE   \
           " .func (.param .b32 r) pick()\n"                                                             \
           "{ .reg .b32 %x; mov.u32 %x, 200; st.param.b32 [r], %x; ret; }\n" LINKAGE_OF_OWN              \
           " .func (.param .b32 r) mine()\n"                                                             \
           "{ .reg .b32 %x; ld.global.u32 %x, [own]; st.param.b32 [r], %x; ret; }\n"                     \
           ".visible .func (.param .b32 r) other()\n"                                                    \
           "{ .reg .b32 %x; .param .b32 q; call (q), mine; ld.param.b32 %x, [q]; st.param.b32 [r], %x; " \
           "ret; }\n"
static const char strong_ptx[] = ANSWERING_PTX(".visible", ".visible"),
                  weak_ptx[] = ANSWERING_PTX(".weak", "");

/* Links two texts and runs what that made. */
static void check_link(const char *first, const char *second, const uint32_t *expected)
{
    CUlinkState link;
    void *cubin;
    size_t bytes;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)first, strlen(first), "first", 0, NULL,
                        NULL));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)second, strlen(second), "second", 0, NULL,
                        NULL));
    OK(cuLinkComplete(link, &cubin, &bytes));
    CUdeviceptr p = zeros(4), common;
    CUmodule module;
    CUfunction k;
    OK(cuModuleLoadData(&module, cubin));
    OK(cuModuleGetFunction(&k, module, "k"));
    OK(cuModuleGetGlobal_v2(&common, &bytes, module, "common"));
    ck_assert_uint_eq(bytes, 8);
    void *params[] = {&p};
    OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(word(p, i), expected[i]);
    OK(cuLinkDestroy(link));
}

START_TEST(the_strongest_definition_counts)
{
    start("sm_90");
    static const uint32_t of_strong[] = {200, 1, 2, 20}, of_first[] = {100, 1, 2, 10};
    check_link(asking_ptx, strong_ptx, of_strong);
    check_link(strong_ptx, asking_ptx, of_strong);
    check_link(asking_ptx, weak_ptx, of_first);
    check_link(weak_ptx, asking_ptx, of_strong);

    /* In one text a name is defined once, and two texts do not make one. */
    CUmodule module;
    char *twice = malloc(sizeof asking_ptx + sizeof weak_ptx);
    strcat(strcpy(twice, asking_ptx), weak_ptx);
    IS(INVALID_PTX, cuModuleLoadData(&module, twice));
    free(twice);
    CUlinkState link;
    void *cubin;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)strong_ptx, sizeof strong_ptx, "one", 0,
                        NULL, NULL));
    IS(INVALID_SOURCE, cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)strong_ptx,
                                        sizeof strong_ptx, "two", 0, NULL, NULL));
    IS(INVALID_SOURCE, cuLinkComplete(link, &cubin, NULL));
    OK(cuLinkDestroy(link));
}
END_TEST

/* Each block counts itself in before the barrier and adds up behind it, twice; the answers of the two
 * functions are kept. */
static const char grid_sync_ptx[] =
    HEADER ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
           ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
           ".visible .entry k(.param .u64 out)\n"
           "{ .reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .pred %p;\n"
           "  ld.param.u64 %rd1, [out]; mov.u32 %r3, %ctaid.x; mov.u32 %r5, 0;\n"
           "  { .param .b32 a; .param .b64 q; st.param.b32 [a], 1; call (q), cudaCGGetIntrinsicHandle, (a);\n"
           "    ld.param.b64 %rd2, [q]; }\n"
           "AGAIN: atom.global.add.u32 %r1, [%rd1], 1;\n"
           "  { .param .b64 a; .param .b32 b; .param .b32 q; st.param.b64 [a], %rd2; st.param.b32 [b], 0;\n"
           "    call (q), cudaCGSynchronize, (a, b); ld.param.b32 %r2, [q]; }\n"
           "  ld.volatile.global.u32 %r1, [%rd1]; add.u32 %r5, %r5, %r1;\n"
           "  { .param .b64 a; .param .b32 b; .param .b32 q; st.param.b64 [a], %rd2; st.param.b32 [b], 0;\n"
           "    call (q), cudaCGSynchronize, (a, b); }\n"
           "  setp.lt.u32 %p, %r1, 128; @%p bra AGAIN;\n"
           "  mad.wide.u32 %rd3, %r3, 8, %rd1; st.global.v2.u32 [%rd3+8], {%r5, %r2}; ret; }\n";

START_TEST(kernels_wait_for_their_grid)
{
    start("sm_90");
    CUlinkState link;
    void *cubin;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)grid_sync_ptx, sizeof grid_sync_ptx, "k",
                        0, NULL, NULL));
    static char archive[] = "!<arch>\n"; /* libcudadevrt.a; what it holds cannot be executed here */
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_LIBRARY, archive, sizeof archive - 1, "devrt", 0, NULL, NULL));
    OK(cuLinkComplete(link, &cubin, NULL));
    CUfunction k = load(cubin, "k");
    CUdeviceptr p = zeros(2 + 2 * 8);
    void *params[] = {&p};
    enum { BLOCKS = 4, THREADS = 16 };
    OK(cuLaunchCooperativeKernel(k, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params));
    OK(cuCtxSynchronize());
    for (size_t block = 0; block < BLOCKS; block++) {
        ck_assert_uint_eq(word(p, 2 + 2 * block), 64 + 128);
        ck_assert_uint_eq(word(p, 3 + 2 * block), 0);
    }
    /* Launched otherwise there is no grid to wait for. libcudadevrt answers cudaErrorUnknown. */
    OK(cuMemsetD32_v2(p, 128, 1));
    OK(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(word(p, 3), 999);
    OK(cuLinkDestroy(link));
}
END_TEST

START_TEST(what_does_not_link)
{
    start("sm_90");
    CUlinkState link;
    void *cubin;
    size_t bytes;
    char log[512] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    OK(cuLinkCreate_v2(2, options, values, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)caller_ptx, sizeof caller_ptx, "caller", 0,
                        NULL, NULL));
    IS(INVALID_SOURCE, cuLinkComplete(link, &cubin, &bytes));
    ck_assert_ptr_nonnull(strstr(log, "twice"));
    OK(cuLinkDestroy(link));
}
END_TEST

/* What softcuda cannot add is missed by the whole. */
START_TEST(what_cannot_be_linked_fails_the_link)
{
    start("sm_90");
    CUlinkState link;
    char object[] = "an object file";
    void *cubin;
    size_t bytes;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    IS(NOT_SUPPORTED,
       cuLinkAddData_v2(link, CU_JIT_INPUT_OBJECT, object, sizeof object, "object", 0, NULL, NULL));
    IS(NOT_SUPPORTED, cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)callee_ptx,
                                       sizeof callee_ptx, "callee", 0, NULL, NULL));
    IS(NOT_SUPPORTED, cuLinkComplete(link, &cubin, &bytes));
    OK(cuLinkDestroy(link));
}
END_TEST

/* A fatbin of PTX for two levels: the device takes the higher that it can run. */
START_TEST(fatbin_choice)
{
    start("sm_80");
    static const char low[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry low() { ret; }\n";
    static const char mid[] =
        ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry mid() { ret; }\n";
    static const char high[] =
        ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry high() { ret; }\n";
    kr__fatbin_part parts[] = {{KR_IMAGE_PTX, {7, 5, 0}, 70, low, sizeof low},
                               {KR_IMAGE_PTX, {9, 0, 0}, 78, high, sizeof high},
                               {KR_IMAGE_PTX, {8, 0, 0}, 70, mid, sizeof mid}};
    void *fatbin;
    size_t bytes;
    CUmodule module;
    ck_assert_int_eq(kr__fatbin_write(parts, 3, &fatbin, &bytes, NULL), KR_OK);
    load(fatbin, "mid");
    free(fatbin);
    ck_assert_int_eq(kr__fatbin_write(&parts[1], 1, &fatbin, &bytes, NULL), KR_OK);
    IS(NO_BINARY_FOR_GPU, cuModuleLoadData(&module, fatbin));
    free(fatbin);
}
END_TEST

/* No driver reads the PTX that stands for a cubin, so none is too old for it. */
START_TEST(ptx_for_a_cubin_may_be_newer_than_the_driver)
{
    setenv("KREGISTRY_SOFTCUDA_DRIVER", "11.4", 1);
    start("sm_80");
    static const char old[] = HEADER ".visible .entry k(.param .u64 p) { ret; }\n";
    static const char new[] = ".version 9.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry k(.param .u64 p) { .reg .b64 %rd1; .reg .b32 %r1;\n"
                              "ld.param.u64 %rd1, [p]; mov.u32 %r1, 42; st.global.u32 [%rd1], %r1; ret; }\n";
    CUlinkState link;
    void *cubin, *fatbin;
    size_t bytes;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)old, sizeof old, "old", 0, NULL, NULL));
    OK(cuLinkComplete(link, &cubin, &bytes));
    char *own = memmem(cubin, bytes, ".softcuda.ptx", 13);
    own[1] = 'S'; /* a cubin as ptxas makes one carries no PTX */
    kr__fatbin_part parts[] = {{KR_IMAGE_CUBIN, {8, 0, 0}, 0, cubin, bytes},
                               {KR_IMAGE_PTX, {8, 0, 0}, 90, new, sizeof new}};
    ck_assert_int_eq(kr__fatbin_write(parts, 2, &fatbin, &bytes, NULL), KR_OK);
    CUdeviceptr p = zeros(1);
    void *params[] = {&p};
    OK(cuLaunchKernel(load(fatbin, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    ck_assert_uint_eq(word(p, 0), 42);
    CUmodule module;
    IS(UNSUPPORTED_PTX_VERSION, cuModuleLoadData(&module, new)); /* by itself it is too new */
    OK(cuLinkDestroy(link));
    free(fatbin);
}
END_TEST

/* What a real driver crashes on (wrong zstd it answers with 999): LZ4 that is none, and a cubin that is said
 * to be LTO-IR. Beside a cubin, PTX that does not unpack is not looked at before a launch. */
START_TEST(entries_that_are_not_what_they_say)
{
    enum { FIRST = 16, PAYLOAD_AT = 0x08, PACKED_AT = 0x10, FLAGS_AT = 0x28, UNPACKED_AT = 0x38, LZ4 = 0x20 };
    start("sm_90");
    size_t bytes;
    char *cubin = link_two(&bytes);
    ((char *)memmem(cubin, bytes, ".softcuda.ptx", 13))[1] = 'S';
    kr__fatbin_part parts[] = {{KR_IMAGE_PTX, {7, 5, 0}, 65, callee_ptx, sizeof callee_ptx},
                               {KR_IMAGE_CUBIN, {9, 0, 0}, 0, cubin, bytes}};
    for (size_t n = 1; n <= 2; n++) {
        char *fatbin;
        CUmodule module;
        ck_assert_int_eq(kr__fatbin_write(parts, n, (void **)&fatbin, &bytes, NULL), KR_OK);
        fatbin[FIRST + FLAGS_AT + 1] |= LZ4;
        memcpy(fatbin + FIRST + PACKED_AT, fatbin + FIRST + PAYLOAD_AT, 4);
        memcpy(fatbin + FIRST + UNPACKED_AT, fatbin + FIRST + PAYLOAD_AT, 8);
        if (n == 1)
            IS(UNKNOWN, cuModuleLoadData(&module, fatbin));
        else
            IS(NOT_SUPPORTED, cuLaunchKernel(load(fatbin, "k"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        free(fatbin);
    }
    char *fatbin;
    CUmodule module;
    ck_assert_int_eq(kr__fatbin_write(&parts[1], 1, (void **)&fatbin, &bytes, NULL), KR_OK);
    fatbin[FIRST] = 8;
    IS(NO_BINARY_FOR_GPU, cuModuleLoadData(&module, fatbin));
    free(fatbin);
    free(cubin);
}
END_TEST

/* 470 answers so to machine code of CUDA 12.3: triton-lang/triton#2971. */
static void load_of_12_3(const char *driver, CUresult wanted)
{
    const small_cubin cubin = small_cubin_of(0x500550);
    setenv("KREGISTRY_SOFTCUDA_DRIVER", driver, 1);
    start("sm_80");
    CUmodule module;
    ck_assert_int_eq(cuModuleLoadData(&module, &cubin), wanted);
}

START_TEST(machine_code_newer_than_the_driver)
{
    load_of_12_3("11.8", CUDA_ERROR_INVALID_IMAGE);
}
END_TEST

START_TEST(machine_code_of_the_drivers_time)
{
    load_of_12_3("12.0", CUDA_SUCCESS);
}
END_TEST

START_TEST(damaged_images_do_no_harm)
{
    start("sm_90");
    size_t bytes, fatbin_bytes;
    char *image = link_two(&bytes);
    void *fatbin;
    kr__fatbin_part part = {KR_IMAGE_CUBIN, {9, 0, 0}, 0, image, bytes};
    ck_assert_int_eq(kr__fatbin_write(&part, 1, &fatbin, &fatbin_bytes, NULL), KR_OK);
    struct {
        const char *data;
        size_t n;
    } images[] = {{image, bytes}, {fatbin, fatbin_bytes}};
    for (size_t i = 0; i < 2; i++) {
        /* Nobody tells the size of an image, so the copy stands in zeros, as a truncated one in a buffer
         * would. */
        char *copy = calloc(1, 4 * images[i].n + 65536);
        for (size_t cut = 0; cut < images[i].n; cut += 64) {
            memset(copy, 0, images[i].n);
            memcpy(copy, images[i].data, cut);
            CUmodule module;
            if (cuModuleLoadData(&module, copy) == CUDA_SUCCESS)
                OK(cuModuleUnload(module));
        }
        free(copy);
    }
    free(fatbin);
    free(image);
}
END_TEST

/* ---- launches ---- */

START_TEST(launches_are_checked)
{
    start("sm_90");
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64);
    unsigned n = 1;
    void *params[] = {&p, &n};
    IS(INVALID_VALUE, cuLaunchKernel(add, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    IS(INVALID_VALUE, cuLaunchKernel(add, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL));
    IS(INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL));
    IS(INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 64, 32, 1, 0, NULL, params, NULL));
    IS(INVALID_VALUE, cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    IS(INVALID_HANDLE, cuLaunchKernel((CUfunction)0x1230, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    IS(INVALID_HANDLE, cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, (CUstream)0x1230, params, NULL));
    struct {
        CUdeviceptr p;
        unsigned n;
    } block = {p, 4};
    size_t bytes = 12;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_BUFFER_POINTER, &block,
                     CU_LAUNCH_PARAM_END};
    OK(cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    ck_assert_uint_eq(word(p, 40), 4);
    IS(INVALID_VALUE, cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, params, extra));
    bytes = 16; /* more than the kernel's block */
    IS(LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    void *odd[] = {(void *)77, &bytes, CU_LAUNCH_PARAM_END};
    IS(INVALID_VALUE, cuLaunchKernel(add, 2, 1, 1, 32, 1, 1, 0, NULL, NULL, odd));
}
END_TEST

/* A kernel that needs 200 registers. */
static CUfunction heavy(const char *directives)
{
    enum { N = 200 };
    static char text[1 << 15];
    char *at =
        text + sprintf(text,
                       HEADER
                       ".visible .entry heavy(.param .u64 p) %s { .reg .b32 %%r<%d>; .reg .b64 %%d<2>;\n"
                       "ld.param.u64 %%d1, [p];\n",
                       directives, N);
    for (int i = 0; i < N; i++)
        at += sprintf(at, "ld.volatile.global.u32 %%r%d, [%%d1];\n", i);
    for (int i = 0; i < N; i++)
        at += sprintf(at, "st.volatile.global.u32 [%%d1], %%r%d;\n", i);
    sprintf(at, "ret; }\n");
    return load(text, "heavy");
}

/* 65536 registers, 256 at a time to each warp, in four parts: 8 warps of 200 registers, 16 of 128, 32 of 64.
 */
START_TEST(registers_limit_blocks)
{
    static const struct {
        const char *directives;
        unsigned fits, too_many;
        CUresult result;
        int resident;
    } kernels[] = {
        {"", 256, 288, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 1},
        {"", 256, 1025, CUDA_ERROR_INVALID_VALUE, 1},
        {".maxntid 128", 128, 129, CUDA_ERROR_INVALID_VALUE, 2},
        {".maxntid 512", 512, 513, CUDA_ERROR_INVALID_VALUE, 1},
        {".maxntid 1024, 1, 1", 1024, 1025, CUDA_ERROR_INVALID_VALUE, 1},
        {".reqntid 512", 512, 511, CUDA_ERROR_INVALID_VALUE, 1},
        {".maxntid 256 .minnctapersm 4", 256, 257, CUDA_ERROR_INVALID_VALUE, 4},
        {".maxntid 768 .minnctapersm 2", 768, 769, CUDA_ERROR_INVALID_VALUE, 2},
        {".maxntid 768 .minnctapersm 3", 768, 769, CUDA_ERROR_INVALID_VALUE, 1}, /* 3 are too many: ignored */
    };
    start("sm_90");
    CUdeviceptr p = zeros(1);
    void *params[] = {&p};
    for (size_t i = 0; i < KR_COUNT(kernels); i++) {
        CUfunction f = heavy(kernels[i].directives);
        int resident;
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, f, (int)kernels[i].fits, 0));
        ck_assert_msg(resident == kernels[i].resident, "%s: %d", kernels[i].directives, resident);
        OK(cuLaunchKernel(f, 1, 1, 1, kernels[i].fits, 1, 1, 0, NULL, params, NULL));
        CUresult result = cuLaunchKernel(f, 1, 1, 1, kernels[i].too_many, 1, 1, 0, NULL, params, NULL);
        ck_assert_msg(result == kernels[i].result, "%s, %u: %d", kernels[i].directives, kernels[i].too_many,
                      result);
    }
    OK(cuCtxSynchronize());
}
END_TEST

/* Against the tables of CUDA's occupancy calculator. */
/* A block without threads, and one of 2^64, ended the process. */
START_TEST(clusters_of_impossible_blocks)
{
    static const unsigned blocks[][3] = {{1, 0, 1}, {1, 1, 0}, {1u << 22, 1u << 21, 1u << 21}};
    static const CUresult answers[] = {CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS};
    start("sm_90");
    CUfunction function = load(HEADER ".visible .entry nothing()\n{\n    ret;\n}\n", "nothing");
    for (size_t i = 0; i < KR_COUNT(blocks); i++) {
        CUlaunchConfig config = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};
        config.blockDimX = blocks[i][0];
        config.blockDimY = blocks[i][1];
        config.blockDimZ = blocks[i][2];
        int largest = 0, active = 0;
        ck_assert_int_eq(cuOccupancyMaxPotentialClusterSize(&largest, function, &config), answers[i]);
        ck_assert_int_eq(cuOccupancyMaxActiveClusters(&active, function, &config), answers[i]);
        ck_assert_int_eq(largest, 0);
        ck_assert_int_eq(active, 0);
    }
}
END_TEST

START_TEST(occupancy)
{
    start("sm_75,sm_80,sm_86,sm_90");
    static const char shared[] =
        HEADER ".visible .entry k() { .shared .align 4 .b8 s[16384]; .reg .b32 %r<2>; "
               "mov.u32 %r1, s; st.shared.u32 [%r1], %r1; ret; }\n";
    static const int bare[] = {16, 32, 16, 32}, with_shared[] = {4, 9, 5, 13};
    for (int i = 0; i < 4; i++) {
        CUcontext context;
        OK(cuCtxCreate_v2(&context, 0, i));
        int blocks;
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, load(add_ptx, "add"), 32, 0));
        ck_assert_int_eq(blocks, bare[i]);
        CUfunction k = load(shared, "k");
        OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 32, 0));
        ck_assert_int_eq(blocks, with_shared[i]);
        OK(cuCtxDestroy_v2(context));
    }
    int grid, block;
    size_t bytes;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, load(add_ptx, "add"), NULL, 20000, 500));
    OK(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, load(shared, "k"), 1, 128));
    ck_assert_uint_eq(bytes, 32768);
}
END_TEST

/* ---- streams ---- */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open, reached;
} gate;
#define GATE                                                              \
    {                                                                     \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false \
    }

static void wait_at(void *arg)
{
    gate *g = arg;
    pthread_mutex_lock(&g->mutex);
    g->reached = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void let_through(gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

static void await_arrival(gate *g)
{
    pthread_mutex_lock(&g->mutex);
    while (!g->reached)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

START_TEST(streams_do_not_wait_for_each_other)
{
    start("sm_90");
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64), q = zeros(64);
    CUstream a, b;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    gate g = GATE;
    OK(cuLaunchHostFunc(a, wait_at, &g));
    OK(launch_add(add, p, 1, a)); /* returns at once: behind the gate */
    await_arrival(&g);
    IS(NOT_READY, cuStreamQuery(a));
    OK(launch_add(add, q, 1, b));
    OK(cuStreamSynchronize(b)); /* while a still stands */
    ck_assert_uint_eq(word(q, 0), 1);
    ck_assert_uint_eq(word(p, 0), 0);
    let_through(&g);
    OK(cuStreamSynchronize(a));
    OK(cuStreamQuery(a));
    ck_assert_uint_eq(word(p, 0), 1);
}
END_TEST

/* Bytes that are allocated. */
static size_t allocated(void)
{
    return mallinfo2().uordblks;
}

static CUdeviceptr shared_word;

static void *use_own_stream(void *context)
{
    OK(cuCtxSetCurrent(context));
    OK(cuMemsetD32Async(shared_word, 0, 1, CU_STREAM_PER_THREAD));
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void come_and_go(CUcontext context, int n)
{
    for (int i = 0; i < n; i++) {
        CUcontext own;
        pthread_t thread;
        CUdeviceptr p;
        OK(cuCtxCreate_v2(&own, 0, 0));
        OK(cuMemAlloc_v2(&p, 64));
        OK(cuCtxDestroy_v2(own));
        ck_assert_int_eq(pthread_create(&thread, NULL, use_own_stream, context), 0);
        pthread_join(thread, NULL);
    }
}

/* Some of what has ended is remembered, but not more and more of it. */
START_TEST(what_has_ended_takes_no_memory)
{
    enum { ROUNDS = 500, LESS_THAN_AN_OBJECT = 64 };
    mallopt(M_ARENA_MAX, 1); /* so that there is one sum */
    CUcontext context;
    start("sm_90");
    OK(cuCtxGetCurrent(&context));
    shared_word = zeros(1);
    come_and_go(context, ROUNDS);
    size_t before = allocated();
    come_and_go(context, ROUNDS);
    size_t after = allocated();
    ck_assert_msg(after < before + (size_t)ROUNDS * LESS_THAN_AN_OBJECT, "%zu, then %zu", before, after);
}
END_TEST

/* Of its few descriptors, memory takes one only where it can be exported. */
START_TEST(created_memory_needs_no_descriptors)
{
    enum { N = 200, FEW = 40, BYTES = 2 << 20 };
    static CUmemGenericAllocationHandle handles[N];
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at;
    start("sm_90");
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FEW, limit.rlim_max}), 0);
    for (int i = 0; i < N; i++)
        OK(cuMemCreate(&handles[i], BYTES, &prop, 0));
    OK(cuMemAddressReserve(&at, 2 * BYTES, 0, 0, 0));
    OK(cuMemMap(at, BYTES, 0, handles[N - 1], 0));
    OK(cuMemMap(at + BYTES, BYTES, 0, handles[N - 1], 0)); /* the same twice */
    OK(cuMemSetAccess(at, 2 * BYTES, &access, 1));
    OK(cuMemsetD32_v2(at, 7, 1));
    ck_assert_uint_eq(word(at + BYTES, 0), 7);
    OK(cuMemUnmap(at, 2 * BYTES));
    for (int i = 0; i < N; i++)
        OK(cuMemRelease(handles[i]));
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < N && !result; i++)
        result = cuMemCreate(&handles[i], BYTES, &prop, 0);
    ck_assert_int_eq(result, CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0); /* the search for leaks opens files */
}
END_TEST

/* CUDA 12.8's form tells which copy is wrong; of CUDA 13's, facts/copy.c tells all. */
START_TEST(a_batch_tells_which_copy_is_wrong)
{
    start("sm_90");
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = zeros(2), to[] = {p, p + 4}, from[] = {p + 4, p};
    CUmemcpyAttributes attrs = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t bytes[] = {4, 4}, first = 0, wrong = 77;
    OK(cuMemsetD32_v2(p + 4, 5, 1));
    OK(cuMemcpyBatchAsync(to, from, bytes, 2, &attrs, &first, 1, &wrong, stream));
    ck_assert_uint_eq(wrong, 77);
    OK(cuStreamSynchronize(stream));
    ck_assert_uint_eq(word(p, 0), 5);
    bytes[1] = 0;
    IS(INVALID_VALUE, cuMemcpyBatchAsync(to, from, bytes, 2, &attrs, &first, 1, &wrong, stream));
    ck_assert_uint_eq(wrong, 1);
    IS(INVALID_VALUE, cuMemcpyBatchAsync(to, from, bytes, 0, &attrs, &first, 1, &wrong, stream));
    ck_assert_uint_eq(wrong, SIZE_MAX);
}
END_TEST

/* Does the system give this process further threads? */
static void allow_threads(bool allow)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NPROC, &limit), 0);
    limit.rlim_cur = allow ? limit.rlim_max : 0;
    ck_assert_int_eq(setrlimit(RLIMIT_NPROC, &limit), 0);
    if (getuid() == 0) /* whom the limit does not hold */
        ck_assert_int_eq(setuid(65534), 0);
    prctl(PR_SET_DUMPABLE, 1); /* which the search for leaks needs */
}

static void *nothing(void *arg)
{
    return arg;
}

static void count_up(void *arg)
{
    ++*(int *)arg;
}

START_TEST(work_goes_on_without_threads)
{
    setenv("KREGISTRY_SOFTCUDA_THREADS", "4", 1);
    allow_threads(false);
    pthread_t thread;
    ck_assert_int_ne(pthread_create(&thread, NULL, nothing, NULL), 0);
    start("sm_90");
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64);
    CUstream a, b;
    CUevent event;
    int called = 0;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    for (int i = 0; i < 3; i++)
        OK(launch_add(add, p, 2, a));
    OK(cuLaunchHostFunc(a, count_up, &called));
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(launch_add(add, p, 4, b));
    for (int i = 0; cuStreamQuery(b) == CUDA_ERROR_NOT_READY; i++) /* nobody waits */
        ck_assert_int_lt(i, 1000);
    ck_assert_int_eq(called, 1);
    ck_assert_uint_eq(word(p, 63), 10);
    OK(launch_add(add, p, 1, NULL));
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(word(p, 0), 11);
    allow_threads(true);
}
END_TEST

static void never(int number)
{
    ck_abort_msg("signal %d came to a thread that is not the program's", number);
}

START_TEST(signals_go_to_the_programs_threads)
{
    sigset_t set, pending;
    setenv("KREGISTRY_SOFTCUDA_THREADS", "4", 1);
    start("sm_75");
    OK(launch_add(load(add_ptx, "add"), zeros(64), 1, NULL));
    OK(cuCtxSynchronize());
    signal(SIGUSR1, never);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    sigpending(&pending);
    ck_assert(sigismember(&pending, SIGUSR1));
}
END_TEST

START_TEST(the_legacy_stream_orders_blocking_streams)
{
    start("sm_90");
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64);
    CUstream a, b, beside;
    unsigned *seen;
    OK(cuMemHostAlloc((void **)&seen, 4, 0));
    OK(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&b, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    gate g = GATE;
    OK(cuLaunchHostFunc(a, wait_at, &g));
    OK(launch_add(add, p, 1, NULL));     /* after a */
    OK(cuMemsetD32Async(p, 100, 64, b)); /* after the legacy stream */
    await_arrival(&g);
    usleep(20000);
    IS(NOT_READY, cuStreamQuery(NULL));
    IS(NOT_READY, cuStreamQuery(b));
    OK(cuMemcpyDtoHAsync_v2(seen, p, 4, beside));
    OK(cuStreamSynchronize(beside));
    ck_assert_uint_eq(*seen, 0); /* neither has run */
    let_through(&g);
    OK(cuStreamSynchronize(b));
    ck_assert_uint_eq(word(p, 0), 100);
}
END_TEST

START_TEST(events_order_streams)
{
    start("sm_90");
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64);
    CUstream a, b;
    CUevent before, after;
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&before, 0));
    OK(cuEventCreate(&after, 0));
    gate g = GATE;
    OK(cuEventRecord(before, a));
    OK(cuLaunchHostFunc(a, wait_at, &g));
    OK(launch_add(add, p, 7, a));
    OK(cuEventRecord(after, a));
    OK(cuStreamWaitEvent(b, after, 0));
    OK(launch_add(add, p, 5, b));
    IS(NOT_READY, cuEventQuery(after));
    float ms = -1;
    IS(NOT_READY, cuEventElapsedTime(&ms, before, after));
    await_arrival(&g);
    usleep(2000);
    let_through(&g);
    OK(cuStreamSynchronize(b));
    OK(cuEventQuery(after));
    OK(cuEventElapsedTime(&ms, before, after));
    ck_assert(ms >= 1.5f);
    ck_assert_uint_eq(word(p, 0), 12);
    OK(cuEventDestroy_v2(after));
    IS(INVALID_HANDLE, cuEventQuery(after));
}
END_TEST

START_TEST(pageable_memory_is_staged)
{
    start("sm_90");
    CUdeviceptr p = zeros(64);
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    gate g = GATE;
    OK(cuLaunchHostFunc(s, wait_at, &g));
    unsigned source = 77;
    OK(cuMemcpyHtoDAsync_v2(p, &source, 4, s));
    source = 0; /* already read */
    let_through(&g);
    unsigned result;
    OK(cuMemcpyDtoHAsync_v2(&result, p, 4, s)); /* done on return */
    ck_assert_uint_eq(result, 77);
}
END_TEST

START_TEST(a_destroyed_stream_finishes_its_work)
{
    start("sm_90");
    CUdeviceptr p = zeros(64);
    CUstream s;
    OK(cuStreamCreate(&s, 0));
    CUfunction add = load(add_ptx, "add");
    gate g = GATE;
    OK(cuLaunchHostFunc(s, wait_at, &g));
    for (int i = 0; i < 20; i++)
        OK(launch_add(add, p, 1, s));
    OK(cuStreamDestroy_v2(s));
    IS(INVALID_HANDLE, cuStreamSynchronize(s));
    let_through(&g);
    OK(cuCtxSynchronize());
    ck_assert_uint_eq(word(p, 5), 20);
}
END_TEST

static void call_inside(void *arg)
{
    int count;
    *(CUresult *)arg = cuDeviceGetCount(&count);
}

START_TEST(host_functions_may_not_call)
{
    start("sm_90");
    CUresult inside = CUDA_SUCCESS;
    OK(cuLaunchHostFunc(NULL, call_inside, &inside));
    OK(cuCtxSynchronize());
    ck_assert_int_eq(inside, CUDA_ERROR_NOT_PERMITTED);
}
END_TEST

/* ---- graphs ---- */

START_TEST(a_captured_graph_runs_again_and_again)
{
    start("sm_90");
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr p = zeros(64), q = zeros(64);
    CUstream s, t;
    CUevent fork, join;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(launch_add(add, p, 1, s));
    OK(cuEventRecord(fork, s));
    OK(cuStreamWaitEvent(t, fork, 0));
    OK(launch_add(add, q, 10, t));
    OK(cuMemsetD32Async(p, 50, 1, s));
    OK(cuEventRecord(join, t));
    OK(cuStreamWaitEvent(s, join, 0));
    OK(launch_add(add, p, 1, s));
    CUgraph graph;
    OK(cuStreamEndCapture(s, &graph));
    ck_assert_uint_eq(word(p, 1), 0); /* nothing ran */
    size_t n = 0;
    OK(cuGraphGetNodes(graph, NULL, &n));
    ck_assert_uint_eq(n, 4);
    CUgraphNode nodes[4];
    CUgraphNodeType type;
    OK(cuGraphGetNodes(graph, nodes, &n));
    OK(cuGraphNodeGetType(nodes[2], &type));
    ck_assert_int_eq(type, CU_GRAPH_NODE_TYPE_MEMSET);
    CUgraphExec exec;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph)); /* the instance is its own */
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(exec, s));
    OK(cuStreamSynchronize(s));
    ck_assert_uint_eq(word(p, 0), 51);
    ck_assert_uint_eq(word(p, 1), 6);
    ck_assert_uint_eq(word(q, 1), 30);
    OK(cuGraphExecDestroy(exec));
    IS(INVALID_VALUE, cuGraphLaunch(exec, s));
}
END_TEST

START_TEST(captures_that_fail)
{
    start("sm_90");
    CUstream s, t;
    CUevent e;
    CUgraph graph;
    CUdeviceptr p;
    CUfunction add = load(add_ptx, "add");
    CUdeviceptr q = zeros(64);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&t, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, 0));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    IS(STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(&p, 16));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &graph));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL)); /* work that does not flow back */
    OK(cuEventRecord(e, s));
    OK(cuStreamWaitEvent(t, e, 0));
    OK(launch_add(add, q, 1, t));
    IS(STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(s, &graph));
    ck_assert_ptr_null(graph);
    OK(launch_add(add, q, 1, t)); /* both streams are free again */
    OK(cuStreamSynchronize(t));
    ck_assert_uint_eq(word(q, 0), 1);
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    OK(cuStreamDestroy_v2(s)); /* ends it */
    OK(cuMemAlloc_v2(&p, 16));
}
END_TEST

/* ---- several devices, several threads ---- */

START_TEST(a_refused_free_frees_nothing)
{
    start("sm_90");
    CUstream stream;
    CUgraph graph;
    CUdeviceptr p;
    OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    OK(cuMemAllocAsync(&p, 64, NULL));
    OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    IS(STREAM_CAPTURE_IMPLICIT, cuMemFreeAsync(p, NULL));
    IS(STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    OK(cuMemsetD32_v2(p, 3, 16));
    ck_assert_uint_eq(word(p, 15), 3);
    OK(cuMemFreeAsync(p, NULL));
    IS(INVALID_VALUE, cuMemFreeAsync(p, NULL));
}
END_TEST

START_TEST(peers)
{
    CUcontext a = start("sm_90,sm_90,sm_75"), b;
    OK(cuDevicePrimaryCtxRetain(&b, 1));
    CUfunction add = load(add_ptx, "add");
    OK(cuCtxSetCurrent(b));
    CUdeviceptr there = zeros(64);
    OK(cuCtxSetCurrent(a));
    CUdeviceptr here = zeros(64);
    OK(cuCtxEnablePeerAccess(b, 0));
    IS(PEER_ACCESS_ALREADY_ENABLED, cuCtxEnablePeerAccess(b, 0));
    OK(launch_add(add, there, 9, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemcpyPeer(here, a, there, b, 256));
    ck_assert_uint_eq(word(here, 63), 9);
    int ordinal;
    OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    ck_assert_int_eq(ordinal, 1);
    OK(cuCtxDisablePeerAccess(b));
    OK(launch_add(add, there, 9, NULL)); /* no longer allowed */
    IS(ILLEGAL_ADDRESS, cuCtxSynchronize());
}
END_TEST

static void *hammer(void *arg)
{
    CUdevice device = (CUdevice)(intptr_t)arg % 3;
    CUcontext context;
    OK(cuDevicePrimaryCtxRetain(&context, device));
    OK(cuCtxSetCurrent(context));
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    for (int round = 0; round < 10; round++) {
        CUmodule module;
        CUfunction add;
        OK(cuModuleLoadData(&module, add_ptx));
        OK(cuModuleGetFunction(&add, module, "add"));
        CUdeviceptr p;
        OK(cuMemAllocAsync(&p, 256, s));
        OK(cuMemsetD32Async(p, 1, 64, s));
        for (unsigned i = 0; i < 20; i++)
            OK(launch_add(add, p, i, s));
        OK(cuModuleUnload(module)); /* with launches pending */
        unsigned result[64];
        OK(cuMemcpyDtoHAsync_v2(result, p, sizeof result, s));
        OK(cuMemFreeAsync(p, s));
        OK(cuStreamSynchronize(s));
        for (int i = 0; i < 64; i++)
            ck_assert_uint_eq(result[i], 191);
    }
    OK(cuStreamDestroy_v2(s));
    return NULL;
}

START_TEST(many_threads)
{
    start("sm_75,sm_80,sm_90");
    pthread_t threads[8];
    for (intptr_t i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, hammer, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

/* ---- the end of it ---- */

START_TEST(a_fault_ends_every_context)
{
    CUcontext first = start("sm_90,sm_75"), second, own;
    CUfunction store = load(add_ptx, "store");
    CUdeviceptr p = zeros(1);
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    unsigned long long i = 1;
    void *params[] = {&p, &i};
    OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL)); /* one word past the end */
    IS(ILLEGAL_ADDRESS, cuCtxSynchronize());
    IS(ILLEGAL_ADDRESS, cuMemFree_v2(p));
    IS(ILLEGAL_ADDRESS, cuCtxCreate_v2(&own, 0, 1));
    OK(cuCtxSetCurrent(second));
    IS(ILLEGAL_ADDRESS, cuMemAlloc_v2(&p, 16));
    CUdevice device;
    OK(cuCtxGetDevice(&device)); /* what needs no device still answers */
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuDevicePrimaryCtxReset_v2(0));
    IS(ILLEGAL_ADDRESS, cuDevicePrimaryCtxRetain(&first, 0));
}
END_TEST

START_TEST(garbage_is_no_handle)
{
    start("sm_90");
    CUdeviceptr p;
    size_t n;
    int value;
    CUfunction f;
    CUgraph graph;
    for (uintptr_t bad = 0x1000; bad < 0x4000; bad += 0x1230) {
        IS(INVALID_CONTEXT, cuCtxSetCurrent((CUcontext)bad));
        IS(INVALID_HANDLE, cuModuleUnload((CUmodule)bad));
        IS(INVALID_HANDLE, cuModuleGetFunction(&f, (CUmodule)bad, "k"));
        IS(INVALID_HANDLE, cuModuleGetGlobal_v2(&p, &n, (CUmodule)bad, "g"));
        IS(INVALID_HANDLE, cuStreamSynchronize((CUstream)bad));
        IS(INVALID_HANDLE, cuStreamEndCapture((CUstream)bad, &graph));
        IS(INVALID_HANDLE, cuEventRecord((CUevent)bad, NULL));
        IS(INVALID_HANDLE, cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)bad));
        IS(INVALID_HANDLE, cuLibraryUnload((CUlibrary)bad));
        IS(INVALID_HANDLE, cuKernelGetFunction(&f, (CUkernel)bad));
        IS(INVALID_HANDLE, cuLinkDestroy((CUlinkState)bad));
        IS(INVALID_VALUE, cuGraphDestroy((CUgraph)bad));
        IS(INVALID_VALUE, cuMemPoolDestroy((CUmemoryPool)bad));
        IS(INVALID_VALUE, cuMemFree_v2(bad));
    }
    /* Nor is a handle of another kind. */
    CUcontext context;
    OK(cuCtxGetCurrent(&context));
    IS(INVALID_HANDLE, cuStreamSynchronize((CUstream)context));
    IS(INVALID_HANDLE, cuModuleUnload((CUmodule)context));
}
END_TEST

START_TEST(a_forked_child_has_no_driver)
{
    start("sm_90");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int count;
        _exit(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED
                  ? 0
                  : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    OK(cuCtxSynchronize());
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        nothing_before_init,
        procedures_by_version_and_flag,
        an_older_driver,
        what_is_not_there_says_so,
        errors_have_names,
        devices_as_asked_for,
        no_such_chip,
        bad_settings_are_named,
        visible_devices,
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
        address_space_is_short,
#endif
        each_thread_has_its_stack,
        what_has_ended_takes_no_memory,
        created_memory_needs_no_descriptors,
        a_batch_tells_which_copy_is_wrong,
        primary_context_lives_while_retained,
        handles_work_without_a_current_context,
        limits,
        copies_go_every_way,
        arrays_are_copied_in_streams_graphs_and_between_devices,
        arrays_end_with_their_context,
        arrays_that_are_not_there,
        fills,
        host_memory,
        what_cannot_be_registered,
        managed_memory_is_everywhere,
        memory_is_counted,
        what_is_freed_goes_back_to_the_system,
        allocations_do_not_use_up_mappings,
        pools,
        ptx_runs,
        the_stack_is_as_deep_as_its_limit,
        variables_keep_their_values,
        jit_log_tells_the_line,
        what_is_no_image,
        libraries_load_where_they_are_used,
        linked_code_runs,
        the_strongest_definition_counts,
        kernels_wait_for_their_grid,
        what_does_not_link,
        what_cannot_be_linked_fails_the_link,
        fatbin_choice,
        ptx_for_a_cubin_may_be_newer_than_the_driver,
        entries_that_are_not_what_they_say,
        machine_code_newer_than_the_driver,
        machine_code_of_the_drivers_time,
        damaged_images_do_no_harm,
        launches_are_checked,
        registers_limit_blocks,
        occupancy,
        clusters_of_impossible_blocks,
        streams_do_not_wait_for_each_other,
        work_goes_on_without_threads,
        signals_go_to_the_programs_threads,
        the_legacy_stream_orders_blocking_streams,
        events_order_streams,
        pageable_memory_is_staged,
        a_destroyed_stream_finishes_its_work,
        host_functions_may_not_call,
        a_captured_graph_runs_again_and_again,
        captures_that_fail,
        a_refused_free_frees_nothing,
        peers,
        a_fault_ends_every_context,
        garbage_is_no_handle,
        a_forked_child_has_no_driver,
    };
    unsetenv("CUDA_VISIBLE_DEVICES"); /* each test says what it wants to see */
    TCase *cases = tcase_create("driver");
    tcase_set_timeout(cases, 60);
    for (size_t i = 0; i < KR_COUNT(tests); i++)
        tcase_add_test(cases, tests[i]);
    TCase *threads = tcase_create("threads"); /* for ThreadSanitizer: scripts/test */
    tcase_set_timeout(threads, 60);
    tcase_add_test(threads, many_threads);
    Suite *suite = suite_create("softcuda driver");
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
