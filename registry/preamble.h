/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_PREAMBLE_H
#define KR_PREAMBLE_H

/* What stands before an op's text when it is compiled: one place for NVRTC and for the host compiler. */

#include <kregistry/compile.h>

#include "registry/descriptor.h"

/* "float": T, or a fixed type, in C. */
const char *kr__c_type(kr_type type);

/* Appends the #defines that tell the op's instances apart for the host compiler: T, KR_TYPE_f32,
 * KR_LOCAL(name). */
void kr__preamble_instance(kr__text *to, const kr_op *op, size_t type_index);

/* ... and the #undefs that take them back. */
void kr__preamble_instance_end(kr__text *to, const kr_op *op, size_t type_index);

/* One variant of one instance for NVRTC. */
typedef struct kr__job {
    const kr__op_def *def;
    size_t type_index, variant;
    kr_cc arch;
    kr_image_kind kind;
    kr_cache *cache; /* as kr_compile_options.cache, */
    bool only_find;  /* and .only_find */
} kr__job;

/* With the same names and the integer types. They are in a header that is included first, so that line
 * numbers in the log are those of the file. */
kr_status kr__op_compile(kr_nvrtc *nvrtc, const kr__job *job, kr_compiled **ret_compiled, kr_error *err);

#endif
