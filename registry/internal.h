/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_REGISTRY_INTERNAL_H
#define KR_REGISTRY_INTERNAL_H

/*
 * The registry's objects. Reading is free of locks: the list of ops is a snapshot behind one atomic pointer,
 * and a resolved kernel is another. What is not there yet is made once, by whoever asks first; others wait
 * for it.
 */

#include <pthread.h>
#include <stdatomic.h>

#include <kregistry/pack.h>
#include <kregistry/relevel.h>

#include "registry/policy.h"
#include "registry/select.h"
#include "registry/signature.h"
#include "runtime/internal.h"

/* A block size, and how many such blocks a multiprocessor holds at once. */
typedef struct kr__fit {
    unsigned block_threads;
    unsigned resident_blocks;
} kr__fit;

/* One kernel on one device. Never changed once others can see it. */
typedef struct kr__loaded {
    kr_module *module;
    kr_kernel *kernel;
    kr_image_kind kind;
    kr_cc arch;
    const char *origin; /* "shipped", "nvrtc", "cache" */
    const char *change; /* what was done to the image; NULL: nothing */
    kr__fit usual; /* elementwise without dynamic shared memory: asked once, for the driver thinks it over */
} kr__loaded;

/* The place of a kernel: one an (op, type, variant, device). */
typedef struct kr__slot {
    _Atomic(const kr__loaded *) loaded;
    bool busy;         /* under the registry's lock: somebody is loading it */
    kr_error *failure; /* under the lock: why it cannot be had; will not change by trying again */
} kr__slot;

/* One image of an (op, type, variant), shipped or compiled: what the driver loads for all devices that take
 * it. */
typedef struct kr__built {
    const kr__shipped *shipped; /* NULL: compiled for arch, to kind */
    kr_cc arch;
    kr_image_kind kind;
    bool busy; /* under the registry's lock, like the rest */
    kr_compiled *compiled;
    char *made;              /* of what is shipped, where that is not given to the driver as it is */
    kr_releveled *releveled; /* what the driver is given instead; NULL: nothing else */
    char change[96];         /* says so */
    const char *ptx;         /* that it is or was made with, where it is at hand */
    size_t ptx_bytes;
    kr__code *code;
    kr_error *failure;
    struct kr__built *next;
} kr__built;

/* The variants that an op runs with on one device, best first; the last needs no alignment, where there is
 * such a one. Never changed once others can see it. */
typedef struct kr__chain {
    size_t n;
    struct {
        size_t variant;
        uint64_t align_bytes;
        const kr__loaded *loaded;
    } links[KR_MAX_OP_VARIANTS];
} kr__chain;

/* An op in a registry. */
typedef struct kr__entry {
    kr__op_def *def;
    kr__shipped *images;
    size_t n_images;
    size_t asked_variant; /* by KREGISTRY_VARIANT; SIZE_MAX: none */
    size_t n_devices;
    _Atomic(const kr__chain *) *chains; /* [instance][device] */
    kr__slot *slots;                    /* [instance][variant][device] */
    kr__built **built;                  /* [instance][variant]: a list */
    struct kr__entry *before;           /* whose place it took, for those that use it; NULL: none */
} kr__entry;

/* Takes the op, also where it fails. */
kr_status kr__entry_create(kr_registry *registry, kr__op_def *def, kr__entry **ret_entry, kr_error *err);
void kr__entry_free(kr__entry **entry);

/* All ops in name order. Replaced as a whole; the old ones are kept until the end, for readers still in them.
 */
typedef struct kr__ops {
    struct kr__ops *older;
    size_t n;
    kr__entry *list[];
} kr__ops;

/* A pack that ops of the registry point into. */
typedef struct kr__held {
    kr_pack *pack;
    struct kr__held *next;
} kr__held;

struct kr_registry {
    kr_runtime *runtime; /* NULL: nothing is launched */
    kr__policy policy;
    kr__arena policy_texts;
    atomic_bool policy_ops_exist; /* every op that KREGISTRY_VARIANT names has been found */
    bool no_nvrtc;
    char *nvrtc_path;
    _Atomic(kr__ops *) ops;
    kr__held *packs;            /* under the lock */
    pthread_mutex_t lock;       /* adding, and every `busy` */
    pthread_cond_t landed;      /* something busy is no longer */
    pthread_mutex_t nvrtc_lock; /* opening NVRTC */
    kr_nvrtc *nvrtc;            /* NULL: not there, or not opened yet */
    kr_error *nvrtc_failure;    /* why it is not there, which will not change by trying again */
    kr_cache *cache;            /* of what NVRTC makes; NULL: nothing is kept */
};

