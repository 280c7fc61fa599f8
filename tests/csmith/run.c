/* SPDX-License-Identifier: Apache-2.0 */
/* csmith_run PROGRAM HEADER THREAD [OPTION...]: compiles a program of csmith's with NVRTC and these options,
 * runs it on the machine in that thread of 32, and prints its checksum. Exit status 77: NVRTC does not take
 * it, or it takes too long; 1: it did not end well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kregistry/compile.h>

#include "tests/vm/vm_run.h"

/* About a second. */
static const uint64_t budget = 30000000;

enum { NOT_FOR_US = 77 };

static bool fail(const kr_error *err)
{
    fprintf(stderr, "%s\n%s\n", err->message, err->log);
    return false;
}

static bool compile(const char *program, const char *header, const char *const *options, size_t n_options,
                    kr_nvrtc **ret_nvrtc, kr_compiled **ret_compiled)
{
    char *source = NULL, *text = NULL;
    size_t bytes;
    kr_error err;
    static const char *const name = "csmith.h";
    kr_status status = kr__file_read(program, &source, &bytes, &err);
    if (!status)
        status = kr__file_read(header, &text, &bytes, &err);
    if (!status)
        status = kr_nvrtc_open(NULL, ret_nvrtc, &err);
    const char *header_text = text;
    const kr_compile_options how = {.struct_size = sizeof how,
                                    .kind = KR_IMAGE_PTX,
                                    .options = options,
                                    .n_options = n_options,
                                    .header_names = &name,
                                    .header_texts = &header_text,
                                    .n_headers = 1};
    if (!status)
        status = kr_compile(*ret_nvrtc, program, source, (kr_cc){9, 0, 0}, &how, ret_compiled, &err);
    free(source);
    free(text);
    return status == KR_OK || fail(&err);
}

static int run(const kr_compiled *compiled, unsigned thread)
{
    vm_module module;
    sc_fault fault;
    if (!vm_load_text(&module, compiled->image, compiled->image_bytes)) {
        fprintf(stderr, "%s\n", module.problem);
        return 1;
    }
    module.budget = budget;
    const uint64_t result = vm_alloc(&module, sizeof(uint32_t)), params[] = {result, thread};
    const bool ok =
        vm_launch(&module, "run", (unsigned[3]){1, 1, 1}, (unsigned[3]){32, 1, 1}, params, &fault, NULL);
    if (ok)
        printf("%08x\n", *(const uint32_t *)(uintptr_t)result);
    else
        fprintf(stderr, "line %u: %s\n", fault.line, fault.text);
    vm_unload(&module);
    return ok ? 0 : fault.kind == SC_FAULT_TIMEOUT ? NOT_FOR_US : 1;
}

int main(int argc, char **argv)
{
    kr_nvrtc *nvrtc = NULL;
    kr_compiled *compiled = NULL;
    if (argc < 4) {
        fprintf(stderr, "usage: csmith_run PROGRAM HEADER THREAD [OPTION...]\n");
        return 2;
    }
    int status = NOT_FOR_US;
    if (compile(argv[1], argv[2], (const char *const *)argv + 4, (size_t)argc - 4, &nvrtc, &compiled))
        status = run(compiled, (unsigned)atoi(argv[3]));
    kr_compiled_destroy(&compiled);
    kr_nvrtc_close(&nvrtc);
    return status;
}
