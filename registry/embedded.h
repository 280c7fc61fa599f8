/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_EMBEDDED_H
#define KR_EMBEDDED_H

/* What tools/embed.c makes of the .cu files at build time, as tables that the registry reads. */

#include <kregistry/module.h>
#include <kregistry/op.h>

#include "registry/descriptor.h"

typedef struct kr__embedded_image {
    size_t type;    /* index into the op's types */
    size_t variant; /* index into its variants */
    kr_image_kind kind;
    kr_cc arch;
    int isa; /* PTX ISA, 70 for 7.0; 0 for cubins */
    const char *bytes;
    size_t n_bytes;
} kr__embedded_image;

typedef struct kr__embedded_op {
    const char *file; /* "saxpy.cu" */
    const char *text;
    size_t text_bytes;
    kr__headers headers;
    const kr_reference_fn *references; /* one a type, or one where the op has no types */
    const kr__embedded_image *images;
    size_t n_images;
} kr__embedded_op;

extern const kr__embedded_op kr__embedded_ops[];
extern const size_t kr__n_embedded_ops;

#endif
