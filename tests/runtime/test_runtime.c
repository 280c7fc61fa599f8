/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes, devices, contexts, buffers, streams and events on a driver that does as it is told. */
#include "common.h"

#include <kregistry/buffer.h>
#include <kregistry/version.h>

START_TEST(devices)
{
    fake *f = fake_of(FAKE);
    kr_runtime *runtime = create();
    ck_assert_uint_eq(kr_runtime_n_devices(runtime), 2);
    ck_assert_ptr_null(kr_runtime_device(runtime, 2));
    const kr_driver_info driver = kr_runtime_driver(runtime);
    ck_assert_str_eq(driver.path, FAKE);
    ck_assert_int_eq(driver.version, 13000);
    const kr_device_info *info = kr_device_get_info(kr_runtime_device(runtime, 1));
    ck_assert_str_eq(info->name, "Fake 1");
    ck_assert_str_eq(info->uuid, "GPU-a1a2a3a4-a5a6-a7a8-a9aa-abacadaeafb0");
    ck_assert_str_eq(info->pci, "0000:02:00.0");
    ck_assert_int_eq(info->ordinal, 1);
    ck_assert(info->cc.major == 9 && info->cc.minor == 0 && !info->cc.suffix);
    ck_assert_uint_eq(info->memory_bytes, (size_t)8 << 30);
    ck_assert_int_eq(info->multiprocessors, 132);
    ck_assert_int_eq(info->max_block[2], 64);
    ck_assert_int_eq(info->max_grid[0], 2147483647);
    ck_assert_int_eq(info->max_grid[1], 65535);
    ck_assert_int_eq(info->shared_bytes_per_block_optin, 232448);
    ck_assert_int_eq(info->reserved_shared_bytes_per_block, 1024);
    ck_assert_int_eq(info->max_blocks_per_multiprocessor, 32);
    ck_assert_int_eq(info->cooperative_launch, 1);
    ck_assert_int_eq(f->retained, 0); /* listing costs no context */
    kr_runtime_destroy(&runtime);
    ck_assert_ptr_null(runtime);
    kr_runtime_destroy(&runtime);
    kr_runtime_destroy(NULL);
}
END_TEST

START_TEST(an_empty_path_is_no_driver)
{
    kr_runtime_options o = {.struct_size = sizeof o, .driver = ""};
    kr_runtime *runtime = NULL;
    ck_assert_int_eq(kr_runtime_create(&o, &runtime, &err), KR_INVALID_ARGUMENT);
    ck_contains(err.message, "driver is an empty path");
    ck_assert_ptr_null(runtime);
}
END_TEST

