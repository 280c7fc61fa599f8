/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime on a driver that runs kernels: softcuda where it has been built, or the machine's own.
 *     test_real PATH      that libcuda ("-": the machine's); skipped where there is none
 * What is expected here is what an H200's driver answers. */
#include "common.h"

#include <pthread.h>
#include <unistd.h>

#include <kregistry/buffer.h>

static const char *path;

/* y[i] = a * x[i] + y[i]; a store to address 16; a wait for a word; a kernel with 16 KiB of its own and
 * dynamic shared memory. */
static const char ptx[] =
    ".version 7.5\n.target sm_75\n.address_size 64\n"
    ".visible .entry saxpy(.param .u64 n, .param .f32 a, .param .u64 x, .param .u64 y)\n{\n"
    ".reg .pred %p<2>;\n.reg .f32 %f<5>;\n.reg .b32 %r<5>;\n.reg .b64 %rd<9>;\n"
    "ld.param.u64 %rd1, [n];\nld.param.f32 %f1, [a];\nld.param.u64 %rd2, [x];\nld.param.u64 %rd3, [y];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r4, %r1, %r2, %r3;\n"
    "cvt.u64.u32 %rd4, %r4;\nsetp.ge.u64 %p1, %rd4, %rd1;\n@%p1 bra done;\n"
    "shl.b64 %rd5, %rd4, 2;\nadd.u64 %rd6, %rd2, %rd5;\nadd.u64 %rd7, %rd3, %rd5;\n"
    "ld.global.f32 %f2, [%rd6];\nld.global.f32 %f3, [%rd7];\nfma.rn.f32 %f4, %f1, %f2, %f3;\nst.global.f32 "
    "[%rd7], %f4;\n"
    "done:\nret;\n}\n"
    ".visible .entry wild()\n{\n.reg .b64 %rd<2>;\nmov.u64 %rd1, 16;\nst.global.u64 [%rd1], %rd1;\nret;\n}\n"
    ".visible .entry spin(.param .u64 flag)\n{\n.reg .pred %p<2>;\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"
    "ld.param.u64 %rd1, [flag];\nagain:\nld.volatile.global.u32 %r1, [%rd1];\nsetp.eq.u32 %p1, %r1, 0;\n"
    "@%p1 bra again;\nret;\n}\n"
    ".shared .align 4 .b8 tile[16384];\n"
    ".visible .entry tiled()\n{\n.reg .b32 %r<3>;\nmov.u32 %r1, tile;\nmov.u32 %r2, 7;\nst.shared.u32 [%r1], "
    "%r2;\nret;\n}\n";

static kr_runtime *runtime;
static kr_device *device;
static kr_module *module;

static void setup(void)
{
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = path};
    ck_ok(kr_runtime_create(&o, &runtime, &err));
    device = kr_runtime_device(runtime, 0);
    ck_ok(kr_module_load(device, ptx, strlen(ptx), "real.ptx", &module, &err));
}

static void teardown(void)
{
    CUcontext current = (CUcontext)1;
    kr_module_destroy(&module);
    ck_assert_int_eq(runtime->driver->cuCtxGetCurrent(&current), CUDA_SUCCESS);
    ck_assert_ptr_null(current);
    kr_runtime_destroy(&runtime);
}

