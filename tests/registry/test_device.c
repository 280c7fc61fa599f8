/* SPDX-License-Identifier: Apache-2.0 */

/* The registry on devices: softcuda's by default, or those of KR_TEST_DRIVER ("nvidia": the real driver). The
 * truth is the ops' C references. */

#include <check.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kregistry/group.h>

#include "ptx/image/image.h"
#include "registry/internal.h"
#include "registry/preamble.h"
#include "tests/registry/images.h"

static kr_error err;
static kr_runtime *runtime;
static kr_registry *registry;
static kr_device *device;
static kr_stream *stream;

#define OK(call)                                                                                   \
    do {                                                                                           \
        const kr_status status_ = (call);                                                          \
        ck_assert_msg(status_ == KR_OK, "%s: %s (%s) %s", #call, err.message, err.chain, err.log); \
    } while (0)

static kr_runtime_options runtime_options(void)
{
    const char *driver = getenv("KR_TEST_DRIVER");
    kr_runtime_options options = {.struct_size = sizeof options, .driver = driver ? driver : KR_SOFTCUDA};
    if (driver && !strcmp(driver, "nvidia"))
        options.driver = NULL;
    return options;
}

static size_t free_at_start;

static size_t free_bytes(void)
{
    size_t free_now = 0, total;
    OK(kr_device_memory(device, &free_now, &total, &err));
    return free_now;
}

static void setup(void)
{
    const kr_runtime_options options = runtime_options();
    memset(&err, 0, sizeof err);
    OK(kr_runtime_create(&options, &runtime, &err));
    device = kr_runtime_device(runtime, 0);
    OK(kr_stream_create(device, NULL, &stream, &err));
    free_at_start = free_bytes();
    OK(kr_registry_create(runtime, NULL, &registry, &err));
}

static CUcontext current_context(void)
{
    CUcontext context = NULL;
    device->driver->cuCtxGetCurrent(&context);
    return context;
}

/* Every test leaves the thread's context as it was: none. And the device's memory: but the real driver keeps
 * some of it. */
static void teardown(void)
{
    ck_assert_ptr_null(current_context());
    OK(kr_stream_synchronize(stream, &err));
    kr_registry_destroy(&registry);
    if (!strcmp(kr_runtime_driver(runtime).kind, "softcuda"))
        ck_assert_uint_eq(free_bytes(), free_at_start);
    kr_stream_destroy(&stream);
    kr_runtime_destroy(&runtime);
}

static kr_buffer *buffer_of(const void *data, size_t bytes)
{
    kr_buffer *buffer = NULL;
    OK(kr_buffer_create(device, bytes, NULL, &buffer, &err));
    if (data && bytes)
        OK(kr_buffer_upload_async(buffer, 0, data, bytes, stream, &err));
    return buffer;
}

static void read_back(kr_buffer *buffer, size_t offset, void *to, size_t bytes)
{
    if (bytes)
        OK(kr_buffer_download_async(buffer, offset, to, bytes, stream, &err));
    OK(kr_stream_synchronize(stream, &err));
}

static kr_reference_fn reference_of(const char *full_name)
{
    const kr_op *op;
    kr_type type = KR_TYPE_U8;
    OK(kr_registry_find(registry, full_name, &op, &type, &err));
    return kr_op_reference(op, type);
}

/* Whole numbers: exact however the device rounds. */
static void fill_f32(float *x, size_t n, int seed)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int)(i * 7 + (size_t)seed) % 101 - 50);
}

/* ---- launching ---- */

enum { MOST = 5000 };
static float x[MOST], y[MOST], want[MOST], got[MOST];

static void make_axpy(uint64_t n, float a)
{
    fill_f32(x, n, 1);
    fill_f32(y, n, 2);
    memcpy(want, y, sizeof want);
    reference_of("axpy.f32")((void *const[]){&n, &a, x, want});
}

static const uint64_t lengths[] = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097};

START_TEST(an_op_does_what_its_reference_does)
{
    const uint64_t n = lengths[_i];
    make_axpy(n, 3);
    kr_buffer *bx = buffer_of(x, n * 4), *by = buffer_of(y, n * 4);
    OK(kr_launch(registry, stream, "axpy.f32", KR_ARGS(KR_U64(n), KR_F32(3), KR_BUF(bx), KR_BUF(by)), NULL,
                 &err));
    read_back(by, 0, got, n * 4);
    ck_assert_int_eq(memcmp(got, want, n * 4), 0);
    kr_buffer_destroy(&bx);
    kr_buffer_destroy(&by);
}
END_TEST

START_TEST(buffers_off_the_alignment_get_another_variant)
{
    const uint64_t n = 1000;
    const kr_launch_options vec = {.struct_size = sizeof vec, .variant = "vec"};
    make_axpy(n, 2);
    kr_buffer *bx = buffer_of(NULL, n * 4 + 4), *by = buffer_of(NULL, n * 4 + 4);
    OK(kr_buffer_upload_async(bx, 4, x, n * 4, stream, &err));
    OK(kr_buffer_upload_async(by, 4, y, n * 4, stream, &err));
    const kr_arg list[] = {KR_U64(n), KR_F32(2), KR_BUF_AT(bx, 4), KR_BUF_AT(by, 4)};
    ck_assert_int_eq(kr_launch(registry, stream, "axpy.f32", (kr_args){list, 4}, &vec, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "variant vec needs every buffer aligned to 16 bytes; these are to 4"),
                  "%s", err.message);
    OK(kr_launch(registry, stream, "axpy.f32", (kr_args){list, 4}, NULL, &err));
    read_back(by, 4, got, n * 4);
    ck_assert_int_eq(memcmp(got, want, n * 4), 0);
    kr_buffer_destroy(&bx);
    kr_buffer_destroy(&by);
}
END_TEST

/* Counts what the driver's pool gives and gets back. */
static __typeof__(((kr__driver *)NULL)->cuMemAllocAsync) alloc_for_true;
static __typeof__(((kr__driver *)NULL)->cuMemFreeAsync) free_for_true;
static int n_pooled;

static CUresult count_alloc(CUdeviceptr *pointer, size_t bytes, CUstream on)
{
    n_pooled++;
    return alloc_for_true(pointer, bytes, on);
}

static CUresult count_free(CUdeviceptr pointer, CUstream on)
{
    n_pooled--;
    return free_for_true(pointer, on);
}

/* _i: with the driver's pool, and without. */
START_TEST(scratch_is_provided)
{
    alloc_for_true = device->driver->cuMemAllocAsync;
    free_for_true = device->driver->cuMemFreeAsync;
    device->driver->cuMemAllocAsync = _i || !alloc_for_true ? NULL : count_alloc;
    device->driver->cuMemFreeAsync = count_free;
    enum { N = 3000 };
    static uint32_t in[N];
    uint32_t n = N, expected, out = 0;
    for (size_t i = 0; i < N; i++)
        in[i] = (uint32_t)i * 2654435761u;
    reference_of("work_sum")((void *const[]){&n, in, &expected, NULL, NULL});
    kr_buffer *bx = buffer_of(in, sizeof in), *by = buffer_of(NULL, 4);
    const kr_arg list[] = {KR_U32(N), KR_BUF(bx), KR_BUF(by)};
    for (int i = 0; i < 3; i++) {
        OK(kr_launch(registry, stream, "work_sum", (kr_args){list, 3}, NULL, &err));
        read_back(by, 0, &out, 4);
        ck_assert_uint_eq(out, expected);
        ck_assert_int_eq(n_pooled, 0);
    }
    kr_launcher *launcher = NULL;
    OK(kr_launcher_create(registry, stream, "work_sum", (kr_args){list, 3}, NULL, &launcher, &err));
    for (int i = 0; i < 3; i++) {
        OK(kr_buffer_set(by, 0, 0xff, 4, stream, &err));
        OK(kr_launcher_run(launcher, &err));
        read_back(by, 0, &out, 4);
        ck_assert_uint_eq(out, expected);
    }
    kr_launcher_destroy(&launcher);
    kr_launcher_destroy(&launcher);
    kr_buffer_destroy(&bx);
    kr_buffer_destroy(&by);
}
END_TEST

