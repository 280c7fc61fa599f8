/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inspections. The host files in KREGISTRY_TEST_HOSTS were made by GNU as, ld and ar of a fatbin that
 * NVIDIA's fatbinary made of small.ptx there: one in .nv_fatbin, one in a section of another name, and a
 * wrapper for each. On the images in KREGISTRY_TEST_IMAGES, which tools.sh fills where there is a toolkit,
 * NVIDIA's own tools are the judge.
 */
#include <check.h>
#include <dirent.h>
#include <elf.h>
#include <kregistry/image.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base.h"

static char *read_file(const char *folder_variable, const char *name, size_t *ret_bytes)
{
    const char *folder = getenv(folder_variable);
    char path[1000], *data = NULL;
    kr__format(path, sizeof path, "%s/%s", folder ? folder : "", name);
    return folder && !kr__file_read(path, &data, ret_bytes, NULL) ? data : NULL;
}

static char *read_host(const char *name, size_t *ret_bytes)
{
    char *data = read_file("KREGISTRY_TEST_HOSTS", name, ret_bytes);
    ck_assert_msg(data != NULL, "no %s in KREGISTRY_TEST_HOSTS", name);
    return data;
}

/* All of it: how many images, or the error. The copy has no byte to spare. */
static kr_status inspect(const char *data, size_t n, size_t *ret_images, kr_error *err)
{
    char *copy = malloc(n ? n : 1);
    memcpy(copy, data, n);
    kr_inspection *inspection = NULL;
    kr_status status = kr_inspection_create(copy, n, NULL, &inspection, err);
    for (size_t i = 0; !status && i < kr_inspection_n_images(inspection); i++) {
        kr_image_contents *contents = NULL;
        status = kr_inspection_read(inspection, i, &contents, err);
        kr_image_contents_destroy(&contents);
    }
    if (!status && ret_images)
        *ret_images = kr_inspection_n_images(inspection);
    kr_inspection_destroy(&inspection);
    free(copy);
    return status;
}

static void refuses(const char *data, size_t n, const char *why)
{
    kr_error err;
    const kr_status status = inspect(data, n, NULL, &err);
    ck_assert_msg(status == KR_CORRUPT, "%s: %d", why, status);
    ck_assert_msg(strstr(err.message, why) != NULL, "\"%s\" is not in: %s", why, err.message);
}

/* ---- what holds fatbins ---- */

typedef struct place {
    size_t offset;
    const char *member, *section;
} place;

static void has(const char *data, size_t n, const char *kind, const place *places, size_t n_places)
{
    kr_inspection *inspection;
    kr_error err;
    ck_assert_msg(!kr_inspection_create(data, n, NULL, &inspection, &err), "%s", err.message);
    ck_assert_str_eq(kr_inspection_kind(inspection), kind);
    ck_assert_uint_eq(kr_inspection_n_images(inspection), n_places);
    for (size_t i = 0; i < n_places; i++) {
        const kr_image_info *info = kr_inspection_image(inspection, i);
        kr_image_contents *contents;
        ck_assert_int_eq(info->kind, KR_IMAGE_PTX);
        ck_assert_int_eq(info->compression, KR_LZ4);
        ck_assert_uint_eq(info->offset, places[i].offset);
        ck_assert_str_eq(info->member, places[i].member);
        ck_assert_str_eq(info->section, places[i].section);
        ck_assert_msg(!kr_inspection_read(inspection, i, &contents, &err), "%s", err.message);
        ck_assert_uint_eq(contents->n_kernels, 1);
        ck_assert_str_eq(contents->kernels[0].name, "k");
        kr_image_contents_destroy(&contents);
    }
    ck_assert_ptr_null(kr_inspection_image(inspection, n_places));
    kr_image_contents *none = NULL;
    ck_assert_int_eq(kr_inspection_read(inspection, n_places, &none, &err), KR_NOT_FOUND);
    kr_inspection_destroy(&inspection);
    ck_assert_ptr_null(inspection);
}

START_TEST(host_files)
{
    static const struct {
        const char *name, *kind;
        size_t n;
        place places[4];
    } files[] = {
        {"s64.o", "elf", 2, {{0xa0, "", ".nv_fatbin"}, {0x200, "", ".other"}}},
        {"s32.o", "elf", 2, {{0x98, "", ".nv_fatbin"}, {0x1e8, "", ".other"}}},
        {"s64.so", "elf", 2, {{0x200, "", ".nv_fatbin"}, {0x330, "", ".other"}}},
        {"s.a",
         "archive",
         4,
         {{0x124, "s64.o", ".nv_fatbin"},
          {0x284, "s64.o", ".other"},
          {0x810, "s32.o", ".nv_fatbin"},
          {0x960, "s32.o", ".other"}}},
    };
    for (size_t i = 0; i < KR_COUNT(files); i++) {
        size_t n;
        char *data = read_host(files[i].name, &n);
        has(data, n, files[i].kind, files[i].places, files[i].n);
        free(data);
    }
}
END_TEST