START_TEST(a_context_that_is_gone_is_named)
{
    static const int answers[] = {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED};
    fake *f = fake_of(FAKE);
    kr_runtime *runtime = create();
    kr_device *device = kr_runtime_device(runtime, 0);
    ck_ok(kr_device_synchronize(device, &err));
    for (size_t i = 0; i < KR_COUNT(answers); i++)
        for (int call = 1; call <= 2; call++) { /* making it current; the call itself */
            f->fail_with = answers[i];
            f->calls = 0;
            f->fail_at = call + (call == 2);
            ck_assert_int_eq(kr_device_synchronize(device, &err), KR_INVALID_ARGUMENT);
            f->fail_at = 0;
            ck_contains(err.message, "the context that the library works in is gone");
            ck_contains(err.advice, "create it again");
            ck_assert_int_eq(err.code, answers[i]);
        }
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(the_default_stream_outlives_its_handle)
{
    kr_runtime *runtime = create();
    kr_device *device = kr_runtime_device(runtime, 0);
    kr_stream *stream = kr_device_default_stream(device);
    kr_stream_destroy(&stream);
    ck_assert_ptr_null(stream);
    ck_ok(kr_stream_synchronize(kr_device_default_stream(device), &err));
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(chosen_devices)
{
    kr_runtime_options o = {
        .struct_size = sizeof o, .driver = FAKE, .devices = (const int[]){1}, .n_devices = 1};
    kr_runtime *runtime = NULL;
    ck_ok(kr_runtime_create(&o, &runtime, &err));
    ck_assert_uint_eq(kr_runtime_n_devices(runtime), 1);
    ck_assert_int_eq(kr_device_get_info(kr_runtime_device(runtime, 0))->ordinal, 1);
    kr_runtime_destroy(&runtime);
    static const int wrong[] = {-1, 2, 999};
    for (size_t i = 0; i < KR_COUNT(wrong); i++) {
        char text[64];
        o.devices = &wrong[i];
        ck_assert_int_eq(kr_runtime_create(&o, &runtime, &err), KR_INVALID_ARGUMENT);
        snprintf(text, sizeof text, "device %d asked for; 2 present (0 to 1)", wrong[i]);
        ck_contains(err.message, text);
        ck_assert_ptr_null(runtime);
    }
    o.devices = (const int[]){0, 0};
    o.n_devices = 2;
    ck_assert_int_eq(kr_runtime_create(&o, &runtime, &err), KR_INVALID_ARGUMENT);
    ck_contains(err.message, "twice");
}
END_TEST

START_TEST(options)
{
    kr_runtime *runtime = NULL;
    struct {
        kr_runtime_options o;
        int future;
    } newer = {{.struct_size = sizeof newer, .driver = FAKE}, 0};
    ck_ok(kr_runtime_create(&newer.o, &runtime, &err)); /* a later struct whose new fields are unused */
    kr_runtime_destroy(&runtime);
    newer.future = 1;
    ck_assert_int_eq(kr_runtime_create(&newer.o, &runtime, &err), KR_INVALID_ARGUMENT);
    kr_runtime_options o = {.struct_size = offsetof(kr_runtime_options, contexts), .driver = FAKE};
    ck_ok(kr_runtime_create(&o, &runtime, &err)); /* an earlier one */
    kr_runtime_destroy(&runtime);
    o = (kr_runtime_options){.driver = FAKE};
    ck_assert_int_eq(kr_runtime_create(&o, &runtime, &err), KR_INVALID_ARGUMENT);
    ck_contains(err.message, "struct_size");
    o = (kr_runtime_options){.struct_size = sizeof o, .driver = FAKE, .contexts = (kr_context_mode)7};
    ck_assert_int_eq(kr_runtime_create(&o, &runtime, &err), KR_INVALID_ARGUMENT);
    o = (kr_runtime_options){.struct_size = sizeof o, .driver = FAKE, .n_devices = 1};
    ck_assert_int_eq(kr_runtime_create(&o, &runtime, &err), KR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(primary_contexts_are_shared_and_balanced)
{
    fake *f = fake_of(FAKE);
    kr_runtime *a = create(), *b = create();
    void *ca, *cb, *again;
    ck_ok(kr_device_cucontext(kr_runtime_device(a, 0), &ca, &err));
    ck_ok(kr_device_cucontext(kr_runtime_device(b, 0), &cb, &err));
    ck_ok(kr_device_cucontext(kr_runtime_device(b, 0), &again, &err));
    ck_assert_ptr_eq(ca, cb);
    ck_assert_ptr_eq(ca, again);
    ck_assert_int_eq(f->retained, 2);
    kr_runtime_destroy(&a);
    kr_runtime_destroy(&b);
    ck_assert_int_eq(f->retained, 0);
}
END_TEST

START_TEST(own_contexts)
{
    fake *f = fake_of(FAKE);
    const kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE, .contexts = KR_CONTEXT_OWN};
    kr_runtime *runtime;
    ck_ok(kr_runtime_create(&o, &runtime, &err));
    void *context, *other;
    CUcontext current = (CUcontext)1;
    ck_ok(kr_device_cucontext(kr_runtime_device(runtime, 0), &context, &err));
    ck_ok(kr_device_cucontext(kr_runtime_device(runtime, 1), &other, &err));
    ck_assert_ptr_ne(context, other);
    runtime->driver->cuCtxGetCurrent(&current);
    ck_assert_ptr_null(current);
    ck_assert_int_eq(f->own_contexts, 2);
    ck_assert_int_eq(f->retained, 0);
    kr_runtime_destroy(&runtime);
    ck_assert_int_eq(f->own_contexts, 0);
}
END_TEST

START_TEST(adopted_context)
{
    fake *f = fake_of(FAKE);
    kr__driver *driver;
    ck_ok(kr__driver_open(FAKE, NULL, &driver, &err));
    CUcontext mine, current;
    driver->cuCtxCreate_v2(&mine, 0, 1);
    driver->cuCtxPopCurrent_v2(&current);
    kr_runtime_options o = {.struct_size = sizeof o, .driver = FAKE, .context = mine};
    kr_runtime *runtime = NULL;
    ck_ok(kr_runtime_create(&o, &runtime, &err));
    ck_assert_uint_eq(kr_runtime_n_devices(runtime), 1);
    ck_assert_int_eq(kr_device_get_info(kr_runtime_device(runtime, 0))->ordinal, 1);
    void *context;
    ck_ok(kr_device_cucontext(kr_runtime_device(runtime, 0), &context, &err));
    ck_assert_ptr_eq(context, mine);
    kr_runtime_destroy(&runtime);
    ck_assert_int_eq(f->own_contexts, 1); /* still the caller's */
    o.contexts = KR_CONTEXT_OWN;
    ck_assert_int_eq(kr_runtime_create(&o, &runtime, &err), KR_INVALID_ARGUMENT);
    driver->cuCtxDestroy_v2(mine);
}
END_TEST

START_TEST(busy_device)
{
    fake *f = fake_of(FAKE);
    f->context_busy = CUDA_ERROR_DEVICE_UNAVAILABLE;
    kr_runtime *runtime = create();
    kr_buffer *buffer = NULL;
    ck_assert_int_eq(kr_buffer_create(kr_runtime_device(runtime, 0), 8, NULL, &buffer, &err),
                     KR_NOT_ON_THIS_DEVICE);
    ck_contains(err.message, "device 0 (Fake 0)");
    ck_contains(err.advice, "exclusive-process");
    f->context_busy = 0;
    ck_ok(
        kr_buffer_create(kr_runtime_device(runtime, 0), 8, NULL, &buffer, &err)); /* nothing was remembered */
    kr_buffer_destroy(&buffer);
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(buffers)
{
    fake *f = fake_of(FAKE);
    kr_runtime *runtime = create();
    kr_device *device = kr_runtime_device(runtime, 0), *other = kr_runtime_device(runtime, 1);
    kr_stream *stream = kr_device_default_stream(device);
    kr_buffer *a = NULL, *b = NULL, *empty = NULL, *wrapped = NULL;
    ck_ok(kr_buffer_create(device, 100, NULL, &a, &err));
    ck_ok(kr_buffer_create(other, 100, NULL, &b, &err));
    ck_ok(kr_buffer_create(device, 0, NULL, &empty, &err));
    ck_assert_uint_eq(kr_buffer_cudeviceptr(empty), 0);
    ck_assert_ptr_eq(kr_buffer_device(a), device);
    ck_assert_ptr_eq(kr_default_stream(a), stream);
    unsigned char in[100], out[100] = {0};
    for (int i = 0; i < 100; i++)
        in[i] = (unsigned char)i;
    ck_ok(kr_buffer_upload(a, 0, in, 100, &err));
    ck_ok(kr_buffer_set(a, 10, 0xee, 5, stream, &err));
    ck_ok(kr_buffer_copy(b, 50, a, 0, 50, stream, &err));
    ck_ok(kr_buffer_copy(b, 0, b, 50, 50, kr_device_default_stream(other), &err));
    ck_ok(kr_buffer_download(b, 0, out, 100, &err));
    memset(in + 10, 0xee, 5);
    ck_assert_mem_eq(out, in, 50);
    ck_assert_mem_eq(out + 50, in, 50);
    ck_ok(kr_buffer_upload_async(a, 99, in, 1, stream, &err));
    ck_ok(kr_buffer_download_async(a, 99, out, 1, stream, &err));
    ck_assert_int_eq(out[0], in[0]);
    ck_ok(kr_buffer_upload(empty, 0, NULL, 0, &err));
    const kr_buffer_options o = {.struct_size = sizeof o,
                                 .cudeviceptr = (void *)(uintptr_t)kr_buffer_cudeviceptr(a)};
    ck_ok(kr_buffer_create(device, 100, &o, &wrapped, &err));
    kr_buffer_destroy(&wrapped);
    ck_assert_int_eq(f->allocations, 2);
    kr_buffer_destroy(&a);
    kr_buffer_destroy(&b);
    kr_buffer_destroy(&empty);
    kr_buffer_destroy(&empty);
    kr_buffer_destroy(NULL);
    ck_assert_int_eq(f->allocations, 0);
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(ranges)
{
    fake *f = fake_of(FAKE);
    kr_runtime *runtime = create();
    kr_device *device = kr_runtime_device(runtime, 0);
    kr_stream *stream = kr_device_default_stream(device),
              *foreign = kr_device_default_stream(kr_runtime_device(runtime, 1));
    kr_buffer *a;
    char host[16];
    ck_ok(kr_buffer_create(device, 16, NULL, &a, &err));
    static const size_t wrong[][2] = {
        {0, 17}, {17, 0}, {16, 1}, {1, 16}, {SIZE_MAX, 1}, {1, SIZE_MAX}, {SIZE_MAX, SIZE_MAX}};
    f->calls = 0;
    for (size_t i = 0; i < KR_COUNT(wrong); i++) {
        const size_t at = wrong[i][0], n = wrong[i][1];
        char text[128];
        ck_assert_int_eq(kr_buffer_upload(a, at, host, n, &err), KR_INVALID_ARGUMENT);
        snprintf(text, sizeof text, "%zu bytes at offset %zu do not lie in a buffer of 16 bytes", n, at);
        ck_contains(err.message, text);
        ck_assert_int_eq(kr_buffer_download(a, at, host, n, &err), KR_INVALID_ARGUMENT);
        ck_assert_int_eq(kr_buffer_upload_async(a, at, host, n, stream, &err), KR_INVALID_ARGUMENT);
        ck_assert_int_eq(kr_buffer_download_async(a, at, host, n, stream, &err), KR_INVALID_ARGUMENT);
        ck_assert_int_eq(kr_buffer_set(a, at, 0, n, stream, &err), KR_INVALID_ARGUMENT);
        ck_assert_int_eq(kr_buffer_copy(a, at, a, 0, n, stream, &err), KR_INVALID_ARGUMENT);
        ck_assert_int_eq(kr_buffer_copy(a, 0, a, at, n, stream, &err), KR_INVALID_ARGUMENT);
    }
    ck_assert_int_eq(kr_buffer_upload(a, 0, NULL, 1, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_buffer_set(a, 0, 0, 1, foreign, &err), KR_INVALID_ARGUMENT);
    ck_contains(err.message, "the buffer is on device 0, the stream of device 1");
    ck_assert_int_eq(f->calls, 0); /* no driver was asked */
    kr_buffer_destroy(&a);
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(out_of_memory)
{
    fake *f = fake_of(FAKE);
    kr_runtime *runtime = create();
    kr_buffer *a = NULL;
    size_t pitch = 1;
    f->free_bytes = 1000;
    ck_assert_int_eq(kr_buffer_create(kr_runtime_device(runtime, 1), 1001, NULL, &a, &err),
                     KR_OUT_OF_DEVICE_MEMORY);
    ck_contains(err.message, "1001 bytes asked for, 1000 free of 8589934592");
    ck_assert_int_eq(err.device, 1);
    ck_assert_int_eq(err.code, CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_str_eq(err.code_name, "CUDA_ERROR_OUT_OF_MEMORY");
    ck_assert_int_eq(kr_buffer_create_pitched(kr_runtime_device(runtime, 1), 100, 10, &a, &pitch, &err),
                     KR_OUT_OF_DEVICE_MEMORY);
    ck_contains(err.message, "1000 bytes asked for");
    static const int others[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_INVALID_CONTEXT};
    for (size_t i = 0; i < KR_COUNT(others); i++) { /* only code 2 is about memory */
        f->calls = 0;
        f->fail_at = 4; /* get current, push, relax, alloc */
        f->fail_with = others[i];
        ck_assert_int_ne(kr_buffer_create(kr_runtime_device(runtime, 1), 10, NULL, &a, &err), KR_OK);
        ck_assert_str_eq(f->failed, "cuMemAlloc_v2");
        ck_assert_int_eq(err.code, others[i]);
        ck_assert_ptr_null(strstr(err.message, "free of"));
    }
    f->fail_at = 0;
    ck_assert_int_eq(kr_buffer_create_pitched(kr_runtime_device(runtime, 1), SIZE_MAX, 2, &a, &pitch, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert(!a && pitch == 1);
    f->free_bytes = 1 << 20;
    ck_ok(kr_buffer_create_pitched(kr_runtime_device(runtime, 1), 100, 10, &a, &pitch, &err));
    ck_assert_uint_eq(pitch, 512);
    ck_assert_uint_eq(kr_buffer_bytes(a), 5120);
    size_t free_bytes, total;
    ck_ok(kr_device_memory(kr_runtime_device(runtime, 0), &free_bytes, &total, &err));
    ck_assert_uint_eq(free_bytes, 1 << 20);
    kr_buffer_destroy(&a);
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(streams_and_events)
{
    fake *f = fake_of(FAKE);
    kr_runtime *runtime = create();
    kr_device *device = kr_runtime_device(runtime, 0), *other = kr_runtime_device(runtime, 1);
    kr_stream *stream, *wrapped, *standing = kr_device_default_stream(device);
    kr_event *start, *end, *untimed, *foreign;
    ck_ok(kr_stream_create(device, NULL, &stream, &err));
    ck_ok(kr_stream_wrap(device, kr_stream_custream(stream), &wrapped, &err));
    ck_assert_ptr_eq(kr_stream_custream(stream), kr_stream_custream(wrapped));
    ck_assert_ptr_eq(kr_stream_device(stream), device);
    ck_ok(kr_event_create(device, true, &start, &err));
    ck_ok(kr_event_create(device, true, &end, &err));
    ck_ok(kr_event_create(device, false, &untimed, &err));
    ck_ok(kr_event_create(other, true, &foreign, &err));
    ck_ok(kr_event_record(start, stream, &err));
    ck_ok(kr_event_record(end, stream, &err));
    ck_ok(kr_event_synchronize(end, &err));
    ck_ok(kr_stream_wait(kr_device_default_stream(other), end, &err));
    double ms = 0;
    ck_ok(kr_event_elapsed(start, end, &ms, &err));
    ck_assert_double_eq(ms, 1.5);
    ck_assert_int_eq(kr_event_elapsed(start, untimed, &ms, &err), KR_INVALID_ARGUMENT);
    ck_contains(err.message, "end event was created without timing");
    ck_assert_int_eq(kr_event_elapsed(start, foreign, &ms, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_event_record(foreign, stream, &err), KR_INVALID_ARGUMENT);
    bool done = true;
    ck_ok(kr_stream_query(stream, &done, &err));
    ck_assert(!done);
    ck_ok(kr_stream_synchronize(stream, &err));
    ck_ok(kr_device_synchronize(device, &err));
    kr_stream_destroy(&wrapped);
    ck_assert_int_eq(f->streams, 1);
    kr_stream_destroy(&stream);
    kr_stream_destroy(&standing); /* the device's: left alone */
    kr_event_destroy(&start);
    kr_event_destroy(&end);
    kr_event_destroy(&untimed);
    kr_event_destroy(&foreign);
    ck_assert_int_eq(f->streams, 0);
    ck_assert_int_eq(f->events, 0);
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(peers)
{
    kr_runtime *runtime = create();
    kr_device *a = kr_runtime_device(runtime, 0), *b = kr_runtime_device(runtime, 1);
    int can = -1;
    ck_ok(kr_device_can_access_peer(a, b, &can, &err));
    ck_assert_int_eq(can, 1);
    ck_ok(kr_device_can_access_peer(b, a, &can, &err));
    ck_assert_int_eq(can, 0);
    ck_ok(kr_device_can_access_peer(a, a, &can, &err));
    ck_assert_int_eq(can, 1);
    ck_ok(kr_device_enable_peer(a, b, &err));
    ck_ok(kr_device_enable_peer(a, b, &err));
    ck_ok(kr_device_enable_peer(a, a, &err));
    ck_assert_int_eq(kr_device_enable_peer(b, a, &err), KR_NOT_ON_THIS_DEVICE);
    ck_contains(err.message,
                "the memory of device 0 (0000:01:00.0) cannot be reached from device 1 (0000:02:00.0)");
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(version)
{
    ck_assert_str_eq(kr_version(), KR_VERSION);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runtime");
    TCase *tc = tcase_create("runtime");
    tcase_add_test(tc, devices);
    tcase_add_test(tc, an_empty_path_is_no_driver);
    tcase_add_test(tc, a_context_that_is_gone_is_named);
    tcase_add_test(tc, the_default_stream_outlives_its_handle);
    tcase_add_test(tc, chosen_devices);
    tcase_add_test(tc, options);
    tcase_add_test(tc, primary_contexts_are_shared_and_balanced);
    tcase_add_test(tc, own_contexts);
    tcase_add_test(tc, adopted_context);
    tcase_add_test(tc, busy_device);
    tcase_add_test(tc, buffers);
    tcase_add_test(tc, ranges);
    tcase_add_test(tc, out_of_memory);
    tcase_add_test(tc, streams_and_events);
    tcase_add_test(tc, peers);
    tcase_add_test(tc, version);
    suite_add_tcase(suite, tc);
    return run(suite);
}
