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

/* Sections by where they begin, in memory or in the file. */
typedef struct range {
    uint64_t begin, bytes;
    const kr__elf_section *section;
} range;

typedef struct map {
    size_t n;
    range *ranges;
} map;

typedef struct wrapper {
    uint64_t at, target; /* in the file */
} wrapper;

typedef struct finder {
    kr__elf elf;
    map in_file, in_memory, wrappers_in_memory;
    size_t n_wrappers;
    wrapper *wrappers;
    size_t *first; /* of a section, among the wrappers */
    kr__host *host;
    kr_error *err;
} finder;

/* ---- sections by their places ---- */

static bool is_in_file(const kr__elf_section *section)
{
    return section->has_contents && section->bytes;
}

static bool is_in_memory(const kr__elf_section *section)
{
    return is_in_file(section) && section->flags & SHF_ALLOC;
}

static bool has_wrappers(const kr__elf_section *section)
{
    return is_in_file(section) && strcmp(section->name, WRAPPERS) == 0;
}

static int by_begin(const void *a, const void *b)
{
    const range *one = a, *other = b;
    const int order = (one->begin > other->begin) - (one->begin < other->begin);
    return order ? order : (one->section > other->section) - (one->section < other->section);
}

static kr_status make_map(finder *f, bool (*is_on)(const kr__elf_section *section), bool by_address,
                          map *ret_map)
{
    *ret_map = (map){.ranges = kr__arena_alloc(&f->host->arena, (f->elf.n_sections + 1) * sizeof(range))};
    if (!ret_map->ranges)
        return KR_FAIL(f->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu sections", f->elf.n_sections);
    for (size_t i = 0; i < f->elf.n_sections; i++) {
        const kr__elf_section *section = &f->elf.sections[i];
        if (is_on(section))
            ret_map->ranges[ret_map->n++] =
                (range){by_address ? section->address : section->offset, section->bytes, section};
    }
    qsort(ret_map->ranges, ret_map->n, sizeof(range), by_begin);
    return KR_OK;
}

/* The section that has a place; NULL: none. */
static const kr__elf_section *section_at(const map *m, uint64_t place)
{
    size_t low = 0, high = m->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->ranges[middle].begin <= place)
            low = middle + 1;
        else
            high = middle;
    }
    const range *last = low ? &m->ranges[low - 1] : NULL;
    return last && place - last->begin < last->bytes ? last->section : NULL;
}

/* ---- parts ---- */

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

static int by_place(const void *a, const void *b)
{
    const kr__host_part *one = a, *other = b;
    return (one->at > other->at) - (one->at < other->at);
}

