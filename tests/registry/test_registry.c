/* SPDX-License-Identifier: Apache-2.0 */

/* The registry without a driver: names, adding, references, explanations, and what is said of wrong
 * arguments. */

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registry/internal.h"

enum { N_OPS = 5 }; /* in ops/ */

static kr_error err;
static kr_registry *registry;

static void setup(void)
{
    memset(&err, 0, sizeof err);
    registry = NULL;
    ck_assert_msg(!kr_registry_create(NULL, NULL, &registry, &err), "%s", err.message);
}

static void teardown(void)
{
    kr_registry_destroy(&registry);
    ck_assert_ptr_null(registry);
}

#define SOURCE(name)                                                                             \
    "//! op " name                                                                               \
    "\n//! brief b\n//! source s\n//! compare exact\n//! arg n u64 size\n//! arg x f32[n] out\n" \
    "//! variant v\n//! launch elementwise n\n"

static kr_status add(const char *file, const char *text)
{
    return kr_registry_add_source(registry, file, text, strlen(text), &err);
}

/* ---- names ---- */

static const struct {
    const char *asked, *name; /* NULL: there is none */
    kr_type type;
    const char *message, *advice;
} finds[] = {
    {"axpy.f32", "axpy", KR_TYPE_F32, NULL, NULL},
    {"axpy.f64", "axpy", KR_TYPE_F64, NULL, NULL},
    {"blur", "blur", 0, NULL, NULL},
    {"axpy", NULL, 0, "axpy has several types: f32, f64", "Name one: axpy.f32"},
    {"axpy.i32", NULL, 0, "axpy has no type i32; its types are f32, f64", "Did you mean \"axpy.f32\"?"},
    {"blur.f32", NULL, 0, "blur has no types, so no f32", "Did you mean \"blur\"?"},
    {"apxy.f32", NULL, 0, "there is no op \"apxy.f32\"", "Did you mean \"axpy.f32\"?"},
    {"axp", NULL, 0, "there is no op \"axp\"", "Did you mean \"axpy\"?"},
    {"tall", NULL, 0, "there is no op \"tall\"", "Did you mean \"tally\"?"},
    {"tomb", NULL, 0, "there is no op \"tomb\"", "`kregistry list` shows the ops"}, /* no tally, no blur */
    {"nosuch.f32", NULL, 0, "there is no op \"nosuch.f32\"", "`kregistry list` shows the ops"},
    {"", NULL, 0, "there is no op \"\"", NULL},
    {".", NULL, 0, "there is no op \".\"", NULL},
    {"axpy.", NULL, 0, "axpy has no type ", NULL},
    {"something_else_altogether", NULL, 0, "there is no op", "`kregistry list` shows the ops"},
};

START_TEST(names_are_found_or_suggested)
{
    const kr_op *op = NULL;
    kr_type type = KR_TYPE_U8;
    const kr_status status = kr_registry_find(registry, finds[_i].asked, &op, &type, &err);
    if (finds[_i].name) {
        ck_assert_int_eq(status, KR_OK);
        ck_assert_str_eq(op->name, finds[_i].name);
        if (op->n_types)
            ck_assert_int_eq(type, finds[_i].type);
        return;
    }
    ck_assert_int_eq(status, KR_NOT_FOUND);
    ck_assert_ptr_null(op);
    ck_assert_msg(strstr(err.message, finds[_i].message), "%s", err.message);
    if (finds[_i].advice)
        ck_assert_msg(strstr(err.advice, finds[_i].advice), "%s", err.advice);
}
END_TEST

START_TEST(ops_are_in_name_order)
{
    ck_assert_int_eq(add("s.cu", SOURCE("sum_rows")), KR_OK);
    ck_assert_int_eq(add("s.cu", SOURCE("sum")), KR_OK);
    ck_assert_int_eq(add("s.cu", SOURCE("a")), KR_OK);
    ck_assert_int_eq(add("s.cu", SOURCE("zz")), KR_OK);
    const size_t n = kr_registry_n_ops(registry);
    ck_assert_uint_eq(n, N_OPS + 4);
    for (size_t i = 0; i + 1 < n; i++)
        ck_assert_int_lt(strcmp(kr_registry_op(registry, i)->name, kr_registry_op(registry, i + 1)->name), 0);
    ck_assert_ptr_null(kr_registry_op(registry, n));
    for (size_t i = 0; i < n; i++) {
        const kr_op *op = kr_registry_op(registry, i), *found;
        char name[KR__MAX_FULL_NAME];
        ck_assert_int_eq(kr_registry_find(registry, kr__op_full_name(op, 0, name), &found, NULL, &err),
                         KR_OK);
        ck_assert_ptr_eq(found, op);
    }
}
END_TEST