/* ---- names (registry.c) ---- */

/* "saxpy.f32" to the op and which of its types. */
kr_status kr__registry_find(kr_registry *registry, const char *full_name, kr__entry **ret_entry,
                            size_t *ret_type_index, kr_error *err);
/* index of a variant; KR_NOT_FOUND lists the names. */
kr_status kr__variant_find(const kr_op *op, const char *name, size_t *ret_variant, kr_error *err);
/* *ret_nvrtc: NULL when there is none or none may be used. Fails where that cannot be told at the moment. */
kr_status kr__registry_nvrtc(kr_registry *registry, kr_nvrtc **ret_nvrtc, kr_error *err);
/* Adds to an error why there is none, after kr__registry_nvrtc has given NULL. */
void kr__registry_tell_nvrtc(const kr_registry *registry, kr_error *err);
size_t kr__device_index(const kr_registry *registry, const kr_device *device);
/* KR_NOT_FOUND: KREGISTRY_VARIANT names an op that is not there. Asked before anything is chosen. */
kr_status kr__registry_check_policy(kr_registry *registry, kr_error *err);

/* ---- loading (load.c) ---- */

/* The best variant that can be had where every buffer is aligned to align_bytes; without a lock once it is
 * there. variant NULL: any. */
kr_status kr__op_load(kr_registry *registry, kr__entry *entry, size_t type_index, const char *variant,
                      uint64_t align_bytes, kr_device *device, size_t *ret_variant,
                      const kr__loaded **ret_loaded, kr_error *err);

/* ---- arguments (args.c) ---- */

/* A caller's arguments, checked, by the descriptor's index. Work arguments are not among them yet. */
typedef struct kr__bound {
    uint64_t sizes[KR_MAX_OP_ARGS];
    kr__param params[KR_MAX_OP_ARGS]; /* as cuLaunchKernel reads them */
    uint64_t align_bytes;             /* the largest power of two that divides every buffer's address */
} kr__bound;

kr_status kr__bind(const kr__op_def *def, size_t type_index, kr_device *device, kr_args args,
                   kr__bound *ret_bound, kr_error *err);
/* One argument, with the sizes already known. */
kr_status kr__bind_one(const kr__op_def *def, size_t type_index, size_t index, kr_device *device,
                       const kr_arg *arg, kr__bound *bound, kr_error *err);
/* The descriptor's index of the caller's index-th argument, which skips work arguments; n_args past the end.
 */
size_t kr__caller_arg(const kr_op *op, size_t index);
size_t kr__n_caller_args(const kr_op *op);

/* Bytes of a buffer argument; grid is for work arguments. */
kr_status kr__arg_bytes(const kr__op_def *def, size_t type_index, size_t index, const uint64_t *sizes,
                        uint64_t grid, uint64_t *ret_bytes, kr_error *err);

/* ---- launch configurations (config.c) ---- */

/* The rule as arithmetic. */
typedef struct kr__geometry {
    uint64_t extents[3];
    unsigned block_threads;   /* elementwise: of a block */
    unsigned resident_blocks; /* elementwise: a multiprocessor's */
    unsigned multiprocessors;
    unsigned max_grid[3];
} kr__geometry;
void kr__config_by_rule(const kr__launch_rule *rule, const kr__geometry *geometry,
                        kr_launch_config *ret_config);

/* block_threads 0: the occupancy call's choice. */
kr_status kr__fit_of(kr_kernel *kernel, unsigned block_threads, size_t dynamic_shared_bytes, kr__fit *ret_fit,
                     kr_error *err);

kr_status kr__configure(const kr__op_def *def, size_t type_index, size_t variant, const kr__loaded *loaded,
                        const uint64_t *sizes, const kr_launch_options *options, kr_launch_config *ret_config,
                        kr_error *err);

/* Resident blocks of a multiprocessor by each of its limits, and which of them bounds. */
typedef struct kr__residency {
    int blocks;
    kr_limiter limiter;
} kr__residency;
kr__residency kr__residency_of(const kr_device_info *device, const kr_kernel_info *kernel,
                               unsigned block_threads, size_t dynamic_shared_bytes);

/* ---- splitting (group.c) ---- */

/* Divides total into n contiguous parts proportional to the weights (above 0). Parts get `least` units or
 * none: the weights of those left out become 0. */
void kr__split_parts(uint64_t total, uint64_t least, uint64_t *weights, size_t n, uint64_t *ret_counts);

#endif
