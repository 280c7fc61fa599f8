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

#include <kregistry/image.h>

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
    int isa;                                       /* .version as 87; 0: not readable */
    kr_cc target;                                  /* major 0: not readable */
    size_t isa_at, isa_end, target_at, target_end; /* where "8.7" and "sm_90a" stand, if they are readable */
} kr__ptx_head;

/* Reads .version and .target, which come first. false: no .version, so this is no PTX. */
bool kr__ptx_head_read(const char *text, size_t bytes, kr__ptx_head *ret_head);

/* PTX that needs what `text` needs: of it, what is like nothing before; with or without the kernels that add
 * nothing. false: no memory. */
bool kr__ptx_abridge(const char *text, size_t bytes, bool all_kernels, kr__text *to);

/* What PTX declares. Nothing in bodies is read, so that new instructions do not matter. */
typedef struct kr__ptx_outline {
    kr__ptx_head head;
    int address_bits;
    size_t n_kernels;
    kr_image_kernel *kernels; /* those with a body, in order */
    size_t n_variables;
    kr_image_variable *variables; /* .global and .const of the module, but those that are .extern */
    kr__arena arena;
} kr__ptx_outline;

/* The text is without a NUL. KR_CORRUPT: with offset and line. The text is not needed after the call. */
kr_status kr__ptx_outline_read(const char *text, size_t bytes, kr__ptx_outline **ret_outline, kr_error *err);
void kr__ptx_outline_free(kr__ptx_outline **outline);

/* ---- cubin ---- */

/* A function that a kernel's code asks for and a relocatable cubin has not. */
typedef struct kr__cubin_reference {
    size_t kernel;
    const char *function;
} kr__cubin_reference;

typedef struct kr__cubin {
    kr_cc arch;
    int abi;            /* 7 or 8 */
    int toolkit;        /* 13000 for CUDA 13.0; 0: it does not say */
    int virtual_arch;   /* the PTX level it was made from; ABI 8 does not say: as the arch */
    bool linked;        /* false: relocatable, for a linker */
    size_t const_bytes; /* of __constant__ variables */
    size_t n_kernels;
    const kr_image_kernel *kernels; /* in the order of the symbol table */
    size_t n_variables;
    const kr_image_variable *variables;
    size_t n_references;
    const kr__cubin_reference *references; /* what a linker has to resolve, or the driver */
    kr__arena arena;                       /* everything above lives here */
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

/* A text inside the fatbin's bytes, without a NUL. */
typedef struct kr__fatbin_text {
    const char *at;
    size_t bytes;
} kr__fatbin_text;

typedef struct kr__fatbin_entry {
    kr_image_kind kind; /* PTX, CUBIN, LTOIR or OTHER */
    unsigned number;    /* the fatbin's own for the kind */
    kr_cc arch;
    int isa; /* of PTX: 90 for 9.0; else 0 */
    kr_compression compression;
    bool debug;
    uint64_t flags;
    kr__fatbin_text name, options; /* options: of the assembler or linker */
    const void *payload;           /* inside the fatbin's bytes */
    size_t payload_bytes;          /* as stored */
    size_t bytes;                  /* unpacked */
} kr__fatbin_entry;

typedef struct kr__fatbin {
    size_t n_entries;
    kr__fatbin_entry *entries; /* in order */
} kr__fatbin;

/* Reads one fatbin or several that stand one after another, with zeros between them. The entries point into
 * `image`, which must outlive the result. */
kr_status kr__fatbin_read(const void *image, size_t image_bytes, kr__fatbin **ret_fatbin, kr_error *err);
/* The one of them at an offset of a file, whose entries are added; messages have the file's offsets. *at:
 * where the next one begins, or `end`. */
kr_status kr__fatbin_next(const void *file, size_t *at, size_t end, kr__fatbin *fatbin, kr_error *err);
/* "64bit linux zstd", with what is not known as 0x40000. */
void kr__fatbin_flags(uint64_t flags, char *to, size_t bytes);
void kr__fatbin_free(kr__fatbin **fatbin);

/* The payload as it was before packing: malloc'ed, with one further NUL. PTX: up to its first NUL. */
kr_status kr__fatbin_unpack(const kr__fatbin_entry *entry, char **ret_data, size_t *ret_bytes, kr_error *err);

/* May a driver be given the fatbin, of several that stand one after another the first? KR_CORRUPT: no, it is
 * damaged, or holds LZ4 that does not unpack, on which drivers crash. */
kr_status kr__fatbin_check(const void *image, size_t image_bytes, kr_error *err);

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

/* ---- what holds fatbins ---- */

typedef struct kr__host_part {
    size_t at, end;      /* of one fatbin or several, in the file */
    const char *section; /* inside the file's bytes, or "": none is known */
} kr__host_part;

/* An ELF file for a host. */
typedef struct kr__host {
    size_t n_parts;
    kr__host_part *parts; /* in the file's order */
    kr__arena arena;
} kr__host;

/* Finds the fatbins; they are not read. KR_CORRUPT: no ELF file, or a damaged one. The bytes must outlive the
 * result. */
kr_status kr__host_read(const void *file, size_t bytes, kr__host **ret_host, kr_error *err);
void kr__host_free(kr__host **host);

typedef struct kr__archive_member {
    const char *name;
    size_t at, bytes; /* in the file */
} kr__archive_member;

typedef struct kr__archive {
    size_t n_members;
    kr__archive_member *members; /* without the archive's own tables */
    kr__arena arena;
} kr__archive;

/* The members of an archive (.a). KR_CORRUPT: it is damaged. */
kr_status kr__archive_read(const void *file, size_t bytes, kr__archive **ret_archive, kr_error *err);
void kr__archive_free(kr__archive **archive);

#endif
