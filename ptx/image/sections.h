/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KR_IMAGE_SECTIONS_H
#define KR_IMAGE_SECTIONS_H

/* ELF files of either class, little-endian: their header and sections. Nobody outside this folder includes
 * it. */

#include "ptx/image/bytes.h"
#include "runtime/base/base.h"

typedef struct kr__elf_section {
    const char *name; /* "" where the file has no section of names */
    uint32_t type;
    bool has_contents; /* in the file */
    uint64_t flags, address;
    uint64_t offset, bytes; /* inside the file, where it has contents */
    uint64_t header;        /* offset of its header, for messages */
    uint32_t link, info;
} kr__elf_section;

typedef struct kr__elf {
    kr__bytes bytes;
    const char *what; /* begins each message: "cubin" */
    bool wide;        /* 64-bit */
    unsigned type, machine, abi;
    uint32_t version, flags;
    size_t n_sections;
    kr__elf_section *sections;
    const kr__elf_section **by_name; /* in name order, those of one name in file order */
    uint64_t spent;                  /* bytes of the parts that were read */
} kr__elf;

/* Reads header and sections into the arena. The names and contents stay in the file's bytes. A file without
 * section headers has none. KR_CORRUPT: with the offset and what was expected there. */
kr_status kr__elf_read(const char *what, const void *data, size_t bytes, kr__arena *arena, kr__elf *ret_elf,
                       kr_error *err);

/* Before a part is read that others may lie over: names, records, relocations. A million that are the same
 * megabyte would be read for hours. KR_CORRUPT: they come to far more than the file has. */
kr_status kr__elf_spend(kr__elf *elf, uint64_t bytes, kr_error *err);

/* The first section whose name is the prefix and the name, NULL: none. */
const kr__elf_section *kr__elf_find(const kr__elf *elf, const char *prefix, const char *name);
/* Does the file have the contents of sections of this type? */
bool kr__elf_takes_room(unsigned machine, uint32_t type);

/* A NUL-terminated text at `offset` of a string table; NULL where it leaves the table. */
const char *kr__elf_text(const kr__elf *elf, const kr__elf_section *table, uint64_t offset);

#endif
