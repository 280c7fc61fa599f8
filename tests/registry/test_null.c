/* SPDX-License-Identifier: Apache-2.0 */

/* The rule for NULL (kregistry/error.h), over the whole public API: each function with each pointer NULL that
 * its header does not allow to be. What else it is given is not an object at all, so the refusal comes first.
 */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include <kregistry/kregistry.h>

static _Alignas(16) char nothing[64 << 10];
static kr_error err;

/* "kr_buffer_create: device is NULL" */
static void refused(const char *argument, const char *call, kr_status status)
{
    char message[256];
    snprintf(message, sizeof message, "%.*s: %s is NULL", (int)strcspn(call, "("), call, argument);
    ck_assert_msg(status == KR_INVALID_ARGUMENT, "%s", call);
    ck_assert_str_eq(err.message, message);
    memset(&err, 0, sizeof err);
}

#define ROW(argument, call) refused(#argument, #call, call)

START_TEST(null_is_refused_by_name)
{
    void *const it = nothing;
    ROW(device, kr_buffer_create(NULL, 1, NULL, it, &err));
    ROW(ret_buffer, kr_buffer_create(it, 1, NULL, NULL, &err));
    ROW(device, kr_buffer_create_pitched(NULL, 1, 1, it, it, &err));
    ROW(ret_buffer, kr_buffer_create_pitched(it, 1, 1, NULL, it, &err));
    ROW(ret_pitch_bytes, kr_buffer_create_pitched(it, 1, 1, it, NULL, &err));
    ROW(buffer, kr_buffer_upload(NULL, 1, it, 1, &err));
    ROW(buffer, kr_buffer_download(NULL, 1, it, 1, &err));
    ROW(buffer, kr_buffer_upload_async(NULL, 1, it, 1, it, &err));
    ROW(stream, kr_buffer_upload_async(it, 1, it, 1, NULL, &err));
    ROW(buffer, kr_buffer_download_async(NULL, 1, it, 1, it, &err));
    ROW(stream, kr_buffer_download_async(it, 1, it, 1, NULL, &err));
    ROW(to, kr_buffer_copy(NULL, 1, it, 1, 1, it, &err));
    ROW(from, kr_buffer_copy(it, 1, NULL, 1, 1, it, &err));
    ROW(stream, kr_buffer_copy(it, 1, it, 1, 1, NULL, &err));
    ROW(buffer, kr_buffer_set(NULL, 1, 1, 1, it, &err));
    ROW(stream, kr_buffer_set(it, 1, 1, 1, NULL, &err));
    ROW(text, kr_cc_parse(NULL, it, &err));
    ROW(ret_cc, kr_cc_parse(it, NULL, &err));
    ROW(device, kr_device_cucontext(NULL, it, &err));
    ROW(ret_context, kr_device_cucontext(it, NULL, &err));
    ROW(device, kr_device_memory(NULL, it, it, &err));
    ROW(ret_free_bytes, kr_device_memory(it, NULL, it, &err));
    ROW(ret_total_bytes, kr_device_memory(it, it, NULL, &err));
    ROW(device, kr_device_synchronize(NULL, &err));
    ROW(device, kr_device_can_access_peer(NULL, it, it, &err));
    ROW(peer, kr_device_can_access_peer(it, NULL, it, &err));
    ROW(ret_can, kr_device_can_access_peer(it, it, NULL, &err));
    ROW(device, kr_device_enable_peer(NULL, it, &err));
    ROW(peer, kr_device_enable_peer(it, NULL, &err));
    ROW(image, kr_image_kind_of(NULL, 1, it, &err));
    ROW(ret_kind, kr_image_kind_of(it, 1, NULL, &err));
    ROW(kernel, kr_kernel_param(NULL, 1, it, it, &err));
    ROW(ret_offset_bytes, kr_kernel_param(it, 1, NULL, it, &err));
    ROW(ret_bytes, kr_kernel_param(it, 1, it, NULL, &err));
    ROW(kernel, kr_kernel_occupancy(NULL, 1, 1, it, &err));
    ROW(ret_blocks, kr_kernel_occupancy(it, 1, 1, NULL, &err));
    ROW(kernel, kr_kernel_suggest(NULL, 1, 1, it, it, &err));
    ROW(ret_block_threads, kr_kernel_suggest(it, 1, 1, NULL, it, &err));
    ROW(ret_min_grid, kr_kernel_suggest(it, 1, 1, it, NULL, &err));
    ROW(kernel, kr_kernel_allow_shared(NULL, 1, &err));
    ROW(kernel, kr_kernel_launch(NULL, it, it, (kr_args){0}, &err));
    ROW(stream, kr_kernel_launch(it, NULL, it, (kr_args){0}, &err));
    ROW(config, kr_kernel_launch(it, it, NULL, (kr_args){0}, &err));
    ROW(ret_runtime, kr_runtime_create(NULL, NULL, &err));
    ROW(device, kr_stream_create(NULL, NULL, it, &err));
    ROW(ret_stream, kr_stream_create(it, NULL, NULL, &err));
    ROW(device, kr_stream_wrap(NULL, it, it, &err));
    ROW(ret_stream, kr_stream_wrap(it, it, NULL, &err));
    ROW(stream, kr_stream_synchronize(NULL, &err));
    ROW(stream, kr_stream_query(NULL, it, &err));
    ROW(ret_done, kr_stream_query(it, NULL, &err));
    ROW(stream, kr_stream_wait(NULL, it, &err));
    ROW(event, kr_stream_wait(it, NULL, &err));
    ROW(device, kr_event_create(NULL, 1, it, &err));
    ROW(ret_event, kr_event_create(it, 1, NULL, &err));
    ROW(event, kr_event_record(NULL, it, &err));
    ROW(stream, kr_event_record(it, NULL, &err));
    ROW(event, kr_event_synchronize(NULL, &err));
    ROW(start, kr_event_elapsed(NULL, it, it, &err));
    ROW(end, kr_event_elapsed(it, NULL, it, &err));
    ROW(ret_ms, kr_event_elapsed(it, it, NULL, &err));
    ROW(ret_nvrtc, kr_nvrtc_open(it, NULL, &err));
    ROW(ret_nvrtc, kr_nvrtc_open_for(12040, it, NULL, &err));
    ROW(nvrtc, kr_compile(NULL, it, it, (kr_cc){9, 0, 0}, NULL, it, &err));
    ROW(source, kr_compile(it, it, NULL, (kr_cc){9, 0, 0}, NULL, it, &err));
    ROW(ret_compiled, kr_compile(it, it, it, (kr_cc){9, 0, 0}, NULL, NULL, &err));
    ROW(runtime, kr_group_create(NULL, NULL, it, &err));
    ROW(ret_group, kr_group_create(it, NULL, NULL, &err));
    ROW(group, kr_group_run(NULL, it, it, it, 1, it, &err));
    ROW(registry, kr_group_run(it, NULL, it, it, 1, it, &err));
    ROW(full_name, kr_group_run(it, it, NULL, it, 1, it, &err));
    ROW(op, kr_op_arg_elements(NULL, 1, it, it, &err));
    ROW(sizes, kr_op_arg_elements(it, 1, NULL, it, &err));
    ROW(ret_elements, kr_op_arg_elements(it, 1, it, NULL, &err));
    ROW(op, kr_op_arg_minimum(NULL, 1, it, it, &err));
    ROW(sizes, kr_op_arg_minimum(it, 1, NULL, it, &err));
    ROW(ret_minimum, kr_op_arg_minimum(it, 1, it, NULL, &err));
    ROW(op, kr_op_cost(NULL, 1, it, it, it, &err));
    ROW(sizes, kr_op_cost(it, 1, NULL, it, it, &err));
    ROW(ret_bytes, kr_op_cost(it, 1, it, NULL, it, &err));
    ROW(ret_flops, kr_op_cost(it, 1, it, it, NULL, &err));
    ROW(ret_registry, kr_registry_create(it, NULL, NULL, &err));
    ROW(registry, kr_registry_add_source(NULL, it, it, 1, &err));
    ROW(file, kr_registry_add_source(it, NULL, it, 1, &err));
    ROW(text, kr_registry_add_source(it, it, NULL, 1, &err));
    ROW(registry, kr_registry_add_directory(NULL, it, &err));
    ROW(path, kr_registry_add_directory(it, NULL, &err));
    ROW(registry, kr_registry_add_pack(NULL, it, 1, &err));
    ROW(pack, kr_registry_add_pack(it, NULL, 1, &err));
    ROW(registry, kr_registry_add_pack_file(NULL, it, &err));
    ROW(path, kr_registry_add_pack_file(it, NULL, &err));
    ROW(path, kr_pack_open(NULL, it, &err));
    ROW(ret_pack, kr_pack_open(it, NULL, &err));
    ROW(data, kr_pack_open_memory(NULL, 1, it, &err));
    ROW(ret_pack, kr_pack_open_memory(it, 1, NULL, &err));
    ROW(pack, kr_pack_get_image(NULL, 0, it, &err));
    ROW(ret_image, kr_pack_get_image(it, 0, NULL, &err));
    ROW(registry, kr_pack_build(NULL, NULL, NULL, it, &err));
    ROW(ret_pack, kr_pack_build(it, NULL, NULL, NULL, &err));
    ROW(options->cubins,
        kr_pack_build(it, NULL, &(kr_pack_options){sizeof(kr_pack_options), .n_cubins = 1}, it, &err));
    ROW(options->ptx,
        kr_pack_build(it, NULL, &(kr_pack_options){sizeof(kr_pack_options), .n_ptx = 1}, it, &err));
    ROW(registry, kr_registry_find(NULL, it, it, it, &err));
    ROW(full_name, kr_registry_find(it, NULL, it, it, &err));
    ROW(ret_op, kr_registry_find(it, it, NULL, it, &err));
    ROW(registry, kr_registry_machine(NULL, it, it, &err));
    ROW(device, kr_registry_machine(it, NULL, it, &err));
    ROW(ret_machine, kr_registry_machine(it, it, NULL, &err));
    ROW(registry, kr_registry_explain(NULL, it, it, it, it, &err));
    ROW(full_name, kr_registry_explain(it, NULL, it, it, it, &err));
    ROW(machine, kr_registry_explain(it, it, NULL, it, it, &err));
    ROW(ret_explanation, kr_registry_explain(it, it, it, it, NULL, &err));
    ROW(registry, kr_registry_resolve(NULL, it, it, it, NULL, it, &err));
    ROW(full_name, kr_registry_resolve(it, NULL, it, it, NULL, it, &err));
    ROW(device, kr_registry_resolve(it, it, NULL, it, NULL, it, &err));
    ROW(ret_resolution, kr_registry_resolve(it, it, it, it, NULL, NULL, &err));
    ROW(registry, kr_launch(NULL, it, it, (kr_args){0}, NULL, &err));
    ROW(stream, kr_launch(it, NULL, it, (kr_args){0}, NULL, &err));
    ROW(full_name, kr_launch(it, it, NULL, (kr_args){0}, NULL, &err));
    ROW(registry, kr_launcher_create(NULL, it, it, (kr_args){0}, NULL, it, &err));
    ROW(stream, kr_launcher_create(it, NULL, it, (kr_args){0}, NULL, it, &err));
    ROW(full_name, kr_launcher_create(it, it, NULL, (kr_args){0}, NULL, it, &err));
    ROW(ret_launcher, kr_launcher_create(it, it, it, (kr_args){0}, NULL, NULL, &err));
    ROW(launcher, kr_launcher_set(NULL, 1, KR_U64(1), &err));
    ROW(launcher, kr_launcher_run(NULL, &err));
    ROW(device, kr_module_load(NULL, it, 1, it, it, &err));
    ROW(image, kr_module_load(it, NULL, 1, it, it, &err));
    ROW(ret_module, kr_module_load(it, it, 1, it, NULL, &err));
    ROW(module, kr_module_kernel(NULL, it, it, &err));
    ROW(name, kr_module_kernel(it, NULL, it, &err));
    ROW(ret_kernel, kr_module_kernel(it, it, NULL, &err));
    ROW(module, kr_module_global(NULL, it, it, it, &err));
    ROW(name, kr_module_global(it, NULL, it, it, &err));
    ROW(ret_cudeviceptr, kr_module_global(it, it, NULL, it, &err));
    ROW(ret_bytes, kr_module_global(it, it, it, NULL, &err));
    ROW(args, kr_group_run(it, it, it, NULL, 1, NULL, &err));
    ROW(machine->nvrtc_archs, kr_registry_explain(it, it, &(kr_machine){.n_nvrtc_archs = 1}, NULL, it, &err));
    ROW(registry, kr_registry_prepare(NULL, it, NULL, &err));
    ROW(glob, kr_registry_prepare(it, NULL, NULL, &err));
}
END_TEST

