/* SPDX-License-Identifier: Apache-2.0 */
/* How long a program waits: from cuInit to the end of its first launch, for large modules to load, and for
 * the kregistry command to run an op and verify it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/base.h"
#include "tests/softcuda/calls.h"

enum { TIMES = 15 };

static double now_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, (int)result);
    exit(1);
}
#define MUST(call) must(call, #call)

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *name, double *ms)
{
    qsort(ms, TIMES, sizeof *ms, by_value);
    printf("%-46s %8.2f %8.2f\n", name, ms[0], ms[TIMES / 2]);
}

/* ---- the first launch ---- */

static const char one_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry one(.param .u64 p)\n"
                              "{\n"
                              "    .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
                              "    ld.param.u64 %rd1, [p]; mov.u32 %r1, 1;\n"
                              "    st.global.u32 [%rd1], %r1; ret;\n"
                              "}\n";

/* In a process of its own, which prints the milliseconds. */
static int first_launch(void)
{
    CUcontext context;
    CUmodule module;
    CUfunction function;
    CUdeviceptr p;
    double start = now_ms(CLOCK_MONOTONIC);
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, one_ptx));
    MUST(cuModuleGetFunction(&function, module, "one"));
    MUST(cuMemAlloc_v2(&p, 4));
    void *params[] = {&p};
    MUST(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, NULL, params, NULL));
    MUST(cuCtxSynchronize());
    printf("%f\n", now_ms(CLOCK_MONOTONIC) - start);
    return 0;
}

static void time_first_launch(const char *program)
{
    char command[4200];
    double ms[TIMES];
    kr__format(command, sizeof command, "'%s' first-launch", program);
    for (int i = 0; i < TIMES; i++) {
        FILE *child = popen(command, "r");
        if (!child || fscanf(child, "%lf", &ms[i]) != 1 || pclose(child) != 0) {
            fprintf(stderr, "%s failed\n", command);
            exit(1);
        }
    }
    print_times("cuInit to the end of the first launch", ms);
}

static void time_command(const char *name, const char *command)
{
    double ms[TIMES];
    for (int i = 0; i < TIMES; i++) {
        double start = now_ms(CLOCK_MONOTONIC);
        if (system(command) != 0) {
            fprintf(stderr, "%s failed\n", command);
            exit(1);
        }
        ms[i] = now_ms(CLOCK_MONOTONIC) - start;
    }
    print_times(name, ms);
}

/* ---- large modules ---- */

enum { STEP = 10 };

/* Ten instructions: a load, arithmetic of three widths, a branch around a part, a store. A result is used by
 * the next step and again 40 steps later, as in unrolled code. */
static void add_step(kr__text *text, unsigned i)
{
    const unsigned last = i - 1, old = i > 40 ? i - 40 : 0;
    kr__text_add(text, "    ld.global.f32 %%f%u, [%%rd0+%u];\n", i, 4 * (i % 64));
    kr__text_add(text, "    fma.rn.f32 %%g%u, %%f%u, %%g%u, %%g%u;\n", i, i, old, last);
    kr__text_add(text, "    shf.l.wrap.b32 %%r%u, %%r%u, %%r%u, %u;\n", i, last, old, i % 31 + 1);
    kr__text_add(text, "    add.s32 %%s%u, %%r%u, %u;\n", i, i, i * 77);
    kr__text_add(text, "    setp.lt.s32 %%p%u, %%s%u, %u;\n", i, i, i);
    kr__text_add(text, "    @%%p%u bra $L_%u;\n", i, i);
    kr__text_add(text, "    xor.b32 %%r0, %%s%u, %%r%u;\n", i, old);
    kr__text_add(text, "    cvt.rn.f32.s32 %%g0, %%r0;\n");
    kr__text_add(text, "$L_%u:\n    mad.wide.s32 %%rd%u, %%s%u, 4, %%rd0;\n", i, i, i);
    kr__text_add(text, "    st.global.f32 [%%rd%u], %%g%u;\n", i, i);
}

static void make_module(kr__text *text, unsigned n_instructions)
{
    const unsigned n = n_instructions / STEP;
    kr__text_add(text,
                 ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry large(.param .u64 p)\n{\n");
    kr__text_add(text, "    .reg .f32 %%f<%u>, %%g<%u>;\n    .reg .b32 %%r<%u>, %%s<%u>;\n", n + 1, n + 1,
                 n + 1, n + 1);
    kr__text_add(text, "    .reg .b64 %%rd<%u>;\n    .reg .pred %%p<%u>;\n", n + 1, n + 1);
    kr__text_add(text,
                 "    ld.param.u64 %%rd0, [p];\n    mov.u32 %%r0, %%tid.x;\n    mov.f32 %%g0, 0f3F800000;\n");
    for (unsigned i = 1; i <= n; i++)
        add_step(text, i);
    kr__text_add(text, "    ret;\n}\n");
}

/* Processor time: a load waits for nothing. */
static void time_load(const char *name, const char *ptx)
{
    double ms[TIMES];
    for (int i = 0; i < TIMES; i++) {
        CUmodule module;
        double start = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        MUST(cuModuleLoadData(&module, ptx));
        ms[i] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - start;
        MUST(cuModuleUnload(module));
    }
    print_times(name, ms);
}

static void time_made_load(unsigned n_instructions)
{
    char name[64];
    kr__text text = {0};
    make_module(&text, n_instructions);
    kr__format(name, sizeof name, "load of %u instructions", n_instructions);
    time_load(name, text.data);
    kr__text_free(&text);
}

static void time_file_load(const char *path)
{
    char *text;
    size_t bytes;
    if (kr__file_read(path, &text, &bytes, NULL) != KR_OK) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(1);
    }
    time_load(path, text);
    free(text);
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "first-launch"))
        return first_launch();
    if (argc < 2) {
        fprintf(stderr, "usage: bench_driver KREGISTRY [PTX...]\n");
        return 2;
    }
    char command[4200];
    printf("%-46s %8s %8s\n", "milliseconds", "least", "median");
    time_first_launch(argv[0]);
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    time_made_load(13000);
    time_made_load(47604);
    for (int i = 2; i < argc; i++)
        time_file_load(argv[i]);
    kr__format(command, sizeof command,
               "'%s' run saxpy.f32 --n 1000 --driver softcuda --nvrtc none >/dev/null", argv[1]);
    time_command("kregistry run saxpy.f32, verified", command);
    return 0;
}
