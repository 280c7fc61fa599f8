/* SPDX-License-Identifier: Apache-2.0 */
/* Data for checks: the classes, an op's arguments on the host, and the numeric promises. */

#include "checkkern.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* What an unwritten output holds: -1.2e17 as f32, -6.6e134 as f64, implausible as an integer. */
enum { POISON = 0xdb };

static const struct {
    const char *name;
    bool is_float;
} classes[] = {
#define CK_CLASS_ROW(name, text, is_float) [name] = {text, is_float},
    CK_CLASS_LIST(CK_CLASS_ROW)
#undef CK_CLASS_ROW
};

const char *ck_class_name(ck_class class)
{
    return classes[class].name;
}

bool ck_class_find(const char *name, ck_class *ret_class)
{
    for (int i = 0; i < CK_N_CLASSES; i++)
        if (strcmp(classes[i].name, name) == 0) {
            *ret_class = (ck_class)i;
            return true;
        }
    return false;
}

static bool is_float(kr_type type)
{
    return type == KR_TYPE_F32 || type == KR_TYPE_F64;
}

static bool is_input(const kr_op_arg *arg)
{
    return arg->role == KR_ROLE_IN || arg->role == KR_ROLE_INOUT;
}

static bool is_output(const kr_op_arg *arg)
{
    return arg->role == KR_ROLE_OUT || arg->role == KR_ROLE_INOUT;
}

bool ck_class_fits(ck_class class, const kr_op *op, kr_type type)
{
    if (!classes[class].is_float)
        return true;
    for (size_t i = 0; i < op->n_args; i++)
        if (is_input(&op->args[i]) && is_float(kr_op_arg_type(op, i, type)))
            return true;
    return false;
}

/* ---- promises ---- */

typedef enum promise_kind { EXACT, ULP, CONDITION } promise_kind;

typedef struct promise {
    promise_kind kind;
    double units;
} promise;

static promise promise_of(const kr_op *op)
{
    if (strncmp(op->compare, "ulp ", 4) == 0)
        return (promise){ULP, (double)strtoull(op->compare + 4, NULL, 10)};
    if (strncmp(op->compare, "condition ", 10) == 0)
        return (promise){CONDITION, (double)strtoull(op->compare + 10, NULL, 10)};
    return (promise){EXACT, 0};
}

/* ---- elements ---- */

