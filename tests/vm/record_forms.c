/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every line of forms.tsv on the first device of libcuda.so.1 and writes the lines with their hashes.
 * usage: record_forms forms.tsv [RAW], where RAW gets every result. Build: cc record_forms.c forms.c -ldl */
#include "forms.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *library;

static void *function(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return found;
}

#define CALL(name, types, ...)                                           \
    do {                                                                 \
        int code_ = ((int(*) types)function(name))(__VA_ARGS__);         \
        if (code_) {                                                     \
            fprintf(stderr, "%s: %s: %d\n", form.spelling, name, code_); \
            goto next;                                                   \
        }                                                                \
    } while (0)

enum { OPERANDS = FORM_REGISTERS * FORM_THREADS, WORDS = FORM_THREADS * FORM_MEMORY / 8 };
static uint64_t data[OPERANDS], memory[WORDS];
static uint64_t places[3]; /* results, operands, memory */

static void start(void)
{
    const form_line form = {.spelling = "start"};
    void *context = NULL;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        exit(1);
    CALL("cuInit", (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0);
    CALL("cuCtxSetCurrent", (void *), context);
    for (int i = 0; i < 3; i++)
        CALL("cuMemAlloc_v2", (uint64_t *, size_t), &places[i], i == 2 ? sizeof memory : sizeof data);
    for (unsigned i = 0; i < WORDS; i++)
        memory[i] = form_memory(i);
    return;
next:
    exit(1);
}

/* Runs the line and sets its hash; the results are then in `data`. */
static void record(form_line *line)
{
#define form (*line)
    static char ptx[FORM_PTX_BYTES];
    void *module = NULL, *kernel = NULL;
    form.hash = 0;
    form_ptx(&form, ptx, sizeof ptx);
    CALL("cuModuleLoadData", (void **, const void *), &module, ptx);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &kernel, module, "form");
    for (unsigned k = form.n_results; k < form.n_types; k++)
        for (unsigned i = 0; i < FORM_THREADS; i++)
            data[(k - form.n_results) * FORM_THREADS + i] = form_operand(&form, k, i);
    CALL("cuMemcpyHtoD_v2", (uint64_t, const void *, size_t), places[1], data, sizeof data);
    CALL("cuMemcpyHtoD_v2", (uint64_t, const void *, size_t), places[2], memory, sizeof memory);
    CALL("cuMemsetD8_v2", (uint64_t, unsigned char, size_t), places[0], 0, sizeof data);
    void *params[3] = {&places[0], &places[1], &places[2]};
    CALL("cuLaunchKernel",
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
          void **),
         kernel, FORM_THREADS / FORM_BLOCK, 1, 1, FORM_BLOCK, 1, 1, 0, NULL, params, NULL);
    int code = ((int (*)(void *))function("cuStreamSynchronize"))(NULL);
    if (form.faults) {
        form.hash = (uint64_t)code;
        return;
    }
    CALL("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), data, places[0], sizeof data);
    form.hash = form_hash(&form, data);
next:
    if (module)
        ((int (*)(void *))function("cuModuleUnload"))(module);
#undef form
}

/* After a fault a process can do nothing more: another one runs the line, and prints it. */
static void record_apart(const char *text)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "record_forms", "-", text, (char *)NULL);
        _exit(1);
    }
    waitpid(child, NULL, 0);
}

static void print(const char *text, const form_line *form)
{
    size_t types = strcspn(text, "\t") + 1;
    types += strcspn(text + types, "\t\n");
    printf("%.*s\t%016llx\n", (int)types, text, (unsigned long long)form->hash);
}

int main(int argc, char **argv)
{
    form_line form;
    if (argc == 3 && strcmp(argv[1], "-") == 0 && form_parse(argv[2], &form)) {
        start();
        record(&form);
        print(argv[2], &form);
        return 0;
    }
    FILE *list = argc > 1 ? fopen(argv[1], "r") : NULL, *raw = argc > 2 ? fopen(argv[2], "wb") : NULL;
    char text[1024];
    if (!list)
        return 1;
    start();
    while (fgets(text, sizeof text, list)) {
        if (!form_parse(text, &form)) {
            fputs(text, stdout);
        } else if (form.faults) {
            record_apart(text);
        } else {
            record(&form);
            print(text, &form);
            if (raw && !form.hash)
                memset(data, 0, sizeof data);
            if (raw)
                fwrite(data, sizeof data[0], (size_t)form.n_results * FORM_THREADS, raw);
        }
    }
    return raw && fclose(raw);
}
