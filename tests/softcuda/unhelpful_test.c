/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong on request: KREGISTRY_SOFTCUDA_FAIL, and drivers of other versions. Expected codes and
 * names: the CUDA driver API reference; messages: those of an H200's driver (580.159).
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ptx/image/image.h"
#include "tests/softcuda/start.h"

/*
 * store(p): p[0] = 7. other(p): p[1] = 8.
 * heap(p): p[0] = how many of 64 blocks of 64 KiB malloc gives.
 */
static const char ptx[] =
    HEADER ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
           ".visible .entry store(.param .u64 p)\n"
           "{ .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p];\n"
           "  mov.u32 %r1, 7; st.global.u32 [%rd1], %r1; ret; }\n"
           ".visible .entry other(.param .u64 p)\n"
           "{ .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p];\n"
           "  mov.u32 %r1, 8; st.global.u32 [%rd1+4], %r1; ret; }\n"
           ".visible .entry heap(.param .u64 p)\n"
           "{\n"
           "    .reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd<4>;\n"
           "    .param .b64 n; .param .b64 r;\n"
           "    ld.param.u64 %rd1, [p]; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u64 %rd2, 65536;\n"
           "again:\n"
           "    st.param.b64 [n], %rd2;\n"
           "    call.uni (r), malloc, (n);\n"
           "    ld.param.b64 %rd3, [r];\n"
           "    setp.ne.u64 %p, %rd3, 0; @%p add.u32 %r1, %r1, 1;\n"
           "    add.u32 %r2, %r2, 1; setp.lt.u32 %p, %r2, 64; @%p bra again;\n"
           "    st.global.u32 [%rd1], %r1; ret;\n"
           "}\n";

static void ask(const char *words)
{
    setenv("KREGISTRY_SOFTCUDA_FAIL", words, 1);
}

static CUresult run(CUfunction function, CUdeviceptr p)
{
    void *params[] = {&p};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

/* Does `check` hold in a process of its own, which may set variables and start the driver anew? */
static void in_child(void (*check)(const void *), const void *arg)
{
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        check(arg);
        fflush(NULL);
        _exit(0);
    }
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}

/* What a process of its own, started with the words as its environment, prints: this program's `argument`. */
static void printed(const char *words, const char *version, const char *argument, char to[4096])
{
    int pipes[2], status = -1;
    ck_assert_int_eq(pipe(pipes), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(pipes[1], 1);
        dup2(pipes[1], 2);
        ask(words);
        setenv("KREGISTRY_SOFTCUDA_DRIVER", version, 1);
        execl("/proc/self/exe", "unhelpful_test", argument, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t got; n < 4095 && (got = read(pipes[0], to + n, 4095 - n)) > 0;)
        n += (size_t)got;
    to[n] = '\0';
    close(pipes[0]);
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}

/* ---- calls ---- */

START_TEST(the_third_call_fails)
{
    ask("cuMemAlloc_v2#3=2");
    start("sm_90");
    CUdeviceptr p = 0;
    size_t before, after;
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemGetInfo_v2(&before, NULL));
    CUdeviceptr untouched = 5;
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&untouched, 16));
    ck_assert_uint_eq(untouched, 5);
    OK(cuMemGetInfo_v2(&after, NULL));
    ck_assert_uint_eq(before, after);
    OK(cuMemAlloc_v2(&p, 16));
}
END_TEST

