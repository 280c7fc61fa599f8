/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_GROUP_H
#define KREGISTRY_GROUP_H

#include <kregistry/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * kr_group: several devices, mixed generations allowed, worked as one. A group runs ops whose descriptor
 * has a `split` line: the named size is divided over the devices, buffers whose shape starts with it are
 * sliced (with `halo` further rows on each side where the op reads its neighbours), other buffers are
 * given whole to each, and `combine=add` outputs are added up on the host, in a wider type and rounded once.
 * Each device has rounded its part before: a part that overflows by itself stays an infinity.
 */
typedef struct kr_group kr_group;

typedef struct kr_group_options {
    size_t struct_size;
    kr_device *const *devices; /* NULL: all of the runtime */
    size_t n_devices;
} kr_group_options;

/* KR_INVALID_ARGUMENT: no devices, or one of another runtime. The group's streams are its own. */
KR_API kr_status kr_group_create(kr_runtime *runtime, const kr_group_options *options, kr_group **ret_group,
                                 kr_error *err);
KR_API void kr_group_destroy(kr_group **group);
KR_API size_t kr_group_n_devices(const kr_group *group);
KR_API kr_device *kr_group_device(const kr_group *group, size_t index);

/* What one device was given. */
typedef struct kr_group_part {
    kr_device *device;
    uint64_t first; /* of the split size */
    uint64_t count; /* without halo; 0: this device had nothing to do */
    double ms;      /* of its kernel, on the device */
} kr_group_part;

/* Runs one op over all devices on host data: args[i] points at the scalar, or at the whole host buffer, of
 * argument i (work arguments excluded; the caller's numbering). Copies in, launches on every device at
 * once, copies out, returns when all is done. ret_parts: n_devices of them, or NULL. One run of a group at a
 * time. KR_INVALID_ARGUMENT: the op has no split line, or an argument is wrong; otherwise as kr_launch.
 * Outputs may be half written after an error; devices hold nothing of it. */
KR_API kr_status kr_group_run(kr_group *group, kr_registry *registry, const char *full_name,
                              void *const args[], size_t n_args, kr_group_part *ret_parts, kr_error *err);

#ifdef __cplusplus
}
#endif
#endif
