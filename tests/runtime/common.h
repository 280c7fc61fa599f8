/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COMMON_H
#define COMMON_H

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kregistry/module.h>
#include <kregistry/runtime.h>

#include "fake.h"
#include "runtime/internal.h"

#define FAKE BUILD_DIR "/fake/libcuda.so.1"
#define STUB BUILD_DIR "/stub/libcuda.so.1"
#define INCOMPLETE BUILD_DIR "/incomplete/libcuda.so.1"

#define ck_contains(text, part) ck_assert_msg(strstr(text, part), "\"%s\" is not in \"%s\"", part, text)

#define ck_ok(call)                                                                         \
    do {                                                                                    \
        const kr_status ok_ = (call);                                                       \
        ck_assert_msg(ok_ == KR_OK, "%s: %s: %s", #call, kr_status_name(ok_), err.message); \
    } while (0)

static kr_error err;

static inline fake *fake_of(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);
    ck_assert_ptr_nonnull(handle);
    fake_cuda_fn function;
    void *address = dlsym(handle, "fake_cuda");
    memcpy(&function, &address, sizeof address);
    return function();
}

static inline kr_runtime *create(void)
{
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE};
    kr_runtime *runtime = NULL;
    const kr_status status = kr_runtime_create(&o, &runtime, &err);
    ck_assert_msg(status == KR_OK, "%s", err.message);
    return runtime;
}

static inline int run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