/* As `sstrip` leaves a program. */
START_TEST(without_section_headers)
{
    size_t n;
    char *data = read_host("s64.so", &n);
    Elf64_Ehdr *elf = (Elf64_Ehdr *)data;
    elf->e_shoff = elf->e_shnum = elf->e_shstrndx = 0;
    has(data, n, "elf", (const place[]){{0x200, "", ""}, {0x330, "", ""}}, 2);
    free(data);
}
END_TEST

/* What does not fit a header is in the first section. */
/* A program that reads fatbins, this one, has the bytes that they begin with, and is not damaged for it. */
START_TEST(the_magic_alone_is_no_fatbin)
{
    kr_inspection *inspection;
    kr_error err;
    const kr_status status = kr_inspection_open("/proc/self/exe", &inspection, &err);
    ck_assert_msg(status == KR_OK, "%s", err.message);
    ck_assert_uint_eq(kr_inspection_n_images(inspection), 0);
    kr_inspection_destroy(&inspection);
}
END_TEST

START_TEST(numbers_of_many_sections)
{
    size_t n;
    char *data = read_host("s64.so", &n);
    Elf64_Ehdr *elf = (Elf64_Ehdr *)data;
    Elf64_Shdr *sections = (Elf64_Shdr *)(data + elf->e_shoff);
    sections[0].sh_size = elf->e_shnum;
    sections[0].sh_link = elf->e_shstrndx;
    elf->e_shnum = 0;
    elf->e_shstrndx = SHN_XINDEX;
    has(data, n, "elf", (const place[]){{0x200, "", ".nv_fatbin"}, {0x330, "", ".other"}}, 2);
    sections[0].sh_size = 1ull << 60;
    refuses(data, n, "1152921504606846976 section headers were expected at offset 0x588");
    free(data);
}
END_TEST

static Elf64_Shdr *section_at(char *data, uint64_t offset)
{
    Elf64_Ehdr *elf = (Elf64_Ehdr *)data;
    Elf64_Shdr *sections = (Elf64_Shdr *)(data + elf->e_shoff);
    for (size_t i = 0; i < elf->e_shnum; i++)
        if (sections[i].sh_offset == offset && sections[i].sh_size)
            return &sections[i];
    ck_abort_msg("no section at 0x%llx", (unsigned long long)offset);
}

START_TEST(damaged_hosts)
{
    enum { FATBIN = 0x1a0, OTHER = 0x2d0, WRAPPERS = 0x4f0, RELOCATIONS = 0x170 };
    static const struct {
        size_t offset;
        uint8_t byte;
        const char *why;
    } changes[] = {
        {FATBIN, 0, "a fatbin was expected at offset 0x1a0, where the wrapper at offset 0x4f0 points"},
        {FATBIN + 4, 2, "version 1 and a header of 16 bytes were expected at offset 420"},
        {FATBIN + 8, 0xff, "the header at offset 416 promises 511 bytes"},
        {FATBIN + 16 + 8, 0xff, "entry at offset 432: a payload of at most"},
        {FATBIN + 16 + 0x10, 0xff, "entry at offset 432: 255 compressed bytes of a payload of 208"},
        {FATBIN + 16 + 0x1c, 0, "entry at offset 432: an SM number was expected, not 0"},
        {FATBIN + 16 + 0x38, 0xff, "the LZ4 payload of 206 bytes does not unpack to the 255 bytes promised"},
        {OTHER, 0, "a fatbin was expected at offset 0x2d0, where the wrapper at offset 0x508 points"},
        {WRAPPERS, 0, "a fatbin wrapper (magic 0x466243b1, version 1 or 2) was expected at offset 0x4f0"},
        {RELOCATIONS + 16, 0xa8,
         "a fatbin was expected at offset 0x1a8, where the wrapper at offset 0x4f0 points"},
        {RELOCATIONS + 16, 8, "a fatbin of this file was expected where the wrapper at offset 0x4f0 points"},
        {4, 3, "class 1 (32-bit) or 2 (64-bit) was expected at offset 4, not 3"},
        {5, 2, "byte order 1 (little-endian) was expected at offset 5, not 2"},
        {0x3a, 1, "section headers of 64 bytes were expected at offset 0x3a, not 1"},
        {0x3e, 99, "the section of names was expected at offset 0x3e below 12, not 99"},
        {0x38, 0xff, "program headers of"},
    };
    size_t n;
    char *data = read_host("s64.so", &n);
    for (size_t i = 0; i < KR_COUNT(changes); i++) {
        const char before = data[changes[i].offset];
        data[changes[i].offset] = (char)changes[i].byte;
        refuses(data, n, changes[i].why);
        data[changes[i].offset] = before;
    }
    /* One that begins inside another. */
    Elf64_Shdr *first = section_at(data, FATBIN), *second = section_at(data, OTHER);
    section_at(data, WRAPPERS)->sh_name = 0;
    second->sh_name = first->sh_name;
    second->sh_offset = first->sh_offset + 8;
    refuses(data, n, "were expected to begin after 0x2d0, where others end");
    second->sh_offset = UINT64_MAX - 8; /* wraps */
    refuses(data, n, "section 7 (header at offset 0x748) was expected inside 2184 bytes");
    second->sh_offset = OTHER;
    second->sh_flags |= SHF_COMPRESSED;
    refuses(data, n, ".nv_fatbin at offset 0x2d0 is compressed");
    free(data);
}
END_TEST

