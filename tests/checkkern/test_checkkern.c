/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Is checkkern to be trusted? Every kernel under broken/ has one mistake; each must be caught, as what it is.
 * The shipped ops must pass. Runs on the driver that KREGISTRY_TEST_DRIVER names, with an NVRTC.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "registry/pack.h" /* the broken ops are in this program as the library's are in it */
#include "tools/checkkern.h"

static const struct {
    const char *file;
    const char *what;
} mistakes[] = {
    {"dirty_scratch.cu", "not repeatable"},
    {"drops_nan.cu", "value"},
    {"drops_sign.cu", "value"},
    {"index32.cu", "value"},
    {"misaligned.cu", "fault"},
    {"no_barrier.cu", "value"},
    {"no_bounds.cu", "red zone"},
    {"serial_sum.cu", "value"},
    {"short_tail.cu", "value"},
    {"spoils_input.cu", "input changed"},
    {"transposed.cu", "value"},
    {"uninitialised.cu", "value"},
    {"unwritten.cu", "value"},
};
enum { N_MISTAKES = sizeof mistakes / sizeof *mistakes };

static kr_runtime *runtime;
static kr_registry *registry;

static void ok(kr_status status, const kr_error *err)
{
    if (status)
        kr_error_print(err, stderr);
    ck_assert_int_eq(status, KR_OK);
}

/* Each test is a process of its own: a fault ends CUDA for that one. */
static void open_registry(bool no_builtin_ops)
{
    kr_error err;
    kr_runtime_options to = {.struct_size = sizeof to, .driver = getenv("KREGISTRY_TEST_DRIVER")};
    kr_registry_options with = {.struct_size = sizeof with, .no_builtin_ops = no_builtin_ops};
    ok(kr_runtime_create(&to, &runtime, &err), &err);
    ok(kr_registry_create(runtime, &with, &registry, &err), &err);
}

static void close_registry(void)
{
    kr_registry_destroy(&registry);
    kr_runtime_destroy(&runtime);
}

/* ---- the walk ---- */

typedef struct story {
    size_t checks;
    size_t failed;
    const char *first; /* what went wrong first */
} story;

static bool visit(void *user, const ck_case *one)
{
    story *s = user;
    char shape[128];
    kr_error err;
    ck_result result;
    s->checks++;
    kr_status status = ck_check(one, &result, &err);
    const char *what = status == KR_PROCESS_LOST ? "fault"
                       : status                  ? err.message
                       : result.ok               ? NULL
                                                 : result.what;
    if (!what)
        return true;
    if (!s->first) {
        s->first = what;
        fprintf(stderr, "%s %s, shape %s, class %s, shift %zu: %s", one->op->name, one->variant,
                ck_shape_text(one->op, one->sizes, shape, sizeof shape), ck_class_name(one->class),
                one->shift_bytes, what);
        if (!status)
            fprintf(stderr, " %s[%lld]: expected %s, got %s", result.arg, (long long)result.index,
                    result.expected, result.got);
        else
            fprintf(stderr, ": %s", err.message);
        fprintf(stderr, "\n");
    }
    s->failed++;
    return status != KR_PROCESS_LOST;
}

static story walk(const kr_op *op, kr_type type, kr_reference_fn reference)
{
    story s = {0};
    kr_error err;
    kr_device *device = kr_runtime_device(runtime, 0);
    ck_walk_options quick = {.quick = true, .reference = reference, .seed = 1};
    /* the largest edge shape too, where the mistake shows late */
    ck_walk_options whole = {.reference = reference, .seed = 1};
    ok(ck_walk(registry, &device, 1, op, type, reference ? &whole : &quick, visit, &s, &err), &err);
    ck_assert_uint_gt(s.checks, 0);
    return s;
}

/* ---- broken kernels ---- */

