/* SPDX-License-Identifier: Apache-2.0 */
#include "ptx/image/sections.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Where the two classes keep the same things. */
typedef struct layout {
    unsigned word_bytes, header_bytes, segments, sections, flags, segment_bytes, n_segments, section_bytes,
        n_sections, names;
    unsigned row_bytes, row_flags, row_address, row_offset, row_size, row_link, row_info;
} layout;

#define LAYOUT(N)                                                                                         \
    {                                                                                                     \
        N / 8, sizeof(Elf##N##_Ehdr), offsetof(Elf##N##_Ehdr, e_phoff), offsetof(Elf##N##_Ehdr, e_shoff), \
            offsetof(Elf##N##_Ehdr, e_flags), offsetof(Elf##N##_Ehdr, e_phentsize),                       \
            offsetof(Elf##N##_Ehdr, e_phnum), offsetof(Elf##N##_Ehdr, e_shentsize),                       \
            offsetof(Elf##N##_Ehdr, e_shnum), offsetof(Elf##N##_Ehdr, e_shstrndx), sizeof(Elf##N##_Shdr), \
            offsetof(Elf##N##_Shdr, sh_flags), offsetof(Elf##N##_Shdr, sh_addr),                          \
            offsetof(Elf##N##_Shdr, sh_offset), offsetof(Elf##N##_Shdr, sh_size),                         \
            offsetof(Elf##N##_Shdr, sh_link), offsetof(Elf##N##_Shdr, sh_info)                            \
    }
static const layout layouts[2] = {LAYOUT(32), LAYOUT(64)};

bool kr__elf_takes_room(unsigned machine, uint32_t type)
{
    /* of relocatable cubins: .nv.global and .nv.shared.* */
    enum { MACHINE_CUDA = 190, CUDA_GLOBAL = 0x70000007, CUDA_SHARED = 0x7000000a };
    const bool is_cudas = machine == MACHINE_CUDA && (type == CUDA_GLOBAL || type == CUDA_SHARED);
    return type != SHT_NOBITS && !is_cudas;
}

const char *kr__elf_text(const kr__elf *elf, const kr__elf_section *table, uint64_t offset)
{
    if (offset >= table->bytes)
        return NULL;
    const char *text = (const char *)elf->bytes.data + table->offset + offset;
    return memchr(text, 0, table->bytes - offset) ? text : NULL;
}

kr_status kr__elf_spend(kr__elf *elf, uint64_t bytes, kr_error *err)
{
    enum { MOST_TIMES = 16 }; /* names may share their ends */
    if (__builtin_add_overflow(elf->spent, bytes, &elf->spent))
        elf->spent = UINT64_MAX;
    return elf->spent / MOST_TIMES <= elf->bytes.n
               ? KR_OK
               : KR_FAIL(
                     err, KR_CORRUPT,
                     "%s: parts were expected beside each other in %zu bytes, not over one another with %llu "
                     "bytes and more",
                     elf->what, elf->bytes.n, (unsigned long long)elf->spent);
}

static kr_status read_header(kr__elf *elf, kr_error *err)
{
    kr__bytes *bytes = &elf->bytes;
    if (bytes->n < EI_NIDENT || memcmp(bytes->data, ELFMAG, SELFMAG) != 0)
        return KR_FAIL(err, KR_CORRUPT,
                       "%s: an ELF header (7f 45 4c 46) was expected at offset 0 of %zu bytes", elf->what,
                       bytes->n);
    const unsigned class = kr__u8(bytes, EI_CLASS), order = kr__u8(bytes, EI_DATA);
    if (class != ELFCLASS32 && class != ELFCLASS64)
        return KR_FAIL(err, KR_CORRUPT, "%s: class 1 (32-bit) or 2 (64-bit) was expected at offset 4, not %u",
                       elf->what, class);
    if (order != ELFDATA2LSB)
        return KR_FAIL(err, KR_CORRUPT,
                       "%s: byte order 1 (little-endian) was expected at offset 5, not %u: CUDA has no other "
                       "hosts",
                       elf->what, order);
    elf->wide = class == ELFCLASS64;
    const unsigned header_bytes = layouts[elf->wide].header_bytes;
    if (bytes->n < header_bytes)
        return KR_FAIL(err, KR_CORRUPT,
                       "%s: an ELF header of %u bytes was expected at offset 0, %zu are there", elf->what,
                       header_bytes, bytes->n);
    elf->abi = kr__u8(bytes, EI_ABIVERSION);
    elf->type = kr__u16(bytes, offsetof(Elf64_Ehdr, e_type));
    elf->machine = kr__u16(bytes, offsetof(Elf64_Ehdr, e_machine));
    elf->version = kr__u32(bytes, offsetof(Elf64_Ehdr, e_version));
    elf->flags = kr__u32(bytes, layouts[elf->wide].flags);
    return KR_OK;
}

static kr__elf_section read_row(kr__elf *elf, uint64_t at)
{
    const layout *l = &layouts[elf->wide];
    kr__bytes *bytes = &elf->bytes;
    const uint32_t type = kr__u32(bytes, at + offsetof(Elf64_Shdr, sh_type));
    return (kr__elf_section){
        .name = "",
        .type = type,
        .has_contents = kr__elf_takes_room(elf->machine, type),
        .flags = kr__bytes_get(bytes, at + l->row_flags, l->word_bytes),
        .address = kr__bytes_get(bytes, at + l->row_address, l->word_bytes),
        .offset = kr__bytes_get(bytes, at + l->row_offset, l->word_bytes),
        .bytes = kr__bytes_get(bytes, at + l->row_size, l->word_bytes),
        .header = at,
        .link = kr__u32(bytes, at + l->row_link),
        .info = kr__u32(bytes, at + l->row_info),
    };
}

static kr_status read_rows(kr__elf *elf, uint64_t at, kr_error *err)
{
    for (size_t i = 0; i < elf->n_sections; i++) {
        kr__elf_section *section = &elf->sections[i];
        *section = read_row(elf, at + i * layouts[elf->wide].row_bytes);
        if (section->has_contents && !kr__bytes_hold(&elf->bytes, section->offset, section->bytes))
            return KR_FAIL(
                err, KR_CORRUPT,
                "%s: section %zu (header at offset 0x%llx) was expected inside %zu bytes, not at 0x%llx "
                "and %llu bytes long",
                elf->what, i, (unsigned long long)section->header, elf->bytes.n,
                (unsigned long long)section->offset, (unsigned long long)section->bytes);
    }
    return KR_OK;
}

static kr_status read_names(kr__elf *elf, uint32_t index, kr_error *err)
{
    if (index == SHN_UNDEF) /* all remain without */
        return KR_OK;
    if (index >= elf->n_sections || !elf->sections[index].has_contents)
        return KR_FAIL(err, KR_CORRUPT,
                       "%s: the section of names was expected at offset 0x%x below %zu, not %u", elf->what,
                       layouts[elf->wide].names, elf->n_sections, index);
    const kr__elf_section *names = &elf->sections[index];
    kr_status status = KR_OK;
    for (size_t i = 0; i < elf->n_sections && !status; i++) {
        kr__elf_section *section = &elf->sections[i];
        const uint32_t name = kr__u32(&elf->bytes, section->header);
        section->name = kr__elf_text(elf, names, name);
        if (!section->name)
            return KR_FAIL(
                err, KR_CORRUPT,
                "%s: the name of section %zu (offset 0x%llx) was expected inside %llu bytes, not at %u",
                elf->what, i, (unsigned long long)section->header, (unsigned long long)names->bytes, name);
        status = kr__elf_spend(elf, strlen(section->name), err);
    }
    return status;
}

static int by_name(const void *a, const void *b)
{
    const kr__elf_section *one = *(const kr__elf_section *const *)a,
                          *other = *(const kr__elf_section *const *)b;
    const int order = strcmp(one->name, other->name);
    return order ? order : (one > other) - (one < other);
}

static kr_status read_sections(kr__elf *elf, kr__arena *arena, kr_error *err)
{
    const layout *l = &layouts[elf->wide];
    kr__bytes *bytes = &elf->bytes;
    const uint64_t at = kr__bytes_get(bytes, l->sections, l->word_bytes);
    const unsigned row_bytes = kr__u16(bytes, l->section_bytes);
    uint64_t n = kr__u16(bytes, l->n_sections);
    uint32_t names = kr__u16(bytes, l->names);
    if (!at)
        return KR_OK;
    if (row_bytes != l->row_bytes)
        return KR_FAIL(err, KR_CORRUPT,
                       "%s: section headers of %u bytes were expected at offset 0x%x, not %u", elf->what,
                       l->row_bytes, l->section_bytes, row_bytes);
    if (kr__bytes_hold(bytes, at, row_bytes)) { /* numbers that do not fit are in the first section */
        const kr__elf_section first = read_row(elf, at);
        n = n ? n : first.bytes;
        names = names == SHN_XINDEX ? first.link : names;
    }
    if (n > bytes->n / row_bytes || !kr__bytes_hold(bytes, at, n * row_bytes))
        return KR_FAIL(err, KR_CORRUPT,
                       "%s: %llu section headers were expected at offset 0x%llx of %zu bytes", elf->what,
                       (unsigned long long)n, (unsigned long long)at, bytes->n);
    elf->n_sections = n;
    elf->sections = kr__arena_alloc(arena, (n + 1) * sizeof *elf->sections);
    elf->by_name = kr__arena_alloc(arena, (n + 1) * sizeof *elf->by_name);
    if (!elf->sections || !elf->by_name)
        return KR_FAIL(err, KR_OUT_OF_HOST_MEMORY, "no memory for %llu sections", (unsigned long long)n);
    kr_status status = read_rows(elf, at, err);
    if (!status)
        status = read_names(elf, names, err);
    for (size_t i = 0; !status && i < n; i++)
        elf->by_name[i] = &elf->sections[i];
    if (!status)
        qsort(elf->by_name, n, sizeof *elf->by_name, by_name);
    return status;
}

static kr_status check_segments(kr__elf *elf, kr_error *err)
{
    const layout *l = &layouts[elf->wide];
    kr__bytes *bytes = &elf->bytes;
    const uint64_t at = kr__bytes_get(bytes, l->segments, l->word_bytes);
    const uint64_t n = (uint64_t)kr__u16(bytes, l->n_segments) * kr__u16(bytes, l->segment_bytes);
    if (kr__bytes_hold(bytes, at, n))
        return KR_OK;
    return KR_FAIL(err, KR_CORRUPT,
                   "%s: program headers of %llu bytes were expected at offset 0x%llx of %zu bytes", elf->what,
                   (unsigned long long)n, (unsigned long long)at, bytes->n);
}

kr_status kr__elf_read(const char *what, const void *data, size_t bytes, kr__arena *arena, kr__elf *ret_elf,
                       kr_error *err)
{
    kr__elf elf = {.bytes = {data, bytes, false}, .what = what};
    kr_status status = read_header(&elf, err);
    if (!status)
        status = check_segments(&elf, err);
    if (!status)
        status = read_sections(&elf, arena, err);
    if (!status)
        *ret_elf = elf;
    return status;
}

/* How `whole` compares to the text that prefix and name make. */
static int compare(const char *whole, const char *prefix, const char *name)
{
    const size_t n = strlen(prefix);
    const int order = strncmp(whole, prefix, n);
    return order ? order : strcmp(whole + n, name);
}

const kr__elf_section *kr__elf_find(const kr__elf *elf, const char *prefix, const char *name)
{
    size_t low = 0, high = elf->n_sections;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(elf->by_name[middle]->name, prefix, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < elf->n_sections && compare(elf->by_name[low]->name, prefix, name) == 0;
    return found ? elf->by_name[low] : NULL;
}
