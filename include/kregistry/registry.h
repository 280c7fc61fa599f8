/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_REGISTRY_H
#define KREGISTRY_REGISTRY_H

#include <kregistry/compile.h>
#include <kregistry/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * kr_registry: from op names ("saxpy.f32") to the best kernel for each device. Safe from many threads;
 * adding ops while other threads launch is allowed.
 */
typedef struct kr_registry kr_registry;

typedef struct kr_registry_options {
    size_t struct_size;
    bool no_builtin_ops;
    bool no_nvrtc;     /* never compile: shipped images alone */
    const char *nvrtc; /* as kr_nvrtc_open's path; opened when first needed */
    bool no_cache;     /* keep nothing that is compiled, and use nothing that was kept */
    const char *cache; /* as kr_cache_create's folder; where there is none, nothing is kept */
} kr_registry_options;

/* KREGISTRY_MAX_CC, KREGISTRY_VARIANT and CUDA's JIT variables are read here and count in every choice:
 * KR_INVALID_ARGUMENT and KR_NOT_FOUND name the one that says nothing sensible.
 * runtime NULL: a registry that lists, resolves for machines that are not here, and launches nothing. */
KR_API kr_status kr_registry_create(kr_runtime *runtime, const kr_registry_options *options,
                                    kr_registry **ret_registry, kr_error *err);
/* Unloads every kernel: nothing of them may be in flight, and launchers are destroyed before. Before the
 * runtime. Accepts NULL; nulls the handle. */
KR_API void kr_registry_destroy(kr_registry **registry);

/* Adds one op from the text of a .cu file. KR_INVALID_ARGUMENT: a malformed descriptor, as
 * "file:line: what", or a name that is taken. The text is copied. */
KR_API kr_status kr_registry_add_source(kr_registry *registry, const char *file, const char *text,
                                        size_t text_bytes, kr_error *err);
/* Adds one op from a .cu file. Files of the same folder that it includes with quotes go with it. */
KR_API kr_status kr_registry_add_file(kr_registry *registry, const char *path, kr_error *err);
/* Adds every .cu file of a folder, not of those in it, in name order: regular files of at most 16 MiB. All or
 * none. */
KR_API kr_status kr_registry_add_directory(kr_registry *registry, const char *path, kr_error *err);

/* Adds the ops of a pack (kregistry/pack.h), all or none. The bytes are used in place: they stay as they are
 * until the registry is destroyed. An op that is there already from the same source gains the pack's images
 * for what is loaded from now on; KR_INVALID_ARGUMENT: the name is taken by an op of another source. Else as
 * kr_pack_open. */
KR_API kr_status kr_registry_add_pack(kr_registry *registry, const void *pack, size_t pack_bytes,
                                      kr_error *err);
/* The same of a file, which is mapped until the registry is destroyed. */
KR_API kr_status kr_registry_add_pack_file(kr_registry *registry, const char *path, kr_error *err);

KR_API size_t kr_registry_n_ops(kr_registry *registry);
/* In name order. NULL past the end. */
KR_API const kr_op *kr_registry_op(kr_registry *registry, size_t index);

/* "saxpy.f32", or "saxpy" where the op has one type or none. ret_type may be NULL. KR_NOT_FOUND suggests the
 * nearest name. */
KR_API kr_status kr_registry_find(kr_registry *registry, const char *full_name, const kr_op **ret_op,
                                  kr_type *ret_type, kr_error *err);

/* The images shipped for a variant: kind, arch, PTX ISA (70 for 7.0; 0 for cubins). */
typedef struct kr_shipped_image {
    kr_image_kind kind;
    kr_cc arch;
    int isa;
    kr_type type;
} kr_shipped_image;
/* Returns how many there are; fills at most max of them. */
KR_API size_t kr_registry_shipped(kr_registry *registry, const kr_op *op, size_t variant,
                                  kr_shipped_image *ret_images, size_t max);

/* ---- choosing ---- */

/* The facts a choice is made from. kr_registry_machine fills them in for a device of this machine. */
typedef struct kr_machine {
    kr_cc cc;
    int driver_version; /* 13000; 0: the newest known */
    const int *nvrtc_archs;
    size_t n_nvrtc_archs;             /* 0: no NVRTC */
    int nvrtc_version;                /* 13000; 0 without NVRTC */
    int shared_bytes_per_block_optin; /* 0: the published limit of the CC */
} kr_machine;

KR_API kr_status kr_registry_machine(kr_registry *registry, kr_device *device, kr_machine *ret_machine,
                                     kr_error *err);

typedef struct kr_candidate {
    char variant[64];
    char image[64]; /* "cubin sm_90", "nvrtc sm_90", "ptx compute_75" ... or "" when the variant is out */
    bool chosen;
    bool usable;     /* refused otherwise */
    const char *how; /* "cubin", "family", "compatible", "ptx", "nvrtc"; "none" where it is not usable */
    char reason[256];
} kr_candidate;

