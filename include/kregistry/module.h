/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_MODULE_H
#define KREGISTRY_MODULE_H

#include <kregistry/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loaded code and its kernels. A module is for one device; kernels live as long as their module. */
typedef struct kr_module kr_module;
typedef struct kr_kernel kr_kernel;

typedef enum kr_image_kind { KR_IMAGE_PTX, KR_IMAGE_CUBIN, KR_IMAGE_FATBIN, KR_IMAGE_LTOIR } kr_image_kind;

KR_API const char *kr_image_kind_name(kr_image_kind kind); /* "ptx", "cubin", "fatbin", "ltoir" */

/* Which kind of image the bytes are, by their content. KR_CORRUPT when none. */
KR_API kr_status kr_image_kind_of(const void *image, size_t image_bytes, kr_image_kind *ret_kind,
                                  kr_error *err);

/* Loads PTX (with or without its final NUL), a cubin or a fatbin; the kind is found. The bytes are not
 * needed after the call. The JIT's log is in err->log. KR_CORRUPT: not an image, or truncated.
 * KR_NOT_ON_THIS_DEVICE: an image for other devices, or PTX newer than the driver. KR_COMPILE_FAILED:
 * the driver refuses the PTX. */
KR_API kr_status kr_module_load(kr_device *device, const void *image, size_t image_bytes,
                                const char *name /* for messages, or NULL */, kr_module **ret_module,
                                kr_error *err);
KR_API void kr_module_destroy(kr_module **module);

/* KR_NOT_FOUND lists the names that the module has, where the driver can tell them. */
KR_API kr_status kr_module_kernel(kr_module *module, const char *name, kr_kernel **ret_kernel, kr_error *err);

/* Address and size of a __device__ or __constant__ variable. */
KR_API kr_status kr_module_global(kr_module *module, const char *name, uint64_t *ret_cudeviceptr,
                                  size_t *ret_bytes, kr_error *err);

typedef struct kr_kernel_info {
    const char *name;
    int registers;
    int static_shared_bytes;
    int const_bytes;
    int local_bytes;
    int max_threads_per_block;
    int ptx_version;    /* 75: the PTX it came from was for sm_75 */
    int binary_version; /* 90: it runs as sm_90 code */
    int max_dynamic_shared_bytes;
} kr_kernel_info;

KR_API const kr_kernel_info *kr_kernel_get_info(const kr_kernel *kernel);
KR_API kr_device *kr_kernel_device(const kr_kernel *kernel);
KR_API void *kr_kernel_cufunction(const kr_kernel *kernel);

/* Size and offset of the index-th parameter. KR_NOT_FOUND past the last one; KR_NOT_ON_THIS_DEVICE
 * where the driver (before 12.4) cannot tell. */
KR_API kr_status kr_kernel_param(const kr_kernel *kernel, size_t index, size_t *ret_offset_bytes,
                                 size_t *ret_bytes, kr_error *err);

/* Resident blocks a multiprocessor for this block size. */
KR_API kr_status kr_kernel_occupancy(kr_kernel *kernel, int block_threads, size_t dynamic_shared_bytes,
                                     int *ret_blocks, kr_error *err);

/* The block size with the highest occupancy and the grid that fills the device with it. */
KR_API kr_status kr_kernel_suggest(kr_kernel *kernel, size_t dynamic_shared_bytes, int max_block_threads,
                                   int *ret_block_threads, int *ret_min_grid, kr_error *err);

/* Allows up to this much dynamic shared memory (the opt-in above 48 KiB). */
KR_API kr_status kr_kernel_allow_shared(kr_kernel *kernel, size_t dynamic_shared_bytes, kr_error *err);

/* Checks the configuration against device and kernel, with numbers in the message, packs the
 * arguments and launches in stream order. */
KR_API kr_status kr_kernel_launch(kr_kernel *kernel, kr_stream *stream, const kr_launch_config *config,
                                  kr_args args, kr_error *err);

#ifdef __cplusplus
}
#endif
#endif