START_TEST(saxpy)
{
    enum { N = 1000 };
    float x[N], y[N], got[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    kr_buffer *bx, *by;
    kr_kernel *kernel;
    kr_stream *stream;
    kr_event *start, *end;
    double ms = -1;
    ck_ok(kr_buffer_create(device, sizeof x, NULL, &bx, &err));
    ck_ok(kr_buffer_create(device, sizeof y, NULL, &by, &err));
    ck_ok(kr_stream_create(device, NULL, &stream, &err));
    ck_ok(kr_event_create(device, true, &start, &err));
    ck_ok(kr_event_create(device, true, &end, &err));
    ck_ok(kr_buffer_upload_async(bx, 0, x, sizeof x, stream, &err));
    ck_ok(kr_buffer_upload_async(by, 0, y, sizeof y, stream, &err));
    ck_ok(kr_module_kernel(module, "saxpy", &kernel, &err));
    ck_ok(kr_event_record(start, stream, &err));
    ck_ok(kr_kernel_launch(kernel, stream, &(kr_launch_config){{8}, {128}, 0},
                           KR_ARGS(KR_U64(N), KR_F32(1.5f), KR_BUF(bx), KR_BUF(by)), &err));
    ck_ok(kr_event_record(end, stream, &err));
    ck_ok(kr_buffer_download_async(by, 0, got, sizeof got, stream, &err));
    ck_ok(kr_stream_synchronize(stream, &err));
    ck_ok(kr_event_elapsed(start, end, &ms, &err));
    ck_assert_double_gt(ms, 0);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(got[i], 1.5f * (float)i + 1);
    bool done = false;
    ck_ok(kr_stream_query(stream, &done, &err));
    ck_assert(done);
    kr_device *last = kr_runtime_device(runtime, kr_runtime_n_devices(runtime) - 1);
    kr_buffer *far;
    ck_ok(kr_buffer_create(last, sizeof y, NULL, &far, &err));
    ck_ok(kr_buffer_copy(far, 0, by, 0, sizeof y, stream, &err));
    ck_ok(kr_stream_synchronize(stream, &err));
    memset(got, 0, sizeof got);
    ck_ok(kr_buffer_download(far, 0, got, sizeof got, &err));
    ck_assert_float_eq(got[N - 1], 1.5f * (N - 1) + 1);
    kr_buffer_destroy(&far);
    kr_event_destroy(&start);
    kr_event_destroy(&end);
    kr_stream_destroy(&stream);
    kr_buffer_destroy(&bx);
    kr_buffer_destroy(&by);
}
END_TEST

START_TEST(facts)
{
    if (path)
        ck_assert_str_eq(kr_runtime_driver(runtime).kind, strstr(path, "softcuda") ? "softcuda" : "nvidia");
    kr_kernel *kernel = NULL;
    size_t offset, bytes;
    ck_ok(kr_module_kernel(module, "saxpy", &kernel, &err));
    ck_assert_int_eq(kernel->n_params, 4);
    ck_ok(kr_kernel_param(kernel, 2, &offset, &bytes, &err));
    ck_assert(offset == 16 && bytes == 8);
    ck_ok(kr_module_kernel(module, "tiled", &kernel, &err));
    const kr_kernel_info *info = kr_kernel_get_info(kernel);
    ck_assert_int_eq(info->static_shared_bytes, 16384);
    ck_assert_int_eq(info->max_dynamic_shared_bytes, 49152 - 16384);
    ck_assert_int_eq(info->ptx_version, 75);
    const int most = kr_device_get_info(device)->shared_bytes_per_block_optin - 16384;
    const kr_launch_config c = {{1}, {32}, (unsigned)most};
    ck_ok(kr_kernel_launch(kernel, kr_device_default_stream(device), &c, (kr_args){0}, &err));
    ck_ok(kr_device_synchronize(device, &err));
    ck_assert_int_eq(kr_kernel_allow_shared(kernel, (size_t)most + 1, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_module_kernel(module, "saxpi", &kernel, &err), KR_NOT_FOUND);
    ck_contains(err.message, "saxpy");
    ck_contains(err.advice, "Did you mean \"saxpy\"?");
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        const char *image;
        kr_status status;
        int code;
        const char *message;
    } rows[] = {
        {".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\nfrob.u32 %r1;\n}\n",
         KR_COMPILE_FAILED, 218, "refuses the PTX"},
        {".version 9.9\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n",
         KR_NOT_ON_THIS_DEVICE, 222, "PTX 9.9 for sm_75; the driver takes"},
        {".version 8.7\n.target sm_120a\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n",
         KR_NOT_ON_THIS_DEVICE, 218, "does not run on device 0"},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        kr_module *m = NULL;
        ck_assert_int_eq(kr_module_load(device, rows[i].image, strlen(rows[i].image), "x", &m, &err),
                         rows[i].status);
        ck_assert_int_eq(err.code, rows[i].code);
        ck_contains(err.message, rows[i].message);
        if (i == 0)
            ck_contains(err.log, "line 6");
    }
    kr_buffer *buffer = NULL;
    ck_assert_int_eq(kr_buffer_create(device, (size_t)1 << 50, NULL, &buffer, &err), KR_OUT_OF_DEVICE_MEMORY);
    ck_contains(err.message, "1125899906842624 bytes asked for, ");
}
END_TEST

/* Machine code of ptxas -c for sm_90: k calls what another image has, plain nothing. */
START_TEST(a_kernel_that_calls_what_is_not_there)
{
    char *image;
    size_t bytes;
    kr_module *m = NULL;
    kr_kernel *kernel = NULL;
    if (kr_cc_compare(kr_device_get_info(device)->cc, (kr_cc){9, 0, 0}))
        return;
    ck_ok(kr__file_read(IMAGES "/caller.cubin", &image, &bytes, &err));
    ck_ok(kr_module_load(device, image, bytes, "caller", &m, &err));
    ck_ok(kr_module_kernel(m, "plain", &kernel, &err));
    ck_assert_int_eq(kr_module_kernel(m, "k", &kernel, &err), KR_NOT_FOUND);
    ck_contains(err.message, "the kernel \"k\" of caller calls what the image does not have");
    ck_contains(err.advice, "kr_link");
    kr_module_destroy(&m);
    free(image);
}
END_TEST

/* An image is what its bytes are, not where they lie: the next one in the same buffer is another. */
START_TEST(images_at_one_address)
{
    static const char *const names[] = {"one", "two"};
    char image[128];
    for (size_t i = 0; i < 200; i++) {
        kr_module *m = NULL;
        kr_kernel *kernel = NULL;
        const int bytes =
            snprintf(image, sizeof image,
                     ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry %s()\n{\nret;\n}\n",
                     names[i % 2]);
        ck_ok(kr_module_load(device, image, (size_t)bytes, "image", &m, &err));
        memset(image, 0, sizeof image);
        ck_ok(kr_module_kernel(m, names[i % 2], &kernel, &err));
        ck_assert_int_eq(kr_module_kernel(m, names[(i + 1) % 2], &kernel, &err), KR_NOT_FOUND);
        kr_module_destroy(&m);
    }
}
END_TEST

/* Own contexts on every device, with a foreign context current all the while. */
START_TEST(contexts)
{
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = path, .contexts = KR_CONTEXT_OWN};
    kr_runtime *own;
    void *primary, *context;
    CUcontext current;
    ck_ok(kr_device_cucontext(device, &primary, &err));
    ck_ok(kr_runtime_create(&o, &own, &err));
    ck_assert_int_eq(own->driver->cuCtxPushCurrent_v2(primary), CUDA_SUCCESS);
    for (size_t i = 0; i < kr_runtime_n_devices(own); i++) {
        kr_device *d = kr_runtime_device(own, i);
        kr_module *m;
        kr_kernel *kernel;
        kr_buffer *buffer;
        ck_ok(kr_module_load(d, ptx, sizeof ptx, "real.ptx", &m, &err));
        ck_ok(kr_module_kernel(m, "tiled", &kernel, &err));
        ck_ok(kr_kernel_launch(kernel, kr_device_default_stream(d), &(kr_launch_config){{4}, {64}, 0},
                               (kr_args){0}, &err));
        ck_ok(kr_buffer_create(d, 64, NULL, &buffer, &err));
        ck_ok(kr_device_synchronize(d, &err));
        ck_ok(kr_device_cucontext(d, &context, &err));
        ck_assert_ptr_ne(context, primary);
        for (size_t j = 0; j < kr_runtime_n_devices(own); j++) {
            int can;
            ck_ok(kr_device_can_access_peer(d, kr_runtime_device(own, j), &can, &err));
            if (can)
                ck_ok(kr_device_enable_peer(d, kr_runtime_device(own, j), &err));
            if (can)
                ck_ok(kr_device_enable_peer(d, kr_runtime_device(own, j), &err)); /* twice is once */
        }
        kr_buffer_destroy(&buffer);
        kr_module_destroy(&m);
        own->driver->cuCtxGetCurrent(&current);
        ck_assert_ptr_eq(current, primary);
    }
    kr_runtime_destroy(&own);
    runtime->driver->cuCtxPopCurrent_v2(&current);
    ck_assert_ptr_eq(current, primary);
}
END_TEST