static void sort_parts(kr__host *host)
{
    if (host->n_parts)
        qsort(host->parts, host->n_parts, sizeof *host->parts, by_place);
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

/* Where the file has what is at an address; objects have none. */
static uint64_t offset_of(const finder *f, uint64_t address)
{
    const kr__elf_section *section = f->elf.type == ET_REL ? NULL : section_at(&f->in_memory, address);
    return section ? section->offset + (address - section->address) : address ? nowhere : elsewhere;
}

/* Where the file has a symbol. */
static uint64_t offset_of_symbol(finder *f, const kr__elf_section *relocations, uint64_t symbol,
                                 uint64_t addend)
{
    kr__elf *elf = &f->elf;
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
        return offset_of(f, value);
    const kr__elf_section *section = &elf->sections[index];
    return section->has_contents && value < section->bytes ? section->offset + value : nowhere;
}

static unsigned wrapper_bytes(const finder *f)
{
    return AT_POINTER + (f->elf.wide ? 16 : 8);
}

/* What a relocation makes of a wrapper's pointer, where it is for one. */
static void relocate(finder *f, const kr__elf_section *relocations, uint64_t at)
{
    kr__elf *elf = &f->elf;
    const unsigned word = elf->wide ? 8 : 4;
    const bool is_rel = elf->type == ET_REL;
    uint64_t place = kr__bytes_get(&elf->bytes, at, word);
    const kr__elf_section *wrappers =
        is_rel ? &elf->sections[relocations->info] : section_at(&f->wrappers_in_memory, place);
    place -= wrappers && !is_rel ? wrappers->address : 0;
    if (!wrappers || place >= wrappers->bytes || place % wrapper_bytes(f) != AT_POINTER)
        return;
    const uint64_t info = kr__bytes_get(&elf->bytes, at + word, word),
                   symbol = elf->wide ? info >> 32 : info >> 8;
    const uint64_t addend = kr__bytes_get(
        &elf->bytes, relocations->type == SHT_RELA ? at + 2 * word : wrappers->offset + place, word);
    f->wrappers[f->first[wrappers - elf->sections] + place / wrapper_bytes(f)].target =
        symbol ? offset_of_symbol(f, relocations, symbol, addend) : offset_of(f, addend);
}

/* An object's relocations are for one section, which need not hold wrappers. */
static bool may_relocate(const finder *f, const kr__elf_section *relocations)
{
    const kr__elf *elf = &f->elf;
    return (relocations->type == SHT_RELA || relocations->type == SHT_REL) && f->n_wrappers &&
           (elf->type != ET_REL ||
            (relocations->info < elf->n_sections && has_wrappers(&elf->sections[relocations->info])));
}

static kr_status relocate_all(finder *f)
{
    const unsigned word = f->elf.wide ? 8 : 4;
    kr_status status = KR_OK;
    for (size_t i = 0; i < f->elf.n_sections && !status; i++) {
        const kr__elf_section *relocations = &f->elf.sections[i];
        if (!may_relocate(f, relocations))
            continue;
        const unsigned row_bytes = relocations->type == SHT_RELA ? 3 * word : 2 * word;
        status = kr__elf_spend(&f->elf, relocations->bytes, f->err);
        for (uint64_t at = 0; !status && at + row_bytes <= relocations->bytes; at += row_bytes)
            relocate(f, relocations, relocations->offset + at);
    }
    return status;
}

/* Where they are, and where they point as they lie in the file. */
static kr_status gather_wrappers(finder *f)
{
    const unsigned word = f->elf.wide ? 8 : 4, bytes = wrapper_bytes(f);
    size_t n = 0;
    for (size_t i = 0; i < f->elf.n_sections; i++) {
        const kr__elf_section *section = &f->elf.sections[i];
        const kr_status status =
            has_wrappers(section) ? kr__elf_spend(&f->elf, section->bytes, f->err) : KR_OK;
        if (status)
            return status;
        n += has_wrappers(section) ? section->bytes / bytes : 0;
    }
    f->wrappers = kr__arena_alloc(&f->host->arena, (n + 1) * sizeof *f->wrappers);
    f->first = kr__arena_alloc(&f->host->arena, (f->elf.n_sections + 1) * sizeof *f->first);
    if (!f->wrappers || !f->first)
        return KR_FAIL(f->err, KR_OUT_OF_HOST_MEMORY, "no memory for %zu fatbin wrappers", n);
    for (size_t i = 0; i < f->elf.n_sections; i++) {
        const kr__elf_section *section = &f->elf.sections[i];
        const uint64_t end = has_wrappers(section) ? section->offset + section->bytes : 0;
        f->first[i] = f->n_wrappers;
        for (uint64_t at = section->offset; end && end - at >= bytes; at += bytes)
            f->wrappers[f->n_wrappers++] =
                (wrapper){at, f->elf.type == ET_REL
                                  ? elsewhere
                                  : offset_of(f, kr__bytes_get(&f->elf.bytes, at + AT_POINTER, word))};
    }
    return KR_OK;
}

static kr_status check_wrapper(finder *f, const wrapper *w)
{
    const uint32_t magic = kr__u32(&f->elf.bytes, w->at), version = kr__u32(&f->elf.bytes, w->at + 4);
    if (magic != WRAPPER_MAGIC || version < 1 || version > 2)
        return KR_FAIL(
            f->err, KR_CORRUPT,
            "ELF: a fatbin wrapper (magic 0x%08x, version 1 or 2) was expected at offset 0x%llx, not 0x%08x "
            "and %u",
            WRAPPER_MAGIC, (unsigned long long)w->at, magic, version);
    if (w->target == elsewhere)
        return KR_OK;
    if (w->target == nowhere)
        return KR_FAIL(f->err, KR_CORRUPT,
                       "ELF: a fatbin of this file was expected where the wrapper at offset 0x%llx points",
                       (unsigned long long)w->at);
    if (!kr__begins_with(f->elf.bytes.data + w->target, f->elf.bytes.n - w->target, beginning, 4))
        return KR_FAIL(
            f->err, KR_CORRUPT,
            "ELF: a fatbin was expected at offset 0x%llx, where the wrapper at offset 0x%llx points",
            (unsigned long long)w->target, (unsigned long long)w->at);
    return KR_OK;
}

static int by_target(const void *a, const void *b)
{
    const wrapper *one = a, *other = b;
    return (one->target > other->target) - (one->target < other->target);
}

/* The fatbin at `at` alone; to the file's end where it is damaged, for the reader to say how. */
static kr_status add_one(finder *f, uint64_t at)
{
    const size_t left = f->elf.bytes.n - at, bytes = kr__image_bytes(f->elf.bytes.data + at, left);
    const kr__elf_section *section = section_at(&f->in_file, at);
    return add_part(f, at, at + (bytes ? bytes : left), section ? section->name : "");
}

/* Those that are in no part yet. */
static kr_status add_wrapped(finder *f)
{
    const kr__host *host = f->host;
    const size_t n = host->n_parts;
    size_t part = 0;
    uint64_t end = 0; /* of the one before */
    kr_status status = KR_OK;
    sort_parts(f->host);
    qsort(f->wrappers, f->n_wrappers, sizeof *f->wrappers, by_target);
    for (size_t i = 0; i < f->n_wrappers && !status; i++) {
        const uint64_t target = f->wrappers[i].target;
        while (part < n && host->parts[part].end <= target)
            part++;
        if (target == elsewhere || target < end || (part < n && host->parts[part].at <= target))
            continue;
        status = add_one(f, target);
        end = host->parts[host->n_parts - 1].end;
    }
    return status;
}

static kr_status find_by_wrappers(finder *f)
{
    kr_status status = gather_wrappers(f);
    if (!status)
        status = relocate_all(f);
    for (size_t i = 0; i < f->n_wrappers && !status; i++)
        status = check_wrapper(f, &f->wrappers[i]);
    return status ? status : add_wrapped(f);
}

/* ---- the rest of the file ---- */

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
    sort_parts(f->host);
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
    sort_parts(f->host);
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
        status = make_map(&f, is_in_file, false, &f.in_file);
    if (!status)
        status = make_map(&f, is_in_memory, true, &f.in_memory);
    if (!status)
        status = make_map(&f, has_wrappers, true, &f.wrappers_in_memory);
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
