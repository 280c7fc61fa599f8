/* SPDX-License-Identifier: Apache-2.0 */

/* What a launch costs once everything is there: no lock, no allocation, and of the driver nothing but the
 * call that launches and the question which context is current. Linked so that every lock and allocation of
 * the library passes by here. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "registry/internal.h"
#include "tests/registry/images.h"

static int n_locks, n_allocations;

int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    n_locks++;
    return __real_pthread_mutex_lock(lock);
}

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes)
{
    n_allocations++;
    return __real_malloc(bytes);
}

void *__real_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes)
{
    n_allocations++;
    return __real_calloc(n, bytes);
}

void *__real_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes)
{
    n_allocations++;
    return __real_realloc(memory, bytes);
}

static CUresult refuse(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Leaves the driver two functions: any other call would fail. */
static void leave_two(kr__driver *driver)
{
    CUresult (*const refusal)(void) = refuse;
    const kr__driver whole = *driver;
#define KR_DRIVER_ROW(need, name, params) memcpy(&driver->name, &refusal, sizeof refusal);
#include "runtime/driver/driver.def"
#undef KR_DRIVER_ROW
    driver->cuCtxGetCurrent = whole.cuCtxGetCurrent;
    driver->cuLaunchKernel = whole.cuLaunchKernel;
}

static bool skipped;

START_TEST(a_launch_is_one_call)
{
    enum { N = 1000, TIMES = 10 };
    const kr_runtime_options options = {.struct_size = sizeof options, .driver = KR_SOFTCUDA};
    kr_error err = {0};
    kr_runtime *runtime = NULL;
    kr_registry *registry = NULL;
    kr_buffer *x = NULL, *y = NULL;
    kr_launcher *launcher = NULL;
    ck_assert_msg(!kr_runtime_create(&options, &runtime, &err), "%s", err.message);
    ck_assert_msg(!kr_registry_create(runtime, NULL, &registry, &err), "%s", err.message);
    kr_device *device = kr_runtime_device(runtime, 0);
    kr_stream *stream = kr_device_default_stream(device);
    ck_assert(!kr_buffer_create(device, N * 4, NULL, &x, &err));
    ck_assert(!kr_buffer_create(device, N * 4, NULL, &y, &err));
    const kr_args args = KR_ARGS(KR_U64(N), KR_F32(2), KR_BUF(x), KR_BUF(y));
    skipped = has_no_image(registry, "axpy.f32");
    if (!skipped) {
        ck_assert_msg(!kr_launcher_create(registry, stream, "axpy.f32", args, NULL, &launcher, &err), "%s",
                      err.message);
        const kr__driver whole = *device->driver;
        kr__scope scope;
        ck_assert(!kr__scope_begin(&scope, device, &err));
        leave_two(device->driver);
        n_locks = n_allocations = 0;
        kr_status status = KR_OK; /* Check's own asserts lock */
        for (int i = 0; i < TIMES && !status; i++) {
            status = kr_launch(registry, stream, "axpy.f32", args, NULL, &err);
            status = status ? status : kr_launcher_run(launcher, &err);
        }
        const int locks = n_locks, allocations = n_allocations;
        *device->driver = whole;
        kr__scope_end(&scope);
        ck_assert_msg(!status, "%s", err.message);
        ck_assert_int_eq(locks, 0);
        ck_assert_int_eq(allocations, 0);
    }
    kr_launcher_destroy(&launcher);
    kr_buffer_destroy(&x);
    kr_buffer_destroy(&y);
    kr_registry_destroy(&registry);
    kr_runtime_destroy(&runtime);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hot");
    TCase *c = tcase_create("hot");
    tcase_add_test(c, a_launch_is_one_call);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    if (skipped)
        puts("skipped: no image of the op, and no NVRTC");
    return failed ? 1 : skipped ? 77 : 0;
}