/* A driver that loads lazily must have loaded the kernel before: a launch would wait for the running one. */
START_TEST(a_launch_beside_a_running_kernel)
{
    const unsigned set = 1;
    const float one = 1;
    float got = 0;
    kr_kernel *spin, *saxpy_;
    kr_stream *a, *b;
    kr_buffer *flag, *x, *y;
    bool done = true;
    ck_ok(kr_module_kernel(module, "spin", &spin, &err));
    ck_ok(kr_module_kernel(module, "saxpy", &saxpy_, &err));
    ck_ok(kr_stream_create(device, NULL, &a, &err));
    ck_ok(kr_stream_create(device, NULL, &b, &err));
    ck_ok(kr_buffer_create(device, sizeof set, NULL, &flag, &err));
    ck_ok(kr_buffer_create(device, sizeof one, NULL, &x, &err));
    ck_ok(kr_buffer_create(device, sizeof one, NULL, &y, &err));
    ck_ok(kr_buffer_upload(x, 0, &one, sizeof one, &err));
    ck_ok(kr_buffer_upload(y, 0, &one, sizeof one, &err));
    ck_ok(kr_buffer_set(flag, 0, 0, sizeof set, a, &err));
    ck_ok(kr_stream_synchronize(a, &err)); /* before the other stream sets it */
    ck_ok(kr_kernel_launch(spin, a, &(kr_launch_config){{1}, {1}, 0}, KR_ARGS(KR_BUF(flag)), &err));
    ck_ok(kr_kernel_launch(saxpy_, b, &(kr_launch_config){{1}, {32}, 0},
                           KR_ARGS(KR_U64(1), KR_F32(2), KR_BUF(x), KR_BUF(y)), &err));
    ck_ok(kr_buffer_download_async(y, 0, &got, sizeof got, b, &err));
    ck_ok(kr_stream_synchronize(b, &err));
    ck_assert_float_eq(got, 3);
    ck_ok(kr_stream_query(a, &done, &err));
    ck_assert(!done);
    ck_ok(kr_buffer_upload_async(flag, 0, &set, sizeof set, b, &err));
    ck_ok(kr_stream_synchronize(a, &err));
    kr_buffer_destroy(&flag);
    kr_buffer_destroy(&x);
    kr_buffer_destroy(&y);
    kr_stream_destroy(&a);
    kr_stream_destroy(&b);
}
END_TEST

