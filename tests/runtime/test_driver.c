/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, refusing and naming drivers. Each test is a process of its own. */
#include "common.h"

#include <kregistry/buffer.h>
#include <sys/stat.h>
#include <unistd.h>

static char logged[4096];

static void keep_log(void *user, kr_log_level level, const char *text)
{
    (void)user;
    const size_t at = strlen(logged);
    snprintf(logged + at, sizeof logged - at, "%d %s\n", (int)level, text);
}

static const kr__log to_log = {keep_log, NULL};

/* Only these folders, on a machine whose linker knows no libcuda. */
static bool only(const char *first, const char *second)
{
    static const char *folders[3];
    folders[0] = first;
    folders[1] = second;
    kr__driver_folders = folders;
    return !dlopen("libcuda.so.1", RTLD_NOW) && !dlopen("libcuda.so", RTLD_NOW);
}

START_TEST(nothing_there)
{
    if (!only("/nowhere/a", "/nowhere/b"))
        return;
    kr__driver *driver = NULL;
    ck_assert_int_eq(kr__driver_open(NULL, NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_str_eq(err.message,
                     "no NVIDIA driver: no libcuda.so.1 on the loader's path or in 2 known folders");
    static const char *const tried[] = {
        "libcuda.so.1: ", "/nowhere/a/libcuda.so.1: ", "/nowhere/b/libcuda.so.1: ", "\nlibcuda.so: "};
    for (size_t i = 0; i < KR_COUNT(tried); i++)
        ck_contains(err.log, tried[i]);
    ck_contains(err.log, "cannot open shared object file");
    ck_assert(err.advice[0]);
    ck_assert_ptr_null(driver);
    ck_assert_int_eq(kr__driver_open(NULL, NULL, &driver, NULL), KR_NOT_ON_THIS_MACHINE);
}
END_TEST

START_TEST(explicit_path_is_used_alone)
{
    kr__driver *driver;
    only(BUILD_DIR "/fake", NULL);
    ck_assert_int_eq(kr__driver_open("/nowhere/libcuda.so.1", NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_contains(err.message, "/nowhere/libcuda.so.1");
    ck_ok(kr__driver_open(FAKE, &to_log, &driver, &err));
    ck_assert_str_eq(driver->path, FAKE);
    ck_assert_str_eq(driver->kind, "nvidia");
    ck_assert_int_eq(driver->version, 13000);
    ck_contains(logged, "CUDA 13.0");
    kr__driver *again;
    ck_ok(kr__driver_open(FAKE, NULL, &again, &err));
    ck_assert_ptr_eq(driver, again);
}
END_TEST

START_TEST(stub_first_then_good)
{
    if (!only(BUILD_DIR "/stub", BUILD_DIR "/fake"))
        return;
    kr__driver *driver;
    ck_ok(kr__driver_open(NULL, &to_log, &driver, &err));
    ck_assert_str_eq(err.message, ""); /* success leaves the error alone */
    ck_assert_str_eq(driver->path, FAKE);
    ck_contains(logged, STUB " is the toolkit's link stub");
}
END_TEST

START_TEST(stub_alone)
{
    kr__driver *driver;
    ck_assert_int_eq(kr__driver_open(STUB, NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_contains(err.message, STUB " is the toolkit's link stub");
    ck_contains(err.advice, "LD_LIBRARY_PATH");
    ck_assert_int_eq(err.code, CUDA_ERROR_STUB_LIBRARY);
}
END_TEST

START_TEST(mapped_one_is_used)
{
    if (!only(BUILD_DIR "/stub", NULL))
        return;
    ck_assert_ptr_nonnull(dlopen(FAKE, RTLD_NOW)); /* by its soname it is libcuda.so.1 now */
    kr__driver *driver;
    ck_ok(kr__driver_open(NULL, NULL, &driver, &err));
    ck_assert_str_eq(driver->path, FAKE);
}
END_TEST

START_TEST(incomplete)
{
    kr__driver *driver;
    ck_assert_int_eq(kr__driver_open(INCOMPLETE, NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_contains(err.message, "lacks 1 of the functions needed: cuLaunchKernel");
    ck_contains(err.message, "CUDA 13.0");
    ck_contains(err.advice, "driver for CUDA 11.0");
}
END_TEST

START_TEST(a_library_that_is_no_driver)
{
    kr__driver *driver;
    ck_assert_int_eq(kr__driver_open("libm.so.6", NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_contains(err.message, "cuInit");
}
END_TEST

START_TEST(a_pipe_is_not_waited_for)
{
    kr__driver *driver;
    char path[] = "/tmp/kr_test_driver_XXXXXX";
    ck_assert_int_ge(mkstemp(path), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    const kr_status status = kr__driver_open(path, NULL, &driver, &err);
    unlink(path);
    ck_assert_int_eq(status, KR_NOT_ON_THIS_MACHINE);
    ck_contains(err.message, ": not a regular file");
    ck_contains(err.message, path);
}
END_TEST

/* What cuInit may refuse with, the device nodes that are there, and what must be said. */
static const struct {
    int answer;
    const char *nodes[3];
    const char *message, *advice;
} refusals[] = {
    {100, {"nvidiactl"}, "CUDA_ERROR_NO_DEVICE", "nvidia-smi"},
    {100, {NULL}, "CUDA_ERROR_NO_DEVICE", "nvidiactl is missing"},
    {999, {"nvidiactl"}, "CUDA_ERROR_UNKNOWN (999)", "nvidia-uvm is missing"},
    {999, {"nvidiactl", "nvidia-uvm"}, "CUDA_ERROR_UNKNOWN (999)", "after suspend"},
    {999, {NULL}, "CUDA_ERROR_UNKNOWN (999)", "nvidiactl is missing"},
    {802, {NULL}, "CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"},
    {803, {NULL}, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "/proc/driver/nvidia/version"},
    {804, {NULL}, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "libcuda that came with the kernel driver"},
    {12345, {NULL}, "unknown CUresult 12345", ""},
};

START_TEST(refused)
{
    char dev[] = "/tmp/kr_dev_XXXXXX", node[64];
    ck_assert_ptr_nonnull(mkdtemp(dev));
    for (int i = 0; i < 3 && refusals[_i].nodes[i]; i++) {
        snprintf(node, sizeof node, "%s/%s", dev, refusals[_i].nodes[i]);
        FILE *f = fopen(node, "w");
        ck_assert_ptr_nonnull(f);
        fclose(f);
    }
    kr__driver_dev = dev;
    unsetenv("CUDA_VISIBLE_DEVICES");
    fake_of(FAKE)->init = refusals[_i].answer;
    kr__driver *driver;
    const kr_status status = kr__driver_open(FAKE, NULL, &driver, &err);
    for (int i = 0; i < 3 && refusals[_i].nodes[i]; i++) {
        snprintf(node, sizeof node, "%s/%s", dev, refusals[_i].nodes[i]);
        unlink(node);
    }
    rmdir(dev);
    ck_assert_int_eq(status, KR_NOT_ON_THIS_MACHINE);
    ck_assert_int_eq(err.code, refusals[_i].answer);
    ck_contains(err.message, FAKE);
    ck_contains(err.message, refusals[_i].message);
    ck_contains(err.advice, refusals[_i].advice);
    /* No verdict is kept: the driver may have been repaired. */
    fake_of(FAKE)->init = 0;
    ck_ok(kr__driver_open(FAKE, NULL, &driver, &err));
}
END_TEST

/* 803 and 804 from a library of the forward-compatibility package: its folder is what to take away. */
START_TEST(compat_package)
{
    char folder[] = "/tmp/kr_compat_XXXXXX", path[64], command[512];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    snprintf(command, sizeof command, "cp '%s' %s", FAKE, path);
    ck_assert_int_eq(system(command), 0);
    fake_of(path)->init = _i;
    kr__driver *driver;
    const kr_status status = kr__driver_open(path, NULL, &driver, &err);
    unlink(path);
    rmdir(folder);
    ck_assert_int_eq(status, KR_NOT_ON_THIS_MACHINE);
    ck_assert_int_eq(err.code, _i);
    ck_contains(err.message, path);
    ck_contains(err.advice, "is of the forward-compatibility package");
}
END_TEST

/* Two drivers in one process: device 0 of the one is not device 0 of the other. */
START_TEST(two_drivers)
{
    char folder[] = "/tmp/kr_second_XXXXXX", path[64], command[512];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    snprintf(command, sizeof command, "cp '%s' %s", FAKE, path);
    ck_assert_int_eq(system(command), 0);
    fake *first = fake_of(FAKE), *second = fake_of(path);
    ck_assert_ptr_ne(first, second);
    second->version = 12040;
    second->n_devices = 1;
    kr_runtime *runtimes[2] = {create(), NULL};
    ck_ok(kr_runtime_create(&(kr_runtime_options){.struct_size = sizeof(kr_runtime_options), .driver = path},
                            &runtimes[1], &err));
    ck_assert_int_eq(kr_runtime_driver(runtimes[0]).version, 13000);
    ck_assert_int_eq(kr_runtime_driver(runtimes[1]).version, 12040);
    ck_assert_uint_eq(kr_runtime_n_devices(runtimes[1]), 1);
    kr_buffer *buffers[2];
    for (int i = 0; i < 2; i++)
        ck_ok(kr_buffer_create(kr_runtime_device(runtimes[i], 0), 64, NULL, &buffers[i], &err));
    ck_assert(first->allocations == 1 && second->allocations == 1);
    kr_buffer_destroy(&buffers[1]);
    ck_assert(first->allocations == 1 && second->allocations == 0);
    kr_runtime_destroy(&runtimes[1]);
    ck_assert(first->retained == 1 && second->retained == 0);
    second->fault = 700; /* the one is lost, the other is not */
    kr_buffer_destroy(&buffers[0]);
    ck_ok(kr_device_synchronize(kr_runtime_device(runtimes[0], 0), &err));
    kr_runtime_destroy(&runtimes[0]);
    ck_assert_int_eq(first->retained, 0);
    unlink(path);
    rmdir(folder);
}
END_TEST

START_TEST(a_refusing_driver_ends_the_search)
{
    if (!only(BUILD_DIR "/fake", BUILD_DIR "/stub"))
        return;
    fake_of(FAKE)->init = 803;
    kr__driver *driver;
    ck_assert_int_eq(kr__driver_open(NULL, NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_int_eq(err.code, 803);
}
END_TEST

START_TEST(no_device_by_count)
{
    fake_of(FAKE)->n_devices = 0;
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    kr__driver *driver;
    ck_assert_int_eq(kr__driver_open(FAKE, NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_int_eq(err.code, CUDA_ERROR_NO_DEVICE);
    ck_contains(err.advice, "CUDA_VISIBLE_DEVICES is \"7\"");
}
END_TEST

START_TEST(first_calls_fail)
{
    fake *f = fake_of(FAKE);
    f->fail_at = _i;
    f->fail_with = 999;
    kr__driver *driver;
    ck_assert_int_eq(kr__driver_open(FAKE, NULL, &driver, &err), KR_NOT_ON_THIS_MACHINE);
    ck_assert_str_eq(err.function, f->failed);
    ck_ok(kr__driver_open(FAKE, NULL, &driver, &err));
}
END_TEST

START_TEST(codes_have_names)
{
    char text[KR_RESULT_TEXT_BYTES];
#define CHECK_NAME(name, number) ck_assert_str_eq(kr__result_name((CUresult)number, text), #name);
    CU_RESULT_LIST(CHECK_NAME)
    ck_assert_str_eq(kr__result_name((CUresult)12345, text), "unknown CUresult 12345");
    static const int sticky[] = {700, 702, 710, 714, 715, 716, 717, 718, 719};
    for (size_t i = 0; i < KR_COUNT(sticky); i++)
        ck_assert_int_eq(kr__result_status((CUresult)sticky[i], "cuLaunchKernel"), KR_PROCESS_LOST);
    static const int harmless[] = {0, 1, 2, 701, 704, 709, 720, 999};
    for (size_t i = 0; i < KR_COUNT(harmless); i++)
        ck_assert_int_ne(kr__result_status((CUresult)harmless[i], "cuLaunchKernel"), KR_PROCESS_LOST);
}
END_TEST

START_TEST(answers_say_what_to_do)
{
    static const struct {
        int code;
        const char *advice;
    } rows[] = {{46, "who holds the device"}, {701, "smaller block"},  {808, "client of the MPS server"},
                {900, "End the capture"},     {201, "Somebody ended"}, {999, "Try again"}};
    static kr__driver driver;
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        kr__cuda_fail(&err, &driver, (CUresult)rows[i].code, "cuX", 0, NULL, __FILE__, __LINE__, "it");
        ck_contains(err.advice, rows[i].advice);
    }
}
END_TEST

/* The library checks what it is given, but for addresses: only they can be the caller's fault. */
START_TEST(an_invalid_value_is_the_callers_where_it_may_be_an_address)
{
    ck_assert_int_eq(kr__result_status(CUDA_ERROR_INVALID_VALUE, "cuMemcpyHtoD_v2"), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr__result_status(CUDA_ERROR_INVALID_VALUE, "cuMemsetD8Async"), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr__result_status(CUDA_ERROR_INVALID_VALUE, "cuOccupancyMaxPotentialBlockSize"),
                     KR_FOREIGN);
    ck_assert_int_eq(kr__result_status(CUDA_ERROR_INVALID_VALUE, "cuCtxPushCurrent_v2"), KR_FOREIGN);
}
END_TEST

START_TEST(isa_of_drivers)
{
    static const int rows[][2] = {{13000, 90}, {12060, 85}, {12090, 88}, {11040, 74},
                                  {12000, 80}, {13020, 92}, {13050, 93}};
    for (size_t i = 0; i < KR_COUNT(rows); i++)
        ck_assert_int_eq(kr__driver_isa(rows[i][0]), rows[i][1]);
    ck_assert_int_eq(kr__isa_driver(90), 13000);
    ck_assert_int_eq(kr__isa_driver(85), 12050);
    ck_assert_int_eq(kr__isa_driver(89), 13000);
    ck_assert_int_eq(kr__isa_driver(99), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("driver");
    TCase *tc = tcase_create("driver");
    tcase_add_test(tc, nothing_there);
    tcase_add_test(tc, explicit_path_is_used_alone);
    tcase_add_test(tc, stub_first_then_good);
    tcase_add_test(tc, stub_alone);
    tcase_add_test(tc, mapped_one_is_used);
    tcase_add_test(tc, incomplete);
    tcase_add_test(tc, a_library_that_is_no_driver);
    tcase_add_test(tc, a_pipe_is_not_waited_for);
    tcase_add_loop_test(tc, refused, 0, KR_COUNT(refusals));
    tcase_add_loop_test(tc, compat_package, 803, 805);
    tcase_add_test(tc, two_drivers);
    tcase_add_test(tc, a_refusing_driver_ends_the_search);
    tcase_add_test(tc, no_device_by_count);
    tcase_add_loop_test(tc, first_calls_fail, 1, 4);
    tcase_add_test(tc, codes_have_names);
    tcase_add_test(tc, answers_say_what_to_do);
    tcase_add_test(tc, an_invalid_value_is_the_callers_where_it_may_be_an_address);
    tcase_add_test(tc, isa_of_drivers);
    suite_add_tcase(suite, tc);
    return run(suite);
}