START_TEST(a_name_is_taken_once)
{
    ck_assert_int_eq(add("mine.cu", SOURCE("axpy")), KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "mine.cu: the op name \"axpy\" is taken by axpy.cu"), "%s",
                  err.message);
    ck_assert_str_eq(err.op, ""); /* the message names it */
    ck_assert_uint_eq(kr_registry_n_ops(registry), N_OPS);
}
END_TEST

START_TEST(a_bad_source_changes_nothing)
{
    ck_assert_int_eq(add("bad.cu", "//! op x\n"), KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "bad.cu:1: there is no brief line"), "%s", err.message);
    ck_assert_uint_eq(kr_registry_n_ops(registry), N_OPS);
}
END_TEST

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    kr__format(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void remove_folder(const char *folder, const char *const *names)
{
    for (; *names; names++) {
        char path[256];
        kr__format(path, sizeof path, "%s/%s", folder, *names);
        unlink(path);
    }
    rmdir(folder);
}

START_TEST(a_directory_is_added_whole_or_not_at_all)
{
    char folder[] = "/tmp/kr_test_XXXXXX", below[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(kr_registry_add_directory(registry, folder, &err), KR_NOT_FOUND);
    write_file(folder, "one.cu", SOURCE("one"));
    write_file(folder, "two.cu", SOURCE("axpy"));
    write_file(folder, "notes.txt", "no op");
    snprintf(below, sizeof below, "%s/folder.cu", folder);
    ck_assert_int_eq(mkdir(below, 0700), 0);
    ck_assert_int_eq(kr_registry_add_directory(registry, folder, &err), KR_INVALID_ARGUMENT);
    ck_assert_uint_eq(kr_registry_n_ops(registry), N_OPS);
    write_file(folder, "two.cu", SOURCE("one"));
    ck_assert_int_eq(kr_registry_add_directory(registry, folder, &err), KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "two.cu: the op name \"one\" is taken by one.cu"), "%s", err.message);
    write_file(folder, "two.cu", "//! colour\n");
    ck_assert_int_eq(kr_registry_add_directory(registry, folder, &err), KR_INVALID_ARGUMENT);
    ck_assert_uint_eq(kr_registry_n_ops(registry), N_OPS);
    write_file(folder, "two.cu", SOURCE("two"));
    ck_assert_msg(!kr_registry_add_directory(registry, folder, &err), "%s", err.message);
    ck_assert_uint_eq(kr_registry_n_ops(registry), N_OPS + 2);
    rmdir(below);
    remove_folder(folder, (const char *const[]){"one.cu", "two.cu", "notes.txt", NULL});
    ck_assert_int_eq(kr_registry_add_directory(registry, folder, &err), KR_NOT_FOUND);
}
END_TEST

START_TEST(what_is_no_source_file_is_not_read)
{
    char folder[] = "/tmp/kr_test_XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/pipe.cu", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(kr_registry_add_directory(registry, folder, &err), KR_IO);
    ck_assert_msg(strstr(err.message, "/pipe.cu is not a regular file"), "%s", err.message);
    unlink(path);
    write_file(folder, "long.cu", SOURCE("one"));
    snprintf(path, sizeof path, "%s/long.cu", folder);
    ck_assert_int_eq(truncate(path, (16 << 20) + 1), 0);
    ck_assert_int_eq(kr_registry_add_directory(registry, folder, &err), KR_IO);
    ck_assert_msg(strstr(err.message, "/long.cu has more than 16777216 bytes"), "%s", err.message);
    remove_folder(folder, (const char *const[]){"long.cu", NULL});
}
END_TEST

START_TEST(without_builtin_ops)
{
    kr_registry *other = NULL;
    const kr_registry_options options = {.struct_size = sizeof options, .no_builtin_ops = true};
    ck_assert_int_eq(kr_registry_create(NULL, &options, &other, &err), KR_OK);
    ck_assert_uint_eq(kr_registry_n_ops(other), 0);
    kr_registry_destroy(&other);
    kr_registry_destroy(&other);
    kr_registry_destroy(NULL);
}
END_TEST

/* ---- threads: one adds, others look ---- */

static void *look(void *user)
{
    const atomic_bool *stop = user;
    size_t seen = N_OPS;
    while (!atomic_load(stop)) {
        const kr_op *op;
        const size_t n = kr_registry_n_ops(registry);
        if (n < seen || kr_registry_find(registry, "axpy.f32", &op, NULL, NULL) || strcmp(op->name, "axpy"))
            return user;
        seen = n;
    }
    return NULL;
}

START_TEST(ops_are_added_while_others_look)
{
    atomic_bool stop = false;
    pthread_t threads[4];
    for (size_t i = 0; i < KR_COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, look, &stop), 0);
    for (int i = 0; i < 200; i++) {
        char text[512];
        kr__format(text, sizeof text, SOURCE("op%d"), i);
        ck_assert_int_eq(add("t.cu", text), KR_OK);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < KR_COUNT(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
    }
    ck_assert_uint_eq(kr_registry_n_ops(registry), N_OPS + 200);
}
END_TEST

/* ---- what the generator made ---- */

START_TEST(references_are_those_of_the_files)
{
    const kr_op *op;
    kr_type type;
    ck_assert_int_eq(kr_registry_find(registry, "axpy.f64", &op, &type, &err), KR_OK);
    const uint64_t n = 3;
    const double a = 2, x[] = {1, 2, 3};
    double y[] = {10, 20, 30};
    kr_op_reference(op, type)((void *const[]){(void *)&n, (void *)&a, (void *)x, y});
    ck_assert_double_eq(y[0], 12);
    ck_assert_double_eq(y[2], 36);

    ck_assert_int_eq(kr_registry_find(registry, "work_sum", &op, NULL, &err), KR_OK);
    const uint32_t m = 3, in[] = {1, 2, 3};
    uint32_t out = 99;
    kr_op_reference(op, 0)((void *const[]){(void *)&m, (void *)in, &out, NULL, NULL});
    ck_assert_uint_eq(out, 6);

    ck_assert_int_eq(add("s.cu", SOURCE("mine")), KR_OK);
    ck_assert_int_eq(kr_registry_find(registry, "mine", &op, NULL, &err), KR_OK);
    ck_assert_ptr_null(kr_op_reference(op, 0));
}
END_TEST

START_TEST(an_op_tells_of_itself)
{
    const kr_op *op;
    double bytes, flops;
    uint64_t elements, least;
    const uint64_t sizes[KR_MAX_OP_ARGS] = {10, 4}, huge[KR_MAX_OP_ARGS] = {UINT64_MAX / 2 + 1};
    ck_assert_int_eq(kr_registry_find(registry, "axpy.f64", &op, NULL, &err), KR_OK);
    ck_assert_int_eq(kr_op_cost(op, KR_TYPE_F64, sizes, &bytes, &flops, &err), KR_OK);
    ck_assert_double_eq(bytes, 240);
    ck_assert_double_eq(flops, 20);
    ck_assert_int_eq(kr_op_arg_type(op, 0, KR_TYPE_F64), KR_TYPE_U64);
    ck_assert_int_eq(kr_op_arg_type(op, 2, KR_TYPE_F64), KR_TYPE_F64);
    ck_assert_int_eq(kr_op_arg_elements(op, 2, sizes, &elements, &err), KR_OK);
    ck_assert_uint_eq(elements, 10);
    ck_assert_int_eq(kr_op_arg_elements(op, 1, sizes, &elements, &err), KR_OK);
    ck_assert_uint_eq(elements, 1);
    ck_assert_int_eq(kr_op_arg_elements(op, 2, huge, &elements, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_op_arg_elements(op, 4, sizes, &elements, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_registry_find(registry, "blur", &op, NULL, &err), KR_OK);
    ck_assert_int_eq(kr_op_arg_minimum(op, 0, sizes, &least, &err), KR_OK);
    ck_assert_uint_eq(least, 1);
    ck_assert_int_eq(kr_registry_find(registry, "work_sum", &op, NULL, &err), KR_OK);
    ck_assert_int_eq(kr_op_arg_elements(op, 3, sizes, &elements, &err), KR_INVALID_ARGUMENT);
    ck_assert_int_eq(kr_op_cost(op, 0, sizes, &bytes, &flops, &err), KR_OK);
    ck_assert_double_eq(bytes, 0);
}
END_TEST

/* ---- explaining ---- */

START_TEST(explanations_need_no_driver)
{
    static const int archs[] = {75, 90};
    const kr_machine machine = {.cc = {9, 0, 0},
                                .driver_version = 13000,
                                .nvrtc_archs = archs,
                                .n_nvrtc_archs = 2,
                                .nvrtc_version = 13000};
    kr_explanation *e = NULL;
    ck_assert_int_eq(kr_registry_explain(registry, "axpy.f32", &machine, NULL, &e, &err), KR_OK);
    ck_assert_uint_ge(e->n, 2);
    ck_assert_str_eq(e->considered[0].variant, "vec");
    ck_assert_str_eq(e->considered[0].image, "nvrtc sm_90");
    ck_assert_str_eq(e->considered[0].how, "nvrtc");
    size_t chosen = 0;
    for (size_t i = 0; i < e->n; i++)
        chosen += e->considered[i].chosen;
    ck_assert_uint_eq(chosen, 1);
    ck_assert_str_eq(e->advice, "");
    kr_explanation_destroy(&e);
    ck_assert_ptr_null(e);
    ck_assert_int_eq(kr_registry_explain(registry, "axpy.f32", &machine, "plain", &e, &err), KR_OK);
    ck_assert_str_eq(e->considered[0].variant, "plain");
    ck_assert(e->considered[0].chosen);
    kr_explanation_destroy(&e);
    ck_assert_int_eq(kr_registry_explain(registry, "axpy.f32", &machine, "fast", &e, &err), KR_NOT_FOUND);
    ck_assert_msg(strstr(err.advice, "plain, vec"), "%s", err.advice);
}
END_TEST

/* ---- what the environment asks for ---- */

static const struct {
    const char *variable, *value;
    kr_status created, explained;
    const char *message, *advice;
} asked[] = {
    {"KREGISTRY_MAX_CC", "9.0a", KR_INVALID_ARGUMENT, 0, "KREGISTRY_MAX_CC is \"9.0a\"", "like 8.6"},
    {"KREGISTRY_MAX_CC", "9", KR_INVALID_ARGUMENT, 0, "KREGISTRY_MAX_CC is \"9\"", "or unset it"},
    {"KREGISTRY_MAX_CC", "", KR_OK, KR_OK, NULL, NULL},
    {"KREGISTRY_VARIANT", "axpy", KR_INVALID_ARGUMENT, 0, "KREGISTRY_VARIANT has \"axpy\"", "saxpy=vec4"},
    {"KREGISTRY_VARIANT", "axpy=vec,", KR_INVALID_ARGUMENT, 0, "has \"\", which is not OP=VARIANT",
     "saxpy=vec4"},
    {"KREGISTRY_VARIANT", "axpy.f32=vec", KR_INVALID_ARGUMENT, 0, "\"axpy.f32=vec\"", "without their types"},
    {"KREGISTRY_VARIANT", "a=b=c", KR_INVALID_ARGUMENT, 0, "\"a=b=c\"", "saxpy=vec4"},
    {"KREGISTRY_VARIANT", "axpy=fast", KR_NOT_FOUND, 0, "KREGISTRY_VARIANT: axpy has no variant \"fast\"",
     "plain, vec"},
    {"KREGISTRY_VARIANT", "blur=tiled,axpi=vec", KR_OK, KR_NOT_FOUND,
     "KREGISTRY_VARIANT: there is no op \"axpi\"", "Did you mean \"axpy\"?"},
    {"KREGISTRY_VARIANT", "axpy=plain", KR_OK, KR_OK, NULL, NULL},
};

START_TEST(the_environment_is_held_to_its_word)
{
    const kr_machine machine = {.cc = {9, 0, 0}};
    kr_registry *other = NULL;
    kr_explanation *e = NULL;
    setenv(asked[_i].variable, asked[_i].value, 1);
    kr_status status = kr_registry_create(NULL, NULL, &other, &err);
    unsetenv(asked[_i].variable);
    ck_assert_int_eq(status, asked[_i].created);
    if (!status)
        ck_assert_int_eq(status = kr_registry_explain(other, "axpy.f32", &machine, NULL, &e, &err),
                         asked[_i].explained);
    if (status) {
        ck_assert_msg(strstr(err.message, asked[_i].message), "%s", err.message);
        ck_assert_msg(strstr(err.advice, asked[_i].advice), "%s", err.advice);
    }
    kr_explanation_destroy(&e);
    kr_registry_destroy(&other);
}
END_TEST

/* An op that is added later may be named, once it is there. */
START_TEST(an_op_that_comes_later_is_asked_for_too)
{
    static const char text[] =
        "//! op late\n//! brief b\n//! source s\n//! compare exact\n//! arg n u64 size\n"
        "//! variant one\n//! variant two\n//! launch elementwise n\n";
    static const int archs[] = {90};
    const kr_machine machine = {.cc = {9, 0, 0}, .nvrtc_archs = archs, .n_nvrtc_archs = 1};
    kr_registry *other = NULL;
    kr_explanation *e = NULL;
    setenv("KREGISTRY_VARIANT", "late=one", 1);
    ck_assert_int_eq(kr_registry_create(NULL, NULL, &other, &err), KR_OK);
    unsetenv("KREGISTRY_VARIANT");
    ck_assert_int_eq(kr_registry_explain(other, "axpy.f32", &machine, NULL, &e, &err), KR_NOT_FOUND);
    ck_assert_int_eq(kr_registry_add_source(other, "late.cu", text, strlen(text), &err), KR_OK);
    ck_assert_int_eq(kr_registry_explain(other, "late", &machine, NULL, &e, &err), KR_OK);
    ck_assert_msg(strstr(e->considered[0].reason, "KREGISTRY_VARIANT asks for one"), "%s",
                  e->considered[0].reason);
    ck_assert(e->considered[1].chosen);
    kr_explanation_destroy(&e);
    kr_registry_destroy(&other);
}
END_TEST

START_TEST(nothing_is_launched_without_a_runtime)
{
    ck_assert_int_eq(kr_registry_prepare(registry, "*", NULL, &err), KR_INVALID_ARGUMENT);
    kr_device device = {0};
    kr_resolution resolution;
    ck_assert_int_eq(kr_registry_resolve(registry, "axpy.f32", &device, NULL, NULL, &resolution, &err),
                     KR_INVALID_ARGUMENT);
}
END_TEST

/* ---- arguments ---- */

static kr_device here = {.info = {.ordinal = 0}}, there = {.info = {.ordinal = 1}};
static kr_buffer b40 = {&here, 0x1000, 40, true}, b39 = {&here, 0x2000, 39, true},
                 far_away = {&there, 0x3000, 400, true}, none = {&here, 0, 0, true},
                 b80 = {&here, 0x4004, 80, true};

static const struct {
    const char *what;
    kr_arg list[5];
    size_t n;
    const char *message; /* NULL: right */
    uint64_t align;
} calls[] = {
#define U64(x)                             \
    {                                      \
        KR_ARG_SCALAR, KR_TYPE_U64, {x}, 0 \
    }
#define U32(x)                             \
    {                                      \
        KR_ARG_SCALAR, KR_TYPE_U32, {x}, 0 \
    }
#define F32(x)                                    \
    {                                             \
        KR_ARG_SCALAR, KR_TYPE_F32, {.f32 = x}, 0 \
    }
#define BUF(b, at)                                    \
    {                                                 \
        KR_ARG_BUFFER, KR_TYPE_U64, {.buffer = b}, at \
    }
#define PTR(p)                              \
    {                                       \
        KR_ARG_POINTER, KR_TYPE_U64, {p}, 0 \
    }
    {"right", {U64(10), F32(1), BUF(&b40, 0), BUF(&b80, 0)}, 4, NULL, 4},
    {"pointers", {U64(10), F32(1), PTR(0x100), PTR(0x40)}, 4, NULL, 0x40},
    {"nothing", {U64(0), F32(1), BUF(&none, 0), PTR(0)}, 4, NULL, 1ull << 63},
    {"too few", {U64(10)}, 1, "1 arguments are given; there are 4: n, a, x, y", 0},
    {"too many",
     {U64(10), F32(1), BUF(&b40, 0), BUF(&b80, 0), U64(1)},
     5,
     "5 arguments are given; there are 4",
     0},
    {"another size type",
     {U32(10), F32(1), BUF(&b40, 0), BUF(&b80, 0)},
     4,
     "argument 1 'n' is u64, not u32",
     0},
    {"another type", {U64(10), U64(1), BUF(&b40, 0), BUF(&b80, 0)}, 4, "argument 2 'a' is f32, not u64", 0},
    {"buffer for scalar",
     {U64(10), BUF(&b40, 0), BUF(&b40, 0), BUF(&b80, 0)},
     4,
     "argument 2 'a' is a scalar f32, not a buffer",
     0},
    {"scalar for buffer",
     {U64(10), F32(1), U64(1), BUF(&b80, 0)},
     4,
     "argument 3 'x' is a buffer f32[n], not a scalar",
     0},
    {"NULL", {U64(10), F32(1), BUF(NULL, 0), BUF(&b80, 0)}, 4, "argument 3 'x': the buffer is NULL", 0},
    {"address 0",
     {U64(10), F32(1), PTR(0), BUF(&b80, 0)},
     4,
     "argument 3 'x' is address 0; it needs 40 bytes for f32[n]",
     0},
    {"too small",
     {U64(10), F32(1), BUF(&b39, 0), BUF(&b80, 0)},
     4,
     "argument 3 'x' needs 40 bytes for f32[n] with n=10; the buffer has 39",
     0},
    {"too small after the offset",
     {U64(10), F32(1), BUF(&b40, 4), BUF(&b80, 0)},
     4,
     "needs 40 bytes for f32[n] with n=10; the buffer has 36",
     0},
    {"begins outside",
     {U64(10), F32(1), BUF(&b40, 44), BUF(&b80, 0)},
     4,
     "offset 44 lies outside a buffer of 40 bytes",
     0},
    {"elsewhere",
     {U64(10), F32(1), BUF(&far_away, 0), BUF(&b80, 0)},
     4,
     "argument 3 'x': the buffer is on device 1, the kernel on device 0",
     0},
    {"between elements",
     {U64(9), F32(1), BUF(&b40, 2), BUF(&b80, 0)},
     4,
     "which is no multiple of the 4 bytes of f32",
     0},
    {"past 2^63 bytes", {U64(1ull << 62), F32(1), BUF(&b40, 0), BUF(&b80, 0)}, 4, "past 2^63 bytes", 0},
};

START_TEST(arguments_are_checked_by_name)
{
    kr__entry *entry;
    size_t type_index;
    kr__bound bound = {.align_bytes = 99};
    ck_assert_int_eq(kr__registry_find(registry, "axpy.f32", &entry, &type_index, &err), KR_OK);
    const kr_args args = {calls[_i].list, calls[_i].n};
    const kr_status status = kr__bind(entry->def, type_index, &here, args, &bound, &err);
    if (!calls[_i].message) {
        ck_assert_msg(!status, "%s: %s", calls[_i].what, err.message);
        ck_assert_uint_eq(bound.align_bytes, calls[_i].align);
        return;
    }
    ck_assert_int_eq(status, KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, calls[_i].message), "%s: %s", calls[_i].what, err.message);
    ck_assert_str_eq(err.op, "axpy.f32");
    ck_assert(err.advice[0]);
    ck_assert_uint_eq(bound.align_bytes, 99);
}
END_TEST

START_TEST(sizes_have_a_least_value)
{
    kr__entry *entry;
    size_t type_index;
    kr__bound bound;
    ck_assert_int_eq(kr__registry_find(registry, "blur", &entry, &type_index, &err), KR_OK);
    const kr_arg list[] = {U32(0), U32(4), PTR(16), PTR(16)};
    ck_assert_int_eq(kr__bind(entry->def, type_index, &here, (kr_args){list, 4}, &bound, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "size 'rows' is 0; the least is 1"), "%s", err.message);
    const kr_arg wide[] = {U32(1ull << 32), U32(4), PTR(16), PTR(16)};
    ck_assert_int_eq(kr__bind(entry->def, type_index, &here, (kr_args){wide, 4}, &bound, &err),
                     KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, "argument 1 'rows': 4294967296 does not fit into u32"), "%s",
                  err.message);
}
END_TEST

/* ---- signatures ---- */

#define ENTRY(params) \
    ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry plain(" params ")\n{\nret;\n}\n"

static const struct {
    const char *ptx, *message;
} signatures[] = {
    {ENTRY(".param .u64 a, .param .f32 b, .param .u64 c, .param .u64 d"), NULL},
    {ENTRY(".param .u64 a, .param .f64 b, .param .u64 c, .param .u64 d"),
     "op axpy.f32 variant plain: argument 2 'a' is f32 (4 bytes) in the descriptor, 8 bytes in the compiled "
     "kernel"},
    {ENTRY(".param .u64 a, .param .f32 b, .param .u64 c"),
     "4 arguments in the descriptor, 3 parameters in the compiled kernel"},
    {ENTRY(".param .u64 a, .param .f32 b, .param .u64 c, .param .u64 d, .param .u8 e"),
     "5 parameters in the compiled"},
    {ENTRY(".param .u64 a, .param .f32 b, .param .u32 c, .param .u64 d"),
     "argument 3 'x' is a buffer (8 bytes)"},
    {ENTRY(""), "0 parameters"},
    {"not PTX", NULL}, /* the driver's to say */
};

START_TEST(signatures_are_compared)
{
    kr__entry *entry;
    size_t type_index;
    ck_assert_int_eq(kr__registry_find(registry, "axpy.f32", &entry, &type_index, &err), KR_OK);
    const char *ptx = signatures[_i].ptx;
    const kr_status status = kr__signature_check_ptx(entry->def, type_index, 0, ptx, strlen(ptx), &err);
    if (!signatures[_i].message) {
        ck_assert_msg(!status, "%s", err.message);
        return;
    }
    ck_assert_int_eq(status, KR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(err.message, signatures[_i].message), "%s", err.message);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("registry");
    TCase *c = tcase_create("registry");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, names_are_found_or_suggested, 0, (int)KR_COUNT(finds));
    tcase_add_test(c, ops_are_in_name_order);
    tcase_add_test(c, a_name_is_taken_once);
    tcase_add_test(c, a_bad_source_changes_nothing);
    tcase_add_test(c, a_directory_is_added_whole_or_not_at_all);
    tcase_add_test(c, what_is_no_source_file_is_not_read);
    tcase_add_test(c, without_builtin_ops);
    tcase_add_test(c, references_are_those_of_the_files);
    tcase_add_test(c, an_op_tells_of_itself);
    tcase_add_test(c, explanations_need_no_driver);
    tcase_add_loop_test(c, the_environment_is_held_to_its_word, 0, (int)KR_COUNT(asked));
    tcase_add_test(c, an_op_that_comes_later_is_asked_for_too);
    tcase_add_test(c, nothing_is_launched_without_a_runtime);
    tcase_add_loop_test(c, arguments_are_checked_by_name, 0, (int)KR_COUNT(calls));
    tcase_add_test(c, sizes_have_a_least_value);
    tcase_add_loop_test(c, signatures_are_compared, 0, (int)KR_COUNT(signatures));
    TCase *threads = tcase_create("threads"); /* for ThreadSanitizer: scripts/test */
    tcase_add_checked_fixture(threads, setup, teardown);
    tcase_add_test(threads, ops_are_added_while_others_look);
    suite_add_tcase(suite, c);
    suite_add_tcase(suite, threads);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