/* ---- captures ---- */

#define GRAPH_CALLS(X)                                                                  \
    X(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))             \
    X(cuStreamEndCapture, (CUstream stream, CUgraph * graph))                           \
    X(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, uint64_t flags)) \
    X(cuGraphLaunch, (CUgraphExec exec, CUstream stream))                               \
    X(cuGraphExecDestroy, (CUgraphExec exec))                                           \
    X(cuGraphDestroy, (CUgraph graph))
static struct {
#define FIELD(name, params) CUresult(*name) params;
    GRAPH_CALLS(FIELD)
#undef FIELD
} graphs;

static void find_graph_calls(void)
{
    void *address;
#define FIND(name, params)                           \
    address = dlsym(runtime->driver->handle, #name); \
    ck_assert_msg(address != NULL, "no %s", #name);  \
    memcpy(&graphs.name, &address, sizeof graphs.name);
    GRAPH_CALLS(FIND)
#undef FIND
}

static kr_module *old_module; /* loaded before the capture began */

/* What a program may do beside a capture: no work in a stream. */
static void *make_and_destroy(void *unused)
{
    kr_error e;
    kr_buffer *buffer = NULL, *pitched = NULL;
    kr_module *m = NULL;
    kr_kernel *kernel;
    size_t pitch;
    kr_status status = kr_buffer_create(device, 4096, NULL, &buffer, &e);
    if (!status)
        status = kr_buffer_create_pitched(device, 100, 10, &pitched, &pitch, &e);
    if (!status)
        status = kr_module_load(device, ptx, sizeof ptx, "real.ptx", &m, &e);
    if (!status)
        status = kr_module_kernel(m, "saxpy", &kernel, &e);
    if (!status)
        status = kr_kernel_allow_shared(kernel, 50000, &e);
    kr_buffer_destroy(&buffer);
    kr_buffer_destroy(&pitched);
    kr_module_destroy(&m);
    return status ? strdup(e.message) : unused;
}

START_TEST(a_capture_goes_on)
{
    enum { N = 256 };
    float x[N], got[N];
    kr_buffer *buffer;
    kr_stream *stream;
    kr_kernel *kernel;
    pthread_t thread;
    void *failure;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    find_graph_calls();
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    ck_ok(kr_buffer_create(device, sizeof x, NULL, &buffer, &err));
    ck_ok(kr_buffer_upload(buffer, 0, x, sizeof x, &err));
    ck_ok(kr_stream_create(device, NULL, &stream, &err));
    ck_ok(kr_module_load(device, ptx, sizeof ptx, "old.ptx", &old_module, &err));
    void *context;
    CUcontext popped;
    ck_ok(kr_device_cucontext(device, &context, &err));
    runtime->driver->cuCtxPushCurrent_v2(context);
    ck_assert_int_eq(
        graphs.cuStreamBeginCapture_v2(kr_stream_custream(stream), CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    failure = make_and_destroy(NULL);
    ck_assert_msg(!failure, "%s", (char *)failure);
    pthread_create(&thread, NULL, make_and_destroy, NULL);
    pthread_join(thread, &failure);
    ck_assert_msg(!failure, "in another thread: %s", (char *)failure);
    kr_module_destroy(&old_module);
    ck_ok(kr_module_kernel(module, "saxpy", &kernel, &err)); /* for the first time */
    ck_ok(kr_kernel_launch(kernel, stream, &(kr_launch_config){{2}, {128}, 0},
                           KR_ARGS(KR_U64(N), KR_F32(1), KR_BUF(buffer), KR_BUF(buffer)), &err));
    ck_assert_int_eq(kr_stream_synchronize(stream, &err), KR_INVALID_ARGUMENT);
    ck_contains(err.message, "the stream is capturing");
    bool done;
    ck_assert_int_eq(kr_stream_query(stream, &done, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(graphs.cuStreamEndCapture(kr_stream_custream(stream), &graph), 0);
    ck_assert_int_eq(graphs.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(graphs.cuGraphLaunch(exec, kr_stream_custream(stream)), 0);
    ck_ok(kr_stream_synchronize(stream, &err));
    ck_ok(kr_buffer_download(buffer, 0, got, sizeof got, &err));
    for (int i = 0; i < N; i++)
        ck_assert_float_eq(got[i], 8 * x[i]);
    ck_assert_int_eq(graphs.cuGraphExecDestroy(exec), 0);
    ck_assert_int_eq(graphs.cuGraphDestroy(graph), 0);
    runtime->driver->cuCtxPopCurrent_v2(&popped);
    ck_assert_ptr_eq(popped, context);
    kr_stream_destroy(&stream);
    kr_buffer_destroy(&buffer);
}
END_TEST

START_TEST(a_fault)
{
    kr_kernel *kernel;
    ck_ok(kr_module_kernel(module, "wild", &kernel, &err));
    ck_ok(kr_kernel_launch(kernel, kr_device_default_stream(device), &(kr_launch_config){{1}, {1}, 0},
                           (kr_args){0}, &err));
    ck_assert_int_eq(kr_device_synchronize(device, &err), KR_PROCESS_LOST);
    ck_assert_int_eq(err.code, CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_contains(err.message, "wild");
    kr_buffer *buffer = NULL;
    ck_assert_int_eq(kr_buffer_create(device, 64, NULL, &buffer, &err), KR_PROCESS_LOST);
}
END_TEST

int main(int argc, char **argv)
{
    path = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
    if (path && access(path, R_OK) != 0) {
        printf("%s is not there: skipped\n", path);
        return 77;
    }
    Suite *suite = suite_create("real");
    TCase *tc = tcase_create("real");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, saxpy);
    tcase_add_test(tc, facts);
    tcase_add_test(tc, refusals);
    tcase_add_test(tc, a_kernel_that_calls_what_is_not_there);
    tcase_add_test(tc, images_at_one_address);
    tcase_add_test(tc, contexts);
    tcase_add_test(tc, a_launch_beside_a_running_kernel);
    tcase_add_test(tc, a_capture_goes_on);
    tcase_add_test(tc, a_fault);
    suite_add_tcase(suite, tc);
    return run(suite);
}