/* A name stands for all its forms; a form for itself. Codes go by number and by name. */
START_TEST(calls_fail_from_then_on)
{
    ask("cuMemAlloc#2+=OUT_OF_MEMORY,cuMemFree_v2=CUDA_ERROR_UNKNOWN,cuLaunchKernel#2=LAUNCH_OUT_OF_"
        "RESOURCES,"
        "cuMemFree=4");
    start("sm_90");
    CUfunction store = load(ptx, "store");
    CUdeviceptr p, q;
    OK(cuMemAlloc_v2(&p, 16));
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&q, 16));
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&q, 16));
    OK(run(store, p)); /* its eleven arguments arrive */
    ck_assert_uint_eq(word(p, 0), 7);
    void *params[] = {&p};
    IS(LAUNCH_OUT_OF_RESOURCES, cuLaunchKernel_ptsz(store, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(run(store, p));
    IS(UNKNOWN, cuMemFree_v2(p)); /* the first word that strikes answers */
    OK(cuCtxSynchronize());       /* no fault: the context lives */
}
END_TEST

START_TEST(before_init_and_by_procedure)
{
    ask("cuDriverGetVersion#2=DEINITIALIZED,cuInit#1=SYSTEM_DRIVER_MISMATCH,cuDeviceGetCount=999");
    int version, count;
    CUresult (*found)(int *);
    OK(cuDriverGetVersion(&version));
    IS(DEINITIALIZED, cuDriverGetVersion(&version));
    IS(SYSTEM_DRIVER_MISMATCH, cuInit(0));
    OK(cuInit(0));
    OK(cuGetProcAddress_v2("cuDeviceGetCount", (void **)&found, 13000, 0, NULL));
    IS(UNKNOWN, found(&count));
    IS(UNKNOWN, cuDeviceGetCount(&count));
}
END_TEST

/* ---- launches ---- */

static void check_fault(const void *arg)
{
    const int *code = arg;
    char words[64];
    snprintf(words, sizeof words, "launch:sto*=%d", *code);
    ask(words);
    start("sm_90,sm_75");
    CUdeviceptr p = zeros(2);
    CUcontext context;
    OK(run(load(ptx, "other"), p));
    OK(cuCtxSynchronize());
    OK(run(load(ptx, "store"), p)); /* like every fault, it is told later */
    ck_assert_int_eq(cuCtxSynchronize(), *code);
    ck_assert_int_eq(cuMemFree_v2(p), *code);
    ck_assert_int_eq(cuCtxCreate_v2(&context, 0, 1), *code);
}

START_TEST(launches_fault_for_good)
{
    static const int codes[] = {214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721};
    for (size_t i = 0; i < KR_COUNT(codes); i++)
        in_child(check_fault, &codes[i]);
}
END_TEST

START_TEST(the_second_launch_of_a_graph_faults)
{
    ask("launch:store#3=MISALIGNED_ADDRESS");
    start("sm_90");
    CUfunction store = load(ptx, "store");
    CUdeviceptr p = zeros(2);
    CUstream s;
    CUgraph graph;
    CUgraphExec exec;
    void *params[] = {&p};
    OK(run(store, p));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, s));
    OK(cuStreamSynchronize(s));
    OK(cuGraphLaunch(exec, s));
    IS(MISALIGNED_ADDRESS, cuStreamSynchronize(s));
}
END_TEST

/* ---- memory ---- */

START_TEST(memory_is_full)
{
    static const char wide[] = HEADER ".visible .global .align 4 .b8 table[1048576];\n"
                                      ".visible .entry k() { ret; }\n";
    ask("memory=1M");
    CUcontext first = start("sm_90,sm_90"), second;
    size_t free_bytes, total;
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    ck_assert_uint_eq(free_bytes, 1 << 20);
    ck_assert(total > (size_t)1 << 36); /* the chip's: others have the rest */
    CUmodule module;
    CUdeviceptr p, q;
    OK(cuModuleLoadData(&module, wide));
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&p, 4));
    OK(cuModuleUnload(module));
    OK(cuMemAlloc_v2(&p, 1 << 20));
    size_t pitch;
    IS(OUT_OF_MEMORY, cuMemAlloc_v2(&q, 1));
    IS(OUT_OF_MEMORY, cuMemAllocPitch_v2(&q, &pitch, 16, 16, 4));
    IS(OUT_OF_MEMORY, cuMemAllocAsync(&q, 4, NULL));
    CUmemoryPool pool;
    OK(cuMemPoolCreate(&pool, &(CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}}));
    IS(OUT_OF_MEMORY, cuMemAllocFromPoolAsync(&q, 4, pool, NULL));
    IS(OUT_OF_MEMORY, cuModuleLoadData(&module, wide));
    CUlibrary library;
    OK(cuLibraryLoadData(&library, wide, NULL, NULL, 0, NULL, NULL, 0)); /* in no device yet */
    IS(OUT_OF_MEMORY, cuLibraryGetModule(&module, library));
    pinned_zeros(1 << 20); /* the host's is not */
    OK(cuMemAllocManaged(&q, 4 << 20,
                         CU_MEM_ATTACH_GLOBAL)); /* nor is managed memory, which can be paged out */
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc_v2(&q, 1 << 20)); /* nor another device */
    OK(cuCtxSetCurrent(first));
    OK(cuMemFree_v2(p));
    OK(cuMemAlloc_v2(&p, 1 << 20));
}
END_TEST

