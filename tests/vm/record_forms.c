/* SPDX-License-Identifier: Apache-2.0 */
/* Runs every line of forms.tsv on the first device of libcuda.so.1 and writes the lines with their hashes.
 * usage: record_forms forms.tsv [RAW], where RAW gets every result. Build: cc record_forms.c forms.c -ldl */
#include "forms.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
    FILE *list = argc > 1 ? fopen(argv[1], "r") : NULL, *raw = argc > 2 ? fopen(argv[2], "wb") : NULL;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!list || !library)
        return 1;
    static uint64_t data[FORM_THREADS];
    uint64_t address[5];
    void *context = NULL;
    char line[256], ptx[4096];
    form_line form = {.spelling = "start"};
    CALL("cuInit", (unsigned), 0);
    CALL("cuDevicePrimaryCtxRetain", (void **, int), &context, 0);
    CALL("cuCtxSetCurrent", (void *), context);
    for (int i = 0; i < 5; i++)
        CALL("cuMemAlloc_v2", (uint64_t *, size_t), &address[i], sizeof data);
    while (fgets(line, sizeof line, list)) {
        void *module = NULL, *kernel = NULL;
        if (!form_parse(line, &form)) {
            fputs(line, stdout);
            continue;
        }
        form.hash = 0;
        form_ptx(&form, ptx, sizeof ptx);
        CALL("cuModuleLoadData", (void **, const void *), &module, ptx);
        CALL("cuModuleGetFunction", (void **, void *, const char *), &kernel, module, "form");
        for (unsigned k = 1; k < form.n_types; k++) {
            for (unsigned i = 0; i < FORM_THREADS; i++)
                data[i] = form_operand(&form, k, i);
            CALL("cuMemcpyHtoD_v2", (uint64_t, const void *, size_t), address[k], data, sizeof data);
        }
        void *params[5] = {&address[0], &address[1], &address[2], &address[3], &address[4]};
        CALL("cuLaunchKernel",
             (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
              void **),
             kernel, FORM_THREADS / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL);
        CALL("cuMemcpyDtoH_v2", (void *, uint64_t, size_t), data, address[0], sizeof data);
        form.hash = form_hash(&form, data);
        if (raw)
            fwrite(data, 1, sizeof data, raw);
    next:
        if (raw && !form.hash) {
            memset(data, 0, sizeof data);
            fwrite(data, 1, sizeof data, raw);
        }
        printf("%s\t", form.spelling);
        for (unsigned k = 0; k < form.n_types; k++)
            printf("%s%s", k ? " " : "", form.types[k]);
        printf("\t%016llx\n", (unsigned long long)form.hash);
        if (module)
            ((int (*)(void *))function("cuModuleUnload"))(module);
    }
    return 0;
}
