/* SPDX-License-Identifier: Apache-2.0 */
/* The checkers as a program meets them: KREGISTRY_SOFTCUDA_CHECK, what the calls tell them, the end of the
 * process. What they find in kernels is in tests/vm/test_check.c. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/softcuda/calls.h"

#define OK(call)                                                             \
    do {                                                                     \
        CUresult result_ = (call);                                           \
        if (result_) {                                                       \
            fprintf(stderr, "line %d: answer %d\n", __LINE__, (int)result_); \
            _exit(100);                                                      \
        }                                                                    \
    } while (0)

/* copy: a word a thread, from p to p + 1024. store: writes one word at p.
 * races: all threads write their own number. traps: ends the process's CUDA by its own will. */
static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                          ".visible .global .align 4 .b8 table[256];\n"
                          ".visible .entry copy(.param .u64 p)\n"
                          "{\n"
                          "    .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
                          "    ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x;\n"
                          "    mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;\n"
                          "    .loc 1 7 0\n"
                          "    ld.global.u32 %r2, [%rd1];\n"
                          "    st.global.u32 [%rd1+1024], %r2; ret;\n"
                          "}\n"
                          ".visible .entry store(.param .u64 p)\n"
                          "{\n"
                          "    .reg .b64 %rd<2>;\n"
                          "    ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret;\n"
                          "}\n"
                          ".visible .entry races(.param .u64 p)\n"
                          "{\n"
                          "    .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
                          "    ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1; ret;\n"
                          "}\n"
                          ".visible .entry traps(.param .u64 p)\n"
                          "{\n"
                          "    trap; ret;\n"
                          "}\n"
                          ".file 1 \"copy.cu\"\n";

static CUmodule module;

static CUcontext start(void)
{
    CUcontext context;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&context, 0, 0));
    OK(cuModuleLoadData(&module, ptx));
    return context;
}

static void end(CUcontext context)
{
    OK(cuModuleUnload(module));
    OK(cuCtxDestroy_v2(context));
}

static CUresult run(const char *kernel, CUdeviceptr p, unsigned threads)
{
    CUfunction function;
    void *params[] = {&p};
    OK(cuModuleGetFunction(&function, module, kernel));
    OK(cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
    return cuCtxSynchronize();
}

static CUdeviceptr device(size_t bytes)
{
    CUdeviceptr p;
    OK(cuMemAlloc_v2(&p, bytes));
    return p;
}

/* ---- programs ---- */

static const unsigned host[512] = {1, 2, 3};

static void copies_are_writes(void)
{
    CUcontext context = start();
    CUdeviceptr p = device(2048), q = device(2048), table;
    size_t bytes;
    OK(cuMemcpyHtoD_v2(p, host, 1000));
    OK(cuMemsetD16_v2(p + 1000, 1, 12));
    OK(run("copy", p, 256));
    OK(cuMemcpyDtoD_v2(q, p, 1024));
    OK(run("copy", q, 256));
    OK(cuModuleGetGlobal_v2(&table, &bytes, module, "table"));
    OK(cuMemcpyDtoD_v2(q, table, 256));
    OK(run("copy", q, 64));
    void *pinned;
    OK(cuMemHostAlloc(&pinned, 2048, 0));
    OK(run("copy", (CUdeviceptr)(uintptr_t)pinned, 256));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree_v2(p));
    OK(cuMemFree_v2(q));
    end(context);
}

/* A word is missing; a copy of it lacks it as well, and it is told where the copy is used. */
static void unwritten(void)
{
    CUcontext context = start();
    CUdeviceptr p = device(2048), q = device(2048);
    OK(cuMemcpyHtoD_v2(p, host, 1020));
    OK(cuMemcpyDtoD_v2(q, p, 1024));
    OK(run("copy", q, 256));
    OK(run("copy", q, 256)); /* told once */
    OK(cuMemFree_v2(p));
    OK(cuMemFree_v2(q));
    end(context);
}

static void after_free(void)
{
    start();
    CUdeviceptr p = device(64), other = device(64);
    OK(run("store", p, 1));
    OK(cuMemFree_v2(p));
    if (other && run("store", p + 8, 1) != CUDA_ERROR_ILLEGAL_ADDRESS)
        _exit(101);
}

static void traps(void)
{
    start();
    if (run("traps", 0, 1) != CUDA_ERROR_LAUNCH_FAILED)
        _exit(101);
}

static void race(void)
{
    CUcontext context = start();
    CUdeviceptr p = device(64);
    OK(run("races", p, 64));
    OK(cuMemFree_v2(p));
    end(context);
}

static void left_in_context(void)
{
    CUcontext context = start();
    CUevent event;
    CUstream stream;
    CUarray array;
    device(4096);
    OK(cuArrayCreate_v2(&array, &(CUDA_ARRAY_DESCRIPTOR){64, 1, CU_AD_FORMAT_FLOAT, 1}));
    OK(cuEventCreate(&event, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamDestroy_v2(stream));
    end(context);
}

static void left_at_end(void)
{
    CUdeviceptr pooled;
    void *pinned;
    CUstream stream;
    start();
    OK(cuMemHostAlloc(&pinned, 100, 0));
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemAllocAsync(&pooled, 32, stream));
}

/* What is freed at the end of the process is freed, where it was promised after cuInit: the driver ends then. */
static CUdeviceptr kept;
static CUcontext keeper;