/* What malloc in a kernel gives is the device's memory too. */
START_TEST(the_heap_is_full)
{
    ask("memory=1M");
    start("sm_90");
    CUdeviceptr p = zeros(1);
    OK(run(load(ptx, "heap"), p));
    OK(cuCtxSynchronize());
    unsigned given = word(p, 0);
    ck_assert_msg(given > 0 && given < 16, "%u blocks of 64 KiB beside other things in 1 MiB", given);
}
END_TEST

/* A value on top of the chip's: by name, or by the number of cuda.h. */
START_TEST(attributes_are_others)
{
    ask("attribute:COMPUTE_MODE=3,attribute:13=7");
    start("sm_90");
    int value;
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0));
    ck_assert_int_eq(value, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0));
    ck_assert_int_eq(value, 7);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
    ck_assert_int_eq(value, 32);
}
END_TEST

START_TEST(pinned_memory_is_short)
{
    static char own[8192];
    ask("pinned=12K");
    start("sm_90");
    void *p, *q;
    CUdeviceptr managed;
    OK(cuMemHostAlloc(&p, 8192, 0));
    IS(OUT_OF_MEMORY, cuMemHostAlloc(&q, 8192, 0));
    IS(OUT_OF_MEMORY, cuMemHostRegister_v2(own, sizeof own, 0));
    OK(cuMemHostRegister_v2(own, 4096, 0));
    OK(cuMemAllocManaged(&managed, 1 << 20, CU_MEM_ATTACH_GLOBAL));
    OK(cuMemFreeHost(p));
    OK(cuMemHostAlloc(&q, 8192, 0));
}
END_TEST

/* ---- the JIT ---- */

/* A fatbin for sm_80: machine code of kernel k, as far as softcuda has any, and PTX of kernel k or neither.
 */
static void *fatbin_of(bool with_cubin, bool with_ptx)
{
    static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry k(.param .u64 p)\n"
                               "{ .reg .b32 %r<2>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [p];\n"
                               "  mov.u32 %r1, 42; st.global.u32 [%rd1], %r1; ret; }\n";
    CUlinkState link;
    void *cubin, *fatbin;
    size_t bytes, fatbin_bytes;
    OK(cuLinkCreate_v2(0, NULL, NULL, &link));
    OK(cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)text, sizeof text, "k", 0, NULL, NULL));
    OK(cuLinkComplete(link, &cubin, &bytes));
    kr__fatbin_part parts[2];
    size_t n = 0;
    if (with_cubin)
        parts[n++] = (kr__fatbin_part){KR_IMAGE_CUBIN, {8, 0, 0}, 0, cubin, bytes};
    if (with_ptx)
        parts[n++] = (kr__fatbin_part){KR_IMAGE_PTX, {7, 5, 0}, 70, text, sizeof text};
    ck_assert_int_eq(kr__fatbin_write(parts, n, &fatbin, &fatbin_bytes, NULL), KR_OK);
    OK(cuLinkDestroy(link));
    return fatbin;
}