START_TEST(caught)
{
    kr_error err;
    const char *file = mistakes[_i].file;
    size_t at = 0;
    open_registry(true);
    ok(kr_registry_add_pack(registry, kr__builtin_pack, kr__builtin_pack_bytes, &err), &err);
    while (at < kr_registry_n_ops(registry) && strcmp(kr_registry_op(registry, at)->file, file) != 0)
        at++;
    ck_assert_uint_lt(at, kr_registry_n_ops(registry));
    story s = walk(kr_registry_op(registry, at), KR_TYPE_F32, kr__builtin_references[at][0]);
    ck_assert_msg(s.failed > 0, "%s passed %zu checks", file, s.checks);
    ck_assert_str_eq(s.first, mistakes[_i].what);
    if (strcmp(s.first, "fault") != 0)
        close_registry();
}
END_TEST

START_TEST(every_broken_kernel_is_listed)
{
    kr_error err;
    kr_pack *pack;
    ok(kr_pack_open_memory(kr__builtin_pack, kr__builtin_pack_bytes, &pack, &err), &err);
    ck_assert_uint_eq(kr_pack_get_info(pack).n_ops, N_MISTAKES);
    kr_pack_close(&pack);
}
END_TEST

/* ---- healthy kernels ---- */

enum { MAX_OPS = 32 };

START_TEST(healthy)
{
    open_registry(false);
    const kr_op *op = kr_registry_op(registry, (size_t)_i);
    for (size_t t = 0; op && t < (op->n_types ? op->n_types : 1); t++) {
        story s = walk(op, op->types[t], NULL);
        ck_assert_msg(s.failed == 0, "%s failed %zu of %zu checks", op->name, s.failed, s.checks);
    }
    ck_assert_ptr_null(kr_registry_op(registry, MAX_OPS));
    close_registry();
}
END_TEST

/* ---- sizes at the ends ---- */

/* Launches with empty buffers, whose address is 0, given as buffers and as addresses. What an op says of
 * nothing (a sum of 0, untouched bins) is the reference's. */
static void run_on_nothing(const kr_op *op, kr_type type, const char *variant, bool as_address)
{
    ck_problem p;
    ck_result result = {.ok = true};
    uint64_t sizes[KR_MAX_OP_ARGS] = {0};
    kr_buffer *buffers[KR_MAX_OP_ARGS] = {0};
    kr_arg args[KR_MAX_OP_ARGS];
    size_t n = 0;
    char name[64];
    kr_error err;
    kr_device *device = kr_runtime_device(runtime, 0);
    kr_launch_options options = {.struct_size = sizeof options, .variant = variant};
    ok(ck_problem_init(&p, op, type, NULL, sizes, CK_ORDINARY, 1, &err), &err);
    for (size_t i = 0; i < op->n_args; i++) {
        if (op->args[i].role == KR_ROLE_WORK)
            continue;
        if (!op->args[i].shape) {
            args[n++] = ck_scalar(kr_op_arg_type(op, i, type), p.given[i]);
            continue;
        }
        ok(kr_buffer_create(device, p.bytes[i], NULL, &buffers[i], &err), &err);
        ok(kr_buffer_upload(buffers[i], 0, p.given[i], p.bytes[i], &err), &err);
        args[n++] = as_address ? KR_PTR(kr_buffer_cudeviceptr(buffers[i])) : KR_BUF(buffers[i]);
    }
    ok(kr_launch(registry, kr_device_default_stream(device), ck_full_name(op, type, name, sizeof name),
                 (kr_args){args, n}, &options, &err),
       &err);
    for (size_t i = 0; i < op->n_args; i++) {
        if (!buffers[i])
            continue;
        ok(kr_buffer_download(buffers[i], 0, p.given[i], p.bytes[i], &err), &err);
        ck_compare(&p, i, p.given[i], &result);
        kr_buffer_destroy(&buffers[i]);
    }
    ck_assert_msg(result.ok, "%s %s: %s[%lld] is %s", name, variant, result.arg, (long long)result.index,
                  result.got);
    ck_problem_finish(&p);
}

START_TEST(nothing_is_a_size)
{
    open_registry(false);
    const kr_op *op = kr_registry_op(registry, (size_t)_i);
    for (size_t t = 0; op && t < (op->n_types ? op->n_types : 1); t++)
        for (size_t v = 0; v < 2 * op->n_variants; v++)
            run_on_nothing(op, op->types[t], op->variants[v / 2].name, v % 2);
    close_registry();
}
END_TEST

