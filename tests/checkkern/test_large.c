/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sizes past 2^31 and 2^32 elements: every op, type and variant. Needs a real GPU with some 10 to 110 GB
 * free; what does not fit is left out aloud. Runs on the driver that KREGISTRY_TEST_DRIVER names, or the
 * machine's own.
 *
 * Inputs repeat with a prime period, so that an index which has lost its upper bits reads another value. They
 * are small whole numbers: every result is exact in every type and can be told for each element by itself.
 * Results are looked at where 32-bit arithmetic would break: at both ends and around the powers of two.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/checkkern.h"

/* So far past that what is lost there shows in a sum, too. */
#define N31 ((UINT64_C(1) << 31) + 100003)
#define N32 ((UINT64_C(1) << 32) + 100003)

enum { PERIOD = 1000003, WINDOW = 65536 };

typedef struct problem {
    const kr_op *op;
    kr_type type;
    uint64_t sizes[KR_MAX_OP_ARGS]; /* by argument */
    uint64_t elements[KR_MAX_OP_ARGS];
} problem;

/* ---- what the inputs hold ---- */

static uint64_t raw(size_t arg, uint64_t at)
{
    uint64_t z = (at % PERIOD + 1) * 0x9e3779b97f4a7c15u + arg;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return (z ^ z >> 31) >> 16 & 255;
}

static int64_t real(size_t arg, uint64_t at)
{
    return (int64_t)(raw(arg, at) % 17) - 8;
}

static void put(void *to, kr_type type, int64_t value)
{
    const float f32 = (float)value;
    const double f64 = (double)value;
    const void *from = type == KR_TYPE_F32   ? (const void *)&f32
                       : type == KR_TYPE_F64 ? (const void *)&f64
                                             : &value;
    memcpy(to, from, kr_type_bytes(type));
}

static void put_input(void *to, kr_type type, size_t arg, uint64_t at)
{
    const bool is_real = type == KR_TYPE_F32 || type == KR_TYPE_F64;
    put(to, type, is_real ? real(arg, at) : (int64_t)raw(arg, at));
}

/* ---- what the outputs must hold ---- */

static int64_t fill(const problem *p, uint64_t at)
{
    (void)p, (void)at;
    return real(1, 0);
}

static int64_t add(const problem *p, uint64_t at)
{
    (void)p;
    return real(1, at) + real(2, at);
}

static int64_t saxpy(const problem *p, uint64_t at)
{
    (void)p;
    return real(1, 0) * real(2, at) + real(3, at);
}

static int64_t relu(const problem *p, uint64_t at)
{
    (void)p;
    return real(1, at) < 0 ? 0 : real(1, at);
}

/* Sums over 0 to n, by whole periods and the rest. */
static int64_t sum_of(int64_t (*term)(uint64_t at, uint64_t which), uint64_t n, uint64_t which)
{
    int64_t sum = 0;
    for (uint64_t i = 0; i < PERIOD; i++)
        sum += term(i, which) * (int64_t)(n / PERIOD + (i < n % PERIOD));
    return sum;
}

static int64_t one_value(uint64_t at, uint64_t which)
{
    (void)which;
    return real(1, at);
}

static int64_t one_product(uint64_t at, uint64_t which)
{
    (void)which;
    return real(1, at) * real(2, at);
}

static int64_t is_value(uint64_t at, uint64_t which)
{
    return raw(1, at) == which;
}

static int64_t sum(const problem *p, uint64_t at)
{
    return sum_of(one_value, p->sizes[0], at);
}

static int64_t dot(const problem *p, uint64_t at)
{
    return sum_of(one_product, p->sizes[0], at);
}

static int64_t histogram(const problem *p, uint64_t at)
{
    return (int64_t)raw(2, at) + sum_of(is_value, p->sizes[0], at);
}