START_TEST(a_launcher_is_changed_between_runs)
{
    const uint64_t n = 100;
    make_axpy(n, 5);
    kr_buffer *bx = buffer_of(x, n * 4), *by = buffer_of(y, n * 4), *other = buffer_of(y, n * 4 + 4),
              *small = buffer_of(y, 8);
    kr_launcher *launcher = NULL;
    OK(kr_launcher_create(registry, stream, "axpy.f32", KR_ARGS(KR_U64(n), KR_F32(0), KR_BUF(bx), KR_BUF(by)),
                          NULL, &launcher, &err));
    OK(kr_launcher_run(launcher, &err)); /* by += 0 */
    OK(kr_launcher_set(launcher, 1, KR_F32(5), &err));
    OK(kr_launcher_run(launcher, &err));
    read_back(by, 0, got, n * 4);
    ck_assert_int_eq(memcmp(got, want, n * 4), 0);
    OK(kr_launcher_set(launcher, 3, KR_BUF(other), &err));
    OK(kr_launcher_run(launcher, &err));
    read_back(other, 0, got, n * 4);
    ck_assert_int_eq(memcmp(got, want, n * 4), 0);

    static const struct {
        size_t index;
        const char *message;
    } wrong[] = {{0, "argument 1 'n' is a size"},
                 {1, "argument 2 'a' is f32, not f64"},
                 {2, "argument 3 'x' needs 400 bytes"},
                 {3, "this launcher's variant vec needs a multiple of 16"},
                 {4, "there is no index 4"}};
    const kr_arg values[] = {KR_U64(n), KR_F64(1), KR_BUF(small), KR_BUF_AT(other, 4), KR_U64(0)};
    for (size_t i = 0; i < KR_COUNT(wrong); i++) {
        ck_assert_int_eq(kr_launcher_set(launcher, wrong[i].index, values[i], &err), KR_INVALID_ARGUMENT);
        ck_assert_msg(strstr(err.message, wrong[i].message), "%s", err.message);
        ck_assert_str_eq(err.op, "axpy.f32");
    }
    kr_launcher_destroy(&launcher);
    kr_buffer_destroy(&bx);
    kr_buffer_destroy(&by);
    kr_buffer_destroy(&other);
    kr_buffer_destroy(&small);
}
END_TEST

/* ---- configurations ---- */

static kr_status resolve(const char *name, const kr_launch_options *options, kr_resolution *r)
{
    uint64_t sizes[KR_MAX_OP_ARGS] = {1000, 1000};
    return kr_registry_resolve(registry, name, device, sizes, options, r, &err);
}

START_TEST(configurations_follow_the_rules_and_the_overrides)
{
    kr_resolution r;
    OK(resolve("blur", NULL, &r));
    ck_assert_uint_eq(r.config.grid[0], 32);
    ck_assert_uint_eq(r.config.grid[1], 125);
    ck_assert_uint_eq(r.config.block[0], 32);
    ck_assert_uint_eq(r.config.block[1], 8);
    ck_assert(r.occupancy > 0 && r.occupancy <= 1);
    ck_assert_int_ne(r.limiter, KR_LIMIT_NONE);
    OK(kr_registry_resolve(registry, "axpy.f32", device, NULL, NULL, &r, &err));
    ck_assert_str_eq(r.variant, "vec");
    ck_assert_uint_ge((uint64_t)r.config.grid[0] * r.config.block[0] * 2, 1);

    kr_launch_options o = {.struct_size = sizeof o, .variant = "plain", .block = {128}};
    OK(resolve("axpy.f32", &o, &r));
    ck_assert_str_eq(r.variant, "plain");
    ck_assert_uint_eq(r.config.block[0], 128);
    ck_assert_uint_eq(r.config.grid[0], 8);
    o.grid[0] = 3;
    OK(resolve("axpy.f32", &o, &r));
    ck_assert_uint_eq(r.config.grid[0], 3);
    o.grid[0] = 9;
    ck_assert_int_eq(resolve("axpy.f32", &o, &r), KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "9 blocks in x are asked for; the work has 1 to 8"), "%s", err.message);
    o = (kr_launch_options){.struct_size = sizeof o, .block = {2048}};
    ck_assert_int_eq(resolve("axpy.f32", &o, &r), KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "a block of 2048 threads is asked for"), "%s", err.message);
    o = (kr_launch_options){.struct_size = sizeof o, .block = {32, 2}};
    ck_assert_int_eq(resolve("axpy.f32", &o, &r), KR_INVALID_ARGUMENT);
    o = (kr_launch_options){.struct_size = sizeof o, .block = {64}};
    ck_assert_int_eq(resolve("blur", &o, &r), KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "written for 32x8x1"), "%s", err.message);
    o = (kr_launch_options){.struct_size = sizeof o, .variant = "fast"};
    ck_assert_int_eq(resolve("axpy.f32", &o, &r), KR_NOT_FOUND);
}
END_TEST

/* ---- what cannot be loaded ---- */

#define SOURCE(name, variants, kernels)                                                                   \
    "//! op " name                                                                                        \
    "\n//! brief b\n//! source s\n//! compare exact\n//! arg n u32 size\n//! arg y u32[n] out\n" variants \
    "//! launch elementwise n\n" kernels
#define KERNEL(name, params) "\nextern \"C\" __global__ void " name "(" params ") {}\n"

/* 0: there is none. LTO-IR and sm_90a are of CUDA 12. */
static int nvrtc_major(void)
{
    kr_nvrtc *nvrtc;
    OK(kr__registry_nvrtc(registry, &nvrtc, &err));
    return nvrtc ? kr_nvrtc_get_info(nvrtc).major : 0;
}

static bool has_nvrtc(void)
{
    return nvrtc_major() > 0;
}

static kr_status add(const char *text)
{
    return kr_registry_add_source(registry, "t.cu", text, strlen(text), &err);
}

/* A failure of the moment says nothing of what is installed: NVRTC is looked for again. */
START_TEST(nvrtc_is_looked_for_again_after_a_failure_of_the_moment)
{
    const kr_registry_options options = {.struct_size = sizeof options, .nvrtc = FAKE_NVRTC};
    kr_registry *other = NULL;
    kr_machine machine;
    struct rlimit before;
    if (access(FAKE_NVRTC, R_OK))
        return; /* this program runs elsewhere than it was built */
    OK(kr_registry_create(runtime, &options, &other, &err));
    getrlimit(RLIMIT_NOFILE, &before);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, before.rlim_max});
    const kr_status status = kr_registry_machine(other, device, &machine, &err);
    setrlimit(RLIMIT_NOFILE, &before);
    ck_assert_int_eq(status, KR_IO);
    ck_assert_str_eq(err.code_name, "EMFILE");
    OK(kr_registry_machine(other, device, &machine, &err));
    ck_assert_uint_eq(machine.n_nvrtc_archs, 3);
    kr_registry_destroy(&other);
}
END_TEST

