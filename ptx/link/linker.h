/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_LINKER_H
#define KR_LINKER_H

/* nvJitLink, found and called; and what linkers' logs say. */

#include <kregistry/link.h>

#include "ptx/image/image.h"
#include "runtime/base/base.h"

/* An input that has been looked at. */
typedef struct kr__link_part {
    char name[64];
    kr__image_facts facts;
    const void *image;
    size_t bytes; /* PTX: without the NULs at its end */
} kr__link_part;

typedef struct kr__link_result {
    char *image; /* malloc'ed, with one further NUL */
    size_t bytes;
    kr__text log;
} kr__link_result;

/* ---- nvJitLink (nvjitlink.c) ---- */

typedef struct kr__nvjitlink kr__nvjitlink;

/* As kr_linker_options says, for a device's driver, or (0) any. KR_NOT_ON_THIS_MACHINE: there is none; the
 * places tried are in err->log. */
kr_status kr__nvjitlink_open(int driver_version, const char *path, kr__nvjitlink **ret_library,
                             kr_error *err);
void kr__nvjitlink_close(kr__nvjitlink **library); /* frees the handle; the library stays loaded */
/* major 0: it cannot tell */
const char *kr__nvjitlink_path(const kr__nvjitlink *library, int *ret_major, int *ret_minor);

/* The result is the caller's to free, after a failure too. */
kr_status kr__nvjitlink_link(const kr__nvjitlink *library, const kr__link_part *parts, size_t n, kr_cc arch,
                             const kr_link_options *options, kr__link_result *result, kr_error *err);

/* ---- names (names.c) ---- */

/* KR_COMPILE_FAILED: two of the images define the same name. */
kr_status kr__link_check_names(const kr__link_part *parts, size_t n, const char *target, kr_error *err);

/* ---- machine code (linked.c) ---- */

#define KR__LINK_ARCH_ADVICE "Compile it for %s; PTX and LTO-IR may be for an earlier one."
/* KR_INVALID_ARGUMENT: a cubin, or one that a fatbin has for the arch, is linked already.
 * KR_NOT_ON_THIS_DEVICE: PTX or a cubin is for another arch, or a fatbin has nothing for it. */
kr_status kr__link_check_code(const kr__link_part *parts, size_t n, kr_cc arch, const char *target,
                              kr_error *err);

/* ---- logs (log.c) ---- */

/* Fills err (KR_COMPILE_FAILED): the names that the log calls undefined or defined twice, else its first
 * error. */
kr_status kr__link_failed(const char *linker, size_t n_parts, const char *target, const kr__text *log,
                          kr_error *err);

#endif