static int ptx_version_of(const void *fatbin)
{
    int version;
    OK(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, load(fatbin, "k")));
    return version;
}

START_TEST(the_jit_is_missing)
{
    ask("jit=missing");
    start("sm_80");
    CUmodule module;
    CUlibrary library;
    CUlinkState link;
    IS(JIT_COMPILER_NOT_FOUND, cuModuleLoadData(&module, ptx));
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    IS(JIT_COMPILER_NOT_FOUND, cuLibraryGetModule(&module, library));
    IS(JIT_COMPILER_NOT_FOUND, cuLinkCreate_v2(0, NULL, NULL, &link));
}
END_TEST

/* Machine code needs no JIT: disabled, a fatbin that has some loads, and one of PTX alone does not. */
START_TEST(the_jit_is_disabled)
{
    start("sm_80");
    CUmodule module;
    void *both = fatbin_of(true, true), *code = fatbin_of(true, false), *text = fatbin_of(false, true);
    setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
    CUdeviceptr p = zeros(1);
    OK(run(load(both, "k"), p));
    ck_assert_uint_eq(word(p, 0), 42);
    load(code, "k");
    IS(JIT_COMPILATION_DISABLED, cuModuleLoadData(&module, text));
    IS(JIT_COMPILATION_DISABLED, cuModuleLoadData(&module, ptx));
    unsetenv("CUDA_DISABLE_PTX_JIT");
    setenv("CUDA_DISABLE_JIT", "1", 1);
    IS(JIT_COMPILATION_DISABLED, cuModuleLoadData(&module, ptx));
    setenv("CUDA_DISABLE_PTX_JIT", "0", 1); /* which overrides it */
    load(ptx, "store");
    free(both), free(code), free(text);
}
END_TEST

/* Forced, embedded machine code is passed over, and a fatbin that has nothing else does not load. */
START_TEST(the_jit_is_forced)
{
    start("sm_80");
    CUmodule module;
    void *both = fatbin_of(true, true), *code = fatbin_of(true, false);
    ck_assert_int_eq(ptx_version_of(both), 80); /* of the machine code */
    setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    ck_assert_int_eq(ptx_version_of(both), 75);
    IS(NO_BINARY_FOR_GPU, cuModuleLoadData(&module, code));
    setenv("CUDA_FORCE_PTX_JIT", "0", 1);
    setenv("CUDA_FORCE_JIT", "1", 1); /* overridden */
    ck_assert_int_eq(ptx_version_of(both), 80);
    unsetenv("CUDA_FORCE_PTX_JIT");
    ck_assert_int_eq(ptx_version_of(both), 75);
    setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
    IS(JIT_COMPILATION_DISABLED, cuModuleLoadData(&module, both));
    free(both), free(code);
}
END_TEST

/* ---- peers, slow streams ---- */

START_TEST(peers_are_refused)
{
    ask("peer=refused");
    CUcontext a = start("sm_90,sm_90"), b;
    int value = 7;
    OK(cuDeviceCanAccessPeer(&value, 0, 1));
    ck_assert_int_eq(value, 0);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    ck_assert_int_eq(value, 0);
    OK(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, 0, 1));
    ck_assert_int_eq(value, 0);
    CUdeviceptr here = zeros(1);
    OK(cuDevicePrimaryCtxRetain(&b, 1));
    IS(PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(b, 0));
    IS(PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(b));
    OK(cuCtxSetCurrent(b));
    CUdeviceptr there = zeros(1);
    OK(cuMemsetD32_v2(there, 9, 1));
    OK(cuMemcpyPeer(here, a, there, b, 4)); /* by way of the host */
    OK(cuMemcpyDtoD_v2(there, here, 4));
    OK(cuCtxSetCurrent(a));
    ck_assert_uint_eq(word(here, 0), 9);
    OK(run(load(ptx, "store"), there));
    IS(ILLEGAL_ADDRESS, cuCtxSynchronize());
}
END_TEST

