/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_IMAGE_H
#define KR_IMAGE_H

/*
 * Code images as bytes: readers of cubins (ELF, ABI 7 and 8) and fatbins, and a writer of fatbins. Nothing
 * is trusted: every offset is checked before it is followed, and a message names the offset and what was
 * expected there. What a reader does not know it skips.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kregistry/module.h>

#include "runtime/base/base.h"

/* ---- any image ---- */

/* The kind by the first bytes. KR_CORRUPT: none of them, with what it looks like instead. */
kr_status kr__image_kind(const void *image, size_t image_bytes, kr_image_kind *ret_kind, kr_error *err);

/* The size that the image's own headers give, for a caller such as cuModuleLoadData that has a pointer
 * alone. PTX ends at its NUL. At most `limit` bytes are read. 0: not an image, or it does not fit. */
size_t kr__image_bytes(const void *image, size_t limit);

/* What an image says of itself. */
typedef struct kr__image_facts {
    kr_image_kind kind;
    int isa;          /* PTX: .version as 87; else 0 */
    kr_cc target;     /* PTX, cubin; major 0: not known */
    char text[64];    /* "PTX 8.7 for sm_90a", "cubin for sm_90", "fatbin" */
    size_t ptx_bytes; /* PTX: without the NULs at its end */
} kr__image_facts;

/* Reads them, and refuses (KR_CORRUPT) what no driver should be given: bytes that are no image, an image that
 * goes on past its end, PTX with a NUL inside. */
kr_status kr__image_read(const void *image, size_t image_bytes, kr__image_facts *ret_facts, kr_error *err);

/* ---- PTX ---- */

typedef struct kr__ptx_head {
    int isa;      /* .version as 87; 0: not readable */
    kr_cc target; /* major 0: not readable */
} kr__ptx_head;

/* Reads .version and .target, which come first. false: no .version, so this is no PTX. */
bool kr__ptx_head_read(const char *text, size_t bytes, kr__ptx_head *ret_head);

/* ---- cubin ---- */

typedef struct kr__image_param {
    size_t offset, bytes;
} kr__image_param;

typedef struct kr__cubin_kernel {
    const char *name;
    size_t code_bytes;
    int registers; /* 0: the image does not say */
    int barriers;
    size_t shared_bytes; /* static, without what the system reserves */
    size_t local_bytes;
    unsigned max_threads[3]; /* .maxntid, zeros where not given */
    unsigned reqntid[3];     /* .reqntid, the same */
    int max_registers;       /* the limit it was compiled under; 0: none */
    size_t param_bytes;
    size_t n_params;
    const kr__image_param *params; /* in order */
} kr__cubin_kernel;

typedef struct kr__cubin_variable {
    const char *name;
    size_t bytes;
    bool is_const;
} kr__cubin_variable;

typedef struct kr__cubin {
    kr_cc arch;
    int abi;            /* 7 or 8 */
    int virtual_arch;   /* the PTX level it was made from; ABI 8 does not say: as the arch */
    bool linked;        /* false: relocatable, for a linker */
    size_t const_bytes; /* of __constant__ variables */
    size_t n_kernels;
    kr__cubin_kernel *kernels; /* in the order of the symbol table */
    size_t n_variables;
    kr__cubin_variable *variables;
    kr__arena arena; /* everything above lives here */
} kr__cubin;

/* KR_CORRUPT: not a cubin, or damaged. The bytes are not needed after the call. */
kr_status kr__cubin_read(const void *image, size_t image_bytes, kr__cubin **ret_cubin, kr_error *err);
void kr__cubin_free(kr__cubin **cubin);

/* The SM number in a cubin's header; 0: it has none. */
unsigned kr__cubin_sm(const void *image, size_t image_bytes);

/* The contents of a named section. false: no such section, or damaged. */
bool kr__cubin_section(const void *image, size_t image_bytes, const char *name, const void **ret_data,
                       size_t *ret_bytes);

/* ---- fatbin ---- */

typedef enum kr__compression { KR__STORED, KR__LZ4, KR__ZSTD } kr__compression;

typedef struct kr__fatbin_entry {
    kr_image_kind kind; /* PTX, CUBIN or LTOIR */
    kr_cc arch;
    int isa; /* of PTX: 90 for 9.0; else 0 */
    kr__compression compression;
    bool debug;
    const void *payload;  /* inside the fatbin's bytes */
    size_t payload_bytes; /* as stored */
    size_t bytes;         /* unpacked */
} kr__fatbin_entry;

typedef struct kr__fatbin {
    size_t n_entries;
    kr__fatbin_entry *entries; /* those of a kind we know, in order */
} kr__fatbin;

/* Reads one fatbin or several that stand one after another. The entries point into `image`, which must
 * outlive the result. */
kr_status kr__fatbin_read(const void *image, size_t image_bytes, kr__fatbin **ret_fatbin, kr_error *err);
void kr__fatbin_free(kr__fatbin **fatbin);

/* The payload as it was before packing: malloc'ed, with one further NUL. PTX: up to its first NUL. */
kr_status kr__fatbin_unpack(const kr__fatbin_entry *entry, char **ret_data, size_t *ret_bytes, kr_error *err);

/* The 24-byte wrapper that nvcc puts round a fatbin in a program (__fatBinC_Wrapper_t) holds a pointer to
 * it. NULL: this is no wrapper. Reads 24 bytes at most. */
const void *kr__fatbin_unwrap(const void *image);

/* What to put in a fatbin. Entries are stored as they are, uncompressed. */
typedef struct kr__fatbin_part {
    kr_image_kind kind; /* PTX or CUBIN */
    kr_cc arch;
    int isa; /* of PTX: 90 for 9.0 */
    const void *data;
    size_t bytes; /* PTX: with or without its NUL */
} kr__fatbin_part;

/* One fatbin of the parts, as `fatbinary` writes it. *ret_image is malloc'ed. */
kr_status kr__fatbin_write(const kr__fatbin_part *parts, size_t n_parts, void **ret_image, size_t *ret_bytes,
                           kr_error *err);

#endif
