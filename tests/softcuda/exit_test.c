/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a driver answers while the process ends. It is opened by dlopen; then, before and after that and
 * cuInit, handlers are left for the end (atexit). Destructors of the program and of a library that was loaded
 * first (exit_library.c) come after them all.
 *
 *     exit_test              print what is answered at each of these moments
 *     exit_test --judge FILE compare with a record of a real driver
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern __attribute__((visibility("default"))) void (*exit_library_at_end)(void);

typedef int (*call)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static void *driver;
static uintptr_t context, stream, event, memory, host;

/* Straight away: after a crash what was said before it is still there. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (n > 0 && write(STDOUT_FILENO, text, (size_t)n) < 0)
        _exit(2);
}

static int ask(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e)
{
    void *symbol = dlsym(driver, name);
    call function;
    memcpy(&function, &symbol, sizeof function);
    return symbol ? function(a, b, c, d, e) : -1;
}

#define TO(variable) ((uintptr_t)(void *)&(variable))

/* What reads comes before what destroys. */
static void ask_all(const char *moment)
{
    uintptr_t out[16] = {0};
    const struct {
        const char *name;
        uintptr_t args[5];
    } asked[] = {
        {"cuInit", {0}},
        {"cuInit", {1}},
        {"cuDriverGetVersion", {TO(out)}},
        {"cuDriverGetVersion", {0}},
        {"cuGetErrorString", {4, TO(out)}},
        {"cuGetErrorName", {4, TO(out)}},
        {"cuGetProcAddress_v2", {(uintptr_t) "cuInit", TO(out), 12000, 0, 0}},
        {"cuGetExportTable", {TO(out), TO(out[2])}},
        {"cuDeviceGetCount", {TO(out)}},
        {"cuDeviceGetCount", {0}},
        {"cuDeviceGet", {TO(out), 0}},
        {"cuDeviceGet", {TO(out), 99}},
        {"cuDeviceGetAttribute", {TO(out), 1, 0}},
        {"cuDevicePrimaryCtxGetState", {0, TO(out), TO(out[1])}},
        {"cuCtxGetCurrent", {TO(out)}},
        {"cuCtxGetDevice", {TO(out)}},
        {"cuCtxSetCurrent", {context}},
        {"cuCtxSynchronize", {0}},
        {"cuMemGetInfo_v2", {TO(out), TO(out[1])}},
        {"cuPointerGetAttribute", {TO(out), 2, memory}},
        {"cuStreamQuery", {stream}},
        {"cuStreamSynchronize", {stream}},
        {"cuStreamSynchronize", {0}},
        {"cuEventQuery", {event}},
        {"cuProfilerStop", {0}},
        {"cuEventDestroy_v2", {event}},
        {"cuEventDestroy_v2", {0}},
        {"cuStreamDestroy_v2", {stream}},
        {"cuStreamDestroy_v2", {0}},
        {"cuMemFree_v2", {memory}},
        {"cuMemFree_v2", {0}},
        {"cuMemFreeHost", {host}},
        {"cuModuleUnload", {0}},
        {"cuLibraryUnload", {0}},
        {"cuCtxDestroy_v2", {0}},
        {"cuCtxPopCurrent_v2", {TO(out)}},
        {"cuDevicePrimaryCtxRelease_v2", {0}},
        {"cuDevicePrimaryCtxReset_v2", {0}},
    };
    say("%s\t", moment);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        const uintptr_t *a = asked[i].args;
        say(" %s", asked[i].name + 2);
        say(":%d", ask(asked[i].name, a[0], a[1], a[2], a[3], a[4]));
    }
    say("\n");
}

/* Each moment in a process of its own, since the first one to ask destroys what the next would ask about. */
static const char *wanted;

static void at(const char *moment)
{
    if (strcmp(moment, wanted) == 0)
        ask_all(moment);
}

static void left_before_load(void)
{
    at("left_before_load");
}

static void left_before_init(void)
{
    at("left_before_init");
}

static void left_after_init(void)
{
    at("left_after_init");
}

static void in_library(void)
{
    at("in_library");
    at("in_library_without_init");
}

static __attribute__((destructor)) void in_program(void)
{
    if (wanted)
        at("in_program");
}

static void run(void)
{
    exit_library_at_end = in_library;
    atexit(left_before_load);
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        exit(77);
    }
    atexit(left_before_init);
    if (strcmp(wanted, "in_library_without_init") == 0)
        return;
    int failed =
        ask("cuInit", 0, 0, 0, 0, 0) || ask("cuDevicePrimaryCtxRetain", TO(context), 0, 0, 0, 0) ||
        ask("cuCtxSetCurrent", context, 0, 0, 0, 0) || ask("cuStreamCreate", TO(stream), 0, 0, 0, 0) ||
        ask("cuEventCreate", TO(event), 0, 0, 0, 0) || ask("cuMemAlloc_v2", TO(memory), 256, 0, 0, 0) ||
        ask("cuMemHostAlloc", TO(host), 256, 0, 0, 0);
    if (failed)
        exit(2);
    atexit(left_after_init);
}

/* What the process of one moment says; the caller frees it. */
static char *said_at(const char *program, const char *moment)
{
    char command[4096], *line = NULL;
    size_t room = 0;
    snprintf(command, sizeof command, "exec '%s' %s", program, moment);
    FILE *out = popen(command, "r");
    if (!out || getline(&line, &room, out) < 0) {
        fprintf(stderr, "%s: nothing was said\n", moment);
        exit(2);
    }
    int status = pclose(out);
    if (status)
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
    return line;
}

/* The next line of a record that is no remark; the caller frees it. */
static char *next_recorded(FILE *in)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, in) >= 0)
        if (*line != '#')
            return line;
    free(line);
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const moments[] = {"left_after_init", "left_before_init", "left_before_load",
                                          "in_program",      "in_library",       "in_library_without_init"};
    if (argc == 2) {
        wanted = argv[1];
        run();
        return 0;
    }
    FILE *record = argc == 3 ? fopen(argv[2], "r") : NULL;
    int different = argc == 3 && !record;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        char *said = said_at(argv[0], moments[i]), *recorded = record ? next_recorded(record) : NULL;
        if (!record)
            printf("%s", said);
        else if (!recorded || strcmp(said, recorded) != 0)
            different = printf("recorded: %shere:     %s", recorded ? recorded : "nothing\n", said);
        free(said);
        free(recorded);
    }
    if (record)
        fclose(record);
    return different != 0;
}