static int64_t transpose(const problem *p, uint64_t at)
{
    const uint64_t rows = p->sizes[0], cols = p->sizes[1];
    return real(2, at % rows * cols + at / rows);
}

static int64_t matmul(const problem *p, uint64_t at)
{
    const uint64_t n = p->sizes[1], k = p->sizes[2];
    int64_t total = 0;
    for (uint64_t l = 0; l < k; l++)
        total += real(3, at / n * k + l) * real(4, l * n + at % n);
    return total;
}

static int64_t conv3x3(const problem *p, uint64_t at)
{
    const uint64_t rows = p->sizes[0], cols = p->sizes[1];
    int64_t total = 0;
    for (uint64_t u = 0; u < 3; u++)
        for (uint64_t v = 0; v < 3; v++) {
            const uint64_t row = at / cols + u - 1, col = at % cols + v - 1;
            if (row < rows && col < cols)
                total += real(2 + 3 * u + v, 0) * real(11, row * cols + col);
        }
    return total;
}

static int64_t rgb_to_gray(const problem *p, uint64_t at)
{
    const uint64_t pitch = p->sizes[3], row = at / pitch, col = at % pitch;
    const uint64_t rgb = row * p->sizes[2] + 3 * col;
    if (col >= p->sizes[0])
        return (int64_t)raw(5, at);
    return (int64_t)((77 * raw(4, rgb) + 150 * raw(4, rgb + 1) + 29 * raw(4, rgb + 2) + 128) / 256);
}

