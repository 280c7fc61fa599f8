/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_SHIPPED_H
#define KR_SHIPPED_H

/* Shipped images one by one: a fatbin's entries stand for themselves. */

#include "ptx/image/image.h"
#include "registry/descriptor.h"
#include "runtime/base/base.h"

typedef struct kr__shipped {
    const kr__image *image;
    kr_image_kind kind;
    kr_cc arch;
    int isa;                 /* of PTX: 70 for 7.0; else 0 */
    kr__fatbin_entry packed; /* in a fatbin */
} kr__shipped;

/* *ret_list is to be freed; NULL where there are none. KR_CORRUPT: a fatbin that cannot be read. */
kr_status kr__shipped_list(const kr__image *images, size_t n_images, kr__shipped **ret_list, size_t *ret_n,
                           kr_error *err);

/* The bytes of one, held to their SHA-256. They are where they are shipped, and *ret_made is NULL, or were
 * unpacked to it: malloc'ed. */
kr_status kr__shipped_bytes(const kr__shipped *shipped, const char **ret_data, size_t *ret_bytes,
                            char **ret_made, kr_error *err);

/* 13000: a cubin made by CUDA 13.0. 0: it does not say, or cannot be read: loading it tells why. */
int kr__shipped_toolkit(const kr__shipped *shipped);

/* Can PTX that is newer than the driver be releveled for it? false: err says what cannot. What is not known
 * is for loading it to tell. */
bool kr__shipped_relevels(const kr__shipped *shipped, int driver_version, kr_error *err);

#endif