/* An ELF file of nothing but contents, section headers and their names, of which the first is section 1. */
static char *make_elf(const Elf64_Ehdr *kind, size_t contents, size_t n_sections, const char *names,
                      size_t names_bytes, Elf64_Shdr **ret_sections, size_t *ret_bytes)
{
    const size_t headers = sizeof *kind + contents, names_at = headers + n_sections * sizeof(Elf64_Shdr);
    Elf64_Ehdr header = *kind;
    memcpy(header.e_ident, (uint8_t[]){0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, 7);
    header.e_ident[EI_ABIVERSION] = kind->e_machine == 190 ? 8 : 0;
    header.e_shoff = headers;
    header.e_ehsize = sizeof header;
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shstrndx = 1;
    *ret_bytes = names_at + names_bytes;
    char *data = calloc(*ret_bytes, 1);
    ck_assert_ptr_nonnull(data);
    memcpy(data, &header, sizeof header);
    memcpy(data + names_at, names, names_bytes);
    *ret_sections = (Elf64_Shdr *)(data + headers);
    (*ret_sections)[0].sh_size = n_sections;
    (*ret_sections)[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = names_bytes};
    return data;
}

static const Elf64_Ehdr library_kind = {.e_type = ET_DYN, .e_machine = EM_X86_64};
static const Elf64_Ehdr cubin_kind = {.e_type = ET_EXEC, .e_machine = 190, .e_flags = 0x06005a04};

/* In half a megabyte, each read with all others: hours. */
START_TEST(sections_over_one_another)
{
    enum { SECTIONS = 4000, CONTENTS = 6000 * 24 };
    static const char names[] = "\0.nvFatBinSegment";
    static const uint32_t types[] = {SHT_PROGBITS, SHT_RELA};
    size_t n;
    Elf64_Shdr *sections;
    char *data = make_elf(&library_kind, CONTENTS, SECTIONS, names, sizeof names, &sections, &n);
    for (size_t at = sizeof library_kind; at < sizeof library_kind + CONTENTS; at += 24)
        memcpy(data + at, (uint32_t[]){0x466243b1, 1}, 8);
    for (size_t i = 2; i < SECTIONS; i++)
        sections[i] = (Elf64_Shdr){.sh_name = i % 2,
                                   .sh_type = types[i % 2],
                                   .sh_flags = SHF_ALLOC,
                                   .sh_addr = 0x10000,
                                   .sh_offset = sizeof library_kind,
                                   .sh_size = CONTENTS};
    refuses(data, n, "were expected beside each other in ");
    free(data);
}
END_TEST

/* Each wrapper, relocation and fatbin in a section of its own is looked up among all: minutes, were it one by
 * one. */
START_TEST(many_of_everything)
{
    enum { EACH = 200000, WRAPPER = 24, FATBIN = 16, BASE = 0x10000 };
    static const char names[] = "\0.nvFatBinSegment\0.fatbin";
    const size_t wrappers = sizeof library_kind, fatbins = wrappers + (size_t)EACH * WRAPPER,
                 relocations = fatbins + (size_t)EACH * FATBIN;
    size_t n, n_images;
    kr_error err;
    Elf64_Shdr *sections;
    char *data = make_elf(&library_kind, (size_t)EACH * (WRAPPER + FATBIN + sizeof(Elf64_Rela)), 3 + 2 * EACH,
                          names, sizeof names, &sections, &n);
    for (size_t i = 0; i < EACH; i++) {
        const size_t wrapper = wrappers + i * WRAPPER, fatbin = fatbins + i * FATBIN;
        const Elf64_Rela relocation = {.r_offset = BASE + wrapper + 8, .r_addend = (int64_t)(BASE + fatbin)};
        memcpy(data + wrapper, (uint32_t[]){0x466243b1, 1}, 8);
        memcpy(data + fatbin, (uint32_t[]){0xba55ed50, 0x00100001}, 8);
        memcpy(data + relocations + i * sizeof relocation, &relocation, sizeof relocation);
        sections[3 + 2 * i] =
            (Elf64_Shdr){1, SHT_PROGBITS, SHF_ALLOC, BASE + wrapper, wrapper, WRAPPER, 0, 0, 8, 0};
        sections[4 + 2 * i] =
            (Elf64_Shdr){18, SHT_PROGBITS, SHF_ALLOC, BASE + fatbin, fatbin, FATBIN, 0, 0, 8, 0};
    }
    sections[2] = (Elf64_Shdr){
        .sh_type = SHT_RELA, .sh_offset = relocations, .sh_size = (size_t)EACH * sizeof(Elf64_Rela)};
    ck_assert_msg(inspect(data, n, &n_images, &err) == KR_OK, "%s", err.message);
    ck_assert_uint_eq(n_images, 0);
    memset(data + fatbins + (size_t)(EACH - 1) * FATBIN, 0, 4); /* the last is read, too */
    refuses(data, n, "a fatbin was expected at offset ");
    free(data);
}
END_TEST

/* A hundred thousand names of megabytes, and kernels that all have the same megabyte of records. */
START_TEST(names_and_records_over_one_another)
{
    enum { EACH = 100000, NAME = 8 << 20, SYMBOLS = EACH * sizeof(Elf64_Sym) };
    static const char begin[] = "\0.nv.info.aaa";
    char *names = memset(malloc(NAME + 1), 'a', NAME);
    names[NAME] = '\0';
    memcpy(names, begin, sizeof begin - 1);
    size_t n;
    Elf64_Shdr *sections;
    char *data = make_elf(&library_kind, 0, EACH, names, NAME + 1, &sections, &n);
    for (size_t i = 2; i < EACH; i++)
        sections[i].sh_name = (uint32_t)i;
    refuses(data, n, "ELF: parts were expected beside each other in ");
    free(data);

    data = make_elf(&cubin_kind, SYMBOLS, 3, names, NAME + 1, &sections, &n);
    Elf64_Sym *symbols = (Elf64_Sym *)(data + sizeof cubin_kind);
    for (size_t i = 0; i < EACH; i++)
        symbols[i] = (Elf64_Sym){.st_name = 10 + (uint32_t)i, .st_info = 0x12, .st_other = 0x10};
    sections[2] =
        (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = sizeof cubin_kind, .sh_size = SYMBOLS, .sh_link = 1};
    refuses(data, n, "cubin: parts were expected beside each other in ");
    free(data);

    strcpy(names, begin), names[sizeof begin - 1] = '\0';
    data = make_elf(&cubin_kind, SYMBOLS + NAME, 4, names, 64, &sections, &n);
    symbols = (Elf64_Sym *)(data + sizeof cubin_kind);
    for (size_t i = 0; i < EACH; i++)
        symbols[i] = (Elf64_Sym){.st_name = 10, .st_info = 0x12, .st_other = 0x10};
    for (size_t at = sizeof cubin_kind + SYMBOLS; at < sizeof cubin_kind + SYMBOLS + NAME; at += 4)
        memcpy(data + at, (uint8_t[]){1, 0xff, 0, 0}, 4);
    sections[2] =
        (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = sizeof cubin_kind, .sh_size = SYMBOLS, .sh_link = 1};
    sections[3] = (Elf64_Shdr){1, 0x70000000, 0, 0, sizeof cubin_kind + SYMBOLS, NAME, 0, 0, 4, 0};
    refuses(data, n, "cubin: parts were expected beside each other in ");
    free(data);
    free(names);
}
END_TEST

enum { MEMBER_HEADER = 60, ARCHIVE_MAGIC = 8 };

static char *add_member_header(char *to, const char *name, size_t bytes)
{
    char line[MEMBER_HEADER + 1];
    snprintf(line, sizeof line, "%-16s%-12d%-6d%-6d%-8d%-10zu`\n", name, 0, 0, 0, 644, bytes);
    return (char *)memcpy(to, line, MEMBER_HEADER) + MEMBER_HEADER;
}

START_TEST(damaged_archives)
{
    size_t n;
    char *data = read_host("s.a", &n);
    char *size = data + 8 + 48; /* of the first member */
    memcpy(size, "99999999  ", 10);
    refuses(data, n, "a member of 99999999 bytes was expected at offset 68");
    memcpy(size, "-1        ", 10);
    refuses(data, n, "the header of a member, with its size, was expected at offset 8");
    free(data);
    char tables[ARCHIVE_MAGIC + 2 * MEMBER_HEADER], *at = memcpy(tables, "!<arch>\n", ARCHIVE_MAGIC);
    at = add_member_header(at + ARCHIVE_MAGIC, "//", 0);
    add_member_header(at, "//", 0);
    refuses(tables, sizeof tables, "one table of names was expected; the member at offset 128 is another");
}
END_TEST

/* One in another in another. */
START_TEST(nested_archives)
{
    enum { DEPTH = 100000, LEVEL = ARCHIVE_MAGIC + MEMBER_HEADER };
    char *data = malloc((size_t)DEPTH * LEVEL), *at = data;
    size_t images;
    kr_error err;
    for (size_t left = DEPTH; left--;) {
        memcpy(at, "!<arch>\n", ARCHIVE_MAGIC);
        at = add_member_header(at + ARCHIVE_MAGIC, "a/", left * LEVEL);
    }
    refuses(data, (size_t)DEPTH * LEVEL, "at most 8 archives in one another were expected");
    const char *inner = data + (size_t)(DEPTH - 8) * LEVEL;
    ck_assert_int_eq(inspect(inner, (size_t)8 * LEVEL, &images, &err), KR_OK);
    free(data);
}
END_TEST

/* Of the C library's heap, mapped blocks too. */
static size_t memory_in_use(void)
{
    const struct mallinfo2 use = mallinfo2();
    return use.uordblks + use.hblkhd;
}

/* Many members that share one name of no end take no memory for it each: 4,000 of a megabyte would. */
START_TEST(names_without_end)
{
    enum { NAME = 1000000, MEMBERS = 4000 };
    const size_t n = ARCHIVE_MAGIC + MEMBER_HEADER + NAME + (size_t)MEMBERS * MEMBER_HEADER;
    char *data = malloc(n), *at = data;
    kr_error err;
    memcpy(at, "!<arch>\n", ARCHIVE_MAGIC);
    at = add_member_header(at + ARCHIVE_MAGIC, "//", NAME);
    at = (char *)memset(at, 'a', NAME) + NAME;
    for (size_t i = 0; i < MEMBERS; i++)
        at = add_member_header(at, "/0", 0);
    const size_t before = memory_in_use();
    kr_inspection *inspection;
    ck_assert_int_eq(kr_inspection_create(data, n, "a", &inspection, &err), KR_OK);
    ck_assert_uint_lt(memory_in_use() - before, 100 << 20);
    kr_inspection_destroy(&inspection);
    free(data);
}
END_TEST

/* Every cut loses something, but one between two members, or declarations of PTX; and no change of a byte
 * does harm. */
START_TEST(cut_and_flipped)
{
    static const char *const names[] = {"s64.o", "s32.o", "s64.so", "s.a", "small.ptx"};
    static const uint8_t masks[] = {0xff, 0x01, 0x80};
    for (size_t i = 0; i < KR_COUNT(names); i++) {
        size_t n, images = 0, whole = 0;
        char *data = read_host(names[i], &n);
        kr_error err;
        ck_assert_int_eq(inspect(data, n, &whole, &err), KR_OK);
        for (size_t cut = 0; cut < n; cut++) {
            const kr_status status = inspect(data, cut, &images, &err);
            const bool is_text = strstr(names[i], ".ptx") != NULL;
            ck_assert(status == KR_CORRUPT || (!status && (images < whole || is_text)));
            if (status && cut > 20)
                ck_assert_msg(strstr(err.message, "offset") || strstr(err.message, "promised"), "%zu: %s",
                              cut, err.message);
        }
        for (size_t at = 0; at < n; at++) {
            const char before = data[at];
            data[at] ^= (char)masks[at % KR_COUNT(masks)];
            inspect(data, n, &images, &err);
            data[at] = before;
        }
        free(data);
    }
}
END_TEST

START_TEST(refused_by_name)
{
    static const struct {
        const char *bytes, *why;
    } files[] = {{"MZ\x90", "a Windows program"},
                 {"!<thin>\n", "a thin archive"},
                 {"PK\3\4....", "a zip archive"},
                 {"BC\xc0\xde", "LLVM bitcode"},
                 {"\xcf\xfa\xed\xfe", "a macOS program"},
                 {"kernel.ptx", "it looks like a file name"},
                 {"\xef\xbb\xbf.version 8.0\n", "byte order mark"},
                 {".target sm_90\n", "PTX must begin with .version"},
                 {"\x7f"
                  "ELF",
                  "byte"},
                 {"", "the image is empty"}};
    for (size_t i = 0; i < KR_COUNT(files); i++)
        refuses(files[i].bytes, strlen(files[i].bytes), files[i].why);
    kr_inspection *inspection = NULL;
    kr_error err;
    ck_assert_int_eq(kr_inspection_open("/no/such/file", &inspection, &err), KR_NOT_FOUND);
    ck_assert_int_eq(kr_inspection_open("/", &inspection, &err), KR_IO);
    ck_assert_ptr_null(inspection);
}
END_TEST

/* ---- PTX ---- */

static kr_image_contents *read_ptx(const char *text, kr_error *err)
{
    kr_inspection *inspection = NULL;
    kr_image_contents *contents = NULL;
    if (!kr_inspection_create(text, strlen(text), NULL, &inspection, err))
        kr_inspection_read(inspection, 0, &contents, err);
    kr_inspection_destroy(&inspection);
    return contents;
}

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

START_TEST(ptx_declarations)
{
    kr_error err;
    kr_image_contents *c = read_ptx(
        "// \xc3\xa9\r\n" HEAD /* any bytes in a comment, lines as Windows ends them */
        ".extern .global .u32 elsewhere;\n.extern .func f (.param .b32 p);\n"
        ".const .align 4 .f32 c[2][3] = {{1.0, 2.0, 3.0}};\r\n"
        ".global .attribute(.managed) .align 8 .b8 m[5], n;\n.global .v4 .f32 v;\n.global .b8 open[] = {1, "
        "2};\n"
        ".func g { ret; }\n.visible .entry declared;\n"
        "/* } */ .visible .entry a(.param .u8 x, .param .align 16 .b8 y[20],\n"
        ".param .u64 .ptr .global .align 64 z, .param .texref t)\n"
        ".maxntid 16, 4\n.minnctapersm 2 .maxnreg 40\n.pragma \"a;{\";\n"
        "{ { .reg .b32 %r; } .pragma \"}\"; ret; // }\n}\n"
        ".weak .entry b() .reqntid 32 .explicitcluster .reqnctapercluster 2, 2, 1 .maxclusterrank 8 { ret; }",
        &err);
    ck_assert_msg(c != NULL, "%s", err.message);
    ck_assert_uint_eq(c->n_kernels, 2);
    const kr_image_kernel *a = &c->kernels[0], *b = &c->kernels[1];
    static const kr_image_param expected[] = {{0, 1}, {16, 20}, {40, 8}, {48, 8}};
    ck_assert_str_eq(a->name, "a");
    ck_assert_uint_eq(a->n_params, 4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(a->params[i].offset, expected[i].offset);
        ck_assert_uint_eq(a->params[i].bytes, expected[i].bytes);
    }
    ck_assert_uint_eq(a->param_bytes, 56);
    ck_assert_uint_eq(a->max_threads[0] * 100 + a->max_threads[1] * 10 + a->max_threads[2], 1641);
    ck_assert_int_eq(a->max_registers, 40);
    ck_assert_str_eq(b->name, "b");
    ck_assert_uint_eq(b->required_threads[0], 32);
    ck_assert_uint_eq(b->cluster[0] * b->cluster[1] * b->cluster[2], 4);
    ck_assert_uint_eq(b->max_cluster, 8);
    static const kr_image_variable variables[] = {
        {"c", 24, true}, {"m", 5, false}, {"n", 1, false}, {"v", 16, false}, {"open", 0, false}};
    ck_assert_uint_eq(c->n_variables, KR_COUNT(variables));
    for (size_t i = 0; i < KR_COUNT(variables); i++) {
        ck_assert_str_eq(c->variables[i].name, variables[i].name);
        ck_assert_uint_eq(c->variables[i].bytes, variables[i].bytes);
        ck_assert_int_eq(c->variables[i].is_const, variables[i].is_const);
    }
    kr_image_contents_destroy(&c);
}
END_TEST

/* A version that nobody knows yet, and instructions of it, are no reason not to say what is declared. */
START_TEST(ptx_of_the_future)
{
    kr_error err;
    kr_image_contents *c =
        read_ptx(".version 99.1\n.target sm_990\n.entry k(.param .u64 p) { wow.big; }\n", &err);
    ck_assert_msg(c != NULL, "%s", err.message);
    ck_assert_uint_eq(c->n_kernels, 1);
    ck_assert_uint_eq(c->kernels[0].n_params, 1);
    ck_assert_int_eq(c->min_isa, 0);
    ck_assert_int_eq(c->driver, 0);
    ck_assert_int_eq(c->address_bits, 32);
    kr_image_contents_destroy(&c);
}
END_TEST

/* What a line ends may go on behind it. */
START_TEST(ptx_over_a_line)
{
    static const char *const texts[] = {HEAD ".entry k() { .loc 1 2 \"a\nb\"; ret; }",
                                        HEAD ".entry k() { .loc 1 2 /* a\nb */ 3; ret; }"};
    for (size_t i = 0; i < KR_COUNT(texts); i++) {
        kr_error err;
        kr_image_contents *c = read_ptx(texts[i], &err);
        ck_assert_msg(c != NULL, "%s", err.message);
        ck_assert_uint_eq(c->n_kernels, 1);
        ck_assert_int_eq(c->min_isa, 0);
        kr_image_contents_destroy(&c);
    }
}
END_TEST

/* It was written for more than it needs, and each thing that needs more is seen wherever it is. */
START_TEST(ptx_needs)
{
    static const struct {
        const char *body;
        int isa, driver;
    } rows[] = {
        {"add.u32 %r, %r, 1;", 30, 0}, /* the target alone */
        {"add.u32 %r, %r, 1; add.u32 %r, %r, 2; shfl.sync.idx.b32 %r, %r, 0, 31, -1;", 60, 9000},
        {"add.u32 %r, %r, 1; } .entry l() { .reg .b32 %r; add.u32 %r, %r, 2; shfl.sync.idx.b32 %r, %r, 0, "
         "31, -1;",
         60, 9000},
        {"} .entry l() { ret; } .entry m() { ret; } .entry n() { .reg .b64 %q; mov.b64 %q, m;", 30, 0},
        {"} .global .b32 t[2][2] = {{1, 2}, {3, 4}}; .section .debug_x { .b8 1, 2\nL: .b32 L }\n.global "
         ".u64 a[5] = {1, 2, t, 3, -4}; .global .attribute(.managed) .u32 m; .func f() {",
         70, 0}, /* for its label */
        {"} .section .debug_x { .b8 1, 2 } .global .attribute(.managed) .u32 m; .func f() {", 40, 0},
        {"\n.loc 1 9 2\n.loc 1 7 3, function_name L, inlined_at 1 9 2\n} .section .debug_x { .b8 1, 2\nL: "
         ".b8 0 } .func "
         "f() {",
         70, 0},
        {"L: @!%p bra L; { .reg .b32 %q; shfl.sync.idx.b32 %q, %q, 0, 31, -1; }", 60, 9000},
    };
    for (size_t i = 0; i < KR_COUNT(rows); i++) {
        char text[500];
        kr_error err;
        kr__format(text, sizeof text,
                   ".version 8.0\n.target sm_30\n.address_size 64\n.entry k() { .reg .b32 %%r; .reg .pred "
                   "%%p; %s ret; }",
                   rows[i].body);
        kr_image_contents *c = read_ptx(text, &err);
        ck_assert_msg(c != NULL, "%s", err.message);
        ck_assert_int_eq(c->min_isa, rows[i].isa);
        ck_assert_int_eq(c->driver, 12000);
        if (rows[i].driver)
            ck_assert_int_eq(c->min_driver, rows[i].driver);
        kr_image_contents_destroy(&c);
    }
}
END_TEST

START_TEST(damaged_ptx)
{
    static const struct {
        const char *text, *why;
    } texts[] = {
        {HEAD ".entry k() { ret;\n", "the } of the { at offset 55 was expected at offset 62 (line 5)"},
        {HEAD ".entry k() { /* ret; }\n", "the */ of a comment was expected at offset"},
        {HEAD ".entry k() { .pragma \"}; }\n", "the \" of a string was expected at offset"},
        {HEAD ".entry k() { ret; }\n/*/\n", "the */ of a comment was expected at offset 68 (line 6)"},
        {HEAD ".entry k() { \xe9 }\n", "a word was expected at offset 57 (line 4), not the byte 0xe9"},
        {HEAD "\xe9\n", "a word was expected at offset 44 (line 4), not the byte 0xe9"},
        {HEAD ".entry k(.param .u99 x) { }", "a type was expected at offset 65 (line 4), not \"x\""},
        {HEAD ".entry k(.param .u64 x[18446744073709551615]) { }", "a length below 2^64 bytes"},
        {HEAD ".entry k(.param .u64 x[y]) { }", "a number was expected at offset"},
        {HEAD ".entry ( ) { }", "a name was expected at offset 51 (line 4), not \"(\""},
        {HEAD ".entry k() .maxntid x { }", "a number was expected"},
        {HEAD ".global .u32 x = 1", "a semicolon was expected at offset"},
        {HEAD "}", "a declaration was expected at offset 44 (line 4), not \"}\""},
        {".version x.y\n.target sm_90\n", "a version as 8.7 was expected at offset 9 (line 1), not \"x\""},
        {".version 8.70\n.target sm_90\n", "a version as 8.7 was expected at offset 9"},
        {".version 8. 7\n.target sm_90\n", "a version as 8.7 was expected at offset 9"},
        {".version +8.7\n.target sm_90\n", "a version as 8.7 was expected at offset 9"},
        {".version 8.7x\n.target sm_90\n", "a target as sm_90 was expected"},
        {".version 8.0\n.target 9.0\n", "a target as sm_90 was expected"},
        {".version 8.0\n.target debug, sm_90\n", "a target as sm_90 was expected at offset 21 (line 2)"},
        {".version 8.0\n.target gfx\n", "a target as sm_90 was expected at offset 21 (line 2), not \"gfx\""},
    };
    for (size_t i = 0; i < KR_COUNT(texts); i++)
        refuses(texts[i].text, strlen(texts[i].text), texts[i].why);
    static const char nul[] = HEAD "\0.entry k() { }";
    refuses(nul, sizeof nul - 1, "NUL byte at offset 44");
}
END_TEST

/* ---- against the toolkit ---- */

/* The line of `ptxas -v` about the kernel that has the word; the number before it. -1: there is none. */
static long told(const char *log, const char *kernel, const char *word)
{
    char title[300];
    kr__format(title, sizeof title, "Compiling entry function '%s'", kernel);
    const char *at = strstr(log, title), *end = at ? strstr(at + 1, "Compiling entry") : NULL;
    ck_assert_msg(at != NULL, "%s is not in the log", kernel);
    at = strstr(at, word);
    if (!at || (end && at > end))
        return -1;
    while (at[-1] == ' ')
        at--;
    while (at[-1] >= '0' && at[-1] <= '9')
        at--;
    return atol(at);
}

static void same_extent(const unsigned a[3], const unsigned b[3])
{
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(a[i], b[i]);
}

/* Two writers of NVIDIA's, nvcc and ptxas, said the same thing in two formats. */
static void same_kernel(const kr_image_kernel *of_cubin, const kr_image_contents *ptx)
{
    const kr_image_kernel *of_ptx = NULL;
    for (size_t i = 0; i < ptx->n_kernels && !of_ptx; i++)
        of_ptx = strcmp(ptx->kernels[i].name, of_cubin->name) ? NULL : &ptx->kernels[i];
    ck_assert_msg(of_ptx != NULL, "%s is not in the PTX", of_cubin->name);
    ck_assert_uint_eq(of_cubin->n_params, of_ptx->n_params);
    ck_assert_uint_eq(of_cubin->param_bytes, of_ptx->param_bytes);
    for (size_t i = 0; i < of_ptx->n_params; i++) {
        ck_assert_uint_eq(of_cubin->params[i].offset, of_ptx->params[i].offset);
        ck_assert_uint_eq(of_cubin->params[i].bytes, of_ptx->params[i].bytes);
    }
    same_extent(of_cubin->max_threads, of_ptx->max_threads);
    same_extent(of_cubin->required_threads, of_ptx->required_threads);
    same_extent(of_cubin->cluster, of_ptx->cluster);
    ck_assert_uint_eq(of_cubin->max_cluster, of_ptx->max_cluster);
}

static kr_image_contents *read_one(const char *name)
{
    size_t n;
    kr_error err;
    kr_inspection *inspection = NULL;
    kr_image_contents *contents = NULL;
    char *data = read_file("KREGISTRY_TEST_IMAGES", name, &n);
    ck_assert_msg(data != NULL, "no %s", name);
    ck_assert_msg(!kr_inspection_create(data, n, name, &inspection, &err) &&
                      !kr_inspection_read(inspection, 0, &contents, &err),
                  "%s: %s", name, err.message);
    kr_inspection_destroy(&inspection);
    free(data);
    return contents;
}

/* Of CUDA 11 and 12: the first release with a target (NVIDIA's release notes). */
static int first_driver(kr_cc cc)
{
    return cc.suffix == 'f' ? 12090
           : cc.major == 9  ? (cc.suffix ? 12000 : 11080)
           : cc.major == 10 ? 12070
           : cc.major == 12 ? 12080
                            : 0;
}

static void compare(const char *stem)
{
    char name[300];
    size_t n;
    kr__format(name, sizeof name, "%s.log", stem);
    char *log = read_file("KREGISTRY_TEST_IMAGES", name, &n);
    kr__format(name, sizeof name, "%s.cubin", stem);
    kr_image_contents *cubin = read_one(name);
    kr__format(name, sizeof name, "%s.ptx", stem);
    kr_image_contents *ptx = read_one(name);
    int major, minor;
    kr_cc cc;
    ck_assert_int_eq(sscanf(log, "release %d.%d", &major, &minor), 2);
    ck_assert_int_eq(kr_cc_parse(strrchr(stem, '.') + 1, &cc, NULL), KR_OK);
    ck_assert_int_eq(cubin->toolkit, major * 1000 + minor * 10);
    ck_assert_int_eq(cubin->abi, major >= 13 || cc.major >= 10 ? 8 : 7);
    ck_assert_int_eq(cubin->driver, first_driver(cc) > major * 1000 ? first_driver(cc) : major * 1000);
    ck_assert_int_eq(cubin->min_target.major * 10 + cubin->min_target.minor, cc.major * 10 + cc.minor);
    ck_assert_int_eq(cubin->min_target.suffix, cc.suffix);
    ck_assert_int_eq(cubin->is_relocatable, strstr(stem, ".rdc.") != NULL);
    ck_assert_uint_eq(cubin->n_kernels, ptx->n_kernels);
    ck_assert_uint_eq(cubin->n_variables, ptx->n_variables);
    for (size_t i = 0; i < cubin->n_kernels; i++) {
        const kr_image_kernel *k = &cubin->kernels[i];
        const long shared = told(log, k->name, "bytes smem"), barriers = told(log, k->name, "barriers");
        ck_assert_int_eq(k->registers, told(log, k->name, "registers"));
        ck_assert_int_eq((long)k->shared_bytes, shared > 0 ? shared : 0);
        ck_assert_int_eq((long)k->local_bytes, told(log, k->name, "bytes stack frame"));
        if (barriers >= 0) /* older assemblers do not say */
            ck_assert_int_eq(k->barriers, barriers);
        same_kernel(k, ptx);
    }
    kr_image_contents_destroy(&cubin);
    kr_image_contents_destroy(&ptx);
    free(log);
}

/* Every NAME.cubin that ptxas made of NAME.ptx, telling NAME.log. */
START_TEST(as_ptxas_says)
{
    const char *folder = getenv("KREGISTRY_TEST_IMAGES");
    DIR *files = folder ? opendir(folder) : NULL;
    size_t n = 0;
    for (const struct dirent *entry; files && (entry = readdir(files));) {
        const char *ending = strstr(entry->d_name, ".cubin");
        char stem[256] = "";
        if (strncmp(entry->d_name, "all.", 4) != 0 || !ending)
            continue;
        memcpy(stem, entry->d_name, (size_t)(ending - entry->d_name));
        compare(stem);
        n++;
    }
    if (files)
        closedir(files);
    ck_assert(!folder || n > 0);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("inspect");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, host_files);
    tcase_add_test(cases, without_section_headers);
    tcase_add_test(cases, the_magic_alone_is_no_fatbin);
    tcase_add_test(cases, numbers_of_many_sections);
    tcase_add_test(cases, damaged_hosts);
    tcase_add_test(cases, sections_over_one_another);
    tcase_add_test(cases, many_of_everything);
    tcase_add_test(cases, names_and_records_over_one_another);
    tcase_add_test(cases, damaged_archives);
    tcase_add_test(cases, nested_archives);
    tcase_add_test(cases, names_without_end);
    tcase_add_test(cases, cut_and_flipped);
    tcase_add_test(cases, refused_by_name);
    tcase_add_test(cases, ptx_declarations);
    tcase_add_test(cases, ptx_of_the_future);
    tcase_add_test(cases, ptx_over_a_line);
    tcase_add_test(cases, ptx_needs);
    tcase_add_test(cases, damaged_ptx);
    tcase_add_test(cases, as_ptxas_says);
    Suite *suite = suite_create("inspect");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
