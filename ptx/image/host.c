/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fatbins in programs, libraries and objects for hosts of any machine. They are in sections of known names;
 * where the wrappers point, whatever the section; and wherever else something begins as a fatbin does, which
 * is how they are found where section headers were stripped or a program loads one by itself.
 */
#include "ptx/image/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/image/sections.h"

#define WRAPPERS ".nvFatBinSegment"
static const char *const fatbin_sections[] = {".nv_fatbin", "__nv_relfatbin"};

/* Magic, version 1 and a header of 16 bytes: as every fatbin known begins. */
static const char beginning[8] = {0x50, (char)0xed, 0x55, (char)0xba, 1, 0, 16, 0};

typedef struct finder {
    kr__elf elf;
    kr__host *host;
    kr_error *err;
} finder;

static kr_status add_part(finder *f, size_t at, size_t end, const char *section)
{
    kr__host *host = f->host;
    kr__host_part *grown = kr__grow(host->parts, host->n_parts, sizeof *grown);
    if (!grown)
        return KR_FAIL(f->err, KR_OUT_OF_HOST_MEMORY, "no memory for fatbin %zu", host->n_parts);
    host->parts = grown;
    grown[host->n_parts++] = (kr__host_part){at, end, section};
    return KR_OK;
}

/* ---- sections ---- */

static kr_status find_in_sections(finder *f)
{
    kr_status status = KR_OK;
    for (size_t i = 0; i < f->elf.n_sections && !status; i++) {
        const kr__elf_section *section = &f->elf.sections[i];
        const bool known =
            strcmp(section->name, fatbin_sections[0]) == 0 || strcmp(section->name, fatbin_sections[1]) == 0;
        if (!known || !section->has_contents || !section->bytes)
            continue;
        if (section->flags & SHF_COMPRESSED)
            return KR_FAIL(
                f->err, KR_CORRUPT,
                "ELF: section %s at offset 0x%llx is compressed as ELF has it, which no tool of CUDA's does",
                section->name, (unsigned long long)section->offset);
        status = add_part(f, section->offset, section->offset + section->bytes, section->name);
    }
    return status;
}

/* ---- wrappers: u32 magic, u32 version, pointer to the fatbin, pointer ---- */

enum { WRAPPER_MAGIC = 0x466243b1, AT_POINTER = 8 };

/* Offsets that are none: of what another file has; of what should be in this one and is not. */
static const uint64_t elsewhere = 0, nowhere = UINT64_MAX;

/* Where the file has what is at an address. */
static uint64_t offset_of(const kr__elf *elf, uint64_t address)
{
    for (size_t i = 0; i < elf->n_sections; i++) {
        const kr__elf_section *section = &elf->sections[i];
        if (section->flags & SHF_ALLOC && section->has_contents && address >= section->address &&
            address - section->address < section->bytes)
            return section->offset + (address - section->address);
    }
    return address ? nowhere : elsewhere;
}

/* Where the file has a symbol. */
static uint64_t offset_of_symbol(kr__elf *elf, const kr__elf_section *relocations, uint64_t symbol,
                                 uint64_t addend)
{
    const size_t row_bytes = elf->wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
    if (relocations->link >= elf->n_sections)
        return nowhere;
    const kr__elf_section *table = &elf->sections[relocations->link];
    if (!table->has_contents || symbol >= table->bytes / row_bytes)
        return nowhere;
    const uint64_t at = table->offset + symbol * row_bytes;
    const unsigned index = kr__u16(
        &elf->bytes, at + (elf->wide ? offsetof(Elf64_Sym, st_shndx) : offsetof(Elf32_Sym, st_shndx)));
    const uint64_t value = (elf->wide ? kr__u64(&elf->bytes, at + offsetof(Elf64_Sym, st_value))
                                      : kr__u32(&elf->bytes, at + offsetof(Elf32_Sym, st_value))) +
                           addend;
    if (index == SHN_UNDEF || index >= elf->n_sections)
        return elsewhere;
    if (elf->type != ET_REL)
        return offset_of(elf, value);
    const kr__elf_section *section = &elf->sections[index];
    return section->has_contents && value < section->bytes ? section->offset + value : nowhere;
}

