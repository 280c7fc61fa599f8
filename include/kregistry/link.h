/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_LINK_H
#define KREGISTRY_LINK_H

#include <kregistry/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * kr_linker: joins PTX, cubins, fatbins and LTO-IR into one image. By nvJitLink where there is one, which
 * needs no driver; else by a device's driver, which links no LTO-IR (drivers since CUDA 12 leave that to
 * nvJitLink). Thread-safe.
 */
typedef struct kr_linker kr_linker;

typedef struct kr_linker_options {
    size_t struct_size;
    const char
        *nvjitlink;    /* that file or folder alone; "none": the driver links. NULL: what KREGISTRY_NVJITLINK
                          names alone ("none" too), else look where kr_nvrtc_open looks; 12.0 or later */
    kr_device *device; /* whose driver takes the result, so that an nvJitLink of a newer major is used only
                          where there is no other, and links where there is none; NULL: no driver counts */
} kr_linker_options;

/* KR_NOT_ON_THIS_MACHINE: neither is there; the places tried are in err->log. The device must outlive it. */
KR_API kr_status kr_linker_create(const kr_linker_options *options, kr_linker **ret_linker, kr_error *err);
KR_API void
kr_linker_destroy(kr_linker **linker); /* the library stays loaded. Accepts NULL; nulls the handle */

typedef struct kr_linker_info {
    const char *path; /* of nvJitLink, or of the driver; lives as long as the linker */
    bool is_driver;
    int major, minor; /* of nvJitLink, 0.0 where it cannot tell (before 12.4); of the driver's CUDA */
} kr_linker_info;

KR_API kr_linker_info kr_linker_get_info(const kr_linker *linker);

/* PTX with or without its final NUL. A fatbin's fitting entry is taken. */
typedef struct kr_link_input {
    const char *name; /* for messages; NULL: by number */
    const void *image;
    size_t image_bytes;
} kr_link_input;

typedef struct kr_link_options {
    size_t struct_size;
    bool ptx; /* give PTX and no cubin: of LTO-IR alone, by nvJitLink alone */
    const char *const
        *options; /* further ones of nvJitLink's: "-g", "-maxrregcount=64"; none where the driver links */
    size_t n_options;
} kr_link_options;

typedef struct kr_linked {
    const void *image; /* PTX: NUL-terminated; image_bytes counts without it */
    size_t image_bytes;
    kr_image_kind kind; /* KR_IMAGE_CUBIN or _PTX */
    const char *log;    /* whole: warnings and remarks; "" where there is none */
} kr_linked;

/* Links the inputs for an arch, which the driver's linker takes from its device: there it must be that
 * device's, or all zeros. KR_COMPILE_FAILED: names that no input defines, or two do (the message names them),
 * PTX that is wrong; the log is in err->log. KR_CORRUPT: an input that is no image. KR_NOT_ON_THIS_DEVICE: an
 * input for another arch, or newer than the linker. KR_NOT_ON_THIS_MACHINE: LTO-IR without nvJitLink.
 * KR_INVALID_ARGUMENT: no input, an option that nvJitLink refuses, an arch that it does not know. */
KR_API kr_status kr_link(kr_linker *linker, const kr_link_input *inputs, size_t n_inputs, kr_cc arch,
                         const kr_link_options *options, kr_linked **ret_linked, kr_error *err);
KR_API void kr_linked_destroy(kr_linked **linked);

#ifdef __cplusplus
}
#endif
#endif