START_TEST(streams_are_slow)
{
    ask("slow=300ms");
    start("sm_90");
    CUstream s;
    CUdeviceptr p;
    struct timespec before, after;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc_v2(&p, 4));
    clock_gettime(CLOCK_MONOTONIC, &before);
    OK(cuMemsetD32Async(p, 1, 1, s));
    OK(cuMemsetD32Async(p, 2, 1, s));
    OK(cuStreamSynchronize(s));
    clock_gettime(CLOCK_MONOTONIC, &after);
    double passed = (double)(after.tv_sec - before.tv_sec) + 1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    ck_assert(passed >= 0.6); /* no machine is so fast that this could fail by chance */
}
END_TEST

/* ---- names ---- */

/* Of the names, those that dlsym finds: what `unhelpful_test names` prints. */
static const char *const names[] = {
    "cuMemAlloc",          "cuMemAlloc_v2",         "cuCtxCreate_v2",         "cuDevicePrimaryCtxRelease_v2",
    "cuMemAllocAsync",     "cuGetProcAddress",      "cuCtxCreate_v3",         "cuDeviceGetUuid_v2",
    "cuLaunchKernelEx",    "cuLaunchKernelEx_ptsz", "cuModuleGetLoadingMode", "cuLibraryLoadData",
    "cuGetProcAddress_v2", "cuKernelGetFunction",   "cuFuncGetName",          "cuFuncGetParamInfo",
    "cuCtxCreate_v4",      "cuKernelGetLibrary",    "cuStreamGetDevice",      "cuMemcpyBatchAsync",
    "cuCtxGetDevice_v2",
};
/* The CUDA version that brought each (the release's cuda.h). */
static const int since[] = {2000,  3020,  3020,  11000, 11020, 11030, 11040, 11040, 11060, 11060, 11070,
                            12000, 12000, 12000, 12030, 12040, 12050, 12050, 12080, 12080, 13000};
_Static_assert(KR_COUNT(names) == KR_COUNT(since), "a version for each");

static void print_names(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; i < KR_COUNT(names); i++)
        printf("%s%s\n", names[i], library && dlsym(library, names[i]) ? "" : " is missing");
}

static bool is_missing_in(const char *text, const char *name)
{
    char line[64];
    snprintf(line, sizeof line, "%s is missing\n", name);
    return strstr(text, line) != NULL;
}

START_TEST(symbols_are_missing)
{
    char text[4096];
    ask("symbol=cuLibraryLoadData,symbol=cuLaunchKernelEx,symbol=cuCtxCreate_v4");
    void *found;
    CUdriverProcAddressQueryResult status;
    OK(cuGetProcAddress_v2("cuLibraryLoadData", &found, 13000, 0, &status));
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_ptr_null(found);
    OK(cuGetProcAddress_v2("cuCtxCreate", &found, 13000, 0, &status)); /* an older form is still there */
    ck_assert_ptr_nonnull(found);
    printed(getenv("KREGISTRY_SOFTCUDA_FAIL"), "", "names", text);
    for (size_t i = 0; i < KR_COUNT(names); i++) {
        bool missing = strcmp(names[i], "cuLibraryLoadData") == 0 ||
                       strcmp(names[i], "cuCtxCreate_v4") == 0 ||
                       strncmp(names[i], "cuLaunchKernelEx", 16) == 0;
        ck_assert_msg(is_missing_in(text, names[i]) == missing, "%s: %s", names[i], text);
    }
}
END_TEST

/* ---- versions ---- */

typedef struct version {
    const char *name;
    int number, isa; /* PTX: NVIDIA's release history */
} version;

static const version versions[] = {
    {"10.2", 10020, 65}, {"11.0", 11000, 70}, {"11.1", 11010, 71}, {"11.2", 11020, 72}, {"11.3", 11030, 73},
    {"11.4", 11040, 74}, {"11.5", 11050, 75}, {"11.6", 11060, 76}, {"11.7", 11070, 77}, {"11.8", 11080, 78},
    {"12.0", 12000, 80}, {"12.1", 12010, 81}, {"12.2", 12020, 82}, {"12.3", 12030, 83}, {"12.4", 12040, 84},
    {"12.5", 12050, 85}, {"12.6", 12060, 85}, {"12.7", 12070, 86}, {"12.8", 12080, 87}, {"12.9", 12090, 88},
    {"13.0", 13000, 90},
};