/* What a relocation makes of a wrapper's pointer, where it is for one. */
static void relocate(finder *f, const kr__elf_section *wrappers, const kr__elf_section *relocations,
                     uint64_t at, uint64_t *targets)
{
    kr__elf *elf = &f->elf;
    const unsigned word = elf->wide ? 8 : 4;
    const bool is_rel = elf->type == ET_REL;
    const uint64_t place = kr__bytes_get(&elf->bytes, at, word) - (is_rel ? 0 : wrappers->address);
    const uint64_t info = kr__bytes_get(&elf->bytes, at + word, word),
                   symbol = elf->wide ? info >> 32 : info >> 8;
    const unsigned wrapper_bytes = AT_POINTER + 2 * word;
    if (place >= wrappers->bytes || place % wrapper_bytes != AT_POINTER)
        return;
    const uint64_t addend = kr__bytes_get(
        &elf->bytes, relocations->type == SHT_RELA ? at + 2 * word : wrappers->offset + place, word);
    targets[place / wrapper_bytes] =
        symbol ? offset_of_symbol(elf, relocations, symbol, addend) : offset_of(elf, addend);
}

static void relocate_all(finder *f, const kr__elf_section *wrappers, uint64_t *targets)
{
    const unsigned word = f->elf.wide ? 8 : 4;
    for (size_t i = 0; i < f->elf.n_sections; i++) {
        const kr__elf_section *relocations = &f->elf.sections[i];
        const bool of_these =
            f->elf.type != ET_REL || relocations->info == (size_t)(wrappers - f->elf.sections);
        const unsigned row_bytes = relocations->type == SHT_RELA ? 3 * word : 2 * word;
        if ((relocations->type == SHT_RELA || relocations->type == SHT_REL) && of_these)
            for (uint64_t at = 0; at + row_bytes <= relocations->bytes; at += row_bytes)
                relocate(f, wrappers, relocations, relocations->offset + at, targets);
    }
}

static bool is_found(const kr__host *host, uint64_t at)
{
    for (size_t i = 0; i < host->n_parts; i++)
        if (at >= host->parts[i].at && at < host->parts[i].end)
            return true;
    return false;
}

static const char *section_at(const kr__elf *elf, uint64_t at)
{
    for (size_t i = 0; i < elf->n_sections; i++) {
        const kr__elf_section *section = &elf->sections[i];
        if (section->has_contents && at >= section->offset && at - section->offset < section->bytes)
            return section->name;
    }
    return "";
}

/* The fatbin at `at` alone; to the file's end where it is damaged, for the reader to say how. */
static kr_status add_one(finder *f, uint64_t at)
{
    const size_t left = f->elf.bytes.n - at, bytes = kr__image_bytes(f->elf.bytes.data + at, left);
    return add_part(f, at, at + (bytes ? bytes : left), section_at(&f->elf, at));
}

static kr_status read_wrapper(finder *f, uint64_t at, uint64_t target)
{
    const uint32_t magic = kr__u32(&f->elf.bytes, at), version = kr__u32(&f->elf.bytes, at + 4);
    if (magic != WRAPPER_MAGIC || version < 1 || version > 2)
        return KR_FAIL(
            f->err, KR_CORRUPT,
            "ELF: a fatbin wrapper (magic 0x%08x, version 1 or 2) was expected at offset 0x%llx, not 0x%08x "
            "and %u",
            WRAPPER_MAGIC, (unsigned long long)at, magic, version);
    if (target == elsewhere)
        return KR_OK;
    if (target == nowhere)
        return KR_FAIL(f->err, KR_CORRUPT,
                       "ELF: a fatbin of this file was expected where the wrapper at offset 0x%llx points",
                       (unsigned long long)at);
    if (!kr__begins_with(f->elf.bytes.data + target, f->elf.bytes.n - target, beginning, 4))
        return KR_FAIL(
            f->err, KR_CORRUPT,
            "ELF: a fatbin was expected at offset 0x%llx, where the wrapper at offset 0x%llx points",
            (unsigned long long)target, (unsigned long long)at);
    return is_found(f->host, target) ? KR_OK : add_one(f, target);
}

static kr_status read_wrappers(finder *f, const kr__elf_section *wrappers)
{
    const unsigned word = f->elf.wide ? 8 : 4, wrapper_bytes = AT_POINTER + 2 * word;
    const size_t n = wrappers->bytes / wrapper_bytes;
    uint64_t *targets = kr__alloc(n + 1, sizeof *targets, f->err);
    if (!targets)
        return KR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n && f->elf.type != ET_REL; i++)
        targets[i] = offset_of(
            &f->elf, kr__bytes_get(&f->elf.bytes, wrappers->offset + i * wrapper_bytes + AT_POINTER, word));
    relocate_all(f, wrappers, targets);
    kr_status status = KR_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = read_wrapper(f, wrappers->offset + i * wrapper_bytes, targets[i]);
    free(targets);
    return status;
}

