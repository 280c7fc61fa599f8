/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_COMPILE_H
#define KREGISTRY_COMPILE_H

#include <stdbool.h>

#include <kregistry/cache.h>
#include <kregistry/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* kr_nvrtc: an opened NVRTC. Needs no driver and no device. Thread-safe. */
typedef struct kr_nvrtc kr_nvrtc;

/* path: that file or folder alone; "none": no NVRTC is wanted. NULL: what KREGISTRY_NVRTC names alone ("none"
 * too), else look where NVRTC lives: already loaded, CUDA_HOME and CUDA_PATH, Python packages, toolkits,
 * system folders; 11.2 or later. The builtins library beside it is opened too. KR_NOT_ON_THIS_MACHINE: there
 * is none, or none is wanted; the places tried are in err->log. KR_IO: no descriptor is left, so nothing is
 * known of what is installed. */
KR_API kr_status kr_nvrtc_open(const char *path, kr_nvrtc **ret_nvrtc, kr_error *err);
/* The one for a driver of that version (12040): an NVRTC of a newer major, whose machine code the driver does
 * not take, only where there is no other. A registry opens its own so. 0: any driver. */
KR_API kr_status kr_nvrtc_open_for(int driver_version, const char *path, kr_nvrtc **ret_nvrtc, kr_error *err);
KR_API void kr_nvrtc_close(kr_nvrtc **nvrtc); /* frees the handle; the library stays loaded */

typedef struct kr_nvrtc_info {
    const char *path;
    int major, minor;
    const int *archs; /* supported: 75, 80, ... ascending */
    size_t n_archs;
    const char *include; /* the folder of the toolkit's headers beside it; NULL: there are none */
    int include_version; /* which CUDA's they are: 13000; 0: not known */
} kr_nvrtc_info;

KR_API kr_nvrtc_info kr_nvrtc_get_info(const kr_nvrtc *nvrtc);

typedef struct kr_compile_options {
    size_t struct_size;
    kr_image_kind kind;         /* KR_IMAGE_PTX, _CUBIN, _LTOIR (for kr_link), or _FATBIN:
                                   cubin and PTX of one compile */
    const char *const *options; /* further NVRTC options, one element each; --std=c++17 unless given here */
    size_t n_options;
    const char *const *name_expressions; /* C++ names to be given their lowered names */
    size_t n_name_expressions;
    const char *const *header_names; /* headers given as text */
    const char *const *header_texts;
    size_t n_headers;
    kr_cache *cache; /* where the result is found, or kept once it is compiled; NULL: nowhere */
    bool only_find;  /* there, and compile nothing: KR_NOT_FOUND where it is not */
} kr_compile_options;

/* The result of a compile, with everything in it freed by kr_compiled_destroy. */
typedef struct kr_compiled {
    kr_image_kind kind; /* of what came back: PTX where NVRTC has no cubin for the options */
    kr_cc arch;
    const void *image;
    size_t image_bytes;
    const char *ptx; /* kind FATBIN: the PTX half, NUL-terminated; else NULL, or the image */
    size_t n_entries;
    const char *const *entries;       /* kernel names as the image has them (kind LTOIR: none) */
    const char *const *lowered_names; /* n_name_expressions of them */
    const char *log;                  /* whole; "" when the compiler said nothing */
    bool is_found;                    /* in options.cache: nothing was compiled */
    const char *cache_note;           /* why it was not found there, or is not kept; "" */
} kr_compiled;

/* Compiles `source` (NUL-terminated; `name` is its file name in messages, or NULL) for `arch`.
 * KR_COMPILE_FAILED: err->log holds the log with numbered source lines round each error.
 * KR_NOT_ON_THIS_MACHINE: this NVRTC does not know the arch (the ones it knows are named).
 * KR_INVALID_ARGUMENT: an option NVRTC refuses (all options, the version and the path are named).
 * While it compiles, NVRTC 13.0 has SIGINT and SIGTERM end the process with exit code 4. */
KR_API kr_status kr_compile(kr_nvrtc *nvrtc, const char *name, const char *source, kr_cc arch,
                            const kr_compile_options *options, kr_compiled **ret_compiled, kr_error *err);
KR_API void kr_compiled_destroy(kr_compiled **compiled);

#ifdef __cplusplus
}
#endif
#endif
