/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKKERN_H
#define CHECKKERN_H

/*
 * checkkern: are an op's kernels right? Each check makes data of one class, runs one variant on one device
 * between red zones, and holds the result to the op's numeric promise against its C reference.
 *
 * ck_problem  an op's arguments on the host, and what the reference makes of them
 * ck_check    one problem, one variant, one device
 * ck_walk     every variant, device, edge shape, data class and alignment of an op, one case after the other
 */

#include <kregistry/kregistry.h>

/* X(enumerator, name on the command line, does it need a floating-point argument) */
#define CK_CLASS_LIST(X)                                                                        \
    X(CK_ORDINARY, "ordinary", false) /* uniform in [-1, 1); integers over their whole range */ \
    X(CK_POSITIVE, "positive", true)  /* uniform in [0.5, 1): sums that lose bits show it */    \
    X(CK_INTEGERS, "integers", false) /* -8 to 8: sums are exact */                             \
    X(CK_ZEROS, "zeros", false)                                                                 \
    X(CK_LARGE, "large", false) /* as large as the promise allows without overflow */           \
    X(CK_NEGATIVE_ZERO, "negative-zero", true)                                                  \
    X(CK_DENORMAL, "denormal", true)                                                            \
    X(CK_NAN, "nan", true)     /* one in eight and the last */                                  \
    X(CK_INF, "inf", true)     /* likewise */                                                   \
    X(CK_MIXED, "mixed", true) /* all of these */

typedef enum ck_class {
#define CK_CLASS_ENUM(name, text, is_float) name,
    CK_CLASS_LIST(CK_CLASS_ENUM)
#undef CK_CLASS_ENUM
        CK_N_CLASSES
} ck_class;

const char *ck_class_name(ck_class class);
bool ck_class_find(const char *name, ck_class *ret_class);
/* Does the class say something about this op? */
bool ck_class_fits(ck_class class, const kr_op *op, kr_type type);

/* ---- problems ---- */

typedef struct ck_problem {
    const kr_op *op;
    kr_type type;
    kr_reference_fn reference;
    uint64_t sizes[KR_MAX_OP_ARGS];
    size_t elements[KR_MAX_OP_ARGS]; /* 1 for scalars, 0 for work arguments */
    size_t bytes[KR_MAX_OP_ARGS];
    void *given[KR_MAX_OP_ARGS]; /* each argument before the run; out arguments are poisoned */
    void *want[KR_MAX_OP_ARGS];  /* out and inout arguments after it */
    void *scale[KR_MAX_OP_ARGS]; /* `condition`: the same for the absolute values of the inputs */
} ck_problem;

/* What an argument that is not of role `work` takes on the host, with sizes as in kr_op_arg_elements.
 * KR_INVALID_ARGUMENT: more than can be counted, or a size that its type cannot hold. */
kr_status ck_measure(const kr_op *op, size_t arg, kr_type type, const uint64_t *sizes, size_t *ret_elements,
                     size_t *ret_bytes, kr_error *err);
/* The largest value of a size's type. */
uint64_t ck_size_limit(const kr_op *op, size_t arg, kr_type type);

/* sizes as in kr_op_arg_elements. reference NULL: the op's own; where there is none, want stays empty. */
kr_status ck_problem_init(ck_problem *problem, const kr_op *op, kr_type type, kr_reference_fn reference,
                          const uint64_t *sizes, ck_class class, uint64_t seed, kr_error *err);
void ck_problem_finish(ck_problem *problem);

/* The first thing wrong, and the largest error met. */
typedef struct ck_result {
    bool ok;
    const char *what; /* "value", "red zone", "input changed", "not repeatable" */
    const char *arg;  /* the argument's name */
    int64_t index;    /* of the element; negative or past the end: in a red zone */
    char expected[32];
    char got[32];
    double max_error; /* in units of the promise */
} ck_result;

/* Holds an argument after a run to the promise. Without a reference there is nothing to hold it to. */
void ck_compare(const ck_problem *problem, size_t arg, const void *got, ck_result *result);

/* ---- checks ---- */

typedef struct ck_case {
    kr_registry *registry;
    kr_device *device;
    const kr_op *op;
    kr_type type;
    kr_reference_fn reference; /* NULL: the op's own */
    const char *variant;       /* NULL: the chosen one */
    uint64_t sizes[KR_MAX_OP_ARGS];
    ck_class class;
    uint64_t seed;
    size_t shift_bytes; /* of every buffer from a 256-byte boundary; 0 or a multiple of each element's size */
    unsigned block[3];
} ck_case;

/* An error is what kept the check from being made (a fault, no memory); a wrong kernel is a result. */
kr_status ck_check(const ck_case *one, ck_result *ret_result, kr_error *err);

/* A scalar argument of a launch from its value in memory. */
kr_arg ck_scalar(kr_type type, const void *value);
/* "saxpy.f32", or "histogram" where the op has no types. */
char *ck_full_name(const kr_op *op, kr_type type, char *to, size_t bytes);
enum { CK_SHAPE_BYTES = 21 * KR_MAX_OP_ARGS };
/* "31x33": all sizes in their order. */
char *ck_shape_text(const kr_op *op, const uint64_t *sizes, char *to, size_t bytes);

typedef struct ck_walk_options {
    bool quick;
    const char *variant;       /* NULL: all that the device can run */
    const kr_cc *max_cc;       /* NULL: all; else variants that ask for no more */
    const ck_class *class;     /* NULL: all */
    const uint64_t *sizes;     /* NULL: the edge shapes */
    const size_t *shift_bytes; /* NULL: aligned, and misaligned where the variant allows it */
    uint64_t seed;
    kr_reference_fn reference;
} ck_walk_options;

/* Calls visit for each case until it answers false. A variant that the device cannot run is left out, unless
 * it was asked for by name. KR_INVALID_ARGUMENT: shift_bytes is not what each variant can have. */
kr_status ck_walk(kr_registry *registry, kr_device *const *devices, size_t n_devices, const kr_op *op,
                  kr_type type, const ck_walk_options *options, bool (*visit)(void *user, const ck_case *one),
                  void *user, kr_error *err);

#endif