/* Thousands that lie over one another would be read thousands of times, each with all relocations. */
static kr_status check_side_by_side(finder *f)
{
    const size_t n = f->elf.bytes.n;
    uint64_t wrappers = 0, relocations = 0;
    for (size_t i = 0; i < f->elf.n_sections; i++) {
        const kr__elf_section *section = &f->elf.sections[i];
        const uint64_t bytes = section->has_contents ? section->bytes : 0;
        wrappers += strcmp(section->name, WRAPPERS) == 0 ? bytes : 0;
        relocations += section->type == SHT_RELA || section->type == SHT_REL ? bytes : 0;
    }
    return wrappers <= n && relocations <= n
               ? KR_OK
               : KR_FAIL(f->err, KR_CORRUPT,
                         "ELF: sections of fatbin wrappers (%llu bytes) and of relocations (%llu) were "
                         "expected beside each other in %zu bytes",
                         (unsigned long long)wrappers, (unsigned long long)relocations, n);
}

static kr_status find_by_wrappers(finder *f)
{
    kr_status status = check_side_by_side(f);
    for (size_t i = 0; i < f->elf.n_sections && !status; i++)
        if (strcmp(f->elf.sections[i].name, WRAPPERS) == 0 && f->elf.sections[i].has_contents)
            status = read_wrappers(f, &f->elf.sections[i]);
    return status;
}

/* ---- the rest of the file ---- */

static int by_place(const void *a, const void *b)
{
    const kr__host_part *one = a, *other = b;
    return (one->at > other->at) - (one->at < other->at);
}

/* The eight bytes may stand in any program's code, ours among them: a fatbin also fits, and its first entry
 * begins as entries do. */
static bool begins_fatbin(finder *f, size_t at, size_t end)
{
    enum { HEADER = 16, ENTRY_LEAST = 64 };
    if (end - at < HEADER + ENTRY_LEAST)
        return false;
    const uint64_t promised = kr__u64(&f->elf.bytes, at + 8);
    return promised >= ENTRY_LEAST && promised <= end - at - HEADER &&
           kr__u16(&f->elf.bytes, at + HEADER + 2) == 0x0101 &&
           kr__u32(&f->elf.bytes, at + HEADER + 4) >= ENTRY_LEAST;
}

static kr_status find_between(finder *f, size_t at, size_t end)
{
    const char *file = (const char *)f->elf.bytes.data, *found;
    kr_status status = KR_OK;
    while (!status && at < end && (found = memmem(file + at, end - at, beginning, sizeof beginning))) {
        at = (size_t)(found - file);
        if (begins_fatbin(f, at, end)) {
            status = add_one(f, at);
            at = f->host->parts[f->host->n_parts - 1].end;
        } else {
            at++;
        }
    }
    return status;
}

static kr_status find_elsewhere(finder *f)
{
    const size_t n = f->host->n_parts;
    kr_status status = KR_OK;
    size_t at = 0;
    if (n)
        qsort(f->host->parts, n, sizeof *f->host->parts, by_place);
    for (size_t i = 0; i < n && !status; i++) {
        const kr__host_part part = f->host->parts[i];
        if (part.at < at)
            return KR_FAIL(
                f->err, KR_CORRUPT,
                "ELF: the fatbins at offset 0x%zx were expected to begin after 0x%zx, where others end",
                part.at, at);
        status = find_between(f, at, part.at);
        at = part.end;
    }
    if (!status)
        status = find_between(f, at, f->elf.bytes.n);
    if (f->host->n_parts)
        qsort(f->host->parts, f->host->n_parts, sizeof *f->host->parts, by_place);
    return status;
}

kr_status kr__host_read(const void *file, size_t bytes, kr__host **ret_host, kr_error *err)
{
    kr__host *host = kr__alloc(1, sizeof *host, err);
    if (!host)
        return KR_OUT_OF_HOST_MEMORY;
    finder f = {.host = host, .err = err};
    kr_status status = kr__elf_read("ELF", file, bytes, &host->arena, &f.elf, err);
    if (!status)
        status = find_in_sections(&f);
    if (!status)
        status = find_by_wrappers(&f);
    if (!status)
        status = find_elsewhere(&f);
    if (status)
        kr__host_free(&host);
    else
        *ret_host = host;
    return status;
}

void kr__host_free(kr__host **host)
{
    if (!host || !*host)
        return;
    kr__arena_free(&(*host)->arena);
    free((*host)->parts);
    free(*host);
    *host = NULL;
}
