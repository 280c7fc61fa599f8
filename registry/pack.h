/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_PACK_H
#define KR_PACK_H

/* Packs: the format (docs/pack-format.md), its reader and its writer. The ops that are built into the library
 * are one, too. */

#include <kregistry/pack.h>

#include "registry/descriptor.h"

/* ---- the format ---- */

#define KR__PACK_MAGIC "KRPACK\x1a\n"
enum { KR__PACK_VERSION = 1, KR__PACK_ALIGN = 64 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a pack's rows are read as they lie");

typedef struct kr__pack_header {
    char magic[8];
    uint32_t version;
    uint32_t n_ops, n_entries;
    uint32_t index_bytes;             /* this header, the rows, the texts */
    uint64_t bytes;                   /* the whole pack */
    uint8_t sha256[KR__SHA256_BYTES]; /* of the index but for this */
} kr__pack_header;

typedef struct kr__pack_op {
    uint32_t file; /* where its name is */
    uint32_t descriptor, descriptor_bytes;
    uint32_t n_entries; /* its entries follow those of the op before it */
    uint8_t zero[16];
    uint8_t identity[KR__SHA256_BYTES]; /* of the source, also where that is not here */
} kr__pack_op;

typedef enum kr__pack_kind {
    KR__PACK_SOURCE = 1, /* the op's .cu file */
    KR__PACK_HEADER = 2, /* a file that it includes */
    KR__PACK_PTX = 3,
    KR__PACK_CUBIN = 4,
    KR__PACK_FATBIN = 5
} kr__pack_kind;

typedef struct kr__pack_entry {
    uint64_t offset, bytes;
    uint8_t kind;          /* kr__pack_kind */
    uint8_t type, variant; /* of images: indexes into the op's */
    char suffix;           /* of the arch */
    uint16_t arch, isa;    /* 90 for 9.0; 87 for PTX 8.7 */
    uint32_t name;         /* of headers: where it is */
    uint8_t zero[4];
    uint8_t sha256[KR__SHA256_BYTES];
} kr__pack_entry;

/* The header's. */
void kr__pack_digest(const char *pack, size_t index_bytes, uint8_t ret_digest[KR__SHA256_BYTES]);

_Static_assert(sizeof(kr__pack_header) == 64 && sizeof(kr__pack_op) == 64 && sizeof(kr__pack_entry) == 64,
               "");

/* ---- reading (pack.c) ---- */

/* Takes the pack's op at an index, which is then the caller's to free; it points into the pack. */
kr__op_def *kr__pack_take_op(kr_pack *pack, size_t index);

/* Takes the bytes, which are malloc'ed, also where it fails. */
kr_status kr__pack_adopt(char *data, size_t bytes, kr_pack **ret_pack, kr_error *err);

/* Are the bytes still what they were when the pack was made? */
kr_status kr__stored_check(const kr__stored *stored, kr_error *err);
/* The same of the op's source, where it came in a pack. */
kr_status kr__source_check(const kr__op_def *def, kr_error *err);

/* SHA-256 of what the op is compiled from: the text, and the name and the text of each header, each with its
 * NUL. */
void kr__op_identity(const kr__op_def *def, uint8_t ret_digest[KR__SHA256_BYTES]);

/* ---- writing (pack_write.c) ---- */

/* A pack of the ops, which are put into name order. nvrtc NULL: without images. *ret_data is malloc'ed. */
kr_status kr__pack_write(const kr__op_def **defs, size_t n, kr_nvrtc *nvrtc, kr_cache *cache, const kr_pack_options *options,
                         char **ret_data, size_t *ret_bytes, kr_error *err);

/* ---- what the library is built with (made by tools/builtin.c) ---- */

extern const unsigned char kr__builtin_pack[];
extern const size_t kr__builtin_pack_bytes;
/* Their C references: a list a type for each op of the pack. */
extern const kr_reference_fn *const kr__builtin_references[];

#endif
