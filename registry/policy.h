/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_POLICY_H
#define KR_POLICY_H

/* What the environment says about choosing. It takes choices away and never adds one. */

#include <kregistry/op.h>

#include "runtime/base/base.h"

typedef struct kr__policy {
    kr_cc max_cc;             /* KREGISTRY_MAX_CC: no variant and no code that asks for more; 0.0: not set */
    const char *jit_forced;   /* the variable of CUDA's that has machine code passed over; NULL: none */
    const char *jit_disabled; /* the one that has no PTX compiled */
    const char *variants;     /* KREGISTRY_VARIANT: "op=name,op=name", well formed; NULL: not set */
} kr__policy;

/* Texts live in the arena. KR_INVALID_ARGUMENT names the variable that says nothing sensible. */
kr_status kr__policy_read(kr__policy *ret_policy, kr__arena *arena, kr_error *err);

/* The variant that KREGISTRY_VARIANT names for the op; SIZE_MAX: it names none. */
kr_status kr__policy_variant(const kr__policy *policy, const kr_op *op, size_t *ret_variant, kr_error *err);

/* The next "op=name" of KREGISTRY_VARIANT: the op's name, and *at behind it all; NULL: no more. *at is
 * policy->variants at first. */
const char *kr__policy_next_op(const char **at, size_t *ret_bytes);

#endif