static const struct {
    const char *op;
    int64_t (*expected)(const problem *p, uint64_t at);
    uint64_t sizes[4];
} rows[] = {
    {"fill", fill, {N31}},
    {"fill", fill, {N32}},
    {"add", add, {N31}},
    {"add", add, {N32}},
    {"saxpy", saxpy, {N31}},
    {"saxpy", saxpy, {N32}},
    {"relu", relu, {N31}},
    {"relu", relu, {N32}},
    {"sum", sum, {N31}},
    {"sum", sum, {N32}},
    {"dot", dot, {N31}},
    {"dot", dot, {N32}},
    {"histogram", histogram, {N31}},
    {"histogram", histogram, {N32}},
    {"transpose", transpose, {46349, 46351}},
    {"transpose", transpose, {65539, 65537}},
    {"transpose", transpose, {N31, 1}},
    {"transpose", transpose, {1, N31}},
    {"matmul", matmul, {N31, 1, 1}},
    {"matmul", matmul, {1, N31, 1}},
    {"matmul", matmul, {65539, 65537, 2}},
    {"matmul", matmul, {65537, 2, 32771}},
    {"matmul", matmul, {2, 65537, 32771}},
    {"conv3x3", conv3x3, {65539, 65537}},
    {"conv3x3", conv3x3, {N31, 1}},
    {"conv3x3", conv3x3, {1, N31}},
    {"rgb_to_gray", rgb_to_gray, {65537, 65539, 3 * 65537 + 1, 65537 + 1}},
    {"rgb_to_gray", rgb_to_gray, {N31, 1, 3 * N31, N31}},
    {"rgb_to_gray", rgb_to_gray, {1, N32, 3, 1}},
    {"rgb_to_gray", rgb_to_gray, {8, 3, N31, N31 + 2}},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* ---- one op ---- */

static kr_error err;
static kr_runtime *runtime;
static kr_registry *registry;
static kr_device *device;

static void ok(kr_status status)
{
    if (status)
        kr_error_print(&err, stderr);
    ck_assert_int_eq(status, KR_OK);
}

static void open_registry(void)
{
    kr_runtime_options to = {.struct_size = sizeof to, .driver = getenv("KREGISTRY_TEST_DRIVER")};
    ok(kr_runtime_create(&to, &runtime, &err));
    ok(kr_registry_create(runtime, NULL, &registry, &err));
    device = kr_runtime_device(runtime, 0);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One period from the host, the rest by doubling. */
static void make_input(const problem *p, size_t arg, kr_buffer *buffer)
{
    const kr_type type = kr_op_arg_type(p->op, arg, p->type);
    const size_t size = kr_type_bytes(type), bytes = kr_buffer_bytes(buffer);
    size_t have = least(bytes, PERIOD * size);
    char *period = malloc(have);
    for (size_t i = 0; i < have / size; i++)
        put_input(period + i * size, type, arg, i);
    ok(kr_buffer_upload(buffer, 0, period, have, &err));
    for (; have < bytes; have += least(have, bytes - have))
        ok(kr_buffer_copy(buffer, have, buffer, 0, least(have, bytes - have), kr_default_stream(buffer),
                          &err));
    free(period);
}

static void check_window(const problem *p, size_t row, size_t arg, kr_buffer *buffer, uint64_t first,
                         uint64_t n)
{
    static char got[WINDOW * sizeof(double)];
    const kr_type type = kr_op_arg_type(p->op, arg, p->type);
    const size_t size = kr_type_bytes(type);
    ok(kr_buffer_download(buffer, first * size, got, n * size, &err));
    for (uint64_t i = 0; i < n; i++) {
        char want[sizeof(double)];
        put(want, type, rows[row].expected(p, first + i));
        ck_assert_msg(memcmp(want, got + i * size, size) == 0, "%s %s: element %llu of %s is wrong",
                      p->op->name, kr_type_name(type), (unsigned long long)(first + i),
                      p->op->args[arg].name);
    }
}

/* Where each element costs a sum over k, fewer are looked at. */
static void check_output(const problem *p, size_t row, size_t arg, kr_buffer *buffer)
{
    const uint64_t n = p->elements[arg], k = strcmp(p->op->name, "matmul") ? 1 : p->sizes[2];
    const uint64_t window = least(n, WINDOW / (k > 64 ? k / 64 : 1));
    check_window(p, row, arg, buffer, 0, window);
    check_window(p, row, arg, buffer, n - window, window);
    for (int power = 28; power < 34; power++) {
        const uint64_t middle = UINT64_C(1) << power;
        if (middle + window < n)
            check_window(p, row, arg, buffer, middle - window / 2, window);
    }
}

static bool written(const kr_op_arg *arg)
{
    return arg->role == KR_ROLE_OUT || arg->role == KR_ROLE_INOUT;
}

static void run_variant(const problem *p, size_t row, const char *variant)
{
    kr_buffer *buffers[KR_MAX_OP_ARGS] = {0};
    kr_arg args[KR_MAX_OP_ARGS];
    size_t n = 0;
    char name[64];
    const kr_launch_options options = {.struct_size = sizeof options, .variant = variant};
    for (size_t i = 0; i < p->op->n_args; i++) {
        const kr_op_arg *arg = &p->op->args[i];
        const kr_type type = kr_op_arg_type(p->op, i, p->type);
        char scalar[sizeof(double)];
        if (arg->role == KR_ROLE_WORK)
            continue;
        if (!arg->shape) {
            put_input(scalar, type, i, 0);
            args[n++] = arg->role == KR_ROLE_SIZE ? KR_U64(p->sizes[i]) : ck_scalar(type, scalar);
            continue;
        }
        ok(kr_buffer_create(device, p->elements[i] * kr_type_bytes(type), NULL, &buffers[i], &err));
        if (arg->role == KR_ROLE_OUT)
            ok(kr_buffer_set(buffers[i], 0, 0xdb, kr_buffer_bytes(buffers[i]), kr_default_stream(buffers[i]),
                             &err));
        else
            make_input(p, i, buffers[i]);
        args[n++] = KR_BUF(buffers[i]);
    }
    kr_stream *stream = kr_device_default_stream(device);
    ok(kr_launch(registry, stream, ck_full_name(p->op, p->type, name, sizeof name), (kr_args){args, n},
                 &options, &err));
    ok(kr_stream_synchronize(stream, &err));
    for (size_t i = 0; i < p->op->n_args; i++) {
        if (written(&p->op->args[i]))
            check_output(p, row, i, buffers[i]);
        kr_buffer_destroy(&buffers[i]);
    }
}

/* Reads the row into a problem; returns the bytes that its buffers take. */
static size_t make_problem(problem *p, size_t row, const kr_op *op, kr_type type)
{
    size_t bytes = 0, taken = 0;
    *p = (problem){.op = op, .type = type};
    for (size_t i = 0; i < op->n_args; i++)
        if (op->args[i].role == KR_ROLE_SIZE)
            p->sizes[i] = rows[row].sizes[taken++];
    for (size_t i = 0; i < op->n_args; i++)
        if (op->args[i].shape && op->args[i].role != KR_ROLE_WORK) {
            ok(kr_op_arg_elements(op, i, p->sizes, &p->elements[i], &err));
            bytes += p->elements[i] * kr_type_bytes(kr_op_arg_type(op, i, type));
        }
    return bytes;
}

static const kr_op *op_of(const char *name)
{
    const kr_op *op;
    for (size_t i = 0; (op = kr_registry_op(registry, i)); i++)
        if (strcmp(op->name, name) == 0)
            return op;
    return NULL;
}

START_TEST(large)
{
    problem p;
    size_t free_bytes, total;
    char shape[128];
    open_registry();
    const kr_op *op = op_of(rows[_i].op);
    ck_assert_ptr_nonnull(op);
    for (size_t t = 0; t < (op->n_types ? op->n_types : 1); t++) {
        const size_t bytes = make_problem(&p, (size_t)_i, op, op->types[t]);
        ok(kr_device_memory(device, &free_bytes, &total, &err));
        const bool fits = bytes + (bytes >> 6) < free_bytes;
        for (size_t v = 0; fits && v < op->n_variants; v++)
            run_variant(&p, (size_t)_i, op->variants[v].name);
        printf("%s %s %s: %.1f GB %s\n", op->name, op->n_types ? kr_type_name(op->types[t]) : "",
               ck_shape_text(op, p.sizes, shape, sizeof shape), (double)bytes / 1e9,
               fits ? "right" : "left out: too little memory");
    }
    kr_registry_destroy(&registry);
    kr_runtime_destroy(&runtime);
}
END_TEST

START_TEST(every_op_is_listed)
{
    const kr_op *op;
    open_registry();
    for (size_t i = 0, row; (op = kr_registry_op(registry, i)); i++) {
        for (row = 0; row < N_ROWS && strcmp(rows[row].op, op->name) != 0; row++)
            ;
        ck_assert_msg(row < N_ROWS, "%s", op->name);
    }
    kr_registry_destroy(&registry);
    kr_runtime_destroy(&runtime);
}
END_TEST

/* In a process of its own: a driver does not survive the fork() before each test. */
static bool can_run(void)
{
    enum { LEAST = 10 };
    const pid_t child = fork();
    if (!child) {
        kr_runtime_options to = {.struct_size = sizeof to, .driver = getenv("KREGISTRY_TEST_DRIVER")};
        size_t free_bytes, total;
        _exit(kr_runtime_create(&to, &runtime, &err) || strcmp(kr_runtime_driver(runtime).kind, "nvidia") ||
              kr_device_memory(kr_runtime_device(runtime, 0), &free_bytes, &total, &err) ||
              free_bytes >> 30 < LEAST);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && !status;
}

int main(void)
{
    if (!can_run()) {
        fprintf(stderr, "no NVIDIA device with enough memory\n");
        return 77;
    }
    setlinebuf(stdout);
    Suite *suite = suite_create("large");
    TCase *c = tcase_create("large");
    tcase_add_test(c, every_op_is_listed);
    tcase_add_loop_test(c, large, 0, N_ROWS);
    tcase_set_timeout(c, 300);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