typedef struct kr_explanation {
    size_t n;
    const kr_candidate *considered; /* in the order of preference */
    char advice[384];               /* one thing to do where none is chosen; else "" */
} kr_explanation;

/* Every variant and image considered for a machine, and why. Needs no driver. Where nothing can run the
 * answer is KR_OK with no candidate chosen. variant NULL: any. The environment counts, as in choosing. */
KR_API kr_status kr_registry_explain(kr_registry *registry, const char *full_name, const kr_machine *machine,
                                     const char *variant, kr_explanation **ret_explanation, kr_error *err);
/* Accepts NULL and a pointer to NULL; nulls the handle. */
KR_API void kr_explanation_destroy(kr_explanation **explanation);

typedef enum kr_limiter {
    KR_LIMIT_NONE,
    KR_LIMIT_REGISTERS,
    KR_LIMIT_SHARED,
    KR_LIMIT_THREADS,
    KR_LIMIT_BLOCKS
} kr_limiter;

KR_API const char *
kr_limiter_name(kr_limiter limiter); /* "registers", "shared memory", "threads", "blocks" */

/* What runs for an op on a device. Strings live as long as the registry. */
typedef struct kr_resolution {
    const char *variant;
    kr_image_kind image_kind;
    kr_cc image_arch;
    const char *image_origin; /* "shipped", "nvrtc", "cache" */
    int registers;
    int static_shared_bytes;
    kr_launch_config config;
    double occupancy;   /* resident threads / the most that fit, 0 to 1 */
    kr_limiter limiter; /* what bounds the resident blocks */
    kr_kernel *kernel;
    const char
        *image_change; /* "PTX 9.0 releveled to 7.8 for the driver (CUDA 11.8)"; NULL: loaded as it is */
} kr_resolution;

typedef struct kr_launch_options {
    size_t struct_size;
    const char *variant; /* NULL: the chosen one */
    unsigned block[3];   /* zeros: by the op's launch rule */
    unsigned grid[3];    /* zeros: by the op's launch rule */
} kr_launch_options;

/* Resolves (compiling and loading if need be). sizes as in kr_op_arg_elements; NULL: every size at its
 * least value, or 2^20 where it has none. */
KR_API kr_status kr_registry_resolve(kr_registry *registry, const char *full_name, kr_device *device,
                                     const uint64_t *sizes, const kr_launch_options *options,
                                     kr_resolution *ret_resolution, kr_error *err);

/* ---- preparing ---- */

/* progress and failed are called one at a time, but from threads of the library's. */
typedef struct kr_prepare_options {
    size_t struct_size;
    kr_device *const *devices; /* NULL: all of the runtime */
    size_t n_devices;
    void (*progress)(void *user, size_t done, size_t total, const char *full_name);
    void *progress_user;
    void (*failed)(void *user, const kr_error *err); /* once for each op and device that failed */
    void *failed_user;
} kr_prepare_options;

/* Compiles (once a compute capability) and loads (once a device) all ops whose full name matches the glob.
 * One op's failure leaves the others alone; the first failure is returned after all were tried, its
 * chain says how many failed. KR_NOT_FOUND: nothing matches. */
KR_API kr_status kr_registry_prepare(kr_registry *registry, const char *glob,
                                     const kr_prepare_options *options, kr_error *err);

/* ---- launching ---- */

/* Checks the arguments (count, types, devices, sizes, buffer bounds; a message names the argument), resolves
 * and launches in stream order. Returns before the kernel has run; for an op with work arguments on a driver
 * without memory pools, after. A size of 0 is launched too: what it defines (a sum of nothing) is written. */
KR_API kr_status kr_launch(kr_registry *registry, kr_stream *stream, const char *full_name, kr_args args,
                           const kr_launch_options *options, kr_error *err);

/* A prepared launch: checked once, then as cheap as cuLaunchKernel. One thread at a time; bound to its
 * stream. Its buffers, its stream and any graph captured from its runs must not outlive one another: destroy
 * the graph first, then the launcher, then the rest. An op with work arguments is not prepared while the
 * stream is capturing. */
typedef struct kr_launcher kr_launcher;
KR_API kr_status kr_launcher_create(kr_registry *registry, kr_stream *stream, const char *full_name,
                                    kr_args args, const kr_launch_options *options,
                                    kr_launcher **ret_launcher, kr_error *err);
KR_API void kr_launcher_destroy(kr_launcher **launcher);
/* Changes one argument (index as the caller passes them). A size argument cannot be changed: the launch
 * configuration follows from it. A buffer must hold what the op needs at these sizes,
 * and be aligned as the chosen variant asks. */
KR_API kr_status kr_launcher_set(kr_launcher *launcher, size_t index, kr_arg value, kr_error *err);
/* One cuLaunchKernel: no lock, no allocation. */
KR_API kr_status kr_launcher_run(kr_launcher *launcher, kr_error *err);

#ifdef __cplusplus
}
#endif
#endif
