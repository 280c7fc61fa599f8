/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KREGISTRY_PACK_H
#define KREGISTRY_PACK_H

#include <kregistry/registry.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * kr_pack: ops in one file, with the images that were compiled of them, for applications that ship kernels.
 * The format is docs/pack-format.md. A pack is mapped, not read: opening one checks its index whole; an image
 * or a source is held to its SHA-256 when it is used. `kregistry pack` makes one, and `kregistry embed` makes
 * it part of a program, for kr_registry_add_pack. Never changes once it is there; may be read from many
 * threads.
 */
typedef struct kr_pack kr_pack;

/* Do the bytes begin as a pack does? */
KR_API bool kr_is_pack(const void *data, size_t bytes);

/* Maps a file. Who replaces the file meanwhile does so by renaming, not by writing into it. KR_CORRUPT: no
 * pack, or a damaged one, with the offset and what was expected there. KR_INVALID_ARGUMENT: a version of
 * the format that this library does not read. */
KR_API kr_status kr_pack_open(const char *path, kr_pack **ret_pack, kr_error *err);
/* The same of memory, which is used in place: it stays as it is until the pack is closed. */
KR_API kr_status kr_pack_open_memory(const void *data, size_t bytes, kr_pack **ret_pack, kr_error *err);
/* The next pack within other bytes, as of a program that it was made part of, from *ret_at on, where it begins then; the
 * one after it lies kr_pack_get_info(pack).bytes later. NULL: there is none. A damaged one: as kr_pack_open. */
KR_API kr_status kr_pack_find(const void *data, size_t bytes, size_t *ret_at, kr_pack **ret_pack, kr_error *err);
/* Accepts NULL and a pointer to NULL; nulls the handle. What the pack gave out is gone. */
KR_API void kr_pack_close(kr_pack **pack);

typedef struct kr_pack_info {
    const void *data; /* the pack itself, as it is in a file */
    size_t bytes;
    unsigned version; /* of the format */
    size_t n_ops;
    size_t n_images;
} kr_pack_info;

KR_API kr_pack_info kr_pack_get_info(const kr_pack *pack);

/* In name order. NULL past the end. */
KR_API const kr_op *kr_pack_op(const kr_pack *pack, size_t index);
/* Does the pack have the op's source, so that it can be compiled for GPUs that it has no image for? */
KR_API bool kr_pack_has_source(const kr_pack *pack, const kr_op *op);

/* A PTX, cubin or fatbin as other tools know it, in place. */
typedef struct kr_pack_image {
    const kr_op *op;
    size_t type_index; /* op->types[type_index]; 0 where the op has no types */
    size_t variant;    /* op->variants[variant] */
    kr_image_kind kind;
    kr_cc arch;
    int isa; /* of PTX: 75 for 7.5; else 0 */
    const void *data;
    size_t bytes; /* of PTX without the NUL that follows */
} kr_pack_image;

/* In the order of the ops, types and variants. KR_NOT_FOUND past the end. KR_CORRUPT: the bytes are not those
 * that the index was made for. */
KR_API kr_status kr_pack_get_image(const kr_pack *pack, size_t index, kr_pack_image *ret_image,
                                   kr_error *err);

/* ---- making one ---- */

typedef struct kr_pack_options {
    size_t struct_size;
    const kr_cc *cubins; /* machine code for these */
    size_t n_cubins;
    const kr_cc *ptx; /* PTX for these, which later devices take too */
    size_t n_ptx;
    bool no_source; /* leaves out the ops' sources: what the pack has no image for, it then cannot run on */
    void (*progress)(void *user, size_t done, size_t total,
                     const char *full_name); /* images, made and asked for */
    void *progress_user;
} kr_pack_options;

/*
 * Compiles the registry's ops whose name or full name matches the glob (NULL: all) with its NVRTC, every type
 * and variant for every target asked for; without any, to PTX for the lowest that NVRTC knows. A variant gets
 * no machine code for a target that its requirements exclude, and its PTX is for no less than it asks. The
 * bytes follow from the sources, the options and the NVRTC alone. KR_NOT_FOUND: nothing matches.
 * KR_NOT_ON_THIS_MACHINE: no NVRTC, or it does not know a target. KR_INVALID_ARGUMENT: an op came without its
 * source.
 */
KR_API kr_status kr_pack_build(kr_registry *registry, const char *glob, const kr_pack_options *options,
                               kr_pack **ret_pack, kr_error *err);

#ifdef __cplusplus
}
#endif
#endif