/* Rows further apart than 32 bits can count: little work, so a CPU can do it. The rest of such sizes:
 * test_large.c. */
START_TEST(rows_past_4_gib)
{
    enum { WIDTH = 8, HEIGHT = 3 };
    const uint64_t pitch = (UINT64_C(1) << 31) + 5;
    kr_error err;
    kr_buffer *src = NULL, *dst = NULL;
    open_registry(false);
    kr_device *device = kr_runtime_device(runtime, 0);
    ok(kr_buffer_create(device, HEIGHT * pitch, NULL, &src, &err), &err);
    ok(kr_buffer_create(device, HEIGHT * pitch, NULL, &dst, &err), &err);
    for (uint64_t y = 0; y < HEIGHT; y++) {
        uint8_t rgb[3 * WIDTH];
        memset(rgb, 50 + (int)y, sizeof rgb);
        ok(kr_buffer_upload(src, y * pitch, rgb, sizeof rgb, &err), &err);
    }
    ok(kr_launch(
           registry, kr_default_stream(src), "rgb_to_gray",
           KR_ARGS(KR_U64(WIDTH), KR_U64(HEIGHT), KR_U64(pitch), KR_U64(pitch), KR_BUF(src), KR_BUF(dst)),
           NULL, &err),
       &err);
    for (uint64_t y = 0; y < HEIGHT; y++) {
        uint8_t gray[WIDTH] = {0};
        ok(kr_buffer_download(dst, y * pitch, gray, sizeof gray, &err), &err);
        for (int x = 0; x < WIDTH; x++)
            ck_assert_uint_eq(gray[x], 50 + y); /* equal parts keep their value: the weights add up to 1 */
    }
    kr_buffer_destroy(&src);
    kr_buffer_destroy(&dst);
    close_registry();
}
END_TEST

/* 2^25 ones, where a sum in f32 would stop at 2^24; twice, bit for bit. */
START_TEST(sums_do_not_saturate)
{
    static const char *const variants[] = {"grid", "vec4"};
    const uint64_t n = UINT64_C(1) << 25;
    kr_error err;
    kr_buffer *x = NULL, *total = NULL;
    open_registry(false);
    kr_device *device = kr_runtime_device(runtime, 0);
    ok(kr_buffer_create(device, n * sizeof(float), NULL, &x, &err), &err);
    ok(kr_buffer_create(device, sizeof(float), NULL, &total, &err), &err);
    kr_stream *stream = kr_default_stream(x);
    ok(kr_launch(registry, stream, "fill.f32", KR_ARGS(KR_U64(n), KR_F32(1), KR_BUF(x)), NULL, &err), &err);
    for (int i = 0; i < 4; i++) {
        float sum = 0;
        kr_launch_options options = {.struct_size = sizeof options, .variant = variants[i / 2]};
        ok(kr_launch(registry, stream, "sum.f32", KR_ARGS(KR_U64(n), KR_BUF(x), KR_BUF(total)), &options,
                     &err),
           &err);
        ok(kr_buffer_download(total, 0, &sum, sizeof sum, &err), &err);
        ck_assert(sum == 33554432.0f);
    }
    kr_buffer_destroy(&x);
    kr_buffer_destroy(&total);
    close_registry();
}
END_TEST

/* More bytes than can be counted, and a size wider than its type, are refused before anything is made. */
START_TEST(more_than_memory)
{
    static const struct {
        const char *name;
        uint64_t n;
    } problems[] = {
        {"saxpy.f64", UINT64_C(1) << 61}, {"saxpy.f64", UINT64_C(1) << 62}, {"saxpy.f32", UINT64_C(1) << 62}};
    open_registry(false);
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const kr_op *op;
        kr_type type;
        kr_error err;
        ck_problem p;
        char number[32];
        uint64_t sizes[KR_MAX_OP_ARGS] = {problems[i].n};
        ok(kr_registry_find(registry, problems[i].name, &op, &type, &err), &err);
        ck_assert_int_eq(ck_problem_init(&p, op, type, NULL, sizes, CK_ORDINARY, 1, &err),
                         KR_INVALID_ARGUMENT);
        snprintf(number, sizeof number, "%llu", (unsigned long long)problems[i].n);
        ck_assert_ptr_nonnull(strstr(err.message, number));
    }
    close_registry();
}
END_TEST

