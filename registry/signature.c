/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/signature.h"

#include <string.h>

#include "ptx/front/ptx.h"
#include "ptx/image/image.h"

/* What the compiled kernel says of its parameters. */
typedef struct signature {
    size_t n;
    size_t bytes[KR_MAX_OP_ARGS + 1]; /* of the first ones */
} signature;

static kr_status compare(const kr__op_def *def, size_t type_index, size_t variant, const signature *compiled,
                         kr_error *err)
{
    const kr_op *op = &def->op;
    char name[KR__MAX_FULL_NAME];
    kr__op_full_name(op, type_index, name);
    const char *variant_name = op->variants[variant].name;
    kr_status status = KR_OK;
    for (size_t i = 0; i < op->n_args && i < compiled->n && !status; i++) {
        const kr_op_arg *arg = &op->args[i];
        const kr_type type = kr_op_arg_type(op, i, op->n_types ? op->types[type_index] : KR_TYPE_U8);
        const size_t bytes = arg->shape ? 8 : kr_type_bytes(type);
        if (bytes != compiled->bytes[i])
            status = KR_FAIL(err, KR_INVALID_ARGUMENT,
                             "op %s variant %s: argument %zu '%s' is %s (%zu bytes) in the descriptor, "
                             "%zu bytes in the compiled kernel",
                             name, variant_name, i + 1, arg->name,
                             arg->shape ? "a buffer" : kr_type_name(type), bytes, compiled->bytes[i]);
    }
    if (!status && compiled->n != op->n_args)
        status = KR_FAIL(
            err, KR_INVALID_ARGUMENT,
            "op %s variant %s: %zu arguments in the descriptor, %zu parameters in the compiled kernel", name,
            variant_name, op->n_args, compiled->n);
    if (status) {
        kr__error_op(err, name);
        kr__error_advice(err, "Make the kernel's parameters in %s those of its arg lines.", op->file);
    }
    return status;
}

kr_status kr__signature_check_ptx(const kr__op_def *def, size_t type_index, size_t variant, const char *ptx,
                                  size_t ptx_bytes, kr_error *err)
{
    ptx_module *module = NULL;
    ptx_problem problem = {0};
    const bool parsed = kr__ptx_parse(ptx, ptx_bytes, NULL, &module, &problem);
    kr__text_free(&problem.log);
    if (!parsed)
        return KR_OK;
    kr_status status = KR_OK;
    const ptx_function *kernel = kr__ptx_find_function(module, def->op.variants[variant].name);
    if (kernel && kernel->is_entry) {
        signature s = {.n = kernel->n_params};
        for (size_t i = 0; i < s.n && i < KR_COUNT(s.bytes); i++)
            s.bytes[i] = kernel->params[i]->bytes;
        status = compare(def, type_index, variant, &s, err);
    }
    kr__ptx_module_free(&module);
    return status;
}

kr_status kr__signature_check_cubin(const kr__op_def *def, size_t type_index, size_t variant,
                                    const void *cubin, size_t cubin_bytes, kr_error *err)
{
    kr__cubin *read = NULL;
    kr_status status = kr__cubin_read(cubin, cubin_bytes, &read, err);
    if (status)
        return status;
    const kr_image_kernel *kernel = read->kernels, *end = kernel + read->n_kernels;
    while (kernel < end && strcmp(kernel->name, def->op.variants[variant].name) != 0)
        kernel++;
    if (kernel < end) {
        signature s = {.n = kernel->n_params};
        for (size_t i = 0; i < s.n && i < KR_COUNT(s.bytes); i++)
            s.bytes[i] = kernel->params[i].bytes;
        status = compare(def, type_index, variant, &s, err);
    }
    kr__cubin_free(&read);
    return status;
}

kr_status kr__signature_check(const kr__op_def *def, size_t type_index, size_t variant,
                              const kr_kernel *kernel, const char *ptx, size_t ptx_bytes, kr_error *err)
{
    signature s = {0};
    kr_status status = KR_OK;
    size_t offset;
    while (s.n < KR_COUNT(s.bytes) && !status)
        if (!(status = kr_kernel_param(kernel, s.n, &offset, &s.bytes[s.n], NULL)))
            s.n++;
    if (!status || status == KR_NOT_FOUND)
        return compare(def, type_index, variant, &s, err);
    return ptx ? kr__signature_check_ptx(def, type_index, variant, ptx, ptx_bytes, err) : KR_OK;
}