static void free_kept(void)
{
    OK(cuMemFree_v2(kept));
    end(keeper);
}

static void freed_at_end(void)
{
    keeper = start();
    atexit(free_kept);
    kept = device(64);
    OK(run("store", kept, 1));
}

/* A child that never called cuInit has nothing to tell. */
static void forks(void)
{
    CUcontext context = start();
    pid_t child = fork();
    if (child == 0)
        exit(0);
    int status;
    waitpid(child, &status, 0);
    end(context);
}

/* Each kernel and line is a finding of its own: more than are told. */
static void many(void)
{
    static char text[1 << 16];
    CUcontext context = start();
    CUdeviceptr p = device(64);
    char *at =
        text + sprintf(text, ".version 7.0\n.target sm_75\n.address_size 64\n"
                             ".visible .entry many(.param .u64 p) { .reg .b32 %%r<2>; .reg .b64 %%rd<2>;\n"
                             "ld.param.u64 %%rd1, [p];\n");
    for (int i = 0; i < 150; i++)
        at += sprintf(at, "ld.global.u32 %%r1, [%%rd1];\n");
    sprintf(at, "ret; }\n");
    OK(cuModuleUnload(module));
    OK(cuModuleLoadData(&module, text));
    OK(run("many", p, 1));
    OK(cuMemFree_v2(p));
    end(context);
}

static void does_not_start(void)
{
    if (cuInit(0) != CUDA_ERROR_NO_DEVICE)
        _exit(101);
}

/* ---- and what they are told ---- */

static const struct {
    void (*program)(void);
    const char *checks, *exitcode;
    int status;
    const char *told[5]; /* each is part of what is said; none: nothing is said */
} cases[] = {
    {copies_are_writes, "all", "9", 0, {"softcuda: 0 findings"}},
    {copies_are_writes, NULL, "9", 0, {NULL}},
    {unwritten,
     "initcheck",
     NULL,
     0,
     {"softcuda: initcheck: copy, PTX line 11 (copy.cu:7), block (0,0,0), thread (255,0,0): load of 4 bytes "
      "at 0x",
      ", 1020 bytes into the allocation of 2048 bytes at 0x", "softcuda: 1 finding\n"}},
    {unwritten, "initcheck", "9", 9, {"softcuda: 1 finding\n"}},
    {unwritten, "memcheck,racecheck,synccheck,leakcheck", "9", 0, {"softcuda: 0 findings"}},
    {after_free,
     "memcheck",
     "3",
     3,
     {"memcheck: store, PTX line 17", "8 bytes into the allocation of 64 bytes at 0x", ", which was freed"}},
    {traps, "memcheck", "3", 3, {"memcheck: traps, PTX line 26", "trap", "1 finding\n"}},
    {traps, "racecheck,initcheck", "3", 0, {"softcuda: 0 findings"}},
    {race, "racecheck", NULL, 0, {"racecheck: races, PTX line 22", "no __syncwarp()", "1 finding\n"}},
    {left_in_context,
     "leakcheck",
     NULL,
     0,
     {"leakcheck: device memory of 4096 bytes at 0x", "lives when its context is destroyed",
      "leakcheck: event 0x", "leakcheck: array 0x", "softcuda: 3 findings"}},
    {left_at_end,
     "leakcheck,initcheck",
     "1",
     1,
     {"pinned host memory of 100 bytes at 0x", "leakcheck: stream 0x", "device memory of a pool of 32 bytes",
      "softcuda: 4 findings"}},
    {left_at_end, "memcheck", "1", 0, {"softcuda: 0 findings"}},
    {freed_at_end, "all", NULL, 0, {"softcuda: 0 findings"}},
    {forks, "all", NULL, 0, {"softcuda: 0 findings"}},
    {many, "initcheck", NULL, 0, {"further findings are counted, not told", "softcuda: 150 findings"}},
    {does_not_start,
     "memcheck,rececheck",
     NULL,
     0,
     {"KREGISTRY_SOFTCUDA_CHECK: no checker as \"rececheck\""}},
    {does_not_start, "all", "none", 0, {"KREGISTRY_SOFTCUDA_CHECK_EXITCODE: no whole number"}},
};

START_TEST(tells)
{
    static char text[1 << 16];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    pid_t child = fork();
    if (child == 0) {
        if (cases[_i].checks)
            setenv("KREGISTRY_SOFTCUDA_CHECK", cases[_i].checks, 1);
        if (cases[_i].exitcode)
            setenv("KREGISTRY_SOFTCUDA_CHECK_EXITCODE", cases[_i].exitcode, 1);
        dup2(fileno(file), STDERR_FILENO);
        cases[_i].program();
        exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == cases[_i].status, "status %x, told: %s",
                  (unsigned)status, text);
    ck_assert_msg(cases[_i].told[0] || !*text, "told: %s", text);
    const char *count = strstr(text, "softcuda: 0 findings");
    ck_assert_msg(!count || !strstr(count + 1, "softcuda: 0 findings"), "counted twice: %s", text);
    for (size_t i = 0; i < sizeof cases[_i].told / sizeof *cases[_i].told && cases[_i].told[i]; i++)
        ck_assert_msg(strstr(text, cases[_i].told[i]), "not told: %s\nbut: %s", cases[_i].told[i], text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("softcuda check");
    TCase *tests = tcase_create("check");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, tells, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