START_TEST(a_signature_that_differs_is_refused_at_load)
{
    kr_resolution r;
    if (!has_nvrtc())
        return;
    OK(add(SOURCE("short_", "//! variant v\n", KERNEL("v", "unsigned n"))));
    OK(add(SOURCE("wide", "//! variant v\n", KERNEL("v", "unsigned long long n, unsigned *y"))));
    ck_assert_int_eq(kr_registry_resolve(registry, "short_", device, NULL, NULL, &r, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "2 arguments in the descriptor, 1 parameters in the compiled kernel"),
                  "%s", err.message);
    ck_assert_int_eq(kr_registry_resolve(registry, "wide", device, NULL, NULL, &r, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_msg(
        strstr(err.message, "op wide variant v: argument 1 'n' is u32 (4 bytes) in the descriptor, 8 bytes"),
        "%s", err.message);
}
END_TEST

START_TEST(a_missing_kernel_is_named)
{
    kr_resolution r;
    if (!has_nvrtc())
        return;
    OK(add(SOURCE("m", "//! variant v\n", KERNEL("w", "unsigned n, unsigned *y"))));
    ck_assert_int_eq(kr_registry_resolve(registry, "m", device, NULL, NULL, &r, &err), KR_NOT_FOUND);
    ck_assert_msg(strstr(err.message, "t.cu has no kernel \"v\"; it has w"), "%s", err.message);
    ck_assert_msg(strstr(err.advice, "__global__ void v(...) in t.cu"), "%s", err.advice);
}
END_TEST

/* An op can give no folder: its own headers lie beside it, the standard library's nowhere. */
START_TEST(a_missing_header_is_advised_about)
{
    kr_resolution r;
    if (!has_nvrtc())
        return;
    OK(add(
        SOURCE("mine", "//! variant v\n", "#include <mine.cuh>\n" KERNEL("v", "unsigned n, unsigned *y"))));
    ck_assert_int_eq(kr_registry_resolve(registry, "mine", device, NULL, NULL, &r, &err), KR_COMPILE_FAILED);
    ck_assert_str_eq(err.advice, "Put the file beside t.cu and include it with quotes.");
    OK(add(
        SOURCE("theirs", "//! variant v\n", "#include <iostream>\n" KERNEL("v", "unsigned n, unsigned *y"))));
    ck_assert_int_eq(kr_registry_resolve(registry, "theirs", device, NULL, NULL, &r, &err),
                     KR_COMPILE_FAILED);
    ck_assert_msg(strstr(err.advice, "keep <iostream> out"), "%s", err.advice);
}
END_TEST

START_TEST(requirements_that_do_not_hold_are_listed)
{
    kr_resolution r;
    OK(add(SOURCE("far", "//! variant a cc>=99.0\n//! variant b shared>=1000000000\n", "")));
    ck_assert_int_eq(kr_registry_resolve(registry, "far", device, NULL, NULL, &r, &err),
                     KR_NOT_ON_THIS_DEVICE);
    ck_assert_msg(strstr(err.message, "needs cc>=99.0"), "%s", err.message);
    ck_assert_msg(strstr(err.message, "needs 1000000000 bytes of shared memory"), "%s", err.message);
}
END_TEST

START_TEST(without_nvrtc_and_image_it_is_said)
{
    kr_registry *other = NULL;
    kr_resolution r;
    const char *text = SOURCE("plain", "//! variant v\n", KERNEL("v", "unsigned n, unsigned *y"));
    const kr_registry_options options = {.struct_size = sizeof options, .no_nvrtc = true};
    OK(kr_registry_create(runtime, &options, &other, &err));
    OK(kr_registry_add_source(other, "t.cu", text, strlen(text), &err));
    ck_assert_int_eq(kr_registry_resolve(other, "plain", device, NULL, NULL, &r, &err),
                     KR_NOT_ON_THIS_DEVICE);
    ck_assert_msg(strstr(err.message, "there is no NVRTC"), "%s", err.message);
    ck_assert(err.advice[0]);
    kr_registry_destroy(&other);
}
END_TEST

static char logged[4096];

static void keep_warning(void *user, kr_log_level level, const char *text)
{
    (void)user;
    if (level == KR_LOG_WARNING)
        snprintf(logged, sizeof logged, "%s", text);
}

/* What was asked for and failed is told, not only that there is none. */
START_TEST(a_path_that_is_no_nvrtc_is_told)
{
    static const struct {
        const char *path, *why;
    } rows[] = {
        {"/etc/passwd", "/etc/passwd: "},
        {"/nonexistent", "/nonexistent: cannot open shared object file: No such file or directory"},
        {"", "the path of NVRTC is empty"},
        {"none", "NVRTC is switched off: the path is none"},
    };
    const char *text = SOURCE("plain", "//! variant v\n", KERNEL("v", "unsigned n, unsigned *y"));
    const kr__log log = runtime->log;
    runtime->log = (kr__log){keep_warning, NULL};
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        kr_registry *other = NULL;
        kr_resolution r;
        const kr_registry_options options = {.struct_size = sizeof options, .nvrtc = rows[i].path};
        OK(kr_registry_create(runtime, &options, &other, &err));
        OK(kr_registry_add_source(other, "t.cu", text, strlen(text), &err));
        ck_assert_int_eq(kr_registry_resolve(other, "plain", device, NULL, NULL, &r, &err),
                         KR_NOT_ON_THIS_DEVICE);
        ck_assert_msg(strstr(err.message, "there is no NVRTC"), "%s", err.message);
        ck_assert_msg(strstr(err.message, rows[i].why), "%s", err.message);
        ck_assert(rows[i].path[0] != '/' || strstr(err.log, rows[i].why));
        ck_assert_msg(strstr(logged, rows[i].why) && logged[strlen(logged) - 1] != '\n', "%s", logged);
        kr_registry_destroy(&other);
    }
    runtime->log = log;
}
END_TEST

/* ---- falling back ---- */

/* The driver's own function, and what its first calls answer instead. */
static __typeof__(((kr__driver *)NULL)->cuModuleLoadDataEx) load_for_true;
static CUresult refusal;
static int n_refusals, n_loads;

static CUresult load_or_refuse(CUmodule *module, const void *image, unsigned n, CUjit_option *options,
                               void **values)
{
    n_loads++;
    return n_refusals && n_refusals-- ? refusal : load_for_true(module, image, n, options, values);
}

static void refuse(int n, CUresult result)
{
    if (device->driver->cuModuleLoadDataEx != load_or_refuse)
        load_for_true = device->driver->cuModuleLoadDataEx;
    device->driver->cuModuleLoadDataEx = load_or_refuse;
    device->driver->cuLibraryLoadData = NULL; /* as before CUDA 12.0 */
    n_refusals = n;
    n_loads = 0;
    refusal = result;
}

static bool has_two_candidates(void)
{
    const kr_op *op;
    OK(kr_registry_find(registry, "axpy.f32", &op, NULL, &err));
    return has_nvrtc() && kr_registry_shipped(registry, op, 0, NULL, 0);
}

static const CUresult next_please[] = {200, 209, 218, 221, 222, 223};

START_TEST(an_image_that_the_driver_refuses_leads_to_the_next)
{
    kr_resolution r;
    const kr_launch_options plain = {.struct_size = sizeof plain, .variant = "plain"};
    if (!has_two_candidates())
        return;
    refuse(1, next_please[_i]);
    OK(resolve("axpy.f32", &plain, &r));
    ck_assert_int_eq(n_loads, 2);
    ck_assert_str_eq(r.image_origin, "shipped");
    OK(resolve("axpy.f32", &plain, &r));
    ck_assert_int_eq(n_loads, 2);
    /* All of them: both reasons are told, and the driver is not asked again. */
    refuse(2, next_please[_i]);
    ck_assert_int_eq(resolve("axpy.f64", &plain, &r), KR_NOT_ON_THIS_DEVICE);
    ck_assert_msg(strstr(err.message, "plain nvrtc sm_") && strstr(err.message, "plain ptx compute_"), "%s",
                  err.message);
    ck_assert_int_eq(err.api, KR_API_CUDA);
    ck_assert_int_eq(err.code, next_please[_i]);
    ck_assert_int_eq(resolve("axpy.f64", &plain, &r), KR_NOT_ON_THIS_DEVICE);
    ck_assert_int_eq(n_loads, 2);
}
END_TEST

START_TEST(a_failure_of_another_kind_is_told_at_once_and_may_pass)
{
    kr_resolution r;
    const kr_launch_options plain = {.struct_size = sizeof plain, .variant = "plain"};
    refuse(1, CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(resolve("axpy.f32", &plain, &r), KR_OUT_OF_DEVICE_MEMORY);
    ck_assert_int_eq(n_loads, 1);
    OK(resolve("axpy.f32", &plain, &r));
    ck_assert_int_eq(n_loads, 2);
}
END_TEST

/* A busy device is no fault of an image: it is told as such, and asked again. The plain and the chosen
 * variant. */
START_TEST(a_busy_device_may_be_free_later)
{
    kr_resolution r;
    const kr_launch_options plain = {.struct_size = sizeof plain, .variant = _i ? "plain" : NULL};
    refuse(1, CUDA_ERROR_DEVICE_UNAVAILABLE);
    ck_assert_int_eq(resolve("axpy.f32", &plain, &r), KR_NOT_ON_THIS_DEVICE);
    ck_assert_int_eq(err.code, CUDA_ERROR_DEVICE_UNAVAILABLE);
    OK(resolve("axpy.f32", &plain, &r));
}
END_TEST

static __typeof__(((kr__driver *)NULL)->cuLibraryLoadData) library_for_true;
static int n_libraries;

static CUresult count_libraries(CUlibrary *library, const void *image, CUjit_option *jit_options,
                                void **jit_values, unsigned n_jit_options, CUlibraryOption *options,
                                void **values, unsigned n_options)
{
    n_libraries++;
    return library_for_true(library, image, jit_options, jit_values, n_jit_options, options, values,
                            n_options);
}

START_TEST(an_image_is_loaded_once_for_all_devices)
{
    kr_registry *other = NULL;
    kr_resolution r;
    const kr_registry_options options = {.struct_size = sizeof options, .no_nvrtc = true};
    const kr_launch_options plain = {.struct_size = sizeof plain, .variant = "plain"};
    if (!has_two_candidates() || !device->driver->cuLibraryLoadData)
        return;
    library_for_true = device->driver->cuLibraryLoadData;
    device->driver->cuLibraryLoadData = count_libraries;
    OK(kr_registry_create(runtime, &options, &other, &err));
    for (size_t i = 0; i < kr_runtime_n_devices(runtime); i++)
        OK(kr_registry_resolve(other, "axpy.f32", kr_runtime_device(runtime, i), NULL, &plain, &r, &err));
    ck_assert_int_eq(n_libraries, 1);
    device->driver->cuLibraryLoadData = library_for_true;
    kr_registry_destroy(&other);
}
END_TEST

START_TEST(shipped_images_do_without_nvrtc)
{
    kr_registry *other = NULL;
    kr_resolution r;
    const kr_registry_options options = {.struct_size = sizeof options, .no_nvrtc = true};
    if (!has_two_candidates())
        return;
    OK(kr_registry_create(runtime, &options, &other, &err));
    OK(kr_registry_resolve(other, "axpy.f32", device, NULL, NULL, &r, &err));
    ck_assert_str_eq(r.image_origin, "shipped");
    ck_assert_int_eq(r.image_kind, KR_IMAGE_PTX);
    kr_registry_destroy(&other);
}
END_TEST

/* ---- what is shipped, of all kinds ---- */

/* A registry without NVRTC whose axpy.f32 plain has these images alone. */
static kr_registry *shipping(const kr__image *images, size_t n)
{
    kr_registry *other = NULL;
    kr__entry *entry;
    size_t type_index;
    const kr_registry_options options = {.struct_size = sizeof options, .no_nvrtc = true};
    OK(kr_registry_create(runtime, &options, &other, &err));
    OK(kr__registry_find(other, "axpy.f32", &entry, &type_index, &err));
    free(entry->images);
    OK(kr__shipped_list(images, n, &entry->images, &entry->n_images, &err));
    return other;
}

static kr_compiled *compiled(kr_cc arch, kr_image_kind kind)
{
    kr_nvrtc *nvrtc;
    kr__entry *entry;
    size_t type_index;
    kr_compiled *c = NULL;
    OK(kr__registry_nvrtc(registry, &nvrtc, &err));
    OK(kr__registry_find(registry, "axpy.f32", &entry, &type_index, &err));
    const kr__job job = {entry->def, type_index, 0, arch, kind, NULL, false};
    OK(kr__op_compile(nvrtc, &job, &c, &err));
    return c;
}

static kr__image image_of(const kr_compiled *c, int isa)
{
    return (kr__image){.kind = c->kind,
                       .arch = c->arch,
                       .isa = isa,
                       .stored = {.bytes = c->image, .n_bytes = c->image_bytes}};
}

static void runs_shipped(kr_registry *other, kr_image_kind kind)
{
    const uint64_t n = 1000;
    kr_resolution r;
    const kr_launch_options plain = {.struct_size = sizeof plain, .variant = "plain"};
    make_axpy(n, 3);
    kr_buffer *bx = buffer_of(x, n * 4), *by = buffer_of(y, n * 4);
    OK(kr_registry_resolve(other, "axpy.f32", device, NULL, &plain, &r, &err));
    ck_assert_int_eq(r.image_kind, kind);
    ck_assert_str_eq(r.image_origin, "shipped");
    OK(kr_launch(other, stream, "axpy.f32", KR_ARGS(KR_U64(n), KR_F32(3), KR_BUF(bx), KR_BUF(by)), &plain,
                 &err));
    read_back(by, 0, got, n * 4);
    ck_assert_int_eq(memcmp(got, want, n * 4), 0);
    kr_buffer_destroy(&bx);
    kr_buffer_destroy(&by);
}

/* softcuda executes PTX alone, so machine code that runs on it came with the PTX beside it. Machine code that
 * is not for the device that it is shipped for leads to the PTX. */
START_TEST(images_of_all_kinds_run)
{
    const kr_cc cc = kr_device_get_info(device)->cc, far = {cc.major == 9 ? 8 : 9, 0, 0};
    if (!has_nvrtc())
        return;
    kr_compiled *own = compiled(cc, KR_IMAGE_CUBIN), *other = compiled(far, KR_IMAGE_CUBIN),
                *ptx = compiled((kr_cc){7, 5, 0}, KR_IMAGE_PTX),
                *lto = nvrtc_major() < 12 ? NULL : compiled((kr_cc){7, 5, 0}, KR_IMAGE_LTOIR);
    const kr__image code = image_of(own, 0), text = image_of(ptx, 70);
    kr__image wrong = image_of(other, 0);
    wrong.arch = cc;
    kr__image fatbins[2] = {{.kind = KR_IMAGE_FATBIN}, {.kind = KR_IMAGE_FATBIN}};
    const kr_compiled *first[] = {own, other};
    for (size_t i = 0; i < 2; i++) {
        const kr__fatbin_part parts[] = {
            {KR_IMAGE_CUBIN, first[i]->arch, 0, first[i]->image, first[i]->image_bytes},
            {KR_IMAGE_PTX, ptx->arch, 70, ptx->image, ptx->image_bytes}};
        void *bytes;
        OK(kr__fatbin_write(parts, 2, &bytes, &fatbins[i].stored.n_bytes, &err));
        fatbins[i].stored.bytes = bytes;
    }
    const struct {
        kr__image images[2];
        size_t n;
        kr_image_kind kind;
    } rows[] = {{{code, text}, 2, KR_IMAGE_CUBIN},
                {{fatbins[0]}, 1, KR_IMAGE_CUBIN},
                {{fatbins[1]}, 1, KR_IMAGE_PTX},
                {{wrong, text}, 2, KR_IMAGE_PTX},
                {{lto ? image_of(lto, 0) : text, text}, 2, KR_IMAGE_PTX}};
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        kr_registry *shipped = shipping(rows[i].images, rows[i].n);
        runs_shipped(shipped, rows[i].kind);
        kr_registry_destroy(&shipped);
    }
    for (size_t i = 0; i < 2; i++)
        free((char *)fatbins[i].stored.bytes);
    kr_compiled_destroy(&own);
    kr_compiled_destroy(&other);
    kr_compiled_destroy(&ptx);
    kr_compiled_destroy(&lto);
}
END_TEST

/* A damaged image leads to the next; with none left, each reason is told, and what the compiler said. */
START_TEST(what_was_wrong_with_each_is_kept)
{
    static const char bad[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry plain() { oops; }\n",
                      stub[] = "\x7f"
                               "ELF, and no more";
    const kr_cc cc = kr_device_get_info(device)->cc;
    const kr__image images[] = {
        {.kind = KR_IMAGE_CUBIN, .arch = cc, .stored = {.bytes = stub, .n_bytes = sizeof stub}},
        {.kind = KR_IMAGE_PTX,
         .arch = {7, 5, 0},
         .isa = 70,
         .stored = {.bytes = bad, .n_bytes = sizeof bad}}};
    kr_resolution r;
    const kr_launch_options plain = {.struct_size = sizeof plain, .variant = "plain"};
    kr_registry *other = shipping(images, KR_COUNT(images));
    ck_assert_int_eq(kr_registry_resolve(other, "axpy.f32", device, NULL, &plain, &r, &err),
                     KR_NOT_ON_THIS_DEVICE);
    ck_assert_int_eq(err.code, CUDA_ERROR_INVALID_PTX);
    const char *cubin = strstr(err.message, "plain cubin sm_"),
               *ptx = strstr(err.message, "plain ptx compute_75: ");
    ck_assert_msg(cubin && ptx && cubin < ptx, "%s", err.message);
    cubin = strstr(err.log, "plain cubin sm_");
    ptx = strstr(err.log, "\nplain ptx compute_75: ");
    ck_assert_msg(cubin && ptx && strstr(ptx, "\n    ") && strstr(ptx, "oops"), "%s", err.log);
    kr_registry_destroy(&other);
}
END_TEST

/* For a driver that calls itself older than it is. What cannot be releveled, as PTX that is wrong, leads to
 * the next. */
START_TEST(newer_ptx_is_releveled)
{
    const kr_launch_options plain = {.struct_size = sizeof plain, .variant = "plain"};
    kr_resolution r;
    if (!has_nvrtc())
        return;
    kr_compiled *ptx = compiled((kr_cc){7, 5, 0}, KR_IMAGE_PTX);
    char *newer = strdup(ptx->image), *wrong = strdup(ptx->image);
    memcpy(strstr(newer, ".version ") + 9, "7.8", 3);
    memcpy(strstr(wrong, ".version ") + 9, "7.8", 3);
    memcpy(strstr(wrong, "fma.rn"), "fmz", 3);
    kr__image images[2] = {image_of(ptx, 78), image_of(ptx, 78)};
    images[0].stored.bytes = wrong;
    images[1].stored.bytes = newer;
    const int version = device->driver->version;
    device->driver->version = 11040;
    kr_registry *other = shipping(images, 2);
    runs_shipped(other, KR_IMAGE_PTX);
    OK(kr_registry_resolve(other, "axpy.f32", device, NULL, &plain, &r, &err));
    ck_assert_msg(r.image_change &&
                      strstr(r.image_change, "PTX 7.8 releveled to 7.4 for the driver (CUDA 11.4)"),
                  "%s", r.image_change);
    kr_registry_destroy(&other);
    other = shipping(images, 1);
    ck_assert_int_eq(kr_registry_resolve(other, "axpy.f32", device, NULL, &plain, &r, &err),
                     KR_NOT_ON_THIS_DEVICE);
    ck_assert_msg(strstr(err.message, "plain ptx compute_75: ") && strstr(err.message, "'fmz'"), "%s",
                  err.message);
    device->driver->version = version;
    kr_registry_destroy(&other);
    kr_compiled_destroy(&ptx);
    free(newer);
    free(wrong);
}
END_TEST

/* What is there and what the device needs. */
START_TEST(nothing_that_is_shipped_fits)
{
    const kr_cc cc = kr_device_get_info(device)->cc, far = {cc.major == 9 ? 8 : 9, 0, 'a'};
    const kr__image images[] = {{.kind = KR_IMAGE_CUBIN, .arch = far, .stored = {.bytes = ""}},
                                {.kind = KR_IMAGE_PTX, .arch = far, .stored = {.bytes = ""}}};
    kr_resolution r;
    char needed[128];
    kr_registry *other = shipping(images, KR_COUNT(images));
    ck_assert_int_eq(kr_registry_resolve(other, "axpy.f32", device, NULL, NULL, &r, &err),
                     KR_NOT_ON_THIS_DEVICE);
    snprintf(needed, sizeof needed,
             "Shipped are cubin sm_%d0a, ptx compute_%d0a: add machine code for sm_%d%d", far.major,
             far.major, cc.major, cc.minor);
    ck_assert_msg(strstr(err.advice, needed), "%s", err.advice);
    kr_registry_destroy(&other);
}
END_TEST

/* Compiled for exactly that target, as its own macro tells, where the device is it. */
START_TEST(a_variant_has_a_target_of_its_own)
{
    if (nvrtc_major() < 12)
        return;
    OK(add(
        SOURCE("lettered", "//! variant plain\n//! variant own cc=9.0a\n",
               KERNEL("plain", "unsigned n, unsigned *y") "#if defined KR_VARIANT_own && defined "
                                                          "__CUDA_ARCH_FEAT_SM90_ALL" KERNEL(
                                                              "own", "unsigned n, unsigned *y") "#endif\n")));
    for (size_t i = 0; i < kr_runtime_n_devices(runtime); i++) {
        kr_resolution r;
        kr_device *d = kr_runtime_device(runtime, i);
        const bool own = kr_cc_compare(kr_device_get_info(d)->cc, (kr_cc){9, 0, 0}) == 0;
        OK(kr_registry_resolve(registry, "lettered", d, NULL, NULL, &r, &err));
        ck_assert_str_eq(r.variant, own ? "own" : "plain");
        ck_assert_int_eq(r.image_arch.suffix, own ? 'a' : 0);
    }
}
END_TEST

/* ---- what the environment asks for ---- */

static kr_registry *registry_under(const char *variable, const char *value, bool no_nvrtc)
{
    kr_registry *other = NULL;
    const kr_registry_options options = {.struct_size = sizeof options, .no_nvrtc = no_nvrtc};
    setenv(variable, value, 1);
    OK(kr_registry_create(runtime, &options, &other, &err));
    unsetenv(variable);
    return other;
}

START_TEST(a_variant_is_asked_for)
{
    const uint64_t n = 100;
    kr_resolution r;
    const kr_launch_options vec = {.struct_size = sizeof vec, .variant = "vec"};
    kr_registry *other = registry_under("KREGISTRY_VARIANT", "blur=tiled,axpy=plain", false);
    OK(kr_registry_resolve(other, "axpy.f32", device, NULL, NULL, &r, &err));
    ck_assert_str_eq(r.variant, "plain");
    OK(kr_registry_resolve(other, "axpy.f32", device, NULL, &vec, &r,
                           &err)); /* the caller's word counts more */
    ck_assert_str_eq(r.variant, "vec");
    kr_registry_destroy(&other);

    other = registry_under("KREGISTRY_VARIANT", "axpy=vec", false);
    kr_buffer *bx = buffer_of(NULL, n * 4 + 4);
    const kr_arg list[] = {KR_U64(n), KR_F32(2), KR_BUF_AT(bx, 4), KR_BUF_AT(bx, 4)};
    ck_assert_int_eq(kr_launch(other, stream, "axpy.f32", (kr_args){list, 4}, NULL, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.chain, "obeying KREGISTRY_VARIANT"), "%s", err.chain);
    kr_buffer_destroy(&bx);
    kr_registry_destroy(&other);
}
END_TEST

START_TEST(the_jit_is_forced_or_disabled)
{
    kr_resolution r;
    if (!has_two_candidates())
        return;
    kr_registry *other = registry_under("CUDA_FORCE_JIT", "1", false);
    OK(kr_registry_resolve(other, "axpy.f32", device, NULL, NULL, &r, &err));
    ck_assert_int_eq(r.image_kind, KR_IMAGE_PTX);
    ck_assert_str_eq(r.image_origin, "shipped");
    kr_registry_destroy(&other);

    other = registry_under("CUDA_DISABLE_PTX_JIT", "1", false);
    OK(kr_registry_resolve(other, "axpy.f32", device, NULL, NULL, &r, &err));
    ck_assert_str_eq(r.image_origin, "nvrtc");
    kr_registry_destroy(&other);

    other = registry_under("CUDA_DISABLE_PTX_JIT", "1", true);
    ck_assert_int_eq(kr_registry_resolve(other, "axpy.f32", device, NULL, NULL, &r, &err),
                     KR_NOT_ON_THIS_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.advice, "Unset CUDA_DISABLE_PTX_JIT, or add machine code for sm_"));
    kr_registry_destroy(&other);

    const kr__image cubin = {
        .kind = KR_IMAGE_CUBIN, .arch = kr_device_get_info(device)->cc, .stored = {.bytes = ""}};
    setenv("CUDA_FORCE_PTX_JIT", "1", 1);
    other = shipping(&cubin, 1);
    unsetenv("CUDA_FORCE_PTX_JIT");
    ck_assert_int_eq(kr_registry_resolve(other, "axpy.f32", device, NULL, NULL, &r, &err),
                     KR_NOT_ON_THIS_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.advice, "Unset CUDA_FORCE_PTX_JIT, or add PTX for compute_"));
    kr_registry_destroy(&other);
}
END_TEST