/* splitmix64: element `index` of a stream, whatever came before it. */
static uint64_t random_bits(uint64_t stream, uint64_t index)
{
    uint64_t z = stream + (index + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double unit(uint64_t r) /* [-1, 1) */
{
    return (double)(r >> 11) * 0x1p-52 - 1;
}

/* Large, yet sums of 2^17 products stay finite where the order of additions is free. */
static double large(uint64_t r, kr_type type, promise_kind kind)
{
    int top = type == KR_TYPE_F32 ? FLT_MAX_EXP : DBL_MAX_EXP;
    int exponent = kind == CONDITION ? top / 2 - 16 : top - 8;
    double mantissa = unit(r) < 0 ? unit(r) - 1 : unit(r) + 1;
    return ldexp(mantissa, exponent + (int)(r & 7) - 1);
}

static double denormal(uint64_t r, kr_type type)
{
    double magnitude = type == KR_TYPE_F32 ? ldexp((double)(1 + (r >> 8) % 0x7fffff), -149)
                                           : ldexp((double)(1 + (r >> 8) % 0xfffffffffffff), -1074);
    return r & 1 ? -magnitude : magnitude;
}

static double float_value(ck_class class, uint64_t r, bool last, kr_type type, promise_kind kind)
{
    if (class == CK_MIXED) {
        class = (ck_class)(r % CK_MIXED);
        r = random_bits(r, 0);
        last = class == CK_NAN || class == CK_INF;
    }
    bool special = last || r % 8 == 0;
    switch (class) {
    case CK_POSITIVE:
        return (unit(r) + 3) / 4;
    case CK_INTEGERS:
        return (double)(r % 17) - 8;
    case CK_ZEROS:
        return 0;
    case CK_LARGE:
        return large(r, type, kind);
    case CK_NEGATIVE_ZERO:
        return -0.0;
    case CK_DENORMAL:
        return denormal(r, type);
    case CK_NAN:
        return special ? (double)NAN : unit(r);
    case CK_INF:
        return special ? (r & 8 ? (double)INFINITY : -(double)INFINITY) : unit(r);
    default:
        return unit(r);
    }
}

static uint64_t integer_value(ck_class class, uint64_t r)
{
    switch (class) {
    case CK_INTEGERS:
        return r % 17;
    case CK_ZEROS:
        return 0;
    case CK_LARGE:
        return r | ~(uint64_t)7;
    default:
        return r;
    }
}

/* The low bytes are the value of every narrower type: this host is little-endian, as the device is. */
static void put_integer(void *at, kr_type type, uint64_t value)
{
    memcpy(at, &value, kr_type_bytes(type));
}

static void put_float(void *at, kr_type type, double value)
{
    float narrow = (float)value;
    if (type == KR_TYPE_F32)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &value, sizeof value);
}

static double get_float(const void *at, kr_type type)
{
    float narrow;
    double value;
    if (type == KR_TYPE_F32) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

static void *element(const ck_problem *problem, void *data, size_t arg, size_t index)
{
    return (char *)data + index * kr_type_bytes(kr_op_arg_type(problem->op, arg, problem->type));
}

static void make(ck_problem *problem, size_t arg, ck_class class, uint64_t seed)
{
    kr_type type = kr_op_arg_type(problem->op, arg, problem->type);
    promise_kind kind = promise_of(problem->op).kind;
    uint64_t stream = random_bits(seed, arg);
    for (size_t i = 0; i < problem->elements[arg]; i++) {
        uint64_t r = random_bits(stream, i);
        void *at = element(problem, problem->given[arg], arg, i);
        if (is_float(type))
            put_float(at, type, float_value(class, r, i + 1 == problem->elements[arg], type, kind));
        else
            put_integer(at, type, integer_value(class, r));
    }
}

/* ---- problems ---- */

static void run_reference(const ck_problem *problem, void *const outputs[])
{
    void *args[KR_MAX_OP_ARGS] = {0};
    for (size_t i = 0; i < problem->op->n_args; i++)
        args[i] = outputs[i] ? outputs[i] : problem->given[i];
    problem->reference(args);
}

static void *copy(const void *data, size_t bytes)
{
    return memcpy(tool_alloc(bytes), data, bytes);
}

static void absolute(ck_problem *problem, size_t arg, void *data)
{
    kr_type type = kr_op_arg_type(problem->op, arg, problem->type);
    for (size_t i = 0; is_float(type) && i < problem->elements[arg]; i++) {
        void *at = element(problem, data, arg, i);
        put_float(at, type, fabs(get_float(at, type)));
    }
}

/* The reference on the absolute values of the inputs. */
static void make_scale(ck_problem *problem)
{
    ck_problem positive = *problem;
    for (size_t i = 0; i < problem->op->n_args; i++) {
        positive.given[i] = problem->given[i] ? copy(problem->given[i], problem->bytes[i]) : NULL;
        if (is_input(&problem->op->args[i]))
            absolute(problem, i, positive.given[i]);
        if (is_output(&problem->op->args[i]))
            problem->scale[i] = positive.given[i];
    }
    run_reference(&positive, problem->scale);
    for (size_t i = 0; i < problem->op->n_args; i++)
        if (!problem->scale[i])
            free(positive.given[i]);
}

static void make_want(ck_problem *problem)
{
    for (size_t i = 0; i < problem->op->n_args; i++)
        if (is_output(&problem->op->args[i]))
            problem->want[i] = copy(problem->given[i], problem->bytes[i]);
    run_reference(problem, problem->want);
    if (promise_of(problem->op).kind == CONDITION)
        make_scale(problem);
}

uint64_t ck_size_limit(const kr_op *op, size_t arg, kr_type type)
{
    return UINT64_MAX >> (64 - 8 * kr_type_bytes(kr_op_arg_type(op, arg, type)));
}

kr_status ck_measure(const kr_op *op, size_t arg, kr_type type, const uint64_t *sizes, size_t *ret_elements,
                     size_t *ret_bytes, kr_error *err)
{
    const kr_op_arg *a = &op->args[arg];
    const size_t element_bytes = kr_type_bytes(kr_op_arg_type(op, arg, type));
    uint64_t elements = 1;
    kr_status status = a->shape ? kr_op_arg_elements(op, arg, sizes, &elements, err) : KR_OK;
    if (status)
        return status;
    if (a->role == KR_ROLE_SIZE && sizes[arg] > ck_size_limit(op, arg, type))
        return tool_refuse(err, "Use a smaller size.",
                           "%s of %s is a %s: %" PRIu64 " is more than it holds, %" PRIu64, a->name, op->name,
                           kr_type_name(kr_op_arg_type(op, arg, type)), sizes[arg],
                           ck_size_limit(op, arg, type));
    if (elements > (uint64_t)PTRDIFF_MAX / element_bytes)
        return tool_refuse(err, "Use smaller sizes.",
                           "%s of %s: %" PRIu64 " elements of %zu bytes are more than memory can hold",
                           a->name, op->name, elements, element_bytes);
    *ret_elements = (size_t)elements;
    *ret_bytes = (size_t)elements * element_bytes;
    return KR_OK;
}

kr_status ck_problem_init(ck_problem *problem, const kr_op *op, kr_type type, kr_reference_fn reference,
                          const uint64_t *sizes, ck_class class, uint64_t seed, kr_error *err)
{
    *problem = (ck_problem){.op = op, .type = type};
    problem->reference = reference ? reference : kr_op_reference(op, type);
    for (size_t i = 0; i < op->n_args; i++) {
        const kr_op_arg *arg = &op->args[i];
        problem->sizes[i] = arg->role == KR_ROLE_SIZE ? sizes[i] : 0;
        if (arg->role == KR_ROLE_WORK)
            continue;
        kr_status status = ck_measure(op, i, type, sizes, &problem->elements[i], &problem->bytes[i], err);
        if (status) {
            ck_problem_finish(problem);
            return status;
        }
        problem->given[i] = tool_try_alloc(problem->bytes[i]);
        if (!problem->given[i]) {
            status = tool_fail(err, KR_OUT_OF_HOST_MEMORY, "%s of %s takes %zu bytes of host memory",
                               arg->name, op->name, problem->bytes[i]);
            tool_advice(err, "Use smaller sizes, or let this process have more memory.");
            ck_problem_finish(problem);
            return status;
        }
        if (arg->role == KR_ROLE_SIZE)
            put_integer(problem->given[i], kr_op_arg_type(op, i, type), sizes[i]);
        else if (arg->role == KR_ROLE_OUT)
            memset(problem->given[i], POISON, problem->bytes[i]);
        else
            make(problem, i, class, seed);
    }
    if (problem->reference)
        make_want(problem);
    return KR_OK;
}

void ck_problem_finish(ck_problem *problem)
{
    for (size_t i = 0; i < KR_MAX_OP_ARGS; i++) {
        free(problem->given[i]);
        free(problem->want[i]);
        free(problem->scale[i]);
        problem->given[i] = problem->want[i] = problem->scale[i] = NULL;
    }
}

/* ---- comparing ---- */

static void format_element(const void *at, kr_type type, char to[32])
{
    uint64_t value = 0;
    if (is_float(type)) {
        snprintf(to, 32, type == KR_TYPE_F32 ? "%.9g" : "%.17g", get_float(at, type));
        return;
    }
    memcpy(&value, at, kr_type_bytes(type));
    snprintf(to, 32, "%" PRIu64, value);
}

/* Floating-point numbers in order, as integers: neighbours differ by one, both zeros are 0. */
static int64_t order(const void *at, kr_type type)
{
    int32_t narrow;
    int64_t value;
    if (type == KR_TYPE_F32) {
        memcpy(&narrow, at, sizeof narrow);
        return narrow < 0 ? -(int64_t)(narrow & INT32_MAX) : narrow;
    }
    memcpy(&value, at, sizeof value);
    return value < 0 ? -(value & INT64_MAX) : value;
}

static double ulps_apart(const void *a, const void *b, kr_type type)
{
    return fabs((double)order(a, type) - (double)order(b, type));
}

/* The error in units of the promise; infinity where no unit fits. */
static double error_of(promise_kind kind, kr_type type, const void *want, const void *got, const void *scale)
{
    double w = get_float(want, type), g = get_float(got, type);
    if (isnan(w) || isnan(g))
        return isnan(w) && isnan(g) ? 0 : (double)INFINITY;
    if (kind == EXACT || isinf(w) || isinf(g))
        return memcmp(want, got, kr_type_bytes(type)) == 0 ? 0 : (double)INFINITY;
    if (kind == ULP)
        return ulps_apart(want, got, type);
    double epsilon = type == KR_TYPE_F32 ? FLT_EPSILON : DBL_EPSILON;
    double least = type == KR_TYPE_F32 ? 0x1p-149 : 0x1p-1074;
    return w == g ? 0 : fabs(g - w) / (epsilon * get_float(scale, type) + least);
}

void ck_compare(const ck_problem *problem, size_t arg, const void *got, ck_result *result)
{
    kr_type type = kr_op_arg_type(problem->op, arg, problem->type);
    size_t bytes = kr_type_bytes(type);
    promise p = promise_of(problem->op);
    const char *want = problem->want[arg], *scale = problem->scale[arg];
    if (!want)
        return;
    for (size_t i = 0; i < problem->elements[arg]; i++) {
        const char *w = want + i * bytes, *g = (const char *)got + i * bytes;
        double error = is_float(type) ? error_of(p.kind, type, w, g, scale ? scale + i * bytes : NULL)
                                      : (memcmp(w, g, bytes) == 0 ? 0 : (double)INFINITY);
        if (error > result->max_error)
            result->max_error = error;
        if (!(error <= p.units) && result->ok) {
            result->ok = false;
            result->what = "value";
            result->arg = problem->op->args[arg].name;
            result->index = (int64_t)i;
            format_element(w, type, result->expected);
            format_element(g, type, result->got);
        }
    }
}
