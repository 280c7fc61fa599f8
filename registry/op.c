/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "registry/internal.h"

const char *kr_arg_role_name(kr_arg_role role)
{
    static const char *const names[] = {"size", "in", "out", "inout", "work"};
    return (size_t)role < KR_COUNT(names) ? names[role] : "?";
}

kr_type kr_op_arg_type(const kr_op *op, size_t arg, kr_type type)
{
    const kr__op_def *def = kr__op_def_of(op);
    return op && arg < op->n_args && !def->arg_is_t[arg] ? def->arg_types[arg] : type;
}

static kr_status value_of(const kr_op *op, const kr__expression *expression, const kr__values *values,
                          uint64_t *ret_value, kr_error *err)
{
    kr__problem problem;
    if (kr__expression_value(expression, op, values, ret_value, problem))
        return KR_OK;
    KR_FAIL(err, KR_INVALID_ARGUMENT, "%s", problem);
    kr__error_op(err, op->name);
    kr__error_advice(err, "Give sizes whose product is a number of elements that can exist.");
    return KR_INVALID_ARGUMENT;
}

static kr_status check_arg(const kr_op *op, size_t arg, kr_error *err)
{
    return arg < op->n_args ? KR_OK
                            : KR_FAIL(err, KR_INVALID_ARGUMENT, "%s has %zu arguments; there is no index %zu",
                                      op->name, op->n_args, arg);
}

kr_status kr_op_arg_elements(const kr_op *op, size_t arg, const uint64_t sizes[KR_MAX_OP_ARGS],
                             uint64_t *ret_elements, kr_error *err)
{
    KR_REQUIRE(err, op, sizes, ret_elements);
    const kr__op_def *def = kr__op_def_of(op);
    if (check_arg(op, arg, err))
        return KR_INVALID_ARGUMENT;
    if (op->args[arg].role == KR_ROLE_WORK)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: \"%s\" is scratch whose size follows from the launch",
                       op->name, op->args[arg].name);
    if (!def->shapes[arg]) {
        *ret_elements = 1;
        return KR_OK;
    }
    uint64_t elements;
    const kr_status status = value_of(op, def->shapes[arg], &(kr__values){.sizes = sizes}, &elements, err);
    if (status)
        return status;
    if (elements > (uint64_t)INT64_MAX)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "%s: \"%s\" would have %llu elements, past 2^63", op->name,
                       op->args[arg].name, (unsigned long long)elements);
    *ret_elements = elements;
    return KR_OK;
}

kr_status kr_op_arg_minimum(const kr_op *op, size_t arg, const uint64_t sizes[KR_MAX_OP_ARGS],
                            uint64_t *ret_minimum, kr_error *err)
{
    KR_REQUIRE(err, op, sizes, ret_minimum);
    if (check_arg(op, arg, err))
        return KR_INVALID_ARGUMENT;
    const kr__expression *minimum = kr__op_def_of(op)->minimums[arg];
    if (minimum)
        return value_of(op, minimum, &(kr__values){.sizes = sizes}, ret_minimum, err);
    *ret_minimum = 0;
    return KR_OK;
}

kr_status kr_op_cost(const kr_op *op, kr_type type, const uint64_t sizes[KR_MAX_OP_ARGS], double *ret_bytes,
                     double *ret_flops, kr_error *err)
{
    KR_REQUIRE(err, op, sizes, ret_bytes, ret_flops);
    const kr__op_def *def = kr__op_def_of(op);
    const kr__values values = {.sizes = sizes, .sizeof_t = op->n_types ? kr_type_bytes(type) : 0};
    uint64_t bytes = 0, flops = 0;
    kr_status status = def->cost_bytes ? value_of(op, def->cost_bytes, &values, &bytes, err) : KR_OK;
    if (!status && def->cost_flops)
        status = value_of(op, def->cost_flops, &values, &flops, err);
    if (status)
        return status;
    *ret_bytes = (double)bytes;
    *ret_flops = (double)flops;
    return KR_OK;
}

kr_reference_fn kr_op_reference(const kr_op *op, kr_type type)
{
    const kr__op_def *def = kr__op_def_of(op);
    if (!op || !def->references)
        return NULL;
    for (size_t i = 0; i < kr__op_n_instances(op); i++)
        if (!op->n_types || op->types[i] == type)
            return def->references[i];
    return NULL;
}
