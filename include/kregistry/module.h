/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_MODULE_H
#define KREGISTRY_MODULE_H

#include <kregistry/launch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loaded code and its kernels. A module is for one device; kernels live as long as their module.
 *
 * Threads: every function may be called from many threads at once, also with the same module or kernel;
 * destroying a module while another thread uses it or its kernels is the caller's mistake. All return when
 * what they say is done, except kr_kernel_launch, which returns when the launch is in the stream. */
typedef struct kr_module kr_module;
typedef struct kr_kernel kr_kernel;

typedef enum kr_image_kind {
    KR_IMAGE_PTX,
    KR_IMAGE_CUBIN,
    KR_IMAGE_FATBIN,
    KR_IMAGE_LTOIR,
    KR_IMAGE_OTHER /* part of a fatbin, of a kind that this library does not know: only inspections tell of it
                    */
} kr_image_kind;

KR_API const char *kr_image_kind_name(kr_image_kind kind); /* "ptx", "cubin", "fatbin", "ltoir", "other" */

/* Which kind of image the bytes are, by their content. KR_CORRUPT when none. */
KR_API kr_status kr_image_kind_of(const void *image, size_t image_bytes, kr_image_kind *ret_kind,
                                  kr_error *err);

/* Loads PTX (with or without its final NUL), a cubin, a fatbin, or LTO-IR, which nvJitLink links for the
 * device first; the kind is found. The bytes are not needed after the call. The JIT's log is in err->log.
 * KR_CORRUPT: not an image, truncated, or a damaged fatbin. KR_NOT_ON_THIS_MACHINE: LTO-IR, and no nvJitLink.
 * KR_NOT_ON_THIS_DEVICE: an image for other devices, or PTX newer than the driver. KR_COMPILE_FAILED:
 * the driver refuses the PTX. */
KR_API kr_status kr_module_load(kr_device *device, const void *image, size_t image_bytes,
                                const char *name /* for messages, or NULL */, kr_module **ret_module,
                                kr_error *err);

/* Unloads the code; its kernels are gone. Work in flight that uses it must have ended. Accepts NULL and a
 * pointer to NULL; nulls the handle. */
KR_API void kr_module_destroy(kr_module **module);

/* The kernel of that name; owned by the module, and the same one each time. KR_NOT_FOUND lists the names that
 * the module has, where the driver can tell them. */
KR_API kr_status kr_module_kernel(kr_module *module, const char *name, kr_kernel **ret_kernel, kr_error *err);

/* Address and size in bytes of a __device__ or __constant__ variable. KR_NOT_FOUND: it has none of that name.
 */
KR_API kr_status kr_module_global(kr_module *module, const char *name, uint64_t *ret_cudeviceptr,
                                  size_t *ret_bytes, kr_error *err);

/* What the driver said of a kernel when it was found. */
typedef struct kr_kernel_info {
    const char *name;
    int registers; /* a thread */
    int static_shared_bytes;
    int const_bytes;
    int local_bytes; /* a thread */
    int max_threads_per_block;
    int ptx_version;              /* 75: the PTX it came from was for sm_75 */
    int binary_version;           /* 90: it runs as sm_90 code */
    int max_dynamic_shared_bytes; /* before kr_kernel_allow_shared, which does not change it here */
} kr_kernel_info;

/* Live as long as the kernel. */
KR_API const kr_kernel_info *kr_kernel_get_info(const kr_kernel *kernel);
KR_API kr_device *kr_kernel_device(const kr_kernel *kernel);

/* The CUfunction, for calls of the caller's own. */
KR_API void *kr_kernel_cufunction(const kr_kernel *kernel);

/* Size and offset of the index-th parameter. KR_NOT_FOUND past the last one; KR_NOT_ON_THIS_DEVICE
 * where the driver (before 12.4) cannot tell. */
KR_API kr_status kr_kernel_param(const kr_kernel *kernel, size_t index, size_t *ret_offset_bytes,
                                 size_t *ret_bytes, kr_error *err);

/* Resident blocks a multiprocessor for blocks of so many threads; 0: none fits. KR_INVALID_ARGUMENT: fewer
 * than one thread. */
KR_API kr_status kr_kernel_occupancy(kr_kernel *kernel, int block_threads, size_t dynamic_shared_bytes,
                                     int *ret_blocks, kr_error *err);

/* The block size in threads with the highest occupancy, of at most max_block_threads (0: no limit but the
 * kernel's), and the grid in blocks that fills the device with it. */
KR_API kr_status kr_kernel_suggest(kr_kernel *kernel, size_t dynamic_shared_bytes, int max_block_threads,
                                   int *ret_block_threads, int *ret_min_grid, kr_error *err);

/* Allows up to this much dynamic shared memory a block (the opt-in above 48 KiB), for all later launches;
 * launches call it by themselves. KR_INVALID_ARGUMENT: more than the device lets a block have beside the
 * static part. */
KR_API kr_status kr_kernel_allow_shared(kr_kernel *kernel, size_t dynamic_shared_bytes, kr_error *err);

/* Checks the configuration against device and kernel, with numbers in the message, packs the
 * arguments and launches in stream order. KR_INVALID_ARGUMENT: a configuration that cannot run here, an
 * argument of another size than the parameter, a buffer or stream of another device. A fault of the kernel
 * shows when the stream is synchronised. */
KR_API kr_status kr_kernel_launch(kr_kernel *kernel, kr_stream *stream, const kr_launch_config *config,
                                  kr_args args, kr_error *err);

#ifdef __cplusplus
}
#endif
#endif
