/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_SIGNATURE_H
#define KR_SIGNATURE_H

/* Are a compiled kernel's parameters what the op's arg lines say? KR_INVALID_ARGUMENT where not, with both
 * sizes: a mismatch is found when an op is built or loaded, instead of in the memory that a launch would
 * damage. */

#include <kregistry/module.h>

#include "registry/descriptor.h"

/* Against PTX. KR_OK also where the text cannot be read: that is the driver's to say. */
kr_status kr__signature_check_ptx(const kr__op_def *def, size_t type_index, size_t variant, const char *ptx,
                                  size_t ptx_bytes, kr_error *err);
/* Against a cubin. */
kr_status kr__signature_check_cubin(const kr__op_def *def, size_t type_index, size_t variant,
                                    const void *cubin, size_t cubin_bytes, kr_error *err);

/* Against a loaded kernel. ptx: the text it was made from, for drivers that cannot tell; or NULL. */
kr_status kr__signature_check(const kr__op_def *def, size_t type_index, size_t variant,
                              const kr_kernel *kernel, const char *ptx, size_t ptx_bytes, kr_error *err);

#endif