/* Another registry, as another process would, finds what the first one compiled. */
START_TEST(what_was_compiled_is_kept)
{
    static const char *const origins[] = {"nvrtc", "cache", "nvrtc"};
    char folder[] = "/tmp/kr_registry_XXXXXX", command[60];
    kr_registry_options options = {.struct_size = sizeof options, .cache = folder};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (size_t i = 0; i < KR_COUNT(origins) && has_nvrtc(); i++) {
        kr_registry *other = NULL;
        kr_explanation *why = NULL;
        kr_machine machine;
        kr_resolution r;
        options.no_cache = i == 2;
        OK(kr_registry_create(runtime, &options, &other, &err));
        OK(kr_registry_machine(other, device, &machine, &err));
        OK(kr_registry_explain(other, "axpy.f32", &machine, "plain", &why, &err));
        ck_assert_msg(strstr(why->considered[0].reason,
                             i == 1 ? "; compiled before: in the cache" : "; not tried") != NULL,
                      "%s", why->considered[0].reason);
        kr_explanation_destroy(&why);
        const kr_launch_options plain = {.struct_size = sizeof plain, .variant = "plain"};
        OK(kr_registry_resolve(other, "axpy.f32", device, NULL, &plain, &r, &err));
        ck_assert_str_eq(r.image_origin, origins[i]);
        kr_registry_destroy(&other);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* A capture would keep the zeroing of scratch for later: an op with scratch is not prepared meanwhile. */
START_TEST(no_scratch_in_a_capture)
{
    enum { N = 8 };
    kr_stream *own = NULL;
    kr_buffer *from = NULL, *total = NULL;
    kr_launcher *launcher = NULL;
    CUgraph graph = NULL;
    CUresult (*begin)(CUstream, CUstreamCaptureMode) = NULL, (*end)(CUstream, CUgraph *) = NULL;
    *(void **)&begin = dlsym(device->driver->handle, "cuStreamBeginCapture_v2");
    *(void **)&end = dlsym(device->driver->handle, "cuStreamEndCapture");
    OK(kr_stream_create(device, NULL, &own, &err));
    OK(kr_buffer_create(device, N * 4, NULL, &from, &err));
    OK(kr_buffer_create(device, 8, NULL, &total, &err));
    ck_assert_int_eq(begin(kr_stream_custream(own), CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    const kr_args args = KR_ARGS(KR_U32(N), KR_BUF(from), KR_BUF(total));
    const kr_status status = kr_launcher_create(registry, own, "work_sum", args, NULL, &launcher, &err);
    ck_assert_int_eq(end(kr_stream_custream(own), &graph), CUDA_SUCCESS);
    ck_assert_msg(status == KR_INVALID_ARGUMENT && strstr(err.message, "captur"), "%d %s", status,
                  err.message);
    OK(kr_launcher_create(registry, own, "work_sum", args, NULL, &launcher, &err)); /* and may be later */
    kr_launcher_destroy(&launcher);
    kr_buffer_destroy(&from);
    kr_buffer_destroy(&total);
    kr_stream_destroy(&own);
}
END_TEST

/* ---- preparing ---- */

typedef struct tally {
    size_t progress, total, failed;
} tally;

static void on_progress(void *user, size_t done, size_t total, const char *full_name)
{
    tally *t = user;
    t->progress++;
    t->total = total;
    ck_assert_uint_eq(done, t->progress);
    ck_assert(full_name[0]);
}

static void on_failed(void *user, const kr_error *e)
{
    ((tally *)user)->failed++;
    ck_assert_str_eq(e->op, "bad");
}

/* How many compiles of the first variant the registry keeps; failed: of those, how many failed. */
static size_t n_compiles(const char *full_name, bool failed)
{
    kr__entry *entry;
    size_t type_index, n = 0;
    OK(kr__registry_find(registry, full_name, &entry, &type_index, &err));
    for (const kr__built *b = entry->built[type_index * entry->def->op.n_variants]; b; b = b->next)
        n += !failed || b->failure;
    return n;
}

START_TEST(one_failure_leaves_the_others_alone)
{
    tally t = {0};
    const kr_prepare_options options = {.struct_size = sizeof options,
                                        .progress = on_progress,
                                        .progress_user = &t,
                                        .failed = on_failed,
                                        .failed_user = &t};
    OK(kr_registry_prepare(registry, "axpy.*", &options, &err));
    ck_assert_uint_eq(t.progress, 2 * kr_runtime_n_devices(runtime));
    ck_assert_int_eq(kr_registry_prepare(registry, "nothing*", NULL, &err), KR_NOT_FOUND);
    if (!has_nvrtc())
        return;
    OK(add(SOURCE("bad", "//! variant v\n",
                  "\nextern \"C\" __global__ void v(unsigned n, unsigned *y) { oops; }\n")));
    t = (tally){0};
    ck_assert_int_eq(kr_registry_prepare(registry, "*", &options, &err), KR_COMPILE_FAILED);
    ck_assert_uint_eq(t.failed, kr_runtime_n_devices(runtime));
    ck_assert_uint_eq(t.progress, t.total);
    ck_assert_msg(strstr(err.log, "oops"), "%s", err.log);
    ck_assert_msg(strstr(err.chain, "failed, this one first"), "%s", err.chain);
    kr_resolution r;
    OK(resolve("axpy.f64", NULL, &r));
    ck_assert_int_eq(resolve("bad", NULL, &r), KR_COMPILE_FAILED);
    ck_assert_uint_eq(n_compiles("bad", true), n_compiles("bad", false)); /* kept, not compiled again */
}
END_TEST

static void *resolve_in_thread(void *user)
{
    kr_resolution r;
    kr_error own;
    (void)user;
    return kr_registry_resolve(registry, "axpy.f32", device, NULL, NULL, &r, &own) ? NULL : r.kernel;
}

START_TEST(many_threads_make_it_once)
{
    pthread_t threads[8];
    void *kernels[KR_COUNT(threads)];
    for (size_t i = 0; i < KR_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, resolve_in_thread, NULL), 0);
    for (size_t i = 0; i < KR_COUNT(threads); i++)
        pthread_join(threads[i], &kernels[i]);
    ck_assert_ptr_nonnull(kernels[0]);
    for (size_t i = 1; i < KR_COUNT(threads); i++)
        ck_assert_ptr_eq(kernels[i], kernels[0]);
    ck_assert_uint_le(n_compiles("axpy.f32", false), 1);
}
END_TEST

/* ---- groups ---- */

static const uint32_t group_lengths[] = {0, 1, 2, 3, 100, 1001};

START_TEST(a_group_does_what_the_reference_does)
{
    kr_group *group = NULL;
    OK(kr_group_create(runtime, NULL, &group, &err));
    const size_t n_devices = kr_group_n_devices(group);
    kr_group_part *parts = calloc(n_devices, sizeof *parts);
    uint64_t n = group_lengths[_i], sum = 0;
    float a = 3;
    make_axpy(n, a);
    OK(kr_group_run(group, registry, "axpy.f32", (void *const[]){&n, &a, x, y}, 4, parts, &err));
    ck_assert_int_eq(memcmp(y, want, n * 4), 0);
    for (size_t i = 0; i < n_devices; i++) {
        ck_assert_uint_eq(parts[i].first, sum);
        sum += parts[i].count;
    }
    ck_assert_uint_eq(sum, n);

    static uint32_t in[1001];
    uint32_t m = group_lengths[_i], expected, out = 77;
    for (size_t i = 0; i < m; i++)
        in[i] = (uint32_t)i * 2654435761u;
    reference_of("work_sum")((void *const[]){&m, in, &expected, NULL, NULL});
    OK(kr_group_run(group, registry, "work_sum", (void *const[]){&m, in, &out}, 3, NULL, &err));
    ck_assert_uint_eq(out, expected);

    /* What is added to counts once, whichever devices take part. */
    static uint8_t samples[1001];
    uint32_t bins[4] = {10, 20, 30, 40}, bins_wanted[4] = {10, 20, 30, 40};
    for (size_t i = 0; i < m; i++)
        samples[i] = (uint8_t)(i * i % 4);
    reference_of("tally")((void *const[]){&m, samples, bins_wanted});
    OK(kr_group_run(group, registry, "tally", (void *const[]){&m, samples, bins}, 3, NULL, &err));
    ck_assert_int_eq(memcmp(bins, bins_wanted, sizeof bins), 0);
    free(parts);
    kr_group_destroy(&group);
}
END_TEST

/* 2^24 + 1 + 1: adding the devices' sums one by one in f32 would stay at 2^24. */
START_TEST(a_group_rounds_its_sum_once)
{
    enum { N = 30000 };
    static float in[N];
    uint64_t n = N;
    float total = 0, expected;
    kr_group *group = NULL;
    OK(kr_group_create(runtime, NULL, &group, &err));
    const size_t n_devices = kr_group_n_devices(group);
    kr_group_part *parts = calloc(n_devices, sizeof *parts);
    OK(kr_group_run(group, registry, "parts", (void *const[]){&n, in, &total}, 3, parts, &err));
    for (size_t i = 0; i < n_devices; i++)
        if (parts[i].count)
            in[parts[i].first] = parts[i].first ? 1 : 0x1p24f;
    reference_of("parts")((void *const[]){&n, in, &expected});
    OK(kr_group_run(group, registry, "parts", (void *const[]){&n, in, &total}, 3, parts, &err));
    ck_assert_msg(total == expected, "%f, not %f", total, expected);
    free(parts);
    kr_group_destroy(&group);
}
END_TEST

START_TEST(a_group_looks_over_its_edges)
{
    enum { COLS = 37, MOST_ROWS = 50 };
    static int32_t in[MOST_ROWS * COLS], out[MOST_ROWS * COLS], expected[MOST_ROWS * COLS];
    kr_group *group = NULL;
    OK(kr_group_create(runtime, NULL, &group, &err));
    for (size_t i = 0; i < KR_COUNT(in); i++)
        in[i] = (int32_t)(i * 2654435761u >> 8 & 0xffff);
    for (uint32_t rows = 1, cols = COLS; rows <= MOST_ROWS; rows += 7) {
        memset(out, 0xff, sizeof out);
        memset(expected, 0xff, sizeof expected);
        reference_of("blur")((void *const[]){&rows, &cols, in, expected});
        OK(kr_group_run(group, registry, "blur", (void *const[]){&rows, &cols, in, out}, 4, NULL, &err));
        ck_assert_int_eq(memcmp(out, expected, sizeof out), 0);
    }
    uint32_t rows = 0, cols = COLS;
    ck_assert_int_eq(
        kr_group_run(group, registry, "blur", (void *const[]){&rows, &cols, in, out}, 4, NULL, &err),
        KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_group_run(group, registry, "blur", (void *const[]){&rows, &cols, in}, 3, NULL, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_int_eq(
        kr_group_run(group, registry, "blur", (void *const[]){&cols, &cols, NULL, out}, 4, NULL, &err),
        KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "argument 3 'x' is NULL"), "%s", err.message);
    kr_group_destroy(&group);
}
END_TEST

/* ---- a driver function that fails ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#define KR_DRIVER_ROW(need, name, params) \
    static CUresult fail_##name params    \
    {                                     \
        return CUDA_ERROR_OUT_OF_MEMORY;  \
    }
#include "runtime/driver/driver.def"
#undef KR_DRIVER_ROW
#pragma GCC diagnostic pop

typedef void (*any_function)(void);

static const struct {
    const char *name;
    size_t offset; /* in kr__driver */
    any_function stub;
} functions[] = {
#define KR_DRIVER_ROW(need, name, params) {#name, offsetof(kr__driver, name), (any_function)fail_##name},
#include "runtime/driver/driver.def"
#undef KR_DRIVER_ROW
};

static bool gives_back(const char *name)
{
    return strstr(name, "Free") || strstr(name, "Unload") || strstr(name, "Destroy") || strstr(name, "Pop") ||
           strstr(name, "Release");
}

/* Everything once: loading, launching with work memory, a launcher, a group. */
static kr_status do_everything(void)
{
    enum { N = 300 };
    static uint32_t in[N];
    uint32_t n = N, out = 0;
    kr_registry *own = NULL;
    kr_group *group = NULL;
    kr_buffer *bx = NULL, *by = NULL;
    kr_launcher *launcher = NULL;
    /* Without compiling where that can be: this is done often. */
    const kr_registry_options options = {.struct_size = sizeof options, .no_nvrtc = has_two_candidates()};
    kr_status status = kr_registry_create(runtime, &options, &own, &err);
    if (!status)
        status = kr_registry_prepare(own, "work_sum", NULL, &err);
    if (!status)
        status = kr_buffer_create(device, sizeof in, NULL, &bx, &err);
    if (!status)
        status = kr_buffer_create(device, sizeof out, NULL, &by, &err);
    if (!status)
        status = kr_buffer_upload(bx, 0, in, sizeof in, &err);
    if (!status)
        status = kr_launch(own, stream, "work_sum", KR_ARGS(KR_U32(N), KR_BUF(bx), KR_BUF(by)), NULL, &err);
    if (!status)
        status = kr_launcher_create(own, stream, "work_sum", KR_ARGS(KR_U32(N), KR_BUF(bx), KR_BUF(by)), NULL,
                                    &launcher, &err);
    if (!status)
        status = kr_launcher_run(launcher, &err);
    if (!status)
        status = kr_stream_synchronize(stream, &err);
    if (!status)
        status = kr_group_create(runtime, NULL, &group, &err);
    if (!status)
        status = kr_group_run(group, own, "work_sum", (void *const[]){&n, in, &out}, 3, NULL, &err);
    kr_group_destroy(&group);
    kr_launcher_destroy(&launcher);
    kr_buffer_destroy(&bx);
    kr_buffer_destroy(&by);
    kr_registry_destroy(&own);
    return status;
}

/* An error, or a way without that function; nothing is lost (teardown looks at the device, the sanitizers at
 * the host), and when it works again so does everything. */
START_TEST(any_driver_function_may_fail)
{
    if (gives_back(functions[_i].name))
        return;
    any_function *place = (any_function *)((char *)device->driver + functions[_i].offset);
    const any_function true_one = *place;
    if (!true_one)
        return;
    OK(do_everything());
    *place = functions[_i].stub;
    if (do_everything() && err.api == KR_API_CUDA)
        ck_assert_msg(err.function[0] == 'c', "%s: %s", functions[_i].name, err.message);
    *place = true_one;
    OK(do_everything());
}
END_TEST

enum { DRIVER = 1, OPS = 2 };

/* In a process of its own: a driver does not survive the fork() before each test. What cannot be told is
 * taken to be there: the tests say what is wrong. */
static int look_around(void)
{
    const pid_t child = fork();
    if (!child) {
        const kr_runtime_options options = runtime_options();
        if (kr_runtime_create(&options, &runtime, &err)) {
            kr_error_print(&err, stderr);
            _exit(0);
        }
        const bool no_ops =
            kr_registry_create(runtime, NULL, &registry, &err) == KR_OK && has_no_image(registry, "axpy.f32");
        _exit(no_ops ? DRIVER : DRIVER | OPS);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                                 : DRIVER | OPS;
}

int main(void)
{
    const int there = look_around();
    if (!(there & DRIVER))
        return 77; /* skipped */
    Suite *suite = suite_create("device");
    TCase *c = tcase_create("device");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, nvrtc_is_looked_for_again_after_a_failure_of_the_moment);
    tcase_add_test(c, a_signature_that_differs_is_refused_at_load);
    tcase_add_test(c, a_missing_kernel_is_named);
    tcase_add_test(c, a_missing_header_is_advised_about);
    tcase_add_test(c, requirements_that_do_not_hold_are_listed);
    tcase_add_test(c, without_nvrtc_and_image_it_is_said);
    tcase_add_test(c, a_path_that_is_no_nvrtc_is_told);
    tcase_add_test(c, an_image_is_loaded_once_for_all_devices);
    tcase_add_loop_test(c, an_image_that_the_driver_refuses_leads_to_the_next, 0, (int)KR_COUNT(next_please));
    tcase_add_test(c, shipped_images_do_without_nvrtc);
    tcase_add_test(c, images_of_all_kinds_run);
    tcase_add_test(c, what_was_wrong_with_each_is_kept);
    tcase_add_test(c, newer_ptx_is_releveled);
    tcase_add_test(c, nothing_that_is_shipped_fits);
    tcase_add_test(c, a_variant_has_a_target_of_its_own);
    tcase_add_test(c, the_jit_is_forced_or_disabled);
    tcase_add_test(c, what_was_compiled_is_kept);
    tcase_set_timeout(c, 60);
    TCase *ops = tcase_create("ops"); /* that have an image */
    tcase_add_checked_fixture(ops, setup, teardown);
    tcase_add_loop_test(ops, an_op_does_what_its_reference_does, 0, (int)KR_COUNT(lengths));
    tcase_add_test(ops, buffers_off_the_alignment_get_another_variant);
    tcase_add_loop_test(ops, scratch_is_provided, 0, 2);
    tcase_add_test(ops, a_launcher_is_changed_between_runs);
    tcase_add_test(ops, configurations_follow_the_rules_and_the_overrides);
    tcase_add_test(ops, no_scratch_in_a_capture);
    tcase_add_loop_test(ops, a_busy_device_may_be_free_later, 0, 2);
    tcase_add_test(ops, a_failure_of_another_kind_is_told_at_once_and_may_pass);
    tcase_add_test(ops, a_variant_is_asked_for);
    tcase_add_test(ops, one_failure_leaves_the_others_alone);
    tcase_add_test(ops, a_group_rounds_its_sum_once);
    tcase_add_test(ops, a_group_looks_over_its_edges);
    tcase_add_loop_test(ops, any_driver_function_may_fail, 0, (int)KR_COUNT(functions));
    tcase_set_timeout(ops, 60);
    TCase *threads = tcase_create("threads"); /* for ThreadSanitizer: scripts/test */
    tcase_add_checked_fixture(threads, setup, teardown);
    tcase_set_timeout(threads, 60);
    tcase_add_test(threads, many_threads_make_it_once);
    tcase_add_loop_test(threads, a_group_does_what_the_reference_does, 0, (int)KR_COUNT(group_lengths));
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    if (there & OPS) {
        suite_add_tcase(suite, ops);
        suite_add_tcase(suite, threads);
    } else {
        puts("skipped: what runs an op, because no image is shipped and there is no NVRTC");
    }
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