START_TEST(the_error_itself_may_be_null)
{
    ck_assert_int_eq(kr_device_synchronize(NULL, NULL), KR_INVALID_ARGUMENT);
}
END_TEST

/* Functions that cannot fail answer NULL with nothing. */
START_TEST(questions_to_nothing_are_answered_with_nothing)
{
    char text[KR_CC_TEXT_BYTES];
    ck_assert_ptr_null(kr_buffer_device(NULL));
    ck_assert_uint_eq(kr_buffer_bytes(NULL), 0);
    ck_assert_uint_eq(kr_buffer_cudeviceptr(NULL), 0);
    ck_assert_ptr_null(kr_default_stream(NULL));
    ck_assert_ptr_null(kr_cc_format((kr_cc){9, 0, 0}, NULL));
    ck_assert_str_eq(kr_cc_format((kr_cc){9, 0, 0}, text), "9.0");
    ck_assert_ptr_null(kr_nvrtc_get_info(NULL).path);
    ck_assert_uint_eq(kr_group_n_devices(NULL), 0);
    ck_assert_ptr_null(kr_group_device(NULL, 0));
    ck_assert_ptr_null(kr_kernel_get_info(NULL));
    ck_assert_ptr_null(kr_kernel_device(NULL));
    ck_assert_ptr_null(kr_kernel_cufunction(NULL));
    ck_assert_ptr_null((void *)kr_op_reference(NULL, KR_TYPE_F32));
    ck_assert_int_eq(kr_op_arg_type(NULL, 0, KR_TYPE_F32), KR_TYPE_F32);
    ck_assert_uint_eq(kr_registry_n_ops(NULL), 0);
    ck_assert_ptr_null(kr_registry_op(NULL, 0));
    ck_assert_uint_eq(kr_registry_shipped(NULL, NULL, 0, NULL, 0), 0);
    ck_assert(!kr_is_pack(NULL, 0));
    ck_assert_uint_eq(kr_pack_get_info(NULL).n_ops, 0);
    ck_assert_ptr_null(kr_pack_op(NULL, 0));
    ck_assert(!kr_pack_has_source(NULL, NULL));
    ck_assert_ptr_null(kr_runtime_driver(NULL).path);
    ck_assert_uint_eq(kr_runtime_n_devices(NULL), 0);
    ck_assert_ptr_null(kr_runtime_device(NULL, 0));
    ck_assert_ptr_null(kr_device_get_info(NULL));
    ck_assert_ptr_null(kr_device_default_stream(NULL));
    ck_assert_ptr_null(kr_stream_device(NULL));
    ck_assert_ptr_null(kr_stream_custream(NULL));
    ck_assert_int_eq(kr_error_print(NULL, stderr), 1);
    ck_assert_int_eq(kr_error_print(&err, NULL), 1);
}
END_TEST

START_TEST(nothing_is_destroyed_without_complaint)
{
    kr_buffer_destroy(NULL);
    kr_compiled_destroy(NULL);
    kr_event_destroy(NULL);
    kr_group_destroy(NULL);
    kr_launcher_destroy(NULL);
    kr_module_destroy(NULL);
    kr_nvrtc_close(NULL);
    kr_pack_close(NULL);
    kr_registry_destroy(NULL);
    kr_runtime_destroy(NULL);
    kr_stream_destroy(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("NULL");
    TCase *c = tcase_create("null");
    tcase_add_test(c, null_is_refused_by_name);
    tcase_add_test(c, the_error_itself_may_be_null);
    tcase_add_test(c, questions_to_nothing_are_answered_with_nothing);
    tcase_add_test(c, nothing_is_destroyed_without_complaint);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
