/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_OP_H
#define KREGISTRY_OP_H

#include <stdbool.h>

#include <kregistry/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an op is: its descriptor, read from the `//!` lines of its `.cu` file. Plain data, constant for
 * the life of its registry. The grammar is in docs/descriptor.md. */

#define KR_MAX_OP_ARGS 16
#define KR_MAX_OP_TYPES 8
#define KR_MAX_OP_VARIANTS 8

typedef enum kr_arg_role {
    KR_ROLE_SIZE,  /* an integer scalar that shapes may name */
    KR_ROLE_IN,    /* read */
    KR_ROLE_OUT,   /* written whole */
    KR_ROLE_INOUT, /* read and written */
    KR_ROLE_WORK   /* scratch that the registry provides, zeroed; the caller does not pass it */
} kr_arg_role;

KR_API const char *kr_arg_role_name(kr_arg_role role); /* "size", "in", "out", "inout", "work" */

typedef struct kr_op_arg {
    const char *name;
    const char *type;  /* as written: "T", "u64", "f32" */
    const char *shape; /* as written between the brackets: "rows*cols"; NULL: a scalar */
    kr_arg_role role;
    const char *minimum; /* KR_ROLE_SIZE: the expression after >=, or NULL */
} kr_op_arg;

typedef struct kr_op_variant {
    const char *name;
    const char *requirements; /* as written: "cc>=7.0 align=16", or "" */
} kr_op_variant;

typedef struct kr_op {
    const char *name; /* "saxpy" */
    const char *brief;
    const char *source; /* where the definition comes from: "BLAS level 1, AXPY" */
    const char *file;   /* the .cu file's name */
    size_t n_types;     /* 0: the op has no type parameter and its full name is its name */
    kr_type types[KR_MAX_OP_TYPES];
    size_t n_args;
    kr_op_arg args[KR_MAX_OP_ARGS];
    size_t n_variants;
    kr_op_variant variants[KR_MAX_OP_VARIANTS];
    const char *compare; /* "exact", "ulp 1", "condition 4": the numeric promise */
    const char *split;   /* the size argument by which the op can be divided over devices, or NULL */
} kr_op;

/* The element type of an argument, with T read as `type` (ignored where the op has no T). */
KR_API kr_type kr_op_arg_type(const kr_op *op, size_t arg, kr_type type);

/* Elements of a buffer argument (1 for scalars), from the values of the size arguments: sizes[i] is the
 * value of argument i where that is a size, ignored elsewhere. KR_INVALID_ARGUMENT: not a buffer,
 * overflow past 2^63, or a work argument (whose shape also depends on the launch). */
KR_API kr_status kr_op_arg_elements(const kr_op *op, size_t arg, const uint64_t sizes[KR_MAX_OP_ARGS],
                                    uint64_t *ret_elements, kr_error *err);

/* The least value a size argument may have, from the size arguments before it (0 without a minimum). */
KR_API kr_status kr_op_arg_minimum(const kr_op *op, size_t arg, const uint64_t sizes[KR_MAX_OP_ARGS],
                                   uint64_t *ret_minimum, kr_error *err);

/* Bytes moved and floating-point operations by the op's cost line; 0 where it has none. */
KR_API kr_status kr_op_cost(const kr_op *op, kr_type type, const uint64_t sizes[KR_MAX_OP_ARGS],
                            double *ret_bytes, double *ret_flops, kr_error *err);

/* The op's C reference for a type: args[i] points at the scalar, or is the host buffer, of argument i
 * (work arguments included, as NULL). NULL: there is none (an op added at run time). */
typedef void (*kr_reference_fn)(void *const args[]);
KR_API kr_reference_fn kr_op_reference(const kr_op *op, kr_type type);

#ifdef __cplusplus
}
#endif
#endif
