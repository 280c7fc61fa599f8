/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_EXPRESSION_H
#define KR_EXPRESSION_H

/* The unsigned expressions of descriptors: parsed once, evaluated with the values of an op's sizes. */

#include <kregistry/op.h>

#include "runtime/base/base.h"

typedef struct kr__node kr__node;

typedef struct kr__expression {
    const char *text; /* as written */
    const kr__node *root;
    bool uses_grid;
    bool uses_sizeof;
} kr__expression;

enum { KR__MAX_EXPRESSION_BYTES = 256 }; /* also bounds the depth of the tree */

/* What was wrong, in words: "there is no size \"m\" before it". */
typedef char kr__problem[256];

/* Reads text[0..bytes) whole. Names are the size arguments that `op` has so far. NULL fills `problem`. */
const kr__expression *kr__expression_parse(kr__arena *arena, const kr_op *op, const char *text, size_t bytes,
                                           kr__problem problem);

typedef struct kr__values {
    const uint64_t *sizes; /* by argument index */
    uint64_t sizeof_t;
    uint64_t grid;
} kr__values;

/* False: overflow, a difference below zero or a division by zero, told in `problem`. */
bool kr__expression_value(const kr__expression *expression, const kr_op *op, const kr__values *values,
                          uint64_t *ret_value, kr__problem problem);

/* Is it SIZE, or SIZE*... with SIZE nowhere else: a row-major shape that can be cut along SIZE? */
bool kr__expression_is_cut_by(const kr__expression *expression, size_t size_arg);

/* Does it name that size at all? */
bool kr__expression_names(const kr__expression *expression, size_t size_arg);

#endif
