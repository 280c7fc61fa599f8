/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_DESCRIPTOR_H
#define KR_DESCRIPTOR_H

/* The reader of `//!` lines: from the text of a .cu file to an op as data. Grammar: docs/descriptor.md. */

#include <kregistry/module.h>
#include <kregistry/op.h>

#include "registry/expression.h"

enum { KR__MAX_NAME = 40, KR__MAX_FULL_NAME = KR__MAX_NAME + 8 };

typedef enum kr__launch_kind { KR__LAUNCH_NONE, KR__LAUNCH_ELEMENTWISE, KR__LAUNCH_TILES } kr__launch_kind;

typedef struct kr__launch_rule {
    kr__launch_kind kind;
    size_t n_extents; /* elementwise: 1; tiles: 2 or 3 */
    const kr__expression *extents[3];
    unsigned tile[3];
    unsigned block[3];            /* block[0] 0: the occupancy call's */
    unsigned per_thread;          /* elementwise */
    unsigned waves;               /* elementwise */
    const kr__expression *shared; /* dynamic shared memory in bytes, or NULL: none */
} kr__launch_rule;

typedef struct kr__variant {
    kr_cc least_cc;   /* 0.0: any */
    kr_cc below_cc;   /* 0.0: any */
    kr_cc target;     /* with its letter: compiled for that alone; 0.0: for the device */
    int least_driver; /* 12040; 0: any */
    uint64_t align_bytes;
    uint64_t shared_bytes;
    kr__launch_rule launch;
} kr__variant;

typedef struct kr__split {
    size_t size_arg;
    uint64_t halo;
    bool combine_add;
} kr__split;

/* Files that an op includes, under the names it uses. */
typedef struct kr__headers {
    size_t n;
    const char *const *names, *const *texts;
} kr__headers;

/* Bytes of a pack, and the SHA-256 that they must have when they are used. A NUL follows them. */
typedef struct kr__stored {
    const char *bytes;
    size_t n_bytes;
    size_t offset; /* in the pack */
    const uint8_t *sha256; /* NULL: they are of no pack */
} kr__stored;

/* An image that came with an op. */
typedef struct kr__image {
    size_t type;    /* index into the op's types */
    size_t variant; /* index into its variants */
    kr_image_kind kind;
    kr_cc arch;
    int isa; /* PTX ISA, 70 for 7.0; 0 for cubins */
    kr__stored stored;
} kr__image;

typedef struct kr__op_def {
    kr_op op; /* first: every kr_op of the library is the head of one of these */
    kr__arena arena;
    const char *text; /* the whole .cu file, NUL-terminated; NULL: it came without its source */
    size_t text_bytes;
    kr__headers headers; /* given to NVRTC beside the text */
    size_t n_sources;
    const kr__stored
        *sources; /* where text and headers lie in a pack: to be checked before they are compiled */
    size_t n_images;
    const kr__image *images;           /* that came with it */
    const kr_reference_fn *references; /* one a type, or one where the op has no types; NULL: none */
    const uint8_t *identity;           /* as kr__op_identity gives it; NULL: to be computed */
    bool arg_is_t[KR_MAX_OP_ARGS];
    kr_type arg_types[KR_MAX_OP_ARGS]; /* of arguments that are not T */
    const kr__expression *shapes[KR_MAX_OP_ARGS];
    const kr__expression *minimums[KR_MAX_OP_ARGS];
    kr__variant variants[KR_MAX_OP_VARIANTS];
    const kr__expression *cost_bytes, *cost_flops; /* NULL: not said */
    kr__split split;                               /* valid where op.split is not NULL */
} kr__op_def;

/* KR_INVALID_ARGUMENT: "file:line: what is wrong". `file` and `text` are copied. */
kr_status kr__op_parse(const char *file, const char *text, size_t text_bytes, kr__op_def **ret_def,
                       kr_error *err);
void kr__op_free(kr__op_def **def);

/* Copies the headers into the op. */
kr_status kr__op_set_headers(kr__op_def *def, const kr__headers *headers, kr_error *err);

static inline const kr__op_def *kr__op_def_of(const kr_op *op)
{
    return (const kr__op_def *)op;
}

/* "saxpy.f32"; type_index is ignored where the op has no types. Returns name. */
char *kr__op_full_name(const kr_op *op, size_t type_index, char name[KR__MAX_FULL_NAME]);

/* An op without types counts as having one, so that tables can be indexed by type. */
static inline size_t kr__op_n_instances(const kr_op *op)
{
    return op->n_types ? op->n_types : 1;
}

#endif