static void check_version(const void *arg)
{
    const version *v = arg;
    int number;
    setenv("KREGISTRY_SOFTCUDA_DRIVER", v->name, 1);
    start("sm_90");
    OK(cuDriverGetVersion(&number));
    ck_assert_int_eq(number, v->number);

    /* The newest PTX that it takes, and one that is newer. */
    char text[160], log[256] = "", expected[256];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    CUmodule module;
    static const char body[] = "\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
    snprintf(text, sizeof text, ".version %d.%d%s", v->isa / 10, v->isa % 10, body);
    OK(cuModuleLoadData(&module, text));
    snprintf(text, sizeof text, ".version 9.9%s", body);
    IS(UNSUPPORTED_PTX_VERSION, cuModuleLoadDataEx(&module, text, 2, options, values));
    snprintf(
        expected, sizeof expected,
        "ptxas application ptx input, line 1; fatal   : Unsupported .version 9.9; current version is '%d.%d'",
        v->isa / 10, v->isa % 10);
    ck_assert_msg(strncmp(log, expected, strlen(expected)) == 0, "%s", log);

    /* What cuGetProcAddress finds, by the name without its version. */
    for (size_t i = 0; i < KR_COUNT(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s",
                 (int)(strstr(names[i], "_v") ? strstr(names[i], "_v") - names[i] : 60), names[i]);
        if (strchr(name, '_'))
            continue; /* per thread: asked for by a flag */
        void *found = NULL;
        CUresult result = cuGetProcAddress_v2(name, &found, since[i], 0, NULL);
        if (since[i] <= v->number) {
            OK(result);
            ck_assert_msg(found == dlsym(RTLD_DEFAULT, names[i]), "%s at %d", names[i], v->number);
        } else {
            ck_assert_msg(found != dlsym(RTLD_DEFAULT, names[i]), "%s at %d", names[i], v->number);
        }
    }
    CUcontext context;
    OK(cuCtxCreate_v2(&context, 0, 0)); /* every version has it */
    OK(cuCtxDestroy_v2(context));
}

START_TEST(drivers_of_all_versions)
{
    for (size_t i = 0; i < KR_COUNT(versions); i++)
        in_child(check_version, &versions[i]);
}
END_TEST

START_TEST(names_came_with_versions)
{
    char text[4096];
    for (size_t i = 0; i < KR_COUNT(versions); i++) {
        printed("", versions[i].name, "names", text);
        for (size_t k = 0; k < KR_COUNT(names); k++)
            ck_assert_msg(is_missing_in(text, names[k]) == (since[k] > versions[i].number), "%s in %s: %s",
                          names[k], versions[i].name, text);
    }
}
END_TEST

/* ---- words ---- */