static const char narrow[] =
    "//! op narrow\n//! brief y = 1\n//! arg n u8 size\n//! arg y f32[n] out\n"
    "//! variant grid\n//! launch elementwise n\n//! compare exact\n//! source none\n"
    "#ifdef KR_VARIANT_grid\nextern \"C\" __global__ void grid(uint8_t n, float *y)\n{\n"
    "    if (threadIdx.x < n && blockIdx.x == 0)\n        y[threadIdx.x] = 1;\n}\n#endif\n";

START_TEST(sizes_keep_to_their_type)
{
    kr_error err;
    ck_problem p;
    uint64_t sizes[KR_MAX_OP_ARGS] = {300};
    open_registry(true);
    ok(kr_registry_add_source(registry, "narrow.cu", narrow, strlen(narrow), &err), &err);
    const kr_op *op = kr_registry_op(registry, 0);
    ck_assert_int_eq(ck_problem_init(&p, op, KR_TYPE_F32, NULL, sizes, CK_ORDINARY, 1, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "300") && strstr(err.message, "255"), "%s", err.message);
    story s = walk(op, KR_TYPE_F32, NULL);
    ck_assert_msg(s.failed == 0, "%s", s.first);
    close_registry();
}
END_TEST

/* A shift that a variant cannot have is the asker's mistake, not the kernel's. */
START_TEST(shifts_fit_the_variant)
{
    static const size_t shifts[] = {1, 2, 4, 8};
    open_registry(false);
    kr_device *device = kr_runtime_device(runtime, 0);
    const kr_op *op;
    kr_type type;
    kr_error err;
    ok(kr_registry_find(registry, "saxpy.f32", &op, &type, &err), &err);
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++) {
        story s = {0};
        ck_walk_options options = {.quick = true, .shift_bytes = &shifts[i], .seed = 1};
        ck_assert_int_eq(ck_walk(registry, &device, 1, op, type, &options, visit, &s, &err),
                         KR_INVALID_ARGUMENT);
        ck_assert_uint_eq(s.failed, 0);
        options.variant = "grid";
        ck_assert_int_eq(ck_walk(registry, &device, 1, op, type, &options, visit, &s, &err),
                         shifts[i] < 4 ? KR_INVALID_ARGUMENT : KR_OK);
        ck_assert_uint_eq(s.failed, 0);
    }
    close_registry();
}
END_TEST

int main(void)
{
    kr_nvrtc *nvrtc = NULL;
    if (kr_nvrtc_open(NULL, &nvrtc, NULL)) {
        fprintf(stderr, "no NVRTC on this machine\n");
        return 77;
    }
    kr_nvrtc_close(&nvrtc);
    Suite *suite = suite_create("checkkern");
    TCase *broken = tcase_create("broken"), *shipped = tcase_create("shipped");
    tcase_add_loop_test(broken, caught, 0, N_MISTAKES);
    tcase_add_test(broken, every_broken_kernel_is_listed);
    tcase_add_loop_test(shipped, healthy, 0, MAX_OPS);
    tcase_add_loop_test(shipped, nothing_is_a_size, 0, MAX_OPS);
    tcase_add_test(shipped, rows_past_4_gib);
    tcase_add_test(shipped, sums_do_not_saturate);
    tcase_add_test(shipped, more_than_memory);
    tcase_add_test(shipped, sizes_keep_to_their_type);
    tcase_add_test(shipped, shifts_fit_the_variant);
    tcase_set_timeout(broken, 120);
    tcase_set_timeout(shipped, 300);
    suite_add_tcase(suite, broken);
    suite_add_tcase(suite, shipped);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
