/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "registry/internal.h"

size_t kr__caller_arg(const kr_op *op, size_t index)
{
    size_t at = 0;
    for (; at < op->n_args; at++)
        if (op->args[at].role != KR_ROLE_WORK && index-- == 0)
            break;
    return at;
}

size_t kr__n_caller_args(const kr_op *op)
{
    size_t n = 0;
    for (size_t i = 0; i < op->n_args; i++)
        n += op->args[i].role != KR_ROLE_WORK;
    return n;
}

static kr_type element_type(const kr__op_def *def, size_t type_index, size_t index)
{
    return kr_op_arg_type(&def->op, index, def->op.n_types ? def->op.types[type_index] : KR_TYPE_U8);
}

kr_status kr__arg_bytes(const kr__op_def *def, size_t type_index, size_t index, const uint64_t *sizes,
                        uint64_t grid, uint64_t *ret_bytes, kr_error *err)
{
    const kr_op_arg *arg = &def->op.args[index];
    const size_t size = kr_type_bytes(element_type(def, type_index, index));
    kr__problem problem;
    uint64_t elements, bytes;
    if (!kr__expression_value(def->shapes[index], &def->op, &(kr__values){.sizes = sizes, .grid = grid},
                              &elements, problem))
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "buffer '%s': %s", arg->name, problem);
    if (__builtin_mul_overflow(elements, size, &bytes) || bytes > (uint64_t)INT64_MAX)
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "buffer '%s' would have %" PRIu64 " elements of %zu bytes, past 2^63 bytes", arg->name,
                       elements, size);
    *ret_bytes = bytes;
    return KR_OK;
}

/* "n=1000 m=3": the sizes that a shape names. */
static void list_sizes(const kr__op_def *def, const kr__expression *shape, const uint64_t *sizes, char *to,
                       size_t bytes)
{
    to[0] = '\0';
    for (size_t i = 0; i < def->op.n_args; i++)
        if (kr__expression_names(shape, i))
            kr__append(to, bytes, "%s%s=%" PRIu64, *to ? " " : "", def->op.args[i].name, sizes[i]);
}

static kr_status bind_scalar(const kr__op_def *def, size_t type_index, size_t index, kr_device *device,
                             const kr_arg *arg, kr__bound *bound, kr_error *err)
{
    const kr_op_arg *said = &def->op.args[index];
    const kr_type type = element_type(def, type_index, index);
    if (arg->kind != KR_ARG_SCALAR)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "argument %zu '%s' is a scalar %s, not a buffer", index + 1,
                       said->name, kr_type_name(type));
    if (arg->type != type)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "argument %zu '%s' is %s, not %s", index + 1, said->name,
                       kr_type_name(type), kr_type_name(arg->type));
    size_t param_bytes;
    kr_status status =
        kr__param_pack(arg, index + 1, said->name, device, &bound->params[index], &param_bytes, err);
    if (status || said->role != KR_ROLE_SIZE)
        return status;
    bound->sizes[index] = arg->value.u64;
    uint64_t least;
    status = kr_op_arg_minimum(&def->op, index, bound->sizes, &least, err);
    if (status)
        return status;
    if (arg->value.u64 < least)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "size '%s' is %" PRIu64 "; the least is %" PRIu64,
                       said->name, arg->value.u64, least);
    return KR_OK;
}

static kr_status bind_buffer(const kr__op_def *def, size_t type_index, size_t index, kr_device *device,
                             const kr_arg *arg, kr__bound *bound, kr_error *err)
{
    const kr_op_arg *said = &def->op.args[index];
    const char *type = kr_type_name(element_type(def, type_index, index));
    if (arg->kind == KR_ARG_SCALAR)
        return KR_FAIL(err, KR_INVALID_ARGUMENT, "argument %zu '%s' is a buffer %s[%s], not a scalar",
                       index + 1, said->name, type, said->shape);
    uint64_t bytes;
    size_t param_bytes;
    kr__param *param = &bound->params[index];
    kr_status status = kr__arg_bytes(def, type_index, index, bound->sizes, 0, &bytes, err);
    if (!status)
        status = kr__param_pack(arg, index + 1, said->name, device, param, &param_bytes, err);
    if (status)
        return status;
    if (arg->kind == KR_ARG_BUFFER && arg->value.buffer->bytes - arg->offset_bytes < bytes) {
        char sizes[128];
        list_sizes(def, def->shapes[index], bound->sizes, sizes, sizeof sizes);
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "argument %zu '%s' needs %" PRIu64 " bytes for %s[%s] with %s; the buffer has %zu",
                       index + 1, said->name, bytes, type, said->shape, sizes,
                       arg->value.buffer->bytes - arg->offset_bytes);
    }
    const uint64_t address = param->u64;
    if (bytes && !address)
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "argument %zu '%s' is address 0; it needs %" PRIu64 " bytes for %s[%s]", index + 1,
                       said->name, bytes, type, said->shape);
    const size_t size = kr_type_bytes(element_type(def, type_index, index));
    if (address % size)
        return KR_FAIL(err, KR_INVALID_ARGUMENT,
                       "argument %zu '%s' is at 0x%" PRIx64 ", which is no multiple of the %zu "
                       "bytes of %s",
                       index + 1, said->name, address, size, type);
    const uint64_t align = address & -address; /* 0 for address 0, which is aligned to anything */
    if (align && align < bound->align_bytes)
        bound->align_bytes = align;
    return KR_OK;
}

kr_status kr__bind_one(const kr__op_def *def, size_t type_index, size_t index, kr_device *device,
                       const kr_arg *arg, kr__bound *bound, kr_error *err)
{
    return def->op.args[index].shape ? bind_buffer(def, type_index, index, device, arg, bound, err)
                                     : bind_scalar(def, type_index, index, device, arg, bound, err);
}

static kr_status check_list(const kr_op *op, kr_args args, kr_error *err)
{
    const size_t n = args.n;
    const size_t want = kr__n_caller_args(op);
    if (n == want)
        return !n || args.list ? KR_OK
                               : KR_FAIL(err, KR_INVALID_ARGUMENT, "the list of the arguments is NULL");
    char names[256] = "";
    for (size_t i = 0; i < want; i++)
        kr__append(names, sizeof names, "%s%s", i ? ", " : "", op->args[kr__caller_arg(op, i)].name);
    return KR_FAIL(err, KR_INVALID_ARGUMENT, "%zu arguments are given; there are %zu: %s", n, want, names);
}

kr_status kr__bind(const kr__op_def *def, size_t type_index, kr_device *device, kr_args args,
                   kr__bound *ret_bound, kr_error *err)
{
    const kr_op *op = &def->op;
    kr__bound bound = {.align_bytes = UINT64_MAX / 2 + 1};
    kr_status status = check_list(op, args, err);
    for (size_t i = 0; i < args.n && !status; i++)
        status = kr__bind_one(def, type_index, kr__caller_arg(op, i), device, &args.list[i], &bound, err);
    if (!status) {
        *ret_bound = bound;
        return KR_OK;
    }
    char name[KR__MAX_FULL_NAME];
    kr__error_op(err, kr__op_full_name(op, type_index, name));
    kr__error_device(err, device->info.ordinal);
    kr__error_advice_if_none(err, "`kregistry list %s` shows the arguments.", op->name);
    return status;
}