START_TEST(bad_words_are_named)
{
    static const struct {
        const char *words, *why;
    } rows[] = {
        {"cuMemAloc=2", "did you mean cuMemAlloc"},
        {"cuZzzzz=2", "libcuda has no cuZzzzz"},
        {"frob=1", "no \"frob\" to fail"},
        {"saxpy", "no \"=\""},
        {"cuInit=nope", "\"nope\" is no error"},
        {"cuInit=0", "\"0\" is no error"},
        {"cuInit=CUDA_SUCCESS", "is no error"},
        {"cuInit=12345", "\"12345\" is no error"},
        {"cuInit=2x", "\"2x\" is no error"},
        {"cuInit=", "\"\" is no error"},
        {"cuInit#0=2", "\"#0\" does not count"},
        {"cuInit#=2", "\"#\" does not count"},
        {"cuInit#1-3=2", "\"#1-3\" does not count"},
        {"cuInit:store=2", "no \"cuInit\" to fail"},
        {"launch:=700", "launch: is to name a kernel"},
        {"launch=2", "no kernel ends with CUDA_ERROR_OUT_OF_MEMORY"},
        {"launch:k#1=INVALID_VALUE", "no kernel ends with"},
        {"memory=lots", "a size such as"},
        {"memory=-1", "a size such as"},
        {"memory=64Q", "a size such as"},
        {"memory=99999999999999999999", "a size such as"},
        {"memory=99999999999T", "a size such as"},
        {"pinned=", "a size such as"},
        {"slow=20", "a time such as"},
        {"slow=2m", "a time such as"},
        {"jit=no", "it can be missing"},
        {"peer=no", "it can be refused"},
        {"symbol=cuNope", "libcuda has no cuNope"},
        {"preset=xyz", "there is wsl"},
        {"attribute:FROB=1", "no attribute is called FROB"},
        {"attribute:0=1", "no attribute is called 0"},
        {"attribute:20=x", "an attribute is a number"},
        {"memory=1M,jit=x", "\"jit=x\""},
    };
    char text[4096];
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        printed(rows[i].words, "", "init", text);
        ck_assert_msg(strstr(text, "KREGISTRY_SOFTCUDA_FAIL: ") && strstr(text, rows[i].why) &&
                          strstr(text, "cuInit answers 100\n"),
                      "%s: %s", rows[i].words, text);
        ck_assert_msg(strchr(strchr(text, '\n') + 1, '\n')[1] == '\0', "one line of %s: %s", rows[i].words,
                      text);
    }
    printed("", "", "init", text);
    ck_assert_str_eq(text, "cuInit answers 0\n");
}
END_TEST

static int print_init(void)
{
    printf("cuInit answers %d\n", (int)cuInit(0));
    return 0;
}

/* ---- presets ---- */

typedef struct preset {
    const char *words;
    CUresult init, retain, create, load, alloc, pin, peer;
} preset;

static void check_preset(const void *arg)
{
    const preset *p = arg;
    ask(p->words);
    setenv("KREGISTRY_SOFTCUDA_DEVICES", "sm_90,sm_90", 1);
    CUcontext primary, own, second;
    CUmodule module;
    CUdeviceptr memory;
    enum { MUCH = 600 << 20 };
    void *much = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_int_eq(cuInit(0), p->init);
    if (p->init)
        return;
    ck_assert_int_eq(cuDevicePrimaryCtxRetain(&primary, 0), p->retain);
    ck_assert_int_eq(cuCtxCreate_v2(&own, 0, 0), p->create);
    if (p->create)
        return;
    ck_assert_int_eq(cuModuleLoadData(&module, ptx), p->load);
    ck_assert_int_eq(cuMemAlloc_v2(&memory, 100 << 20), p->alloc);
    ck_assert_int_eq(cuMemHostRegister_v2(much, MUCH, 0), p->pin);
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    ck_assert_int_eq(cuCtxEnablePeerAccess(second, 0), p->peer);
}

START_TEST(presets)
{
    static const preset all[] = {
        {.words = ""},
        {"preset=wsl", .pin = CUDA_ERROR_OUT_OF_MEMORY},
        {"preset=full-gpu", .alloc = CUDA_ERROR_OUT_OF_MEMORY},
        {"preset=exclusive-gpu", .retain = CUDA_ERROR_DEVICE_UNAVAILABLE,
         .create = CUDA_ERROR_DEVICE_UNAVAILABLE},
        {"preset=mps-full", .retain = CUDA_ERROR_MPS_MAX_CLIENTS_REACHED,
         .create = CUDA_ERROR_MPS_MAX_CLIENTS_REACHED},
        {"preset=vgpu", .peer = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED},
        {"preset=container-no-jit", .load = CUDA_ERROR_JIT_COMPILER_NOT_FOUND},
        {"preset=after-suspend", .init = CUDA_ERROR_UNKNOWN},
        {"preset=wsl,preset=vgpu", .pin = CUDA_ERROR_OUT_OF_MEMORY,
         .peer = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED},
    };
    for (size_t i = 0; i < KR_COUNT(all); i++)
        in_child(check_preset, &all[i]);
}
END_TEST

