/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_INSPECT_H
#define KR_INSPECT_H

/* What the files of this folder share; nobody else includes it. */

#include "ptx/image/image.h"

struct kr_inspection {
    const void *bytes;
    size_t n_bytes;
    const void *mapped; /* the bytes, where they are unmapped at the end */
    const char *name;   /* for messages */
    const char *kind;
    size_t n_images;
    kr_image_info *images;
    kr__arena arena; /* texts */
};

/* The pages of a mapped file that were looked at need not stay in memory. */
void kr__inspection_leave(const kr_inspection *in, size_t offset, size_t bytes);

#endif
