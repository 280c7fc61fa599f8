/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALL_CUBIN_H
#define SMALL_CUBIN_H

#include <elf.h>

/* Machine code of nothing: a header that says its target and that CUDA 12.3 made it, and one section. */
typedef struct small_cubin {
    Elf64_Ehdr head;
    Elf64_Shdr symbols;
} small_cubin;

/* flags: 0x5a055a for sm_90, 0x500550 for sm_80 */
static inline small_cubin small_cubin_of(Elf64_Word flags)
{
    return (small_cubin){.head = {.e_ident = ELFMAG "\2\1\1\x33\7",
                                  .e_type = ET_EXEC,
                                  .e_machine = 190,
                                  .e_version = 123,
                                  .e_flags = flags,
                                  .e_shoff = sizeof(Elf64_Ehdr),
                                  .e_shentsize = sizeof(Elf64_Shdr),
                                  .e_shnum = 1},
                         .symbols = {.sh_type = SHT_SYMTAB}};
}

#endif
