/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every line of forms.tsv on the first device of libcuda.so.1 and writes the lines with their hashes.
 *     record_forms [--relevel ISA SM] forms.tsv [RAW]
 * RAW gets every result. With --relevel 78 80 those whose PTX is rewritten for PTX 7.8 and sm_80 run so,
 * which must change nothing; the others are written as they are. */
#include "forms.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kregistry/relevel.h>

static void *library;
static kr_relevel_options level; /* isa 0: PTX runs as it is */
static unsigned n_releveled;

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
    return;
next:
    exit(1);
}

/* false: nothing of the text is rewritten for the level, or it cannot be said there. */
static bool relevel(const form_line *form, char *ptx, size_t bytes)
{
    kr_releveled *r = NULL;
    if (form_may_differ(form) || form->faults || kr_ptx_relevel(ptx, strlen(ptx), &level, &r, NULL))
        return false;
    const bool is_other = r->n_rewritten > 0 && r->bytes < bytes;
    if (is_other)
        memcpy(ptx, r->ptx, r->bytes + 1);
    n_releveled += is_other;
    kr_releveled_destroy(&r);
    return is_other;
}

/* Runs the line and sets its hash; the results are then in `data`. */
static void record(form_line *line)
{
#define form (*line)
    static char ptx[FORM_PTX_BYTES];
    void *module = NULL, *kernel = NULL;
    form_ptx(&form, ptx, sizeof ptx);
    if (level.isa && !relevel(&form, ptx, sizeof ptx))
        return;
    form.hash = 0;
    CALL("cuModuleLoadData", (void **, const void *), &module, ptx);
    CALL("cuModuleGetFunction", (void **, void *, const char *), &kernel, module, "form");
    form_fill(&form, data, memory);
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
    if (argc > 3 && strcmp(argv[1], "--relevel") == 0) {
        const int sm = atoi(argv[3]);
        level = (kr_relevel_options){
            .struct_size = sizeof level, .isa = atoi(argv[2]), .target = {sm / 10, sm % 10, 0}};
        argv += 3;
        argc -= 3;
    }
    FILE *list = argc > 1 ? fopen(argv[1], "r") : NULL, *raw = argc > 2 ? fopen(argv[2], "wb") : NULL;
    char text[1024];
    if (!list)
        return 1;
    start();
    while (fgets(text, sizeof text, list)) {
        if (!form_parse(text, &form)) {
            fputs(text, stdout);
        } else if (form.faults && !level.isa) {
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
    if (level.isa)
        fprintf(stderr, "%u lines were rewritten\n", n_releveled);
    return raw && fclose(raw);
}