/* ---- order ---- */

/* Each warp's first lane takes a ticket n and writes its own number to p[1 + n]. */
static const char tickets_ptx[] =
    HEADER ".visible .entry tickets(.param .u64 p)\n"
           "{\n"
           "    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %rd<3>;\n"
           "    ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31;\n"
           "    setp.ne.u32 %p, %r2, 0; @%p ret;\n"
           "    shr.u32 %r1, %r1, 5; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r3, %r3, 8, %r1;\n"
           "    atom.global.add.u32 %r4, [%rd1], 1;\n"
           "    mul.wide.u32 %rd2, %r4, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2+4], %r3; ret;\n"
           "}\n";
enum { BLOCKS = 16, WARPS = 8, TICKETS = BLOCKS * WARPS };

static void take_tickets(const char *seed, unsigned order[TICKETS])
{
    setenv("KREGISTRY_SOFTCUDA_SHUFFLE", seed, 1);
    CUdeviceptr p = zeros(1 + TICKETS);
    void *params[] = {&p};
    OK(cuLaunchKernel(load(tickets_ptx, "tickets"), BLOCKS, 1, 1, 32 * WARPS, 1, 1, 0, NULL, params, NULL));
    OK(cuMemcpyDtoH_v2(order, p + 4, 4 * TICKETS));
    bool seen[TICKETS] = {false};
    for (int i = 0; i < TICKETS; i++) {
        ck_assert(order[i] < TICKETS && !seen[order[i]]);
        seen[order[i]] = true;
    }
}

static bool in_order(const unsigned *items, size_t n, size_t step, unsigned divisor)
{
    for (size_t i = step; i < n; i += step)
        if (items[i] / divisor < items[i - step] / divisor)
            return false;
    return true;
}

START_TEST(blocks_and_warps_are_shuffled_by_seed)
{
    setenv("KREGISTRY_SOFTCUDA_THREADS", "1", 1);
    start("sm_90");
    unsigned natural[TICKETS], seven[TICKETS], again[TICKETS], eight[TICKETS];
    take_tickets("", natural);
    for (unsigned i = 0; i < TICKETS; i++)
        ck_assert_uint_eq(natural[i], i);
    take_tickets("7", seven);
    take_tickets("7", again);
    take_tickets("8", eight);
    ck_assert_mem_eq(seven, again, sizeof seven);
    ck_assert_mem_ne(seven, eight, sizeof seven);
    ck_assert(!in_order(seven, TICKETS, WARPS, WARPS)); /* blocks: one ends before the next begins */
    bool warps_in_order = true;
    for (int block = 0; block < BLOCKS; block++)
        warps_in_order &= in_order(seven + block * WARPS, WARPS, 1, 1);
    ck_assert(!warps_in_order);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "names") == 0)
        return print_names(), 0;
    if (argc > 1 && strcmp(argv[1], "init") == 0)
        return print_init();
    const TTest *const tests[] = {
        the_third_call_fails,
        calls_fail_from_then_on,
        before_init_and_by_procedure,
        launches_fault_for_good,
        the_second_launch_of_a_graph_faults,
        memory_is_full,
        the_heap_is_full,
        attributes_are_others,
        pinned_memory_is_short,
        the_jit_is_missing,
        the_jit_is_disabled,
        the_jit_is_forced,
        peers_are_refused,
        streams_are_slow,
        symbols_are_missing,
        drivers_of_all_versions,
        names_came_with_versions,
        bad_words_are_named,
        presets,
        blocks_and_warps_are_shuffled_by_seed,
    };
    return run_tests("softcuda unhelpfulness", tests, KR_COUNT(tests)) != 0;
}
